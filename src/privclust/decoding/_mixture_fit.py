r"""The search for the mixture of Gaussian atoms of least squared distance to a sketch.

Many local minima of the objective f (`privclust.decoding._atoms`) have two atoms in one cluster
and another atom across two clusters. To avoid them, the search starts with at least twice as many
wide atoms at random places, and deletes the least important ones, a few at a time. The increase of
f without an atom, other weights refitted, is :math:`\alpha_k^2 / (G^{-1})_{kk}` with the Gram
matrix G of the atoms (a lower bound for nonnegative weights). Between deletions the mixture is
refitted by a few quasi-Newton steps.

Other local minima are repaired: some atoms are added where they explain most of the residual, all
are refitted, and as many are deleted. This is repeated while it gains more than noise may. An atom
across two clusters leaves a residual on the line between them. So atoms are tried on both sides of
each atom, along the direction of largest curvature of the residual's inner product with it. With 64
clusters this finds clusters that five more starts miss, in the time of one start.

The search is in single precision; the final mixture is refined in double precision.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.decoding._atoms import (
    LOGISTIC_EDGE,
    in_single_precision,
    least_squares_problem,
    minimise,
    mixture_atoms,
    unpacked,
)
from privclust.decoding._elimination import eliminated
from privclust.decoding._ellipsoids import ellipsoid_atoms, fit_ellipsoids, n_numbers
from privclust.decoding._sketch_check import least_loss, least_weight

ROUGH_FIT = 60, 1e-4
"""Most iterations of an intermediate fit, and relative decrease of three steps that ends it."""
# benchmarks/ablation.py measures the effect of these constants on the loss
_FIRST_FIT, _REPAIRED_FIT, _LAST_FIT = (300, 1e-4), (200, 1e-4), (1000, 1e-5)  # the same
_ATOMS_PER_CLUSTER, _EXTRA_ATOMS = 2, 20  # initial number of atoms: 2 k, at least k + 20
_DELETION_ROUNDS = 12  # most rounds of deletion
_LEAST_VARIANCE_RATIO = 1e-4  # least variance of an atom, relative to the data's
_GRAM_TILE = 4096  # frequencies at a time
_LEAST_NORM = 1e-200  # least squared norm: atoms may vanish at all frequencies
_LEAST_DRAWN_BACK = 0.02  # least fraction of noise for which a density is shrunk
# random places to try for another atom; their spread, in that of the data
_REPAIR_PLACES, _REPAIR_REACH = 100, 2.0
_HALVES = -2.0, -1.0, 1.0, 2.0  # places to try about each atom, in its standard deviations
_REPAIRED_AT_ONCE, _REPAIRS_APART = 8, 2.0  # added atoms; their distance in standard deviations
_PASSED_BATCHES = 3  # number of batches without gain in a row that ends the repair
_PLACES_AT_ONCE = 64  # places at a time


class MixtureFit:
    """The least-squares problem of one sketch, in units of the data's standard deviation."""

    def __init__(self, features, frequencies, moments, spread):
        self.unit = math.sqrt(moments.variance)
        self.origin = moments.mean
        shifted = features * np.exp(-1j * (moments.mean @ frequencies))
        self.problem = least_squares_problem(shifted, frequencies * self.unit)
        self._rough = in_single_precision(self.problem)
        self.spreads = np.sqrt(moments.variances) / self.unit
        self.shared = spread == "shared"
        self.log_low = math.log(_LEAST_VARIANCE_RATIO)
        self.log_high = math.log(max(1.0, float(self.spreads.max() ** 2)))

    def fit(self, weights, centers, variances, max_iter, tolerance):
        """Refine a mixture, in single precision if possible; return it and its residual."""
        how = weights, centers, variances, max_iter, tolerance
        *mixture, residual = self._fit(self._rough, *how)
        if not math.isfinite(residual):  # atoms that nearly vanish have huge weights
            return self._fit(self.problem, *how)
        return *mixture, residual

    def refine(self, weights, centers, variances):
        return self._fit(self.problem, weights, centers, variances, *_LAST_FIT)

    def _fit(self, problem, weights, centers, variances, max_iter, tolerance):
        n_atoms = len(weights)
        width = self.log_high - self.log_low
        part = (np.log(variances[:1] if self.shared else variances) - self.log_low) / width
        part = np.clip(part, LOGISTIC_EDGE, 1.0 - LOGISTIC_EDGE)
        # at a root of 0 the gradient is 0, and a weight would stay there
        roots = np.sqrt(np.maximum(weights, 1e-6))
        point = np.concatenate([roots, centers.ravel(), np.log(part / (1.0 - part))])
        bounds = self.log_low, self.log_high
        residual = minimise(point, n_atoms, *bounds, problem, max_iter, tolerance)
        return *unpacked(point, n_atoms, centers.shape[1], *bounds)[:3], residual

    def gram(self, centers, variances):
        """Return the Gram matrix of atoms and their inner products with the features."""
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
        """Delete the least important atoms until n_left are left; refit the weights."""
        _, centers, variances = mixture
        weights, kept = eliminated(*self.gram(centers, variances), n_left, math.inf)
        return weights, centers[kept], variances[kept]

    def detected_atoms(self, centers, spreads, of_one_number):
        """Return the weights and indices of the atoms that explain more than noise.

        The least important are deleted one by one, and the other weights refitted. `spreads` are
        standard deviations (K,) or factors L (K, d, d) of covariances L L'.
        """
        gram = self.gram(centers, spreads**2 if spreads.ndim == 1 else spreads)
        return eliminated(*gram, 0, least_loss(spreads, centers.shape[1], of_one_number))

    def least_weight(self, variances, spreads, of_one_number):
        """Return the least weight of a detected atom of the same kind and width as others."""
        least = least_loss(spreads, len(self.origin), of_one_number)
        return least_weight(variances, self.problem[1], least)

    def search(self, n_clusters, penalty, rng):
        """Fit more atoms than clusters from a random start, and delete the surplus step by step.

        Returns the final mixture, with an atom for each cluster, and its residual; then the mixture
        of least score, the residual plus `penalty` for each atom, and this score.
        """
        n_features = len(self.spreads)
        n_atoms = max(_ATOMS_PER_CLUSTER * n_clusters, n_clusters + _EXTRA_ATOMS)
        start = math.sqrt(0.5 * cell_variance(n_clusters, n_features))
        # centers are drawn so that the mixture has the variances of the data
        width = np.sqrt(np.maximum(self.spreads**2 - start, 0.1 * self.spreads**2))
        mixture = (
            np.full(n_atoms, 1.0 / n_atoms),
            rng.standard_normal((n_atoms, n_features)) * width,
            np.full(n_atoms, start),
        )
        *mixture, residual = self.fit(*mixture, *_FIRST_FIT)
        best, least = mixture, residual + penalty * n_atoms
        a_round = max(1, -(-(n_atoms - n_clusters) // _DELETION_ROUNDS))  # rounded up
        while len(mixture[0]) > n_clusters:
            n_left = max(n_clusters, len(mixture[0]) - a_round)
            mixture = self.prune(mixture, n_left)
            how = ROUGH_FIT
            if n_left == n_clusters:
                how = _LAST_FIT
            *mixture, residual = self.fit(*mixture, *how)
            if residual + penalty * n_left <= least:
                best, least = mixture, residual + penalty * n_left
        return mixture, residual, best, least

    def repair(self, mixture, residual, n_passed, rng):
        """Add atoms where the residual is largest, and delete as many of the least important.

        The first `n_passed` batches of places, which did not help before, are skipped. Returns the
        mixture and its residual, unchanged if there is no gain.
        """
        weights, centers, variances = mixture
        width = float(np.median(variances))
        places = np.concatenate([self._halves(mixture), self._anywhere(rng)])
        heights = self._heights(places, width, self.unexplained(*mixture))
        best: list[int] = []
        for place in np.argsort(-heights, kind="stable"):
            apart = ((places[best] - places[place]) ** 2).sum(axis=1)
            if heights[place] > 0.0 and (apart > _REPAIRS_APART**2 * width).all():
                best.append(place)
            if len(best) == (n_passed + 1) * _REPAIRED_AT_ONCE:
                break
        added = best[n_passed * _REPAIRED_AT_ONCE :]
        if not added:
            return mixture, residual
        larger = (
            np.append(weights, heights[added]),
            np.vstack([centers, places[added]]),
            np.append(variances, np.full(len(added), width)),
        )
        *larger, _ = self.fit(*larger, *ROUGH_FIT)
        smaller = self.prune(larger, len(weights))
        *changed, new_residual = self.fit(*smaller, *_REPAIRED_FIT)
        return (changed, new_residual) if new_residual < residual else (mixture, residual)

    def repaired(self, mixture, residual, least_gain, rng):
        """Repair a mixture until three successive batches gain less than `least_gain`; refit it."""
        before, n_passed = residual, 0
        for _ in range(len(mixture[0]) + _PASSED_BATCHES):
            last = residual
            mixture, residual = self.repair(mixture, residual, n_passed, rng)
            n_passed = 0 if last - residual > least_gain else n_passed + 1
            if n_passed == _PASSED_BATCHES:
                break
        if residual < before:
            *mixture, residual = self.fit(*mixture, *_LAST_FIT)
        return mixture, residual

    def _halves(self, mixture):
        """Return four places about each atom, where atoms may be missing if it covers two clusters.

        They lie along the direction of largest curvature of the residual's inner product with it.
        """
        turns = self.problem[0]
        _, centers, variances = mixture
        omega, (real, imaginary) = 2.0 * math.pi * turns, self.unexplained(*mixture)
        steps = np.sqrt(np.maximum(variances, np.median(variances)))
        places = []
        for center, variance, step in zip(centers, variances, steps, strict=True):
            cosines, sines = self._atoms(center[None], np.array([variance]))
            along = cosines[0] * real + sines[0] * imaginary
            # the last eigenvector of the Hessian with respect to the center
            direction = np.linalg.eigh(-(omega * along) @ omega.T)[1][:, -1]
            places += [center + part * step * direction for part in _HALVES]
        return np.array(places)

    def _anywhere(self, rng):
        return rng.standard_normal((_REPAIR_PLACES, len(self.spreads))) * (
            _REPAIR_REACH * self.spreads
        )

    def _heights(self, places, variance, residual):
        """Return the best weight of a single atom at each place."""
        real, imaginary = residual
        squares = self.problem[1]
        products = np.empty(len(places))
        for start in range(0, len(places), _PLACES_AT_ONCE):
            part = slice(start, start + _PLACES_AT_ONCE)
            cosines, sines = self._atoms(places[part], np.full(len(places[part]), variance))
            products[part] = cosines @ real + sines @ imaginary
        norm = max(float(np.exp(-variance * squares).sum()), _LEAST_NORM)
        return products / norm

    def _atoms(self, centers, variances):
        turns, squares = self.problem[:2]
        return mixture_atoms(turns, squares, centers, variances)

    def unexplained(self, weights, centers, variances):
        """Return real and imaginary parts of the features minus those of a mixture."""
        real, imaginary = self.problem[2:]
        cosines, sines = self._atoms(centers, variances)
        return real - weights @ cosines, imaginary - weights @ sines

    def residual(self, weights, centers, variances):
        real, imaginary = self.unexplained(weights, centers, variances)
        return float(real @ real + imaginary @ imaginary)

    @property
    def size(self):
        return len(self.problem[2])

    @property
    def norm(self):
        _, _, real, imaginary = self.problem
        return float(real @ real + imaginary @ imaginary)

    def residual_of(self, weights, centers, spreads):
        """Return f of atoms with standard deviations (K,) or factors L (K, d, d) as `spreads`."""
        products, correlations = self.gram(centers, spreads**2 if spreads.ndim == 1 else spreads)
        return self.norm - float(weights @ (2.0 * correlations - products @ weights))

    def ellipsoids(self, mixtures, of_each, least_score):
        """Return atoms with covariances of the least score below `least_score`, or None.

        They are refined from isotropic atoms. The score is the residual plus `of_each` for each
        unknown. Unknowns are at most half of the equations.
        """
        best = None
        for mixture in mixtures:
            size = n_numbers(*mixture[1].shape)
            if size > len(self.problem[2]):
                continue
            *atoms, residual = self.with_covariances(mixture)
            if residual + of_each * size < least_score:
                best, least_score = atoms, residual + of_each * size
        return best

    def with_covariances(self, mixture, *, diagonal=False):
        """Return weights, centers and factors of atoms refined from round ones, and f."""
        widest = math.exp(0.5 * self.log_high)
        return fit_ellipsoids(self.problem, *mixture, widest, diagonal=diagonal)

    def shrunk(self, density, residual, of_each):
        """Return a density in which the part that may be noise is replaced by one wide Gaussian.

        Atoms explain more than a Gaussian with the moments of the data. Noise explains `of_each` of
        the difference for every atom but one. Without the Gaussian, atoms fitted to noise would
        keep centers where there are no data. A part below 2 % is ignored.
        """
        _, squares, real, _ = self.problem
        n_features = len(self.spreads)
        # a Gaussian about the origin, which is the data's mean, has real features
        wide = np.exp(-0.5 * squares)
        weight = max(float(wide @ real) / max(float(wide @ wide), _LEAST_NORM), 0.0)
        alone = self.residual(np.array([weight]), np.zeros((1, n_features)), np.ones(1))
        weights, centers, spreads = density
        total, explained = weights.sum(), alone - residual
        by_noise = of_each * (len(weights) - 1)
        if total > 0.0 and by_noise <= _LEAST_DRAWN_BACK * explained:
            return density
        share = min(by_noise / explained, 1.0) if total > 0.0 and explained > 0.0 else 1.0
        return (
            np.append((1.0 - share) * weights / (total or 1.0), share),
            np.vstack([centers, np.zeros(n_features)]),
            np.append(spreads, 1.0),
        )


def cell_variance(n_clusters: int, n_features: int) -> float:
    r"""Return a guess of the variance of a cluster in data of variance 1.

    It is that of the compressive k-means paper's mixtures: unit clusters with centers of variance
    :math:`(1.5 k^{1/d})^2`. k cells of a space shrink in the same way.
    """
    return 1.0 / (1.0 + 2.25 * n_clusters ** (2.0 / n_features))
