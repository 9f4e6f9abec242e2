"""Tables of any size, added up where they lie: Parquet files, streams of Arrow, Dask, Spark.

A table is cut into parts, a function is applied to the rows of each part, and what it returns,
arrays of integers, is added up. No engine is imported unless a table of it is given.
"""

from __future__ import annotations

import contextlib
import glob
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from privclust.core.arrow import (
    RowReader,
    batch_rows,
    check_columns,
    is_of,
    reader_of,
    takes_tables,
)
from privclust.core.engines import State, added, dask_total, spark_total
from privclust.core.packages import require
from privclust.core.printable import excerpt
from privclust.core.validation import check_integer

_BUFFER_BYTES = 1 << 20  # read of a file at a time
_PARQUET = (".parquet", ".pq")
_TAKEN = (
    "a path of Parquet files (a file, a folder, a pattern, or a list of files), a data set of "
    "pyarrow, what gives a stream of Arrow (DuckDB, Polars, pandas, Arrow), a Dask or a Spark frame"
)


def total(
    source: Any,
    state_of: Callable[[Iterable[np.ndarray]], State],
    *,
    columns: Sequence[str] | None = None,
    encoder: Any = None,
    row_filter: Any = None,
    n_threads: int = 1,
    progress: Callable[[int], object] | None = None,
) -> State:
    """Apply a function to the rows of each part of a table where it lies, and add up its states.

    Parameters
    ----------
    source : table
        - A str or path-like: a Parquet file, a folder of such, with those in its folders and
          without those whose names begin with ``.`` or ``_``, or a pattern such as
          ``"day-*.parquet"``; or a list of files. Row groups are shared by threads. Or a
          ``pyarrow.dataset.Dataset``, wherever its files are.
        - What has ``__arrow_c_stream__`` (a relation of DuckDB, a frame of Polars or pandas, a
          table or a reader of Arrow), or a Polars ``LazyFrame``, read in batches.
        - A Dask or a Spark frame: the function is applied to each partition by a worker, on which
          this package must be installed; states alone come here.
    state_of : callable
        Of an iterable of arrays of rows (n, n_features); returns their state, also of no array. It
        can be pickled.
    columns : sequence of str or None
        No others are read. None: all, or those of an encoder.
    encoder : object or None
        See `privclust.core.arrow.RowReader`.
    row_filter : pyarrow.compute.Expression or None
        Of Parquet files and data sets: rows that are read. Row groups whose statistics say that
        they have none are passed over.
    n_threads : int
        Of Parquet files and streams.
    progress : callable or None
        Of these: is told of numbers of rows as they are read, by one thread at a time.

    Returns
    -------
    dict of ndarray

    Raises
    ------
    ValueError
        If an argument is not as described or a file cannot be read; no message holds an entry.
    FileNotFoundError
        If there is no such file.
    """
    check_integer("n_threads", n_threads, minimum=1)
    if encoder is not None and not hasattr(encoder, "transform"):
        raise ValueError(f"encoder must have a method transform, got {type(encoder).__name__}")
    if takes_tables(encoder):
        if columns is not None:
            raise ValueError("columns are those of the encoder: leave them out")
        columns = [str(name) for name in encoder.columns]
    if isinstance(columns, str):
        raise ValueError("columns must be a sequence of names, got one text")
    distributed = is_of(source, "dask") or is_of(source, "pyspark")
    for name, value in (("row_filter", row_filter), ("progress", progress)):
        if value is not None and distributed:
            advice = "filter the frame itself" if name == "row_filter" else "the engine shows its"
            raise ValueError(f"{name} is not for frames of an engine: {advice}")
    if is_of(source, "dask"):
        return dask_total(source, state_of, columns, encoder)
    if is_of(source, "pyspark"):
        return spark_total(source, state_of, columns, encoder)
    parts = _parts(source, columns, encoder, row_filter)
    return _total_of_threads(parts, state_of, n_threads, progress)


def files_of(source: str | os.PathLike[str]) -> list[str]:
    """Return the Parquet files of a folder, the files of a pattern, or a path itself, sorted.

    Raises
    ------
    ValueError
        If a folder holds none, or a pattern names none.

    Examples
    --------
    >>> files_of("day.parquet")
    ['day.parquet']
    """
    path = os.fspath(source)
    if os.path.isdir(path):
        inside = (file.relative_to(path) for file in Path(path).rglob("*"))
        files = [
            os.path.join(path, file)
            for file in inside
            if file.suffix.lower() in _PARQUET and not any(part[0] in "._" for part in file.parts)
        ]
        what = "is a directory without Parquet files"
    elif glob.has_magic(path) and not os.path.exists(path):
        files, what = glob.glob(path, recursive=True), "no file is named so"
    else:
        return [path]
    if not files:
        raise ValueError(f"{path}: {what}")
    return sorted(files)


_Part: TypeAlias = tuple[RowReader, Iterator[Any]]  # of its batches


def _parts(source, columns, encoder, row_filter) -> Iterator[_Part]:
    """Return the parts of files or a stream."""
    paths = list(source) if isinstance(source, list | tuple) else [source]
    if all(isinstance(path, str | os.PathLike) for path in paths):
        return _parts_of_dataset(_dataset_of_files(paths), columns, encoder, row_filter)
    pyarrow = require("pyarrow", "tables")
    if is_of(source, "pyarrow") and hasattr(source, "get_fragments"):
        return _parts_of_dataset(source, columns, encoder, row_filter)
    if row_filter is not None:
        raise ValueError("row_filter is for Parquet files: filter the frame or the query itself")
    if hasattr(source, "collect_batches"):  # a lazy frame of Polars
        schema = pyarrow.schema([(name, pyarrow.null()) for name in source.collect_schema()])
        streams = source.select(check_columns(schema, columns)).collect_batches()
    elif hasattr(source, "__arrow_c_stream__"):
        streams = [source]
    else:
        raise ValueError(f"a table must be {_TAKEN}; got {type(source).__name__}")
    return _parts_of_streams(pyarrow, streams, columns, encoder)


def _parts_of_streams(pyarrow, streams, columns, encoder) -> Iterator[_Part]:
    """One slice of a batch each; what an engine says of an error may hold entries, and is not."""
    for stream in _unquoted(streams):
        try:
            reader = pyarrow.RecordBatchReader.from_stream(stream)
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise ValueError(
                f"the table gives no stream of Arrow ({type(error).__name__}): are there columns "
                "of mixed types?"
            ) from None
        names = check_columns(reader.schema, columns)
        rows = reader_of(reader.schema, names, encoder)
        for batch in _unquoted(reader):
            batch = batch.select(list(names))
            step = batch_rows(len(names))
            for start in range(0, len(batch), step):
                yield rows, iter([batch.slice(start, step)])


def _unquoted(stream) -> Iterator[Any]:
    """Pass on what comes; of an error the kind alone."""
    try:
        yield from stream
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(
            f"the table broke off ({type(error).__name__}): run its query by itself to see why"
        ) from None


def _dataset_of_files(paths):
    """Return the data set of paths; of a folder's folders named key=value, keys are columns."""
    dataset = require("pyarrow.dataset", "Parquet files")
    for path in map(os.fspath, paths):
        if "://" in path:
            raise ValueError(f"{path}: give files elsewhere as a pyarrow.dataset.dataset(...)")
    files = [file for path in paths for file in files_of(path)]
    if not files:
        raise ValueError("the list of files is empty")
    if len(set(map(os.path.realpath, files))) < len(files):
        raise ValueError("a file is named twice, whose rows would be hidden half as well")
    for file in files:
        if not os.path.isfile(file):
            raise FileNotFoundError(f"{file}: there is no such file")
    how = {}
    if len(paths) == 1 and os.path.isdir(paths[0]):
        how = {"partitioning": "hive", "partition_base_dir": os.fspath(paths[0])}
    with _named(files[0], quiet=False):
        return dataset.dataset(files, format="parquet", **how)


def _parts_of_dataset(data, columns, encoder, row_filter) -> Iterator[_Part]:
    """One row group each, by the types of its own file."""
    pyarrow = require("pyarrow", "Parquet files")
    dataset = require("pyarrow.dataset", "Parquet files")
    keys = _partition_keys(data)
    how = {"filter": row_filter, "use_threads": False, "batch_readahead": 1}
    buffered = dataset.ParquetFragmentScanOptions(
        use_buffered_stream=True, buffer_size=_BUFFER_BYTES, pre_buffer=False
    )
    with _named("the data set", quiet=row_filter is not None):
        fragments = list(data.get_fragments(filter=row_filter))
    for fragment in fragments:
        name = getattr(fragment, "path", "the data set")
        is_parquet = isinstance(fragment, dataset.ParquetFileFragment)
        quiet = row_filter is not None or not is_parquet
        with _named(name, quiet):
            own = fragment.physical_schema
            schema = pyarrow.schema([*own, *(key for key in keys if key.name not in own.names)])
            names = check_columns(schema, columns)
            rows = reader_of(schema, names, encoder)
            options = dict(how, schema=schema, columns=list(names))
            options["batch_size"] = batch_rows(len(names))
            pieces = [fragment]
            if is_parquet:
                pieces = fragment.split_by_row_group(filter=row_filter, schema=schema)
                options["fragment_scan_options"] = buffered
        for piece in pieces:
            yield rows, _batches(name, piece, options, quiet)


def _partition_keys(data):
    """Return the columns that folders named key=value are, of a data set of files."""
    partitioning = getattr(data, "partitioning", None)
    return () if partitioning is None else tuple(partitioning.schema)


def _batches(name, piece, options, quiet):
    """Read a part of a file."""
    with _named(name, quiet):
        yield from piece.to_batches(**options)


@contextlib.contextmanager
def _named(name, quiet):
    """Make an error one line with a file's name; of text and of filters it might quote entries."""
    try:
        yield
    except (ArithmeticError, LookupError, NotImplementedError, OSError, TypeError, ValueError) as e:
        reason = excerpt((str(e).strip() or type(e).__name__).splitlines()[0])
        if quiet and is_of(e, "pyarrow"):
            reason = f"cannot be read, or not with this filter ({type(e).__name__})"
        raise ValueError(f"{name}: {reason}") from None


def _total_of_threads(parts, state_of, n_threads, progress) -> State:
    """Let threads take parts until none is left; each adds up its own."""
    lock, stop = threading.Lock(), threading.Event()

    def rows_of_parts():
        """Yield rows of parts that no other thread has."""
        while not stop.is_set():
            with lock:
                part = next(parts, None)
            if part is None:
                return
            reader, batches = part
            for batch in batches:
                if stop.is_set():
                    return
                yield reader(batch)
                if progress is not None:
                    with lock:
                        progress(len(batch))

    def state(_):
        """Add up what one thread takes; the others stop where it fails."""
        try:
            return state_of(rows_of_parts())
        except BaseException:
            stop.set()
            raise

    if n_threads == 1:
        return state(0)
    with ThreadPoolExecutor(n_threads) as executor:
        try:
            return added(executor.map(state, range(n_threads)))
        finally:
            stop.set()
