import numpy as np
from numba import njit

from privclust.core.vectormath import LEAST_EXPONENT, exp_nonpositive


@njit
def exponentials(x):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = exp_nonpositive(x[i])
    return y


def relative_errors(x):
    """Errors against the exponential in extended precision."""
    exact = np.exp(x.astype(np.longdouble))
    return np.abs(exponentials(x) / exact - 1.0)


def test_relative_error_over_the_whole_range():
    """Of three roundings: the reduced argument, its sum with the rest, and the result."""
    rng = np.random.default_rng(0)
    multiples = 0.5 * np.log(2.0) * np.arange(-2042, 1)  # where the integer part changes
    cases = {
        "uniform": rng.uniform(LEAST_EXPONENT, 0.0, 200_000),
        "near 0": rng.uniform(-1.0, 0.0, 100_000),
        "tiny": -np.logspace(-320, -1, 5_000),
        "changes of n": np.minimum(
            multiples[:, None] + np.linspace(-1e-12, 1e-12, 21), 0.0
        ).ravel(),
        "ends": np.array([0.0, -0.0, LEAST_EXPONENT, np.nextafter(LEAST_EXPONENT, 0.0)]),
        "small positive": rng.uniform(0.0, 0.3, 1_000),
    }
    for name, x in cases.items():
        assert relative_errors(x).max() < 3e-16, name


def test_special_values():
    x = np.array([0.0, -0.0, np.nextafter(LEAST_EXPONENT, -1e3), -745.0, -1e5, -1e308, -np.inf])
    np.testing.assert_array_equal(exponentials(x), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert np.isnan(exponentials(np.array([np.nan]))).all()
    assert exp_nonpositive(LEAST_EXPONENT) >= np.finfo(np.float64).tiny


def test_vectorised_loops_and_single_calls_agree():
    x = np.random.default_rng(1).uniform(-700.0, 0.0, 1003)
    np.testing.assert_array_equal(exponentials(x), [exp_nonpositive(v) for v in x])
