"""Structure of an embedding: separation of classes, and preserved neighbours."""

from __future__ import annotations

import numpy as np

_BLOCK = 250  # rows per block of distances
N_NEIGHBORS = 8  # as many as Recall@8 returns


def separation(rows: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of the variance of rows (n, d) between classes, from 0 to 1.

    0 if all classes have the same mean, 1 if all rows of a class are equal. The mean for random
    labels is (C - 1) / (n - 1), with C classes. NaN for rows without variance.

    Examples
    --------
    >>> separation(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1]))
    1.0
    >>> separation(np.array([[0.0], [1.0], [0.0], [1.0]]), np.array([0, 0, 1, 1]))
    0.0
    """
    rows = rows - rows.mean(axis=0)
    largest = np.abs(rows).max()
    if largest == 0.0:
        return float("nan")
    rows = rows / largest  # iterates may be as small as 1e-12
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, places, rows)
    return float((sums**2 / counts[:, None]).sum() / (rows**2).sum())


def locality(features: np.ndarray, rows: np.ndarray, queries: np.ndarray) -> float:
    """Return the mean share of an image's nearest neighbours in features preserved in `rows`.

    `queries` are indices of images in both. Each has `N_NEIGHBORS` neighbours, or all others if
    there are fewer, without itself. The mean for a random order is N_NEIGHBORS / (n - 1).

    Examples
    --------
    >>> line = np.arange(20.0)[:, None]
    >>> locality(line, 3.0 * line, np.arange(20)), locality(line, line[::-1], np.arange(20))
    (1.0, 1.0)
    """
    before, after = _neighbors(features, queries), _neighbors(rows, queries)
    kept = (before[:, :, None] == after[:, None, :]).any(axis=2)
    return float(kept.mean())


def _neighbors(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the indices (n_queries, k) of each query's nearest other rows."""
    k = min(N_NEIGHBORS, len(rows) - 1)
    rows = np.asarray(rows, dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    rows = rows / (np.abs(rows).max() or 1.0)
    norms = (rows**2).sum(axis=1)
    found = []
    for begin in range(0, len(queries), _BLOCK):
        own = queries[begin : begin + _BLOCK]
        distances = norms - 2.0 * rows[own] @ rows.T  # without the query's norm, a constant
        distances[np.arange(len(own)), own] = np.inf
        # The order within the k nearest does not matter, only which they are.
        found.append(np.argpartition(distances, k - 1, axis=1)[:, :k])
    return np.concatenate(found)
