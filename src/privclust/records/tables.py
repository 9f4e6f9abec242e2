"""Sums over tables of any size, in files and streams of Arrow.

A table is cut into parts, a function is applied to the rows of each part, and the returned arrays
of integers are added up. No engine is imported.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from privclust.core.packages import require
from privclust.core.validation import check_integer
from privclust.records.arrow import RowReader, batch_rows, unquoted
from privclust.records.columns import package_of
from privclust.records.files import files_of
from privclust.records.labels import LabelCounts, SecondReading
from privclust.records.table_files import TextFile, open_table, reworded, worded

State: TypeAlias = dict[str, np.ndarray]
"""Arrays of integers; the state of two parts is the sum of their states, entry by entry."""

_TAKEN = (
    "a path of Parquet or CSV files (a file, a folder, a pattern, or a list), a data set of "
    "pyarrow, or what gives a stream of Arrow (DuckDB, Polars, pandas, Arrow); frames of Dask and "
    "Spark must be written to Parquet"
)


def total(
    source: Any,
    state_of: Callable[[Iterable[Any]], State],
    *,
    columns: Sequence[str] | None = None,
    encoder: Any = None,
    groups: str | None = None,
    n_threads: int = 1,
) -> State:
    """Apply a function to the rows of each part of a table, and return the sum of its states.

    Parameters
    ----------
    state_of : callable
        Takes an iterable of arrays of rows (n, n_features), or of `GroupedRows` with `groups`, and
        returns their state, even for no array.
    columns : sequence of str or None
        Only these are read. None: all, or those of an encoder.
    encoder : object or None
        See `privclust.records.arrow.RowReader`.
    groups : str or None
        The column of persons. Rows are read twice, first to count, and compared; this takes about
        30 bytes a group.
    source, n_threads
        As in `privclust.sketches.Sketch.of_table`.

    Raises
    ------
    ValueError
        If an argument is not as described or a file cannot be read; no message holds an entry.
    FileNotFoundError
        If there is no such file.
    """
    check_integer("n_threads", n_threads, minimum=1)
    columns = _checked_columns(columns, encoder, groups)
    reading = RowReader(columns, encoder, groups)
    if groups is not None:
        return _total_of_groups(source, state_of, reading, n_threads)
    return _total_of_threads(_parts(source, reading), state_of, n_threads)


def _checked_columns(columns: Any, encoder: Any, groups: Any) -> Any:
    """Return the columns to read, as given or of an encoder; None for all."""
    if encoder is not None:
        if not isinstance(getattr(encoder, "columns", None), Mapping):
            raise ValueError(f"encoder must be a TableEncoder, got {type(encoder).__name__}")
        if columns is not None:
            raise ValueError("columns are those of the encoder: leave them out")
        columns = [str(name) for name in encoder.columns]
    if isinstance(columns, str):
        raise ValueError("columns must be a sequence of names, got one text")
    if groups is not None and not isinstance(groups, str):
        raise ValueError(
            f"groups must be the name of a column of the table, got {type(groups).__name__}"
        )
    if columns is not None and groups in columns:
        raise ValueError(f"column {groups!r} identifies persons; it cannot be a feature as well")
    return columns


_Part: TypeAlias = tuple[RowReader, Any]  # the reader of a batch, and its columns


def _total_of_groups(source: Any, state_of: Any, reading: Any, n_threads: int) -> State:
    """Read twice: first only persons, to count their rows, then all."""
    if package_of(source) == "pyarrow" and hasattr(source, "read_next_batch"):
        raise ValueError(
            "an Arrow reader gives its rows once, but groups need two passes: give a table, a "
            "file, or another source that can be read again"
        )
    with contextlib.closing(_parts(source, reading)) as parts:
        counts = LabelCounts(reader.persons(part, reader.rows(part)) for reader, part in parts)
    second = SecondReading(counts)
    reading = replace(reading, sizes=second.sizes)
    state = _total_of_threads(_parts(source, reading), state_of, n_threads)
    second.check_all_seen()
    return state


def _parts(source: Any, reading: Any) -> Generator[_Part, None, None]:
    paths = list(source) if isinstance(source, list | tuple) else [source]
    if all(isinstance(path, str | os.PathLike) for path in paths):
        return _parts_of_files(paths, reading)
    pyarrow = require("pyarrow", "tables")
    if package_of(source) == "pyarrow" and hasattr(source, "scanner"):  # a data set, maybe remote
        reads = list(reading.for_schema(source.schema).reads)
        # more threads, or more batches read ahead, would fill the memory
        how = {"batch_size": batch_rows(len(reads)), "batch_readahead": 1, "fragment_readahead": 1}
        streams = [source.scanner(columns=reads, use_threads=False, **how).to_reader()]
    elif hasattr(source, "collect_batches"):  # a lazy frame of Polars
        # Only names are needed here. The types of each batch are checked when it is read.
        schema = pyarrow.schema([(name, pyarrow.null()) for name in source.collect_schema()])
        streams = source.select(reading.for_schema(schema).reads).collect_batches()
    elif hasattr(source, "__arrow_c_stream__"):
        streams = [source]
    else:
        raise ValueError(f"a table must be {_TAKEN}; got {type(source).__name__}")
    return _parts_of_streams(pyarrow, streams, reading)


def _parts_of_streams(pyarrow: Any, streams: Any, reading: Any) -> Generator[_Part, None, None]:
    """Return one slice of a batch each; errors of engines, with entries, are not shown."""
    for stream in unquoted(streams):
        try:
            batches = pyarrow.RecordBatchReader.from_stream(stream)
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise ValueError(
                f"the table gives no stream of Arrow ({type(error).__name__}): are there columns "
                "of mixed types?"
            ) from None
        with batches:  # a connection may allow one stream at a time
            reader = reading.for_schema(batches.schema)
            step = batch_rows(len(reader.reads))
            for batch in unquoted(batches):
                batch = batch.select(list(reader.reads))
                for start in range(0, len(batch), step):
                    yield reader, batch.slice(start, step)


def _parts_of_files(paths: Any, reading: Any) -> Generator[_Part, None, None]:
    """Yield parts of files; the columns of all are checked before a row is read."""
    for path in map(os.fspath, paths):
        if "://" in path:
            raise ValueError(f"{path}: give files elsewhere as a pyarrow.dataset.dataset(...)")
    files = [file for path in paths for file in files_of(path)]
    if not files:
        raise ValueError("the list of files is empty")
    if len(set(map(os.path.realpath, files))) < len(files):
        raise ValueError("a file is named twice: its rows would be protected half as well")
    for file in files:
        if not os.path.isfile(file):
            raise FileNotFoundError(f"{file}: there is no such file")
    tables, readers = [open_table(file) for file in files], []
    for table in tables:
        with worded(table.path):
            if isinstance(table, TextFile):
                table.check_header(None if reading.columns is None else reading.reads)
            readers.append(reading.for_schema(table.schema))
    for table, reader in zip(tables, readers, strict=True):
        names = list(dict.fromkeys(reader.reads))
        for part in reworded(table.path, table.batches(names)):
            yield reader, part


def _added(states: Iterable[State]) -> State:
    """Return the sum of states, entry by entry."""
    first, *others = states
    return {name: sum((other[name] for other in others), array) for name, array in first.items()}


def _total_of_threads(parts: Any, state_of: Any, n_threads: int) -> State:
    """Add up the states of parts, which threads take until none is left."""
    lock, stop = threading.Lock(), threading.Event()

    def rows_of_parts() -> Iterator[Any]:
        """Yield rows of parts that no other thread has."""
        while not stop.is_set():
            # two threads cannot advance one generator; parts are converted without the lock
            with lock:
                part = next(parts, None)
            if part is None:
                return
            reader, batch = part
            yield reader(batch)

    def state(_: int) -> Any:
        try:
            return state_of(rows_of_parts())
        except BaseException:
            # the other threads end at their next part
            stop.set()
            raise

    # an error leaves the generator unfinished, with its files open
    with contextlib.closing(parts):
        if n_threads == 1:
            return state(0)
        with ThreadPoolExecutor(n_threads) as executor:
            try:
                return _added(executor.map(state, range(n_threads)))
            finally:
                # leaving the executor waits for all threads, also at an interrupt
                stop.set()
