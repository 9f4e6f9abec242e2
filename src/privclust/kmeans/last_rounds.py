r"""Rounds of k-means with a share of a budget: noisy sums over the rows of each cluster.

A sketch separates clusters at noise levels at which it does not locate their centers. So noisy sums
over the rows of each cluster are released, several times. With the current center c of a cluster
and a radius r, a row x at the distance :math:`\rho r` from c has

.. math:: u = (x - c) / r, \text{ clipped to norm 1}, \qquad v = \min(\rho^2 / 4, 1).

A round releases, for each cluster, the sum of u, `_KAPPA` times the number of rows, and `_KAPPA`
times the sum of v. The first moves the center, the last estimates the spread of the cluster within
two radii. The cluster of a row depends on that row and on earlier releases only.
`privclust.kmeans._rounds` has their sequence.

**Sensitivity.** *Add-remove*: :math:`|u|^2 + \kappa^2 + \kappa^2 v^2 \le 1 + 2 \kappa^2`.
*Replace-one*, two clusters: the sum of two of these. One cluster, with norms :math:`a \le b` of u
and u': if b < 1, :math:`v, v' \le 1/4`, and :math:`|u - u'|^2 \le 4` leaves the square below
:math:`4 + \kappa^2 / 16`. If b = 1, :math:`|u - u'|^2 \le (1 + a)^2`; for a < 1 the square is at
most :math:`(1 + a)^2 + \kappa^2 (1 - a^2 / 4)^2`, which grows with a as :math:`\kappa < 1`; for
a = 1 both v lie in [1/4, 1]. So the square is at most :math:`4 + (3/4)^2 \kappa^2`.

**Exact.** Norms are added up in the order of features. Entries of u and v are rounded to multiples
of 2^-30: that adds :math:`2^{-31} \sqrt{d + 1}` to a norm at most, less than `_MARGIN`. Sums of
such numbers are exact. With groups, every row of n counts 1 / n: `privclust.privacy.groups`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from privclust.core.compiled import kernel
from privclust.core.fixed_point import (
    EXACT_ROWS,
    SUM_BITS,
    FixedPoint,
    check_row_count,
    rounded_term,
    side_by_side,
)
from privclust.privacy import Neighbours
from privclust.privacy.groups import Groups, by_size, weighted_sums
from privclust.privacy.measurements import Gaussian, analytic_gaussian_sigma
from privclust.privacy.noise import NoiseSource
from privclust.privacy.sensitivity import Sensitivity

# benchmarks/ablation.py measures the effect of these constants on the loss
_KAPPA = 0.35  # weight of counts and of sums of v, relative to sums of u
_MARGIN = 2.0**-16  # relative increase of the sensitivity that covers rounding
_REACH = 2.0  # radii at which v reaches 1: the spread is measured within
_WITHIN = 0.95  # fraction of the rows of a Gaussian cluster within the radius
_LEAST_COUNT = 2.0  # least count that a sum is divided by, in standard deviations of its noise
_GAIN_THAT_PAYS = 0.05  # largest noise of a round, as a fraction of the loss of k clusters


@dataclass(frozen=True)
class RoundSums:
    """Noisy sums of a round.

    Attributes
    ----------
    sums : ndarray of shape (n_clusters, n_features)
        Sums of u.
    counts, spreads : ndarray of shape (n_clusters,)
        Numbers of rows, and sums of v.
    radius : ndarray of shape (n_clusters,)
        The radii r.
    noise : Gaussian
        Its sigma is the standard deviation of the noise on `sums`.
    """

    sums: np.ndarray
    counts: np.ndarray
    spreads: np.ndarray
    radius: np.ndarray
    noise: Gaussian

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise on a count, and on a sum of v."""
        return self.noise.sigma / _KAPPA

    @property
    def extent(self) -> np.ndarray:
        """Noise of a coordinate of a center, over `count_noise` divided by the count."""
        return _KAPPA * self.radius

    def mean_squares(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean squared distance of rows to the center, and its noise, (n_clusters,).

        `counts` are positive numbers of rows. Distances are clipped to two radii.
        """
        unit = (_REACH * self.radius) ** 2 / counts
        return unit * self.spreads, unit * self.count_noise


@dataclass(frozen=True)
class Round:
    """Clusters after a round.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
    counts : ndarray of shape (n_clusters,)
        Noisy numbers of rows.
    count_noise : float
        Standard deviation of their noise.
    errors : ndarray of shape (n_clusters,)
        Standard deviation by noise of each coordinate of a center.
    extent : ndarray of shape (n_clusters,)
        Noise of a coordinate of a center, over `count_noise` divided by the count.
    spreads, spread_noise : ndarray of shape (n_clusters,)
        Noisy mean squared distance of a row to its center, divided by the number of features, and
        the standard deviation of its noise.
    noise : Gaussian
        The noise of the release.
    """

    centers: np.ndarray
    counts: np.ndarray
    count_noise: float
    errors: np.ndarray
    spreads: np.ndarray
    spread_noise: np.ndarray
    extent: np.ndarray
    noise: Gaussian

    @property
    def weights(self) -> np.ndarray:
        """Shares of the clusters, of noisy counts of at least one row, (n_clusters,)."""
        counts = np.maximum(self.counts, 1.0)
        return counts / counts.sum()


def sensitivity(relation: Neighbours) -> Sensitivity:
    """Return the l2 sensitivity of the sums of a round.

    Examples
    --------
    >>> round(sensitivity(Neighbours.REPLACE_ONE).value, 3)
    2.017
    """
    square = 1.0 + 2.0 * _KAPPA**2
    if relation is Neighbours.REPLACE_ONE:
        square = max(4.0 + (1.0 - _REACH**-2) ** 2 * _KAPPA**2, 2.0 * square)
    proof = f"a row adds u and {_KAPPA} (1, v), |u| <= 1 and v <= 1, to one cluster"
    return Sensitivity(math.sqrt(square) * (1.0 + _MARGIN), "l2", relation, proof)


def weights(n_features: int) -> np.ndarray:
    """Return the weights of sums, count and sum of v in a release, (n_features + 2,)."""
    return np.append(np.ones(n_features), [_KAPPA, _KAPPA])


def radius_of_cluster(variance: float, n_features: int) -> float:
    """Return the radius that contains 95 % of a Gaussian cluster with a variance per feature.

    Examples
    --------
    >>> round(radius_of_cluster(1.0, 100), 2)  # with many features all norms are similar
    11.15
    """
    return math.sqrt(variance * float(chi2.ppf(_WITHIN, n_features)))


def pays(n_clusters: int, n_features: int, n_samples: float, sigma: float, part: float) -> bool:
    """Return whether noise of a round adds little to the loss of k clusters.

    `part` is the variance of a cluster over that of the data.
    """
    radius = radius_of_cluster(part, n_features)
    # the increase of the mean squared distance to the center, if clusters have equal sizes
    noise = n_features * (n_clusters * sigma * radius / max(n_samples, 1.0)) ** 2
    return noise <= _GAIN_THAT_PAYS * n_features * part


def release_round(
    X: np.ndarray,
    labels: np.ndarray,
    centers: np.ndarray,
    radius: np.ndarray,
    noise: Gaussian,
    source: NoiseSource,
    groups: Groups | None = None,
) -> RoundSums:
    """Release the sums of a round about centers.

    X is (n_samples, n_features), finite. The label of a row may depend on that row and earlier
    releases only. `radius` (n_clusters,) is positive.
    """
    exact = round_sums(X, labels, centers, radius, groups)
    noisy = noise.release(exact, source, weights(X.shape[1]))
    return RoundSums(noisy[:, :-2], noisy[:, -2], noisy[:, -1], radius, noise)


def one_round(
    X: np.ndarray,
    labels: np.ndarray,
    centers: np.ndarray,
    radius: np.ndarray,
    noise: Gaussian,
    source: NoiseSource,
    groups: Groups | None = None,
) -> Round:
    r"""Move centers by a single round; parameters are those of `release_round`.

    With noise of standard deviation :math:`\sigma` the mean of n rows has an error of
    :math:`\tau = \sigma r / n` in each coordinate. Centers make the fraction
    :math:`1 - d \tau^2 / |\Delta|^2` of a move :math:`\Delta`, at least 0 (James and Stein).
    """
    released = release_round(X, labels, centers, radius, noise, source, groups)
    rows = np.maximum(released.counts, max(_LEAST_COUNT * released.count_noise, 1.0))
    errors = noise.sigma * radius / rows
    moves = radius[:, None] * released.sums / rows[:, None]
    squares = np.maximum((moves**2).sum(axis=1), np.finfo(float).tiny)
    kept = np.maximum(1.0 - moves.shape[1] * errors**2 / squares, 0.0)
    moved, d = centers + kept[:, None] * moves, X.shape[1]
    spreads, spread_noise = (part / d for part in released.mean_squares(rows))
    # squares are about the old center: the squared move, without its noise, is subtracted
    spreads = spreads - np.maximum(squares / d - errors**2, 0.0)
    told = errors, spreads, spread_noise, released.extent, noise
    return Round(moved, released.counts, released.count_noise, *told)


def round_sums(
    X: np.ndarray,
    labels: np.ndarray,
    centers: np.ndarray,
    radius: float | np.ndarray,
    groups: Groups | None = None,
) -> FixedPoint:
    """Return exact sums of u, counts and sums of v of each cluster, (k, n_features + 2)."""
    check_row_count(len(X))
    parts = by_size(groups, X, labels)
    terms = ((size, [_sums_of_rows(rows, own, centers, radius)]) for size, rows, own in parts)
    return weighted_sums(terms)[0]


def _sums_of_rows(
    X: np.ndarray, labels: np.ndarray, centers: np.ndarray, radius: float | np.ndarray
) -> FixedPoint:
    """Return the sums and counts of rows of equal weight."""
    (k, d), n = centers.shape, len(X)
    sums = np.zeros((k, d + 1), dtype=np.int64)
    scales = 1.0 / np.broadcast_to(np.asarray(radius, float), k)
    for start in range(0, n, EXACT_ROWS):
        part, total = slice(start, start + EXACT_ROWS), np.zeros((k, d + 1))
        _add_clipped(np.ascontiguousarray(X[part]), labels[part], centers, scales, total)
        sums += FixedPoint.of_exact(total, SUM_BITS).integers
    # whole numbers, with no bits behind the point
    counts = np.bincount(labels, minlength=k).astype(np.int64)
    of_rows, of_spreads = FixedPoint(sums[:, :d], SUM_BITS), FixedPoint(sums[:, d:], SUM_BITS)
    return side_by_side([of_rows, FixedPoint(counts[:, None], 0), of_spreads])


@kernel()
def _add_clipped(
    X: np.ndarray, labels: np.ndarray, centers: np.ndarray, scales: np.ndarray, total: np.ndarray
) -> None:
    """Add u and v of each row, rounded by itself, to the total of its cluster."""
    d = X.shape[1]
    unit = np.empty(d)
    for i in range(X.shape[0]):
        c, square = labels[i], 0.0
        for j in range(d):
            unit[j] = (np.float64(X[i, j]) - centers[c, j]) * scales[c]
            square += unit[j] * unit[j]
        factor = 1.0 / np.sqrt(square) if square > 1.0 else 1.0
        for j in range(d):
            total[c, j] += rounded_term(factor * unit[j])
        total[c, d] += rounded_term(min(square / (_REACH * _REACH), 1.0))


def round_noise(relation: str, epsilon: float, delta: float, share: float) -> Gaussian:
    """Return the noise of a round at a share of a budget, as in `privclust.sketches.release`."""
    bound = sensitivity(Neighbours.of(relation))
    return Gaussian(bound, analytic_gaussian_sigma(bound, epsilon, delta) / math.sqrt(share))
