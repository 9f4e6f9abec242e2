"""Noised statistics, and the parameters they give: everything here is post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from privclust.mixtures._perturbations import Noise

_LARGEST = 1e50  # noised sums are cut here, so that squares of means in any units are finite
_CONDITION = 1e-12  # least eigenvalue of a covariance as a part of its largest: rounding is below


@dataclass(frozen=True)
class NoisedStatistics:
    """Sufficient statistics with noise, of rows in the unit ball.

    Attributes
    ----------
    counts : ndarray of shape (n_components,)
        May be negative.
    sums : ndarray of shape (n_components, n_features)
    second_moments : ndarray or None
        Sums of gamma |x|^2 (n_components,), gamma x^2 (n_components, n_features) or gamma x x'
        (n_components, n_features, n_features).
    """

    counts: np.ndarray
    sums: np.ndarray
    second_moments: np.ndarray | None


@dataclass(frozen=True)
class FloorRates:
    """How often post-processing had to act, as parts of all occasions (components x iterations).

    Attributes
    ----------
    weights : float
        A noised weight outside [0, 1], or a noised count below one row.
    means : float
        A noised mean outside the ball of the data. Counted also where it is left there.
    covariances : float
        A component with a variance (an eigenvalue) below the floor or above the ball's.
    """

    weights: float
    means: float
    covariances: float


def add_noise(
    plan: Mapping[str, Noise],
    counts: np.ndarray,
    sums: np.ndarray,
    second_moments: np.ndarray | None,
    source,
) -> NoisedStatistics:
    """Return one iteration's release.

    Parameters
    ----------
    plan : mapping
        From `privclust.mixtures._perturbations.perturbations`.
    counts, sums, second_moments : ndarray
        As in `NoisedStatistics`, without noise.
    source : SystemEntropy or numpy.random.Generator
    """
    if "joint" in plan:
        return _add_joint_noise(plan["joint"], counts, sums, second_moments, source)
    noised_counts = plan["counts"].release(counts, source)
    noised_sums = plan["sums"].release(sums, source)
    if second_moments is None:
        return NoisedStatistics(noised_counts, noised_sums, None)
    part = plan["second_moments"]
    if second_moments.ndim < 3 or part.mechanism == "wishart":
        return NoisedStatistics(noised_counts, noised_sums, part.release(second_moments, source))
    rows, columns = np.triu_indices(second_moments.shape[-1])
    triangle = part.release(second_moments[:, rows, columns], source)
    return NoisedStatistics(noised_counts, noised_sums, _symmetric(triangle, second_moments.shape))


def _add_joint_noise(part, counts, sums, second_moments, source) -> NoisedStatistics:
    """One vector of all statistics; a matrix enters with its Frobenius norm, by its triangle."""
    parts = [counts[:, None], sums]
    full = second_moments is not None and second_moments.ndim == 3
    if full:
        rows, columns = np.triu_indices(second_moments.shape[-1])
        stretch = np.where(rows == columns, 1.0, np.sqrt(2.0))
        parts.append(second_moments[:, rows, columns] * stretch)
    elif second_moments is not None:
        parts.append(second_moments.reshape(len(counts), -1))
    noised = part.release(np.hstack(parts), source)
    n_features = sums.shape[1]
    tail = noised[:, 1 + n_features :]
    if full:
        tail = _symmetric(tail / stretch, second_moments.shape)
    elif second_moments is not None:
        tail = tail.reshape(second_moments.shape)
    return NoisedStatistics(
        noised[:, 0], noised[:, 1 : 1 + n_features], None if second_moments is None else tail
    )


def _symmetric(triangle: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Fill symmetric matrices from their upper triangles."""
    rows, columns = np.triu_indices(shape[-1])
    matrices = np.empty(shape)
    matrices[:, rows, columns] = triangle
    matrices[:, columns, rows] = triangle
    return matrices


@dataclass(frozen=True)
class Estimate:
    """Which estimate is made of noised statistics, in unit-ball coordinates.

    Attributes
    ----------
    concentration : float
        alpha of the Dirichlet prior; 1 for the maximum-likelihood estimate.
    mean_precision : float
        kappa_0; 0 for maximum likelihood.
    degrees_of_freedom : float
        c = nu_0 + d + 2 of eq. (28), the prior's weight in the covariances; 0 for maximum
        likelihood.
    scale : float
        S_0 is this times the identity; 0 for maximum likelihood.
    floor : float
        Least variance.
    project : bool
        Whether means are projected onto the unit ball, and variances capped at its 1.
    """

    concentration: float
    mean_precision: float
    degrees_of_freedom: float
    scale: float
    floor: float
    project: bool


def parameters_from(
    noised: NoisedStatistics, n_samples: int, estimate: Estimate
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Turn noised statistics into parameters; never fails, whatever the noise.

    Weights are cut to [0, 1] and rescaled (DP-EM, footnote 4; all equal if none is left), counts
    are floored at one row, means optionally projected onto the ball and variances floored (and
    eigenvalues at 1e-12 of the largest): none of it looks at the data.

    Parameters
    ----------
    noised : NoisedStatistics
    n_samples : int
        N, which is public.
    estimate : Estimate

    Returns
    -------
    weights, means, covariances : ndarray
        Covariances are None where there are no second moments.
    acted : ndarray of shape (3, n_components), bool
        Whether the floors of weights, means and covariances acted.
    """
    share = noised.counts / n_samples
    cut = np.clip(share, 0.0, 1.0)
    weights = cut / cut.sum() if cut.sum() > 0 else np.full(len(cut), 1.0 / len(cut))
    counts = np.maximum(weights * n_samples, 1.0)
    acted = np.zeros((3, len(counts)), dtype=bool)
    acted[0] = (share != cut) | (weights * n_samples < 1.0)

    total = noised.counts.size * (estimate.concentration - 1.0)
    means_mle = np.clip(noised.sums, -_LARGEST, _LARGEST) / counts[:, None]
    means = means_mle * (counts / (counts + estimate.mean_precision))[:, None]
    norms = np.linalg.norm(means, axis=1)
    acted[1] = norms > 1.0
    if estimate.project:
        shrink = 1.0 / np.maximum(norms, 1.0)
        means, means_mle = means * shrink[:, None], means_mle * shrink[:, None]
    covariances = None
    if noised.second_moments is not None:
        second_moments = np.clip(noised.second_moments, -_LARGEST, _LARGEST)
        covariances, acted[2] = _covariances(second_moments, counts, means_mle, estimate)
    weights = (n_samples * weights + estimate.concentration - 1.0) / (n_samples + total)
    return weights, means, covariances, acted


def _covariances(
    second_moments: np.ndarray, counts: np.ndarray, means: np.ndarray, estimate: Estimate
) -> tuple[np.ndarray, np.ndarray]:
    """Plug the noised means into the second moments (eqs. 12, 16, 18) and floor the outcome."""
    n_features = means.shape[1]
    kappa, c = estimate.mean_precision, estimate.degrees_of_freedom
    # N_k mu mu' enters with 1 - kappa_0 / (kappa_0 + N_k), which is 1 for maximum likelihood
    pull = counts**2 / (counts + kappa)
    if second_moments.ndim == 3:
        outer = means[:, :, None] * means[:, None, :]
        prior = estimate.scale * np.eye(n_features)
        scatter = prior + second_moments - pull[:, None, None] * outer
        values, vectors = np.linalg.eigh(scatter / (counts + c)[:, None, None])
        kept = _within(values, estimate)
        kept = np.maximum(kept, _CONDITION * kept[:, -1:])
        changed = (kept != values).any(axis=1)
        return np.einsum("kab,kb,kcb->kac", vectors, kept, vectors), changed
    if second_moments.ndim == 2:
        scatter = estimate.scale + second_moments - pull[:, None] * means**2
        values = scatter / (counts + c)[:, None]
        kept = _within(values, estimate)
        return kept, (kept != values).any(axis=1)
    squared = (means**2).sum(axis=1)
    scatter = estimate.scale + (second_moments - pull * squared) / n_features
    values = scatter / (counts + c)
    kept = _within(values, estimate)
    return kept, kept != values


def _within(values: np.ndarray, estimate: Estimate) -> np.ndarray:
    """Raise variances to the floor; none of data in the unit ball exceeds 1."""
    return np.clip(values, estimate.floor, 1.0 if estimate.project else None)
