"""Tables of Dask and Spark, added up by their workers; neither is imported here."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from privclust.core.packages import require
from privclust.records.arrow import GroupedRows, RowReader, batch_rows, unquoted
from privclust.records.errors import ReadingError

_ERROR = "error"  # in place of a state
State: TypeAlias = dict[str, np.ndarray]
"""Arrays of integers; the state of two parts is the sum of their states, entry by entry.

A missing array counts as 0.
"""

_FAN_IN = 16  # states that one task adds up


def added(states: Iterable[State]) -> State:
    """Return the sum of states, entry by entry."""
    result: State = {}
    for state in states:
        for name, array in state.items():
            if name in result:
                result[name] += array
            else:
                result[name] = array.copy()
    return result


def dask_total(frame: Any, state_of: Callable[..., Any], reading: RowReader) -> State:
    """Apply the function to each partition by a task, and add states up by a tree of tasks."""
    import dask

    reader = _dask_reader(frame, reading)
    shared = dask.delayed((state_of, reader))
    of_partition, sum_of = dask.delayed(_state_of_frame), dask.delayed(added)
    states = [of_partition(shared, part) for part in frame[list(reader.reads)].to_delayed()]
    while len(states) > 1:
        groups = (states[i : i + _FAN_IN] for i in range(0, len(states), _FAN_IN))
        states = [sum_of(group) for group in groups]
    return next(unquoted(state.compute() for state in states)) if states else state_of(iter(()))


def dask_parts(
    frame: Any, reading: RowReader
) -> Generator[tuple[RowReader, Iterator[Any]], None, None]:
    """Yield the reader and the pieces of each partition, which is computed when it is read."""
    reader = _dask_reader(frame, reading)
    parts = frame[list(reader.reads)].to_delayed()
    for part in unquoted(part.compute() for part in parts):
        yield reader, _pieces(part, reader)


def _dask_reader(frame: Any, reading: RowReader) -> RowReader:
    if not hasattr(frame, "to_delayed") or getattr(frame, "ndim", 0) != 2:
        raise ValueError(f"a table of Dask must be a data frame, got {type(frame).__name__}")
    return reading.for_schema(_schema_of_dask(frame.dtypes))


def _state_of_frame(shared: Any, frame: Any) -> State:
    """Return the state of a partition; our errors hold no entries, unlike those of the frame."""
    state_of, reader = shared
    try:
        return state_of(map(reader, _pieces(frame, reader)))
    except ValueError as error:
        raise ReadingError(str(error)) from None


def _pieces(frame: Any, reader: Any) -> Iterator[Any]:
    step = batch_rows(len(reader.reads))
    return (frame.iloc[start : start + step] for start in range(0, len(frame), step))


def _schema_of_dask(types: Any) -> Any:
    pyarrow = require("pyarrow", "tables")
    fields = []
    for name, dtype in types.items():
        kind = getattr(dtype, "pyarrow_dtype", None)
        plain = getattr(dtype, "numpy_dtype", dtype)
        if kind is None and getattr(plain, "kind", "O") in "iufmMb":
            kind = pyarrow.from_numpy_dtype(plain)
        fields.append((str(name), kind or pyarrow.string()))  # also categories and similar types
    return pyarrow.schema(fields)


def spark_total(frame: Any, state_of: Callable[..., Any], reading: RowReader) -> State:
    """Apply the function to each partition by an executor, which sends its state once.

    With groups, Spark collects the rows of each group, in bounded memory.
    """
    if not hasattr(frame, "mapInArrow"):
        raise ValueError(f"a table of Spark must be a data frame, got {type(frame).__name__}")
    reader = reading.for_schema(_schema_of_spark(frame.dtypes))
    quoted = ["`" + name.replace("`", "``") + "`" for name in reader.reads]
    plain = [f"column_{i}" for i in range(len(quoted))]  # mapInArrow fails for other names
    frame = frame.select(*quoted).toDF(*plain)
    if reader.groups is not None:
        frame = _with_sizes(frame, plain.pop(), reader)

    def states(batches: Any) -> Iterator[Any]:
        """Return the state of one partition, in one row."""
        import pyarrow

        content = io.BytesIO()
        try:
            state = state_of(_parts_of_spark(reader, batches))
        except ValueError as error:  # ours, without entries: passed on, unlike those of the frame
            state = {_ERROR: np.array(str(error))}
        np.savez(content, **state)
        packed = pyarrow.array([content.getvalue()], pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([packed], ["state"])

    result = frame.mapInArrow(states, "state binary")
    rows = next(unquoted(run() for run in [result.collect]))
    found = [dict(np.load(io.BytesIO(row["state"]), allow_pickle=False)) for row in rows]
    for error in (state[_ERROR] for state in found if _ERROR in state):
        raise ReadingError(str(error))
    return added([state_of(iter(())), *found])


def _with_sizes(frame: Any, label: Any, reader: RowReader) -> Any:
    """Replace persons by their number of rows (0 without an ID) and the row's place among them. One
    window computes both numbers, so that they refer to the same rows.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as of

    group = Window.partitionBy(label)
    frame = _with_keys(frame, label, reader)
    is_counted, is_nobody = of.col("is_counted"), of.col(label).isNull()
    size = of.sum(is_counted.cast("long")).over(group)
    places = of.row_number().over(group.orderBy(is_counted.desc()))
    return (
        frame.withColumn("size", of.when(is_nobody, 0).otherwise(size))
        .withColumn("place", of.when(is_nobody, 0).otherwise(places))
        .drop(label)
    )


def _with_keys(frame: Any, label: Any, reader: RowReader) -> Any:
    """Replace the entries by keys of persons, and add a column: whether a row counts."""
    from pyspark.sql.types import BooleanType, StringType, StructField, StructType

    def keyed(batches: Any) -> Iterator[Any]:
        """Yield each batch with keys in place of labels, and with the column ``is_counted``."""
        import pyarrow

        for batch in batches:
            persons, is_counted = reader.persons(batch.rename_columns(list(reader.reads)))
            batch = batch.set_column(
                batch.schema.names.index(label), label, pyarrow.array(persons, pyarrow.string())
            )
            yield batch.append_column("is_counted", pyarrow.array(is_counted))

    text = StructField(label, StringType(), True)
    fields = [text if field.name == label else field for field in frame.schema.fields]
    counted = StructField("is_counted", BooleanType(), True)
    return frame.mapInArrow(keyed, StructType([*fields, counted]))


def _parts_of_spark(reader: Any, batches: Any) -> Iterator[Any]:
    n = len(reader.columns)
    for batch in batches:
        rows = reader.rows(batch.select(list(range(n))).rename_columns(list(reader.columns)))
        if reader.groups is None:
            yield rows
            continue
        is_counted, sizes, places = (
            batch.column(name).to_numpy(zero_copy_only=False)
            for name in ("is_counted", "size", "place")
        )
        is_first = places == 1
        numbers = (int(np.sum(is_first & (sizes > 0))), int(np.sum(is_first & (sizes == 0))))
        yield GroupedRows(rows, np.where(is_counted, sizes, 0), *numbers)


def _schema_of_spark(types: Any) -> Any:
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
