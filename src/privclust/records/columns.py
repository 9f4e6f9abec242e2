"""Columns of any container, read by the type that the container declares, never by their cells.

A container (NumPy, pandas, Arrow, Polars, a list) declares the type of a column. A column of an
unsuitable type is refused, whatever its cells are. In all others each cell is read separately
(`privclust.records.cells`): by compiled code for types of numbers or times, otherwise cell by cell,
with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from privclust.core.packages import require
from privclust.core.printable import excerpt
from privclust.records.cells import is_missing, key, number, read_each, seconds_of_times, text_of
from privclust.records.errors import ReadingError
from privclust.records.notation import USUAL, Notation

ANY, NUMBER, TIME, DURATION, TEXT = "any", "number", "time", "duration", "text"
CATEGORY, COMPLEX, NESTED = "category", "complex", "nested"
_PLAIN = r"^-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?$"  # texts of numbers that Arrow accepts
_Value = TypeVar("_Value")
_KINDS = {"b": NUMBER, "i": NUMBER, "u": NUMBER, "f": NUMBER, "M": TIME, "m": DURATION}
_KINDS |= {"U": TEXT, "S": TEXT, "T": TEXT, "c": COMPLEX, "V": NESTED}
_HELD = {  # the possible declarations of each kind of column
    "numbers": (ANY, NUMBER, TEXT, CATEGORY),
    "dates": (ANY, TIME, TEXT, CATEGORY),
    "categories": (ANY, NUMBER, TEXT, CATEGORY, TIME),
    "persons": (ANY, NUMBER, TEXT, CATEGORY, TIME),
}


@dataclass(frozen=True)
class Column:
    """The cells of a column, and the type that its container declares.

    Attributes
    ----------
    cells : ndarray, pyarrow.Array or list
        An array of booleans, integers, floats or ``datetime64``, an Arrow array of texts, or a list
        of Python objects.
    kind : str
        ``"number"``, ``"time"``, ``"duration"``, ``"text"``, ``"category"``, ``"complex"``,
        ``"nested"``, or ``"any"`` if the container has no type.
    type : str
        The container's name of the type.
    notation : Notation
        Notation of numbers and dates in texts.
    """

    cells: Any
    kind: str
    type: str
    notation: Notation = USUAL

    def __len__(self) -> int:
        return len(self.cells)

    def cell(self, at: int) -> Any:
        """Return one cell as an object of Python or NumPy, by its row."""
        if isinstance(self.cells, np.ndarray | list):
            return self.cells[at]
        return _objects(self.cells.slice(at, 1))[0]

    def _each(self, read: Callable[[Any], _Value]) -> list[_Value]:
        """Return a function of each cell, called once for each different cell."""
        if isinstance(self.cells, list):
            return read_each(self.cells, read)
        if isinstance(self.cells, np.ndarray):
            values, places = np.unique(self.cells, return_inverse=True)  # NaN and NaT are one
        else:
            encoded = self.cells.dictionary_encode()
            # nulls have no code: theirs is that of the added None
            values = [*_objects(encoded.dictionary), None]
            places = encoded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
        results = [read(value) for value in values]
        return [results[place] for place in places.reshape(-1).tolist()]

    def numbers(self) -> np.ndarray:
        """Return the cells as floats, (n,): NaN for a cell that is no number.

        float32 and float16 become float32, all others float64.
        """
        if isinstance(self.cells, np.ndarray) and self.kind == NUMBER:
            is_short = self.cells.dtype.kind == "f" and self.cells.dtype.itemsize <= 4
            return self.cells.astype(np.float32 if is_short else np.float64, copy=False)
        if isinstance(self.cells, np.ndarray):
            return np.full(len(self.cells), np.nan)
        if isinstance(self.cells, list):
            return np.array([self.notation.number(cell) for cell in self.cells], dtype=float)
        if self.notation != USUAL:
            return np.array(self._each(self.notation.number), dtype=float)
        return _numbers_of_texts(self.cells)

    def seconds(self) -> np.ndarray:
        """Return dates and times in seconds since 1970, (n,): NaN for other cells."""
        if isinstance(self.cells, np.ndarray):
            if self.kind == TIME:
                return seconds_of_times(self.cells)
            return np.full(len(self.cells), np.nan)
        return np.array(self._each(self.notation.seconds), dtype=float)

    def keys(self) -> list[str | None]:
        """Return the keys of persons or categories; None for missing cells."""
        return self._each(key)

    def places(self, categories: Sequence[str]) -> list[int]:
        """Return the index of the category of each cell; -1 if it is none of them.

        A text that equals a category belongs to it; otherwise equal keys decide, so that 3.0 is the
        category "3".
        """
        by_key: dict[str | None, int] = {}
        # reversed: of two categories with one key the first is kept
        for place, category in reversed(list(enumerate(categories))):
            by_key[key(category)] = place
        by_key.pop(None, None)  # a category such as "NA" needs an exact match
        by_text = {category: place for place, category in enumerate(categories)}

        def place_of(cell: Any) -> int:
            # isinstance would ask the cell for its class, and a user's class may raise
            name = text_of(cell) if issubclass(type(cell), str | bytes) else None
            return by_text[name] if name in by_text else by_key.get(key(cell), -1)

        return self._each(place_of)

    def missing(self, where: np.ndarray) -> np.ndarray:
        """Return which of the cells at these places (n,) are missing, (n,) of bool."""
        is_one = np.zeros(len(self), dtype=bool)
        for at in np.flatnonzero(where).tolist():
            is_one[at] = is_missing(self.cell(at))
        return is_one

    def codes(self) -> tuple[np.ndarray, int]:
        """Return the number of each person, (n,) int64 (-1 for missing cells), and their count."""
        if isinstance(self.cells, np.ndarray):
            values, places = np.unique(self.cells, return_inverse=True)
            places = places.astype(np.int64).reshape(-1)
            if len(values) and values[-1] != values[-1]:  # NaN and NaT are sorted last
                places[places == len(values) - 1] = -1
                return places, len(values) - 1
            return places, len(values)
        known: dict[str, int] = {}
        keys = self.keys()
        codes = [-1 if name is None else known.setdefault(name, len(known)) for name in keys]
        return np.array(codes, dtype=np.int64), len(known)


def check_kind(kind: str, type_name: str, name: str, what: str) -> None:
    """Raise a ReadingError if a kind of column does not suit its declared use.

    `what` is ``"numbers"``, ``"dates"``, ``"categories"`` or ``"persons"``; the names of a column
    and of its type are public.
    """
    if kind in _HELD[what]:
        return
    hint = ""
    if kind in (TIME, DURATION) and what == "numbers":
        hint = "; turn times into numbers, such as days" + (
            ", or declare dates as bounds (TableEncoder)" if kind == TIME else ""
        )
    raise ReadingError(f"column {excerpt(name)!r} holds {excerpt(type_name)}, not {what}{hint}")


def column_of(column: Any) -> Column:
    """Return a column of any container.

    Parameters
    ----------
    column : array-like of shape (n,)
        An array of NumPy (also masked), a series of pandas or Polars, an array of Arrow, a list, or
        any other input of ``numpy.asarray``.
    """
    if isinstance(column, Column):
        return column
    if isinstance(column, np.ndarray):
        return _of_numpy(column)
    package = package_of(column)
    if package in _READERS:
        return _READERS[package](column)
    if hasattr(column, "__array__"):
        return _of_numpy(np.asarray(column))
    return Column(list(column), ANY, type(column).__name__)


def package_of(container: Any) -> str:
    """Return the package of a container's class, or of the first parent that has a reader."""
    names = [kind.__module__.partition(".")[0] for kind in type(container).__mro__]
    return next((name for name in names if name in _READERS), "")


def _of_numpy(array: np.ndarray) -> Column:
    kind = _KINDS.get(array.dtype.kind, ANY)
    if isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        if array.dtype.kind == "f":
            return Column(array.filled(np.nan), kind, str(array.dtype))
        cells = [None if cell is np.ma.masked else cell for cell in array]
        return Column(cells, kind, str(array.dtype))
    array = np.asarray(array)
    cells = array if kind in (NUMBER, TIME) else list(array)
    return Column(cells, kind, str(array.dtype))


def _of_pandas(series: Any) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return _of_numpy(np.asarray(series))
    name, text = type(dtype).__name__, str(dtype)
    if name == "ArrowDtype" or (name == "StringDtype" and dtype.storage == "pyarrow"):
        return replace(_of_arrow(getattr(series, "array", series).__arrow_array__()), type=text)
    if name == "CategoricalDtype":  # use the codes: NaN would convert integer categories to floats
        values = column_of(dtype.categories).cells
        if isinstance(values, np.ndarray) and values.dtype.kind != "M":
            values = values.tolist()
        codes = getattr(series, "cat", series).codes
        return Column([None if code < 0 else values[code] for code in codes], CATEGORY, text)
    if name == "DatetimeTZDtype":
        return Column(np.asarray(series, dtype=f"datetime64[{dtype.unit}]"), TIME, text)
    if name == "SparseDtype":
        return _of_numpy(np.asarray(series))
    plain = getattr(dtype, "numpy_dtype", None)  # of Int64, Float32, boolean
    if plain is not None and plain.kind in "biuf":
        if not series.isna().any():
            return Column(series.to_numpy(dtype=plain), NUMBER, text)
        if plain.kind == "f":
            return Column(series.to_numpy(dtype=plain, na_value=np.nan), NUMBER, text)
    # integers with missing values stay objects: as floats they are inexact above 2^53
    kind = TEXT if name == "StringDtype" else NESTED
    return Column(
        np.asarray(series, dtype=object).tolist(), NUMBER if plain is not None else kind, text
    )


def _of_polars(series: Any) -> Column:
    if str(series.dtype).startswith("Object"):
        return Column(series.to_list(), ANY, str(series.dtype))
    return _of_arrow(series.to_arrow())


def kind_of_arrow(kind: Any) -> str:
    """Return the kind of columns of an Arrow type."""
    from pyarrow import types

    if types.is_dictionary(kind):
        inner = kind_of_arrow(kind.value_type)
        return CATEGORY if inner == TEXT else inner
    if isinstance(kind, _extension_type()):
        return kind_of_arrow(kind.storage_type)
    if types.is_run_end_encoded(kind):
        return kind_of_arrow(kind.value_type)
    if types.is_null(kind):
        return ANY
    is_whole = types.is_integer(kind) or types.is_boolean(kind)
    if is_whole or types.is_floating(kind) or types.is_decimal(kind):
        return NUMBER
    if types.is_date(kind) or types.is_timestamp(kind):
        return TIME
    if types.is_time(kind) or types.is_duration(kind) or types.is_interval(kind):
        return DURATION
    return NESTED if types.is_nested(kind) or types.is_union(kind) else TEXT


def _extension_type() -> Any:
    return require("pyarrow", "tables").BaseExtensionType


def _of_arrow(array: Any) -> Column:
    from pyarrow import types

    kind, text = kind_of_arrow(array.type), str(array.type)
    if isinstance(array.type, _extension_type()):
        chunks = array.chunks if hasattr(array, "chunks") else [array]
        storage = require("pyarrow", "tables").chunked_array(
            [chunk.storage for chunk in chunks], array.type.storage_type
        )
        return Column(_of_arrow(storage).cells, kind, text)
    if types.is_run_end_encoded(array.type):
        array = require("pyarrow.compute", "tables").run_end_decode(array)
        return Column(_of_arrow(array).cells, kind, text)
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if types.is_string(array.type) or types.is_large_string(array.type):
        return Column(_one_array(array), kind, text)
    whole = types.is_integer(array.type) or types.is_boolean(array.type)
    # integers with nulls would become floats, which are inexact above 2^53
    is_plain = types.is_floating(array.type) or (whole and not array.null_count)
    if is_plain or kind == TIME:
        is_in_chunks = hasattr(array, "chunks")
        cells = array.to_numpy() if is_in_chunks else array.to_numpy(zero_copy_only=False)
        return Column(cells, kind, text)
    return Column(_objects(array), kind, text)


def _one_array(array: Any) -> Any:
    if not hasattr(array, "chunks"):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _numbers_of_texts(array: Any) -> np.ndarray:
    """Return texts as floats, by Arrow's cast if it accepts all, otherwise by `number`."""
    import pyarrow
    from pyarrow import compute

    try:
        return array.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        # One text made the cast of all fail. Plain numbers are still cast together.
        is_plain = compute.match_substring_regex(array, _PLAIN).fill_null(False)
    values = np.empty(len(array))
    where = is_plain.to_numpy(zero_copy_only=False)
    values[where] = array.filter(is_plain).cast(pyarrow.float64())
    values[~where] = [number(cell) for cell in _objects(array.filter(compute.invert(is_plain)))]
    return values


def _objects(array: Any) -> list[Any]:
    """Return the entries of an Arrow array as Python objects; invalid UTF-8 as bytes."""
    try:
        return array.to_pylist()
    except UnicodeDecodeError:
        entries = array.cast(require("pyarrow", "tables").large_binary()).to_pylist()
        return [_text_or_bytes(entry) for entry in entries]


def _text_or_bytes(entry: bytes | None) -> str | bytes | None:
    """Return an entry as text if it is UTF-8, independently of the others."""
    try:
        return None if entry is None else entry.decode()
    except UnicodeDecodeError:
        return entry


_READERS: dict[str, Callable[[Any], Column]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
}


def columns_of(table: Any) -> list[tuple[str, Any]]:
    """Return names and columns of a frame of pandas or Polars, or a table of Arrow, in order."""
    if package_of(table) == "pandas":
        return [(str(name), table.iloc[:, i]) for i, name in enumerate(table.columns)]
    if package_of(table) == "pyarrow":
        return list(zip(table.schema.names, table.columns, strict=True))
    return [(series.name, series) for series in table.get_columns()]


def is_frame(table: Any) -> bool:
    """Return whether a table has columns with types of their own."""
    package = package_of(table)
    # the shape distinguishes frames from series, which have iloc as well
    has = {"pandas": "iloc", "polars": "get_columns", "pyarrow": "schema"}.get(package, "")
    return bool(has) and hasattr(table, has) and len(getattr(table, "shape", ())) == 2
