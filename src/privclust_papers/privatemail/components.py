"""Principal components of features, for comparison with private embeddings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh


def pca_features(X: ArrayLike, n_components: int) -> np.ndarray:
    """Return scores on the first principal components of X (n, d), (n, n_components).

    Components are in order of decreasing variance; the largest entry of each axis is positive. They
    are not private.

    Examples
    --------
    >>> pca_features([[0.0, 0.0], [3.0, 4.0]], 1).ravel().tolist()
    [-2.5, 2.5]
    """
    X = np.asarray(X, dtype=np.float64)
    n, d = X.shape
    X = X - X.mean(axis=0)
    # The smaller of two matrices with the same nonzero eigenvalues.
    moments = X.T @ X if d <= n else X @ X.T
    last = len(moments) - 1
    values, vectors = eigh(moments, subset_by_index=[last + 1 - n_components, last])
    values, vectors = values[::-1], vectors[:, ::-1]
    if d <= n:
        axes, scores = vectors, X @ vectors
    else:  # axes not normalised: the shortest are rounding errors
        axes, scores = X.T @ vectors, vectors * np.sqrt(np.maximum(values, 0.0))
    # Signs of eigenvectors are arbitrary and differ between processors.
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(n_components)]
    return scores * np.where(largest < 0.0, -1.0, 1.0)
