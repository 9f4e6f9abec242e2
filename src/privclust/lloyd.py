"""One pass of Lloyd's algorithm, which several packages need."""

from __future__ import annotations

import numpy as np
from numba import njit


def nearest_center_statistics(
    X: np.ndarray, centers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Assign each sample to its nearest center and sum up what was assigned, in one pass.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64
    centers : ndarray of shape (n_clusters, n_features), float64

    Returns
    -------
    counts : ndarray of shape (n_clusters,)
        Numbers of samples; ties go to the first center.
    sums : ndarray of shape (n_clusters, n_features)
        Their sums.
    inertia : float
        Sum of the squared distances to the nearest center.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [9.0]])
    >>> counts, sums, inertia = nearest_center_statistics(X, np.array([[0.0], [10.0]]))
    >>> counts.tolist(), sums.ravel().tolist(), inertia
    ([2.0, 1.0], [1.0, 9.0], 2.0)
    """
    counts = np.zeros(len(centers))
    sums = np.zeros(centers.shape)
    inertia = _assign(X, np.ascontiguousarray(centers), counts, sums, np.empty(0, np.int64))
    return counts, sums, float(inertia)


def nearest_center(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the index of the nearest center of each sample; ties go to the first.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64
    centers : ndarray of shape (n_clusters, n_features), float64

    Returns
    -------
    ndarray of shape (n_samples,), int64
    """
    labels = np.empty(len(X), dtype=np.int64)
    counts, sums = np.zeros(len(centers)), np.zeros(centers.shape)
    _assign(X, np.ascontiguousarray(centers), counts, sums, labels)
    return labels


@njit(cache=True, nogil=True)
def _assign(X, centers, counts, sums, labels):
    """Add to counts and sums, write labels unless they are empty; return the inertia."""
    n_samples, n_features = X.shape
    inertia = 0.0
    for i in range(n_samples):
        best, nearest = np.inf, 0
        for k in range(centers.shape[0]):
            distance = 0.0
            for j in range(n_features):
                difference = X[i, j] - centers[k, j]
                distance += difference * difference
            if distance < best:
                best, nearest = distance, k
        inertia += best
        counts[nearest] += 1.0
        for j in range(n_features):
            sums[nearest, j] += X[i, j]
        if labels.size:
            labels[i] = nearest
    return inertia
