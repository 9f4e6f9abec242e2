"""Control features without knowledge of ImageNet, for comparison with deep features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.validation import check_integer
from privclust.features._extract import prepare, readable
from privclust.features.images import Image, ImageList


def pixel_features(
    images: ImageList | Sequence[Image] | np.ndarray, *, size: int = 16
) -> np.ndarray:
    """Return the pixels of downscaled images as features.

    Parameters
    ----------
    images : ImageList, array of shape (n, h, w, 3) or sequence
        As in `extract_features`; the same central square is used.
    size : int, default=16
        Height and width in pixels, >= 1.

    Returns
    -------
    ndarray of shape (n, 3 * size ** 2), float32
        In [0, 1]: row by row, the three colours of each pixel in turn.

    Raises
    ------
    ValueError
        If `size` is out of range or there are no images.
    UnreadableImagesError
        If images cannot be decoded; a ValueError that names and counts them.
    ImportError
        If Pillow is missing.

    Examples
    --------
    >>> pixel_features(np.full((2, 40, 40, 3), 255, dtype=np.uint8), size=4).shape  # doctest: +SKIP
    (2, 48)
    """
    check_integer("size", size, minimum=1)
    return small_pixels(readable(images), size)


def small_pixels(images: ImageList, size: int) -> np.ndarray:
    """Return `pixel_features` of images known to be readable."""
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
