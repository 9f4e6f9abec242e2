"""Moments by nearest subspace: a row's subspace, and its share, depend on that row alone."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from privclust.core.grassmann import nearest_subspaces, random_bases
from privclust.core.second_moments import in_units, unit
from privclust.subspaces import moments_by_subspace


def rows_of_ball(n, d, seed=0):
    X = np.random.default_rng([seed, n, d]).standard_normal((n, d))
    return in_units(X / np.linalg.norm(X, axis=1, keepdims=True), unit(1.0, d))


def label_of(row, bases):
    """The only subspace to whose moments a row adds."""
    (label,) = np.flatnonzero(moments_by_subspace(row[None], bases).integers.any(axis=(1, 2)))
    return label


@pytest.mark.parametrize(("d", "q"), [(2, 1), (16, 1), (5, 3), (33, 9), (100, 1)])
def test_equal_projections_tie_whatever_order_they_add_up_in(d, q):
    """A row along all axes, in bases of the same entries in other orders: the first counts.

    Floating-point sums would differ in their last bits. The long rows have the largest sums.
    """
    rng = np.random.default_rng(d)
    for scale in (1.0, 0.3):
        row = in_units(np.full((1, d), scale / np.sqrt(d)), unit(1.0, d))[0]
        for _ in range(20):
            basis = random_bases(1, d, q, rng)[0]
            bases = np.stack([basis, *(basis[rng.permutation(d)] for _ in range(3))])
            assert label_of(row, bases) == 0
            # a little longer projection is nearer: the last entry counts
            signs = np.where(basis[:, :1].sum() < 0.0, -1.0, 1.0)
            bases[3, :, 0] += signs * 2.0**-29
            assert label_of(row, bases) == 3


@pytest.mark.parametrize(
    ("n", "d", "k", "q"), [(6250, 16, 10, 1), (14_001, 10, 3, 3), (700, 60, 4, 9)]
)
def test_a_row_adds_its_own_moments_to_one_subspace(n, d, k, q):
    bases, rows = random_bases(k, d, q, np.random.default_rng(3)), rows_of_ball(n, d)
    whole = moments_by_subspace(rows, bases).integers
    order = np.random.default_rng(4).permutation(n)
    np.testing.assert_array_equal(moments_by_subspace(rows[order], bases).integers, whole)
    for i in (0, n // 3, n - 1):
        alone = moments_by_subspace(rows[i : i + 1], bases).integers
        assert alone.any(axis=(1, 2)).sum() == 1
        without = moments_by_subspace(np.delete(rows, i, axis=0), bases).integers
        np.testing.assert_array_equal(whole - without, alone)


def test_subspaces_are_the_nearest():
    """But for rounding, as k-plane's."""
    bases, rows = random_bases(4, 12, 3, np.random.default_rng(0)), rows_of_ball(3000, 12)
    labels, _, moments = nearest_subspaces(rows, bases)
    np.testing.assert_array_equal([label_of(row, bases) for row in rows[:300]], labels[:300])
    np.testing.assert_allclose(moments_by_subspace(rows, bases), moments, atol=1e-9)


def test_ties_go_to_the_first():
    bases = np.stack([np.eye(3)[:, :1], np.eye(3)[:, 1:2], np.eye(3)[:, :1]])
    rows = np.array([[0.5, 0.5, 0.0], [0.25, -0.5, 0.0], [0.0, 0.0, 1.0]])
    assert [label_of(row, bases) for row in rows] == [0, 1, 0]
    assert moments_by_subspace(rows[:0], bases).integers.shape == (3, 3, 3)


def test_threads_change_nothing():
    bases, rows = random_bases(5, 64, 8, np.random.default_rng(0)), rows_of_ball(5001, 64)
    results = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads):
            results.append(moments_by_subspace(rows, bases).integers)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
