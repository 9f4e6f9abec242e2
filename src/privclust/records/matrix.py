"""The rows of X as numbers, from arrays, frames and lists, with each cell read separately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from privclust.core.printable import excerpt
from privclust.records.columns import COMPLEX, Column, column_of, columns_of, is_frame
from privclust.records.errors import ReadingError

_ROWS_ARE_NO_ROWS = (str, bytes, bytearray, dict, set, frozenset)


def numbers_of_table(X: Any, width: int | None = None) -> Any:
    """Return a table as an array of numbers, NaN for cells that are no numbers.

    A table is refused by the types of its container only, never by a cell. An object that is not a
    table (one-dimensional, sparse, complex) is returned unchanged, and refused by scikit-learn.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        An array of numbers is returned itself. Arrays of objects, and lists of rows, are read cell
        by cell. Shorter rows lack cells, and surplus cells of longer rows are ignored.
    width : int or None
        The number of columns of a list of rows, if known. None: that of most rows.

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Raises
    ------
    ReadingError
        If a column has a type without numbers, such as text, times or objects in a frame.

    Examples
    --------
    >>> numbers_of_table([[1, "2"], ["three", None], [4]])
    array([[ 1.,  2.],
           [nan, nan],
           [ 4., nan]])
    """
    if is_frame(X):
        return _of_frame(X)
    if isinstance(X, Sequence) and not isinstance(X, str | bytes | bytearray | memoryview):
        return _of_rows(X, width)
    if not isinstance(X, np.ndarray):
        # sparse matrices have toarray
        if not hasattr(X, "__array__") or hasattr(X, "toarray"):
            return X
        X = np.asarray(X)
    return _of_array(X)


def _of_array(X: np.ndarray) -> np.ndarray:
    kind = X.dtype.kind
    if kind not in "biufcO":
        what = "text" if kind in "UST" else excerpt(X.dtype)
        hint = "; turn times into numbers, such as days" if kind in "mM" else ""
        raise ReadingError(f"X holds {what}, not numbers{hint}")
    if X.ndim != 2 or kind == "c" or (kind in "biuf" and not isinstance(X, np.ma.MaskedArray)):
        return X
    return column_of(X.reshape(-1)).numbers().reshape(X.shape)


def _of_frame(X: Any) -> np.ndarray:
    columns: list[np.ndarray] = []
    for name, values in columns_of(X):
        column = column_of(values)
        if column.kind == COMPLEX:
            # the message of scikit-learn, for which its check_estimator looks
            raise ValueError("Complex data not supported")
        _check_of_frame(name, column)
        columns.append(column.numbers())
    rows = np.empty((len(X), len(columns)))
    for j, column in enumerate(columns):
        rows[:, j] = column
    return rows


def _check_of_frame(name: str, column: Column) -> None:
    """Refuse types other than numbers, such as text, whatever the cells are."""
    if column.kind != "number":
        hint = "; declare its values with TableEncoder"
        if column.kind in ("time", "duration"):
            hint = "; declare its bounds with TableEncoder, or turn it into numbers"
        elif column.kind == "any":
            hint = "; give it a type of numbers, as by pandas.to_numeric"
        raise ReadingError(
            f"column {excerpt(name)!r} of X holds {excerpt(column.type)}, not numbers{hint}"
        )


def _of_rows(X: Sequence[Any], width: int | None) -> Any:
    """Return rows of a list as numbers; an object that is not a row has no cells."""
    if width is None:
        lengths = Counter(map(_length, X))
        most = max(lengths.values(), default=0)
        # in a tie the longest, so that no cell is ignored
        width = max((length for length, count in lengths.items() if count == most), default=-1)
    if width < 0:  # no rows, or most entries are numbers, not rows
        # of one dimension: scikit-learn refuses it by its shape
        return np.full(len(X), np.nan)
    rows = np.full((len(X), width), np.nan)
    for row, values in zip(rows, X, strict=True):
        if _length(values) > 0:
            cells = _numbers_of_row(values, width)
            row[: len(cells)] = cells
    return rows


def _length(row: Any) -> int:
    """Return the number of cells of a row; -1 for an object that is no row."""
    try:
        if isinstance(row, _ROWS_ARE_NO_ROWS) or not hasattr(row, "__len__"):
            return -1
        return len(row)
    except Exception:  # an array without dimensions, or an error of a user's class
        return -1


def _numbers_of_row(row: Any, width: int) -> np.ndarray:
    """Return at most `width` cells of one row as numbers."""
    try:
        # cut first: surplus cells are not read
        row = row[:width] if hasattr(row, "__getitem__") else list(islice(row, width))
        column = column_of(row)
        cells = column.numbers() if column.kind in ("number", "any", "text") else np.empty(0)
        # a user's class may ignore the slice
        return cells if cells.ndim == 1 and len(cells) <= width else np.empty(0)
    except Exception:  # any behaviour of a user's class
        return np.empty(0)
