r"""From a sketch to centers: a mixture of isotropic Gaussians fitted to the mean features.

A cluster is not a point: its features are those of its center times the characteristic function of
its spread, so Dirac atoms (CL-OMPR, see `privclust.kmeans._clompr`) leave a bias. Gaussian atoms
leave none on mixtures of isotropic Gaussians; `privclust.kmeans._atoms` has the objective f.

Many local minima of f are two atoms in one cluster while another atom lies across two. They are
avoided by starting with twice as many atoms as asked for, wide and at random, and deleting one by
one that atom whose loss, all other weights refitted, is least:
:math:`\alpha_k^2 / (G^{-1})_{kk}` with the Gram matrix G of the atoms (for nonnegative weights a
lower bound). Between deletions the mixture is refitted by a few quasi-Newton steps.

The residual f of a good fit is known in advance: with n rows, m features, each measured on a part
:math:`\alpha_r` of the rows, and noise of variance :math:`\sigma^2` on real and imaginary part,

.. math::
    E f \le \sum_j \frac{1 - \alpha_r |z_j|^2}{\alpha_r n} + 2 m \sigma^2

at the true mixture (the numerator and denominator of eq. (6) of the compressive k-means paper), so
the search can stop at the first start that reaches it.

Data are rarely such a mixture, so on the way down from many atoms to k the mixture is kept whose
residual plus the usual penalty of log(2 m) half-variances for each number (BIC) is least: as rich a
density as the noise lets one see. Where k isotropic atoms do not explain the sketch, atoms with
covariances (`privclust.kmeans._ellipsoids`) may take their place, if they explain two
half-variances more for each of their numbers (AIC). Noise alone lets a number explain about one:
where the residual is not above what that leaves, less three standard deviations (each
:math:`\sqrt{4m}` half-variances), they are not even fitted. The k-means centers of that density are
not its means where clusters overlap, differ in spread, or have more than one atom. They are found
by Lloyd's algorithm on points drawn from it, started from the means of the k atoms or by k-means++.

Where features have noise, some of what atoms explain is noise: by AIC two half-variances for each
of their numbers. That part of the density gives way to one Gaussian with the moments of the data
(`MixtureFit.shrunk`), as a James-Stein estimate would: where clusters cannot be told, centers share
out the data's extent instead of following noise.
Everything here is post-processing of the sketch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from privclust.core.lloyd import lloyd, nearest_center, nearest_center_statistics, plus_plus
from privclust.kmeans._atoms import (
    LOGISTIC_EDGE,
    least_squares_problem,
    minimise,
    mixture_atoms,
    unpacked,
)
from privclust.kmeans._ellipsoids import ellipsoid_atoms, fit_ellipsoids, n_numbers
from privclust.kmeans._sketch_check import holds_most, least_loss
from privclust.privacy.bounds import Box

_ATOMS_PER_CLUSTER, _EXTRA_ATOMS = 2, 20  # atoms to start with: twice k, k + 20 at least
_DELETION_ROUNDS = 12  # at most
_START_ITERATIONS, _PRUNE_ITERATIONS, _LAST_ITERATIONS = 300, 60, 1000
_LOOSE_TOLERANCE, _TIGHT_TOLERANCE = 1e-4, 1e-5  # relative progress of three steps
_LEAST_VARIANCE_RATIO = 1e-4  # of an atom to the data
_GRAM_TILE = 4096
_LEAST_NORM = 1e-200  # squared, of atoms that vanish at all frequencies
_OPTIMISER_RESIDUAL = 1e-6  # in parts of the features' power: below it nothing is left to explain
_AIC_PENALTY = 2.0  # residuals of one equation that an unknown of covariances must explain
_RESIDUAL_DEVIATIONS = 3.0  # of a residual, by which covariances may explain more than noise
_LEAST_IMPROVEMENT = 0.02  # of the residual; a repair of less is the last
_REPAIR_PLACES, _REPAIR_REACH = 100, 2.0  # where a better place for an atom is looked for
_POINTS_PER_CLUSTER, _FEW_POINTS_PER_CLUSTER = 4000, 400  # drawn for Lloyd's algorithm
_CHECKED_POINTS = 100  # per cluster, that tell whether it is more than noise
_LLOYD_STARTS = 30  # by k-means++, on the fewer points
_FEW_ITERATIONS, _MOST_ITERATIONS = 30, 300  # of Lloyd's algorithm
_FINE_TOLERANCE, _ROUGH_TOLERANCE = 1e-6, 1e-4  # of Lloyd's algorithm; rough where noise is wide


@dataclass(frozen=True)
class Decoded:
    """A mixture that explains a sketch, and the k-means centers of that mixture.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
    weights : ndarray of shape (n_clusters,)
        Parts of the data, adding up to 1.
    variances : ndarray of shape (n_clusters,)
        Variance per feature of each of the k atoms of least residual; 0 for Dirac masses. Lloyd's
        algorithm starts from these atoms, and where it finds better centers elsewhere, their order
        is not that of `centers`.
    residual : float
        Least f over the starts, with features of modulus 1.
    expected_residual : float
        Bound on the mean of f at the true mixture; a residual far above it says that the data are
        no such mixture, or that the search failed.
    explained : float
        Part of f of one atom that k atoms explain, from 0 to 1; 0 for one cluster.
    is_clear : ndarray of shape (n_clusters,)
        Whether a center lies in an atom that explains more than noise lets one explain; see
        `privclust.kmeans._sketch_check`.
    is_outside : bool
        Whether the sketch says that data lie outside the bounds that centers are looked for in.
    """

    centers: np.ndarray
    weights: np.ndarray
    variances: np.ndarray
    residual: float
    expected_residual: float
    explained: float
    is_clear: np.ndarray
    is_outside: bool = False

    def drawn_in(self, box: Box) -> Decoded:
        """Return the same with centers drawn in to a box."""
        return replace(self, centers=np.clip(self.centers, box.low, box.high))


class MixtureFit:
    """The least-squares problem of one sketch, in units of the data's standard deviation."""

    def __init__(self, features, frequencies, moments, spread):
        self.unit = math.sqrt(moments.variance)
        self.origin = moments.mean
        shifted = features * np.exp(-1j * (moments.mean @ frequencies))
        self.problem = least_squares_problem(shifted, frequencies * self.unit)
        self.spreads = np.sqrt(moments.variances) / self.unit
        self.shared = spread == "shared"
        self.log_low = math.log(_LEAST_VARIANCE_RATIO)
        self.log_high = math.log(max(1.0, float(self.spreads.max() ** 2)))

    def fit(self, weights, centers, variances, max_iter, tolerance):
        """Refine a mixture; return it and its residual."""
        n_atoms = len(weights)
        width = self.log_high - self.log_low
        part = (np.log(variances[:1] if self.shared else variances) - self.log_low) / width
        part = np.clip(part, LOGISTIC_EDGE, 1.0 - LOGISTIC_EDGE)
        roots = np.sqrt(np.maximum(weights, 1e-6))
        point = np.concatenate([roots, centers.ravel(), np.log(part / (1.0 - part))])
        bounds = self.log_low, self.log_high
        residual = minimise(point, n_atoms, *bounds, self.problem, max_iter, tolerance)
        return *unpacked(point, n_atoms, centers.shape[1], *bounds)[:3], residual

    def gram(self, centers, variances):
        """Return the Gram matrix of the atoms and their inner products with the features.

        Factors L (K, d, d) of covariances L L' may stand in place of `variances` (K,).
        """
        turns, squares, real, imaginary = self.problem
        size = len(centers)
        products, correlations = np.zeros((size, size)), np.zeros(size)
        for start in range(0, squares.size, _GRAM_TILE):
            tile = slice(start, start + _GRAM_TILE)
            omega = np.ascontiguousarray(turns[:, tile])
            if variances.ndim == 1:
                cosines, sines = mixture_atoms(omega, squares[tile], centers, variances)
            else:
                cosines, sines = ellipsoid_atoms(2.0 * math.pi * omega, centers, variances)
            products += cosines @ cosines.T + sines @ sines.T
            correlations += cosines @ real[tile] + sines @ imaginary[tile]
        return products, correlations

    def prune(self, mixture, n_left):
        """Delete atoms that are missed least until n_left are there; refit the weights."""
        weights, centers, variances = mixture
        products, correlations = self.gram(centers, variances)
        kept = np.arange(len(weights))
        while True:
            weights, losses = _refitted(products, correlations, kept)
            if len(kept) == n_left:
                return weights, centers[kept], variances[kept]
            kept = np.delete(kept, int(np.argmin(losses)))

    def clear_atoms(self, centers, spreads, of_one_number):
        """Return the weights and places of atoms that all explain more than noise may.

        Those that are missed least are left out one by one, and other weights refitted. `spreads`
        are standard deviations (K,) or factors L (K, d, d) of covariances L L'.
        """
        products, correlations = self.gram(centers, spreads**2 if spreads.ndim == 1 else spreads)
        least = least_loss(spreads, centers.shape[1], of_one_number)
        kept = np.arange(len(centers))
        while len(kept):
            weights, losses = _refitted(products, correlations, kept)
            worst = int(np.argmin(losses))
            if losses[worst] > least:
                return weights, kept
            kept = np.delete(kept, worst)
        return np.empty(0), kept

    def explained(self, mixture, residual):
        """Return the part of f of one atom that a mixture explains."""
        weights, centers, variances = mixture
        if len(weights) == 1 or not weights.sum() > 0.0:
            return 0.0
        heaviest = int(np.argmax(weights))
        parts = weights / weights.sum()
        mean = parts @ centers
        whole = parts @ (variances + ((centers - mean) ** 2).mean(axis=1))
        alone = math.inf
        for center, variance in (mean, whole), (centers[heaviest], variances[heaviest]):
            start = np.ones(1), center[None], np.array([max(variance, _LEAST_VARIANCE_RATIO)])
            alone = min(alone, self.fit(*start, _PRUNE_ITERATIONS, _LOOSE_TOLERANCE)[3])
        return min(max(1.0 - residual / alone, 0.0), 1.0) if alone > 0.0 else 0.0

    def search(self, n_clusters, penalty, rng):
        """Fit more atoms than asked for from a random start, and delete them one by one.

        Returns the mixture of as many atoms as clusters and its residual, and the mixture on the
        way whose residual plus `penalty` for each atom is least.
        """
        n_features = len(self.spreads)
        n_atoms = max(_ATOMS_PER_CLUSTER * n_clusters, n_clusters + _EXTRA_ATOMS)
        start = math.sqrt(0.5 * cell_variance(n_clusters, n_features))
        width = np.sqrt(np.maximum(self.spreads**2 - start, 0.1 * self.spreads**2))
        mixture = (
            np.full(n_atoms, 1.0 / n_atoms),
            rng.standard_normal((n_atoms, n_features)) * width,
            np.full(n_atoms, start),
        )
        *mixture, residual = self.fit(*mixture, _START_ITERATIONS, _LOOSE_TOLERANCE)
        best, least = mixture, residual + penalty * n_atoms
        a_round = max(1, -(-(n_atoms - n_clusters) // _DELETION_ROUNDS))
        while len(mixture[0]) > n_clusters:
            n_left = max(n_clusters, len(mixture[0]) - a_round)
            mixture = self.prune(mixture, n_left)
            how = _PRUNE_ITERATIONS, _LOOSE_TOLERANCE
            if n_left == n_clusters:
                how = _LAST_ITERATIONS, _TIGHT_TOLERANCE
            *mixture, residual = self.fit(*mixture, *how)
            if residual + penalty * n_left <= least:
                best, least = mixture, residual + penalty * n_left
        return mixture, residual, best, least

    def repair(self, mixture, residual, rng):
        """Move the atom that is missed least to where the residual is largest, if that helps."""
        weights, centers, variances = mixture
        turns, squares = self.problem[:2]
        real, imaginary = self.unexplained(*mixture)
        reach = _REPAIR_REACH * self.spreads
        places = rng.standard_normal((_REPAIR_PLACES, len(reach))) * reach
        widths = np.full(_REPAIR_PLACES, np.median(variances))
        cosines, sines = mixture_atoms(turns, squares, places, widths)
        heights = cosines @ real + sines @ imaginary
        best = int(np.argmax(heights))
        height = heights[best] / max(float(np.exp(-widths[0] * squares).sum()), _LEAST_NORM)
        larger = (
            np.append(weights, max(height, 0.0)),
            np.vstack([centers, places[best]]),
            np.append(variances, widths[0]),
        )
        *larger, _ = self.fit(*larger, _PRUNE_ITERATIONS, _LOOSE_TOLERANCE)
        smaller = self.prune(larger, len(weights))
        *changed, new_residual = self.fit(*smaller, _LAST_ITERATIONS, _TIGHT_TOLERANCE)
        return (changed, new_residual) if new_residual < residual else (mixture, residual)

    def unexplained(self, weights, centers, variances):
        """Return real and imaginary parts of what a mixture leaves of the features."""
        turns, squares, real, imaginary = self.problem
        cosines, sines = mixture_atoms(turns, squares, centers, variances)
        return real - weights @ cosines, imaginary - weights @ sines

    def residual(self, weights, centers, variances):
        """Return f of a mixture."""
        real, imaginary = self.unexplained(weights, centers, variances)
        return float(real @ real + imaginary @ imaginary)

    def ellipsoids(self, mixtures, of_each, least_score):
        """Return the atoms with covariances of least score below a score, or None.

        Refined from mixtures of isotropic atoms; the score is the residual plus `of_each` for each
        unknown. More unknowns than half the equations are not tried.
        """
        turns, _, real, imaginary = self.problem
        best = None
        for weights, centers, variances in mixtures:
            size = n_numbers(*centers.shape)
            if size > len(real):
                continue
            *atoms, residual = fit_ellipsoids(
                real + 1j * imaginary, turns * (2.0 * math.pi), weights, centers, variances
            )
            if residual + of_each * size < least_score:
                best, least_score = atoms, residual + of_each * size
        return best

    def shrunk(self, density, residual, of_each):
        """Return a density mixed with one wide Gaussian by the part that noise may explain of it.

        Of what the atoms explain beyond the Gaussian of the data's moments, noise is given
        `of_each` for every atom but one. Atoms scattered by noise would hold centers where no data
        are; the Gaussian draws them back. A part that is too small to matter is none.
        """
        _, squares, real, _ = self.problem
        n_features = len(self.spreads)
        wide = np.exp(-0.5 * squares)
        weight = max(float(wide @ real) / max(float(wide @ wide), _LEAST_NORM), 0.0)
        alone = self.residual(np.array([weight]), np.zeros((1, n_features)), np.ones(1))
        weights, centers, spreads = density
        total = weights.sum()
        by_noise = of_each * (len(weights) - 1)
        if by_noise <= _LEAST_IMPROVEMENT * (alone - residual) or not total > 0.0:
            return density
        share = min(by_noise / (alone - residual), 1.0) if alone > residual else 1.0
        return (
            np.append((1.0 - share) * weights / total, share),
            np.vstack([centers, np.zeros(n_features)]),
            np.append(spreads, 1.0),
        )


def _refitted(products, correlations, kept):
    """Return the best weights of some atoms, and by how much f would rise without each."""
    inner = products[np.ix_(kept, kept)]
    ridge = max(1e-10 * np.trace(inner) / len(kept), _LEAST_NORM)
    inner = inner + np.eye(len(kept)) * ridge
    lower = np.linalg.cholesky(inner)
    weights = nnls(lower.T, np.linalg.solve(lower, correlations[kept]))[0]
    return weights, weights * (weights / np.diag(np.linalg.inv(inner)))  # squares may overflow


def cell_variance(n_clusters: int, n_features: int) -> float:
    r"""Return the variance of a cluster where that of the data is 1, as a guess.

    That of the compressive k-means paper's mixtures, whose unit clusters have centers of variance
    :math:`(1.5 k^{1/d})^2`; k cells that share a space shrink in the same way.
    """
    return 1.0 / (1.0 + 2.25 * n_clusters ** (2.0 / n_features))


def expected_residual(features, n_samples, part, noise_variance) -> float:
    """Bound the mean of f at the true mixture: see the module's description."""
    moduli = np.minimum(np.abs(features) ** 2, 1.0)
    sampling = float((1.0 - part * moduli).sum()) / (part * n_samples)
    return sampling + 2.0 * len(features) * noise_variance


def decode_mixture(
    features, frequencies, n_clusters, moments, expected, *, spread, n_init, rng, noisy
) -> Decoded:
    """Decode mean features of modulus at most 1 by Gaussian atoms.

    Features (m,) at frequencies (d, m) estimate means of exp(i omega'x), and `moments` say where to
    look. Of at most `n_init` starts, that of the least residual is returned; one that comes below
    `expected`, from `expected_residual`, less what the fit absorbs, is the last. Where features are
    `noisy`, atoms that noise may explain are drawn back to the whole.
    """
    problem = MixtureFit(features, frequencies, moments, spread)
    d, m = len(moments.mean), len(features)
    of_one_number = 0.5 * expected / m
    least_explained = _OPTIMISER_RESIDUAL * float(np.vdot(features, features).real)
    penalty = 0.5 * max(expected, least_explained) / m
    penalty *= (d + 1 + (spread == "per_cluster")) * math.log(2.0 * m)
    enough = expected - of_one_number * n_clusters * (d + 2)
    best, least, richest, least_score = None, math.inf, None, math.inf
    for _ in range(n_init):
        mixture, residual, richer, score = problem.search(n_clusters, penalty, rng)
        for _ in range(n_clusters):
            if residual <= enough:
                break
            before = residual
            mixture, residual = problem.repair(mixture, residual, rng)
            if residual > before * (1.0 - _LEAST_IMPROVEMENT):
                break
        if residual < least:
            best, least = mixture, residual
        if residual + penalty * n_clusters <= score:
            richer, score = mixture, residual + penalty * n_clusters
        if score < least_score:
            richest, least_score = richer, score
        if least <= enough:
            break
    if len(richest[0]) > n_clusters:
        last = {"max_iter": _LAST_ITERATIONS, "tolerance": _TIGHT_TOLERANCE}
        richest = problem.fit(*richest, **last)[:3]
    weights, centers, variances = richest
    density = atoms = weights, centers, np.sqrt(variances)
    if spread == "per_cluster" and least > max(enough, least_explained):
        n_added = n_numbers(n_clusters, d) - n_clusters * (d + 2)
        by_chance = (n_added - _RESIDUAL_DEVIATIONS * math.sqrt(4.0 * m)) * of_one_number
        if least > enough + by_chance:
            of_unknown = _AIC_PENALTY * of_one_number
            score = problem.residual(*richest) + of_unknown * len(weights) * (d + 2)
            density = atoms = problem.ellipsoids([best, richest], of_unknown, score) or density
    elif noisy:
        of_each = _AIC_PENALTY * of_one_number * (d + 1 + (spread == "per_cluster"))
        density = problem.shrunk(density, problem.residual(*richest), of_each)
    tolerance = _ROUGH_TOLERANCE if len(density[0]) > len(weights) else _FINE_TOLERANCE
    _, centers, spreads = atoms
    kept_weights, kept = problem.clear_atoms(centers, spreads, of_one_number)
    clear = kept_weights, centers[kept], spreads[kept]
    weights, centers, spreads = density
    scaled = weights, problem.origin + problem.unit * centers, problem.unit * spreads
    start = problem.origin + problem.unit * best[1]
    centers, weights = kmeans_of_mixture(*scaled, start, rng, tolerance)
    variances = problem.unit**2 * best[2]
    explained = problem.explained(best, least)
    is_clear = _clear_centers((centers - problem.origin) / problem.unit, clear, density)
    return Decoded(centers, weights, variances, least, expected, explained, is_clear)


def kmeans_of_mixture(weights, centers, spreads, start, rng, tolerance=_FINE_TOLERANCE):
    """Return the k-means centers and weights of a mixture, by Lloyd's algorithm on points from it.

    `spreads` are standard deviations (K,) or factors L (K, d, d) of covariances L L'. Lloyd's
    algorithm goes from given centers, or from the best of some k-means++ starts on fewer points
    where that is better. Points lie in pairs symmetric about each mean, as many as its weight says,
    so that means of clusters that do not overlap stay where they are. Updates end when one lowers
    the error by less than the tolerance, a part of it.
    """
    total, k = weights.sum(), len(start)
    if not total > 0.0:
        return start, np.full(k, 1.0 / k)
    points = _points_of_mixture(weights / total, centers, spreads, _POINTS_PER_CLUSTER * k, rng)
    subset = points[rng.permutation(len(points))[: _FEW_POINTS_PER_CLUSTER * k]]
    best = lloyd(subset, start, _FEW_ITERATIONS, 0.0)
    starts = [plus_plus(subset, k, rng) for _ in range(_LLOYD_STARTS)]
    other = min((lloyd(subset, s, _FEW_ITERATIONS, 0.0) for s in starts), key=lambda run: run[1])
    if other[1] < best[1] * (1.0 - _LEAST_IMPROVEMENT):
        best = other
    centers, _, _ = lloyd(points, best[0], _MOST_ITERATIONS, tolerance)
    counts, _, _ = nearest_center_statistics(points, centers)
    return centers, counts / len(points)


def _clear_centers(centers, clear, density):
    """Return which centers have points that are clear, by points drawn as for Lloyd's algorithm."""
    weights, means, spreads = density
    k, total = len(centers), weights.sum()
    if not total > 0.0:
        return np.zeros(k, dtype=bool)
    rng = np.random.default_rng(0)  # so that the check changes no other draw
    points = _points_of_mixture(weights / total, means, spreads, _CHECKED_POINTS * k, rng)
    labels = nearest_center(points, centers)
    n_points = np.bincount(labels, minlength=k)
    n_clear = np.bincount(labels, weights=holds_most(points, clear, density), minlength=k)
    return (n_points > 0) & (n_clear >= 0.5 * n_points)


def _points_of_mixture(weights, centers, spreads, n_points, rng):
    """Draw points in pairs that lie symmetric about the means."""
    pairs = np.maximum(1, np.round(0.5 * n_points * weights).astype(int))
    labels = np.repeat(np.arange(len(weights)), pairs)
    offsets = rng.standard_normal((len(labels), centers.shape[1]))
    if spreads.ndim == 1:
        offsets *= spreads[labels][:, None]
    else:
        for part, factor in zip(np.split(offsets, np.cumsum(pairs)[:-1]), spreads, strict=True):
            part[:] = part @ factor.T
    return np.concatenate([centers[labels] + offsets, centers[labels] - offsets])
