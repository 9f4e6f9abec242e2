"""Columns of a table as coordinates, by declarations that are known without the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from privclust.core.printable import excerpt
from privclust.core.validation import check_parameters
from privclust.records.cells import seconds
from privclust.records.columns import Column, check_kind, column_of
from privclust.records.errors import ReadingError

Declared = tuple[Any, Any] | Sequence[str]
"""A declaration: (low, high) for numbers or dates, a list of names for categories."""
_SIDE = math.sqrt(0.5)  # coordinate of a corner of a simplex with side 1
_DAY = np.timedelta64(1, "D") / np.timedelta64(1, "s")


@dataclass(eq=False, repr=False)
class TableEncoder(TransformerMixin, BaseEstimator):
    r"""Map columns of a table to coordinates between 0 and 1, each row independently.

    For columns of different units before a private estimator. `fit` learns nothing from the data,
    and each row is encoded independently: neighbours stay neighbours, and the guarantee of a
    following estimator holds for the rows of the table. Two rows that differ by the whole range of
    a number, or by a category, are 1 apart in that column.

    Parameters
    ----------
    columns : mapping of str to (low, high) or list of str
        Declaration of each column to use, in the order of the coordinates; other columns are
        ignored. Declarations must not come from private data.

        - ``(low, high)``, numbers, ``low < high``: entries beyond are clipped.
        - ``("2020-01-01", "2024-12-31")``: dates, ISO 8601 or ``numpy.datetime64``, in the same
          way.
        - ``["basic", "plus"]``, a list: the categories, at least two. A row gets a coordinate for
          each: :math:`\sqrt{1/2}` for its own, 0 for the others.
    missing : {"drop", "middle"}
        Treatment of an entry that is missing, or is not a number, a date or one of the categories.
        ``"drop"``: its coordinates are NaN, and a private estimator leaves the row out.
        ``"middle"``: the middle of the range, or the mean of all categories.

    Attributes
    ----------
    bounds_ : (low, high)
        Bounds of the coordinates, arrays of shape (n_coordinates,), for an estimator's `bounds`.
    n_features_in_ : int
        Number of declared columns.

    Raises
    ------
    ValueError
        If a declaration is none of these, or the table lacks a column.

    Examples
    --------
    >>> encoder = TableEncoder({"age": (0, 100), "plan": ["basic", "plus"]})
    >>> table = {"age": [25, 150, None], "plan": ["plus", "basic", "?"]}
    >>> encoder.fit_transform(table).round(2)
    array([[0.25, 0.  , 0.71],
           [1.  , 0.71, 0.  ],
           [ nan,  nan,  nan]])
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'plan=basic', 'plan=plus']
    >>> center = encoder.inverse_transform([[0.4, 0.5, 0.2]])
    >>> {name: values.round(2).tolist() for name, values in center.items()}
    {'age': [40.0], 'plan=basic': [0.71], 'plan=plus': [0.29]}
    """

    n_features_in_: int = field(init=False)

    columns: Mapping[str, Declared]
    _: KW_ONLY
    missing: Literal["drop", "middle"] = "drop"

    def fit(self, X: Any, y: object = None) -> Self:
        """Check the declarations, and that the table X has these columns; nothing else is read."""
        parts = self._parts()
        for part in parts:
            part.column(X)
        self.n_features_in_ = len(parts)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the coordinates of rows, shape (n_samples, n_coordinates).

        Parameters
        ----------
        X : table
            An object with columns by name, ``X[name]``: a frame of pandas or Polars, a table of
            Arrow, a dict of arrays.
        """
        parts = self._parts()
        columns = [part.column(X) for part in parts]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"columns must be of one length, got {sorted(lengths)}")
        coordinates = [
            part.filled(part.encoded(column), self.missing)
            for part, column in zip(parts, columns, strict=True)
        ]
        return np.hstack(coordinates)

    def unread(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return which entries are missing, and which are present but cannot be read.

        Parameters
        ----------
        X : table
            As for `transform`.

        Returns
        -------
        is_missing, is_unreadable : ndarray of shape (n_samples, n_columns), bool
            No entry is both.

        Examples
        --------
        >>> TableEncoder({"age": (0, 100)}).unread({"age": [25, None, "?"]})[1].ravel().tolist()
        [False, False, True]
        """
        parts = self._parts()
        columns = [part.column(X) for part in parts]
        is_nan = [
            np.isnan(part.encoded(column)[:, 0])
            for part, column in zip(parts, columns, strict=True)
        ]
        missing = [column.missing(where) for column, where in zip(columns, is_nan, strict=True)]
        is_missing = np.column_stack(missing)
        return is_missing, np.column_stack(is_nan) & ~is_missing

    def inverse_transform(self, X: Any) -> dict[str, np.ndarray]:
        """Return points, such as centers, in the units of the table, by the names of coordinates.

        For categories these are shares of rows: the nearest nonnegative shares that add up to 1.
        Dates are ``datetime64[s]``. Nothing is clipped to bounds.
        """
        X, decoded, start = np.asarray(X, dtype=float), {}, 0
        for part in self._parts():
            decoded |= part.decoded(X[:, start : start + part.width])
            start += part.width
        return decoded

    def scale(self) -> np.ndarray:
        """Return the size of each coordinate's unit, for standard errors of centers.

        For dates it is in days, for categories in shares.
        """
        return np.concatenate([part.scale for part in self._parts()])

    @property
    def bounds_(self) -> tuple[np.ndarray, np.ndarray]:
        """The box of all coordinates."""
        highs = np.concatenate([part.highs for part in self._parts()])
        return np.zeros(len(highs)), highs

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the coordinates."""
        return np.array([name for part in self._parts() for name in part.names], dtype=object)

    def _parts(self) -> list[Any]:
        check_parameters(self)
        if not isinstance(self.columns, Mapping) or not self.columns:
            raise ValueError("columns must be a mapping of names to bounds or categories")
        return [_part(str(name), declared) for name, declared in self.columns.items()]

    def __sklearn_tags__(self) -> Any:
        """Declare that fitting learns nothing."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


@dataclass(frozen=True)
class _Part:
    """The encoding of a column; `kind` is that of its entries, `middle` replaces missing ones."""

    name: str
    kind: ClassVar[Any]
    middle: ClassVar[Any]

    def column(self, X: Any) -> Column:
        """Return the column of a table, of a type that can hold such entries."""
        try:
            values = X[self.name]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ReadingError(f"the table has no column {self.name!r}") from None
        if len(shape := getattr(values, "shape", (0,))) != 1:
            raise ReadingError(f"column {self.name!r} must have one entry a row, got shape {shape}")
        column = column_of(values)
        check_kind(column.kind, column.type, self.name, self.kind)
        return column

    def filled(self, rows: np.ndarray, missing: str) -> np.ndarray:
        """Return rows (n, width) with NaN kept, or replaced by the middle."""
        return rows if missing == "drop" else np.where(np.isnan(rows), self.middle, rows)


@dataclass(frozen=True)
class _Numbers(_Part):
    """A column of numbers, or of dates in seconds since 1970, between bounds."""

    low: float
    high: float
    is_date: bool
    width = 1
    highs = np.ones(1)
    middle = 0.5

    @property
    def kind(self) -> str:
        return "dates" if self.is_date else "numbers"

    @property
    def names(self) -> list[str]:
        return [self.name]

    @property
    def scale(self) -> Any:
        """The unit of the coordinate: the range, of dates in days."""
        return np.array([(self.high - self.low) / (_DAY if self.is_date else 1.0)])

    def encoded(self, column: Column) -> np.ndarray:
        """Return fractions of the range, (n, 1); NaN for unreadable entries."""
        values = column.seconds() if self.is_date else column.numbers().astype(float)
        inside = np.clip(values, self.low, self.high)
        # clipped again: the quotient may round beyond 1
        return np.clip((inside - self.low) / (self.high - self.low), 0.0, 1.0)[:, None]

    def decoded(self, X: np.ndarray) -> Any:
        values = self.low + X[:, 0] * (self.high - self.low)
        if self.is_date:
            values = values.round().astype("datetime64[s]")
        return {self.name: values}


@dataclass(frozen=True)
class _Categories(_Part):
    categories: tuple[str, ...]
    kind = "categories"

    @property
    def width(self) -> int:
        return len(self.categories)

    @property
    def names(self) -> list[str]:
        return [f"{self.name}={category}" for category in self.categories]

    @property
    def highs(self) -> Any:
        return np.full(self.width, _SIDE)

    @property
    def scale(self) -> Any:
        """The unit of the coordinates: a share."""
        return np.full(self.width, 1.0 / _SIDE)

    @property
    def middle(self) -> float:
        """The coordinates of the mean of all categories."""
        return _SIDE / self.width

    def encoded(self, column: Column) -> np.ndarray:
        """Return corners of a simplex, (n, K); NaN for entries that are no category."""
        found = np.array(column.places(self.categories), dtype=int)
        rows = np.full((len(found), self.width), math.nan)
        known = found >= 0
        rows[known] = 0.0
        rows[known, found[known]] = _SIDE
        return rows

    def decoded(self, X: np.ndarray) -> Any:
        """Return shares of points (n, K)."""
        shares = _nearest_shares(X / _SIDE)
        return dict(zip(self.names, shares.T, strict=True))


def _part(name: str, declared: Any) -> _Numbers | _Categories:
    if isinstance(declared, list):
        categories = tuple(map(str, declared))
        if len(categories) < 2 or len(set(categories)) < len(categories):
            raise ValueError(f"column {name!r}: needs at least two categories, none of them twice")
        return _Categories(name, categories)
    try:
        low, high = declared
        is_date = isinstance(low, str | np.datetime64)
        low, high = (seconds(end) if is_date else float(end) for end in (low, high))
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r}: must be declared as (low, high) or a list of categories"
        ) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        kind = "dates" if is_date else "numbers"
        ends = declared if is_date else [f"{end:.15g}" for end in (low, high)]
        got = " and ".join(map(excerpt, ends))  # bounds are public
        raise ValueError(f"column {name!r}: bounds must be {kind} with low < high, got {got}")
    return _Numbers(name, low, high, is_date)


def _nearest_shares(X: np.ndarray) -> np.ndarray:
    """Return the nearest nonnegative points that add up to 1, row by row."""
    descending = -np.sort(-X, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1.0) / np.arange(1, X.shape[1] + 1)
    # the number of positive shares, minus 1
    last = (descending > excess).sum(axis=1) - 1
    return np.maximum(X - excess[np.arange(len(X)), last][:, None], 0.0)
