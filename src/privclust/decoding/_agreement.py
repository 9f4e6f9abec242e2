"""Whether the starts of a decoder agree on the clusters.

A start that explains a sketch as well as the best one, to within the noise, is *near-best*: the
released values do not decide which is right. A cluster *recurs* in another start if a center lies
within a quarter of the cluster's distance to its nearest neighbour. All of this is computed from
released values, at no privacy loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

# largest move of the same cluster, relative to the nearest other center; as in `_noise_check`
_SAME_PLACE = 0.25


@dataclass(frozen=True)
class Agreement:
    """Agreement of the near-best starts of a decoder with the best one.

    `recurs` (n_clusters,) says whether a cluster recurs in all near-best starts; `covariances` are
    the mean squared moves of its center over the starts in which it does.
    """

    n_near_best: int
    n_agreeing: int
    recurs: np.ndarray
    covariances: np.ndarray

    @property
    def is_stable(self) -> bool:
        """Whether all near-best starts agree on all clusters."""
        return self.n_agreeing == self.n_near_best

    def message(self) -> str:
        """Return a sentence on starts that do not agree; empty if all agree.

        Examples
        --------
        >>> centers = np.array([[0.0], [1.0]])
        >>> agreement(centers, [centers + 0.01]).message()
        ''
        >>> found = agreement(centers, [centers + [[0.0], [3.0]]])
        >>> print(found.message().partition(":")[0])
        1 of 2 equally good starts of the search finds other clusters
        """
        others = self.n_near_best - self.n_agreeing
        if not others:
            return ""
        find = "finds" if others == 1 else "find"
        starts = f"{others} of {self.n_near_best} equally good starts of the search"
        return f"{starts} {find} other clusters: treat these as one of several possible groupings"


def agreement(centers: np.ndarray, others: Sequence[np.ndarray]) -> Agreement:
    """Compare the centers of the best start, (k, d), with those of other near-best starts.

    Examples
    --------
    >>> centers = np.array([[0.0], [1.0]])
    >>> found = agreement(centers, [np.array([[1.1], [0.0]]), np.array([[0.0], [4.0]])])
    >>> found.recurs.tolist(), found.n_agreeing, found.n_near_best
    ([True, False], 2, 3)
    """
    k, d = centers.shape
    apart = cdist(centers, centers)
    np.fill_diagonal(apart, np.inf)
    reach = _SAME_PLACE * apart.min(axis=1)  # infinite for a single cluster
    # counts include the best start itself, with moves of 0
    recurs, total, counts = np.ones(k, dtype=bool), np.zeros((k, d, d)), np.ones(k)
    n_agreeing = 1
    for other in others:
        own, its = linear_sum_assignment(cdist(centers, other))
        moves = np.empty_like(centers)
        moves[own] = other[its] - centers[own]
        is_same = np.linalg.norm(moves, axis=1) <= reach
        total += np.where(is_same[:, None, None], moves[:, :, None] * moves[:, None, :], 0.0)
        counts += is_same
        recurs &= is_same
        n_agreeing += bool(is_same.all())
    return Agreement(len(others) + 1, n_agreeing, recurs, total / counts[:, None, None])
