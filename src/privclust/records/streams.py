"""Records in chunks, from arrays, iterators and files of any size."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.files import NO_SUCH_FILE, why_unreadable
from privclust.core.packages import require
from privclust.core.printable import excerpt
from privclust.records.arrow import RowReader
from privclust.records.errors import ReadingError
from privclust.records.files import kind_of_file, known_suffixes
from privclust.records.matrix import numbers_of_table
from privclust.records.table_files import TextFile, open_table, reworded, worded

Source: TypeAlias = ArrayLike | str | os.PathLike[str] | Iterable[ArrayLike]
"""A source of records; see `chunks`."""

_CHUNK_BYTES = 1 << 23  # size of a chunk, in bytes of float64
_NPY_SIGNATURE = b"\x93NUMPY"


@dataclass
class Chunks:
    """An iterator over the records of a source, chunk by chunk.

    Each chunk is an array of shape (n, n_features) of finite numbers: float32 if the source has
    float32 or float16, otherwise float64. Iterating raises a ValueError for entries that are no
    numbers, missing or infinite, for chunks of another width and for damaged files. It names the
    source and, if known, row and column (counted from 1), and contains no value of the data.

    Attributes
    ----------
    name : str
        Name of the source in messages: the file's path, or ``"the array"``.
    n_features : int
    header : tuple of str or None
        Names of the columns.
    """

    name: str
    n_features: int
    _pieces: Iterator[Any] = field(repr=False)
    _row: int = field(default=0, repr=False)
    header: tuple[str, ...] | None = field(default=None, repr=False)

    def __iter__(self) -> Chunks:
        return self

    def __next__(self) -> np.ndarray:
        chunk = self._checked(next(self._pieces))
        self._row += len(chunk)
        return chunk

    def _checked(self, piece: Any) -> np.ndarray:
        """Convert a piece to a numeric type, or raise an error that names the fault."""
        try:
            array = np.asarray(numbers_of_table(piece))
        except ReadingError as error:
            raise ReadingError(f"{self.name}: {error}") from None
        if array.dtype.kind == "c":
            raise ReadingError(f"{self.name}: holds complex numbers, not real ones")
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
            what = "is missing or no number" if np.isnan(array[row, column]) else "is infinite"
            raise ValueError(f"{self.name}: {self.place(row, column)} {what}")
        return array

    def place(self, row: int, column: int) -> str:
        """Name a place by its row in the next piece, and its column."""
        name = "" if self.header is None else f" ({excerpt(self.header[column])})"
        return f"row {self._row + row + 1}, column {column + 1}{name}"


def chunks(source: Source) -> Chunks:
    """Return an iterator over the records of a source, with one chunk in memory at a time.

    Parameters
    ----------
    source : array_like, path or iterable of array_like
        - Objects with a shape that can be sliced by rows: arrays, memory maps, h5py data sets,
          frames of pandas.
        - A str or path-like, read by its suffix. ``.h5``, ``.hdf5``, ``.hdf``: the only
          two-dimensional data set of an HDF5 file. ``.parquet``: columns of numbers. ``.npy``: a
          two-dimensional array. ``.csv``, ``.tsv``, ``.txt``, also compressed (as ``.csv.gz``):
          fields under a header.
        - Any other iterable of chunks, each of shape (n, n_features), used unchanged.

    Returns
    -------
    Chunks
        Chunks of 8 megabytes (HDF5: up to the next multiple of the file's own).

    Raises
    ------
    ValueError
        If the source is none of these or cannot be read; the message names it.
    FileNotFoundError
        If there is no such file.

    Notes
    -----
    Numbers in text are read exactly, so that each record is read independently.

    Examples
    --------
    >>> [len(chunk) for chunk in chunks(np.zeros((10**6, 2)))]
    [524288, 475712]
    >>> chunks(iter([np.zeros((5, 2)), np.ones((1, 2))])).n_features
    2
    """
    if isinstance(source, str | os.PathLike):
        return _from_file(Path(source))
    if hasattr(source, "shape") and hasattr(source, "__getitem__"):
        return _from_table("the array", source)
    if isinstance(source, Iterable):
        return _from_iterable(source)
    raise ValueError(
        f"records must come as an array, a path or an iterable of chunks, got {type(source)}"
    )


def _from_table(name: str, table: Any, stride: int = 1) -> Chunks:
    """Return slices of an object with a shape, each of a multiple of `stride` rows."""
    if len(table.shape) != 2 or table.shape[1] == 0:
        raise ValueError(f"{name}: must have shape (n, n_features), got {tuple(table.shape)}")
    n_rows, n_features = (int(size) for size in table.shape)
    step = -(-_rows(n_features) // stride) * stride
    by_row = getattr(table, "iloc", table)  # a frame of pandas
    pieces = (by_row[start : start + step] for start in range(0, n_rows, step))
    return Chunks(name, n_features, pieces)


def _from_iterable(source: Iterable[Any]) -> Chunks:
    """Return the chunks of an iterable; the first one determines their width."""
    pieces = iter(source)
    first = next(pieces, None)
    if first is None:
        raise ValueError("the iterable holds no chunk, so that the number of features is unknown")
    shape = np.shape(first)
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(f"chunks must have shape (n, n_features), got {shape} for the first one")
    return Chunks("the iterable", shape[1], itertools.chain([first], pieces))


def _from_file(path: Path) -> Chunks:
    """Choose the reader by the suffix; its errors are one line with the path."""
    kind = kind_of_file(path)
    if kind not in _READERS:
        suffixes = known_suffixes(*_READERS)
        raise ReadingError(f"{path}: the suffix must say what the file is: one of {suffixes}")
    if reason := why_unreadable(path):
        raise (FileNotFoundError if reason == NO_SUCH_FILE else ReadingError)(f"{path}: {reason}")
    with worded(path):
        records = _READERS[kind](path)
    records._pieces = reworded(path, records._pieces)
    return records


def _hdf5(path: Path) -> Chunks:
    h5py = require("h5py", "HDF5 files")
    file = h5py.File(path, "r", locking=False)
    names: list[str] = []
    file.visititems(
        lambda name, item: names.append(name) if getattr(item, "ndim", None) == 2 else None
    )
    if len(names) != 1:
        listed = f": {excerpt(', '.join(names[:10]))}" if names else ""
        raise ReadingError(
            f"{path}: must have one two-dimensional data set, and has {len(names)}{listed}"
        )
    table = file[names[0]]
    return _from_table(str(path), table, stride=table.chunks[0] if table.chunks else 1)


def _npy(path: Path) -> Chunks:
    with open(path, "rb") as file:
        if file.read(len(_NPY_SIGNATURE)) != _NPY_SIGNATURE:
            raise ReadingError(f"{path}: is no .npy file, whatever its name says")
    try:
        table = _NpyTable(path)
    except ValueError:  # NumPy's message may suggest to trust the file
        raise ReadingError(
            f"{path}: holds no whole array of numbers: it is damaged, or of objects"
        ) from None
    return _from_table(str(path), table)


class _NpyTable:
    """An array in a file, mapped anew for each slice: pages of earlier ones are released."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.shape = self._mapped().shape

    def _mapped(self) -> np.ndarray:
        return np.load(self._path, mmap_mode="r", allow_pickle=False)

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.array(self._mapped()[rows])


def _table_file(path: Path) -> Chunks:
    table = open_table(path)
    if isinstance(table, TextFile):
        table.check_header(None)
    reader = RowReader(None).for_schema(table.schema)
    n_features = len(reader.columns)
    pieces = map(reader.rows, table.batches(reader.columns, _rows(n_features)))
    return Chunks(str(path), n_features, pieces, header=tuple(reader.columns))


def _rows(n_features: int) -> int:
    return max(1, _CHUNK_BYTES // (8 * n_features))


_READERS: dict[str, Callable[[Path], Chunks]] = {
    "hdf5": _hdf5,
    "npy": _npy,
    "parquet": _table_file,
    "text": _table_file,
}
