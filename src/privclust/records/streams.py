"""Records in chunks, from arrays, iterators and files of any size."""

from __future__ import annotations

import itertools
import os
import re
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
from privclust.records.arrow import (
    check_columns,
    check_person,
    numeric_type,
    rows_of,
)
from privclust.records.cells import key, read_each
from privclust.records.columns import column_of
from privclust.records.csv_lines import (
    fields_of,
    is_number,
    lines_of,
    numbers_of,
)
from privclust.records.errors import ReadingError
from privclust.records.files import columnar, delimiter_of, kind_of_file, known_suffixes
from privclust.records.labels import other_columns
from privclust.records.matrix import numbers_of_table

Source: TypeAlias = ArrayLike | str | os.PathLike[str] | Iterable[ArrayLike]
"""Where records come from; see `chunks`."""

_CHUNK_BYTES = 1 << 23  # of float64, where the caller does not say how many rows
_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_NPY_SIGNATURE = b"\x93NUMPY"


@dataclass
class Chunks:
    """An iterator over the records of a source, chunk by chunk.

    Each chunk is an array of shape (n, n_features) of finite numbers: float32 where the source
    holds float32 or float16, float64 otherwise. Iterating raises a ValueError that names the
    source, and row and column (counted from 1) where they are known, for what is not a number,
    missing or infinite, for chunks of another width, and for files that are damaged. No message
    holds a value of the data.

    Attributes
    ----------
    name : str
        What messages call the source: the file's path, or ``"the array"``.
    n_features : int
    n_rows : int or None
        How many records there are; None where only reading tells.
    header : tuple of str or None
        Names of the columns. For comparing, not for showing: a CSV's first line may be a record.
    label : str or None
        Name of a column that is kept apart.
    labels : list of str or None
        The persons that it names in the chunk that came last, by key; None for nobody.
    """

    name: str
    n_features: int
    n_rows: int | None
    _pieces: Iterator[Any] = field(repr=False)
    _columns: tuple[str, ...] | None = field(default=None, repr=False)
    _strict: bool = field(default=True, repr=False)
    _row: int = field(default=0, repr=False)
    header: tuple[str, ...] | None = field(default=None, repr=False)
    label: str | None = None
    labels: list[str | None] | None = field(default=None, repr=False)
    _label_at: int | None = field(default=None, repr=False)

    def __iter__(self) -> Chunks:
        return self

    def __next__(self) -> np.ndarray:
        piece = next(self._pieces)
        if self.label is not None:
            piece, self.labels = piece
            self._check_labels()
        chunk = self._checked(piece)
        self._row += len(chunk)
        return chunk

    def _check_labels(self) -> None:
        """Say where a label is missing."""
        if self._strict and self.labels is not None and None in self.labels:
            row = self._row + self.labels.index(None) + 1
            raise ValueError(f"{self.name}: row {row} has no entry in column {self.label!r}")

    def _checked(self, piece: Any) -> np.ndarray:
        """Bring a piece to a type that can be computed with, or say what is wrong with it."""
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
            what = "is missing or NaN" if np.isnan(array[row, column]) else "is infinite"
            raise ValueError(f"{self.name}: {self.place(row, column)} {what}")
        return array

    def place(self, row: int, column: int) -> str:
        """Name a place by its row in the piece that comes next, and its column."""
        header = f" ({excerpt(self._columns[column])})" if self._columns else ""
        column += self._label_at is not None and column >= self._label_at
        return f"row {self._row + row + 1}, column {column + 1}{header}"


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
    """Return an iterator over the records of a source, of which one chunk is in memory at a time.

    Parameters
    ----------
    source : array_like, path or iterable of array_like
        - What has a shape and can be sliced by rows: arrays, memory maps, h5py data sets, frames
          of pandas.
        - A str or path-like, read by its suffix. ``.h5``, ``.hdf5``, ``.hdf``: a two-dimensional
          data set of an HDF5 file. ``.parquet``, ``.pq``: columns of numbers (needs
          ``privclust[files]``). ``.npy``: a two-dimensional array. ``.csv``, also compressed (as
          ``.csv.gz``): fields between commas, the first line a header if none of its fields is a
          number, and a record if all are.
        - Any other iterable: of chunks, each of shape (n, n_features), taken as they come.
    chunk_size : int or None
        Rows in a chunk (HDF5: up to the next multiple of the file's own). None: 8 megabytes.
    dataset : str or None
        Name of the data set within an HDF5 file; None for the only two-dimensional one.
    delimiter : str or None
        One character between the fields of a CSV file; None for a comma.
    columns : sequence of str or None
        Names of the columns of a Parquet file, of which no others are read; None for all.
    label : str or None
        Name of a column of a CSV or Parquet file that is no part of the records, such as whose each
        is: text or whole numbers, to be found in the chunks' `labels`.
    strict : bool
        False: no entry of a record makes reading it fail, for callers that have a rule of their own
        for such entries. Chunks then hold NaN and infinity where records do. Of a CSV file the
        first line must be a header, every further line is a record (a quoted line end ends it too),
        a field that is missing or no number is NaN, and fields beyond the header's are passed over.

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
    Numbers in text are read exactly, so that a record's do not depend on others'.

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
    if isinstance(source, str | os.PathLike):
        records = _from_file(Path(source), chunk_size, dataset, delimiter, columns, label, strict)
    elif dataset is not None:
        raise ValueError(f"dataset names a part of an HDF5 file, got {dataset!r} without a file")
    elif delimiter is not None:
        raise ValueError(f"delimiter is for CSV files only, got {delimiter!r} without a file")
    elif columns is not None:
        raise ValueError("columns are named of Parquet files only")
    elif label is not None:
        raise ValueError(f"label names a column of a file, got {label!r} without a file")
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
    """Whether a character may stand between the fields of a CSV file."""
    is_printable = character.isprintable() or character == "\t"
    return is_printable and not character.isalnum() and character not in "+-._'\""


def _from_table(name: str, table: Any, chunk_size: int | None, stride: int = 1) -> Chunks:
    """Slices of what has a shape; a multiple of `stride` rows each."""
    if len(table.shape) != 2 or table.shape[1] == 0:
        raise ValueError(f"{name}: must have shape (n, n_features), got {tuple(table.shape)}")
    n_rows, n_features = (int(size) for size in table.shape)
    step = -(-_rows(chunk_size, n_features) // stride) * stride
    by_row = getattr(table, "iloc", table)  # a frame of pandas
    pieces = (by_row[start : start + step] for start in range(0, n_rows, step))
    return Chunks(name, n_features, n_rows, pieces)


def _from_iterable(source: Iterable[Any]) -> Chunks:
    """Chunks that someone else makes; the first one tells their width."""
    pieces = iter(source)
    first = next(pieces, None)
    if first is None:
        raise ValueError("the iterable holds no chunk, so that the number of features is unknown")
    shape = np.shape(first)
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(f"chunks must have shape (n, n_features), got {shape} for the first one")
    return Chunks("the iterable", shape[1], None, itertools.chain([first], pieces))


def _from_file(
    path: Path,
    chunk_size: int | None,
    dataset: str | None,
    delimiter: str | None,
    columns: Sequence[str] | None,
    label: str | None,
    strict: bool,
) -> Chunks:
    """Choose the reader by the suffix; what goes wrong in it is one line with the path."""
    reader = _READERS.get(kind_of_file(path))
    options: dict[str, Any] = {}
    if reader is _csv:
        options = {"delimiter": delimiter, "strict": strict}
    elif delimiter is not None:
        raise ValueError(f"{path}: delimiter is for CSV files only, got {delimiter!r}")
    if reader is _hdf5:
        options = {"dataset": dataset}
    elif dataset is not None and reader is not None:
        raise ValueError(f"{path}: dataset is for HDF5 files only, got {dataset!r}")
    if reader is _columnar:
        options = {"columns": columns}
    elif columns is not None and reader is not None:
        raise ValueError(f"{path}: columns are named of Parquet files only")
    if reader in (_csv, _columnar):
        options["label"] = label
    elif label is not None and reader is not None:
        raise ValueError(f"{path}: its columns have no names, so that there is no {label!r}")
    reason = why_unreadable(path)
    if reason == NO_SUCH_FILE and reader is not None:
        raise FileNotFoundError(f"{path}: {reason}")
    if reader is None:
        reason = f"the suffix must say what the file is: one of {known_suffixes(*_READERS)}"
    if reason:
        raise ValueError(f"{path}: {reason}")
    try:
        records = reader(path, chunk_size, **options)
    except Exception as error:
        raise _unreadable(path, error) from None
    records._pieces = named(path, records._pieces)
    return records


def named(path: Path, pieces: Iterator[Any]) -> Iterator[Any]:
    """Pass pieces on; an error of the reader becomes one line with the path."""
    try:
        yield from pieces
    except Exception as error:
        raise _unreadable(path, error) from None


class _Refused(ReadingError):
    """A message that names the file already."""


def _unreadable(path: Path, error: Exception) -> Exception:
    """One line for what a reader's library raised; of text and .npy it might quote the data."""
    if isinstance(error, _Refused | MemoryError | ImportError):
        return error
    if isinstance(error, ReadingError):
        return ReadingError(f"{path}: {error}")
    if kind_of_file(path) == "hdf5":  # whose library speaks of the file's structure alone
        reason = excerpt((str(error).strip() or type(error).__name__).splitlines()[0])
    else:
        reason = _reason_of_text(error)
    return ReadingError(f"{path}: cannot be read ({reason})")


def _reason_of_text(error: Exception) -> str:
    """Say what is wrong with a text, or a packed one, in words that hold nothing of it."""
    fields = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    if fields:
        return "line {1} has {2} fields, those before it {0}".format(*fields.groups())
    if isinstance(error, UnicodeError):
        return "it is no UTF-8 text"
    if type(error).__name__ == "EmptyDataError":
        return "it is empty"
    return getattr(error, "strerror", None) or f"it is damaged: {type(error).__name__}"


def _hdf5(path: Path, chunk_size: int | None, dataset: str | None = None) -> Chunks:
    """A two-dimensional data set, in slices that fit the file's own chunks."""
    h5py = require("h5py", "HDF5 files")
    file = h5py.File(path, "r", locking=False)
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if _is_table(item) else None)
    if dataset is None and len(names) != 1:
        listed = f": {excerpt(', '.join(names[:10]))}" if names else ""
        raise _Refused(
            f"{path}: has {len(names)} two-dimensional data sets{listed}; name the one with the "
            "records (privclust sketch --dataset NAME)"
        )
    table = file.get(names[0] if dataset is None else dataset)
    if not _is_table(table):
        raise _Refused(
            f"{path}: has no two-dimensional data set {dataset!r}; it has "
            f"{excerpt(', '.join(names)) or 'none'}"
        )
    return _from_table(str(path), table, chunk_size, stride=table.chunks[0] if table.chunks else 1)


def _is_table(item: Any) -> bool:
    """Whether an HDF5 object is a two-dimensional array."""
    return getattr(item, "ndim", None) == 2


def _npy(path: Path, chunk_size: int | None) -> Chunks:
    """Slices of a memory map."""
    with open(path, "rb") as file:
        if file.read(len(_NPY_SIGNATURE)) != _NPY_SIGNATURE:
            raise _Refused(f"{path}: is no .npy file, whatever its name says")
    return _from_table(str(path), _NpyFile(path), chunk_size)


class _NpyFile:
    """A .npy file that is mapped anew for each slice: pages that were read do not pile up."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.shape = self._map().shape

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.array(self._map()[rows])

    def _map(self) -> np.ndarray:
        try:
            return np.load(self._path, mmap_mode="r", allow_pickle=False)
        except ValueError:  # whose message may advise to trust the file
            raise _Refused(
                f"{self._path}: holds no whole array of numbers: it is damaged, or of objects"
            ) from None


def _columnar(
    path: Path,
    chunk_size: int | None,
    columns: Sequence[str] | None,
    label: str | None = None,
) -> Chunks:
    """Batches of rows of a Parquet or an Arrow file."""
    with columnar(path) as file:
        schema, n_rows = file.schema, file.n_rows
    names = _refuse(path, _numeric_columns, schema, columns, label)
    dtype = numeric_type(schema, names)

    def pieces() -> Iterator[Any]:
        """Open the file when it is its turn: a folder may hold thousands."""
        size, read = _rows(chunk_size, len(names)), [*names, *([label] if label else [])]
        with columnar(path) as file:
            for batch in file.batches(size, read):
                rows = rows_of(batch, names, dtype)
                yield rows if label is None else (rows, column_of(batch.column(label)).keys())

    records = Chunks(str(path), len(names), n_rows, pieces(), names, header=names)
    records.label = label
    records._label_at = None if label is None else schema.names.index(label)
    return records


def _numeric_columns(
    schema: Any, columns: Sequence[str] | None, label: str | None
) -> tuple[str, ...]:
    """Return the columns of numbers to read, of which the label is none."""
    names = check_columns(schema, columns)
    if label is not None:
        others = other_columns(schema.names, label)
        check_person(schema, label)
        if columns is None:
            names = others
        elif label in names:
            raise ValueError(f"column {label!r} says whose a record is; it cannot be counted too")
    numeric_type(schema, names)
    return names


def _refuse(path: Path, check: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a check does, whose error is one line with the path."""
    try:
        return check(*arguments)
    except ValueError as error:
        raise _Refused(f"{path}: {error}") from None


def _csv(
    path: Path,
    chunk_size: int | None,
    delimiter: str | None,
    strict: bool,
    label: str | None = None,
) -> Chunks:
    """Lines of numbers between delimiters, under a header or not."""
    pd = require("pandas", "CSV files")
    how: dict[str, Any] = {"sep": delimiter_of(path, delimiter), "header": None}
    how |= {} if strict else {"encoding_errors": "replace"}
    first = list(pd.read_csv(path, nrows=1, dtype=str, keep_default_na=False, **how).iloc[0])
    numbers = [is_number(text) for text in first]
    has_header = not any(numbers)
    if (
        delimiter is None
        and how["sep"] == ","
        and not all(numbers)
        and (len(first) == 1 or not has_header)
    ):
        _refuse_delimiter(path, ",".join(first))
    if not has_header and not strict:
        raise _Refused(
            f"{path}: its first line holds numbers; it must be a header, or the first record would "
            "say how many columns there are"
        )
    if not has_header and not all(numbers):
        raise _Refused(
            f"{path}: row 1, column {numbers.index(False) + 1} is no number beside numbers: the "
            "first line must be a header without numbers, or a record"
        )
    if has_header and not all(first):
        raise _Refused(
            f"{path}: column {first.index('') + 1} of the header has no name; give it one or, if "
            "pandas wrote it as an index, write the frame with index=False"
        )
    if label is not None and not has_header:
        raise _Refused(f"{path}: has no header, so that there is no column {label!r}")
    header = tuple(first)
    if label is not None:
        header = _refuse(path, other_columns, header, label)
    records = Chunks(str(path), len(header), None, iter(()), label=label)
    records.header = header if has_header else None
    records._label_at = None if label is None else first.index(label)
    how |= {"chunksize": _rows(chunk_size, len(first))}
    if strict:
        how |= {"skiprows": int(has_header), "skip_blank_lines": len(first) > 1}
    # a quote in a field of text would join lines
    read = _csv_pieces if strict and label is None else _csv_lines
    records._pieces = read(path, records, how)
    return records


def _refuse_delimiter(path: Path, line: str) -> None:
    """Raise where a line that is no header or record has another delimiter."""
    for character, name in _DELIMITERS.items():
        fields = line.split(character)
        if len(fields) > 1 and (character != " " or all(map(is_number, line.split()))):
            shown = "tab" if character == "\t" else repr(character)
            raise _Refused(
                f"{path}: {name} are seen between the fields of its first line, not commas; write "
                f"it with commas, or name the delimiter (privclust sketch --delimiter {shown})"
            )


def _csv_pieces(path: Path, records: Chunks, how: dict[str, Any]) -> Iterator[Any]:
    """Parse chunk by chunk; pandas leaves a column with any text in it as text."""
    pd = require("pandas", "CSV files")
    try:
        frames = pd.read_csv(path, **how)
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


def _refuse_text(path: Path, records: Chunks, frame: Any, column: int) -> None:
    """Raise for the first field of a column that is text."""
    pd = require("pandas", "CSV files")
    fields = frame.iloc[:, column]
    is_text = pd.to_numeric(fields.astype(str), errors="coerce").isna() & fields.notna()
    row = int(is_text.to_numpy().argmax())
    time = pd.to_datetime(str(fields.iloc[row]), errors="coerce", format="ISO8601")
    hint = "" if pd.isna(time) else " but a time; turn times into numbers, such as days"
    raise _Refused(f"{path}: {records.place(row, column)} is no number{hint}")


def _csv_lines(path: Path, records: Chunks, how: dict[str, Any]) -> Iterator[Any]:
    """Parse line by line."""
    at = records._label_at
    for lines in lines_of(path, how["chunksize"]):
        fields_in = str.split if at is None else fields_of  # numbers hold no delimiters
        records_of_lines = [fields_in(line, how["sep"]) for line in lines]
        if at is not None:
            texts = [fields.pop(at) if at < len(fields) else "" for fields in records_of_lines]
            labels = read_each(texts, key)
        numbers = [numbers_of(fields, records.n_features) for fields in records_of_lines]
        rows = np.array(numbers).reshape(-1, records.n_features)
        yield rows if at is None else (rows, labels)


def _rows(chunk_size: int | None, n_features: int) -> int:
    """Rows in a chunk."""
    return chunk_size or max(1, _CHUNK_BYTES // (8 * n_features))


_READERS: dict[str, Callable[..., Chunks]] = {
    "hdf5": _hdf5,
    "parquet": _columnar,
    "arrow": _columnar,
    "text": _csv,
    "npy": _npy,
}
