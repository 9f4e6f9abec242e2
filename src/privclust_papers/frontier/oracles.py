"""Effect of the noise: k-means from noisy sums with known clusters of the best solution.

Neither class is private: both use the exact rows. Their losses are lower limits for methods that
release noisy sums over the rows of clusters with the same budget.
"""

from __future__ import annotations

import hashlib
from typing import Self

import numpy as np
from sklearn.cluster import KMeans

from privclust.core.lloyd import inertia, nearest_center
from privclust.core.validation import as_generator
from privclust.kmeans.last_rounds import radius_of_cluster, release_round, round_noise

_STARTS = 5
_MOST_ROUNDS = 4
_BEST: dict[tuple[int, bytes], np.ndarray] = {}


def best_centers(X: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the centers of Lloyd's algorithm, best of five starts, cached by data set."""
    key = n_clusters, hashlib.sha256(np.ascontiguousarray(X)).digest()
    if key not in _BEST:
        _BEST.clear()  # one data set at a time
        found = KMeans(n_clusters, n_init=_STARTS, random_state=0).fit(X)
        _BEST[key] = found.cluster_centers_
    return _BEST[key]


class _Oracle:
    """k-means from noisy sums over known clusters of the best solution."""

    def __init__(
        self, n_clusters=8, *, epsilon, delta, bounds, neighbours="add_remove", random_state=0
    ):
        self.n_clusters, self.epsilon, self.delta = n_clusters, epsilon, delta
        self.bounds, self.neighbours, self.random_state = bounds, neighbours, random_state

    def fit(self, X: np.ndarray) -> Self:
        best = best_centers(X, self.n_clusters)
        labels = nearest_center(X, best)
        spread = inertia(X, best) / X.size
        source = as_generator(self.random_state)
        self.cluster_centers_ = self._centers(X, labels, best, spread, source)
        return self

    def _round(self, X, labels, centers, spread, unknown, share, source):
        """Return noisy shifts of the centers for a share of the budget, and the noise variance.

        `spread` is the variance of a feature within clusters, `unknown` that of a center about the
        mean of its rows.
        """
        noise = round_noise(self.neighbours, self.epsilon, self.delta, share)
        radius = np.full(len(centers), radius_of_cluster(spread + unknown, X.shape[1]))
        released = release_round(X, labels, centers, radius, noise, source)
        # `sums` are in units of the radius, and the divisor is the exact number of rows.
        unit = (radius / np.bincount(labels, minlength=len(centers)))[:, None]
        return unit * released.sums, (noise.sigma * unit) ** 2


class CentersKnown(_Oracle):
    """One round with the whole budget about the known best centers."""

    def _centers(self, X, labels, best, spread, source):
        return best + self._round(X, labels, best, spread, 0.0, 1.0, source)[0]


class LabelsKnown(_Oracle):
    """The best of one to four rounds from the middle of the bounds, with known labels."""

    def _centers(self, X, labels, best, spread, source):
        middle = np.full_like(best, np.mean(self.bounds))
        tried = []
        for n_rounds in range(1, _MOST_ROUNDS + 1):
            centers, unknown = middle, ((best - middle) ** 2).mean()
            for _ in range(n_rounds):
                how = spread, unknown, 1.0 / n_rounds, source
                moves, noise = self._round(X, labels, centers, *how)
                # Linear shrinkage has the least mean squared error. The remaining variance is
                # unknown * noise / (unknown + noise) = kept * noise.
                kept = unknown / (unknown + noise)
                centers, unknown = centers + kept * moves, float((kept * noise).mean())
            tried.append(centers)
        return min(tried, key=lambda centers: inertia(X, centers))
