r"""The search for the mixture of Gaussian atoms that is nearest to a sketch.

Many local minima of the objective f (`privclust.decoding._atoms`) are two atoms in one cluster
while another atom lies across two. They are avoided by starting with twice as many atoms as asked
for, wide and at random, and deleting one by one that atom whose loss, all other weights refitted,
is least: :math:`\alpha_k^2 / (G^{-1})_{kk}` with the Gram matrix G of the atoms (for nonnegative
weights a lower bound). Between deletions the mixture is refitted by a few quasi-Newton steps.

What minima are left are repaired: some atoms are added at once where they would explain most of
the residual, all are refitted, as many are deleted, and so on while that gains more than noise may.
An atom across two clusters leaves a residual along the line between them: places to add one lie on
both sides of each atom, along the direction in which the residual's inner product with it curves up
most. With 64 clusters that finds what five further starts do not, in the time of one.

All of the search is in single precision; what it ends with is refined in double precision.
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
"""Most iterations, and relative progress of three steps that ends a fit on the way."""
_FIRST_FIT, _REPAIRED_FIT, _LAST_FIT = (300, 1e-4), (200, 1e-4), (1000, 1e-5)
_ATOMS_PER_CLUSTER, _EXTRA_ATOMS = 2, 20  # atoms to start with: twice k, k + 20 at least
_DELETION_ROUNDS = 12  # at most
_LEAST_VARIANCE_RATIO = 1e-4  # of an atom to the data
_GRAM_TILE = 4096
_LEAST_NORM = 1e-200  # squared, of atoms that vanish at all frequencies
_LEAST_DRAWN_BACK = 0.02  # of a residual, which is worth drawing back
_REPAIR_PLACES, _REPAIR_REACH = 100, 2.0  # where a better place for an atom is looked for
_HALVES = -2.0, -1.0, 1.0, 2.0  # and about atoms, in their standard deviations
_REPAIRED_AT_ONCE, _REPAIRS_APART = 8, 2.0  # atoms, and their distance in standard deviations
_PASSED_BATCHES = 3  # that do not help in a row are the last
_PLACES_AT_ONCE = 64


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
        """Refine a mixture, in single precision where that can be; return it and its residual."""
        how = weights, centers, variances, max_iter, tolerance
        *mixture, residual = self._fit(self._rough, *how)
        if not math.isfinite(residual):  # weights out of range, of atoms that nearly vanish
            return self._fit(self.problem, *how)
        return *mixture, residual

    def refine(self, weights, centers, variances):
        return self._fit(self.problem, weights, centers, variances, *_LAST_FIT)

    def _fit(self, problem, weights, centers, variances, max_iter, tolerance):
        n_atoms = len(weights)
        width = self.log_high - self.log_low
        part = (np.log(variances[:1] if self.shared else variances) - self.log_low) / width
        part = np.clip(part, LOGISTIC_EDGE, 1.0 - LOGISTIC_EDGE)
        roots = np.sqrt(np.maximum(weights, 1e-6))
        point = np.concatenate([roots, centers.ravel(), np.log(part / (1.0 - part))])
        bounds = self.log_low, self.log_high
        residual = minimise(point, n_atoms, *bounds, problem, max_iter, tolerance)
        return *unpacked(point, n_atoms, centers.shape[1], *bounds)[:3], residual

    def gram(self, centers, variances):
        """Return the Gram matrix of atoms, of variances or factors, and products with features."""
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
        _, centers, variances = mixture
        weights, kept = eliminated(*self.gram(centers, variances), n_left, math.inf)
        return weights, centers[kept], variances[kept]

    def detected_atoms(self, centers, spreads, of_one_number):
        """Return the weights and places of atoms that all explain more than noise may.

        Those that are missed least are left out one by one, and other weights refitted. `spreads`
        are standard deviations (K,) or factors L (K, d, d) of covariances L L'.
        """
        gram = self.gram(centers, spreads**2 if spreads.ndim == 1 else spreads)
        return eliminated(*gram, 0, least_loss(spreads, centers.shape[1], of_one_number))

    def least_weight(self, variances, spreads, of_one_number):
        """Return the least weight of a detected atom as wide as others, with as many numbers."""
        least = least_loss(spreads, len(self.origin), of_one_number)
        return least_weight(variances, self.problem[1], least)

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
            alone = min(alone, self.fit(*start, *ROUGH_FIT)[3])
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
        *mixture, residual = self.fit(*mixture, *_FIRST_FIT)
        best, least = mixture, residual + penalty * n_atoms
        a_round = max(1, -(-(n_atoms - n_clusters) // _DELETION_ROUNDS))
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
        """Add atoms where the residual is largest, and delete as many that are missed least.

        Batches of places that did not help before, `n_passed`, are passed over. Returns the mixture
        and its residual, the same ones where that does not help.
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
        """Repair a mixture until batches of places in a row do not gain `least_gain`; refit it."""
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
        """Return where two atoms would be that one stands for, each atom's in four places.

        They lie along the direction in which the residual's inner product with the atom curves up
        most.
        """
        turns = self.problem[0]
        _, centers, variances = mixture
        omega, (real, imaginary) = 2.0 * math.pi * turns, self.unexplained(*mixture)
        steps = np.sqrt(np.maximum(variances, np.median(variances)))
        places = []
        for center, variance, step in zip(centers, variances, steps, strict=True):
            cosines, sines = self._atoms(center[None], np.array([variance]))
            along = cosines[0] * real + sines[0] * imaginary
            direction = np.linalg.eigh(-(omega * along) @ omega.T)[1][:, -1]
            places += [center + part * step * direction for part in _HALVES]
        return np.array(places)

    def _anywhere(self, rng):
        return rng.standard_normal((_REPAIR_PLACES, len(self.spreads))) * (
            _REPAIR_REACH * self.spreads
        )

    def _heights(self, places, variance, residual):
        """Return the best weights of atoms at places, each alone."""
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
        """Return real and imaginary parts of what a mixture leaves of the features."""
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
        """Return the atoms with covariances of least score below a score, or None.

        Refined from mixtures of isotropic atoms; the score is the residual plus `of_each` for each
        unknown. More unknowns than half the equations are not tried.
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
    r"""Return the variance of a cluster where that of the data is 1, as a guess.

    That of the compressive k-means paper's mixtures, whose unit clusters have centers of variance
    :math:`(1.5 k^{1/d})^2`; k cells that share a space shrink in the same way.
    """
    return 1.0 / (1.0 + 2.25 * n_clusters ** (2.0 / n_features))
