"""Recall of the right class by exact retrieval of nearest neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from privclust.core.validation import check_integer, check_real

_MAX_DIRECT = 8  # largest dimension for sums of squared differences instead of inner products
_BLOCK_QUERIES = 256  # queries at a time, with all distances to the gallery in memory


def hit_ranks(
    queries: ArrayLike,
    gallery: ArrayLike,
    y_queries: ArrayLike,
    y_gallery: ArrayLike,
    *,
    own: ArrayLike | None = None,
) -> np.ndarray:
    """Return the number of gallery rows nearer than the first of the query's class.

    A query has a hit among its k nearest exactly if this is below k: Recall@k is the mean of
    ``ranks < k``. One pass serves every k, without sorting.

    Parameters
    ----------
    queries : array-like of shape (n_queries, n_features)
    gallery : array-like of shape (n_gallery, n_features)
    y_queries : array-like of shape (n_queries,)
    y_gallery : array-like of shape (n_gallery,)
        Labels, integers.
    own : array-like of shape (n_queries,), ints, or None
        The gallery row that is the query itself and left out; -1 for none, None without any.

    Returns
    -------
    ndarray of shape (n_queries,), int64
        n_gallery if no other row has the query's class, such as a class of one image.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Examples
    --------
    >>> hit_ranks([[0.0]], [[0.0], [1.0], [2.0]], [7], [7, 3, 7], own=[0])
    array([1])
    """
    queries, gallery = _checked_rows(queries, gallery)
    y_queries = _checked_vector("y_queries", y_queries, len(queries))
    y_gallery = _checked_vector("y_gallery", y_gallery, len(gallery))
    own = np.full(len(queries), -1) if own is None else _checked_vector("own", own, len(queries))
    if own.size and (own.min() < -1 or own.max() >= len(gallery)):
        raise ValueError(
            f"own must hold rows of the gallery, 0 to {len(gallery) - 1}, or -1, got "
            f"{own.min()} to {own.max()}"
        )
    ranks = np.empty(len(queries), dtype=np.int64)
    places = np.arange(len(gallery))
    for rows, distances in _blocks(queries, gallery):
        is_other = places != own[rows, None]
        is_hit = is_other & (y_gallery == y_queries[rows, None])
        # inf marks rows that are no hits
        finite = np.minimum(distances, np.finfo(distances.dtype).max)  # squares may overflow
        first = np.where(is_hit, finite, np.inf).argmin(axis=1, keepdims=True)  # first of ties
        least = np.take_along_axis(distances, first, axis=1)
        # ties count in the order of the gallery, as a stable sort would
        is_nearer = (distances < least) | ((distances == least) & (places < first))
        n_nearer = (is_nearer & is_other).sum(axis=1)
        ranks[rows] = np.where(is_hit.any(axis=1), n_nearer, len(gallery))
    return ranks


def recall_ceiling(epsilon: float, delta: float, k: int, n_classes: int) -> float:
    r"""Return the largest Recall@k that any (epsilon, delta)-private query can have.

    The query's class c is uniform on C classes; any use of the release o returns k items, of a set
    L(o) of k classes (fewer have no higher recall); the recall is
    :math:`a = C^{-1} \sum_c P_c(c \in L)`. For two classes :math:`c \ne c'` and replace-one
    neighbours, the event that L contains c and not :math:`c'` has
    :math:`P_c \le e^\epsilon P_{c'} + \delta`. Summed over all pairs, the left side is
    :math:`C a (C - k)`, as there are C - k classes outside L, and the right side is
    :math:`e^\epsilon k\, C (1 - a) + C (C - 1) \delta`. So

    .. math:: a \le \frac{k e^\epsilon + (C - 1) \delta}{k e^\epsilon + C - k}.

    With delta = 0 subset selection attains the bound: it returns a set with c with a probability
    that is :math:`e^\epsilon` times that of a set without. Public data, gallery and labels of the
    others change nothing. If the query is left out of the gallery, it is one of k + 1 returned
    items: pass k + 1 to be exact.

    Parameters
    ----------
    epsilon : float
        In nats, not negative.
    delta : float
        In [0, 1).
    k : int
        Number of returned items, at least 1.
    n_classes : int
        C, equally frequent among queries, at least 1.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> recall_ceiling(0.0, 0.0, 8, 100), round(recall_ceiling(0.1, 1e-5, 8, 100), 4)
    (0.08, 0.0877)
    """
    check_real("epsilon", epsilon, inclusive=True)
    check_real("delta", delta, inclusive=True)
    if delta >= 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
    check_integer("k", k, minimum=1)
    check_integer("n_classes", n_classes, minimum=1)
    if k >= n_classes:
        return 1.0
    shrink = math.exp(-epsilon)  # divide by e^epsilon, to avoid overflow
    bound = (k + (n_classes - 1.0) * delta * shrink) / (k + (n_classes - k) * shrink)
    return min(bound, 1.0)


def _blocks(queries: np.ndarray, gallery: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield slices of queries and their squared distances to the gallery, up to a constant."""
    is_direct = gallery.shape[1] <= _MAX_DIRECT
    if not is_direct:
        center = gallery.mean(axis=0)
        # shorter vectors lose fewer digits in the difference of squares and products
        gallery, queries = gallery - center, queries - center
        squares = np.einsum("ij,ij->i", gallery, gallery)
    for start in range(0, len(queries), _BLOCK_QUERIES):
        rows = slice(start, start + _BLOCK_QUERIES)
        if is_direct:
            yield rows, cdist(queries[rows], gallery, "sqeuclidean")
        else:
            yield rows, squares - 2 * (queries[rows] @ gallery.T)


def _checked_rows(queries: ArrayLike, gallery: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return both as floating matrices of one precision, or raise a ValueError."""
    matrices = []
    for name, rows in (("queries", queries), ("gallery", gallery)):
        rows = np.asarray(rows)
        if rows.dtype.kind not in "fiub" or rows.ndim != 2 or not np.isfinite(rows).all():
            raise ValueError(
                f"{name} must be a matrix of finite numbers, got shape {rows.shape} of dtype "
                f"{rows.dtype}"
            )
        matrices.append(rows)
    precision = np.result_type(*matrices, np.float32)
    queries, gallery = (rows.astype(precision, copy=False) for rows in matrices)
    if queries.shape[1] != gallery.shape[1] or not len(gallery):
        raise ValueError(
            f"gallery must have rows, of {queries.shape[1]} features as queries have, got shape "
            f"{gallery.shape}"
        )
    return queries, gallery


def _checked_vector(name: str, values: ArrayLike, size: int) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind not in "iub" or values.shape != (size,):
        raise ValueError(
            f"{name} must be {size} integers, got shape {values.shape} of dtype {values.dtype}"
        )
    return values.astype(np.int64)
