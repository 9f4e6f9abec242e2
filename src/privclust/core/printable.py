"""Safe display of text from files and names on a terminal."""

from __future__ import annotations

_MOST_CHARACTERS = 200


def printable(text: str) -> str:
    r"""Return a line of text with control characters escaped, since they could control a terminal.

    Control characters, line ends and marks of writing direction become escapes.

    Examples
    --------
    >>> print(printable("caf\u00e9 \x1b[31mred\n"))
    café \x1b[31mred\n
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def counted(number: float, thing: str) -> str:
    """Return a number, rounded to an integer, with its noun.

    Examples
    --------
    >>> counted(1.2, "row"), counted(1234, "row")
    ('1 row', '1,234 rows')
    """
    return f"{number:,.0f} {thing}{'' if round(number) == 1 else 's'}"


def excerpt(value: object) -> str:
    """Return the printable text of a value, cut after 200 characters."""
    text = str(value)
    short = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
    return printable(short)
