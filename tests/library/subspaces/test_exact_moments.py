"""Moments by nearest subspace: a row's subspace, and its share, depend on that row alone."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from privclust.core.fixed_point import FACTOR_BITS, SUM_BITS
from privclust.core.grassmann import nearest_subspaces, random_bases
from privclust.core.second_moments import in_units, unit
from privclust.subspaces import moments_by_subspace
from privclust.subspaces._exact_moments import labels_by_subspace, rounded_columns


def rows_of_ball(n, d, seed=0):
    X = np.random.default_rng([seed, n, d]).standard_normal((n, d))
    return in_units(X / np.linalg.norm(X, axis=1, keepdims=True), unit(1.0, d))


def labels_of(rows, bases):
    return labels_by_subspace(rows, rounded_columns(bases), len(bases))


@pytest.mark.parametrize(("d", "k", "q"), [(2, 2, 1), (16, 10, 1), (5, 3, 3), (33, 4, 9)])
def test_projections_are_exact(d, k, q):
    """In whole numbers, whatever order of summation."""
    rng = np.random.default_rng(d)
    bases, rows = random_bases(k, d, q, rng), rows_of_ball(200, d)
    columns = rounded_columns(bases)
    whole = np.ldexp(rows, FACTOR_BITS).astype(np.int64)
    scaled = np.ldexp(columns, SUM_BITS).astype(np.int64)
    for order in (np.arange(d), rng.permutation(d)):
        products = np.ldexp(rows[:, order] @ columns[order], FACTOR_BITS + SUM_BITS)
        np.testing.assert_array_equal(products, (whole @ scaled).astype(np.float64))
    # partial sums have room however long a row may be: magnitudes add up to less than 2^53
    assert (np.abs(whole) @ np.abs(scaled)).max() < 2**53


@pytest.mark.parametrize(
    ("n", "d", "k", "q"), [(6250, 16, 10, 1), (14_001, 10, 3, 3), (700, 60, 4, 9)]
)
def test_a_row_adds_its_own_moments_to_one_subspace(n, d, k, q):
    bases, rows = random_bases(k, d, q, np.random.default_rng(3)), rows_of_ball(n, d)
    labels, whole = labels_of(rows, bases), moments_by_subspace(rows, bases).integers
    order = np.random.default_rng(4).permutation(n)
    np.testing.assert_array_equal(moments_by_subspace(rows[order], bases).integers, whole)
    np.testing.assert_array_equal(labels_of(rows[order], bases), labels[order])
    for i in (0, n // 3, n - 1):
        alone = moments_by_subspace(rows[i : i + 1], bases).integers
        assert np.flatnonzero(alone.any(axis=(1, 2))).tolist() == [labels[i]]
        without = moments_by_subspace(np.delete(rows, i, axis=0), bases).integers
        np.testing.assert_array_equal(whole - without, alone)


def test_subspaces_are_the_nearest():
    """But for rounding, as k-plane's."""
    bases, rows = random_bases(4, 12, 3, np.random.default_rng(0)), rows_of_ball(3000, 12)
    labels, _, moments = nearest_subspaces(rows, bases)
    np.testing.assert_array_equal(labels_of(rows, bases), labels)
    np.testing.assert_allclose(moments_by_subspace(rows, bases), moments, atol=1e-9)


def test_ties_go_to_the_first():
    bases = np.stack([np.eye(3)[:, :1], np.eye(3)[:, 1:2], np.eye(3)[:, :1]])
    rows = np.array([[0.5, 0.5, 0.0], [0.25, -0.5, 0.0], [0.0, 0.0, 1.0]])
    assert labels_of(rows, bases).tolist() == [0, 1, 0]
    assert moments_by_subspace(rows[:0], bases).integers.shape == (3, 3, 3)


def test_threads_change_nothing():
    bases, rows = random_bases(5, 64, 8, np.random.default_rng(0)), rows_of_ball(5001, 64)
    results = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads):
            results.append(moments_by_subspace(rows, bases).integers)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
