r"""Atoms with covariances, for elongated clusters.

A Gaussian cluster with center c and covariance :math:`\Sigma = L L'` has the features

.. math:: a_j(c, \Sigma) = e^{i \omega_j' c - |L' \omega_j|^2 / 2},

The isotropic atoms of `privclust.decoding._atoms` are the case :math:`\Sigma = v I`. With the
residual :math:`e_j = z_j - \sum_k \alpha_k a_j(c_k, \Sigma_k)` and P and Q the real and
imaginary part of :math:`\bar e_j a_j(c_k, \Sigma_k)`, the squared residual f has the gradient

.. math::
    \partial f / \partial \alpha_k = -2 \sum_j P, \quad
    \partial f / \partial c_k = 2 \alpha_k \sum_j Q \omega_j, \quad
    \partial f / \partial L_k = 2 \alpha_k \sum_j P \omega_j \omega_j' L_k .

Exponents are linear in the entries of :math:`\Sigma_k`. So, like phases, they are one matrix
product for all atoms at a chunk of frequencies. Its factor :math:`\omega_{ij} \omega_{lj}` is
computed once for all atoms. The gradient is a matrix product too. An evaluation has
2 K (d + d (d + 1) / 2) m multiplications. Between the two products a pass over each tile computes
atoms, residual and slopes, as in `_atoms`.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import Bounds, minimize

from privclust.core.compiled import kernel, part
from privclust.core.vectormath import exp_nonpositive
from privclust.decoding._atoms import fill_atoms, squared_norm, subtract_atom

_ITERATIONS = 600  # most iterations of a fit
_PROGRESS = 1e-7  # relative decrease of a step at which a fit ends
_LEAST_WEIGHT = 1e-6  # initial weights are at least this: at 0 the root has no gradient
_TILE = 128  # frequencies whose atoms stay in the first-level cache
_CHUNK = 256  # frequencies whose products stay in the second-level cache


def n_numbers(n_atoms: int, n_features: int, *, diagonal: bool = False) -> int:
    of_shape = n_features if diagonal else n_features * (n_features + 1) // 2
    return n_atoms * (1 + n_features + of_shape)


def ellipsoid_atoms(frequencies, centers, factors):
    """Return real and imaginary parts (K, m) of atoms with covariances L L'."""
    images = np.matmul(factors.transpose(0, 2, 1), frequencies)  # L' omega: (K, d, m)
    damping = np.exp(-0.5 * np.einsum("kim,kim->km", images, images))
    phases = centers @ frequencies
    return damping * np.cos(phases), damping * np.sin(phases)


@kernel()
def residual_and_gradient(weights, centers, covariances, pairs, problem, gradients):
    """Return f and write its `gradients` by weights (K,), centers (K, d) and covariances (K, p).

    `covariances` are entries at p pairs of a row and a column; each also stands for its transpose.
    `problem` comes from `least_squares_problem`.
    """
    turns, _, real, imaginary = problem
    by_weight, by_center, by_covariance = gradients
    (rows, columns), (n_features, size) = pairs, turns.shape
    radians = 2.0 * math.pi
    by_weight[:], by_center[:], by_covariance[:] = 0.0, 0.0, 0.0
    total = 0.0
    for first in range(0, size, _CHUNK):
        last = min(first + _CHUNK, size)
        omega, products = np.empty((n_features, last - first)), np.empty((rows.size, last - first))
        for i in range(n_features):
            for j in range(last - first):
                omega[i, j] = turns[i, first + j]
        for i in range(rows.size):
            one, other = omega[rows[i]], omega[columns[i]]
            # omega' Sigma omega / 2 has every entry off the diagonal twice
            scale = 0.5 * radians**2 if rows[i] == columns[i] else radians**2
            for j in range(last - first):
                products[i, j] = scale * one[j] * other[j]
        phases, exponents = np.dot(centers, omega), np.dot(covariances, products)
        for start in range(first, last, _TILE):
            tile = slice(start, min(start + _TILE, last))
            parts = real[tile].copy(), imaginary[tile].copy()
            total += _add_tile(weights, phases, exponents, start - first, parts, by_weight)
        slopes, curvatures = np.dot(phases, omega.T), np.dot(exponents, products.T)
        for k in range(weights.size):
            for i in range(n_features):
                by_center[k, i] += 2.0 * radians * weights[k] * slopes[k, i]
            for i in range(rows.size):
                by_covariance[k, i] += 2.0 * weights[k] * curvatures[k, i]
    return total


@part(fastmath=True)
def _add_tile(weights, phases, exponents, start, parts, by_weight):
    """Return a tile's part of f, add to a gradient; overwrite phases and exponents by slopes.

    The tile begins at `start` of phases and exponents (K, chunk). `parts` are its features, which
    are overwritten by the residual.
    """
    (e, h), n_atoms = parts, weights.size
    size = e.size
    cosines, sines = np.empty((n_atoms, _TILE)), np.empty((n_atoms, _TILE))
    damping = np.empty(size)
    for k in range(n_atoms):
        x, c, s, exponent = weights[k], cosines[k], sines[k], exponents[k][start : start + size]
        for j in range(size):
            # rounding may make the exponent of a thin atom negative
            damping[j] = exp_nonpositive(-max(exponent[j], 0.0))
        fill_atoms(phases[k][start : start + size], damping, c, s)
        subtract_atom(x, c, s, e, h)
    total = squared_norm(e, h)
    for k in range(n_atoms):
        c, s, slope = cosines[k], sines[k], phases[k][start : start + size]
        p, p_sum = exponents[k][start : start + size], 0.0
        for j in range(size):
            p[j] = c[j] * e[j] + s[j] * h[j]
            slope[j] = s[j] * e[j] - c[j] * h[j]
        for j in range(size):  # a loop of its own: see `privclust.core.compiled`
            p_sum += p[j]
        by_weight[k] -= 2.0 * p_sum
    return total


def fit_ellipsoids(problem, weights, centers, variances, widest, *, diagonal=False):
    """Refine isotropic atoms to atoms with covariances, for a `least_squares_problem`.

    Returns weights (K,), centers (K, d), the lower triangular factors L (K, d, d) of the
    covariances L L', and f, at most that of the isotropic atoms. Entries of L have modulus at most
    `widest`: an atom far wider than the data would explain noise at low frequencies.
    """
    n_atoms, d = centers.shape
    rows, columns = pairs = (np.arange(d), np.arange(d)) if diagonal else np.tril_indices(d)
    gradients = np.empty(n_atoms), np.empty((n_atoms, d)), np.empty((n_atoms, len(rows)))

    def pack(roots, centers, factors):
        return np.concatenate([roots, centers.ravel(), factors[:, rows, columns].ravel()])

    def unpack(point):
        roots, flat_centers, flat = np.split(point, [n_atoms, n_atoms * (1 + d)])
        return roots, flat_centers.reshape(n_atoms, d), matrices(flat.reshape(n_atoms, -1))

    def matrices(entries):
        lower = np.zeros((n_atoms, d, d))
        lower[:, rows, columns] = entries
        return lower

    def value_and_gradient(point):
        roots, centers, factors = unpack(point)
        covariances = np.ascontiguousarray(  # always contiguous: one kernel is compiled
            (factors @ factors.transpose(0, 2, 1))[:, rows, columns]
        )
        value = residual_and_gradient(roots**2, centers, covariances, pairs, problem, gradients)
        by_weight, by_center, by_covariance = gradients
        lower = matrices(by_covariance)  # the symmetric derivative, twice its diagonal
        by_factor = (lower + lower.transpose(0, 2, 1)) @ factors
        return value, pack(2.0 * roots * by_weight, by_center, by_factor)

    factors = np.sqrt(variances)[:, None, None] * np.eye(d)
    start = pack(np.sqrt(np.maximum(weights, _LEAST_WEIGHT)), centers, factors)
    bounds = np.full(start.size, np.inf)
    bounds[n_atoms * (1 + d) :] = widest
    fit = minimize(
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-bounds, bounds),
        options={"maxiter": _ITERATIONS, "ftol": _PROGRESS},
    )
    roots, centers, factors = unpack(fit.x)
    return roots**2, centers, factors, float(fit.fun)
