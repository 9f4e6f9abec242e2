"""Columns of a table in a file, by their names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privclust.core.files import NO_SUCH_FILE, why_unreadable
from privclust.core.packages import require
from privclust.core.printable import excerpt

_ROWS = 1 << 17  # read at once
_PARQUET = (".parquet", ".pq")
_CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip", ".csv.zst")


class Table:
    """A table in a CSV or Parquet file, read by columns that are asked for.

    Parameters
    ----------
    path : path
        ``.parquet``, ``.pq``, or ``.csv`` with a header, also compressed (``.csv.gz``).
    delimiter : str or None
        Between the fields of a CSV file; None for a comma.

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

    def __init__(self, path: str | os.PathLike[str], delimiter: str | None = None) -> None:
        self.path, self._delimiter = Path(path), delimiter or ","
        name = self.path.name.lower()
        self._is_parquet = name.endswith(_PARQUET)
        if not self._is_parquet and not name.endswith(_CSV):
            raise ValueError(f"{path}: a table must be a file {', '.join((*_PARQUET, *_CSV))}")
        if reason := why_unreadable(path):
            kind = FileNotFoundError if reason == NO_SUCH_FILE else ValueError
            raise kind(f"{path}: {reason}")
        self.names = tuple(self._read(self._header))

    def columns(self, names: Iterable[str]) -> Iterator[dict[str, np.ndarray]]:
        """Yield parts of the table, of so many rows each, as arrays by the names of columns.

        Fields of a CSV file are text; those that are missing are NaN. Of Parquet they have the
        file's own types.

        Raises
        ------
        ValueError
            If the table lacks a column, or is damaged.
        """
        names = list(dict.fromkeys(names))
        self._check_names(names)
        parts = (self._parquet_parts if self._is_parquet else self._csv_parts)(names)
        while (part := self._read(lambda: next(parts, None))) is not None:
            yield part

    def _check_names(self, names: Sequence[str]) -> None:
        """Raise a ValueError for a column that is not there, or there twice."""
        for name in names:
            if self.names.count(name) != 1:
                has = excerpt(", ".join(self.names))
                which = "has two columns" if name in self.names else "has no column"
                raise ValueError(f"{self.path}: {which} {name!r}; its columns are {has}")

    def _header(self) -> list[str]:
        """Read the names."""
        if self._is_parquet:
            return self._parquet().schema_arrow.names
        pd = require("pandas", "CSV files")
        first = pd.read_csv(
            self.path, sep=self._delimiter, header=None, nrows=1, dtype=str, keep_default_na=False
        )
        return list(first.iloc[0])

    def _parquet(self):
        """Open the file."""
        parquet = require("pyarrow.parquet", "Parquet files")
        return parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20)

    def _parquet_parts(self, names: list[str]) -> Iterator[dict[str, np.ndarray]]:
        """Read batches of rows, of these columns alone."""
        for batch in self._parquet().iter_batches(batch_size=_ROWS, columns=names):
            frame = batch.to_pandas()
            yield {name: np.asarray(frame[name]) for name in names}

    def _csv_parts(self, names: list[str]) -> Iterator[dict[str, np.ndarray]]:
        """Parse lines, each field as text: what one is must not depend on others."""
        pd = require("pandas", "CSV files")
        how: dict[str, Any] = {"sep": self._delimiter, "dtype": str, "chunksize": _ROWS}
        how |= {"header": 0, "names": range(len(self.names)), "index_col": False}
        how |= {"keep_default_na": False, "na_values": [""]}  # "NA" may be a category's name
        places = {name: self.names.index(name) for name in names}
        with pd.read_csv(self.path, usecols=sorted(places.values()), **how) as frames:
            for frame in frames:
                yield {name: frame[place].to_numpy(object) for name, place in places.items()}

    def _read(self, read):
        """Return what is read, or raise an error that holds nothing of the table."""
        try:
            return read()
        except (MemoryError, ImportError, KeyboardInterrupt):
            raise
        except Exception as error:
            reason = _reason(error)
            raise ValueError(f"{self.path}: cannot be read ({reason})") from None


def _reason(error: Exception) -> str:
    """Say what is wrong in words that quote nothing."""
    if isinstance(error, UnicodeError):
        return "it is no UTF-8 text"
    if type(error).__name__ == "EmptyDataError":
        return "it is empty"
    return getattr(error, "strerror", None) or f"it is damaged: {type(error).__name__}"
