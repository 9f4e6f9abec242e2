r"""Exact sums of even moments of directions, one entry for each sorted index.

Each row is scaled to a direction u of norm 1 (`privclust.privacy.bounds.directions`), or stays 0.
Products of pairs, :math:`u_i u_j`, are rounded to multiples of 2^-18. A moment of degree 4 is a
product of two pairs. A moment of degree 6 is such a product, rounded to multiples of 2^-18, times
another pair. All moments are therefore multiples of 2^-36, and their sums, by matrix products of
blocks, are exact: they do not depend on the order of rows, on blocks, processes or BLAS. Sorted
indices are grouped by a middle index (`privclust.sketches._harmonics`), so that each distinct entry
is summed once: d^4 / 24 multiplications per row instead of d^4.

**Effect of rounding on the sensitivity** (`rounding_margin`). With :math:`\delta = 2^{-19}` the
error of a pair is at most :math:`\delta`, and that of all :math:`d^2` pairs :math:`d \delta` in
Frobenius norm. The error of a product of two pairs p, p' is at most
:math:`\delta (|p| + |p'|) + \delta^2`. Over all :math:`d^4` entries :math:`\sum p^2 \le 6 d^2`,
since p takes two of four places, in 6 ways, and :math:`\sum u_i^2 u_j^2 = 1`. The total is
:math:`2 \sqrt 6\, d \delta + d^2 \delta^2`. Products of three pairs p, p', q with p p' rounded
first have an error of :math:`\delta (|p p'| + |q p| + |q p'| + |q|) + \dots`, over :math:`d^6`
entries less than :math:`5 \sqrt{15}\, d^2 \delta (1 + d \delta)`. Trace corrections are of lower
degrees, and :math:`\|E^j S\| \le d^{j/2} \|S\|`. The last rounding of harmonic sums, down to
multiples of 2^-36, changes each of :math:`d^l` entries of a difference by less than one unit.

**Groups** of several rows, such as persons, count as one row each (`group_sums`): the mean over
the rows of the group. The margin for rounding the mean follows `privclust.privacy.groups`, with the
same bounds: one unit in every entry is an error of :math:`d^{l/2}` in degree l, and with trace
corrections at most :math:`\sum_j |h_j| d^{(l-j)/2}`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from privclust.core.fixed_point import FixedPoint
from privclust.privacy.bounds import directions
from privclust.privacy.groups import Groups, by_size, weighted_sums
from privclust.sketches._harmonics import (
    insertions,
    n_moments,
    sorted_indices,
    squared_length,
    trace_coefficients,
)

_PAIR_BITS = 18
MOMENT_BITS = 2 * _PAIR_BITS
LARGEST_ROWS = 2**26  # sums of multiples of 2^-36 then fit in 64 bits
_ROUNDER = 1.5 * 2.0 ** (52 - _PAIR_BITS)
_BLOCK_ENTRIES = 1 << 20  # pairs per block; sums of fewer than 2^17 rows are exact in float64
_MOST_BLOCK_ROWS = 1 << 14
_OFF = 2.0 ** (-_PAIR_BITS - 1) * (1.0 + 2.0**-20)  # error of a pair, with that of directions


class HarmonicSums:
    """Exact sums over rows of the even moments of their directions.

    Parameters
    ----------
    n_features : int
        d.
    degree : {2, 4, 6}
        Largest degree; lower even degrees are included.

    Attributes
    ----------
    n_samples : int
        Number of rows added.
    n_directions : int
        Number of nonzero rows.
    integers : dict of int to ndarray of int64
        By degree from 0: multiples of 2^-36, in the order of the sorted indices.

    Examples
    --------
    >>> sums = HarmonicSums(2, 2).add(np.array([[2.0, 0.0], [0.0, 0.0], [3.0, 4.0]]))
    >>> sums.n_samples, sums.n_directions, np.asarray(sums.moments(2)).round(4).tolist()
    (3, 2, [1.36, 0.48, 0.64])
    """

    def __init__(self, n_features: int, degree: int = 4) -> None:
        self.n_features, self.degree, self.n_samples = n_features, degree, 0
        self.integers = {
            lower: np.zeros(n_moments(n_features, lower), dtype=np.int64)
            for lower in range(0, degree + 1, 2)
        }

    @property
    def n_directions(self) -> int:
        """Number of rows that are not 0."""
        return int(self.integers[0][0]) >> MOMENT_BITS

    def add(self, X: np.ndarray) -> Self:
        """Add rows (n, n_features) of any floats, or raise a ValueError if there are too many."""
        if self.n_samples + len(X) > LARGEST_ROWS:
            raise ValueError(f"exact sums have room for {LARGEST_ROWS:,} rows, and X has more")
        width = n_moments(self.n_features, max(self.degree - 2, 2))
        size = min(_MOST_BLOCK_ROWS, max(64, _BLOCK_ENTRIES // width))
        for start in range(0, len(X), size):
            self._add_block(directions(X[start : start + size]))
        self.n_samples += len(X)
        return self

    def moments(self, degree: int) -> FixedPoint:
        """Return the sums of one degree."""
        return FixedPoint(self.integers[degree], MOMENT_BITS)

    def harmonics(self, degree: int) -> FixedPoint:
        """Return the entries of the trace-free part of the sums, exact up to one rounding.

        The trace correction is a rational combination of lower sums, computed exactly and rounded
        down once.
        """
        d, total = self.n_features, self.integers[degree].copy()
        divisors = [d + 2 * degree - 2 - 2 * i for i in range(1, degree // 2 + 1)]
        # entries with two equal indices: E inserts nothing elsewhere
        touched = np.flatnonzero(np.diff(insertions(d, degree).indptr))
        exact = np.zeros(len(touched), dtype=object)
        for j in range(1, degree // 2 + 1):
            inserted = self.integers[degree - 2 * j].astype(object)
            for higher in range(degree - 2 * j + 2, degree + 1, 2):
                matrix = insertions(d, higher)
                if higher == degree:
                    matrix = matrix[touched]
                inserted = _times(matrix, inserted)
            # over a common denominator; the insertions count each set of j pairs j! times
            whole = math.prod(divisors[j:])
            exact += (-1) ** j * (whole * inserted // math.factorial(j))
        total[touched] += (exact // math.prod(divisors)).astype(np.int64)
        return FixedPoint(total, MOMENT_BITS)

    def _add_block(self, rows: np.ndarray) -> None:
        """Add directions; every sum of products is exact in float64."""
        d = self.n_features
        first, second = sorted_indices(d, 2).astype(np.intp).T
        pairs = _rounded(rows[:, first] * rows[:, second])
        self.integers[0] += np.int64(np.count_nonzero(rows.any(axis=1))) << MOMENT_BITS
        self.integers[2] += _integers(pairs.sum(axis=0))
        heads, ends = pairs, second
        for degree in range(4, self.degree + 1, 2):
            is_last = degree == self.degree
            products, start = [], 0
            # pairs (k, l) with k >= j begin at tails[j]
            tails = np.searchsorted(first, np.arange(d))
            for j in range(d):
                left, right = heads[:, ends == j], pairs[:, tails[j] :]
                stop = start + left.shape[1] * right.shape[1]
                sums = (left.T @ right).ravel()
                self.integers[degree][start:stop] += _integers(sums)
                if not is_last:
                    products.append((left[:, :, None] * right[:, None]).reshape(len(rows), -1))
                start = stop
            if not is_last:
                heads = _rounded(np.hstack(products))
                ends = sorted_indices(d, degree)[:, -1]


def group_sums(X: np.ndarray, groups: Groups | None, degree: int) -> HarmonicSums:
    """Return sums over groups of rows (n, n_features), in which each group weighs as much as a row.

    `n_samples` is the number of groups; a ValueError is raised if there are more than
    `LARGEST_ROWS`. None: each row is a group.
    """
    d, total = X.shape[1], HarmonicSums(X.shape[1], degree)
    total.n_samples = len(X) if groups is None else groups.count
    if total.n_samples > LARGEST_ROWS:
        raise ValueError(f"exact sums have room for {LARGEST_ROWS:,} groups, and there are more")
    sums = ((size, HarmonicSums(d, degree).add(rows)) for size, rows in by_size(groups, X))
    terms = ((size, [own.moments(each) for each in own.integers]) for size, own in sums)
    parts = weighted_sums(terms, _spread(d, list(total.integers)))
    for integers, part in zip(total.integers.values(), parts, strict=True):
        integers += part.integers
    return total


def _spread(n_features: int, degrees: Iterable[int]) -> float:
    """Return a bound on the norm of the features of sums with one unit in every entry."""
    d, squares = n_features, 0.0
    for degree in degrees:
        coefficients = trace_coefficients(d, degree) if degree else [1.0]
        length = sum(abs(c) * d ** ((degree - j) / 2) for j, c in enumerate(coefficients))
        squares += _of_entry(d, degree, 1.0) * length**2
    return math.sqrt(squares)


def rounding_margin(n_features: int, weights: dict[int, float]) -> float:
    """Return a bound on the rounding error of the features of a row, in Euclidean norm.

    Examples
    --------
    >>> rounding_margin(5, {2: 0.2, 4: 0.8}) < 1e-4, rounding_margin(50, {2: 0.2, 4: 0.8}) < 1e-3
    (True, True)
    """
    d = n_features
    off = {
        0: 0.0,
        2: d * _OFF,
        4: 2.0 * math.sqrt(6.0) * d * _OFF + (d * _OFF) ** 2,
        6: 5.0 * math.sqrt(15.0) * d**2 * _OFF * (1.0 + d * _OFF),
    }
    squares = 0.0
    for degree, weight in weights.items():
        coefficients = trace_coefficients(d, degree) if degree else [1.0]
        whole = sum(
            abs(coefficient) * d ** (j / 2) * off[degree - 2 * j]
            for j, coefficient in enumerate(coefficients)
        )
        squares += _of_entry(d, degree, weight) * whole**2
    return math.sqrt(squares) + last_rounding(d, weights)


def last_rounding(n_features: int, weights: Mapping[int, float]) -> float:
    """Return a bound on the change of a difference of two harmonic sums by the last rounding."""
    d = n_features
    squares = sum(_of_entry(d, degree, weight) * d**degree for degree, weight in weights.items())
    return 2.0**-MOMENT_BITS * math.sqrt(squares)


def _of_entry(n_features: int, degree: int, weight: float) -> float:
    """Return the squared factor that turns entries of harmonic moments into features."""
    return weight / (squared_length(n_features, degree) if degree else 1.0)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round numbers of magnitude up to 1 to multiples of 2^-18, in place."""
    values += _ROUNDER  # pushes the bits below 2^-18 out of the mantissa
    values -= _ROUNDER
    return values


def _integers(sums: np.ndarray) -> np.ndarray:
    """Return exact float64 values as integer multiples of 2^-36."""
    return FixedPoint.of_exact(sums, MOMENT_BITS).integers


def _times(matrix: Any, integers: np.ndarray) -> np.ndarray:
    """Return a sparse matrix of small integers times a vector of Python integers."""
    columns, starts = integers[matrix.indices] * matrix.data.astype(object), matrix.indptr
    # differences of running sums: SciPy has no Python integers, and reduceat no empty rows
    sums = np.concatenate([[0], np.cumsum(columns)]) if len(columns) else np.zeros(1, dtype=object)
    return sums[starts[1:]] - sums[starts[:-1]]
