r"""The misfit of unions of subspaces to noisy harmonic moments, for many candidates at once.

With means over rows of harmonic moments :math:`Z_2, Z_4` and noise of deviation :math:`s_2, s_4` on
their coordinates, a candidate has factors :math:`C_k = Y_k Y_k'` of trace q, amplitudes :math:`w_k`
and a ratio :math:`\rho`:

.. math:: f = \frac{1}{2 s_2^2} \|Z_2 - \sum_k w_k H C_k\|^2 +
              \frac{1}{2 s_4^2} \|Z_4 - \rho \sum_k w_k H (C_k \otimes C_k)\|^2 + prior .

Rows spread evenly within and around their subspaces have exactly such means, with C the projection
P: noise around a subspace enters only through w and :math:`\rho`. Inner products are in closed
form, so that no tensor of degree 4 is computed for a candidate: with
:math:`\tilde C = (tr C\; C + 2 C^2) / 3` and :math:`\tau_C = tr \tilde C`,

.. math:: \langle H (C \otimes C), H (E \otimes E) \rangle = \tfrac13 [(tr\, CE)^2 + 2\, tr\, CECE]
          - \tfrac{6}{d+4} \langle \tilde C, \tilde E \rangle
          + \tfrac{3}{(d+2)(d+4)} \tau_C \tau_E ,

and :math:`\langle Z_4, C \otimes C \rangle = c' U c` for the unfolding U of :math:`Z_4` over pairs:
one matrix product for all candidates. Amplitudes are found by ridge regression, so that gradients
are those of f at the best amplitudes (envelope theorem), except where an amplitude is at its floor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from privclust.sketches._harmonics import positions, roots_of_counts, sorted_indices
from privclust.subspaces.moments.union import (
    LEAST_AMPLITUDE,
    RANGE_OF_LOG_RATIO,
    RIDGE,
    SPREAD_OF_RATIO,
    Union,
    even_ratio,
    prior_amplitude,
)

_LARGEST_COST = 1e4  # larger costs are scaled down: line searches would fail by rounding


class MomentObjective:
    """The misfit f of candidates, with k frames (d, q) and log rho in a row of variables each.

    With `is_even` a candidate's factors are the projections on the spans of its frames; otherwise
    the frames times their transposes, scaled to trace q.
    """

    def __init__(
        self,
        means: Mapping[int, np.ndarray],
        deviations: Mapping[int, float],
        n_features: int,
        n_clusters: int,
        dimension: int,
        *,
        is_even: bool = True,
    ) -> None:
        self.shape, self.is_even = (n_clusters, n_features, dimension), is_even
        self._second = means[2]
        where, factors = _unfolding(n_features)
        self._unfolded = means[4][where] * factors
        self._second_matrix = _matrices(means[2][None], n_features)[0]
        self._precision2, self._precision4 = deviations[2] ** -2, deviations[4] ** -2
        self._constant = 0.5 * self._precision2 * float(means[2] @ means[2])
        self._constant += 0.5 * self._precision4 * float(means[4] @ means[4])
        # 1e-300 only avoids a division by 0 for a sketch of zeros
        self.scale = min(1.0, _LARGEST_COST / max(self._constant, 1e-300))
        self._prior = prior_amplitude(n_clusters, dimension)
        self._log_ratio = math.log(even_ratio(dimension, 4))

    def random_starts(self, n_starts: int, rng: np.random.Generator) -> np.ndarray:
        frames = rng.standard_normal((n_starts, math.prod(self.shape)))
        return np.hstack([frames, np.full((n_starts, 1), self._log_ratio)])

    def start_at(self, union: Union) -> np.ndarray:
        """Return the variables of a union."""
        frames = union.bases * np.sqrt(union.spreads)[:, None, :]
        return np.append(frames.ravel(), union.log_ratios[4])

    def union(self, variables: np.ndarray) -> Union:
        """Return the union described by one row of variables."""
        frames, log_ratio, _ = self._split(variables[None])
        factors, _ = self._factors(frames)
        amplitudes = self._evaluate(factors, np.exp(log_ratio))[3][0]
        bases, lengths, _ = np.linalg.svd(factors[0], full_matrices=False)
        # singular values of Y are roots of the eigenvalues of C = Y Y'
        spreads = np.ones_like(lengths) if self.is_even else lengths**2
        spreads *= self.shape[2] / spreads.sum(axis=1, keepdims=True)
        return Union(bases, spreads, amplitudes, {4: float(log_ratio[0])})

    def __call__(self, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return `scale` times f, (n,), and its gradients, (n, n_variables)."""
        frames, log_ratio, is_inside = self._split(variables)
        factors, chain = self._factors(frames)
        cost, by_factor, by_ratio, _ = self._evaluate(factors, np.exp(log_ratio))
        off = (log_ratio - self._log_ratio) / SPREAD_OF_RATIO
        cost = cost + 0.5 * off**2
        # outside of its range the ratio is clipped and the cost constant in it
        by_ratio = np.where(is_inside, by_ratio + off / SPREAD_OF_RATIO, 0.0)
        if self.is_even:  # P = X (X'X)^-1 X', X = Y R: 2 (I - P) G Y R^-T
            across = by_factor - factors @ (_t(factors) @ by_factor)
            gradient = _t(np.linalg.solve(chain, 2.0 * _t(across)))
        else:  # C = q X X' / tr X X'
            along = (factors * by_factor).sum(axis=(2, 3), keepdims=True) / self.shape[2]
            gradient = 2.0 * chain * (by_factor - along * factors)
        gradient = gradient.reshape(len(frames), -1)
        return self.scale * cost, self.scale * np.hstack([gradient, by_ratio[:, None]])

    def _split(self, variables):
        log_ratio = np.clip(variables[:, -1], *RANGE_OF_LOG_RATIO)
        frames = variables[:, :-1].reshape(-1, *self.shape)
        return frames, log_ratio, log_ratio == variables[:, -1]

    def _factors(self, frames):
        """Return Y with C = Y Y', and values for the gradients with respect to frames."""
        if self.is_even:
            return np.linalg.qr(frames)
        root = np.sqrt(self.shape[2] / (frames**2).sum(axis=(2, 3), keepdims=True))
        return frames * root, root

    def _evaluate(self, Y, ratio):
        """Return f without the prior of the ratio, df/dC Y, df/dlog ratio and amplitudes."""
        fitted, products = self._fits(Y)
        gram, grads = grams(Y)
        p4 = self._precision4 * ratio[:, None]
        quadratic = self._precision2 * gram[2] + (p4 * ratio[:, None])[..., None] * gram[4]
        linear = self._precision2 * fitted[2] + p4 * fitted[4]
        w, ridge = self._amplitudes(quadratic, linear)
        cost = self._constant + 0.5 * ridge * ((w - self._prior) ** 2).sum(axis=1)
        cost = cost + (w * (0.5 * (quadratic @ w[..., None])[..., 0] - linear)).sum(axis=1)
        pairs = w[:, :, None] * w[:, None, :]
        weights = self._precision2 * pairs, (p4 * ratio[:, None])[..., None] * pairs
        by_factor = grads(*weights)
        by_factor -= (w * self._precision2)[..., None, None] * (self._second_matrix @ Y)
        by_factor -= (2.0 * w * p4)[..., None, None] * products
        of_gram = np.einsum("nk,nkl,nl->n", w, gram[4], w)
        by_ratio = self._precision4 * ratio * (ratio * of_gram - (w * fitted[4]).sum(axis=1))
        return cost, by_factor, by_ratio, w

    def _fits(self, Y):
        """Return inner products of C and of C x C with the data, and (U c) Y."""
        k, d, _ = self.shape
        i, j = sorted_indices(d, 2).astype(np.intp).T
        C = Y @ _t(Y)
        c = (C[:, :, i, j] * roots_of_counts(d, 2)).reshape(len(Y) * k, -1)
        unfolded = c @ self._unfolded
        fitted = {
            2: (c @ self._second).reshape(-1, k),
            4: np.einsum("ij,ij->i", c, unfolded).reshape(-1, k),
        }
        return fitted, _matrices(unfolded, d).reshape(C.shape) @ Y

    def _amplitudes(self, quadratic, linear):
        """Return amplitudes of least cost, at least a floor, and the precision of the prior."""
        ridge = (RIDGE * self._prior) ** -2
        matrix = quadratic + ridge * np.eye(self.shape[0])
        w = np.linalg.solve(matrix, (linear + ridge * self._prior)[..., None])[..., 0]
        # a negative amplitude would cancel moments of other subspaces; the rest is not fitted again
        return np.maximum(w, LEAST_AMPLITUDE * self._prior), ridge


def grams(Y):
    """Return inner products of candidates' tensors by degree, (n, k, k), and their gradients.

    The second is a function of weights u (n, k, k) by degree: the sum over l of u_kl times the
    derivative of the product of k and l with respect to C_k, applied to Y_k.
    """
    n, k, d, q = Y.shape
    flat = Y.transpose(0, 1, 3, 2).reshape(n, k * q, d)
    M = (flat @ _t(flat)).reshape(n, k, q, k, q).transpose(0, 1, 3, 2, 4)  # Y_k' Y_l
    N = M[:, np.arange(k), np.arange(k)]
    trace = np.trace(N, axis1=2, axis2=3)
    of_k, of_l = trace[:, :, None], trace[:, None, :]
    # products by factors: tr CE = |Y_k'Y_l|^2, CEE = tr C E E, CCEE = tr C C E E, with N = Y_k'Y_k
    CE = (M**2).sum(axis=(3, 4))
    CECE = ((M @ _t(M)) ** 2).sum(axis=(3, 4))
    MN = M @ N[:, None]
    CEE = (MN * M).sum(axis=(3, 4))
    CCEE = ((N[:, :, None] @ MN) * M).sum(axis=(3, 4))
    tau = (trace**2 + 2.0 * (N**2).sum(axis=(2, 3))) / 3.0
    once, twice = 6.0 / (d + 4), 3.0 / ((d + 2) * (d + 4))
    with_contraction = (of_l * CE + 2.0 * CEE) / 3.0  # <C, E~>
    contractions = (
        of_k * with_contraction + 2.0 * (of_l * CEE.transpose(0, 2, 1) + 2.0 * CCEE) / 3.0
    )
    gram4 = (CE**2 + 2.0 * CECE - once * contractions) / 3.0
    gram4 += twice * tau[:, :, None] * tau[:, None, :]
    gram = {2: CE - of_k * of_l / d, 4: gram4}

    def gradients(u2, u4):
        back = _t(M)  # Y_l' Y_k
        contracted = (
            (of_l[..., None, None] * np.eye(q) + 2.0 * N[:, None]) / 3.0 @ back
        )  # E~ = Y_l . Y_l'
        through_l = (u2 + 2.0 / 3.0 * u4 * CE)[..., None, None] * back
        through_l += (4.0 / 3.0 * u4)[..., None, None] * (back @ M @ back)
        through_l -= (once / 3.0 * u4 * of_k)[..., None, None] * contracted
        through_l -= (2.0 * once / 3.0 * u4)[..., None, None] * (contracted @ N[:, :, None])
        sums = flat.transpose(0, 2, 1) @ through_l.transpose(0, 2, 3, 1, 4).reshape(n, k * q, k * q)
        total = sums.reshape(n, d, k, q).transpose(0, 2, 1, 3)
        of_tau = (u4 * tau[:, None, :]).sum(axis=2) * twice / 3.0
        own = (-2.0 * once / 3.0) * (u4[..., None, None] * (M @ contracted)).sum(axis=2)
        own += 4.0 * of_tau[..., None, None] * N
        of_identity = 2.0 * of_tau * trace - (
            u2 * of_l / d + once / 3.0 * u4 * with_contraction
        ).sum(axis=2)
        return total + Y @ (own + of_identity[..., None, None] * np.eye(q))

    return gram, gradients


def _t(matrices):
    """Return the transposes of the last two axes."""
    return np.swapaxes(matrices, -1, -2)


@lru_cache(maxsize=4)
def _unfolding(n_features):
    """Return the place of entry (i, j, k, l) for all pairs, (D, D), and its factor."""
    pairs, roots = sorted_indices(n_features, 2), roots_of_counts(n_features, 2)
    n = len(pairs)
    both = np.hstack([np.repeat(pairs, n, axis=0), np.tile(pairs, (n, 1))])
    # the sketch holds an entry once, under its sorted index
    where = positions(np.sort(both, axis=1), n_features).reshape(n, n)
    # from coordinates of degree 4, scaled by roots of counts, to those of pairs on both sides
    return where, np.outer(roots, roots) / roots_of_counts(n_features, 4)[where]


def _matrices(coordinates, n_features):
    """Return symmetric matrices (n, d, d) from coordinates (n, D)."""
    i, j = sorted_indices(n_features, 2).astype(np.intp).T
    matrices = np.empty((len(coordinates), n_features, n_features))
    matrices[:, i, j] = matrices[:, j, i] = coordinates / roots_of_counts(n_features, 2)
    return matrices
