"""Harmonic moments of factors and of rows, in coordinates, for small sketches."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np

from privclust.sketches._harmonics import roots_of_counts, sorted_indices, trace_free


def factor_features(factor: np.ndarray, degree: int) -> np.ndarray:
    r"""Return :math:`H\, sym(C \otimes \dots \otimes C)` of a symmetric matrix C (d, d), (m,)."""
    places = sorted_indices(len(factor), degree).astype(np.intp).T
    ways = _matchings(degree)
    # sym(C x C) at (i, j, k, l) is the mean of C_ij C_kl over the ways to pair the indices
    total = sum(math.prod(factor[places[a], places[b]] for a, b in way) for way in ways)
    return trace_free(total * roots_of_counts(len(factor), degree) / len(ways), len(factor), degree)


def mixed_features(*matrices: np.ndarray) -> np.ndarray:
    r"""Return :math:`H\, sym(A \otimes B \otimes \dots)` of symmetric matrices (d, d), (m,).

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 0.0]])
    >>> bool(np.allclose(mixed_features(A, A), factor_features(A, 4)))
    True
    """
    d, degree = len(matrices[0]), 2 * len(matrices)
    places = sorted_indices(d, degree).astype(np.intp).T
    ways, orders = _matchings(degree), list(itertools.permutations(matrices))
    total = sum(
        math.prod(matrix[places[a], places[b]] for matrix, (a, b) in zip(order, way, strict=True))
        for way in ways
        for order in orders
    )
    # an entry stands for all orders of its indices: the root of their number keeps the norm
    scale = roots_of_counts(d, degree) / (len(ways) * len(orders))
    return trace_free(total * scale, d, degree)


def feature_derivatives(factor: np.ndarray, moves: np.ndarray, degree: int) -> np.ndarray:
    """Return derivatives of `factor_features` along symmetric matrices (t, d, d), (m, t)."""
    places = sorted_indices(len(factor), degree).astype(np.intp).T
    ways = _matchings(degree)
    total = np.zeros((len(moves), places.shape[1]))
    for way in ways:
        for moved, (a, b) in enumerate(way):
            others = [pair for other, pair in enumerate(way) if other != moved]
            rest = math.prod((factor[places[c], places[e]] for c, e in others), start=np.ones(1))
            total += moves[:, places[a], places[b]] * rest
    coordinates = total.T * (roots_of_counts(len(factor), degree) / len(ways))[:, None]
    return trace_free(coordinates, len(factor), degree)


def row_features(directions: np.ndarray, degree: int) -> np.ndarray:
    """Return harmonic moments of each direction (n, d), shape (m, n)."""
    d = directions.shape[1]
    places, columns = sorted_indices(d, degree).astype(np.intp), np.ascontiguousarray(directions.T)
    # indexing copies, so that products in place leave the columns unchanged
    products = columns[places[:, 0]]
    for place in range(1, degree):
        products *= columns[places[:, place]]
    return trace_free(products * roots_of_counts(d, degree)[:, None], d, degree)


@lru_cache(maxsize=8)
def _matchings(degree):
    """Return all ways to match the places of an index in pairs."""
    if degree == 0:
        return ((),)
    ways = []
    for second in range(1, degree):
        rest = [place for place in range(1, degree) if place != second]
        ways += [
            ((0, second), *((rest[a], rest[b]) for a, b in inner))
            for inner in _matchings(degree - 2)
        ]
    return tuple(ways)
