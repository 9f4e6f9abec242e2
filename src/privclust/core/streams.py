"""Records in chunks, from arrays, iterators and files of any size."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.packages import require
from privclust.core.validation import check_integer

Source: TypeAlias = ArrayLike | str | os.PathLike[str] | Iterable[ArrayLike]
"""Where records come from; see `chunks`."""

_CHUNK_BYTES = 1 << 23  # of float64, where the caller does not say how many rows
_PANDAS_INDEX = "__index_level_"
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip", ".zst")  # that pandas reads CSV through


@dataclass
class Chunks:
    """An iterator over the records of a source, chunk by chunk.

    Each chunk is an array of shape (n, n_features) of finite numbers: float32 where the source
    holds float32 or float16, float64 otherwise. Iterating raises a ValueError that names the
    source, and row and column (counted from 1) where they are known, for what is not a number,
    missing or infinite, for chunks of another width, and for files that are damaged.

    Attributes
    ----------
    name : str
        What messages call the source: the file's path, or ``"the array"``.
    n_features : int
    n_rows : int or None
        How many records there are; None where only reading tells.
    """

    name: str
    n_features: int
    n_rows: int | None
    _pieces: Iterator = field(repr=False)
    _columns: tuple[str, ...] | None = field(default=None, repr=False)
    _row: int = field(default=0, repr=False)

    def __iter__(self) -> Chunks:
        return self

    def __next__(self) -> np.ndarray:
        chunk = self._checked(next(self._pieces))
        self._row += len(chunk)
        return chunk

    def _checked(self, piece) -> np.ndarray:
        """Bring a piece to a type that can be computed with, or say what is wrong with it."""
        array = np.asarray(piece)
        if array.dtype.kind not in "iuf":
            raise ValueError(f"{self.name}: holds {array.dtype} where real numbers should be")
        if array.ndim != 2 or array.shape[1] != self.n_features:
            raise ValueError(
                f"{self.name}: after row {self._row} comes a chunk of shape {array.shape}, "
                f"not (n, {self.n_features})"
            )
        is_short = array.dtype.kind == "f" and array.dtype.itemsize <= 4
        array = array.astype(np.float32 if is_short else np.float64, copy=False)
        bad = ~np.isfinite(array)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            what = "is missing or NaN" if np.isnan(array[row, column]) else "is infinite"
            raise ValueError(f"{self.name}: {self.place(row, column)} {what}")
        return array

    def place(self, row: int, column: int) -> str:
        """Name a place by its row in the piece that comes next, and its column."""
        header = f" ({self._columns[column]})" if self._columns else ""
        return f"row {self._row + row + 1}, column {column + 1}{header}"


def chunks(source: Source, *, chunk_size: int | None = None, dataset: str | None = None) -> Chunks:
    """Return an iterator over the records of a source, of which one chunk is in memory at a time.

    Parameters
    ----------
    source : array_like, path or iterable of array_like
        - What has a shape and can be sliced by rows: arrays, memory maps, h5py data sets, frames
          of pandas.
        - A str or path-like, read by its suffix. ``.h5``, ``.hdf5``, ``.hdf``: a two-dimensional
          data set of an HDF5 file. ``.parquet``, ``.pq``: all columns, which must be numbers (needs
          ``privclust[files]``). ``.npy``: a two-dimensional array. ``.csv``, also compressed (as
          ``.csv.gz``): fields between commas, the first line a header if none of its fields is a
          number, and a record if all are.
        - Any other iterable: of chunks, each of shape (n, n_features), taken as they come.
    chunk_size : int or None
        Rows in a chunk (HDF5: up to the next multiple of the file's own). None: 8 megabytes.
    dataset : str or None
        Name of the data set within an HDF5 file; None for the only two-dimensional one.

    Returns
    -------
    Chunks

    Raises
    ------
    ValueError
        If the source is none of these or cannot be read; the message names it.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> [len(chunk) for chunk in chunks(np.zeros((5, 2)), chunk_size=2)]
    [2, 2, 1]
    >>> chunks(iter([np.zeros((5, 2)), np.ones((1, 2))])).n_features
    2
    """
    if chunk_size is not None:
        check_integer("chunk_size", chunk_size, minimum=1)
    if isinstance(source, str | os.PathLike):
        return _from_file(Path(source), chunk_size, dataset)
    if dataset is not None:
        raise ValueError(f"dataset names a part of an HDF5 file, got {dataset!r} without a file")
    if hasattr(source, "shape") and hasattr(source, "__getitem__"):
        return _from_table("the array", source, chunk_size)
    if isinstance(source, Iterable):
        return _from_iterable(source)
    raise ValueError(
        f"records must come as an array, a path or an iterable of chunks, got {type(source)}"
    )


def _from_table(name: str, table, chunk_size: int | None, stride: int = 1) -> Chunks:
    """Slices of what has a shape; a multiple of `stride` rows each."""
    if len(table.shape) != 2 or table.shape[1] == 0:
        raise ValueError(f"{name}: must have shape (n, n_features), got {tuple(table.shape)}")
    n_rows, n_features = (int(size) for size in table.shape)
    step = -(-_rows(chunk_size, n_features) // stride) * stride
    by_row = getattr(table, "iloc", table)  # a frame of pandas
    pieces = (by_row[start : start + step] for start in range(0, n_rows, step))
    return Chunks(name, n_features, n_rows, pieces)


def _from_iterable(source: Iterable) -> Chunks:
    """Chunks that someone else makes; the first one tells their width."""
    pieces = iter(source)
    first = next(pieces, None)
    if first is None:
        raise ValueError("the iterable holds no chunk, so that the number of features is unknown")
    shape = np.shape(first)
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(f"chunks must have shape (n, n_features), got {shape} for the first one")
    return Chunks("the iterable", shape[1], None, itertools.chain([first], pieces))


def _from_file(path: Path, chunk_size: int | None, dataset: str | None) -> Chunks:
    """Choose the reader by the suffix; what goes wrong in it is one line with the path."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-2] == ".csv" and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    reader = _READERS.get(suffixes[-1] if suffixes else "")
    if reader is None:
        raise ValueError(
            f"{path}: the suffix must say what the file is: one of {', '.join(_READERS)}"
        )
    if dataset is not None and reader is not _hdf5:
        raise ValueError(f"{path}: dataset is for HDF5 files only, got {dataset!r}")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        records = reader(path, chunk_size, *([] if dataset is None else [dataset]))
    except Exception as error:
        raise _unreadable(path, error) from None
    records._pieces = _named(path, records._pieces)
    return records


def _named(path: Path, pieces: Iterator) -> Iterator:
    """Pass pieces on; an error of the reader becomes one line with the path."""
    try:
        yield from pieces
    except Exception as error:
        raise _unreadable(path, error) from None


class _Refused(ValueError):
    """A message that names the file already."""


def _unreadable(path: Path, error: Exception) -> Exception:
    """One line for what a reader's library raised; each raises what it likes."""
    if isinstance(error, _Refused | MemoryError | ImportError):
        return error
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return ValueError(f"{path}: cannot be read ({reason})")


def _hdf5(path: Path, chunk_size: int | None, dataset: str | None = None) -> Chunks:
    """A two-dimensional data set, in slices that fit the file's own chunks."""
    h5py = require("h5py", "HDF5 files")
    file = h5py.File(path, "r", locking=False)
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if _is_table(item) else None)
    if dataset is None and len(names) != 1:
        listed = f": {', '.join(names[:10])}" if names else ""
        raise _Refused(
            f"{path}: has {len(names)} two-dimensional data sets{listed}; name the one with the "
            "records"
        )
    table = file.get(names[0] if dataset is None else dataset)
    if not _is_table(table):
        raise _Refused(
            f"{path}: has no two-dimensional data set {dataset!r}; it has "
            f"{', '.join(names) or 'none'}"
        )
    return _from_table(str(path), table, chunk_size, stride=table.chunks[0] if table.chunks else 1)


def _is_table(item) -> bool:
    """Whether an HDF5 object is a two-dimensional array."""
    return getattr(item, "ndim", None) == 2


def _npy(path: Path, chunk_size: int | None) -> Chunks:
    """Slices of a memory map."""
    return _from_table(str(path), _NpyFile(path), chunk_size)


class _NpyFile:
    """A .npy file that is mapped anew for each slice: pages that were read do not pile up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.shape = self._map().shape

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.array(self._map()[rows])

    def _map(self) -> np.ndarray:
        return np.load(self._path, mmap_mode="r", allow_pickle=False)


def _parquet(path: Path, chunk_size: int | None) -> Chunks:
    """Batches of rows; a row group is read page by page."""
    try:
        from pyarrow import parquet, types
    except ImportError:
        raise _Refused(
            f"{path}: Parquet files are read by pyarrow, which is not installed: "
            "pip install 'privclust[files]'"
        ) from None

    file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
    schema = file.schema_arrow
    for column in schema:
        if not (types.is_integer(column.type) or types.is_floating(column.type)):
            raise _Refused(f"{path}: column {column.name!r} holds {column.type}, not numbers")
        if column.name.startswith(_PANDAS_INDEX):
            raise _Refused(
                f"{path}: column {column.name!r} is an index that pandas wrote; write the frame "
                "with index=False"
            )
    if not schema.names:
        raise _Refused(f"{path}: has no columns")
    is_short = all(types.is_float32(c.type) or types.is_float16(c.type) for c in schema)
    dtype = np.float32 if is_short else np.float64
    batches = file.iter_batches(batch_size=_rows(chunk_size, len(schema.names)))
    pieces = (
        np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch]).astype(dtype)
        for batch in batches
        if len(batch)
    )
    names = tuple(schema.names)
    return Chunks(str(path), len(names), file.metadata.num_rows, pieces, names)


def _csv(path: Path, chunk_size: int | None) -> Chunks:
    """Lines of numbers between commas, under a header or not."""
    pd = require("pandas", "CSV files")
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0]
    numbers = [_is_number(text) for text in first]
    if any(numbers) and not all(numbers):
        odd = numbers.index(False)
        raise _Refused(
            f"{path}: row 1, column {odd + 1} is {first[odd]!r} beside numbers: the first line "
            "must be a header without numbers, or a record"
        )
    if not any(numbers) and not all(first):
        raise _Refused(f"{path}: column {list(first).index('') + 1} of the header has no name")
    n_features, has_header = len(first), not any(numbers)
    size = _rows(chunk_size, n_features)
    records = Chunks(str(path), n_features, None, iter(()), tuple(first) if has_header else None)
    records._pieces = _csv_pieces(path, records, size, has_header)
    return records


def _csv_pieces(path: Path, records: Chunks, size: int, has_header: bool) -> Iterator[np.ndarray]:
    """Parse chunk by chunk; pandas leaves a column with any text in it as text."""
    pd = require("pandas", "CSV files")
    try:
        frames = pd.read_csv(path, header=None, skiprows=int(has_header), chunksize=size)
    except pd.errors.EmptyDataError:  # a header and nothing below it
        return
    with frames:
        for frame in frames:
            if frame.shape[1] != records.n_features:
                raise _Refused(
                    f"{path}: its first line has {records.n_features} fields, "
                    f"the next {frame.shape[1]}"
                )
            for column, dtype in enumerate(frame.dtypes):
                if getattr(dtype, "kind", "O") not in "iuf":
                    _refuse_text(path, records, frame, column)
            yield frame.to_numpy(dtype=np.float64)


def _refuse_text(path: Path, records: Chunks, frame, column: int) -> None:
    """Raise for the first field of a column that is text."""
    pd = require("pandas", "CSV files")
    fields = frame.iloc[:, column]
    is_text = pd.to_numeric(fields.astype(str), errors="coerce").isna() & fields.notna()
    row = int(is_text.to_numpy().argmax())
    where, text = records.place(row, column), str(fields.iloc[row])
    raise _Refused(f"{path}: {where} is {text!r}, not a number")


def _is_number(text: str) -> bool:
    """Whether a field of a CSV file is a number (or NaN, which is refused as a record)."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rows(chunk_size: int | None, n_features: int) -> int:
    """Rows in a chunk."""
    return chunk_size or max(1, _CHUNK_BYTES // (8 * n_features))


_READERS: dict[str, Callable[..., Chunks]] = {
    **dict.fromkeys((".h5", ".hdf5", ".hdf"), _hdf5),
    **dict.fromkeys((".parquet", ".pq"), _parquet),
    ".csv": _csv,
    ".npy": _npy,
}
