"""A uniform grid over a box: counting rows, and one pass of k-means over its cells."""

from __future__ import annotations

import math

import numpy as np

from privclust.core.compiled import kernel, part
from privclust.core.fixed_point import FixedPoint
from privclust.core.lloyd import BLOCK, find_nearest
from privclust.privacy.bounds import Box
from privclust.privacy.groups import UNIT_BITS, Groups

_CELL_BYTES = 24  # memory of a cell: its count, its noise and their sum
_CELL_COUNT_TOLERANCE = 1e-12  # relative rounding error of M that is allowed for


def grid_shape(n_samples: float, epsilon: float, d: int, max_cells: int) -> tuple[int, ...]:
    r"""Return the cells along each axis for :math:`M = (N \epsilon / 10)^{2 d / (2 + d)}` cells.

    Every axis gets the d-th root of M, rounded down, at least 1. The first axes get one more, until
    there are at least M cells. Raises a ValueError if there are more than `max_cells`.
    """
    log_cells = 2.0 * d / (2.0 + d) * (math.log(n_samples) + math.log(epsilon / 10.0))
    # far too many are refused here, before integers of this size are made
    if log_cells > math.log(max_cells) + 1.0:
        raise _too_large(math.exp(min(log_cells, 700.0)), n_samples, epsilon, max_cells)
    fewest = max(int(math.exp(log_cells / d) * (1.0 + _CELL_COUNT_TOLERANCE)), 1)
    shape = [fewest] * d
    for j in range(d):
        if math.prod(shape) >= math.exp(log_cells) * (1.0 - _CELL_COUNT_TOLERANCE):
            break
        shape[j] += 1
    if math.prod(shape) > max_cells:
        raise _too_large(math.prod(shape), n_samples, epsilon, max_cells)
    return tuple(shape)


def _too_large(n_cells, n_samples, epsilon, max_cells):
    return ValueError(
        f"the grid needs {n_cells:.4g} cells ({_CELL_BYTES * n_cells:.3g} bytes) for N = "
        f"{n_samples:.4g} rows at epsilon = {epsilon:.4g} on each count, and max_cells is "
        f"{max_cells}: lower epsilon or raise max_cells"
    )


class Grid:
    """Equal cells of a box, `shape` of them along its axes, numbered in C order."""

    def __init__(self, box: Box, shape: tuple[int, ...]) -> None:
        self.box, self.shape = box, shape
        self._shape = np.array(shape, dtype=np.int64)
        steps = 2.0 * box.half_widths / self._shape
        # bounds computed from the data may be flat: all rows are then in the first cell
        self._inverse_steps = np.divide(1.0, steps, out=np.zeros(len(shape)), where=steps > 1e-300)
        self._middles = np.zeros((len(shape), max(shape)))
        for j, m in enumerate(shape):
            self._middles[j, :m] = box.low[j] + (np.arange(m) + 0.5) * steps[j]

    def histogram(self, X: np.ndarray, groups: Groups | None = None) -> np.ndarray | FixedPoint:
        """Return the number of rows in each cell, or the sum of group units, shape (n_cells,).

        A row outside the box belongs to the nearest cell, a row on a border between two cells to
        the upper one. NaN counts as the middle of the box. The cell of a row depends on no other
        row, bit for bit. Each row of a group counts its `Groups.units`.
        """
        where = X, self.box.low, self._inverse_steps, self._shape
        if groups is None:
            counts = np.zeros(math.prod(self.shape))
            _count(*where, counts)
            return counts
        units = np.zeros(math.prod(self.shape), dtype=np.int64)
        _count_units(*where, groups.units, units)
        return FixedPoint(units, UNIT_BITS)

    def statistics(
        self, counts: np.ndarray, centers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Assign cells to their nearest center; return sums weighted by counts of any sign.

        Returns for each cluster the sum of counts (k,), the number of cells (k,) and the sum of
        counts times middles of cells (k, d), then the sum of counts times squared distances.
        """
        totals, n_cells = np.zeros(len(centers)), np.zeros(len(centers))
        sums = np.zeros(centers.shape)
        error = _assign_cells(counts, self._middles, self._shape, centers, totals, n_cells, sums)
        return totals, n_cells, sums, error


@kernel()
def _count(X, low, inverse_steps, shape, counts):
    for i in range(X.shape[0]):
        counts[_cell(X, i, low, inverse_steps, shape)] += 1.0


@kernel()
def _count_units(X, low, inverse_steps, shape, units, counts):
    for i in range(X.shape[0]):
        counts[_cell(X, i, low, inverse_steps, shape)] += units[i]


@part()
def _cell(X, i, low, inverse_steps, shape):
    cell = 0
    for j in range(X.shape[1]):
        place = (np.float64(X[i, j]) - low[j]) * inverse_steps[j]
        if not place >= 0.0:
            place = 0.5 * shape[j] if np.isnan(place) else 0.0
        place = min(place, shape[j] - 1.0)
        cell = cell * shape[j] + int(place)
    return cell


@kernel()
def _assign_cells(counts, middles, shape, centers, totals, n_cells, sums):
    """Add to totals, n_cells and sums, in the order of the cells; return the error.

    One loop does all sums: separate loops by `privclust.core.lloyd.add_to_clusters` would take half
    as long again.
    """
    d = shape.size
    place = np.zeros(d, dtype=np.int64)
    block = np.zeros((d, BLOCK))
    distances, least = np.empty(BLOCK), np.empty(BLOCK)
    nearest = np.empty(BLOCK, dtype=np.int64)
    error = 0.0
    for start in range(0, counts.size, BLOCK):
        size = min(BLOCK, counts.size - start)
        for i in range(size):
            for j in range(d):
                block[j, i] = middles[j, place[j]]
            _step(place, shape)
        find_nearest(block, BLOCK, centers, distances, least, nearest)
        for i in range(size):
            k, weight = nearest[i], counts[start + i]
            error += weight * least[i]
            totals[k] += weight
            n_cells[k] += 1.0
            for j in range(d):
                sums[k, j] += weight * block[j, i]
    return error


@part()
def _step(place, shape):
    """Move to the next cell: the last index runs fastest."""
    j = shape.size - 1
    place[j] += 1
    while place[j] == shape[j] and j > 0:
        place[j] = 0
        j -= 1
        place[j] += 1
