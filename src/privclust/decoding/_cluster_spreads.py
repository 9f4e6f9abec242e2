"""The standard deviation of each feature in each cluster, from the density of a decoded sketch.

Rows of a cluster are those nearest to its center. All of this is computed from released values, at
no privacy loss.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from privclust.core.lloyd import nearest_center
from privclust.decoding._gaussians import GaussianMixture, boxed_points, paired_points
from privclust.privacy.bounds import Box

_POINTS_PER_CLUSTER = 1000  # drawn points: a standard deviation has an error of 2 %


def cluster_spreads(
    density: GaussianMixture, centers: np.ndarray, box: Box | None = None
) -> np.ndarray:
    """Return the standard deviation of each feature in each cluster, (n_clusters, n_features).

    Examples
    --------
    >>> law = GaussianMixture(np.ones(2) / 2, np.array([[-9.0], [9.0]]), np.array([1.0, 2.0]), 2)
    >>> cluster_spreads(law, law.centers).round().ravel()
    array([1., 2.])
    """
    law = density.weights, density.centers, density.spreads, _POINTS_PER_CLUSTER * len(centers)
    rng = np.random.default_rng(0)  # fixed: the same density has the same spreads
    if box is not None and density.spreads.ndim == 1:
        points = boxed_points(*law, box, rng)
    else:
        points = paired_points(*law, rng)
    _, variances = _moments(points, centers)
    return np.sqrt(variances)


def spread_errors(points: np.ndarray, centers: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Return standard errors of the spreads, (n_clusters, n_features).

    `changes` (n_points, n_draws) are drawn errors of the weights of points of the density.
    """
    labels, variances = _moments(points, centers)
    k, n = len(centers), len(points)
    counts = np.maximum(np.bincount(labels, minlength=k), 1.0)
    means = _sums(labels, points, k) / counts[:, None]
    squares = (points - means[labels]) ** 2 - variances[labels]
    errors = np.empty_like(variances)
    for j, square in enumerate(squares.T):
        unit = float(np.abs(square).max()) or 1.0  # squares of squares may overflow
        moves = csr_array((square / unit, (labels, np.arange(n))), shape=(k, n)) @ changes
        errors[:, j] = unit * moves.std(axis=1) / counts
    return error_of_root(variances, errors)


def error_of_root(square: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return the standard error of the square root of an estimate with a known standard error.

    Examples
    --------
    >>> error_of_root(np.array([100.0, -1.0]), np.array([2.0, 4.0])).round(2)
    array([0.1, 2. ])
    """
    square = np.maximum(square, 0.0)
    return np.sqrt(square + error) - np.sqrt(square)


def _moments(points, centers):
    """Return the cluster of each point, and the variance of each feature in each cluster."""
    labels, k = nearest_center(points, centers), len(centers)
    counts = np.maximum(np.bincount(labels, minlength=k), 1.0)[:, None]
    offsets = points - centers[labels]  # large coordinates would lose digits when squared
    means = _sums(labels, offsets, k) / counts
    return labels, np.maximum(_sums(labels, offsets**2, k) / counts - means**2, 0.0)


def _sums(labels, values, k):
    """Return sums of rows (n, d) by label, (k, d)."""
    n = len(labels)
    return csr_array((np.ones(n), (labels, np.arange(n))), shape=(k, n)) @ values
