r"""From a sketch to centers: a mixture of isotropic Gaussians fitted to the mean features.

The features of a cluster are those of its center times the characteristic function of its spread.
So Dirac atoms (CL-OMPR, see `privclust.decoding._clompr`) are biased. Gaussian atoms are unbiased
for mixtures of isotropic Gaussians. `privclust.decoding._atoms` has the objective f,
`privclust.decoding._mixture_fit` the search for its minimum.

The residual f of a good fit is known in advance. With n rows, m features, each measured on a
fraction :math:`\alpha_r` of the rows, and noise of variance :math:`\sigma^2` on real and imaginary
part,

.. math::
    E f \le \sum_j \frac{1 - \alpha_r |z_j|^2}{\alpha_r n} + 2 m \sigma^2

at the true mixture (the numerator and denominator of eq. (6) of the compressive k-means paper). The
search stops at the first start that reaches it.

Data are rarely such a mixture. So, while the number of atoms is reduced to k, the mixture of least
BIC is kept: the residual plus log(2 m) half-variances for each number. (A *half-variance* is half
of the expected residual of a feature.) Atoms with covariances (`privclust.decoding._ellipsoids`)
replace k isotropic atoms that do not explain the sketch, if they explain two half-variances more
for each number (AIC). A number explains about one by fitting noise. So covariances are tried only
if the excess residual is above one for each added number, less three standard deviations (each
:math:`\sqrt{4m}` half-variances). The k-means centers of the density differ from its means if
clusters overlap, differ in spread, or have several atoms. They are found by Lloyd's algorithm on
points drawn from it, started from the means of the k atoms or by k-means++.

Atoms fitted to noisy features partly explain noise: by AIC two half-variances for each of their
numbers. This part of the density is replaced by one Gaussian with the moments of the data
(`MixtureFit.shrunk`), as in a James-Stein estimate, and truncated to the declared bounds. If no
clusters are distinguishable, centers then cover the extent of the data instead of following noise.
Everything here is post-processing of the sketch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from privclust.core.lloyd import lloyd, nearest_center, nearest_center_statistics, plus_plus
from privclust.core.progress import logged
from privclust.decoding._agreement import Agreement, agreement
from privclust.decoding._cluster_spreads import cluster_spreads
from privclust.decoding._ellipsoids import n_numbers
from privclust.decoding._gaussians import GaussianMixture, boxed_points, paired_points
from privclust.decoding._mixture_fit import MixtureFit
from privclust.decoding._sketch_check import holds_most
from privclust.privacy.bounds import Box

POINTS_PER_CLUSTER = 4000
"""Points of the density that are drawn for Lloyd's algorithm."""
# benchmarks/ablation.py measures the effect of these constants on the loss
OPTIMISER_RESIDUAL = 1e-6  # fraction of the features' power below which a residual counts as 0
_NEAR_BEST = 2.0  # largest excess of a near-best residual, in deviations of the difference
_AIC_PENALTY = 2.0  # half-variances that a number of a covariance must explain
_RESIDUAL_DEVIATIONS = 3.0  # margin of a residual, in its deviations, for covariances to be tried
_MISFIT_DEVIATIONS = 3.0  # deviations of a residual above its expected value that mean a misfit
_LEAST_IMPROVEMENT = 0.02  # relative decrease of Lloyd's error by another start, to be kept
_FEW_POINTS_PER_CLUSTER = 400  # points that are drawn for starts of Lloyd's algorithm
_CHECKED_POINTS = 100  # points per cluster that decide whether it is detected
_LLOYD_STARTS, _FEWEST_LLOYD_STARTS = 300, 5  # k-means++ starts: 300 / k, from 5 to 30
_FEW_ITERATIONS, _MOST_ITERATIONS = 30, 300  # iterations of Lloyd's algorithm
_FINE_TOLERANCE, _ROUGH_TOLERANCE = 1e-6, 1e-4  # of Lloyd's algorithm; rough if much is noise


@dataclass(frozen=True)
class Decoded:
    """A mixture that explains a sketch, and the k-means centers of that mixture.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
    weights : ndarray of shape (n_clusters,)
        Fractions of the data, adding up to 1.
    variances : ndarray of shape (n_clusters,)
        Variance per feature of each of the k atoms of least residual; 0 for Dirac masses. Lloyd's
        algorithm starts from these atoms. Their order is not that of `centers` if it found better
        ones from another start.
    residual : float
        Least f over the starts, with features of modulus 1.
    expected_residual : float
        Bound on the mean of f at the true mixture. A residual far above it shows that the data are
        no such mixture, or that the search failed.
    is_detected : ndarray of shape (n_clusters,)
        Whether a center lies in an atom that explains more than noise; see
        `privclust.decoding._sketch_check`.
    inertia : float
        Mean squared distance of a row of the mixture to the nearest center.
    least_weight : float
        Fraction of the rows below which a cluster as wide as the others is not detected.
    density : GaussianMixture or None
        The mixture with these k-means centers; None for Dirac masses.
    is_outside : bool
        Whether the sketch shows that data lie outside the bounds.
    starts : Agreement or None
        Agreement of other starts that explain the sketch equally well, in the order of `centers`;
        None for Dirac masses.
    box : Box or None
        The bounds of the centers.
    is_explained : bool
        Whether the residual of `density` is at most 3 standard deviations (those by Laplace noise,
        which are the larger) above its expected value. If not, the clusters are not Gaussian, and
        standard errors from the density are too small.
    """

    centers: np.ndarray
    weights: np.ndarray
    variances: np.ndarray
    residual: float
    expected_residual: float
    is_detected: np.ndarray
    inertia: float
    least_weight: float
    density: GaussianMixture | None = field(default=None, repr=False)
    is_outside: bool = False
    starts: Agreement | None = field(default=None, repr=False)
    box: Box | None = field(default=None, repr=False)
    is_explained: bool = True

    @property
    def is_stable(self) -> bool:
        """Whether all starts that explain the sketch equally well agree on the clusters."""
        return self.starts is None or self.starts.is_stable

    @property
    def spread(self) -> float:
        """Mean variance of a feature within clusters."""
        return self.inertia / self.centers.shape[1]

    @property
    def cluster_spreads(self) -> np.ndarray | None:
        """Standard deviation of each feature in each cluster, (n_clusters, n_features), or None."""
        return self.spreads_about(self.centers)

    def spreads_about(self, centers: np.ndarray) -> np.ndarray | None:
        """Return `cluster_spreads` about other centers; None for Dirac masses."""
        if self.density is None:
            return None
        return cluster_spreads(self.density, centers, self.box)

    def mean_square(self, place: np.ndarray) -> float:
        """Return the mean squared distance of the mixture's rows to a point (d,), per feature."""
        apart = self.weights @ ((self.centers - place) ** 2).mean(axis=1)
        return float(apart) + self.spread

    def clipped(self, box: Box) -> Decoded:
        """Return a copy with centers clipped to a box."""
        return replace(self, centers=np.clip(self.centers, box.low, box.high))


def expected_residual(features, n_samples, part, noise_variance) -> float:
    """Bound the mean of f at the true mixture: see the module's description."""
    moduli = np.minimum(np.abs(features) ** 2, 1.0)
    sampling = float((1.0 - part * moduli).sum()) / (part * n_samples)
    return sampling + 2.0 * len(features) * noise_variance


@dataclass(frozen=True)
class FittedDensity:
    """The density that explains a sketch, before its centers are found.

    Atoms and starts are weights, centers and spreads in the units of the `problem`; `best` are the
    k atoms of least residual, and `of_one_number` is the half-variance.
    """

    problem: MixtureFit
    best: tuple[np.ndarray, np.ndarray, np.ndarray]
    residual: float
    expected_residual: float
    of_one_number: float
    atoms: tuple[np.ndarray, np.ndarray, np.ndarray]
    parts: tuple[np.ndarray, np.ndarray, np.ndarray]
    starts: list[tuple[tuple[np.ndarray, np.ndarray, np.ndarray], float]]

    @property
    def density(self) -> GaussianMixture:
        """The mixture in the units of the data, with equal weights if all are 0."""
        weights, centers, spreads = self.scaled
        total = weights.sum()
        parts = weights / total if total > 0.0 else np.full(len(weights), 1.0 / len(weights))
        return GaussianMixture(parts, centers, spreads, len(self.atoms[0]))

    @property
    def scaled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, centers and spreads in the units of the data."""
        weights, centers, spreads = self.parts
        unit = self.problem.unit
        return weights, self.problem.origin + unit * centers, unit * spreads


def fit_density(
    features,
    frequencies,
    n_clusters,
    moments,
    expected,
    *,
    spread,
    n_init,
    rng,
    noisy,
    covariances=True,
) -> FittedDensity:
    """Fit Gaussian atoms to mean features of modulus at most 1.

    Features (m,) at frequencies (d, m) estimate means of exp(i omega'x). `moments` are those of the
    data. With `covariances` atoms may have some. The best of at most `n_init` starts is returned;
    a residual below `expected` (from `expected_residual`), less what the fit absorbs, ends the
    search. If features are `noisy`, atoms that may be noise are shrunk towards one Gaussian.
    """
    problem = MixtureFit(features, frequencies, moments, spread)
    d, m = len(moments.mean), len(features)
    of_one_number = 0.5 * expected / m
    least_explained = OPTIMISER_RESIDUAL * float(np.vdot(features, features).real)
    penalty = 0.5 * max(expected, least_explained) / m
    penalty *= (d + 1 + (spread == "per_cluster")) * math.log(2.0 * m)
    enough = expected - of_one_number * n_clusters * (d + 2)
    least_gain = max(_AIC_PENALTY * of_one_number * (d + 2), least_explained)
    best, least, richest, least_score = None, math.inf, None, math.inf
    starts = []
    for _ in logged(range(n_init), n_init, "decoding: starts at most"):
        mixture, residual, richer, score = problem.search(n_clusters, penalty, rng)
        mixture, residual = problem.repaired(mixture, residual, least_gain, rng)
        if residual < least:
            best, least = mixture, residual
        if residual + penalty * n_clusters <= score:
            richer, score = mixture, residual + penalty * n_clusters
        if score < least_score:
            richest, least_score = richer, score
        starts.append((mixture, residual))
        if least <= enough:
            break
    # the same object if no other number of atoms had a better score: refined only once
    is_best = richest is best
    *best, least = problem.refine(*best)
    richest = best if is_best else problem.refine(*richest)[:3]
    weights, centers, variances = richest
    parts = atoms = weights, centers, np.sqrt(variances)
    ellipsoids = None
    if covariances and spread == "per_cluster" and least > max(enough, least_explained):
        n_added = n_numbers(n_clusters, d) - n_clusters * (d + 2)
        by_chance = (n_added - _RESIDUAL_DEVIATIONS * math.sqrt(4.0 * m)) * of_one_number
        if least > enough + by_chance:
            of_unknown = _AIC_PENALTY * of_one_number
            score = problem.residual(*richest) + of_unknown * len(weights) * (d + 2)
            mixtures = [best] if is_best else [best, richest]
            ellipsoids = problem.ellipsoids(mixtures, of_unknown, score)
    if ellipsoids is not None:
        parts = atoms = ellipsoids
    elif noisy:
        of_each = _AIC_PENALTY * of_one_number * (d + 1 + (spread == "per_cluster"))
        parts = problem.shrunk(parts, problem.residual(*richest), of_each)
    return FittedDensity(problem, best, least, expected, of_one_number, atoms, parts, starts)


def decode_mixture(*sketched, rng, box=None, **how) -> Decoded:
    """Return the k-means centers of a density from `fit_density`, which has the same arguments."""
    fit = fit_density(*sketched, rng=rng, **how)
    problem, best, density = fit.problem, fit.best, fit.parts
    _, centers, spreads = fit.atoms
    # more Gaussians than atoms: one wide Gaussian stands for noise (`MixtureFit.shrunk`)
    tolerance = _ROUGH_TOLERANCE if len(density[0]) > len(fit.atoms[0]) else _FINE_TOLERANCE
    kept_weights, kept = problem.detected_atoms(centers, spreads, fit.of_one_number)
    smallest = problem.least_weight(best[2], spreads, fit.of_one_number)
    detected = kept_weights, centers[kept], spreads[kept]
    start = problem.origin + problem.unit * best[1]
    reach = box if len(density[0]) > len(fit.atoms[0]) else None
    centers, weights, inertia = kmeans_of_mixture(*fit.scaled, start, rng, tolerance, reach)
    variances = problem.unit**2 * best[2]
    is_detected = _detected_centers((centers - problem.origin) / problem.unit, detected, density)
    told = fit.residual, fit.expected_residual, is_detected, inertia, smallest
    starts = _agreement_of_starts(fit, centers)
    found = Decoded(centers, weights, variances, *told, fit.density, starts=starts)
    return replace(found, is_explained=_is_explained(fit))


def _is_explained(fit):
    """Return whether the residual of the atoms of the density is consistent with noise."""
    whole = fit.problem.norm
    # squares of Laplace noise have 2.5 times the variance of squares of Gaussian noise
    # m features have 2 m squares: with Gaussian noise their sum deviates by 1 / sqrt(m)
    deviation = math.sqrt(2.5 / fit.problem.size)
    limit = fit.expected_residual * (1.0 + _MISFIT_DEVIATIONS * deviation)
    return fit.problem.residual_of(*fit.atoms) <= max(limit, OPTIMISER_RESIDUAL * whole)


def _agreement_of_starts(fit, centers):
    """Compare the centers (k, d) of the atoms of each near-best start with those of the best."""
    problem, rng = fit.problem, np.random.default_rng(0)  # so that the check changes no other draw
    best = min(fit.starts, key=lambda start: start[1])
    left = np.hstack(problem.unexplained(*best[0]))
    near = []
    for mixture, residual in fit.starts:
        apart = np.linalg.norm(np.hstack(problem.unexplained(*mixture)) - left)
        by_noise = 2.0 * math.sqrt(fit.of_one_number) * apart  # deviation of the difference
        if mixture is not best[0] and residual - best[1] <= _NEAR_BEST * by_noise:
            near.append(mixture)
    if not near:
        return agreement(centers, [])
    own, *others = (_rough_centers(mixture, rng) for mixture in (best[0], *near))
    own, *others = (problem.origin + problem.unit * found for found in (own, *others))
    order, its = linear_sum_assignment(cdist(centers, own))
    matched = np.empty_like(own)
    matched[order] = own[its]
    return agreement(matched, others)


def _rough_centers(mixture, rng):
    """Return k-means centers of a few points of k round atoms, started from their means."""
    weights, means, variances = mixture
    if not weights.sum() > 0.0:
        return means
    size = _FEW_POINTS_PER_CLUSTER * len(means)
    points = paired_points(weights / weights.sum(), means, np.sqrt(variances), size, rng)
    return lloyd(points, means, _MOST_ITERATIONS, _ROUGH_TOLERANCE)[0]


def kmeans_of_mixture(weights, centers, spreads, start, rng, tolerance=_FINE_TOLERANCE, box=None):
    """Return the k-means centers, weights and error of a mixture, by Lloyd's algorithm on points.

    `spreads` are standard deviations (K,) or factors L (K, d, d) of covariances L L'. Lloyd's
    algorithm starts from given centers, or from the best of some k-means++ starts on fewer points
    if that is better. Points are pairs symmetric about each mean, in numbers proportional to its
    weight, so that means of clusters that do not overlap do not move; with a box they are within.
    Updates end when the relative decrease of the error is below the tolerance.
    """
    total, k = weights.sum(), len(start)
    if not total > 0.0:
        return start, np.full(k, 1.0 / k), 0.0
    law = weights / total, centers, spreads, POINTS_PER_CLUSTER * k
    points = paired_points(*law, rng) if box is None else boxed_points(*law, box, rng)
    subset = points[rng.permutation(len(points))[: _FEW_POINTS_PER_CLUSTER * k]]
    best = lloyd(subset, start, _FEW_ITERATIONS, 0.0)
    n_starts = max(_FEWEST_LLOYD_STARTS, min(_LLOYD_STARTS // 10, _LLOYD_STARTS // k))
    starts = [plus_plus(subset, k, rng) for _ in range(n_starts)]
    other = min((lloyd(subset, s, _FEW_ITERATIONS, 0.0) for s in starts), key=lambda run: run[1])
    if other[1] < best[1] * (1.0 - _LEAST_IMPROVEMENT):
        best = other
    centers, _, _ = lloyd(points, best[0], _MOST_ITERATIONS, tolerance)
    counts, _, inertia = nearest_center_statistics(points, centers)
    return centers, counts / len(points), inertia / len(points)


def _detected_centers(centers, detected, density):
    """Return which centers are nearest to points that mostly belong to detected atoms."""
    weights, means, spreads = density
    k, total = len(centers), weights.sum()
    if not total > 0.0:
        return np.zeros(k, dtype=bool)
    rng = np.random.default_rng(0)  # so that the check changes no other draw
    points = paired_points(weights / total, means, spreads, _CHECKED_POINTS * k, rng)
    labels = nearest_center(points, centers)
    n_points = np.bincount(labels, minlength=k)
    n_detected = np.bincount(labels, weights=holds_most(points, detected, density), minlength=k)
    return (n_points > 0) & (n_detected >= 0.5 * n_points)
