"""Subspaces through the origin, the points of Grassmann manifolds: distances of rows, and fits.

Bases are arrays of shape (n_clusters, n_features, dimension) with orthonormal columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_BLOCK_ENTRIES = 1 << 17  # coordinates at a time: 1 MiB, which fits in the cache


def residuals(X: np.ndarray, bases: np.ndarray) -> np.ndarray:
    r"""Return the squared distance of each row to each subspace.

    :math:`d^2(x, S) = \|x\|^2 - \|U' x\|^2`, up to rounding of :math:`\|x\|^2`; never below 0.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    bases : ndarray of shape (n_clusters, n_features, dimension)

    Returns
    -------
    ndarray of shape (n_samples, n_clusters)

    Examples
    --------
    >>> residuals(np.array([[3.0, 4.0]]), np.array([[[1.0], [0.0]], [[0.0], [1.0]]]))
    array([[16.,  9.]])
    """
    n_clusters, n_features, dimension = bases.shape
    # the bases side by side: one matrix product for all subspaces
    columns = np.ascontiguousarray(bases.transpose(1, 0, 2)).reshape(n_features, -1)
    distances = np.empty((len(X), n_clusters))
    for rows in blocks(len(X), columns.shape[1]):
        coordinates = X[rows] @ columns
        np.square(coordinates, out=coordinates)
        inside = coordinates.reshape(-1, n_clusters, dimension).sum(axis=2)
        squares = np.einsum("ij,ij->i", X[rows], X[rows])
        np.maximum(squares[:, None] - inside, 0.0, out=distances[rows])
    return distances


def blocks(n_samples: int, width: int) -> Iterator[slice]:
    """Yield slices of rows, so that a block of that many columns stays in the cache."""
    size = max(1, _BLOCK_ENTRIES // width)
    for start in range(0, n_samples, size):
        yield slice(start, min(start + size, n_samples))


def random_bases(
    n_clusters: int, n_features: int, dimension: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw bases from the Haar distribution, which makes subspaces uniform.

    Returns
    -------
    ndarray of shape (n_clusters, n_features, dimension)

    Examples
    --------
    >>> bases = random_bases(2, 4, 3, np.random.default_rng(0))
    >>> bool(np.allclose(bases.transpose(0, 2, 1) @ bases, np.eye(3)))
    True
    """
    return orthonormal(rng.standard_normal((n_clusters, n_features, dimension)))


def orthonormal(frames: np.ndarray) -> np.ndarray:
    """Return the Gram-Schmidt bases of linearly independent columns, in the same shape."""
    bases, upper = np.linalg.qr(frames)
    # the signs of Gram-Schmidt: Haar for Gaussian columns, and orthonormal ones do not change
    signs = np.where(np.einsum("...ii->...i", upper) < 0, -1.0, 1.0)
    return bases * signs[..., None, :]


def principal_bases(moments: np.ndarray, dimension: int) -> np.ndarray:
    """Return bases of the eigenvectors of symmetric matrices (n_clusters, n_features, n_features).

    The eigenvalues are the largest, in descending order.
    """
    # eigh sorts in ascending order: the last columns, from the end
    return np.linalg.eigh(moments)[1][:, :, : -dimension - 1 : -1].copy()


def basis_of_rows(rows: np.ndarray, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Return a basis of the subspace nearest to rows (n_features, dimension), random beyond their
    rank."""
    # drawn whole for any rank, so that the next draws of rng do not depend on the rows
    basis = rng.standard_normal((rows.shape[1], dimension))
    if len(rows):
        largest = np.abs(rows).max()
        # R has the rows' singular values and right vectors, and at most as many rows as columns
        upper = np.linalg.qr(rows / (largest or 1.0), mode="r")
        _, values, directions = np.linalg.svd(upper, full_matrices=False)
        # the tolerance of numpy.linalg.matrix_rank
        rounding = max(rows.shape) * np.finfo(np.float64).eps
        rank = min(int((values > rounding * values[0]).sum()), dimension)
        basis[:, :rank] = directions[:rank].T
    return orthonormal(basis)


def bases_of_labels(
    X: np.ndarray, labels: np.ndarray, n_clusters: int, dimension: int, rng: np.random.Generator
) -> np.ndarray:
    r"""Return the subspace through the origin nearest to the rows of each cluster.

    Its basis consists of the eigenvectors of :math:`\sum x x'`, not centered, with the largest
    eigenvalues. If the rank of a cluster's rows is lower than the dimension, the remaining vectors
    are uniformly random.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
        In 0 .. n_clusters - 1.
    n_clusters, dimension : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_clusters, n_features, dimension)

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [-2.0, 0.0], [0.0, 3.0]])
    >>> bases = bases_of_labels(X, np.array([0, 0, 1]), 2, 1, np.random.default_rng(0))
    >>> np.abs(bases).reshape(2, 2)
    array([[1., 0.],
           [0., 1.]])
    """
    return np.stack([basis_of_rows(X[labels == k], dimension, rng) for k in range(n_clusters)])


def nearest_subspaces(
    X: np.ndarray, bases: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Assign each row to its nearest subspace and sum up the second moments of each cluster.

    X and `bases` are as for `residuals`.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int64
        The first in a tie.
    least : ndarray of shape (n_samples,)
        Squared distances to the nearest subspace.
    moments : ndarray of shape (n_clusters, n_features, n_features)
        :math:`\sum x x'` over the rows of each cluster; symmetric to the last bit.
    """
    n_clusters, n_features, dimension = bases.shape
    labels, least = np.empty(len(X), dtype=np.int64), np.empty(len(X))
    moments = np.zeros((n_clusters, n_features, n_features))
    for rows in blocks(len(X), max(n_clusters * dimension, n_features)):
        block = X[rows]
        distances = residuals(block, bases)
        nearest = distances.argmin(axis=1)
        labels[rows] = nearest
        least[rows] = distances[np.arange(len(block)), nearest]
        for k in range(n_clusters):
            members = block[nearest == k]
            # for a matrix and its own transpose NumPy calls syrk, which gives a symmetric product
            moments[k] += members.T @ members
    return labels, least, moments
