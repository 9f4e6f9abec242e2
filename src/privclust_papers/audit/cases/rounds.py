"""Cases of the privacy audit: last rounds of compressive k-means."""

from __future__ import annotations

import numpy as np

from privclust.kmeans import CompressiveKMeans
from privclust.kmeans.last_rounds import round_noise, round_sums, weights
from privclust_papers.audit.cases.audit_case import AuditCase, along, repeated

_BOX = (-1.0, 1.0)


class MeansRound(AuditCase):
    """A last round: the noisy sum and count of one record, at either end of a radius."""

    delta = 0.01
    draws, least_draws = 1_000_000, 200_000
    data, neighbour = np.array([[1.0]]), np.array([[-1.0]])

    def __init__(self) -> None:
        self._noise = round_noise("replace_one", self.epsilon, self.delta, 1.0)
        self.statistic = along(self._exact(self.data) - self._exact(self.neighbour))

    def many(self, data, rng, n):
        return self._noise.release(repeated(self._exact(data), n), rng)

    def _exact(self, data):
        """Return the exact, weighted sums to which a round adds noise."""
        sums = round_sums(data, np.zeros(len(data), dtype=np.int64), np.zeros((1, 1)), 1.0)
        return np.asarray(sums) * weights(1)


class WholeRounds(AuditCase):
    """`CompressiveKMeans` with a last round: pilot, sketch, and the noisy mean of one record."""

    epsilon, delta = 4.0, 0.01
    draws, least_draws = 1_500, 40
    data, neighbour = np.array([[1.0]]), np.array([[-1.0]])

    def __call__(self, data, rng):
        model = CompressiveKMeans(
            1,
            **self.budget,
            bounds=_BOX,
            n_frequencies=2,
            last_round=True,
            noise="gaussian",
            random_state=rng,
        ).fit(data)
        sums = model.sketch_.sums.view(float)
        return np.concatenate([model.cluster_centers_.ravel(), sums, model.sketch_.frequencies[0]])
