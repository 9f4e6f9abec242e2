"""Tables of Dask and of Spark, added up where their partitions are; neither is imported here."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from privclust.core.arrow import batch_rows, check_columns, numeric_type, reader_of, takes_tables
from privclust.core.packages import require

State: TypeAlias = dict[str, np.ndarray]
"""Arrays of integers of which those of two parts, added entry by entry, are those of both."""

_FAN_IN = 16  # states that are added at a time


def added(states: Iterable[State]) -> State:
    """Return the sum of states, at least one, entry by entry."""
    states = iter(states)
    result = {name: array.copy() for name, array in next(states).items()}
    for state in states:
        for name, array in state.items():
            result[name] += array
    return result


def dask_total(
    frame: Any, state_of: Callable, columns: Sequence[str] | None, encoder: Any
) -> State:
    """Apply the function to each partition by a task, and add states up by a tree of tasks."""
    import dask

    if not hasattr(frame, "to_delayed") or getattr(frame, "ndim", 0) != 2:
        raise ValueError(f"a table of Dask must be a data frame, got {type(frame).__name__}")
    schema = _schema_of_dask(frame.dtypes)
    names = check_columns(schema, columns)
    reader = reader_of(schema, names, encoder)
    if not takes_tables(encoder):
        reader = replace(reader, dtype=numeric_type(schema, names))
    shared = dask.delayed((state_of, reader))
    of_partition, sum_of = dask.delayed(_state_of_frame), dask.delayed(added)
    states = [of_partition(shared, part) for part in frame[list(names)].to_delayed()]
    while len(states) > 1:
        groups = (states[i : i + _FAN_IN] for i in range(0, len(states), _FAN_IN))
        states = [sum_of(group) for group in groups]
    return states[0].compute() if states else state_of(iter(()))


def _state_of_frame(shared, frame) -> State:
    """Return the state of a frame of pandas."""
    state_of, reader = shared
    step = batch_rows(len(reader.columns))
    pieces = (frame.iloc[start : start + step] for start in range(0, len(frame), step))
    return state_of(map(reader, pieces))


def _schema_of_dask(types):
    """Return the types that are declared of the columns of a Dask frame."""
    pyarrow = require("pyarrow", "tables")
    fields = []
    for name, dtype in types.items():
        kind = getattr(dtype, "pyarrow_dtype", None)
        plain = getattr(dtype, "numpy_dtype", dtype)
        if kind is None and getattr(plain, "kind", "O") in "iufmMb":
            kind = pyarrow.from_numpy_dtype(plain)
        fields.append((str(name), kind or pyarrow.string()))  # categories and the like too
    return pyarrow.schema(fields)


def spark_total(
    frame: Any, state_of: Callable, columns: Sequence[str] | None, encoder: Any
) -> State:
    """Apply the function to each partition by an executor, which sends its state once."""
    if not hasattr(frame, "mapInArrow"):
        raise ValueError(f"a table of Spark must be a data frame, got {type(frame).__name__}")
    schema = _schema_of_spark(frame.dtypes)
    names = check_columns(schema, columns)
    reader = reader_of(schema, names, encoder)

    def states(batches):
        """Return the state of one partition, in one row."""
        import pyarrow

        content = io.BytesIO()
        named = (batch.rename_columns(list(names)) for batch in batches)
        np.savez(content, **state_of(map(reader, named)))
        packed = pyarrow.array([content.getvalue()], pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([packed], ["state"])

    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    plain = [f"column_{i}" for i in range(len(names))]  # mapInArrow cannot bear others
    rows = frame.select(*quoted).toDF(*plain).mapInArrow(states, "state binary").collect()
    unpacked = (np.load(io.BytesIO(row["state"]), allow_pickle=False) for row in rows)
    return added(itertools.chain([state_of(iter(()))], map(dict, unpacked)))


def _schema_of_spark(types):
    """Return the types of the columns of a Spark frame, in numbers alone to the letter."""
    pyarrow = require("pyarrow", "tables")
    numbers = {
        "tinyint": pyarrow.int8(),
        "smallint": pyarrow.int16(),
        "int": pyarrow.int32(),
        "bigint": pyarrow.int64(),
        "float": pyarrow.float32(),
        "double": pyarrow.float64(),
        "boolean": pyarrow.bool_(),
        "date": pyarrow.date32(),
        "timestamp": pyarrow.timestamp("us", "UTC"),
        "timestamp_ntz": pyarrow.timestamp("us"),
        "decimal": pyarrow.decimal128(38),
    }
    fields = [(name, numbers.get(kind.partition("(")[0], pyarrow.string())) for name, kind in types]
    return pyarrow.schema(fields)
