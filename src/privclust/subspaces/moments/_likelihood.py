r"""The distribution of noisy means near a union of subspaces, and steps to the most likely union.

For sketches with a covariance that fits in memory. The mean over n rows of features :math:`\phi`
has covariance :math:`s^2 I + Cov(\phi) / n`; the second part is that of rows drawn from the fitted
union. Without it, a cluster with unevenly spread rows in its subspace would bias the other
subspaces.

Each subspace has these parameters: tangents T, which rotate its basis U to :math:`U + U_\perp T`;
unless spread is even, a symmetric B without trace, :math:`C = U (\Lambda + B) U'`; its amplitude;
and for each degree above 2 the logarithm of a ratio. Amplitudes and ratios have a wide normal
prior.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils import gen_batches

from privclust.sketches._harmonics import n_moments
from privclust.subspaces.moments._features import (
    factor_features,
    feature_derivatives,
    mixed_features,
    row_features,
)
from privclust.subspaces.moments.union import (
    LEAST_AMPLITUDE,
    LEAST_PRECISION,
    RANGE_OF_LOG_RATIO,
    RIDGE,
    SPREAD_OF_RATIO,
    Union,
    even_ratio,
    prior_amplitude,
)

_SPREAD_WITHIN = 1.0  # prior deviation of entries of B
_LEAST_SPREAD = 1e-3  # least eigenvalue of a factor, relative to its mean
_SHAPE = 0.3  # relative deviation of moments of rows of norm 1 from those of factors
_MOST_STEPS, _HALVINGS, _LEAST_GAIN = 12, 8, 1e-3  # Gauss-Newton steps; halvings; gain in cost
_DRAWS_PER_FEATURE, _LEAST_DRAWS = 20, 4000  # rows drawn for the covariance of features
_BLOCK_ROWS = 500  # drawn rows whose features are in memory together


class Likelihood:
    """The posterior of a union, given noisy means of features.

    Means and the deviations of their noise are given by degree. `is_even`: rows are assumed to be
    spread evenly within subspaces.
    """

    def __init__(
        self,
        means: Mapping[int, np.ndarray],
        deviations: Mapping[int, float],
        n_samples: float,
        *,
        is_even: bool = True,
    ) -> None:
        self.n_samples, self.is_even, self.degrees = max(n_samples, 1.0), is_even, sorted(means)
        self._data = np.concatenate([means[degree] for degree in self.degrees])
        sizes = [len(means[degree]) for degree in self.degrees]
        self._noise = np.repeat([deviations[degree] for degree in self.degrees], sizes)
        self._triangle: np.ndarray | None = None  # of the covariance; None for noise only

    def whiten(self, union: Union, rng: np.random.Generator) -> None:
        """Include the covariance of the mean of a union's rows from now on."""
        size = len(self._data)
        rows = union.draw(max(_LEAST_DRAWS, _DRAWS_PER_FEATURE * size), rng)
        total, products, place = np.zeros(size), np.zeros((size, size)), None
        for block in gen_batches(len(rows), _BLOCK_ROWS):
            features = np.concatenate([row_features(rows[block], deg) for deg in self.degrees])
            # about the mean of some rows, so that hardly any digits cancel below
            place = features.mean(axis=1, keepdims=True) if place is None else place
            features -= place
            total += features.sum(axis=1)
            products += features @ features.T
        mean = total / len(rows)
        covariance = (products / len(rows) - np.outer(mean, mean)) / self.n_samples
        covariance[np.diag_indices(size)] += self._noise**2
        if not self.is_even:
            shapes = self._shapes(union)
            covariance += shapes @ shapes.T
        self._triangle = np.linalg.cholesky(covariance)

    def fit(self, union: Union) -> tuple[Union, float]:
        """Return the union after Gauss-Newton steps that lower the cost, and the cost."""
        cost = self.cost(union)
        for _ in range(_MOST_STEPS):
            complements = union.complements
            jacobian = self._whitened(self._jacobian(union, complements))
            residual = self._whitened(self._data - self._mean(union))
            precision, pull = self._priors(union)
            hessian = jacobian.T @ jacobian + np.diag(precision)
            hessian[np.diag_indices(len(hessian))] *= 1.0 + 1e-9  # never singular
            step = np.linalg.solve(hessian, jacobian.T @ residual + precision * pull)
            for _ in range(_HALVINGS):
                trial = self._moved(union, complements, step)
                lower = self.cost(trial)
                if lower < cost:
                    break
                step = 0.5 * step
            else:
                break
            gain, union, cost = cost - lower, trial, lower
            if gain < _LEAST_GAIN:
                break
        return union, cost

    def cost(self, union: Union) -> float:
        """Return minus the logarithm of the posterior density, up to a constant."""
        residual = self._whitened(self._data - self._mean(union))
        precision, pull = self._priors(union)
        return 0.5 * float(residual @ residual) + 0.5 * float(precision @ pull**2)

    def misfit(self, union: Union) -> float:
        """Return the squared residuals of the means, relative to noise and sampling."""
        residual = self._whitened(self._data - self._mean(union))
        d = union.bases.shape[1]
        size = sum(n_moments(d, degree) - n_moments(d, degree - 2) for degree in self.degrees)
        # residuals have a mean square of 1 in each direction that the fit leaves free
        n_left = max(size - len(self._priors(union)[0]), 1)
        return float(residual @ residual) / n_left

    def errors(self, union: Union, complements: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return covariances (p, p) of tangents: by noise, and by sampling."""
        jacobian = self._whitened(self._jacobian(union, complements))
        whole = jacobian.T @ jacobian + np.diag(self._priors(union)[0])
        p = complements[0].shape[1] * math.prod(union.bases.shape[::2])  # number of tangents
        inverse = np.linalg.inv(whole)[:p]
        total = inverse[:, :p]
        if self._triangle is None:
            return total, np.zeros_like(total)
        # an estimate is weights' data; its variance is that of noise and of the rows' mean
        weights = solve_triangular(self._triangle.T, jacobian, check_finite=False) @ inverse.T
        both, noisy = jacobian @ inverse.T, weights * self._noise[:, None]
        by_rows = both.T @ both - noisy.T @ noisy
        return total - by_rows, by_rows

    def _shapes(self, union):
        """Return possible differences of moments of uneven rows from those of factors, (m, t).

        Rows of norm 1 are not normally distributed: their shares of directions within a subspace
        agree with the factors only up to `_SHAPE`. The deviation common to all parts is subtracted:
        it belongs to the ratio, which measures the distance of rows from subspaces.
        """
        columns, d = [], union.bases.shape[1]
        for degree in self.degrees[1:]:
            start = sum(n_moments(d, lower) for lower in self.degrees if lower < degree)
            scale = _SHAPE * math.exp(union.log_ratios[degree])
            for moved in _parts_within(union, degree):
                columns.append(np.zeros(len(self._data)))
                columns[-1][start : start + len(moved)] = scale * moved
        return np.stack(columns, axis=1)

    def _whitened(self, values):
        """Return values, or columns, in units of their deviation."""
        if self._triangle is not None:
            return solve_triangular(self._triangle, values, lower=True, check_finite=False)
        return (values.T / self._noise).T

    def _ratios(self, union):
        """Return the factors of amplitudes, by degree."""
        return {2: 1.0} | {degree: math.exp(log) for degree, log in union.log_ratios.items()}

    def _mean(self, union):
        ratios = self._ratios(union)
        pairs = list(zip(union.amplitudes, union.factors, strict=True))
        parts = [
            ratios[degree] * sum(w * factor_features(C, degree) for w, C in pairs)
            for degree in self.degrees
        ]
        return np.concatenate(parts)

    def _jacobian(self, union, complements):
        """Return derivatives of the means: tangents, B's, amplitudes, ratios in turn."""
        ratios, factors = self._ratios(union), union.factors
        moves = [self._moves(union, complements, c) for c in range(len(factors))]
        n_tangents = complements[0].shape[1] * union.bases.shape[2]
        blocks = []
        for degree in self.degrees:
            derivatives = [
                ratios[degree] * w * feature_derivatives(C, along, degree)
                for w, C, along in zip(union.amplitudes, factors, moves, strict=True)
            ]
            features = ratios[degree] * np.stack([factor_features(C, degree) for C in factors], 1)
            of_ratios = np.zeros((len(features), len(self.degrees) - 1))
            if degree > 2:
                of_ratios[:, self.degrees.index(degree) - 1] = features @ union.amplitudes
            columns = [part[:, :n_tangents] for part in derivatives]
            columns += [part[:, n_tangents:] for part in derivatives]
            blocks.append(np.hstack([*columns, features, of_ratios]))
        return np.vstack(blocks)

    def _moves(self, union, complements, c):
        """Return the matrices along which a factor moves with its tangents and with B."""
        basis, d = union.bases[c], union.bases.shape[1]
        outward = np.einsum("ia,jb->abij", complements[c], basis * union.spreads[c])
        outward = outward.reshape(-1, d, d)
        inward = basis @ self._within(union) @ basis.T
        return np.concatenate([outward + outward.transpose(0, 2, 1), inward])

    def _within(self, union):
        q = union.bases.shape[2]
        return np.zeros((0, q, q)) if self.is_even else _traceless(q)

    def _priors(self, union):
        """Return the precision of all priors, and the offsets of their centres."""
        k, d, q = union.bases.shape
        within, prior = self._within(union), prior_amplitude(k, q)
        n_tangents, n_within = k * (d - q) * q, k * len(within)
        precision = np.repeat(
            [LEAST_PRECISION, _SPREAD_WITHIN**-2, (RIDGE * prior) ** -2, SPREAD_OF_RATIO**-2],
            [n_tangents, n_within, k, len(self.degrees) - 1],
        )
        # the prior of B has its centre at even spread: Lambda + B = I
        inward = np.einsum("tii,ki->kt", within, 1.0 - union.spreads).ravel()
        logs = [
            math.log(even_ratio(q, degree)) - union.log_ratios[degree]
            for degree in self.degrees[1:]
        ]
        return precision, np.concatenate(
            [np.zeros(n_tangents), inward, prior - union.amplitudes, logs]
        )

    def _moved(self, union, complements, step):
        """Return the union after a step of all parameters."""
        k, d, q = union.bases.shape
        within = self._within(union)
        sizes = np.cumsum([k * (d - q) * q, k * len(within), k])
        tangents, inward, by_amplitude, by_ratio = np.split(step, sizes)
        turned = union.turned(tangents.reshape(k, d - q, q), complements)
        bases, spreads = turned.bases, turned.spreads
        if not self.is_even:
            inside = np.einsum("kt,tij->kij", inward.reshape(k, -1), within)
            # eigenvectors of the changed factor become the new basis
            values, vectors = np.linalg.eigh(inside + spreads[:, :, None] * np.eye(q))
            # eigh has ascending values; spreads are in descending order
            values = np.maximum(values[:, ::-1], _LEAST_SPREAD)
            bases, spreads = bases @ vectors[:, :, ::-1], values * q / values.sum(1, keepdims=True)
        floor = LEAST_AMPLITUDE * prior_amplitude(k, q)
        # a step may leave the range of a prior; the trial's cost decides if it is kept
        logs = {
            degree: float(np.clip(union.log_ratios[degree] + change, *RANGE_OF_LOG_RATIO))
            for degree, change in zip(self.degrees[1:], by_ratio, strict=True)
        }
        return Union(bases, spreads, np.maximum(union.amplitudes + by_amplitude, floor), logs)


def _parts_within(union, degree):
    """Yield contributions of directions to each cluster's moments, minus their total."""
    for w, basis, spreads, factor in zip(
        union.amplitudes, union.bases, union.spreads, union.factors, strict=True
    ):
        squares = np.einsum("ia,ja->aij", basis, basis) * spreads[:, None, None]
        whole = factor_features(factor, degree)
        whole /= np.linalg.norm(whole)
        for chosen in itertools.combinations_with_replacement(range(len(spreads)), degree // 2):
            n_orders = len(set(itertools.permutations(chosen)))
            # a product of directions occurs once for each order of its factors
            part = n_orders * w * mixed_features(*squares[list(chosen)])
            yield part - whole * (whole @ part)


@lru_cache(maxsize=8)
def _traceless(q):
    """Return an orthonormal basis of symmetric (q, q) matrices without trace."""
    basis = []
    for i, j in itertools.combinations(range(q), 2):
        basis.append(np.zeros((q, q)))
        basis[-1][i, j] = basis[-1][j, i] = math.sqrt(0.5)
    for i in range(1, q):
        diagonal = np.array([1.0] * i + [-float(i)] + [0.0] * (q - i - 1))
        basis.append(np.diag(diagonal / np.linalg.norm(diagonal)))
    return np.array(basis).reshape(-1, q, q)
