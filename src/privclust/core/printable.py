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


def excerpt(value: object) -> str:
    """Return the printable text of a value, cut after 200 characters."""
    text = str(value)
    short = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
    return printable(short)
