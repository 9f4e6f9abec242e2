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
from privclust.records.labels import check_label, plain_text

TIMES = "; turn times into numbers, such as days"
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
    ValueError
        If one of them holds something other than integers or floats.
    """
    from pyarrow import types

    kinds = [schema.field(name).type for name in columns]
    for name, kind in zip(columns, kinds, strict=True):
        if not (types.is_integer(kind) or types.is_floating(kind)):
            hint = TIMES if types.is_temporal(kind) else ""
            hint = "; cast it to a double" if types.is_decimal(kind) else hint
            raise ValueError(f"column {excerpt(name)!r} holds {excerpt(kind)}, not numbers{hint}")
    is_short = all(types.is_float32(kind) or types.is_float16(kind) for kind in kinds)
    return np.dtype(np.float32 if is_short else np.float64)


def check_entries(schema: Any, name: str, kind: str) -> None:
    """Refuse a column whose type can hold no entries of a kind, which would all count as missing.

    Kinds are ``"numbers"``, ``"dates"`` and ``"categories"``. Types of columns are public, and text
    may be of any kind.

    Raises
    ------
    ValueError
        If it is of another type.
    """
    from pyarrow import types

    of_column = schema.field(name).type
    if types.is_dictionary(of_column):
        of_column = of_column.value_type
    if types.is_nested(of_column) or (kind == "numbers" and types.is_temporal(of_column)):
        is_other = True
    else:
        is_text = types.is_string(of_column) or types.is_large_string(of_column)
        is_day = types.is_date(of_column) or types.is_timestamp(of_column)
        is_other = kind == "dates" and not (is_text or is_day)
    if is_other:
        raise ValueError(f"column {excerpt(name)!r} holds {excerpt(of_column)}, not {kind}")


def rows_of(batch: Any, columns: Sequence[str]) -> np.ndarray:
    """Return the rows of columns that hold numbers, shape (n_rows, n_columns), column-major."""
    rows = np.empty((len(columns), len(batch)), numeric_type(batch.schema, columns))
    for row, name in zip(rows, columns, strict=True):
        row[:] = batch[name].to_numpy(zero_copy_only=False)
    return rows.T


def entries_of(batch: Any, columns: Sequence[str]) -> dict[str, np.ndarray]:
    """Return columns of any types as arrays, shape (n_rows,) each, for an encoder of tables.

    Integers with nulls are Python's: as floats, large ones would be others' by a null elsewhere.
    """
    from pyarrow import types

    arrays = {}
    for name in columns:
        array = batch[name]
        if types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if types.is_integer(array.type) and array.null_count:
            arrays[name] = np.array(array.to_pylist(), dtype=object)
        else:
            arrays[name] = array.to_numpy(zero_copy_only=False)
    return arrays


def labels_of(part: Any, name: str) -> tuple[np.ndarray, bool]:
    """Return whose the rows of a batch of Arrow or a frame of pandas are, and if some are no one's.

    As text, empty where it is missing: rows of nobody are those of one.

    Raises
    ------
    ValueError
        If a frame holds something other than text or whole numbers.
    """
    column = part[name]
    if not is_of(part, "pyarrow"):
        column = _arrow_labels(column, name)
    return plain_text(column), column.null_count > 0


def _arrow_labels(series: Any, name: str) -> Any:
    """Return a column of a frame of pandas, whose types may differ from partition to partition."""
    import pyarrow

    other = f"column {excerpt(name)!r} holds something other than text or whole numbers"
    if getattr(series.dtype, "kind", "O") == "f":  # large numbers would be others'
        raise ValueError(f"{other} in one partition: write missing ones as a type that has them")
    try:
        array = pyarrow.array(series.astype(object), from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError):  # whose message may hold an entry
        raise ValueError(f"{other} in one partition") from None
    if not pyarrow.types.is_null(array.type):
        check_label(pyarrow.field(name, array.type))
    return array


class GroupedRows(NamedTuple):
    """Rows of groups, such as persons, of a part of a table.

    Attributes
    ----------
    rows : ndarray of shape (n, n_features)
    sizes : ndarray of shape (n,), int64
        How many rows the group of each has in the whole table.
    n_new : int
        How many groups are counted here: each once among all parts.
    is_missing : bool
        Whether it is missing whose one of the rows is.
    """

    rows: np.ndarray
    sizes: np.ndarray
    n_new: int
    is_missing: bool


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
    sizes: Callable[[np.ndarray], tuple[np.ndarray, int]] | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of all columns that are read."""
        return self.columns if self.groups is None else (*self.columns, self.groups)

    def __call__(self, part: Any) -> np.ndarray | GroupedRows:
        """Return the rows (n, n_features) of a batch of Arrow, or of a frame of pandas."""
        if self.groups is None or self.sizes is None:
            return self.rows(part)
        labels, is_missing = labels_of(part, self.groups)
        return GroupedRows(self.rows(part), *self.sizes(labels), is_missing)

    def rows(self, part: Any) -> np.ndarray:
        """Return the rows alone."""
        if takes_tables(self.encoder):
            is_batch = is_of(part, "pyarrow")
            table = entries_of(part, self.columns) if is_batch else part
            rows = self.encoder.transform(table)
        else:
            rows = self._numbers(part)
            if self.encoder is not None:
                rows = self.encoder.transform(rows)
        rows = np.asarray(rows)
        if rows.ndim != 2 or len(rows) != len(part):
            raise ValueError(
                f"an encoder must give a row for each row: of {len(part)} it made {rows.shape}"
            )
        return rows

    def _numbers(self, part: Any) -> np.ndarray:
        """Return numbers as they are."""
        if self.dtype is None:
            return rows_of(part, self.columns)
        rows = np.empty((len(self.columns), len(part)), self.dtype)
        for row, name in zip(rows, self.columns, strict=True):
            try:
                row[:] = part[name].to_numpy(dtype=self.dtype, na_value=np.nan)
            except (TypeError, ValueError):  # whose message may hold an entry
                raise ValueError(
                    f"column {excerpt(name)!r} holds something other than numbers in one partition"
                ) from None
        return rows.T


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

    def __call__(self, part: Any) -> np.ndarray:
        """Return the labels of a batch of Arrow, or of a frame of pandas."""
        return labels_of(part, self.groups)[0]


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
    sizes: Callable[[np.ndarray], tuple[np.ndarray, int]] | None = None

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
            check_label(schema.field(self.groups))
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
        check_label(schema.field(self.groups))
        return LabelReader(self.groups)


def batch_rows(n_columns: int) -> int:
    """Rows of a batch."""
    return max(1, _BATCH_VALUES // n_columns)


def is_of(source: object, package: str) -> bool:
    """Whether an object's class, or a parent of it, is of a package."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(source).__mro__)
