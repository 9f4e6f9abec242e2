import numpy as np
import pytest
from numba import njit

from privclust.core.singlemath import LEAST_EXPONENT, exp_nonpositive


@njit
def exponentials(x):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = exp_nonpositive(x[i])
    return y


@pytest.mark.parametrize("low", [float(LEAST_EXPONENT), -1.0, -1e-3])
def test_relative_error(low):
    """Half a unit of rounding, 6e-8, for the result, and as much for what it is a sum of."""
    x = np.random.default_rng(0).uniform(low, 0.0, 500_000).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    assert np.abs(exponentials(x) / exact - 1.0).max() < 1.3e-7


def test_where_the_power_of_two_changes():
    middles = 0.5 * np.log(2.0) * np.arange(-250, 1)
    x = np.minimum(middles[:, None] + np.linspace(-1e-4, 1e-4, 41), 0.0).astype(np.float32).ravel()
    exact = np.exp(x.astype(np.float64))
    assert np.abs(exponentials(x) / exact - 1.0).max() < 1.3e-7


def test_special_values():
    least = np.float32(LEAST_EXPONENT)
    x = np.array([0.0, -0.0, np.nextafter(least, -np.inf), -1e3, -3e38, -np.inf], np.float32)
    np.testing.assert_array_equal(exponentials(x), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert np.isnan(exponentials(np.array([np.nan], np.float32))).all()
    assert exponentials(np.array([least]))[0] >= np.finfo(np.float32).tiny


def test_vectorised_loops_and_single_calls_agree():
    x = np.random.default_rng(1).uniform(-86.0, 0.0, 1003).astype(np.float32)
    np.testing.assert_array_equal(exponentials(x), [exp_nonpositive(v) for v in x])
    assert exponentials(x).dtype == np.float32
