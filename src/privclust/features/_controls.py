"""Control features without knowledge of ImageNet, for comparison with deep features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.validation import check_integer
from privclust.features._extract import prepare
from privclust.features.images import ImageList


def small_pixels(images: ImageList, size: int) -> np.ndarray:
    """Return the pixels of readable images, made small, (n, 3 * size ** 2) float32, in [0, 1].

    They come row by row, the three colours of a pixel behind one another.
    """
    pixels = np.stack([prepare(image, size).ravel() for image in images])
    return pixels.astype(np.float32) / np.float32(255.0)


def pca_features(X: ArrayLike, n_components: int) -> np.ndarray:
    """Return the first principal components of features. Not private.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Finite numbers.
    n_components : int
        From 1 to the smaller of n and d.

    Returns
    -------
    ndarray of shape (n, n_components), float64
        Scores in order of decreasing variance; the largest entry of each axis is positive.

    Raises
    ------
    ValueError
        If `X` is no table of finite numbers or `n_components` is out of range.

    Examples
    --------
    >>> pca_features([[0.0, 0.0], [3.0, 4.0]], 1).ravel().tolist()
    [-2.5, 2.5]
    """
    from scipy.linalg import eigh

    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or not X.size or not np.isfinite(X).all():
        raise ValueError(f"X: got shape {X.shape}; it may be (n, d) finite numbers, n, d >= 1")
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
    else:  # axes up to their lengths, of which the smallest are rounding
        axes, scores = X.T @ vectors, vectors * np.sqrt(np.maximum(values, 0.0))
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(n_components)]
    return scores * np.where(largest < 0.0, -1.0, 1.0)
