"""Records in chunks, from arrays, iterators and files of any size."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.files import NO_SUCH_FILE, why_unreadable
from privclust.core.packages import require
from privclust.core.printable import excerpt
from privclust.core.validation import check_integer
from privclust.records.arrow import RowReader
from privclust.records.cells import number
from privclust.records.columns import column_of
from privclust.records.errors import ReadingError
from privclust.records.files import kind_of_file, known_suffixes
from privclust.records.matrix import numbers_of_table
from privclust.records.table_files import TableFile, open_table, reworded, worded

Source: TypeAlias = ArrayLike | str | os.PathLike[str] | Iterable[ArrayLike]
"""A source of records; see `chunks`."""

_CHUNK_BYTES = 1 << 23  # default size of a chunk, in bytes of float64
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
    n_rows : int or None
        Number of records; None if it is known only after reading.
    header : tuple of str or None
        Names of the columns.
    label : str or None
        Name of a column that is kept separately.
    labels : list of str or None
        The persons that it names in the last chunk, by key; None without an ID.
    """

    name: str
    n_features: int
    n_rows: int | None
    _pieces: Iterator[Any] = field(repr=False)
    _strict: bool = field(default=True, repr=False)
    _row: int = field(default=0, repr=False)
    header: tuple[str, ...] | None = field(default=None, repr=False)
    label: str | None = None
    labels: list[str | None] | None = field(default=None, repr=False)
    _places: tuple[int, ...] | None = field(default=None, repr=False)  # of columns in the file

    def __iter__(self) -> Chunks:
        return self

    def __next__(self) -> np.ndarray:
        piece = next(self._pieces)
        if self.label is not None:
            piece, self.labels = piece
        chunk = self._checked(piece)
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
        if not self._strict:
            return array
        bad = ~np.isfinite(array)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            what = "is missing or no number" if np.isnan(array[row, column]) else "is infinite"
            raise ValueError(f"{self.name}: {self.place(row, column)} {what}")
        return array

    def place(self, row: int, column: int) -> str:
        """Name a place by its row in the next piece, and its column."""
        name = "" if self.header is None else f" ({excerpt(self.header[column])})"
        at = column if self._places is None else self._places[column]
        return f"row {self._row + row + 1}, column {at + 1}{name}"


def chunks(
    source: Source,
    *,
    chunk_size: int | None = None,
    dataset: str | None = None,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    strict: bool = True,
) -> Chunks:
    """Return an iterator over the records of a source, with one chunk in memory at a time.

    Parameters
    ----------
    source : array_like, path or iterable of array_like
        - Objects with a shape that can be sliced by rows: arrays, memory maps, h5py data sets,
          frames of pandas.
        - A str or path-like, read by its suffix. ``.h5``, ``.hdf5``, ``.hdf``: a two-dimensional
          data set of an HDF5 file. ``.parquet``, ``.arrow``, ``.feather``: columns of numbers.
          ``.npy``: a two-dimensional array. ``.csv``, ``.tsv``, ``.txt``, also compressed (as
          ``.csv.gz``): fields under a header.
        - Any other iterable of chunks, each of shape (n, n_features), used unchanged.
    chunk_size : int or None
        Rows in a chunk (HDF5: up to the next multiple of the file's own). None: 8 megabytes.
    dataset : str or None
        Name of the data set within an HDF5 file; None for the only two-dimensional one.
    delimiter : str or None
        One character between the fields of a CSV file; None for a comma.
    columns : sequence of str or None
        Names of the columns to read from a Parquet, Arrow or CSV file; None for all.
    label : str or None
        Name of a column of a CSV or Parquet file that is not part of the records, such as the
        person of each: text or whole numbers, returned in the chunks' `labels`. A missing
        label is None, and never an error, also with ``strict=True``.
    strict : bool
        False: no entry causes an error, for callers with their own rule for such entries. Chunks
        then contain the NaN and infinity of records. A field of a CSV file that is missing or no
        number is NaN, and fields beyond those of the header are ignored.

    Returns
    -------
    Chunks

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
    >>> [len(chunk) for chunk in chunks(np.zeros((5, 2)), chunk_size=2)]
    [2, 2, 1]
    >>> chunks(iter([np.zeros((5, 2)), np.ones((1, 2))])).n_features
    2
    """
    if chunk_size is not None:
        check_integer("chunk_size", chunk_size, minimum=1)
    if delimiter is not None and not (len(delimiter) == 1 and _can_delimit(delimiter)):
        raise ValueError(f"delimiter must be one character that no number has, got {delimiter!r}")
    given = {"dataset": dataset, "delimiter": delimiter, "columns": columns, "label": label}
    options = {name: value for name, value in given.items() if value is not None}
    if isinstance(source, str | os.PathLike):
        records = _from_file(Path(source), chunk_size, options)
    elif options:
        raise ValueError(f"{_of_files(*next(iter(options.items())))} without a file")
    elif hasattr(source, "shape") and hasattr(source, "__getitem__"):
        records = _from_table("the array", source, chunk_size)
    elif isinstance(source, Iterable):
        records = _from_iterable(source)
    else:
        raise ValueError(
            f"records must come as an array, a path or an iterable of chunks, got {type(source)}"
        )
    records._strict = strict
    return records


def _can_delimit(character: str) -> bool:
    is_printable = character.isprintable() or character == "\t"
    return is_printable and not character.isalnum() and character not in "+-._'\""


def _from_table(name: str, table: Any, chunk_size: int | None, stride: int = 1) -> Chunks:
    """Return slices of an object with a shape, each of a multiple of `stride` rows."""
    if len(table.shape) != 2 or table.shape[1] == 0:
        raise ValueError(f"{name}: must have shape (n, n_features), got {tuple(table.shape)}")
    n_rows, n_features = (int(size) for size in table.shape)
    step = -(-_rows(chunk_size, n_features) // stride) * stride
    by_row = getattr(table, "iloc", table)  # a frame of pandas
    pieces = (by_row[start : start + step] for start in range(0, n_rows, step))
    return Chunks(name, n_features, n_rows, pieces)


def _from_iterable(source: Iterable[Any]) -> Chunks:
    """Return the chunks of an iterable; the first one determines their width."""
    pieces = iter(source)
    first = next(pieces, None)
    if first is None:
        raise ValueError("the iterable holds no chunk, so that the number of features is unknown")
    shape = np.shape(first)
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(f"chunks must have shape (n, n_features), got {shape} for the first one")
    return Chunks("the iterable", shape[1], None, itertools.chain([first], pieces))


def _from_file(path: Path, chunk_size: int | None, options: dict[str, Any]) -> Chunks:
    """Choose the reader by the suffix; its errors are one line with the path."""
    kind = kind_of_file(path)
    if kind not in _READERS:
        suffixes = known_suffixes(*_READERS)
        raise ReadingError(f"{path}: the suffix must say what the file is: one of {suffixes}")
    reader, taken = _READERS[kind]
    for name, value in options.items():
        if name not in taken:
            raise ReadingError(f"{path}: {_of_files(name, value)}")
    if reason := why_unreadable(path):
        raise (FileNotFoundError if reason == NO_SUCH_FILE else ReadingError)(f"{path}: {reason}")
    with worded(path):
        records = reader(path, chunk_size, **options)
    records._pieces = reworded(path, records._pieces)
    return records


def _of_files(name: str, value: Any) -> str:
    """Return a sentence on the files that an option is for."""
    of = {
        "delimiter": "is for CSV files",
        "dataset": "is for HDF5 files",
        "columns": "are for files whose columns have names",
        "label": "is for files whose columns have names",
    }
    return f"{name} {of[name]} only, got {value!r}"


def _hdf5(path: Path, chunk_size: int | None, dataset: str | None = None) -> Chunks:
    h5py = require("h5py", "HDF5 files")
    file = h5py.File(path, "r", locking=False)
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if _is_table(item) else None)
    if dataset is None and len(names) != 1:
        listed = f": {excerpt(', '.join(names[:10]))}" if names else ""
        raise ReadingError(
            f"{path}: has {len(names)} two-dimensional data sets{listed}; name the one with the "
            "records (privclust sketch --dataset NAME)"
        )
    table = file.get(names[0] if dataset is None else dataset)
    if not _is_table(table):
        raise ReadingError(
            f"{path}: has no two-dimensional data set {dataset!r}; it has "
            f"{excerpt(', '.join(names)) or 'none'}"
        )
    return _from_table(str(path), table, chunk_size, stride=table.chunks[0] if table.chunks else 1)


def _is_table(item: Any) -> bool:
    return getattr(item, "ndim", None) == 2


def _npy(path: Path, chunk_size: int | None) -> Chunks:
    with open(path, "rb") as file:
        if file.read(len(_NPY_SIGNATURE)) != _NPY_SIGNATURE:
            raise ReadingError(f"{path}: is no .npy file, whatever its name says")
    try:
        table = _NpyTable(path)
    except ValueError:  # NumPy's message may suggest to trust the file
        raise ReadingError(
            f"{path}: holds no whole array of numbers: it is damaged, or of objects"
        ) from None
    return _from_table(str(path), table, chunk_size)


class _NpyTable:
    """An array in a file, mapped anew for each slice: pages of earlier ones are released."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.shape = self._mapped().shape

    def _mapped(self) -> np.ndarray:
        return np.load(self._path, mmap_mode="r", allow_pickle=False)

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.array(self._mapped()[rows])


def _table_file(
    path: Path,
    chunk_size: int | None,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
    label: str | None = None,
) -> Chunks:
    table = open_table(path, delimiter)
    if table.is_text:
        _check_header(table, columns, label)
    reader = RowReader(columns, groups=label).for_schema(table.schema)
    size = _rows(chunk_size, len(reader.columns))
    places = {name: place for place, name in enumerate(table.names)}
    pieces = (
        reader.rows(part) if label is None else (reader.rows(part), column_of(part[label]).keys())
        for part in table.batches(reader.reads, size)
    )
    return Chunks(
        str(path),
        len(reader.columns),
        table.n_rows,
        pieces,
        header=tuple(reader.columns),
        label=label,
        _places=tuple(places[name] for name in reader.columns),
    )


def _check_header(table: TableFile, columns: Sequence[str] | None, label: str | None) -> None:
    """Refuse a text without a header; its first line is a record and is not quoted."""
    table.check_names([*(columns or ()), *([label] if label else [])])
    if columns is not None:
        return
    if any(map(_is_number, table.names)):
        raise ReadingError("its first line holds numbers, and must be a header: names of columns")
    if "\ufffd" in "".join(table.names):
        raise ReadingError("its header is no text in UTF-8: convert it, or name the columns")
    if len(set(table.names)) < len(table.names):
        raise ReadingError("its first line has a name twice, and must be a header: name columns")


def _is_number(text: str) -> bool:
    return not math.isnan(number(text)) or text.lower() == "nan"


def _rows(chunk_size: int | None, n_features: int) -> int:
    return chunk_size or max(1, _CHUNK_BYTES // (8 * n_features))


_NAMED = ("columns", "label")  # options of files whose columns have names
_READERS: dict[str, tuple[Callable[..., Chunks], tuple[str, ...]]] = {
    "hdf5": (_hdf5, ("dataset",)),
    "parquet": (_table_file, _NAMED),
    "arrow": (_table_file, _NAMED),
    "text": (_table_file, ("delimiter", *_NAMED)),
    "npy": (_npy, ()),
}
