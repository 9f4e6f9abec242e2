"""Lines of CSV files and their fields, each line by itself.

A parser of whole files reads, skips or refuses a line by what stands in others: one stray quote
joins the next lines to its own. Where no record may decide what becomes of another, every line is
a record, and a quoted line end ends it too.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from privclust.core.packages import require
from privclust.records.cells import number

_USUAL_FIELD = 1 << 16
_ENDS = re.compile("[\r\n\0]")
_NEVER = "\x1f"  # the character that is there to separate units; text ends at it


def lines_of(
    path: str | os.PathLike[str], n_lines: int, encoding: str = "utf-8"
) -> Iterator[list[str]]:
    """Yield the lines below the first, so many at a time; what cannot be decoded is replaced."""
    pd = require("pandas", "CSV files")
    how: dict[str, Any] = {"sep": _NEVER, "usecols": [0], "names": [0], "index_col": False}
    how |= {"skip_blank_lines": False}  # of one column, a line without an entry is a row as well
    how |= {
        "encoding": encoding,
        "dtype": str,
        "quoting": csv.QUOTE_NONE,
        "keep_default_na": False,
        "header": 0,
    }
    with pd.read_csv(path, chunksize=n_lines, encoding_errors="replace", **how) as frames:
        for frame in frames:
            yield frame[0].tolist()


def fields_of(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line, of which some may hold delimiters between quotes.

    Examples
    --------
    >>> fields_of('"Doe, Ann",30', ",")
    ['Doe, Ann', '30']
    """
    if '"' not in line:
        return line.split(delimiter)
    if len(line) <= _USUAL_FIELD and not _ENDS.search(line):
        return next(csv.reader([line], delimiter=delimiter))
    before = csv.field_size_limit(max(len(line), _USUAL_FIELD))  # a long field is one as well
    try:
        return next(csv.reader([_ENDS.sub(" ", line)], delimiter=delimiter))
    finally:
        csv.field_size_limit(before)


def numbers_of(fields: Sequence[str], n_features: int) -> list[float]:
    """Return so many numbers of a line, NaN for fields that are none or not there.

    Examples
    --------
    >>> numbers_of(["1", "two"], 3)
    [1.0, nan, nan]
    """
    fields = fields[:n_features]
    try:
        numbers = list(map(float, fields))
        if "_" in "".join(fields):  # Python's digits may hold it, no other program's
            raise ValueError
    except ValueError:  # field by field; what float takes at once is the same so
        numbers = [number(text.strip().strip('"')) for text in fields]
    return numbers + [math.nan] * (n_features - len(numbers))


def is_number(text: str) -> bool:
    """Whether a field is a number (or NaN)."""
    return text.strip().lower() == "nan" or not math.isnan(number(text))
