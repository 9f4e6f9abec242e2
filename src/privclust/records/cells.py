"""Reading of one cell, independently of all others: a number, a time, a category or a person.

Every function of one cell depends only on that cell, and no cell raises an error. Functions of
columns return the same bits, faster if the column has a type (`privclust.records.columns`).
"""

from __future__ import annotations

import datetime
import functools
import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np

MISSING_WORDS = frozenset({"", "na", "n/a", "nan", "<na>", "nat", "null", "none"})
"""Texts that stand for a missing entry, in any case of letters, unless they are a category."""
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
_NO_NUMBERS = (*_TIMES, complex, np.complexfloating, np.ndarray)
_NULLS = ("NAType", "NaTType")  # of pandas, which need not be installed
_NUMBER = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4}))?", re.ASCII)
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[T ]00:00(?::00(?:\.0+)?)?", re.ASCII)
_CACHED = (str, int, float, bytes)  # types with a cache: equal values are read once
_MOST_EXACT = 2**53  # floats are exact integers up to this
# below 4,300, where Python by default refuses to convert a text to an integer
_MOST_DIGITS = 4000  # most digits of an integer that is written out
# mean lengths of years and months; only limits are computed from them
_SECONDS_OF = {"Y": 31_556_952, "M": 2_629_746, "W": 604_800, "D": 86_400, "h": 3_600, "m": 60}
_PARTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
# half of the range of 64 bits, so that no conversion of a time within it overflows
_MOST_SECONDS = 2**62
_Value = TypeVar("_Value")


def _or(default: Any) -> Callable[[Callable[[Any], _Value]], Callable[[Any], _Value]]:
    """Return a decorator: a function of a cell returns the default instead of raising. Methods of a
    user's own class may raise anything, even when its class is requested.
    """

    def guarded(read: Callable[[Any], _Value]) -> Callable[[Any], _Value]:
        @functools.wraps(read)
        def safe(cell: Any) -> _Value:
            try:
                return read(cell)
            except Exception:
                return default

        return safe

    return guarded


@_or(None)
def text_of(cell: Any) -> str | None:
    """Return a cell as text without blanks at its ends; None if it has no text of its own.

    Bytes are read as UTF-8, with replacement of invalid ones.
    """
    if isinstance(cell, bytes | bytearray | memoryview):
        cell = bytes(cell).decode("utf-8", "replace")
    # an accented letter can be one character or two: NFC makes equal names equal texts
    text = str(cell).strip()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


@_or(False)
def is_missing(cell: Any) -> bool:
    """Return whether a cell is missing: None, NaN, NaT, NA, masked, blank, or a word for that.

    Examples
    --------
    >>> [is_missing(cell) for cell in (None, float("nan"), " ", "N/A", 0, "x")]
    [True, True, True, True, False, False]
    """
    if cell is None or cell is np.ma.masked or type(cell).__name__ in _NULLS:
        return True
    if isinstance(cell, str | bytes):
        text = text_of(cell)
        return text is None or text.lower() in MISSING_WORDS
    if isinstance(cell, float | np.floating):
        return bool(cell != cell)
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    return False


@_or(math.nan)
def number(cell: Any) -> float:
    """Return a cell as a float: NaN if it is no number, infinite if it is too large.

    Booleans are 0 and 1. Texts are numbers in the notation of Python, without underscores.

    Examples
    --------
    >>> [number(cell) for cell in ("1.5", True, 10**400, "two", None)]
    [1.5, 1.0, inf, nan, nan]
    """
    # the most frequent type needs no further test
    if type(cell) is float:
        return cell
    if isinstance(cell, _NO_NUMBERS):
        return math.nan
    if isinstance(cell, bytes):
        cell = cell.decode()  # text that is not UTF-8 is no number
    # float() accepts 1_000
    if isinstance(cell, str) and "_" in cell:
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


@_or(math.nan)
def seconds(cell: Any) -> float:
    """Return a date or time in seconds since 1970, rounded down; NaN for other cells.

    Texts are ISO 8601. Times with a time zone are converted to UTC. Numbers are no dates.

    Examples
    --------
    >>> [seconds(cell) for cell in ("1970-01-02", np.datetime64("1970-01-01T00:01"), 7, "soon")]
    [86400.0, 60.0, nan, nan]
    """
    if isinstance(cell, np.datetime64):
        return float(seconds_of_times(np.array([cell]))[0])
    if type(cell).__name__ in _NULLS:
        return math.nan
    if isinstance(cell, datetime.datetime):
        if cell.tzinfo is not None:
            cell = cell.astimezone(datetime.UTC).replace(tzinfo=None)
        cell = cell.replace(microsecond=0).isoformat()
    elif isinstance(cell, datetime.date):
        cell = cell.isoformat()
    elif not isinstance(cell, str | bytes):
        return math.nan
    text = text_of(cell)
    if not text or (not text[-1:].isdigit() and text[-1:] not in "Zz"):
        return math.nan  # also numpy's words "now" and "today"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of time zones in texts
        return float(seconds_of_times(np.array([np.datetime64(text)]))[0])


def seconds_of_times(times: np.ndarray) -> np.ndarray:
    """Return an array of ``datetime64`` in seconds since 1970; NaN for NaT and times out of range.

    NumPy's own conversion raises for the whole array if one time exceeds 64 bits, in some versions
    also for fractions of a second near the least time.
    """
    unit, step = np.datetime_data(times.dtype)
    if unit == "generic":
        return np.full(times.shape, math.nan)
    # native byte order, so that the times can be viewed as integers
    times = times.astype(times.dtype.newbyteorder("="))
    is_far, counts = np.isnat(times), times.view(np.int64)
    # all others are divided, not multiplied, to become seconds
    if unit in _SECONDS_OF or step > 1:
        most = _MOST_SECONDS // (_SECONDS_OF.get(unit, 1) * step)
        is_far |= (counts > most) | (counts < -most)
    if unit in _PARTS:
        # rounds down, also before 1970
        whole = np.where(is_far, 0, counts) * step // _PARTS[unit]
    else:
        inside = np.where(is_far, np.zeros((), dtype=times.dtype), times)
        whole = inside.astype("datetime64[s]").astype(np.int64)
    return np.where(is_far, math.nan, whole.astype(float))


@_or(None)
def key(cell: Any) -> str | None:
    """Return the key that identifies a category or a person; None for a missing cell.

    Equal numbers of up to 4,000 digits have the same key, whatever their type and spelling: 3, 3.0,
    "3" and " 3.00". So do texts that differ only in blanks at their ends.

    Examples
    --------
    >>> [key(cell) for cell in (3, 3.0, "3.00", b"3", 0.5, " ann", True, None, "NaN")]
    ['3', '3', '3', '3', '5e-1', 'ann', 'true', None, None]
    """
    if is_missing(cell):
        return None
    if isinstance(cell, int) and not isinstance(cell, bool):
        try:
            # int: a subclass may have a text of its own
            return str(int(cell))
        except ValueError:  # too many digits for Python
            return hex(cell)
    if isinstance(cell, float | np.floating):
        number_of = float(cell)
        if number_of.is_integer():  # a float32 with an integer value has that integer's key
            cell = int(number_of) if abs(number_of) <= _MOST_EXACT else number_of
    text = text_of(cell)
    if text is None:
        return None
    # Times at midnight are days: pandas reads days as times. The first test is a cheap one.
    if text[4:5] == "-" and (midnight := _MIDNIGHT.fullmatch(text)):
        return midnight[1]
    return _plain_number(text) or (text.lower() if text.lower() in ("true", "false") else text)


def _plain_number(text: str) -> str | None:
    """Return the canonical spelling of a decimal number; None for other texts."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, exponent = match.groups()
    digits = whole + (fraction or "")
    if not digits:
        return None
    power = int(exponent or 0) - len(fraction or "")
    kept = digits.rstrip("0")
    power += len(digits) - len(kept)
    kept = kept.lstrip("0")
    if not kept:
        return "0"
    sign = "-" if sign == "-" else ""
    if power >= 0 and len(kept) + power <= _MOST_DIGITS:
        return f"{sign}{kept}{'0' * power}"
    return f"{sign}{kept}e{power}"


def read_each(cells: Iterable[Any], read: Callable[[Any], _Value]) -> list[_Value]:
    """Return a function of each cell; equal cells of one type are read once."""
    known: dict[tuple[type, Any], _Value] = {}
    values = []
    for cell in cells:
        if type(cell) not in _CACHED:
            values.append(read(cell))
            continue
        # with the type, as 1, 1.0 and True are equal
        name = (type(cell), cell)
        if name not in known:
            known[name] = read(cell)
        values.append(known[name])
    return values
