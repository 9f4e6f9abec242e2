"""Tables in files, read by the names of columns: Parquet, and texts of lines.

A parser of whole texts may read, skip or refuse a line because of others: after a stray quote the
next lines are joined. Here each line is parsed independently. Every line is a record, even at a
quoted line end, and a line with too few or too many fields gets as many as the header.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import lzma
import math
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privclust.core.files import NO_SUCH_FILE, why_unreadable
from privclust.core.packages import require
from privclust.records.arrow import check_columns
from privclust.records.cells import number
from privclust.records.columns import ANY, Column, check_kind, column_of, kind_of_arrow
from privclust.records.errors import ReadingError
from privclust.records.files import PARQUET, TEXT, delimiter_of, kind_of_file
from privclust.records.notation import USUAL, Notation

_ROWS = 1 << 16  # rows read at a time
_FIELDS = 1 << 13  # fields of a text read at a time
_LEAST_LINES = 64  # if it is wide: each column of a part has a cost of its own
_MOST_FIELDS = 1 << 20  # also if it is wide: about 80 MB
_BUFFER_BYTES = 1 << 20  # bytes of a Parquet file read at a time
_USUAL_FIELD = 1 << 16
_MARK = "\ufeff"  # byte order mark at the start of a text
_OTHERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


class TableFile(ABC):
    """A file of rows with named columns.

    Attributes
    ----------
    path : Path
    names : tuple of str
        Names of all columns; one may occur twice.
    schema : pyarrow.Schema
        Their types; for a text the type of nulls, as its entries have no type.
    """

    path: Path
    names: tuple[str, ...]
    schema: Any

    @abstractmethod
    def batches(self, names: Sequence[str], n_rows: int = _ROWS) -> Iterator[Any]:
        """Yield parts of at most `n_rows` rows, with ``len(part)`` and ``part[name]``."""

    def columns(self, names: Iterable[str]) -> Iterator[Any]:
        """Yield parts with these columns: ``len(part)``, and each ``part[name]`` a `Column`.

        Raises
        ------
        ReadingError
            If the table lacks a column or has it twice, or is damaged.
        """
        names = list(dict.fromkeys(names))
        self.check_names(names)
        parts = (
            _Part({name: column_of(part[name]) for name in names}, len(part))
            for part in self.batches(names)
        )
        return reworded(self.path, parts)

    def check_names(self, names: Sequence[str]) -> None:
        """Raise a ReadingError for a column that is missing or occurs twice."""
        with worded(self.path):
            check_columns(self.schema, names)

    def check_kind(self, name: str, what: str) -> None:
        """Raise a ReadingError if a column's type has no ``"numbers"``, ``"dates"``, ... A text has
        no types and is never refused.
        """
        self.check_names([name])
        with worded(self.path):
            of_column = self.schema.field(name).type
            check_kind(kind_of_arrow(of_column), of_column, name, what)


def open_table(
    path: str | os.PathLike[str],
    delimiter: str | None = None,
    *,
    encoding: str = "utf-8",
    notation: Notation = USUAL,
) -> TableFile:
    """Return the table in a file; its rows are read on request.

    Parameters
    ----------
    path : path
        ``.parquet``, or ``.csv``, ``.tsv``, ``.txt`` with a header, also compressed
        (``.csv.gz``).
    delimiter : str or None
        Delimiter of a text; None for a tab in ``.tsv``, else a comma.
    encoding : str
        Encoding of a text; invalid characters are replaced one by one.
    notation : Notation
        Notation of numbers and dates in a text.

    Raises
    ------
    ReadingError
        If it cannot be read; no message contains an entry of the table.
    FileNotFoundError
        If there is no such file.
    """
    kind = kind_of_file(path)
    if not kind:
        raise ReadingError(f"{path}: a table must be a file {', '.join([*TEXT, *PARQUET])}")
    if reason := why_unreadable(path):
        raise (FileNotFoundError if reason == NO_SUCH_FILE else ReadingError)(f"{path}: {reason}")
    with worded(path):
        if kind == "text":
            return TextFile(path, delimiter, encoding=encoding, notation=notation)
        return _ParquetFile(path)


class _ParquetFile(TableFile):
    """A Parquet file; row groups are read page by page, and it is open only while read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with self._opened() as file:
            self.schema = file.schema_arrow
        self.names = tuple(self.schema.names)

    def _opened(self) -> Any:
        parquet = require("pyarrow.parquet", "Parquet files")
        # else all requested columns of a row group are in memory at once
        how = {"pre_buffer": False, "buffer_size": _BUFFER_BYTES}
        # times of 96 bits, which Spark writes, exceed the range of nanoseconds in 64 bits
        return parquet.ParquetFile(self.path, coerce_int96_timestamp_unit="us", **how)

    def batches(self, names: Sequence[str], n_rows: int = _ROWS) -> Iterator[Any]:
        with self._opened() as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=list(names)):
                if len(batch):
                    yield batch


@dataclass(frozen=True)
class _Part:
    columns: Mapping[str, Column]
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]


class TextFile(TableFile):
    """A text of lines; each line but the first is a row."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        delimiter: str | None = None,
        *,
        encoding: str = "utf-8",
        notation: Notation = USUAL,
    ) -> None:
        pyarrow = require("pyarrow", "CSV files")
        self.path, self.delimiter = Path(path), delimiter_of(path, delimiter)
        self._encoding, self._notation = encoding, notation
        with self._opened() as file:
            first = file.readline()
        if not first:
            raise ReadingError("cannot be read (it is empty)")
        fields = _fields_of(first.rstrip("\n").removeprefix(_MARK), self.delimiter)
        self.names = tuple(name.strip() for name in fields)
        self.schema = pyarrow.schema([(name, pyarrow.null()) for name in self.names])
        seen = [shown for sign, shown in _OTHERS.items() if sign in first]
        if delimiter is None and len(fields) == 1 and seen:
            raise ReadingError(
                f"{seen[0]} are seen in its first line, and no {self.delimiter!r}: name the "
                "delimiter (--delimiter ';', say, or --delimiter tab)"
            )

    def check_names(self, names: Sequence[str]) -> None:
        numbers = Counter(self.names)
        for name in names:
            if numbers[name] != 1:  # others are not named: they may be a record's fields
                which = "has two columns" if numbers[name] else "has no column"
                other = ""
                if any("\ufffd" in one for one in self.names):
                    other = "; not all of it is text in this encoding (--encoding)"
                raise ReadingError(
                    f"{self.path}: {which} {name!r}; its first line must be a header, with "
                    f"{self.delimiter!r} between names (--delimiter){other}"
                )

    def check_header(self, names: Sequence[str] | None) -> None:
        """Raise a ReadingError if the first line is no header of `names` (None: of any)."""
        self.check_names(names or ())
        if names is not None:
            return
        if any(not math.isnan(number(name)) or name.lower() == "nan" for name in self.names):
            raise ReadingError("its first line holds numbers, and must be a header: column names")
        if "\ufffd" in "".join(self.names):
            raise ReadingError("its header is no text in UTF-8: convert it, or name the columns")
        if len(set(self.names)) < len(self.names):  # not named: they may be a record's fields
            raise ReadingError("its first line has a name twice, and must be a header")

    def batches(self, names: Sequence[str], n_rows: int = _ROWS) -> Iterator[Any]:
        n = len(self.names)
        fewest = max(1, min(_LEAST_LINES, _MOST_FIELDS // n))
        n_lines = min(n_rows, max(fewest, _FIELDS // n))
        place_of = {name: place for place, name in enumerate(self.names)}
        places = {name: place_of[name] for name in names}
        with self._opened() as file:
            file.readline()
            while len(part := self._part(itertools.islice(file, n_lines), places)):
                yield part

    def _part(self, lines: Iterable[str], places: Mapping[str, int]) -> _Part:
        pyarrow = require("pyarrow", "CSV files")
        rows, columns = [self._fields(line) for line in lines], {}
        for name, place in places.items():
            texts = pyarrow.array([row[place] for row in rows], pyarrow.string())
            columns[name] = Column(texts, ANY, "text", self._notation)
        return _Part(columns, len(rows))

    def _fields(self, line: str) -> list[str]:
        # files that were joined have marks inside
        line = line.removesuffix("\n").replace(_MARK, "")
        if not line.isascii():  # some encodings give halves of characters, which Arrow refuses
            line = line.encode("utf-8", "replace").decode()
        fields, n = _fields_of(line, self.delimiter), len(self.names)
        return fields if len(fields) == n else [*fields, *[""] * n][:n]

    def _opened(self) -> io.TextIOWrapper:
        suffix = self.path.suffix.lower()
        # without newline=, all kinds of line ends become \n
        return io.TextIOWrapper(_OPENERS.get(suffix, _plain)(self.path), self._encoding, "replace")


def _fields_of(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; quoted fields may contain delimiters.

    Examples
    --------
    >>> _fields_of('"Doe, Ann",30', ",")
    ['Doe, Ann', '30']
    """
    if '"' not in line:
        return line.split(delimiter)
    if len(line) <= _USUAL_FIELD:
        return next(csv.reader([line], delimiter=delimiter))
    # the limit is one of the whole process, so it is restored
    before = csv.field_size_limit(max(len(line), _USUAL_FIELD))  # the whole line may be one field
    try:
        return next(csv.reader([line], delimiter=delimiter))
    finally:
        csv.field_size_limit(before)


def _plain(path: Path) -> Any:
    return open(path, "rb")


_OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


@contextmanager
def worded(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error into one line with the path and without content of the file."""
    try:
        yield
    # neither the file's fault nor with content of it
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        # from None: a traceback would show the original message, which may quote an entry
        raise _worded(path, error) from None


def reworded(path: str | os.PathLike[str], pieces: Iterable[Any]) -> Iterator[Any]:
    """Pass pieces on, with errors worded by `worded`."""
    with worded(path):
        yield from pieces


def _worded(path: str | os.PathLike[str], error: Exception) -> Exception:
    """Return one line for an exception of a reader."""
    text = str(error)
    if isinstance(error, ReadingError):
        return ReadingError(text if text.startswith(f"{path}: ") else f"{path}: {text}")
    if isinstance(error, UnicodeError):
        reason = "it is no text in the encoding that is declared (--encoding)"
    else:
        reason = getattr(error, "strerror", None) or f"it is damaged: {type(error).__name__}"
    return ReadingError(f"{path}: cannot be read ({reason})")
