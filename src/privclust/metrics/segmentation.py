"""Errors of a segmentation and of its coefficients."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def segmentation_error(y: np.ndarray, labels: np.ndarray) -> float:
    """Proportion of points assigned to the wrong subspace.

    Clusters are matched to classes one to one so that the number of points in agreement is the
    largest possible (Hungarian algorithm on the contingency table); points of a cluster or class
    that is left without a partner count as wrong.

    Parameters
    ----------
    y, labels : array-like of shape (n_samples,)
        True and estimated labels, of any hashable kind; the numbers of distinct ones may differ.

    Returns
    -------
    error : float
        Between 0 and 1 (a proportion, not per cent). Symmetric in its arguments.

    Raises
    ------
    ValueError
        If the arguments are not vectors of the same positive length.

    Examples
    --------
    >>> from privclust.metrics import segmentation_error
    >>> segmentation_error([0, 0, 1, 1], [1, 1, 0, 2])
    0.25
    """
    y, labels = np.asarray(y), np.asarray(labels)
    if y.ndim != 1 or y.shape != labels.shape or y.size == 0:
        raise ValueError(
            "y and labels must be vectors of the same positive length, "
            f"got shapes {y.shape} and {labels.shape}"
        )
    classes, clusters = (np.unique(values, return_inverse=True)[1] for values in (y, labels))
    table = np.zeros((classes.max() + 1, clusters.max() + 1), dtype=np.int64)
    np.add.at(table, (classes, clusters), 1)
    agreed = table[linear_sum_assignment(table, maximize=True)].sum()
    return float((y.size - agreed) / y.size)


def l2_error(coefficients: np.ndarray, y: np.ndarray) -> float:
    """Proportion of coefficient energy outside the true blocks, eq. (19) of the MTSC paper.

    The mean over the columns j of ``1 - ||z'_j||_2 / ||z_j||_2``, where ``z'_j`` keeps those
    entries of ``z_j`` that belong to points of the class of point j. A column of zeros leaves the
    ratio undefined: it counts as 1, so that no method gains by it.

    Parameters
    ----------
    coefficients : array-like of shape (n_samples, n_samples)
        Z; column j holds the coefficients of point j (``X.T ~ X.T @ Z`` with samples in X's rows).
    y : array-like of shape (n_samples,)
        True labels.

    Returns
    -------
    error : float
        Between 0 and 1 (the paper prints 100 times this).

    Raises
    ------
    ValueError
        If the shapes do not fit or `coefficients` is not finite.

    References
    ----------
    Y. Wang, D. Wipf, Q. Ling, W. Chen and I. Wassell, "Multi-task learning for subspace
    segmentation", ICML 2015, eq. (19).

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.metrics import l2_error
    >>> round(l2_error(np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0]]), [0, 0, 1]), 4)
    0.3333
    """
    squares = _relative_magnitudes(coefficients, y) ** 2
    return float(np.mean(1.0 - np.sqrt(_inside(squares, y))))


def l1_error(coefficients: np.ndarray, y: np.ndarray) -> float:
    """Return the ratio of eq. (19) of the MTSC paper with l1 norms in place of l2 norms.

    The mean over the columns j of ``1 - ||z'_j||_1 / ||z_j||_1``; see `l2_error` for the rest. The
    paper defines the l2 form, but the numbers it prints in Table 1 are close to this one.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.metrics import l1_error
    >>> l1_error(np.array([[0, 3], [1, 1]]), [0, 1])
    0.875
    """
    return float(np.mean(1.0 - _inside(_relative_magnitudes(coefficients, y), y)))


def _relative_magnitudes(coefficients: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Check coefficients and labels and scale columns, so that squares cannot underflow."""
    coefficients, y = np.asarray(coefficients, dtype=np.float64), np.asarray(y)
    if y.ndim != 1 or y.size == 0 or coefficients.shape != (y.size, y.size):
        raise ValueError(
            "coefficients must be (n, n) for n > 0 labels, "
            f"got shapes {coefficients.shape} and {y.shape}"
        )
    if not np.isfinite(coefficients).all():
        raise ValueError("coefficients must be finite, got NaN or inf")
    magnitudes = np.abs(coefficients)
    largest = magnitudes.max(axis=0)
    # a column of zeros stays one
    return magnitudes / np.where(largest > 0.0, largest, 1.0)


def _inside(magnitudes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return each column's share that lies in its own class; 0 for a column of zeros."""
    y = np.asarray(y)
    inside = np.where(y[:, None] == y, magnitudes, 0.0).sum(axis=0)
    total = magnitudes.sum(axis=0)
    return np.where(total > 0.0, inside / np.where(total > 0.0, total, 1.0), 0.0)
