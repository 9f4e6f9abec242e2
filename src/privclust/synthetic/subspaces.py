"""Synthetic rows on or near random subspaces, with their true labels."""

from __future__ import annotations

import numpy as np

from privclust.core.validation import check_integer, check_real


def random_subspaces(
    n_per_subspace: int,
    dimension: int,
    n_subspaces: int,
    ambient_dimension: int,
    rng: np.random.Generator,
    noise: float = 0.0,
    unit_norm: bool = True,
    orthonormal: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points from a union of linear subspaces of uniformly random orientation.

    The simulated data of Y. Wang et al., "Multi-Task Learning for Subspace Segmentation", ICML
    2015, Section 5: in each subspace iid Gaussian points, mapped into the ambient space by a basis
    of it, which the paper does not describe. Two subspaces meet only in 0 (are disjoint), with
    probability 1, if ``2 * dimension <= ambient_dimension``.

    Parameters
    ----------
    n_per_subspace : int
        Points in each subspace, >= 1.
    dimension : int
        Dimension of each subspace, 1 .. ambient_dimension.
    n_subspaces : int
        Number of subspaces, >= 1.
    ambient_dimension : int
        Dimension of the space around them, >= 1.
    rng : numpy.random.Generator
        Source of all draws.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise that is added to each ambient coordinate, >= 0.
        With `unit_norm` it is relative to points that have norm 1 before it is added.
    unit_norm : bool, default=True
        Whether to scale the points to Euclidean norm 1, as the paper's theory assumes.
    orthonormal : bool, default=True
        Whether the bases are orthonormal; otherwise their entries are iid standard normal.

    Returns
    -------
    X : ndarray of shape (n_subspaces * n_per_subspace, ambient_dimension), float64
        One point per row (the paper stores them as columns), subspace after subspace.
    labels : ndarray of shape (n_subspaces * n_per_subspace,), int64
        Subspace of each point, 0 .. n_subspaces - 1.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> X, labels = random_subspaces(15, 13, 4, 26, np.random.default_rng(0))
    >>> X.shape, labels[[0, -1]].tolist()
    ((60, 26), [0, 3])
    """
    check_integer("n_per_subspace", n_per_subspace, minimum=1)
    check_integer("n_subspaces", n_subspaces, minimum=1)
    _check_dimensions(dimension, "ambient_dimension", ambient_dimension)
    check_real("noise", noise, inclusive=True)
    bases = rng.normal(size=(n_subspaces, ambient_dimension, dimension))
    if orthonormal:
        bases, _ = np.linalg.qr(bases)
    coefficients = rng.normal(size=(n_subspaces, n_per_subspace, dimension))
    X = (coefficients @ bases.transpose(0, 2, 1)).reshape(-1, ambient_dimension)
    if unit_norm:
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    if noise > 0:
        X += rng.normal(scale=noise, size=X.shape)
        if unit_norm:
            X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.repeat(np.arange(n_subspaces), n_per_subspace)


def subspace_mixture(
    n_samples: int,
    n_clusters: int,
    n_features: int,
    dimension: int,
    rng: np.random.Generator,
    noise: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Draw points near random subspaces, each assigned to one of them uniformly at random.

    The synthetic data of Y. Wang, Y.-X. Wang and A. Singh, "Differentially Private Subspace
    Clustering", NIPS 2015, Section 5: :math:`x = U_z y + w` with `z` uniform over the clusters,
    `y` uniform on the unit sphere of the subspace and :math:`w \sim N(0, \sigma^2 I)`. With noise
    the norm of a point is above 1 in more than half of all cases.

    Parameters
    ----------
    n_samples : int
        n, >= 1.
    n_clusters : int
        Number of subspaces k, >= 1. One may stay without points.
    n_features : int
        Dimension d of the space around them, >= 1.
    dimension : int
        Dimension q of each subspace, 1 .. n_features.
    rng : numpy.random.Generator
        Source of all draws.
    noise : float, default=0.0
        Standard deviation sigma of each coordinate of the noise, >= 0.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float64
        One point per row (the paper stores them as columns), in random order.
    labels : ndarray of shape (n_samples,), int64
        Subspace of each point, 0 .. n_clusters - 1.
    bases : ndarray of shape (n_clusters, n_features, dimension)
        Orthonormal bases of the subspaces, as columns.

    Raises
    ------
    ValueError
        If a number is out of range.

    Examples
    --------
    >>> X, labels, bases = subspace_mixture(100, 3, 5, 2, np.random.default_rng(0))
    >>> X.shape, bases.shape, bool(np.allclose(np.linalg.norm(X, axis=1), 1.0))
    ((100, 5), (3, 5, 2), True)
    """
    check_integer("n_samples", n_samples, minimum=1)
    check_integer("n_clusters", n_clusters, minimum=1)
    _check_dimensions(dimension, "n_features", n_features)
    check_real("noise", noise, inclusive=True)
    bases, _ = np.linalg.qr(rng.normal(size=(n_clusters, n_features, dimension)))
    labels = rng.integers(n_clusters, size=n_samples)
    within = rng.normal(size=(n_samples, dimension))
    within /= np.linalg.norm(within, axis=1, keepdims=True)
    X = rng.normal(scale=noise, size=(n_samples, n_features)) if noise > 0 else 0.0
    return X + np.einsum("idq,iq->id", bases[labels], within), labels, bases


def _check_dimensions(dimension: int, name: str, around: int) -> None:
    """Refuse subspaces that do not fit into the space around them."""
    check_integer("dimension", dimension, minimum=1)
    check_integer(name, around, minimum=1)
    if dimension > around:
        raise ValueError(f"dimension must be at most {name} = {around}, got {dimension}")
