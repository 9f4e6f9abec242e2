"""Records in chunks, from arrays and iterators of any size."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privclust.records.errors import ReadingError
from privclust.records.matrix import numbers_of_table

Source: TypeAlias = ArrayLike | Iterable[ArrayLike]
"""A source of records; see `chunks`."""

_CHUNK_BYTES = 1 << 23  # size of a chunk, in bytes of float64


@dataclass
class Chunks:
    """The records of a source, chunk by chunk, to be iterated over once.

    Each chunk is an array of shape (n, n_features) of finite numbers: float32 if the source has
    float32 or float16, otherwise float64. Iterating raises a ValueError for entries that are no
    numbers, missing or infinite, and for chunks of another width. It names the source, row and
    column (counted from 1), and contains no value of the data.

    Attributes
    ----------
    name : str
        Name of the source in messages, such as ``"the array"``.
    n_features : int
    """

    name: str
    n_features: int
    _pieces: Iterator[Any] = field(repr=False)

    def __iter__(self) -> Iterator[np.ndarray]:
        n_before = 0
        for piece in self._pieces:
            chunk = self._checked(piece, n_before)
            n_before += len(chunk)
            yield chunk

    def _checked(self, piece: Any, n_before: int) -> np.ndarray:
        """Convert a piece to a numeric type, or raise an error that names the fault."""
        try:
            array = np.asarray(numbers_of_table(piece))
        except ReadingError as error:
            raise ReadingError(f"{self.name}: {error}") from None
        if array.dtype.kind == "c":
            raise ReadingError(f"{self.name}: holds complex numbers, not real ones")
        if array.ndim != 2 or array.shape[1] != self.n_features:
            raise ValueError(
                f"{self.name}: after row {n_before} comes a chunk of shape {array.shape}, "
                f"not (n, {self.n_features})"
            )
        is_short = array.dtype.kind == "f" and array.dtype.itemsize <= 4
        array = array.astype(np.float32 if is_short else np.float64, copy=False)
        bad = ~np.isfinite(array)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            what = "is missing or no number" if np.isnan(array[row, column]) else "is infinite"
            place = f"row {n_before + row + 1}, column {column + 1}"
            raise ValueError(f"{self.name}: {place} {what}")
        return array


def chunks(source: Source, name: str = "the array") -> Chunks:
    """Return the records of a source, with one chunk in memory at a time.

    Parameters
    ----------
    source : array_like or iterable of array_like
        - Objects with a shape that can be sliced by rows: arrays, memory maps, h5py data sets,
          frames of pandas.
        - Any other iterable of chunks, each of shape (n, n_features), used unchanged.
    name : str
        Name of an array in messages, such as its file.

    Returns
    -------
    Chunks
        Chunks of 8 megabytes.

    Raises
    ------
    ValueError
        If the source is none of these; for a path the message says how to read the file.

    Examples
    --------
    >>> [len(chunk) for chunk in chunks(np.zeros((10**6, 2)))]
    [524288, 475712]
    >>> chunks(iter([np.zeros((5, 2)), np.ones((1, 2))])).n_features
    2
    """
    if isinstance(source, str | os.PathLike):
        raise ValueError(
            "records must come as an array or an iterable of chunks, got a path: read tables by "
            "privclust.sketches.Sketch.of_table, .npy files by numpy.load(path, mmap_mode='r'), "
            "data sets of HDF5 files by h5py"
        )
    if hasattr(source, "shape") and hasattr(source, "__getitem__"):
        return _from_table(name, source)
    if isinstance(source, Iterable):
        return _from_iterable(source)
    raise ValueError(f"records must come as an array or an iterable of chunks, got {type(source)}")


def _from_table(name: str, table: Any) -> Chunks:
    """Return slices of an object with a shape."""
    if len(table.shape) != 2 or table.shape[1] == 0:
        raise ValueError(f"{name}: must have shape (n, n_features), got {tuple(table.shape)}")
    n_rows, n_features = (int(size) for size in table.shape)
    step = _rows(n_features)
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


def _rows(n_features: int) -> int:
    return max(1, _CHUNK_BYTES // (8 * n_features))
