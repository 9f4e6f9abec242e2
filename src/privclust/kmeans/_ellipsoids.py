r"""Atoms with covariances: for clusters that are longer one way than another.

A Gaussian cluster with center c and covariance :math:`\Sigma = L L'` has the features

.. math:: a_j(c, \Sigma) = e^{i \omega_j' c - |L' \omega_j|^2 / 2},

of which the isotropic atoms of `privclust.kmeans._atoms` are the case :math:`\Sigma = v I`. With
the residual :math:`e_j = z_j - \sum_k \alpha_k a_j(c_k, \Sigma_k)` and P and Q the real and
imaginary part of :math:`\bar e_j a_j(c_k, \Sigma_k)`, the squared residual f has the gradient

.. math::
    \partial f / \partial \alpha_k = -2 \sum_j P, \quad
    \partial f / \partial c_k = 2 \alpha_k \sum_j Q \omega_j, \quad
    \partial f / \partial L_k = 2 \alpha_k \sum_j P \omega_j \omega_j' L_k .

All of it is matrix products: m d^2 K operations an evaluation.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

_ITERATIONS = 600
_PROGRESS = 1e-7  # relative, of one step, at which a fit ends
_LEAST_WEIGHT = 1e-6


def n_numbers(n_atoms: int, n_features: int, *, diagonal: bool = False) -> int:
    """Count the unknowns of atoms with a weight, a center and a covariance each."""
    of_shape = n_features if diagonal else n_features * (n_features + 1) // 2
    return n_atoms * (1 + n_features + of_shape)


def ellipsoid_atoms(frequencies, centers, factors):
    """Return real and imaginary parts (K, m) of atoms with covariances L L'."""
    images = np.matmul(factors.transpose(0, 2, 1), frequencies)  # L' omega: (K, d, m)
    damping = np.exp(-0.5 * np.einsum("kim,kim->km", images, images))
    phases = centers @ frequencies
    return damping * np.cos(phases), damping * np.sin(phases)


def fit_ellipsoids(features, frequencies, weights, centers, variances, *, diagonal=False):
    """Refine isotropic atoms to atoms with covariances; features (m,) at frequencies (d, m).

    Returns weights (K,), centers (K, d), the lower triangular factors L (K, d, d) of the
    covariances L L', and f, which is not above that of the isotropic atoms.
    """
    n_atoms, d = centers.shape
    rows, columns = (np.arange(d), np.arange(d)) if diagonal else np.tril_indices(d)

    def pack(roots, centers, factors):
        return np.concatenate([roots, centers.ravel(), factors[:, rows, columns].ravel()])

    def unpack(point):
        roots, flat_centers, flat = np.split(point, [n_atoms, n_atoms * (1 + d)])
        factors = np.zeros((n_atoms, d, d))
        factors[:, rows, columns] = flat.reshape(n_atoms, -1)
        return roots, flat_centers.reshape(n_atoms, d), factors

    def value_and_gradient(point):
        roots, centers, factors = unpack(point)
        images = np.matmul(factors.transpose(0, 2, 1), frequencies)  # L' omega: (K, d, m)
        damping = np.exp(-0.5 * np.einsum("kim,kim->km", images, images))
        atoms = damping * np.exp(1j * (centers @ frequencies))
        residual = features - roots**2 @ atoms
        products = residual.conj() * atoms
        by_weight = -2.0 * products.real.sum(axis=1)
        by_center = 2.0 * (roots**2)[:, None] * (products.imag @ frequencies.T)
        by_factor = np.matmul(frequencies * products.real[:, None, :], images.transpose(0, 2, 1))
        by_factor *= 2.0 * (roots**2)[:, None, None]
        value = float(np.vdot(residual, residual).real)
        return value, pack(2.0 * roots * by_weight, by_center, by_factor)

    factors = np.sqrt(variances)[:, None, None] * np.eye(d)
    start = pack(np.sqrt(np.maximum(weights, _LEAST_WEIGHT)), centers, factors)
    options = {"maxiter": _ITERATIONS, "ftol": _PROGRESS}
    fit = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    roots, centers, factors = unpack(fit.x)
    return roots**2, centers, factors, float(fit.fun)
