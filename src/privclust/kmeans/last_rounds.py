r"""Last looks at the rows with a part of a budget: noisy means of the rows of each cluster.

A sketch tells which rows belong together long before it tells where their centers are: with d
features its noise is spread over all of k d coordinates, and of many features a few random
projections are enough to tell clusters apart. So clusters are decoded, from a sketch of projected
rows where features are many, and the rows of each are added up once more: with the center c of the
cluster so far, or the mean of the data where there is none yet, and a radius r, a row x gives

.. math:: u = (x - c) / r, \quad \text{shortened to norm 1 where it is longer},

and the sums of u over the rows of each cluster and `_KAPPA` times their counts are released. Which
cluster a row belongs to follows from that row and from what was released before.

**How far a row moves them.** *Add-remove*: :math:`|u|^2 + \kappa^2 \le 1 + \kappa^2`.
*Replace-one*: in one cluster :math:`|u - u'|^2 \le 4`, in two :math:`2 + 2 \kappa^2`.

**Exact.** Norms are added up in the order of features, and entries of u, shortened, are rounded to
multiples of 2^-30: that adds :math:`2^{-31} \sqrt d` to a norm at most, less than `_MARGIN`. Sums
of such numbers are exact. With groups, every row of n counts 1 / n: `privclust.privacy.groups`.

**What noise leaves.** With noise of deviation :math:`\sigma` a center of :math:`n_j` rows moves by
:math:`\tau = \sigma r / n_j` in each coordinate. By the rule of James and Stein a move
:math:`\Delta` is made in part, :math:`1 - d \tau^2 / |\Delta|^2` or not at all: where noise is all
there is, centers stay.

**Two rounds** serve better than one where the first, about the mean of the data, makes room for a
much smaller radius about its centers. That follows from what was released before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
from privclust.core.lloyd import nearest_center
from privclust.decoding._mixture_decoder import Decoded
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.bounds import Box
from privclust.privacy.groups import ROW, Groups, by_size, weighted_sums
from privclust.privacy.measurements import Gaussian, analytic_gaussian_sigma
from privclust.privacy.noise import NoiseSource
from privclust.privacy.sensitivity import Sensitivity

_NAME = "sums and counts of rows by cluster"
_KAPPA = 0.5  # weight of counts
_MARGIN = 2.0**-16
_WITHIN = 0.95  # of the rows of a normal cluster are within the radius
PARTS = 0.1, 0.9, 0.45
"""Of the budget for rounds after a projection: the mean; and one round, or each of two."""
_LEAST_COUNT = 2.0  # of a cluster that moves, in deviations of its count's noise
_NOISE_THAT_WIDENS, _WIDEST = 0.02, 2.0  # in parts of the mean square; radius in roots of it
_LEAST_RADIUS = 1e-9  # in parts of half the box
_GAIN_THAT_PAYS = 0.05  # noise of a round, in parts of the error that k clusters leave


@dataclass(frozen=True)
class Round:
    """A round as it was made.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
        After it.
    counts : ndarray of shape (n_clusters,)
        Noisy numbers of rows.
    radius : float or ndarray of shape (n_clusters,)
        r, of all clusters or of each.
    noise : Gaussian
    kept : ndarray of shape (n_clusters,)
        Parts of the moves that were made.
    """

    centers: np.ndarray
    counts: np.ndarray
    radius: float | np.ndarray
    noise: Gaussian
    kept: np.ndarray

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise of counts."""
        return self.noise.sigma / _KAPPA

    @property
    def extent(self) -> float | np.ndarray:
        """How far noise of one deviation of the count moves a coordinate of a center of one row."""
        return _KAPPA * self.radius

    @property
    def errors(self) -> np.ndarray:
        """Standard deviation by noise of each coordinate of a center, (n_clusters,)."""
        return self.noise.sigma * self.radius / self._rows

    @property
    def _rows(self) -> np.ndarray:
        """Numbers of rows that moves are divided by."""
        return np.maximum(self.counts, max(_LEAST_COUNT * self.count_noise, 1.0))


def sensitivity(relation: Neighbours) -> Sensitivity:
    """Return how far a row moves the sums of a round.

    Examples
    --------
    >>> round(sensitivity(Neighbours.REPLACE_ONE).value, 3)
    2.0
    """
    value = math.sqrt(1.0 + _KAPPA**2)
    if relation is Neighbours.REPLACE_ONE:
        value = max(2.0, math.sqrt(2.0) * value)
    proof = "a row adds u, |u| <= 1, and half a count to one cluster"
    return Sensitivity(value * (1.0 + _MARGIN), "l2", relation, proof)


def weights(n_features: int) -> np.ndarray:
    """Return what sums and counts of a round are multiplied by, (n_features + 1,)."""
    return np.append(np.ones(n_features), _KAPPA)


def radius_of_cluster(variance: float, n_features: int) -> float:
    """Return the radius that holds most rows of normal clusters with a variance per feature.

    Examples
    --------
    >>> round(radius_of_cluster(1.0, 100), 2)  # all of many features have much the same norm
    11.15
    """
    return math.sqrt(variance * float(chi2.ppf(_WITHIN, n_features)))


def noise_of_round(
    n_clusters: int, n_features: int, n_samples: float, sigma: float, radius: float
) -> float:
    """Return by how much noise of a round raises the mean squared distance to the nearest center.

    That is with clusters of one size.
    """
    return n_features * (n_clusters * sigma * radius / max(n_samples, 1.0)) ** 2


def pays(n_clusters: int, n_features: int, n_samples: float, sigma: float, part: float) -> bool:
    """Return whether a round about decoded centers adds little to what k clusters leave.

    `part` is the variance of a cluster, in parts of the data's.
    """
    radius = radius_of_cluster(part, n_features)
    noise = noise_of_round(n_clusters, n_features, n_samples, sigma, radius)
    return noise <= _GAIN_THAT_PAYS * n_features * part


def one_round(
    X: np.ndarray,
    labels: np.ndarray,
    offsets: np.ndarray,
    radius: float | np.ndarray,
    noise: Gaussian,
    source: NoiseSource,
    groups: Groups | None = None,
) -> Round:
    """Move centers by one noisy round.

    X is (n_samples, n_features), finite; each row's label must follow from that row alone.
    `offsets` (n_clusters, n_features) are the centers so far; `radius` is positive, of all clusters
    or of each.
    """
    exact = round_sums(X, labels, offsets, radius, groups)
    noisy = noise.release(exact, source, weights(X.shape[1]))
    still = Round(offsets, noisy[:, -1], radius, noise, np.zeros(len(offsets)))
    moves = np.reshape(radius, (-1, 1)) * noisy[:, :-1] / still._rows[:, None]
    squares = np.maximum((moves**2).sum(axis=1), np.finfo(float).tiny)
    kept = np.maximum(1.0 - moves.shape[1] * still.errors**2 / squares, 0.0)
    return replace(still, centers=offsets + kept[:, None] * moves, kept=kept)


def round_sums(
    X: np.ndarray,
    labels: np.ndarray,
    offsets: np.ndarray,
    radius: float | np.ndarray,
    groups: Groups | None = None,
) -> FixedPoint:
    """Return exact sums of u over the rows of each cluster, and counts, (k, n_features + 1)."""
    check_row_count(len(X))
    parts = by_size(groups, X, labels)
    terms = ((size, [_sums_of_rows(rows, own, offsets, radius)]) for size, rows, own in parts)
    return weighted_sums(terms)[0]


def _sums_of_rows(
    X: np.ndarray, labels: np.ndarray, offsets: np.ndarray, radius: float | np.ndarray
) -> FixedPoint:
    """Return the sums and counts of rows that weigh the same."""
    sums = np.zeros(offsets.shape, dtype=np.int64)
    scales = 1.0 / np.broadcast_to(np.asarray(radius, float), len(offsets))
    for start in range(0, len(X), EXACT_ROWS):
        part, total = slice(start, start + EXACT_ROWS), np.zeros(offsets.shape)
        _add_shortened(np.ascontiguousarray(X[part]), labels[part], offsets, scales, total)
        sums += FixedPoint.of_exact(total, SUM_BITS).integers
    counts = np.bincount(labels, minlength=len(offsets)).astype(np.int64)
    return side_by_side([FixedPoint(sums, SUM_BITS), FixedPoint(counts[:, None], 0)])


@kernel()
def _add_shortened(
    X: np.ndarray, labels: np.ndarray, offsets: np.ndarray, scales: np.ndarray, total: np.ndarray
) -> None:
    """Add u of each row to its cluster's total, rounded by itself."""
    unit = np.empty(X.shape[1])
    for i in range(X.shape[0]):
        c, square = labels[i], 0.0
        for j in range(X.shape[1]):
            unit[j] = (np.float64(X[i, j]) - offsets[c, j]) * scales[c]
            square += unit[j] * unit[j]
        factor = 1.0 / np.sqrt(square) if square > 1.0 else 1.0
        for j in range(X.shape[1]):
            total[c, j] += rounded_term(factor * unit[j])


def round_noise(relation: str, epsilon: float, delta: float, share: float) -> Gaussian:
    """Return the noise of a round on a share of a budget, as in `privclust.sketches.release`."""
    bound = sensitivity(Neighbours.of(relation))
    return Gaussian(bound, analytic_gaussian_sigma(bound, epsilon, delta) / math.sqrt(share))


def state_round(noise: Gaussian, delta: float, seeded: bool, unit: str = ROW) -> Guarantee:
    """Return what a round with such noise promises by itself."""
    line = noise.statement(_NAME, units="radii")
    relation = noise.sensitivity.relation
    return Guarantee.of(
        [line], "approximate", relation, delta=float(delta), seeded=seeded, unit=unit
    )


def round_about(
    X: np.ndarray,
    labels: np.ndarray,
    box: Box,
    decoded: Decoded,
    noise: Gaussian,
    source: NoiseSource,
    groups: Groups | None = None,
) -> list[Round]:
    """Move centers that were decoded in all features; arguments as of `rounds_from_middle`."""
    radius = radius_of_cluster(decoded.spread, X.shape[1])
    radius = max(radius, _least_radius(box))
    return [one_round(X, labels, decoded.centers, radius, noise, source, groups)]


def rounds_from_middle(
    X: np.ndarray,
    labels: np.ndarray,
    box: Box,
    decoded: Decoded,
    n_samples: float,
    noises: list[Gaussian],
    source: NoiseSource,
    groups: Groups | None = None,
) -> list[Round]:
    """Find centers of clusters that were decoded in a projection: the mean, and a round or two.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
        Cluster of each row, by that row and what was released.
    box : Box
        Its middle is where the projection has 0.
    decoded : Decoded
    n_samples : float
        Number of rows, or of groups, as far as it is known.
    noises : list of Gaussian
        Of the rounds' `PARTS`: the mean, a round that is the only one, each of two.
    source
        Of the noise.
    groups : Groups or None
        Of rows that are protected together.
    """
    of_mean, whole, half = noises
    (k, p), d = decoded.centers.shape, X.shape[1]
    least = _least_radius(box)
    radius = _wide(decoded.mean_square(np.zeros(p)), 1, d, n_samples, of_mean.sigma, least)
    of_all = np.zeros(len(X), dtype=np.int64)
    mean = one_round(X, of_all, box.center[None], radius, of_mean, source, groups)
    squares = decoded.mean_square(decoded.weights @ decoded.centers)
    squares += noise_of_round(1, d, n_samples, of_mean.sigma, radius) / d
    radius = _wide(squares, k, d, n_samples, half.sigma, least)
    offsets = np.repeat(mean.centers, k, axis=0)
    in_one = noise_of_round(k, d, n_samples, whole.sigma, radius)
    of_first = noise_of_round(k, d, n_samples, half.sigma, radius)
    closer = max(math.hypot(radius_of_cluster(decoded.spread, d), math.sqrt(of_first)), least)
    if noise_of_round(k, d, n_samples, half.sigma, closer) >= in_one:
        return [mean, one_round(X, labels, offsets, radius, whole, source, groups)]
    first = one_round(X, labels, offsets, radius, half, source, groups)
    labels = nearest_center(X, first.centers)
    return [mean, first, one_round(X, labels, first.centers, closer, half, source, groups)]


def _wide(
    squares: float, n_clusters: int, n_features: int, n_samples: float, sigma: float, least: float
) -> float:
    """Return a radius about a point for rows of which the mean square of a feature is known.

    It is the root of the mean square, at least, and up to twice that, as rows differ and a
    projection tells it roughly, where noise stays small beside the rows' own extent.
    """
    radius = math.sqrt(n_features * squares)
    noise = noise_of_round(n_clusters, n_features, n_samples, sigma, radius)
    reach = math.sqrt(_NOISE_THAT_WIDENS * n_features * squares / noise) if noise > 0.0 else 1.0
    return max(radius * min(max(reach, 1.0), _WIDEST), least)


def _least_radius(box: Box) -> float:
    """Return a radius of which the unit is an ordinary number: rows may all be equal."""
    return _LEAST_RADIUS * float(np.linalg.norm(box.half_widths))
