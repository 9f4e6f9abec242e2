"""The declared notation of numbers and dates in a text."""

from __future__ import annotations

import datetime
import functools
import math
import re
from dataclasses import dataclass
from typing import Any

from privclust.records.cells import number, seconds, text_of


@dataclass(frozen=True)
class Notation:
    """The marks in numbers and the order of dates, by default those of Python and ISO 8601.

    Attributes
    ----------
    decimal : str
        The mark before decimals.
    thousands : str
        The mark between groups of three digits; empty for none.
    date_format : str
        Format of dates in the codes of ``datetime.strptime``; empty for ISO 8601.

    Raises
    ------
    ValueError
        If a mark is not one character, or both are the same.

    Examples
    --------
    >>> german = Notation(decimal=",", thousands=".", date_format="%d.%m.%Y")
    >>> german.number("2.455,5"), german.number("2,455.5"), german.seconds("02.01.1970")
    (2455.5, nan, 86400.0)
    """

    decimal: str = "."
    thousands: str = ""
    date_format: str = ""

    def __post_init__(self) -> None:
        marks = [mark for mark in (self.decimal, self.thousands) if mark]
        if any(len(mark) != 1 or mark.isalnum() or mark in "+-" for mark in marks):
            raise ValueError(f"marks in numbers must be one character each, got {marks}")
        if len(set(marks)) < len(marks) or not self.decimal:
            raise ValueError(f"the decimal mark and that of thousands must differ, got {marks}")

    def number(self, cell: Any) -> float:
        """Return a cell as a float; NaN if it is no number in this notation."""
        if (self.decimal == "." and not self.thousands) or not isinstance(cell, str | bytes):
            return number(cell)
        text = text_of(cell) or ""
        if not _pattern(self.decimal, self.thousands).fullmatch(text):
            return math.nan
        if self.thousands:
            text = text.replace(self.thousands, "")
        return number(text.replace(self.decimal, "."))

    def seconds(self, cell: Any) -> float:
        """Return a cell in seconds since 1970; NaN if it is no date in this notation."""
        if not self.date_format or not isinstance(cell, str | bytes):
            return seconds(cell)
        try:
            # text_of: blanks at the ends are ignored, as in every other cell
            return seconds(datetime.datetime.strptime(text_of(cell) or "", self.date_format))
        except ValueError:
            return math.nan


USUAL = Notation()


@functools.cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = rf"\d+|\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+" if thousands else r"\d+"
    # every part may be missing: `number` refuses a text without digits
    return re.compile(rf"[+-]?(?:{whole})?(?:{re.escape(decimal)}\d*)?(?:[eE][+-]?\d+)?", re.ASCII)
