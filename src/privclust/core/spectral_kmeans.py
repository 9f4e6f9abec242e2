"""k-means from many starts in one compiled call, for the few and short rows of spectral embeddings.

For tens of rows, the overhead of scikit-learn's `KMeans` takes most of its time, and sample and
aggregate clusters hundreds of such subsets in a fit. Results here are the same: the same random
numbers are used in the same way, and the same rules end a start and choose among starts. So labels
(and their order) agree unless rounding decides a tie.
"""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from privclust.core.compiled import kernel, part
from privclust.core.lloyd import add_to_clusters, find_nearest, squared_distances
from privclust.core.warn import warn_caller

_N_STARTS = 20
_MAX_ITER = 300
_TOLERANCE = 1e-4


def best_of_starts(X: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Return the labels of the best of 20 runs of Lloyd's algorithm, int64.

    Each run starts at samples drawn by greedy k-means++: each center after the first is the best of
    ``2 + floor(log K)`` samples, which are drawn in proportion to their squared distances from the
    centers so far. It ends when no label changes, when the squared shifts of all centers add up to
    at most 1e-4 times the mean variance of a feature, or after 300 updates. A center that loses all
    its samples moves to the sample farthest from its own center.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64
        Finite.
    n_clusters : int
        K, between 1 and ``n_samples``; there are fewer labels if fewer samples differ.
    seed : int
        Seed of the legacy generator `numpy.random.RandomState`.

    Warns
    -----
    ConvergenceWarning
        If there are fewer clusters than requested.

    References
    ----------
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007,
    section 7 for the greedy form.
    """
    n_samples = len(X)
    X = np.asarray(X, dtype=np.float64)
    centred = np.ascontiguousarray(X - X.mean(axis=0))
    n_candidates = 2 + int(np.log(n_clusters))
    size = (_N_STARTS, 1 + (n_clusters - 1) * n_candidates)
    draws = np.random.RandomState(seed).random_sample(size)
    shares = np.cumsum(np.full(n_samples, 1.0 / n_samples))
    firsts = np.searchsorted(shares / shares[-1], draws[:, 0], side="right")
    tolerance = _TOLERANCE * np.var(centred, axis=0).mean()
    labels = _best_of_starts(centred, firsts, draws[:, 1:], n_clusters, tolerance)
    n_labels = len(np.unique(labels))
    if n_labels < n_clusters:
        warn_caller(
            f"{n_labels} clusters were found, not {n_clusters}: there are too few different rows",
            ConvergenceWarning,
        )
    return labels


@kernel()
def _best_of_starts(
    X: np.ndarray, firsts: np.ndarray, draws: np.ndarray, n_clusters: int, tolerance: float
) -> np.ndarray:
    """Run all starts; a later one is better if its inertia is less and its clusters differ."""
    n_samples, n_features = X.shape
    centers, moved = np.empty((n_clusters, n_features)), np.empty((n_clusters, n_features))
    labels, before = np.empty(n_samples, dtype=np.int64), np.empty(n_samples, dtype=np.int64)
    best = np.empty(n_samples, dtype=np.int64)
    columns = np.ascontiguousarray(X.T)  # along which loops vectorise
    distances, least = np.empty(n_samples), np.empty(n_samples)
    lowered, least_so_far = np.empty(n_samples), np.empty(n_samples)
    best_inertia = np.inf
    for start in range(firsts.size):
        _plus_plus(columns, firsts[start], draws[start], centers, lowered, least, least_so_far)
        _iterate(X, columns, centers, moved, labels, before, distances, least, tolerance)
        inertia = 0.0
        for i in range(n_samples):
            inertia += distances[i]
        if start == 0 or (inertia < best_inertia and not _is_renamed(labels, best, n_clusters)):
            best_inertia = inertia
            for i in range(n_samples):
                best[i] = labels[i]
    return best


@part()
def _plus_plus(
    columns: np.ndarray,
    first: int,
    draws: np.ndarray,
    centers: np.ndarray,
    lowered: np.ndarray,
    least: np.ndarray,
    best: np.ndarray,
) -> None:
    """Draw centers among the samples by greedy k-means++, at the threshold as scikit-learn does.

    The drawn sample is the first with a running sum of at least the threshold, or the last one if
    rounding leaves none; `privclust.core.lloyd.plus_plus` never draws rows at a center.
    """
    n_clusters, n_samples = centers.shape[0], columns.shape[1]
    n_candidates = draws.size // max(n_clusters - 1, 1)
    for j in range(columns.shape[0]):
        centers[0, j] = columns[j, first]
    squared_distances(columns, n_samples, centers[0], least)
    total = least.sum()
    for k in range(1, n_clusters):
        best_total, chosen = np.inf, 0
        for trial in range(n_candidates):
            threshold = draws[(k - 1) * n_candidates + trial] * total
            candidate, running = 0, least[0]
            while running < threshold and candidate < n_samples - 1:
                candidate += 1
                running += least[candidate]
            squared_distances(columns, n_samples, columns[:, candidate], lowered)
            for i in range(n_samples):
                lowered[i] = min(least[i], lowered[i])
            new_total = lowered.sum()
            if new_total < best_total:
                best_total, chosen = new_total, candidate
                for i in range(n_samples):
                    best[i] = lowered[i]
        for j in range(columns.shape[0]):
            centers[k, j] = columns[j, chosen]
        for i in range(n_samples):
            least[i] = best[i]
        total = best_total


@part()
def _iterate(
    X: np.ndarray,
    columns: np.ndarray,
    centers: np.ndarray,
    moved: np.ndarray,
    labels: np.ndarray,
    before: np.ndarray,
    distances: np.ndarray,
    work: np.ndarray,
    tolerance: float,
) -> None:
    """Run Lloyd's algorithm; leave labels, and squared distances from their centers."""
    before[:] = -1
    for _ in range(_MAX_ITER):
        find_nearest(columns, labels.size, centers, work, distances, labels)
        _update(X, centers, labels, distances, moved)
        shift = 0.0
        for k in range(centers.shape[0]):
            for j in range(centers.shape[1]):
                shift += (moved[k, j] - centers[k, j]) ** 2
                centers[k, j] = moved[k, j]
        if np.array_equal(labels, before):
            for i in range(labels.size):
                distances[i] = 0.0
                for j in range(centers.shape[1]):
                    distances[i] += (X[i, j] - centers[labels[i], j]) ** 2
            return
        if shift <= tolerance:
            break
        for i in range(labels.size):
            before[i] = labels[i]
    find_nearest(columns, labels.size, centers, work, distances, labels)


@part()
def _update(
    X: np.ndarray, centers: np.ndarray, labels: np.ndarray, distances: np.ndarray, moved: np.ndarray
) -> None:
    """Move each center to the mean of its samples, an empty one to the farthest sample."""
    n_clusters, n_features = centers.shape
    counts = np.zeros(n_clusters)
    moved[:] = 0.0
    add_to_clusters(X, labels, counts, moved)
    for k in range(n_clusters):
        if counts[k] == 0.0 and distances.max() > 0.0:
            farthest = distances.argmax()
            owner = labels[farthest]
            for j in range(n_features):
                moved[owner, j] -= X[farthest, j]
                moved[k, j] = X[farthest, j]
            counts[owner] -= 1.0
            counts[k] = 1.0
            distances[farthest] = 0.0
    for k in range(n_clusters):
        for j in range(n_features):
            moved[k, j] = moved[k, j] / counts[k] if counts[k] > 0.0 else centers[k, j]


@part()
def _is_renamed(labels: np.ndarray, others: np.ndarray, n_clusters: int) -> bool:
    """Return whether two sets of labels give the same clusters under other names."""
    names = np.full(n_clusters, -1)
    for i in range(labels.size):
        if names[labels[i]] == -1:
            names[labels[i]] = others[i]
        elif names[labels[i]] != others[i]:
            return False
    return True
