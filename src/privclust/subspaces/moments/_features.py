"""Harmonic moments of factors and of rows, in coordinates, for small sketches."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import numpy as np

from privclust.sketches._harmonics import (
    n_moments,
    places,
    roots_of_counts,
    sorted_indices,
    trace,
    trace_free,
)

_BLOCK_ROWS = 500


def factor_features(factor: np.ndarray, degree: int) -> np.ndarray:
    r"""Return :math:`H\, sym(C \otimes \dots \otimes C)` of a symmetric matrix C (d, d), (m,)."""
    places = sorted_indices(len(factor), degree).astype(np.intp).T
    ways = _matchings(degree)
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
    products = columns[places[:, 0]]
    for place in range(1, degree):
        products *= columns[places[:, place]]
    return trace_free(products * roots_of_counts(d, degree)[:, None], d, degree)


def feature_moments(directions: np.ndarray, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means of `row_features`, degrees 2, 4 .. degree, (m,), and of their products, (m, m).

    Rows (n, d) have norm 1. Products of two features are moments of twice the degree. These are far
    fewer, and each is summed once. Moments of lower degrees are their traces.
    """
    n, d = directions.shape
    splits, where = _splits(d, degree)
    sums = [np.zeros((len(ends), n_moments(d - j, degree))) for j, ends in enumerate(splits)]
    for start in range(0, n, _BLOCK_ROWS):
        products = _products(directions[start : start + _BLOCK_ROWS], degree)
        for ends, total in zip(splits, sums, strict=True):
            total += products[ends] @ products[-total.shape[1] :].T
    moments = np.concatenate([total.ravel() for total in sums]) / n
    roots = roots_of_counts(d, degree)
    left, whole = _harmonic_parts(moments[where] * np.outer(roots, roots), d, degree)
    return _harmonic_parts(whole[0], d, degree)[0], _harmonic_parts(left.T, d, degree)[0]


def _harmonic_parts(coordinates, d, degree):
    """Return trace-free parts of tensors and of their traces, lower ones first, and the last."""
    parts = []
    for lower in range(degree, 0, -2):
        parts.append(trace_free(coordinates, d, lower))
        coordinates = trace(coordinates, d, lower)
    return np.concatenate(parts[::-1]), coordinates


def _products(rows, degree):
    """Return products of entries of each row (n, d), (m, n), in lexical order of indices."""
    columns = np.ascontiguousarray(rows.T)
    products, d = columns, len(columns)
    for lower in range(1, degree):
        tails = [products[-n_moments(d - i, lower) :] for i in range(d)]
        products = np.concatenate(
            [column * tail for column, tail in zip(columns, tails, strict=True)]
        )
    return products


@lru_cache(maxsize=8)
def _splits(d, degree):
    """Return the splits of sorted indices of twice a degree, and the places of pairs.

    A half that ends with j is combined with halves that begin with j or more: the last ones in
    lexical order.
    """
    halves = np.array(list(itertools.combinations_with_replacement(range(d), degree)))
    splits = [np.flatnonzero(halves[:, -1] == j) for j in range(d)]
    ends = [halves[len(halves) - n_moments(d - j, degree) :] for j in range(d)]
    indices = np.concatenate([_pairs(halves[a], b) for a, b in zip(splits, ends, strict=True)])
    sorted_halves = sorted_indices(d, degree)
    pairs = np.sort(_pairs(sorted_halves, sorted_halves), axis=1)
    return splits, places(pairs, indices, d).reshape(len(halves), len(halves))


def _pairs(left, right):
    """Return all pairs of an index of the one and an index of the other."""
    return np.hstack([np.repeat(left, len(right), axis=0), np.tile(right, (len(left), 1))])


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
