"""Distances of linear subspaces from rows and from one another."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from privclust.core.grassmann import residuals

_ORTHONORMALITY_TOLERANCE = 1e-5  # largest entry of U'U - I by rounding, also of float32


def subspace_cost(X: np.ndarray, bases: np.ndarray) -> float:
    r"""Mean squared distance of rows to the nearest subspace: the k-means objective, eq. (3).

    .. math:: \frac{1}{n} \sum_i \min_j d^2(x_i, S_j)

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite.
    bases : array-like of shape (n_clusters, n_features, dimension)
        Orthonormal columns.

    Returns
    -------
    float
        In squared units of X.

    Raises
    ------
    ValueError
        If X is not a finite matrix with rows, or the bases are not orthonormal or do not fit.

    References
    ----------
    Y. Wang, Y.-X. Wang and A. Singh, "Differentially private subspace clustering", NIPS 2015,
    eq. (3).

    Examples
    --------
    >>> axes = np.eye(2)[:, :, None]
    >>> subspace_cost([[3.0, 1.0], [0.5, 2.0]], axes)
    0.625
    """
    X, bases = np.asarray(X, dtype=np.float64), _checked("bases", bases)
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] != bases.shape[1]:
        raise ValueError(f"X must have shape (n_samples > 0, {bases.shape[1]}), got {X.shape}")
    if not np.isfinite(X).all():
        raise ValueError("X must be finite, got NaN or inf")
    return float(residuals(X, bases).min(axis=1).mean())


def wasserstein_distance(bases: np.ndarray, others: np.ndarray) -> float:
    r"""Distance of two sets of subspaces in the best matching, eq. (2).

    .. math:: \min_\pi \Big( \sum_j \|P_j - P'_{\pi(j)}\|_F^2 \Big)^{1/2}

    with :math:`\pi` over permutations (Hungarian algorithm) and P the projections.

    Parameters
    ----------
    bases, others : array-like of shape (n_clusters, n_features, dimension)
        Orthonormal columns; as many subspaces in both.

    Returns
    -------
    float
        0 to the root of 2 n_clusters dimension. Does not depend on orders or bases.

    Raises
    ------
    ValueError
        If the bases are not orthonormal, or the shapes differ.

    References
    ----------
    The paper of `subspace_cost`, eq. (2).

    Examples
    --------
    >>> axes = np.eye(3)[:, :, None]
    >>> wasserstein_distance(axes, -axes[::-1])
    0.0
    """
    bases, others = _checked("bases", bases), _checked("others", others)
    if bases.shape != others.shape:
        raise ValueError(
            f"bases and others must have one shape, got {bases.shape} and {others.shape}"
        )
    squared = _squared_distances(bases, others)
    return float(np.sqrt(squared[linear_sum_assignment(squared)].sum()))


def _squared_distances(bases: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return ||P_i - P'_j||_F^2 of each pair, (n, m), without cancellation.

    With Q = I - P it is ||Q_i V_j||_F^2 + ||Q'_j U_i||_F^2.
    """
    left, right = bases[:, None], others[None]
    inside = np.swapaxes(left, -1, -2) @ right
    first = ((right - left @ inside) ** 2).sum(axis=(-2, -1))
    second = ((left - right @ np.swapaxes(inside, -1, -2)) ** 2).sum(axis=(-2, -1))
    return first + second


def _checked(name: str, bases: Any) -> np.ndarray:
    """Return an array of bases, or raise a ValueError that says what it is not."""
    bases = np.asarray(bases, dtype=np.float64)
    if bases.ndim != 3 or bases.size == 0 or bases.shape[-1] > bases.shape[-2]:
        raise ValueError(
            f"{name} must have shape (n_clusters, n_features, dimension), no more dimensions than "
            f"features, got {bases.shape}"
        )
    errors = np.abs(np.swapaxes(bases, -1, -2) @ bases - np.eye(bases.shape[-1]))
    if not (errors <= _ORTHONORMALITY_TOLERANCE).all():
        raise ValueError(
            f"{name} must have orthonormal columns, got U'U - I up to {errors.max():g}"
        )
    return bases
