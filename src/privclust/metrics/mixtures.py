"""Distances of fitted centers and means from data and from true ones."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from privclust.core.lloyd import inertia


def mean_error(means: np.ndarray, true_means: np.ndarray) -> float:
    """Root mean squared distance of fitted means to the true ones, in the best order.

    Parameters
    ----------
    means, true_means : ndarray of shape (n_components, n_features)

    Returns
    -------
    float
        In the units of the means.

    Examples
    --------
    >>> mean_error(np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]]))
    0.0
    """
    squared = cdist(means, true_means, "sqeuclidean")
    rows, columns = linear_sum_assignment(squared)
    return float(np.sqrt(squared[rows, columns].mean()))


def normalised_intracluster_variance(X: np.ndarray, centers: np.ndarray) -> float:
    """Mean squared distance of samples to their nearest center (NICV).

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64
    centers : ndarray of shape (n_clusters, n_features), float64

    Returns
    -------
    float
        In squared units of X.

    References
    ----------
    D. Su et al., "Differentially private k-means clustering", CODASPY 2016; DP-EM, Fig. 3.

    Examples
    --------
    >>> normalised_intracluster_variance(np.array([[0.0], [2.0]]), np.array([[0.0], [3.0]]))
    0.5
    """
    return inertia(X, centers) / len(X)
