"""Linear discriminants of a public, labelled set."""

from __future__ import annotations

import numpy as np

_SHRINKAGE = 0.1  # part of the mean variance that is added to the within-class covariance
_NORM_ROUNDING = 1e-20  # mean squared deviation below which rows of norm 1 agree but for rounding


def discriminants(
    X: np.ndarray, y: np.ndarray, n_components: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of rows (d,) and the directions (d, k) in which their classes differ most.

    Eigenvectors of the between-class covariance after whitening by the within-class covariance,
    which a part of its mean variance makes regular. They come by falling eigenvalue, with a
    positive largest entry before the whitening is undone. Rows of X (n, d) have norm 1; None asks
    for all components: the number of classes less 1, or d if that is less. Raises a ValueError if
    there are fewer than two classes or too few discriminants, or all rows agree.
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
        within = X - mean  # one image a class, or equal ones: nothing is known of their spread
    covariance = within.T @ within / len(X)
    variance = np.trace(covariance) / X.shape[1]
    if variance * X.shape[1] <= _NORM_ROUNDING:
        raise ValueError(
            "X: all public features agree up to their norm, so that nothing tells classes, with "
            f"n_features={X.shape[1]}"
        )
    covariance.flat[:: X.shape[1] + 1] += _SHRINKAGE * variance
    root = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(root, (np.sqrt(counts)[:, None] * centers).T).T
    right = np.linalg.svd(whitened, full_matrices=False)[2][:n_components]
    # signs that do not depend on the library: client and server may have different ones
    largest = right[np.arange(n_components), np.abs(right).argmax(axis=1)]
    right = right * np.where(largest < 0, -1.0, 1.0)[:, None]
    return mean, np.linalg.solve(root.T, right.T)
