"""Columns of Arrow as rows of numbers: decided by the types of columns, never by entries.

Types of columns are public, entries are not. Columns of float32 and float16 alone give rows in
float32; if there are integers or float64 among them, rows are in float64, to which each entry is
rounded by itself. A null is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from privclust.core.printable import excerpt
from privclust.records.columns import (
    DURATION,
    NESTED,
    NUMBER,
    TIME,
    check_kind,
    column_of,
    kind_of_arrow,
)

_PANDAS_INDEX = "__index_level_"
_BATCH_VALUES = 1 << 20  # of a table that a thread has in memory at a time, beside a row group's


def check_columns(schema: Any, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the columns to read, all of them for None.

    Raises
    ------
    ValueError
        If there are none, if one is not there or there twice, or if among all there is an index
        that pandas wrote.
    """
    if columns is None:
        for name in schema.names:
            if name.startswith(_PANDAS_INDEX):
                raise ValueError(
                    f"column {excerpt(name)!r} is an index that pandas wrote; write the frame with "
                    "index=False, or name the columns to read"
                )
    names = tuple(schema.names if columns is None else columns)
    if not names:
        raise ValueError("has no columns" if columns is None else "columns must be at least one")
    for name in names:
        if names.count(name) > 1 or schema.names.count(name) > 1:
            raise ValueError(f"there are two columns {excerpt(name)!r}")
        if name not in schema.names:
            known = excerpt(", ".join(schema.names))
            raise ValueError(f"there is no column {excerpt(name)!r} among {known}")
    return names


def numeric_type(schema: Any, columns: Sequence[str]) -> np.dtype:
    """Return the type that rows of these columns are computed in, float32 or float64.

    Raises
    ------
    ReadingError
        If one of them holds something other than numbers or truth values.
    """
    from pyarrow import types

    kinds = [schema.field(name).type for name in columns]
    for name, kind in zip(columns, kinds, strict=True):
        of_arrow = kind_of_arrow(kind)
        if of_arrow != NUMBER:
            check_kind(of_arrow if of_arrow in (TIME, DURATION) else NESTED, kind, name, "numbers")
    is_short = all(types.is_float32(kind) or types.is_float16(kind) for kind in kinds)
    return np.dtype(np.float32 if is_short else np.float64)


def rows_of(part: Any, columns: Sequence[str], dtype: np.dtype) -> np.ndarray:
    """Return the rows of columns that hold numbers, shape (n_rows, n_columns), column-major."""
    rows = np.empty((len(columns), len(part)), dtype)
    for row, name in zip(rows, columns, strict=True):
        row[:] = column_of(part[name]).numbers()
    return rows.T


class GroupedRows(NamedTuple):
    """Rows of groups, such as persons, of a part of a table.

    Attributes
    ----------
    rows : ndarray of shape (n, n_features)
    sizes : ndarray of shape (n,), int64
        How many rows the group of each has in the whole table; 0 for a row of nobody.
    n_new : int
        How many groups are counted here: each once among all parts.
    """

    rows: np.ndarray
    sizes: np.ndarray
    n_new: int


@dataclass(frozen=True)
class RowReader:
    """Rows of numbers of a part of a table.

    Parameters
    ----------
    columns : tuple of str
        Those that are read, in the order of the features.
    encoder : object or None
        What makes rows of what was read, each by itself, by ``encoder.transform``: of a table, if
        its attribute `columns` is a mapping, as a `TableEncoder`'s is, otherwise of an array.
    dtype : numpy.dtype or None
        Of frames of pandas, whose own types depend on entries; None for batches of Arrow.
    groups : str or None
        Name of the column that says whose each row is.
    sizes : callable or None
        Of labels; returns how many rows each has, and how many labels are counted with these.
    """

    columns: tuple[str, ...]
    encoder: Any = None
    dtype: np.dtype | None = None
    groups: str | None = None
    sizes: Callable[[list[str | None]], tuple[np.ndarray, int]] | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of all columns that are read."""
        return self.columns if self.groups is None else (*self.columns, self.groups)

    def __call__(self, part: Any) -> np.ndarray | GroupedRows:
        """Return the rows (n, n_features) of a batch of Arrow, or of a frame of pandas."""
        if self.groups is None or self.sizes is None:
            return self.rows(part)
        return GroupedRows(self.rows(part), *self.sizes(persons_of(part, self.groups)))

    def rows(self, part: Any) -> np.ndarray:
        """Return the rows alone."""
        if takes_tables(self.encoder):
            rows = self.encoder.transform(part)
        else:
            dtype = numeric_type(part.schema, self.columns) if self.dtype is None else self.dtype
            rows = rows_of(part, self.columns, dtype)
            if self.encoder is not None:
                rows = self.encoder.transform(rows)
        rows = np.asarray(rows)
        if rows.ndim != 2 or len(rows) != len(part):
            raise ValueError(
                f"an encoder must give a row for each row: of {len(part)} it made {rows.shape}"
            )
        return rows


def persons_of(part: Any, name: str) -> list[str | None]:
    """Return the person of each row of a batch of Arrow or a frame of pandas; None for nobody."""
    return column_of(part[name]).keys()


def check_person(schema: Any, name: str) -> None:
    """Raise a ReadingError if a column of a schema is of a type that names no persons."""
    kind = schema.field(name).type
    check_kind(kind_of_arrow(kind), kind, name, "persons")


def takes_tables(encoder: object) -> bool:
    """Whether an encoder names the columns that it reads."""
    return isinstance(getattr(encoder, "columns", None), Mapping)


@dataclass(frozen=True)
class LabelReader:
    """Whose the rows of a part of a table are, as text.

    Parameters
    ----------
    groups : str
        Name of the column that says so.
    """

    groups: str

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of all columns that are read."""
        return (self.groups,)

    def __call__(self, part: Any) -> list[str | None]:
        """Return the persons of a batch of Arrow, or of a frame of pandas."""
        return persons_of(part, self.groups)


@dataclass(frozen=True)
class Reading:
    """What is to be read of tables, before their columns are known.

    Parameters
    ----------
    columns : sequence of str or None
        None: all, but for that of `groups`.
    encoder, groups, sizes : see `RowReader`
    """

    columns: Sequence[str] | None
    encoder: Any = None
    groups: str | None = None
    sizes: Callable[[list[str | None]], tuple[np.ndarray, int]] | None = None

    def names(self, schema: Any) -> tuple[str, ...]:
        """Return the columns that are features; a ValueError if one is not there."""
        names = check_columns(schema, self.columns)
        if self.groups is None:
            return names
        check_columns(schema, [self.groups])
        if self.columns is None:
            names = tuple(name for name in names if name != self.groups)
        if not names:
            raise ValueError(f"has no columns but {excerpt(self.groups)!r}")
        return names

    def reads(self, schema: Any) -> tuple[str, ...]:
        """Return all columns that are read."""
        return RowReader(self.names(schema), groups=self.groups).reads

    def reader(self, schema: Any) -> RowReader:
        """Return the reader of rows of a schema; a ValueError if its types do not fit."""
        names = self.names(schema)
        if not takes_tables(self.encoder):
            numeric_type(schema, names)
        if self.groups is not None:
            check_person(schema, self.groups)
        return RowReader(names, self.encoder, None, self.groups, self.sizes)


@dataclass(frozen=True)
class LabelReading:
    """A `Reading` of labels alone."""

    groups: str

    def reads(self, schema: Any) -> tuple[str, ...]:
        """Return the one column."""
        return check_columns(schema, [self.groups])

    def reader(self, schema: Any) -> LabelReader:
        """Return the reader of labels; a ValueError if their type does not fit."""
        self.reads(schema)
        check_person(schema, self.groups)
        return LabelReader(self.groups)


def batch_rows(n_columns: int) -> int:
    """Rows of a batch."""
    return max(1, _BATCH_VALUES // n_columns)


def is_of(source: object, package: str) -> bool:
    """Whether an object's class, or a parent of it, is of a package."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(source).__mro__)
