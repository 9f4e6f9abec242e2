"""Segmentation error and l2 error."""

from itertools import permutations

import numpy as np
import pytest

from privclust.metrics import l1_error, l2_error, segmentation_error


def test_segmentation_error_against_all_permutations():
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, labels = rng.integers(4, size=(2, 30))
        brute = min(np.mean(np.array(p)[labels] != y) for p in permutations(range(4)))
        assert segmentation_error(y, labels) == pytest.approx(brute, abs=1e-15)


def test_segmentation_error_with_different_numbers_of_labels():
    y = np.repeat([0, 1, 2], 4)
    assert segmentation_error(y, np.zeros(12)) == pytest.approx(8 / 12)
    assert segmentation_error(y, np.arange(12)) == pytest.approx(9 / 12)
    assert segmentation_error(np.arange(12), y) == pytest.approx(9 / 12)
    assert segmentation_error(["b", "b", "a"], [7, 7, -1]) == 0.0


@pytest.mark.parametrize("args", [([], []), ([0, 1], [0]), ([[0, 1]], [[0, 1]])])
def test_segmentation_error_bad_input(args):
    with pytest.raises(ValueError, match="same positive length"):
        segmentation_error(*args)


def test_l2_error_is_eq_19():
    rng = np.random.default_rng(1)
    z, y = rng.standard_normal((9, 9)), rng.integers(3, size=9)
    expected = np.mean(
        [1.0 - np.linalg.norm(z[y == y[j], j]) / np.linalg.norm(z[:, j]) for j in range(9)]
    )
    assert l2_error(z, y) == pytest.approx(expected, rel=1e-13)
    assert l2_error(z.T, y) != pytest.approx(expected, rel=1e-3)  # columns, not rows
    # the ratio of a column is free of its scale, also where squares under- or overflow
    assert l2_error(z * np.logspace(-250, 250, 9), y) == pytest.approx(expected, rel=1e-13)


def test_l1_error_is_the_same_ratio_with_l1_norms():
    rng = np.random.default_rng(2)
    z, y = rng.standard_normal((9, 9)), rng.integers(3, size=9)
    expected = np.mean([1.0 - abs(z[y == y[j], j]).sum() / abs(z[:, j]).sum() for j in range(9)])
    assert l1_error(z, y) == pytest.approx(expected, rel=1e-13)
    assert l1_error(z, y) > l2_error(z, y)  # spread-out energy weighs more
    assert l1_error(np.zeros((4, 4)), [0, 0, 1, 1]) == 1.0


def test_l2_error_extremes():
    y = [0, 0, 1, 1]
    block = np.kron(np.eye(2), np.ones((2, 2)))
    assert l2_error(block, y) == 0.0
    assert l2_error(1.0 - block, y) == 1.0
    assert l2_error(np.zeros((4, 4)), y) == 1.0  # representing nothing is no merit
    block[:, 0] = 0.0
    assert l2_error(block, y) == 0.25


def test_l2_error_bad_input():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3,\)"):
        l2_error(np.ones((2, 3)), [0, 1, 1])
    with pytest.raises(ValueError, match="finite"):
        l2_error(np.array([[np.nan]]), [0])
