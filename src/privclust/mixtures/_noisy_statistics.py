"""Noisy statistics, and the mixture parameters that post-processing computes from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from privclust.core.fixed_point import FixedPoint
from privclust.mixtures._parameters import outer_products, per_component
from privclust.mixtures._perturbations import Noise
from privclust.privacy.measurements import Gaussian
from privclust.privacy.noise import NoiseSource, Value

_LARGEST = 1e50  # noisy sums are clipped here, so that squares of means in any units are finite
_CONDITION = 1e-12  # least ratio of eigenvalues of a covariance, above rounding errors


@dataclass(frozen=True)
class NoisedStatistics:
    """Noisy sufficient statistics of rows in the unit ball.

    Counts (k,) may be negative; sums are (k, d); second moments are None or sums of gamma |x|^2
    (k,), gamma x^2 (k, d) or gamma x x' (k, d, d).
    """

    counts: np.ndarray
    sums: np.ndarray
    second_moments: np.ndarray | None

    def of_unit(self, unit: float) -> NoisedStatistics:
        """Return the statistics scaled back from coordinates in a unit (relative to the radius)."""
        seconds = None if self.second_moments is None else self.second_moments * unit**2
        return NoisedStatistics(self.counts, self.sums * unit, seconds)


@dataclass(frozen=True)
class FloorRates:
    """Shares of components x iterations that post-processing had to correct.

    `weights`: weight outside [0, 1] or count below one row. `means`: mean outside the ball, also if
    it is left there. `covariances`: a variance below the floor or above that of the ball.
    """

    weights: float
    means: float
    covariances: float


def add_noise(
    plan: Mapping[str, Noise],
    counts: Value,
    sums: Value,
    second_moments: Value | None,
    source: NoiseSource,
) -> NoisedStatistics:
    """Release the statistics of one iteration with the noise from `perturbations`."""
    if "joint" in plan:
        return add_joint_noise(cast(Gaussian, plan["joint"]), counts, sums, second_moments, source)
    noisy_counts = plan["counts"].release(counts, source)
    noisy_sums = plan["sums"].release(sums, source)
    if second_moments is None:
        return NoisedStatistics(noisy_counts, noisy_sums, None)
    part, shape = plan["second_moments"], second_moments.shape
    if len(shape) < 3 or part.mechanism == "wishart":
        return NoisedStatistics(noisy_counts, noisy_sums, part.release(second_moments, source))
    rows, columns = np.triu_indices(shape[-1])
    triangle = part.release(second_moments[:, rows, columns], source)
    return NoisedStatistics(noisy_counts, noisy_sums, _symmetric(triangle, shape))


def add_joint_noise(
    noise: Gaussian,
    counts: Value,
    sums: Value,
    second_moments: Value | None,
    source: NoiseSource,
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> NoisedStatistics:
    """Release counts, sums and second moments as one vector, with noise divided by `weights`.

    A symmetric matrix enters by its triangle, scaled to preserve the Frobenius norm.
    """
    d, shape = sums.shape[1], None if second_moments is None else second_moments.shape
    parts, scales = [counts[:, None], sums], [np.full(1, weights[0]), np.full(d, weights[1])]
    if second_moments is not None and len(shape) == 3:
        rows, columns = np.triu_indices(d)
        parts.append(second_moments[:, rows, columns])
        # an entry off the diagonal stands for two in the Frobenius norm
        scales.append(weights[2] * np.where(rows == columns, 1.0, np.sqrt(2.0)))
    elif second_moments is not None:
        parts.append(second_moments if len(shape) == 2 else second_moments[:, None])
        scales.append(np.full(parts[-1].shape[1], weights[2]))
    noisy = noise.release(_beside(parts), source, weight=np.concatenate(scales))
    tail = None
    if shape is not None:
        tail = noisy[:, 1 + d :]
        tail = _symmetric(tail, shape) if len(shape) == 3 else tail.reshape(shape)
    return NoisedStatistics(noisy[:, 0], noisy[:, 1 : 1 + d], tail)


def _beside(parts: list) -> Value:
    """Return arrays side by side, in fixed point if they are."""
    if isinstance(parts[0], FixedPoint):
        return FixedPoint(np.hstack([part.integers for part in parts]), parts[0].bits)
    return np.hstack(parts)


def _symmetric(triangle: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    rows, columns = np.triu_indices(shape[-1])
    matrices = np.empty(shape)
    matrices[:, rows, columns] = triangle
    matrices[:, columns, rows] = triangle
    return matrices


@dataclass(frozen=True)
class Estimate:
    """Settings of the estimate from noisy statistics, in unit-ball coordinates."""

    concentration: float  # alpha of the Dirichlet prior; 1 for maximum likelihood
    mean_precision: float  # kappa_0; 0 for maximum likelihood
    # c = nu_0 + d + 2 of eq. (28), the prior's weight in the covariances; 0 for maximum likelihood
    degrees_of_freedom: float
    scale: float  # S_0 is this times the identity; 0 for maximum likelihood
    floor: float  # least variance
    project: bool  # whether means are projected onto the unit ball, and variances capped at its 1


def parameters_from(
    noisy: NoisedStatistics, n_samples: int, estimate: Estimate
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Return valid mixture parameters from noisy statistics, for any values of the noise.

    Weights are clipped to [0, 1] and rescaled (DP-EM, footnote 4), or equal if all are 0. Counts
    are at least one row. Means are optionally projected onto the ball. Variances have a floor, and
    eigenvalues are at least 1e-12 of the largest. This is post-processing and does not use the
    data.

    Returns weights, means, covariances (None without second moments), and which of the three were
    corrected for each component, (3, n_components). N = `n_samples` is public.
    """
    share = noisy.counts / n_samples
    cut = np.clip(share, 0.0, 1.0)
    weights = cut / cut.sum() if cut.sum() > 0 else np.full(len(cut), 1.0 / len(cut))
    counts = np.maximum(weights * n_samples, 1.0)
    acted = np.zeros((3, len(counts)), dtype=bool)
    acted[0] = (share != cut) | (weights * n_samples < 1.0)

    total = noisy.counts.size * (estimate.concentration - 1.0)
    means_mle = np.clip(noisy.sums, -_LARGEST, _LARGEST) / counts[:, None]
    # the prior's mean is 0, with the weight of kappa_0 rows
    means = means_mle * (counts / (counts + estimate.mean_precision))[:, None]
    norms = np.linalg.norm(means, axis=1)
    acted[1] = norms > 1.0
    if estimate.project:
        shrink = 1.0 / np.maximum(norms, 1.0)
        means, means_mle = means * shrink[:, None], means_mle * shrink[:, None]
    covariances = None
    if noisy.second_moments is not None:
        second_moments = np.clip(noisy.second_moments, -_LARGEST, _LARGEST)
        covariances, acted[2] = _covariances(second_moments, counts, means_mle, estimate)
    # the mode of a Dirichlet posterior
    weights = (n_samples * weights + estimate.concentration - 1.0) / (n_samples + total)
    return weights, means, covariances, acted


def _covariances(
    second_moments: np.ndarray, counts: np.ndarray, means: np.ndarray, estimate: Estimate
) -> tuple[np.ndarray, np.ndarray]:
    """Return covariances from noisy means and second moments (eqs. 12, 16, 18), and corrections."""
    kappa, n_axes, d = estimate.mean_precision, second_moments.ndim, means.shape[1]
    divisor = per_component(counts + estimate.degrees_of_freedom, n_axes)
    # N_k mu mu' enters with 1 - kappa_0 / (kappa_0 + N_k), which is 1 for maximum likelihood
    pull = per_component(counts**2 / (counts + kappa), n_axes)
    prior = estimate.scale * np.eye(d) if n_axes == 3 else estimate.scale
    each = second_moments / d if n_axes == 1 else second_moments
    scatter = (prior + each - pull * outer_products(means, n_axes)) / divisor
    most = 1.0 if estimate.project else None  # the largest variance in the unit ball
    if n_axes < 3:
        kept = np.clip(scatter, estimate.floor, most)
        return kept, (kept != scatter).reshape(len(counts), -1).any(axis=1)
    values, vectors = np.linalg.eigh(scatter)
    kept = np.clip(values, estimate.floor, most)
    kept = np.maximum(kept, _CONDITION * kept[:, -1:])
    changed = (kept != values).any(axis=1)
    return np.einsum("kab,kb,kcb->kac", vectors, kept, vectors), changed
