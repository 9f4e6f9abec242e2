"""Principal components of features, for comparison with private embeddings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from privclust.core.validation import check_integer


def pca_features(X: ArrayLike, n_components: int) -> np.ndarray:
    """Return scores on the first principal components of X (n, d), (n, n_components).

    Components are in order of decreasing variance; the largest entry of each axis is positive. They
    are not private. Raises a ValueError if X is not a finite matrix, or the number is not from 1 to
    the smaller of n and d.

    Examples
    --------
    >>> pca_features([[0.0, 0.0], [3.0, 4.0]], 1).ravel().tolist()
    [-2.5, 2.5]
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not X.size or not np.isfinite(X).all():
        raise ValueError(f"X: got shape {X.shape}; it must be (n, d) finite numbers, n, d >= 1")
    check_integer("n_components", n_components, minimum=1)
    n, d = X.shape
    if n_components > min(n, d):
        raise ValueError(
            f"n_components must be at most the smaller of n and d, got {n_components} for shape "
            f"{X.shape}"
        )
    X = X - X.mean(axis=0)
    moments = X.T @ X if d <= n else X @ X.T
    last = len(moments) - 1
    values, vectors = eigh(moments, subset_by_index=[last + 1 - n_components, last])
    values, vectors = values[::-1], vectors[:, ::-1]
    if d <= n:
        axes, scores = vectors, X @ vectors
    else:  # axes not normalised: the shortest are rounding errors
        axes, scores = X.T @ vectors, vectors * np.sqrt(np.maximum(values, 0.0))
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(n_components)]
    return scores * np.where(largest < 0.0, -1.0, 1.0)
