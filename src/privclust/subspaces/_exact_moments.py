r"""Exact second moments by nearest subspace: each row's contribution depends only on that row.

Rows are multiples of 2^-16 of norm at most 1 (`privclust.core.second_moments`). The bases are
public and rounded to multiples of 2^-30. All partial sums of their products with a row are below 2
and so exact in 53 bits: a matrix product has the same bits for any BLAS and any number of rows.
Squares and their comparison are computed by a compiled loop in the order of the columns. A row's
subspace thus depends only on that row and the bases.
"""

from __future__ import annotations

import numpy as np

from privclust.core.compiled import kernel
from privclust.core.fixed_point import SUM_BITS, FixedPoint, check_row_count
from privclust.core.grassmann import blocks
from privclust.core.second_moments import MomentSums


def moments_by_subspace(rows: np.ndarray, bases: np.ndarray) -> FixedPoint:
    r"""Return :math:`\sum x x'` over the rows nearest to each subspace.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
        Rows of norm up to 1 from `privclust.core.second_moments.in_units`, in any number.
    bases : ndarray of shape (n_clusters, n_features, dimension)
        Orthonormal columns.

    Returns
    -------
    FixedPoint of shape (n_clusters, n_features, n_features)

    Raises
    ------
    ValueError
        If there are too many rows for exact sums.

    Examples
    --------
    >>> rows, bases = np.array([[1.0, 0.0], [0.0, 0.5]]), np.eye(2)[:, :, None]
    >>> np.asarray(moments_by_subspace(rows, bases)).tolist()
    [[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.25]]]
    """
    check_row_count(len(rows))
    n_clusters, n_features, dimension = bases.shape
    columns = rounded_columns(bases)
    sums = MomentSums(n_clusters, n_features)
    for part in blocks(len(rows), max(n_clusters * dimension, n_features)):
        block = rows[part]
        labels = labels_by_subspace(block, columns, n_clusters)
        for k in range(n_clusters):
            sums.add(k, block[labels == k])
    return sums.total()


def rounded_columns(bases: np.ndarray) -> np.ndarray:
    """Return all columns side by side, multiples of 2^-30, (n_features, n_clusters dimension)."""
    # columns of one subspace are neighbours, which `_longest_projections` relies on
    columns = np.ascontiguousarray(bases.transpose(1, 0, 2)).reshape(bases.shape[1], -1)
    return np.ldexp(np.rint(np.ldexp(columns, SUM_BITS)), -SUM_BITS)


def labels_by_subspace(rows: np.ndarray, columns: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the nearest subspace of each row, int64; the first in a tie.

    `columns` are the bases, from `rounded_columns`.
    """
    labels = np.empty(len(rows), dtype=np.int64)
    _longest_projections(rows @ columns, n_clusters, labels)
    return labels


@kernel()
def _longest_projections(coordinates, n_clusters, labels):
    """Write which group of columns has the largest sum of squares; the first in a tie."""
    dimension = coordinates.shape[1] // n_clusters
    for i in range(coordinates.shape[0]):
        largest, nearest = -1.0, 0
        for k in range(n_clusters):
            inside = 0.0
            for c in range(dimension):
                coordinate = coordinates[i, k * dimension + c]
                inside += coordinate * coordinate
            is_longer = inside > largest
            largest = inside if is_longer else largest
            nearest = k if is_longer else nearest
        labels[i] = nearest
