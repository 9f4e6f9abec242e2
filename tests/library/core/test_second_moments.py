"""Second moments as exact sums: what a row adds depends on that row alone."""

import numpy as np
import pytest

from privclust.core.fixed_point import EXACT_ROWS, FACTOR_BITS, PRODUCT_BITS
from privclust.core.second_moments import MomentSums, in_units, second_moments, unit


def ball(n, d, seed=0, radius=1.0):
    rng = np.random.default_rng([seed, n, d])
    X = rng.standard_normal((n, d))
    return radius * X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), rng.random((n, 1)))


def own(row, length):
    """The statistic of one row alone, in whole numbers."""
    whole = np.rint(row.astype(np.float64) / length * 2**FACTOR_BITS).astype(np.int64)
    return np.outer(whole, whole)


@pytest.mark.parametrize("n", [1, 4095, 4096, 4097, 9001])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_the_rows_alone(n, dtype):
    X = ball(n, 7, radius=3.0).astype(dtype)
    length = unit(3.0, 7)
    whole = second_moments(X, length).integers
    assert (second_moments(X, length).bits, whole.dtype) == (PRODUCT_BITS, np.int64)
    order = np.random.default_rng(1).permutation(n)
    np.testing.assert_array_equal(second_moments(X[order], length).integers, whole)
    parts = sum(second_moments(part, length).integers for part in np.array_split(X, 5))
    np.testing.assert_array_equal(parts, whole)
    for i in (0, n // 2, n - 1):
        without = second_moments(np.delete(X, i, axis=0), length).integers
        np.testing.assert_array_equal(whole - without, own(X[i], length))
        np.testing.assert_array_equal(
            second_moments(X[i : i + 1], length).integers, whole - without
        )


@pytest.mark.parametrize("d", [1, 2, 10, 200])
@pytest.mark.parametrize("radius", [1.0, 3.7e-100, 0.1, 9e99])
def test_rows_of_the_border_change_no_more_than_is_stated(d, radius):
    """In whole numbers: |xx'|^2 = |x|^4 <= 1, for rows that may pass the bound by 1e-12 of it."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((1000, d)) * rng.choice([1.0, 1e-3, 0.0], (1000, d))
    X = np.vstack([X, np.eye(d), np.ones((1, d)), 1.0 + 1e-5 * rng.random((50, d))])
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    factors = in_units(radius * (1 + 1e-12) * X, unit(radius, d))
    whole = np.ldexp(factors, FACTOR_BITS).astype(np.int64)
    np.testing.assert_array_equal(whole / 2**FACTOR_BITS, factors)
    assert (whole.astype(object) ** 2).sum(axis=1).max() <= 2**PRODUCT_BITS


def test_rows_are_rounded_alike_wherever_they_stand():
    X = ball(1001, 5)
    whole = in_units(X, unit(1.0, 5))
    for start in (1, 2, 3, 500, 1000):
        np.testing.assert_array_equal(in_units(X[start : start + 1], unit(1.0, 5))[0], whole[start])


def test_room_for_more_rows_than_are_exact_as_doubles():
    ones = np.ones((EXACT_ROWS // 4, 1))
    sums = MomentSums(2, 1)
    for i in range(10):
        sums.add(i % 2, ones)
        sums.add(0, np.full((1, 1), 2.0**-FACTOR_BITS))
    expected = [5 * len(ones) * 2**PRODUCT_BITS + 10, 5 * len(ones) * 2**PRODUCT_BITS]
    assert sums.total().integers.ravel().tolist() == expected


def test_no_rows():
    assert second_moments(np.zeros((0, 3)), 1.0).integers.tolist() == np.zeros((3, 3)).tolist()
