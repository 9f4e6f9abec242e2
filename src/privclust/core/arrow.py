"""Columns of Arrow as rows of numbers: decided by the types of columns, never by entries.

Types of columns are public, entries are not. Columns of float32 and float16 alone give rows in
float32; if there are integers or float64 among them, rows are in float64, to which each entry is
rounded by itself. A null is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from privclust.core.printable import excerpt

if TYPE_CHECKING:
    import pyarrow as pa

TIMES = "; turn times into numbers, such as days"
_PANDAS_INDEX = "__index_level_"


def check_columns(schema: pa.Schema, columns: Sequence[str] | None) -> tuple[str, ...]:
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


def numeric_type(schema: pa.Schema, columns: Sequence[str]) -> np.dtype:
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


def rows_of(batch: pa.RecordBatch, columns: Sequence[str]) -> np.ndarray:
    """Return the rows of columns that hold numbers, shape (n_rows, n_columns), column-major."""
    rows = np.empty((len(columns), len(batch)), numeric_type(batch.schema, columns))
    for row, name in zip(rows, columns, strict=True):
        row[:] = batch[name].to_numpy(zero_copy_only=False)
    return rows.T


def entries_of(batch: pa.RecordBatch, columns: Sequence[str]) -> dict[str, np.ndarray]:
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
