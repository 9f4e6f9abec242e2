"""Lloyd's algorithm, shared by several subpackages: one pass, a run, and a start. Parts of it are
also compiled into the passes of spectral embeddings and of grid cells.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from privclust.core.compiled import kernel, part
from privclust.core.fixed_point import (
    EXACT_ROWS,
    SUM_BITS,
    FixedPoint,
    check_row_count,
    rounded_term,
)

BLOCK = 128
"""Samples of a block, which fits in the first-level cache."""


def nearest_center_statistics(
    X: np.ndarray, centers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return counts and sums of the samples of each nearest center, and the inertia, in one pass.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64 or float32
        float32 samples are not copied; all arithmetic is in float64.
    centers : ndarray of shape (n_clusters, n_features), float64

    Returns
    -------
    counts : ndarray of shape (n_clusters,)
        Numbers of samples; ties go to the first center.
    sums : ndarray of shape (n_clusters, n_features)
        Their sums.
    inertia : float
        Sum of the squared distances to the nearest center.

    Raises
    ------
    ValueError
        If samples and centers differ in their number of features.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [9.0]])
    >>> counts, sums, inertia = nearest_center_statistics(X, np.array([[0.0], [10.0]]))
    >>> counts.tolist(), sums.ravel().tolist(), inertia
    ([2.0, 1.0], [1.0, 9.0], 2.0)
    """
    counts = np.zeros(len(centers))
    sums = np.zeros(centers.shape)
    no_labels = np.empty(0, dtype=np.int64)
    total = _assign(*_in_order(X, centers), counts, sums, no_labels)
    return counts, sums, float(total)


def inertia(X: np.ndarray, centers: np.ndarray) -> float:
    """Return the sum of the squared distances of samples to their nearest center.

    It is the third result of `nearest_center_statistics`, bit for bit and faster; samples, centers
    and errors are as there.

    Examples
    --------
    >>> inertia(np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [10.0]]))
    2.0
    """
    no_counts, no_sums, no_labels = np.empty(0), np.empty((0, 0)), np.empty(0, dtype=np.int64)
    return float(_assign(*_in_order(X, centers), no_counts, no_sums, no_labels))


def nearest_center_sums(
    X: np.ndarray, centers: np.ndarray, offset: np.ndarray, scale: np.ndarray
) -> tuple[FixedPoint, FixedPoint]:
    """Return exact counts and sums of the samples of each center, for the addition of noise.

    A sample's contribution does not depend on other samples, bit for bit. It is 1 to the count of
    its nearest center, and ``(x - offset) * scale``, clipped to [-1, 1] and rounded to a multiple
    of 2^-30, to its sums. A NaN entry adds 0, and its sample belongs to the first center.

    Parameters
    ----------
    X, centers
        As for `nearest_center_statistics`; from no samples up to 2^30.
    offset, scale : ndarray of shape (n_features,), float64
        Define the units of the sums, such as a box's middle and one over its half widths.

    Returns
    -------
    counts : FixedPoint of shape (n_clusters,)
        With 30 bits, like the sums.
    sums : FixedPoint of shape (n_clusters, n_features)

    Raises
    ------
    ValueError
        If samples and centers differ in their number of features, or there are too many samples.

    Examples
    --------
    >>> X, centers = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [10.0]])
    >>> counts, sums = nearest_center_sums(X, centers, np.full(1, 5.0), np.full(1, 0.25))
    >>> np.asarray(counts).tolist(), np.asarray(sums).tolist()
    ([2.0, 1.0], [[-2.0], [1.0]])
    """
    check_row_count(len(X))
    X, centers = _in_order(X, centers)
    totals = np.zeros((len(centers), 1 + X.shape[1]), dtype=np.int64)
    _sum_exactly(X, centers, offset, scale, totals)
    return FixedPoint(totals[:, 0], SUM_BITS), FixedPoint(totals[:, 1:], SUM_BITS)


def nearest_center(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the index of the nearest center of each sample, int64; ties go to the first.

    Samples, centers and errors are as for `nearest_center_statistics`.
    """
    labels = np.empty(len(X), dtype=np.int64)
    _assign(*_in_order(X, centers), np.empty(0), np.empty((0, 0)), labels)
    return labels


def _in_order(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both in C order, so that the kernel is compiled once; check that they fit."""
    if X.shape[1] != centers.shape[1]:
        raise ValueError(
            f"centers must have {X.shape[1]} features, as X has, got shape {centers.shape}"
        )
    return np.ascontiguousarray(X), np.ascontiguousarray(centers)


@kernel()
def _assign(
    X: np.ndarray, centers: np.ndarray, counts: np.ndarray, sums: np.ndarray, labels: np.ndarray
) -> float:
    """Add to counts and sums, and write labels, unless these are empty; return the inertia.

    Samples are processed in transposed blocks, so that the loops over a block vectorise; sums are
    in the order of the samples.
    """
    # zeros: distances of the columns that the last block leaves unused are computed, too
    block = np.zeros((X.shape[1], BLOCK))
    distances, least = np.empty(BLOCK), np.empty(BLOCK)
    nearest = np.empty(BLOCK, dtype=np.int64)
    total = 0.0
    for start in range(0, X.shape[0], BLOCK):
        samples = X[start : start + BLOCK]
        _transpose(samples, block)
        find_nearest(block, BLOCK, centers, distances, least, nearest)
        if counts.size:
            add_to_clusters(samples, nearest, counts, sums)
        for i in range(len(samples)):
            total += least[i]
        if labels.size:
            for i in range(len(samples)):
                labels[start + i] = nearest[i]
    return total


@part()
def _transpose(samples: np.ndarray, block: np.ndarray) -> None:
    """Write samples as columns, feature by feature: twice as fast as sample by sample."""
    for j in range(samples.shape[1]):
        row = block[j]
        for i in range(samples.shape[0]):
            row[i] = samples[i, j]


@kernel()
def _sum_exactly(
    X: np.ndarray, centers: np.ndarray, offset: np.ndarray, scale: np.ndarray, totals: np.ndarray
) -> None:
    """Add counts and sums in units of 2^-30 to totals (n_clusters, 1 + n_features), int64."""
    n_clusters, n_features = centers.shape
    block, units = np.zeros((n_features, BLOCK)), np.zeros((BLOCK, n_features))
    distances, least = np.empty(BLOCK), np.empty(BLOCK)
    nearest = np.empty(BLOCK, dtype=np.int64)
    sums = np.zeros((n_clusters, n_features))
    # doubles add up EXACT_ROWS terms exactly, integers the totals
    for first in range(0, X.shape[0], EXACT_ROWS):
        last = min(first + EXACT_ROWS, X.shape[0])
        sums[:] = 0.0
        for start in range(first, last, BLOCK):
            samples = X[start : min(start + BLOCK, last)]
            _transpose(samples, block)
            find_nearest(block, BLOCK, centers, distances, least, nearest)
            for j in range(n_features):
                row = block[j]
                # also of unused columns: a constant number of steps vectorises
                for i in range(BLOCK):
                    # in place: distances are known, and the next samples fill the block anew
                    row[i] = _unit_term(row[i], offset[j], scale[j])
                for i in range(samples.shape[0]):
                    units[i, j] = row[i]
            for i in range(samples.shape[0]):
                k = nearest[i]
                totals[k, 0] += np.int64(1) << SUM_BITS
                for j in range(n_features):
                    sums[k, j] += units[i, j]
        for k in range(n_clusters):
            for j in range(n_features):
                # exact: the sum is a multiple of 2^-30 of magnitude up to 2^20
                totals[k, 1 + j] += np.int64(sums[k, j] * 2.0**SUM_BITS)


@part()
def _unit_term(x: float, offset: float, scale: float) -> int:
    """Return a coordinate in units, clipped to [-1, 1] and rounded; NaN is 0."""
    unit = (np.float64(x) - offset) * scale
    # NaN fails both comparisons
    unit = unit if unit > -1.0 else (-1.0 if unit <= -1.0 else 0.0)
    unit = unit if unit < 1.0 else 1.0
    return rounded_term(unit)


@part()
def squared_distances(
    columns: np.ndarray, n_samples: int, center: np.ndarray, distances: np.ndarray
) -> None:
    """Write the squared distance of each column of (n_features, n_samples) to one center; compiled.

    Samples are columns so that the loop over them vectorises; it is fastest if `n_samples`, their
    number, is a constant. Distances are summed in the order of the features.
    """
    distances[:] = 0.0
    for j in range(columns.shape[0]):
        row, coordinate = columns[j], center[j]
        for i in range(n_samples):
            difference = row[i] - coordinate
            distances[i] += difference * difference


@part()
def find_nearest(
    columns: np.ndarray,
    n_samples: int,
    centers: np.ndarray,
    distances: np.ndarray,
    least: np.ndarray,
    nearest: np.ndarray,
) -> None:
    """Write the nearest center of each column, and its squared distance; compiled.

    Parameters
    ----------
    columns, n_samples
        As for `squared_distances`. Fill values of the last block are computed like the rest; for
        many samples, blocks of `BLOCK` are fastest.
    centers : ndarray of shape (n_clusters, n_features), float64
    distances : ndarray of shape (n_samples,), float64
        Work space.
    least : ndarray of shape (n_samples,), float64
        Out: squared distance to the nearest center.
    nearest : ndarray of shape (n_samples,), int64
        Out: its index; ties go to the first.
    """
    least[:] = np.inf
    nearest[:] = 0
    for k in range(centers.shape[0]):
        squared_distances(columns, n_samples, centers[k], distances)
        for i in range(n_samples):
            # choices in place of a branch, which would keep the loop from vectorising
            is_nearer = distances[i] < least[i]
            least[i] = distances[i] if is_nearer else least[i]
            nearest[i] = k if is_nearer else nearest[i]


@part()
def add_to_clusters(
    samples: np.ndarray, labels: np.ndarray, counts: np.ndarray, sums: np.ndarray
) -> None:
    """Add samples to the counts and sums of the clusters of their labels, in order; compiled.

    `labels` may have more entries than there are `samples`; `counts` (n_clusters,) and `sums`
    (n_clusters, n_features), float64, are changed in place.
    """
    for i in range(samples.shape[0]):
        k = labels[i]
        counts[k] += 1.0
        for j in range(samples.shape[1]):
            sums[k, j] += samples[i, j]


def lloyd(
    X: np.ndarray, centers: np.ndarray, max_iter: int, tol: float
) -> tuple[np.ndarray, float, int]:
    """Iterate from one start; return centers, their inertia and the number of updates.

    X and `centers` are as for `nearest_center_statistics`. A cluster that loses its samples takes
    the sample farthest from its center. There are at most `max_iter` updates; the last one lowers
    the inertia by at most a fraction `tol`.
    """
    counts, sums, error = nearest_center_statistics(X, centers)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        # the quotients of empty clusters are replaced below
        moved = sums / np.maximum(counts, 1.0)[:, None]
        empty = np.flatnonzero(counts == 0)
        if len(empty):
            moved[empty] = X[_farthest(X, centers, len(empty))]
        if np.array_equal(moved, centers):
            break
        centers, before = moved, error
        counts, sums, error = nearest_center_statistics(X, centers)
        if before - error <= tol * error:  # with tol = 0: converged up to rounding
            break
    return centers, error, n_iter


def _farthest(X: np.ndarray, centers: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the rows farthest from their nearest center, the farthest first."""
    least = np.full(len(X), np.inf)
    for center in centers:
        _lower_distances(X, center, least)
    # stable: of equal distances the first row, on any platform
    return np.argsort(-least, kind="stable")[:n_rows]


def plus_plus(
    X: np.ndarray, n_clusters: int, rng: np.random.Generator, n_trials: int = 1
) -> np.ndarray:
    """Draw centers among samples by k-means++; uniformly if all coincide with a center. For each
    center but the first, the best of several drawn samples is used.
    """
    least = np.full(len(X), np.inf)
    centers = np.empty((n_clusters, X.shape[1]))
    rows = [int(rng.integers(len(X)))]
    for k in range(n_clusters):
        trials = []
        for row in rows:
            lowered, center = least.copy(), X[row].astype(np.float64)
            trials.append((_lower_distances(X, center, lowered), lowered, center))
        # by the total only: arrays cannot be compared
        total, least, centers[k] = min(trials, key=itemgetter(0))
        # Also drawn after the last center, where nothing uses them: the next start continues with
        # the same rng, so that leaving them out would change it.
        thresholds = [rng.random() for _ in range(n_trials)]
        if total > 0:
            sums = np.cumsum(least)
            # right: a threshold equal to a sum must not find a row at distance 0
            found = np.searchsorted(sums, np.multiply(thresholds, total), side="right")
            # `total` may exceed the last sum by a rounding: then the last row that is no center
            rows = np.minimum(found, np.flatnonzero(least)[-1]).tolist()
        else:
            rows = [int(threshold * len(X)) for threshold in thresholds]
    return centers


@kernel()
def _lower_distances(X: np.ndarray, center: np.ndarray, least: np.ndarray) -> float:
    """Update each row's squared distance to the nearest center by a new one; return their sum.

    Row by row: transposing blocks for one center, as `_assign` does for all, takes up to 8 times
    as long.
    """
    total = 0.0
    for i in range(X.shape[0]):
        distance = 0.0
        for j in range(X.shape[1]):
            difference = X[i, j] - center[j]
            distance += difference * difference
        least[i] = min(least[i], distance)
        total += least[i]
    return total
