"""Columns of a table in a file, by their names; each row by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from privclust.core.files import NO_SUCH_FILE, why_unreadable
from privclust.core.packages import require
from privclust.records.arrow import check_columns
from privclust.records.columns import TEXT, Column, check_kind, column_of, kind_of_arrow
from privclust.records.csv_lines import fields_of, lines_of
from privclust.records.errors import ReadingError
from privclust.records.files import columnar, delimiter_of, kind_of_file, known_suffixes
from privclust.records.notation import Notation

_ROWS = 1 << 16  # read at once


class Table:
    """A table in a text, Parquet or Arrow file, read by columns that are asked for.

    Parameters
    ----------
    path : path
        ``.parquet``, ``.arrow``, ``.feather``, or ``.csv``, ``.tsv``, ``.txt`` with a header, also
        compressed (``.csv.gz``).
    delimiter : str or None
        Between the fields of a text; None for a tab in ``.tsv``, else a comma.

    encoding : str
        Of a text; what it does not hold is replaced, character by character.
    notation : Notation or None
        Of numbers and dates in a text; None for points in numbers and ISO 8601.

    Attributes
    ----------
    names : tuple of str
        Of all columns.

    Raises
    ------
    ValueError
        If it cannot be read; no message holds an entry of the table.
    FileNotFoundError
        If there is no such file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        delimiter: str | None = None,
        *,
        encoding: str = "utf-8",
        notation: Notation | None = None,
    ) -> None:
        self._encoding, self._notation = encoding, notation or Notation()
        self.path, self._delimiter = Path(path), delimiter_of(path, delimiter)
        kind = kind_of_file(path)
        self._is_text = kind == "text"
        if kind not in ("text", "parquet", "arrow"):
            known = known_suffixes("text", "parquet", "arrow")
            raise ReadingError(f"{path}: a table must be a file {known}, such as .csv.gz too")
        if reason := why_unreadable(path):
            error = FileNotFoundError if reason == NO_SUCH_FILE else ReadingError
            raise error(f"{path}: {reason}")
        self.names = tuple(self._read(self._header))

    def columns(self, names: Iterable[str]) -> Iterator[dict[str, Column]]:
        """Yield parts of the table, of so many rows each, by the names of columns.

        Of a CSV file every line below the first is a row, and its fields are text; None where there
        is none. Of Parquet they have the file's own types.

        Raises
        ------
        ValueError
            If the table lacks a column, or is damaged.
        """
        names = list(dict.fromkeys(names))
        self._check_names(names)
        parts = (self._csv_parts if self._is_text else self._columnar_parts)(names)
        while (part := self._read(lambda: next(parts, None))) is not None:
            yield part

    def check_kind(self, name: str, kind: str) -> None:
        """Raise a ValueError if a column's type holds no ``"numbers"``, ``"dates"``, ...

        Of a CSV file all is text, and nothing is said.
        """
        self._check_names([name])
        if not self._is_text:
            try:
                with columnar(self.path) as file:
                    of_column = file.schema.field(name).type
                    check_kind(kind_of_arrow(of_column), of_column, name, kind)
            except ValueError as error:
                raise ReadingError(f"{self.path}: {error}") from None

    def _check_names(self, names: list[str]) -> None:
        """Raise a ValueError for a column that is not there, or there twice."""
        if not self._is_text:
            try:
                check_columns(self, names)
            except ValueError as error:
                raise ReadingError(f"{self.path}: {error}") from None
        for name in names:
            if self.names.count(name) != 1:  # others are not named: they may be a record's fields
                which = "has two columns" if name in self.names else "has no column"
                raise ReadingError(
                    f"{self.path}: {which} {name!r}; its first line must be a header, with "
                    f"{self._delimiter!r} between names{self._other_delimiter()} (--delimiter)"
                )

    def _other_delimiter(self) -> str:
        """Say which other delimiter a header of one name has, if any."""
        if len(self.names) == 1:
            for character, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
                if character in self.names[0]:
                    return f"; {name} are seen there"
        return ""

    def _header(self) -> list[str]:
        """Read the names."""
        if not self._is_text:
            with columnar(self.path) as file:
                return list(file.schema.names)
        pd = require("pandas", "CSV files")
        how = {"sep": self._delimiter, "header": None, "nrows": 1, "keep_default_na": False}
        first = pd.read_csv(self.path, dtype=str, encoding=self._encoding, **how)
        return [name.strip() for name in first.iloc[0]]

    def _columnar_parts(self, names: list[str]) -> Iterator[dict[str, Column]]:
        """Read batches of rows, of these columns alone."""
        with columnar(self.path) as file:
            for batch in file.batches(_ROWS, names):
                yield {name: column_of(batch[name]) for name in names}

    def _csv_parts(self, names: list[str]) -> Iterator[dict[str, Column]]:
        """Split lines, each by itself."""
        places = [self.names.index(name) for name in names]
        for lines in lines_of(self.path, _ROWS, self._encoding):
            rows = [fields_of(line, self._delimiter) for line in lines]
            yield {
                name: Column(
                    [row[at] if at < len(row) else None for row in rows],
                    TEXT,
                    "text",
                    self._notation,
                )
                for name, at in zip(names, places, strict=True)
            }

    def _read(self, read: Callable[[], Any]) -> Any:
        """Return what is read, or raise an error that holds nothing of the table."""
        try:
            return read()
        except (MemoryError, ImportError, KeyboardInterrupt):
            raise
        except Exception as error:
            reason = getattr(error, "strerror", None)
            if type(error).__name__ == "EmptyDataError":
                reason = "it is empty"
            if isinstance(error, UnicodeError):
                reason = f"its header is no text in {self._encoding} (--encoding)"
            reason = reason or f"it is damaged: {type(error).__name__}"
            raise ReadingError(f"{self.path}: cannot be read ({reason})") from None
