"""What noise alone costs: k-means by noisy sums that know the clusters of the best solution.

Neither class is private: both look at the rows without noise. Their losses are lower limits for
methods that release noisy sums over the rows of clusters with the same budget.
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
    """Return centers by Lloyd's algorithm, the best of five starts; computed once for a set."""
    key = n_clusters, hashlib.sha256(np.ascontiguousarray(X)).digest()
    if key not in _BEST:
        _BEST.clear()  # one data set at a time
        found = KMeans(n_clusters, n_init=_STARTS, random_state=0).fit(X)
        _BEST[key] = found.cluster_centers_
    return _BEST[key]


class _Oracle:
    """k-means that knows the clusters of the best solution; noise is on the sums."""

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
        """Make a round with a share of the budget; return the moves and the variance of noise.

        `spread` is the variance of a feature within clusters, `unknown` that of the distance of a
        center to the mean of its rows.
        """
        noise = round_noise(self.neighbours, self.epsilon, self.delta, share)
        radius = np.full(len(centers), radius_of_cluster(spread + unknown, X.shape[1]))
        released = release_round(X, labels, centers, radius, noise, source)
        unit = (radius / np.bincount(labels, minlength=len(centers)))[:, None]
        return unit * released.sums, (noise.sigma * unit) ** 2


class CentersKnown(_Oracle):
    """One round with all of the budget about the best centers, which are known."""

    def _centers(self, X, labels, best, spread, source):
        return best + self._round(X, labels, best, spread, 0.0, 1.0, source)[0]


class LabelsKnown(_Oracle):
    """One to four rounds from the middle of the box with known labels; the best number of them."""

    def _centers(self, X, labels, best, spread, source):
        middle = np.full_like(best, np.mean(self.bounds))
        tried = []
        for n_rounds in range(1, _MOST_ROUNDS + 1):
            centers, unknown = middle, ((best - middle) ** 2).mean()
            for _ in range(n_rounds):
                how = spread, unknown, 1.0 / n_rounds, source
                moves, noise = self._round(X, labels, centers, *how)
                kept = unknown / (unknown + noise)
                centers, unknown = centers + kept * moves, float((kept * noise).mean())
            tried.append(centers)
        return min(tried, key=lambda centers: inertia(X, centers))
