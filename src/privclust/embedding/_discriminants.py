"""Linear discriminants of a public, labelled set."""

from __future__ import annotations

import numpy as np

_SHRINKAGE = 0.1  # share of the mean variance that is added to the within-class covariance
_NORM_ROUNDING = 1e-20  # mean squared deviation below which rows of norm 1 are equal up to rounding


def discriminants(
    X: np.ndarray, y: np.ndarray, n_components: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of rows (d,) and the linear discriminants (d, k) of their classes.

    Discriminants are eigenvectors of the between-class covariance, whitened by the within-class
    covariance with shrinkage. They are in order of decreasing eigenvalue; the sign makes the
    largest whitened entry positive. Rows of X (n, d) have norm 1. None asks for all components: the
    smaller of d and the number of classes minus 1. Raises a ValueError for fewer than two classes,
    too few discriminants, or equal rows.
    """
    values, classes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(values) < 2:
        raise ValueError(f"y must have at least two public classes, got only {values[0]}")
    most = min(len(values) - 1, X.shape[1])
    n_components = most if n_components is None else n_components
    if n_components > most:
        raise ValueError(
            f"n_components must be at most {most}, the number of discriminants of {len(values)} "
            f"public classes and {X.shape[1]} features, got {n_components}"
        )
    X = X.astype(np.float64, copy=False)
    mean = X.mean(axis=0)
    sums = np.zeros((len(values), X.shape[1]))
    np.add.at(sums, classes, X - mean)
    centers = sums / counts[:, None]
    within = X - mean - centers[classes]
    if np.einsum("ij,ij->", within, within) <= _NORM_ROUNDING * len(X):
        within = X - mean  # no spread within classes (such as one image each): use the total
    covariance = within.T @ within / len(X)
    variance = np.trace(covariance) / X.shape[1]
    if variance * X.shape[1] <= _NORM_ROUNDING:
        raise ValueError(
            "X: all public features are equal up to their norm, so that classes cannot be "
            f"distinguished, with n_features={X.shape[1]}"
        )
    # the diagonal
    covariance.flat[:: X.shape[1] + 1] += _SHRINKAGE * variance
    root = np.linalg.cholesky(covariance)
    # its squared singular values are the eigenvalues of the whitened between-class covariance
    whitened = np.linalg.solve(root, (np.sqrt(counts)[:, None] * centers).T).T
    right = np.linalg.svd(whitened, full_matrices=False)[2][:n_components]
    # signs that do not depend on the LAPACK library: client and server may have different ones
    largest = right[np.arange(n_components), np.abs(right).argmax(axis=1)]
    right = right * np.where(largest < 0, -1.0, 1.0)[:, None]
    return mean, np.linalg.solve(root.T, right.T)
