r"""k-means on weighted points in few dimensions, in time that hardly grows with k.

Points are ordered so that successive points are close in space. A block of successive points then
lies in a small box. A center is compared with the points of a box only if its least distance to the
box is at most the largest distance of each other center: others are nearest to no point in it. This
is the filter of Kanungo et al. with one level of boxes. Starts are those of greedy k-means++: a new
center changes only the blocks near it. Results equal those of all comparisons.

T. Kanungo, D. Mount, N. Netanyahu, C. Piatko, R. Silverman and A. Wu, "An efficient k-means
clustering algorithm: analysis and implementation", IEEE TPAMI 24(7), 2002.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.core.compiled import kernel, part

_BLOCK = 64  # points in a box
_MAX_ITER, _TOLERANCE = 300, 1e-4  # most updates of a run; relative decrease that ends it


def weighted_kmeans(
    points: np.ndarray, weights: np.ndarray, n_clusters: int, n_init: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the centers of the best of several runs of Lloyd's algorithm, (n_clusters, d).

    Runs start from k-means++ with 2 + log k candidates for each center. A center without points
    stays where it is. Weights are positive. Any order of the points (n_points, d), at least one, is
    correct; one in which neighbours are successive is fast.
    """
    blocks, best = _blocks(points, weights), (math.inf, points[:1])
    n_trials = 2 + int(math.log(n_clusters))
    for _ in range(n_init):
        centers = np.empty((n_clusters, points.shape[1]))
        _start(*blocks, rng.random((n_clusters, n_trials)), centers)
        best = min(best, _run(blocks, centers), key=lambda run: run[0])
    return best[1]


def _blocks(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return points, weights, and the low and the high corners of the boxes of their blocks."""
    starts = np.arange(0, len(points), _BLOCK)
    low, high = (f.reduceat(points, starts, axis=0) for f in (np.minimum, np.maximum))
    return points, weights, low, high


def _run(blocks: tuple[np.ndarray, ...], centers: np.ndarray) -> tuple[float, np.ndarray]:
    before = math.inf
    for _ in range(_MAX_ITER):
        sums, masses = np.zeros(centers.shape), np.zeros(len(centers))
        loss = float(_assign(*blocks, centers, sums, masses))
        if before - loss <= _TOLERANCE * loss:
            break
        before, is_empty = loss, (masses == 0.0)[:, None]
        centers = np.where(is_empty, centers, sums / np.maximum(masses, 1e-300)[:, None])
    return loss, centers


@part()
def _least_distance(low: np.ndarray, high: np.ndarray, center: np.ndarray) -> float:
    total = 0.0
    for j in range(center.size):
        outside = max(low[j] - center[j], center[j] - high[j], 0.0)
        total += outside * outside
    return total


@part()
def _largest_distance(low: np.ndarray, high: np.ndarray, center: np.ndarray) -> float:
    total = 0.0
    for j in range(center.size):
        away = max(high[j] - center[j], center[j] - low[j])
        total += away * away
    return total


@part()
def _distance(point: np.ndarray, center: np.ndarray) -> float:
    total = 0.0
    for j in range(center.size):
        difference = point[j] - center[j]
        total += difference * difference
    return total


@kernel()
def _assign(
    points: np.ndarray,
    weights: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    centers: np.ndarray,
    sums: np.ndarray,
    masses: np.ndarray,
) -> float:
    """Add points to the sums and masses of their nearest centers; return the loss."""
    k, d = centers.shape
    near, least = np.empty(k, dtype=np.int64), np.empty(k)
    loss = 0.0
    for block in range(len(low)):
        # no point is farther from its nearest center than the least of the largest distances
        reach = np.inf
        for c in range(k):
            least[c] = _least_distance(low[block], high[block], centers[c])
            if least[c] <= reach:
                reach = min(reach, _largest_distance(low[block], high[block], centers[c]))
        n_near = 0
        for c in range(k):
            if least[c] <= reach:
                near[n_near] = c
                n_near += 1
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, len(points))):
            nearest, distance = near[0], np.inf
            for a in range(n_near):
                other = _distance(points[i], centers[near[a]])
                if other < distance:
                    nearest, distance = near[a], other
            loss += weights[i] * distance
            masses[nearest] += weights[i]
            for j in range(d):
                sums[nearest, j] += weights[i] * points[i, j]
    return loss


@kernel()
def _start(
    points: np.ndarray,
    weights: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    uniform: np.ndarray,
    centers: np.ndarray,
) -> None:
    """Write centers drawn by greedy k-means++, from uniform numbers (n_clusters, n_trials)."""
    n, n_blocks, d = len(points), len(low), points.shape[1]
    costs = np.empty(n)  # weight times the squared distance to the nearest center so far
    farthest, totals = np.full(n_blocks, np.inf), np.zeros(n_blocks)
    for i in range(n):
        # the first center is drawn by weight
        costs[i] = weights[i]
        totals[i // _BLOCK] += weights[i]
    for c in range(len(centers)):
        chosen, most = 0, -1.0
        for trial in range(1 if c == 0 else uniform.shape[1]):
            at = _drawn(costs, totals, uniform[c, trial])
            gain = 0.0
            if c > 0:
                for block in range(n_blocks):
                    # otherwise no point of the block is nearer to the new center
                    if _least_distance(low[block], high[block], points[at]) < farthest[block]:
                        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
                            cost = weights[i] * _distance(points[i], points[at])
                            gain += max(costs[i] - cost, 0.0)
            if gain > most:
                chosen, most = at, gain
        for j in range(d):
            centers[c, j] = points[chosen, j]
        for block in range(n_blocks):
            if _least_distance(low[block], high[block], centers[c]) < farthest[block]:
                total, distant = 0.0, 0.0
                for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
                    cost = weights[i] * _distance(points[i], centers[c])
                    costs[i] = cost if c == 0 else min(costs[i], cost)
                    total += costs[i]
                    distant = max(distant, costs[i] / weights[i])
                totals[block], farthest[block] = total, distant


@part()
def _drawn(costs: np.ndarray, totals: np.ndarray, uniform: float) -> int:
    """Draw a point with probability proportional to its cost; uniformly if all costs are 0."""
    rest = uniform * totals.sum()
    if not rest > 0.0:
        return min(int(uniform * len(costs)), len(costs) - 1)
    block = 0
    while block < len(totals) - 1 and rest >= totals[block]:
        rest -= totals[block]
        block += 1
    i, last = block * _BLOCK, min((block + 1) * _BLOCK, len(costs)) - 1
    # a point of cost 0 is at a center already: rounding of `rest` must not choose it
    while i < last and (rest >= costs[i] or costs[i] == 0.0):
        rest -= costs[i]
        i += 1
    return i
