"""Arrow columns as rows of numbers, read by the types of columns and never by their entries.

Types of columns are public, entries are not. If all columns are float32 or float16, rows are in
float32; otherwise they are in float64, to which each entry is rounded separately. A null is NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from privclust.core.printable import excerpt
from privclust.records.columns import (
    ANY,
    DURATION,
    NESTED,
    NUMBER,
    TIME,
    check_kind,
    column_of,
    kind_of_arrow,
)
from privclust.records.errors import ReadingError

_PANDAS_INDEX = "__index_level_"
_BATCH_VALUES = 1 << 20  # values in a thread's memory at a time, in addition to a row group


def check_columns(schema: Any, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the columns to read, all of them for None.

    Raises
    ------
    ReadingError
        If there are none, if one is missing or occurs twice, or if all are requested and one is an
        index written by pandas.
    """
    if columns is None:
        for name in schema.names:
            if name.startswith(_PANDAS_INDEX) or not name:
                raise ReadingError(
                    f"column {excerpt(name)!r} has no name, or is an index that pandas wrote; "
                    "write the frame with index=False, or name the columns to read"
                )
    names = tuple(schema.names if columns is None else columns)
    if not names:
        raise ReadingError("has no columns" if columns is None else "columns must be at least one")
    named, present = Counter(names), Counter(schema.names)
    for name in names:
        if named[name] > 1 or present[name] > 1:
            raise ReadingError(f"there are two columns {excerpt(name)!r}")
        if name not in present:
            known = excerpt(", ".join(schema.names))
            raise ReadingError(f"there is no column {excerpt(name)!r} among {known}")
    return names


def numeric_type(schema: Any, columns: Sequence[str]) -> np.dtype:
    """Return the type of rows of these columns, float32 or float64.

    Raises
    ------
    ReadingError
        If one of them contains something other than numbers or booleans.
    """
    from pyarrow import types

    kinds = [schema.field(name).type for name in columns]
    for name, kind in zip(columns, kinds, strict=True):
        of_arrow = kind_of_arrow(kind)
        # Arrow's texts are no numbers here, though check_kind would accept them: it gets NESTED
        if of_arrow not in (NUMBER, ANY):  # nulls, or fields of a text
            check_kind(of_arrow if of_arrow in (TIME, DURATION) else NESTED, kind, name, "numbers")
    is_short = all(types.is_float32(kind) or types.is_float16(kind) for kind in kinds)
    return np.dtype(np.float32 if is_short else np.float64)


class GroupedRows(NamedTuple):
    """Rows of groups, such as persons, of a part of a table.

    Attributes
    ----------
    rows : ndarray of shape (n, n_features)
    sizes : ndarray of shape (n,), int64
        Number of rows of its group in the whole table; 0 for a row that does not count.
    n_new : int
        Number of groups counted here; each group is counted in one part only.
    n_left_out : int
        Number of groups counted here without any row that counts.
    """

    rows: np.ndarray
    sizes: np.ndarray
    n_new: int
    n_left_out: int


@dataclass(frozen=True)
class RowReader:
    """Rows of numbers of a part of a table; `for_schema` returns the reader of a table's columns.

    Parameters
    ----------
    columns : sequence of str or None
        The columns to read, in the order of the features; None: all except that of `groups`.
    encoder : privclust.preprocessing.TableEncoder or None
        Converts the columns to rows, each separately.
    groups : str or None
        Name of the column that identifies the person of each row.
    sizes : callable or None
        Called with the persons of rows; returns the fields of `GroupedRows` after `rows`.
    dtype : numpy.dtype or None
        Type of the rows, without an encoder of tables.
    """

    columns: Sequence[str] | None
    encoder: Any = None
    groups: str | None = None
    sizes: Callable[[list[str | None]], tuple[np.ndarray, int, int]] | None = None
    dtype: np.dtype | None = None

    def for_schema(self, schema: Any) -> RowReader:
        """Return the reader of a table; a ReadingError if a column or its type does not fit."""
        columns = self.columns
        if self.groups is not None:
            check_columns(schema, [self.groups])
            if columns is None:
                columns = [name for name in schema.names if name != self.groups]
                if not columns:
                    raise ReadingError(f"has no columns but {excerpt(self.groups)!r}")
        columns = check_columns(schema, columns)
        dtype = None if self.encoder is not None else numeric_type(schema, columns)
        if self.groups is not None:
            kind = schema.field(self.groups).type
            check_kind(kind_of_arrow(kind), kind, self.groups, "persons")
        return replace(self, columns=columns, dtype=dtype)

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of all columns that are read."""
        return (*self.columns, *(() if self.groups is None else (self.groups,)))

    def __call__(self, part: Any) -> np.ndarray | GroupedRows:
        """Return the rows (n, n_features) of a part, with ``len(part)`` and ``part[name]``."""
        rows = self.rows(part)
        if self.groups is None or self.sizes is None:
            return rows
        persons, is_counted = self.persons(part, rows)
        counted = [who if is_one else None for who, is_one in zip(persons, is_counted, strict=True)]
        return GroupedRows(rows, *self.sizes(counted))

    def persons(self, part: Any, rows: np.ndarray) -> tuple[list[str | None], np.ndarray]:
        """Return the person of each row (None without an ID), and whether the row counts, (n,)."""
        return column_of(part[self.groups]).keys(), ~np.isnan(rows).any(axis=1)

    def rows(self, part: Any) -> np.ndarray:
        """Return the rows (n, n_features) of a part, without the sizes of groups."""
        if self.encoder is not None:
            return self.encoder.transform(part)
        # one row of memory for each column, which is written at once
        rows = np.empty((len(self.columns), len(part)), self.dtype)
        for row, name in zip(rows, self.columns, strict=True):
            row[:] = column_of(part[name]).numbers()
        return rows.T


def batch_rows(n_columns: int) -> int:
    """Return the number of rows of a batch."""
    return max(1, _BATCH_VALUES // n_columns)


def unquoted(stream: Any) -> Iterator[Any]:
    """Pass on the items of a stream; of errors that are not ours only the type."""
    try:
        yield from stream
    except (MemoryError, ReadingError):
        raise
    except Exception as error:
        raise ValueError(
            f"the table broke off ({type(error).__name__}): run its query by itself to see why"
        ) from None
