"""Spectral clustering on the normalised Laplacian."""

from __future__ import annotations

from operator import itemgetter

import numpy as np
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from privclust.core.lloyd import lloyd, nearest_center, plus_plus
from privclust.core.warn import warn_caller

_N_STARTS, _MAX_ITER = 20, 300  # of k-means


def spectral_clustering(
    affinity: np.ndarray, n_clusters: int, rng: np.random.Generator
) -> np.ndarray:
    """Cluster the vertices of a weighted graph (Ng, Jordan and Weiss).

    The eigenvectors of the ``n_clusters`` largest eigenvalues of ``D^-1/2 A D^-1/2`` (the smallest
    of the normalised Laplacian ``I - D^-1/2 A D^-1/2``) are joined as columns. Their rows are
    scaled to unit length and clustered by k-means (k-means++, best of 20 starts).

    A vertex without edges has a zero row in the normalised affinity: it adds no component to the
    Laplacian's null space, and k-means puts it with one of the clusters found.

    Parameters
    ----------
    affinity : ndarray of shape (n_samples, n_samples)
        Symmetric, non-negative, finite edge weights.
    n_clusters : int
        Number of clusters K, between 1 and ``n_samples``.
    rng : numpy.random.Generator
        Draws the seed of the k-means starts, one integer a call.

    Returns
    -------
    labels : ndarray of shape (n_samples,), dtype int64
        Labels ``0 .. n_clusters - 1``. For one BLAS thread a function of the inputs and the state
        of `rng` only.

    Raises
    ------
    ValueError
        If `affinity` is not square, finite, non-negative and symmetric, or `n_clusters` is out of
        range.

    Warns
    -----
    ConvergenceWarning
        If there are fewer clusters than requested, because fewer rows differ.

    References
    ----------
    A. Ng, M. Jordan and Y. Weiss, "On spectral clustering: analysis and an algorithm", NIPS 2001.
    E. Elhamifar and R. Vidal, "Sparse subspace clustering", TPAMI 35(11), 2013, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.core.spectral import spectral_clustering
    >>> affinity = np.kron(np.eye(2), np.ones((3, 3)))
    >>> labels = spectral_clustering(affinity, 2, np.random.default_rng(0))
    >>> bool(np.ptp(labels[:3]) == 0 and np.ptp(labels[3:]) == 0 and labels[0] != labels[3])
    True
    """
    normalised = _normalised_affinity(affinity)
    n_samples = normalised.shape[0]
    if not 1 <= n_clusters <= n_samples:
        raise ValueError(
            f"n_clusters must be between 1 and the number of samples {n_samples}, got {n_clusters}"
        )
    # drawn even for one cluster, so that the next draws of rng do not depend on n_clusters
    seed = int(rng.integers(2**31 - 1))
    if n_clusters == 1:
        return np.zeros(n_samples, dtype=np.int64)
    # eigh sorts in ascending order: the last vectors have the largest eigenvalues
    vectors = eigh(normalised, subset_by_index=[n_samples - n_clusters, n_samples - 1])[1]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    embedding = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-12)
    return best_of_starts(embedding, n_clusters, seed)


def estimate_n_clusters(affinity: np.ndarray, max_clusters: int) -> int:
    """Estimate the number of clusters by the largest eigengap of the normalised Laplacian.

    With ``0 = l_1 <= l_2 <= ...`` the Laplacian's eigenvalues, the estimate is the ``k`` in
    ``1 .. max_clusters`` that maximises ``l_{k+1} - l_k``; the smaller of two equal ones.
    Vertices without edges do not count as components.

    Parameters
    ----------
    affinity : ndarray of shape (n_samples, n_samples)
        Symmetric, non-negative, finite edge weights.
    max_clusters : int
        Largest number considered, at least 1; values above ``n_samples - 1`` are cut to that.

    Raises
    ------
    ValueError
        If `affinity` is not square, finite, non-negative and symmetric, or ``max_clusters < 1``.

    References
    ----------
    U. von Luxburg, "A tutorial on spectral clustering", Statistics and Computing 17, 2007,
    section 8.3.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.core.spectral import estimate_n_clusters
    >>> estimate_n_clusters(np.kron(np.eye(3), np.ones((4, 4))), max_clusters=6)
    3
    """
    normalised = _normalised_affinity(affinity)
    n_samples = normalised.shape[0]
    if max_clusters < 1:
        raise ValueError(f"max_clusters must be at least 1, got {max_clusters}")
    max_clusters = min(max_clusters, n_samples - 1)
    if max_clusters < 1:
        return 1
    # one eigenvalue more than there are gaps
    first = n_samples - 1 - max_clusters
    values = eigh(normalised, subset_by_index=[first, n_samples - 1], eigvals_only=True)
    gaps = np.diff(1.0 - values[::-1])
    # gaps that differ by rounding are equal, and the first counts
    return int(np.flatnonzero(gaps >= gaps.max() - 1e-10)[0]) + 1


def best_of_starts(X: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    """Return the labels of the best of 20 runs of Lloyd's algorithm, int64.

    Each run starts at samples drawn by greedy k-means++: each center after the first is the best of
    ``2 + floor(log K)`` samples. It ends when the inertia no longer decreases.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64
        Finite.
    n_clusters : int
        K, between 1 and ``n_samples``; there are fewer labels if fewer samples differ.
    seed : int

    Warns
    -----
    ConvergenceWarning
        If there are fewer clusters than requested.

    References
    ----------
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007,
    section 7 for the greedy form.
    """
    X, rng = np.ascontiguousarray(X, dtype=np.float64), np.random.default_rng(seed)
    n_trials = 2 + int(np.log(n_clusters))
    starts = (plus_plus(X, n_clusters, rng, n_trials) for _ in range(_N_STARTS))
    runs = (lloyd(X, start, _MAX_ITER, 0.0) for start in starts)
    labels = nearest_center(X, min(runs, key=itemgetter(1))[0])
    n_labels = len(np.unique(labels))
    if n_labels < n_clusters:
        warn_caller(
            f"{n_labels} clusters were found, not {n_clusters}: there are too few different rows",
            ConvergenceWarning,
        )
    return labels


def _normalised_affinity(affinity: np.ndarray) -> np.ndarray:
    affinity = np.asarray(affinity, dtype=np.float64)
    if affinity.ndim != 2 or affinity.shape[0] != affinity.shape[1] or affinity.size == 0:
        raise ValueError(f"affinity must be a square matrix, got shape {affinity.shape}")
    largest = affinity.max()
    # `not ... >=` in place of `<`, which is false for NaN
    if not np.isfinite(largest) or not affinity.min() >= 0.0:
        raise ValueError(
            "affinity must be finite and non-negative, got NaN, inf or negative weights"
        )
    if largest == 0.0:
        return np.zeros_like(affinity)
    # degrees neither overflow nor vanish, and the tolerance of symmetry is relative
    affinity = affinity / largest
    if np.abs(affinity - affinity.T).max() > 1e-8:
        raise ValueError("affinity must be symmetric: A and A.T differ by more than 1e-8 of max(A)")
    degrees = affinity.sum(axis=1)
    # np.where computes both values: the inner one avoids a division by 0
    scale = np.where(degrees > 0.0, 1.0 / np.sqrt(np.where(degrees > 0.0, degrees, 1.0)), 0.0)
    return affinity * scale[:, None] * scale
