"""Sums of fixed point: what a record adds is rounded once, by itself."""

import numpy as np
import pytest

from privclust.core.compiled import kernel
from privclust.core.fixed_point import (
    EXACT_ROWS,
    FACTOR_BITS,
    LARGEST_ROWS,
    PRODUCT_BITS,
    SUM_BITS,
    FixedPoint,
    check_row_count,
    rounded_factor,
    rounded_factors,
    rounded_term,
    unit_margin,
)


@kernel()
def _rounded(values, terms, factors):
    for i in range(values.size):
        terms[i] = rounded_term(values[i])
        factors[i] = rounded_factor(values[i])


def test_rounding_is_to_the_nearest_multiple():
    values = np.random.default_rng(0).uniform(-1, 1, 10_000)
    values[:4] = 0.0, 1.0, -1.0, 2.0**-40
    terms, factors = np.empty_like(values), np.empty_like(values)
    _rounded(values, terms, factors)
    np.testing.assert_array_equal(terms, np.rint(values * 2.0**SUM_BITS) / 2.0**SUM_BITS)
    np.testing.assert_array_equal(factors, np.rint(values * 2.0**FACTOR_BITS) / 2.0**FACTOR_BITS)
    np.testing.assert_array_equal(rounded_factors(values), factors)


def test_matrix_products_of_factors_are_exact_in_any_order():
    rng = np.random.default_rng(1)
    rows = rounded_factors(rng.uniform(-1, 1, (3001, 7)))
    integers = (rows * 2**FACTOR_BITS).astype(np.int64)
    exact = integers.T @ integers
    for order in (slice(None), slice(None, None, -1), rng.permutation(len(rows))):
        product = FixedPoint.of_exact(rows[order].T @ rows[order], PRODUCT_BITS)
        np.testing.assert_array_equal(product.integers, exact)


def test_blocks_of_the_stated_size_are_exact_at_the_worst():
    # all partial sums are integers below 2^53 of the last bit's weight
    assert EXACT_ROWS * 2**PRODUCT_BITS <= 2**53
    assert EXACT_ROWS * 2**SUM_BITS <= 2**53
    assert LARGEST_ROWS * 2**PRODUCT_BITS <= 2**62
    with pytest.raises(ValueError, match="more than 1,073,741,824 rows"):
        check_row_count(LARGEST_ROWS + 1)


@pytest.mark.parametrize("bits", [SUM_BITS, FACTOR_BITS])
@pytest.mark.parametrize("d", [1, 2, 17, 1000])
def test_rounded_rows_are_no_longer_than_the_unit(d, bits):
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(2000, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[0] = d**-0.5
    step = 2.0**-bits
    integers = np.rint(rows * (1 + 1e-12) / unit_margin(d, bits) / step).astype(object)
    assert max((integers**2).sum(axis=1)) <= 2 ** (2 * bits)  # in whole numbers


def test_numbers_of_fixed_point_read_as_doubles():
    total = FixedPoint(np.array([[3, -1], [2**62 + 1, 0]]), 1)
    np.testing.assert_array_equal(np.asarray(total), [[1.5, -0.5], [2.0**61, 0.0]])
    assert total.shape == (2, 2)
    assert np.asarray(total[0]).tolist() == [1.5, -0.5]
    assert np.asarray(FixedPoint(np.array(3), 1)).tolist() == 1.5
