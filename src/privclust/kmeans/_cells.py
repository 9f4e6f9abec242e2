r"""Counts of the cells of a box, halved along every axis from level to level.

Level i cuts the box into :math:`2^{d i}` equal cells. A cell is numbered by the bits of its place
along each axis, interleaved. Dropping the last d bits of a number gives the enclosing cell of the
level above. The numbers of the rows' deepest cells are sorted once. The rows in a cell of any level
are then a contiguous range of the sorted numbers, so its exact count takes two binary searches.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from privclust.core.compiled import kernel
from privclust.core.fixed_point import FixedPoint
from privclust.privacy.bounds import Box
from privclust.privacy.groups import UNIT_BITS, Groups

_STEPS = 30  # iterations of expectation-maximisation
_EMPTY = 0.02, 0.98  # range of the estimated fraction of empty cells


class Cells:
    """The exact counts of the cells of a box at every level.

    A row outside the box is in the nearest cell; NaN is replaced by the middle of the box. With
    groups, a row counts its `Groups.units`. depth * n_features must be at most 62.
    """

    def __init__(self, X: np.ndarray, box: Box, depth: int, groups: Groups | None = None) -> None:
        self.box, self.depth = box, depth
        self._numbers = np.empty(len(X), dtype=np.int64)
        widths = 2.0 * box.half_widths
        # along a flat axis, of a box from the data, all rows are in the first cell
        scales = np.divide(2.0**depth, widths, out=np.zeros(len(widths)), where=widths > 1e-300)
        _number(X, box.low, scales, depth, self._numbers)
        self._units = None
        if groups is None:
            self._numbers.sort()
        else:
            order = np.argsort(self._numbers, kind="stable")
            self._numbers = self._numbers[order]
            self._units = np.concatenate([[0], np.cumsum(groups.units[order])])

    def counts(self, cells: np.ndarray, level: int) -> np.ndarray | FixedPoint:
        """Return the exact number of rows (or sum of units) in cells of a level, (n_cells,)."""
        shift = len(self.box.low) * (self.depth - level)
        # the deepest cells inside a cell have the numbers from cell << shift on
        ends = [np.searchsorted(self._numbers, part << shift) for part in (cells, cells + 1)]
        if self._units is None:
            return (ends[1] - ends[0]).astype(float)
        return FixedPoint(self._units[ends[1]] - self._units[ends[0]], UNIT_BITS)

    def middles(self, cells: np.ndarray, level: int | np.ndarray) -> np.ndarray:
        """Return the middles of cells of a level, or of a level each, (n_cells, n_features)."""
        d = len(self.box.low)
        places = np.zeros((len(cells), d))
        # the bits of the axes are interleaved, those of the last axis first
        for bit in range(d * int(np.max(level, initial=0))):
            axis = d - 1 - bit % d
            places[:, axis] += ((cells >> bit) & 1) << (bit // d)
        widths = 2.0 * self.box.half_widths / 2.0 ** np.asarray(level)[..., None]
        return self.box.low + (places + 0.5) * widths


def children(cells: np.ndarray, n_features: int) -> np.ndarray:
    """Return the numbers of the cells of the next level inside some cells, in the same order."""
    parts = np.arange(2**n_features, dtype=np.int64)
    return ((cells[:, None] << n_features) + parts).ravel()


def counts_behind(noisy: np.ndarray, totals: np.ndarray, sigma: float) -> np.ndarray:
    """Estimate the counts of cells from noisy counts (n_blocks, n_cells) and their blocks' totals.

    The model is a spike and a slab. An empty cell has only noise, of deviation sigma. A cell with
    rows has a count uniform on [0, Z] plus noise, where Z is twice the mean count of the cells with
    rows in its block. The fraction of empty cells is estimated by expectation-maximisation. The
    estimate is the noisy count times the probability that the cell has rows, or 0 if that is below
    one half. Then each block is projected onto the nonnegative counts with the sum of its total.
    Each row that is returned is nonnegative, and sums to its total or is 0.
    """
    if not noisy.size:
        return noisy
    z, empty = noisy / sigma, 0.5
    most = (totals / sigma)[:, None]
    for _ in range(_STEPS):
        real = _is_real(z, most, empty)
        empty = float(np.clip(1.0 - real.mean(), *_EMPTY))
    real = _is_real(z, most, empty)
    shares = _projected(real * np.maximum(noisy, 0.0), totals) * (real > 0.5)
    sums = shares.sum(axis=1, keepdims=True)
    return np.divide(shares * totals[:, None], sums, out=np.zeros(z.shape), where=sums > 0.0)


def _is_real(z: np.ndarray, most: np.ndarray, empty: float) -> np.ndarray:
    """Return the probability that each cell has rows; z and `most` are in units of sigma."""
    width = np.maximum(1.0, most * min(1.0, 2.0 / (z.shape[1] * (1.0 - empty))))
    # the density of a uniform number on [0, width] plus a standard normal one
    slab = (1.0 - empty) * np.maximum(ndtr(z) - ndtr(z - width), 1e-300) / width
    spike = empty * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return slab / (slab + spike)


def _projected(values: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Project each row onto the nonnegative points with a given sum (Euclidean distance)."""
    # entries above one threshold stay positive: try each rank for the last of them
    falling = -np.sort(-values, axis=1)
    excess = np.cumsum(falling, axis=1) - totals[:, None]
    ranks = np.arange(1, values.shape[1] + 1)
    last = (falling - excess / ranks > 0.0).sum(axis=1) - 1
    threshold = excess[np.arange(len(values)), last] / (last + 1)
    return np.maximum(values - threshold[:, None], 0.0)


@kernel()
def _number(
    X: np.ndarray, low: np.ndarray, scales: np.ndarray, depth: int, numbers: np.ndarray
) -> None:
    d, last = X.shape[1], (1 << depth) - 1
    for i in range(X.shape[0]):
        number = 0
        for j in range(d):
            place = (np.float64(X[i, j]) - low[j]) * scales[j]
            if not place >= 0.0:  # also true for NaN
                place = 0.5 * (last + 1) if np.isnan(place) else 0.0
            # min before the cast: large places have no integer
            at = int(min(place, float(last)))
            for bit in range(depth):
                number |= ((at >> bit) & 1) << (bit * d + d - 1 - j)
        numbers[i] = number
