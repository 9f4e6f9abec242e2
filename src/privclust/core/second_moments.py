r"""Exact second moments of rows in a ball, for any order, block or BLAS.

Rows are rounded independently to multiples of 2^-16 of a unit slightly larger than the ball's
radius (`unit`). So rounded rows, and their :math:`x x'` in Frobenius norm, have norm at most 1.
Products of such numbers are multiples of 2^-32: matrix products of blocks are exact,
and blocks are added up as integers.

Rounding moves an entry by at most 2^-17 of the unit, and the moments of n rows by at most n 2^-16;
if roundings are independent, by about 2^-17 sqrt(n).
"""

from __future__ import annotations

import numpy as np

from privclust.core.fixed_point import (
    EXACT_ROWS,
    FACTOR_BITS,
    PRODUCT_BITS,
    FixedPoint,
    check_row_count,
    rounded_factors,
    unit_margin,
)

_CHUNK_ROWS = 4096  # rows that are multiplied at a time, as float64


def unit(radius: float, n_features: int) -> float:
    """Return the unit in which rounded rows of norm up to a radius have norm at most 1."""
    return radius * unit_margin(n_features, FACTOR_BITS)


def in_units(rows: np.ndarray, unit: float) -> np.ndarray:
    """Return rows divided by a unit and rounded to multiples of 2^-16, each independently.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features), float64 or float32
        In C order, of magnitude up to 2^34 units.
    unit : float
        Positive.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64

    Examples
    --------
    >>> in_units(np.array([[1.0, -3.0]]), 2.0)
    array([[ 0.5, -1.5]])
    """
    return rounded_factors(np.asarray(rows, dtype=np.float64) / unit)


class MomentSums:
    """Exact sums of x x' over rows of each of several groups, added up block by block.

    Examples
    --------
    >>> sums = MomentSums(1, 2)
    >>> sums.add(0, np.array([[1.0, 0.5]]))
    >>> np.asarray(sums.total())
    array([[[1.  , 0.5 ],
            [0.5 , 0.25]]])
    """

    def __init__(self, n_groups: int, n_features: int) -> None:
        self._integers = np.zeros((n_groups, n_features, n_features), dtype=np.int64)
        self._pending = np.zeros(self._integers.shape)
        self._n_pending = 0

    def add(self, group: int, rows: np.ndarray) -> None:
        """Add at most 2^20 rows, as `in_units` returns them, of norm up to 1, to one group."""
        # Rows of all groups count together. No group has more, so each sum of doubles is exact.
        if self._n_pending + len(rows) > EXACT_ROWS:
            self._settle()
        self._n_pending += len(rows)
        self._pending[group] += rows.T @ rows

    def total(self) -> FixedPoint:
        """Return the sums, (n_groups, n_features, n_features), multiples of 2^-32."""
        self._settle()
        # a copy: later rows are added to the integers in place
        return FixedPoint(self._integers.copy(), PRODUCT_BITS)

    def _settle(self) -> None:
        """Convert exact doubles to integers, which have a larger range."""
        self._integers += FixedPoint.of_exact(self._pending, PRODUCT_BITS).integers
        self._pending[:] = 0.0
        self._n_pending = 0


def second_moments(rows: np.ndarray, unit: float) -> FixedPoint:
    """Return the exact sum of x x' over rows in units, for the addition of noise.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features), float64 or float32
        In C order, of norm up to the radius of the unit; any number of rows.
    unit : float
        See `unit`.

    Returns
    -------
    FixedPoint of shape (n_features, n_features)

    Raises
    ------
    ValueError
        If there are too many rows for exact sums.

    Examples
    --------
    >>> np.asarray(second_moments(np.array([[2.0, 0.0], [0.0, 1.0]]), 2.0))
    array([[1.  , 0.  ],
           [0.  , 0.25]])
    """
    check_row_count(len(rows))
    sums = MomentSums(1, rows.shape[1])
    for start in range(0, len(rows), _CHUNK_ROWS):
        sums.add(0, in_units(rows[start : start + _CHUNK_ROWS], unit))
    return sums.total()[0]
