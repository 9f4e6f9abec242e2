r"""Errors of the numbers of a fitted mixture, from errors of the features of the sketch.

With the Jacobian J of the features, least squares map an error e of the features to the error
:math:`(J'J + s^2 I)^{-1} J' e` of the mixture's numbers. Numbers are in units of their own
Gaussian: weights in units of the weight, centers of the spread, covariances of the covariance. Let
:math:`s^2` be the variance of a feature. The ridge :math:`s^2 I` bounds errors of numbers that the
features do not determine by the size of the Gaussian. e is drawn: Gaussian noise, plus sums over
rows drawn from the mixture, each with a Gaussian factor, divided by n.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp

from privclust.decoding._ellipsoids import n_numbers
from privclust.decoding._gaussians import GaussianMixture, log_parts
from privclust.decoding._sketch_decoding import mean_features

_THIN = 0.03  # width of a thin direction, relative to the widest
_RESOLUTION = 0.3  # width that features resolve, times the root mean square of a frequency
_TILE = 512  # frequencies at a time


def errors_of_numbers(sketch, density, expected_residual, rows, rng, n_draws):
    """Draw errors of the mixture's numbers, (n_numbers, draws).

    `rows` are rows drawn from the mixture (n, n_features), and their factors (n, draws).
    """
    _, noise, n_samples = mean_features(sketch)
    # sampling by masks; half of it in each of real and imaginary part
    noise += 0.5 * (1.0 - sketch.alpha_r) / (sketch.alpha_r * n_samples)
    sample, factors = rows
    p = _n_numbers(density)
    information, moved = np.zeros((p, p)), np.zeros((p, n_draws))
    of_rows = np.zeros((p, len(sample)))
    for start in range(0, sketch.n_frequencies, _TILE):
        omega = sketch.frequencies[:, start : start + _TILE]
        jacobian = _jacobian(omega, density)
        information += jacobian @ jacobian.T
        moved += jacobian @ rng.normal(0.0, math.sqrt(noise), (jacobian.shape[1], n_draws))
        phases = (sample @ omega).T
        of_rows += jacobian @ np.concatenate([np.cos(phases), np.sin(phases)])
    if len(sample):
        of_rows -= of_rows.mean(axis=1, keepdims=True)
        moved += of_rows @ factors
    information[np.diag_indices(p)] += expected_residual / (2.0 * sketch.n_frequencies)
    information[np.diag_indices(p)] += 1e-12 * np.trace(information) / p  # for the factorisation
    return cho_solve(cho_factor(information), moved)


def _jacobian(omega, density):
    """Return derivatives of real and imaginary parts of features, (n_numbers, 2 m)."""
    out = []
    for weight, center, spread in _fitted(density):
        image = spread * omega if np.ndim(spread) == 0 else spread.T @ omega  # L' omega
        square = np.einsum("ij,ij->j", image, image)
        atom = weight * np.exp(1j * (center @ omega) - 0.5 * square)
        out += [atom, *(1j * image * atom)]
        if np.ndim(spread) == 0:
            out.append(-0.5 * square * atom)
        else:
            out += [-half * image[i] * image[j] * atom for i, j, half in _pairs(len(image))]
    stacked = np.array(out)
    return np.hstack([stacked.real, stacked.imag])


def scores(points, density):
    """Return derivatives of the logarithm of the density at points, (n_points, n_numbers)."""
    parts = shares(points, density).T
    out = []
    # not strict: a last Gaussian that stands for noise has no numbers
    for part, (_, center, spread) in zip(parts, _fitted(density), strict=False):
        offsets = (points - center).T
        if np.ndim(spread) == 0:
            unit = offsets / spread
            of_spread = [0.5 * part * ((unit**2).sum(axis=0) - len(unit))]
        else:
            unit = np.linalg.solve(spread, offsets)
            of_spread = [
                half * part * (unit[i] * unit[j] - (i == j)) for i, j, half in _pairs(len(unit))
            ]
        out += [part, *(part * unit), *of_spread]
    return np.array(out).T


def is_thin(density):
    """Return which numbers describe the thickness of a nearly flat Gaussian, (K, numbers)."""
    if density.spreads.ndim == 1:
        return np.zeros((density.n_fitted, _n_numbers(density) // density.n_fitted), dtype=bool)
    widths = np.sqrt((density.spreads[: density.n_fitted] ** 2).sum(axis=1))  # L's columns
    widths = widths / np.maximum(widths.max(axis=1, keepdims=True), 1e-300)
    pairs = [widths[:, i] * widths[:, j] for i, j, _ in _pairs(widths.shape[1])]
    sizes = np.column_stack([np.ones((len(widths), 1 + widths.shape[1])), *pairs])
    return sizes < _THIN


def resolved(density: GaussianMixture, frequencies: np.ndarray) -> GaussianMixture:
    """Return a mixture with Gaussians at least as wide as the resolution of the features.

    The error of a center by noise does not fall with the width of its Gaussian; in units of that
    width, the ridge would bound it by the width.
    """
    least = _RESOLUTION / math.sqrt((frequencies**2).mean())
    if density.spreads.ndim == 1:
        return replace(density, spreads=np.maximum(density.spreads, least))
    axes, lengths, turns = np.linalg.svd(density.spreads)
    if (lengths >= least).all():
        return density
    return replace(density, spreads=(axes * np.maximum(lengths, least)[:, None, :]) @ turns)


def law(density: GaussianMixture) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return density.weights, density.centers, density.spreads


def shares(points, density):
    """Return the fraction of each Gaussian in the density at points, (n_points, K)."""
    parts = log_parts(points, *law(density))
    return np.exp(parts - logsumexp(parts, axis=1, keepdims=True))


def _fitted(density):
    n = density.n_fitted
    return zip(density.weights[:n], density.centers[:n], density.spreads[:n], strict=True)


def _n_numbers(density):
    k, d = density.n_fitted, density.centers.shape[1]
    return k * (d + 2) if density.spreads.ndim == 1 else n_numbers(k, d)


def _pairs(n_features):
    """Yield the places of a symmetric matrix's numbers, and a factor: 1/2 on the diagonal."""
    for i in range(n_features):
        for j in range(i + 1):
            yield i, j, 0.5 if i == j else 1.0
