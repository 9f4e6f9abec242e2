"""Mixtures of Gaussians of a decoder: their density, and points drawn from it.

`spreads` are standard deviations (K,) or factors L (K, d, d) of covariances L L'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtr, ndtri

_LEAST_LENGTH = 1e-6  # shortest axis of a covariance, relative to the longest of all
_LEAST_WIDTH = 1e-300  # avoids division by 0


@dataclass(frozen=True)
class GaussianMixture:
    """A density that explains a sketch; weights add up to 1.

    The first `n_fitted` Gaussians were fitted; the others stand for the part that may be noise.
    """

    weights: np.ndarray
    centers: np.ndarray
    spreads: np.ndarray
    n_fitted: int


def log_parts(
    points: np.ndarray, weights: np.ndarray, centers: np.ndarray, spreads: np.ndarray
) -> np.ndarray:
    """Return the log of each Gaussian's weighted density at points, up to a constant, (n, K)."""
    d = points.shape[1]
    if spreads.ndim == 1:
        squares = cdist(points, centers, "sqeuclidean") / spreads**2
        log_volumes = d * np.log(spreads)
    else:
        axes, lengths, _ = np.linalg.svd(spreads)
        lengths = np.maximum(lengths, _LEAST_LENGTH * lengths.max())
        squares = np.empty((len(points), len(centers)))
        for k in range(len(centers)):
            offsets = (points - centers[k]) @ axes[k] / lengths[k]
            squares[:, k] = (offsets**2).sum(axis=1)
        log_volumes = np.log(lengths).sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.log(weights) - 0.5 * squares - log_volumes


def pair_counts(weights, n_points):
    return np.maximum(1, np.round(0.5 * n_points * weights).astype(int))


def paired_points(weights, centers, spreads, n_points, rng):
    """Draw pairs of points symmetric about the means, in numbers proportional to the weights."""
    labels = np.repeat(np.arange(len(weights)), pair_counts(weights, n_points))
    offsets = _offsets(labels, spreads, centers.shape[1], rng)
    return np.concatenate([centers[labels] + offsets, centers[labels] - offsets])


def boxed_points(weights, centers, spreads, n_points, box, rng):
    """Draw points as `paired_points` of isotropic Gaussians, each truncated to a box.

    A coordinate that falls outside is drawn again, from its Gaussian truncated to the box.
    """
    points = paired_points(weights, centers, spreads, n_points, rng)
    labels = np.repeat(np.arange(len(weights)), pair_counts(weights, n_points))
    rows, columns = np.nonzero((points < box.low) | (points > box.high))
    of_point = np.concatenate([labels, labels])[rows]
    means, widths = centers[of_point, columns], np.maximum(spreads[of_point], _LEAST_WIDTH)
    low, high = (ndtr((side[columns] - means) / widths) for side in (box.low, box.high))
    # inverse transform of the Gaussian between the ends of the box; rounding may leave the box
    drawn = means + widths * ndtri(low + (high - low) * rng.random(len(rows)))
    points[rows, columns] = np.clip(drawn, box.low[columns], box.high[columns])
    return points


def drawn_points(weights, centers, spreads, n_points, rng):
    labels = np.sort(rng.choice(len(weights), n_points, p=weights))
    return centers[labels] + _offsets(labels, spreads, centers.shape[1], rng)


def _offsets(labels, spreads, n_features, rng):
    """Draw offsets of points from the centers of their Gaussians; labels are sorted."""
    offsets = rng.standard_normal((len(labels), n_features))
    if spreads.ndim == 1:
        return offsets * spreads[labels][:, None]
    ends = np.searchsorted(labels, np.arange(1, len(spreads)))
    for part, factor in zip(np.split(offsets, ends), spreads, strict=True):
        # parts are views of `offsets`
        part[:] = part @ factor.T
    return offsets
