"""The least noise and epsilon of the Gaussian mechanism: verified, and least up to rounding."""

import math

import pytest

from privclust.privacy.gaussian_delta import is_private, least_epsilon, least_sigma

BUDGETS = [(1e-6, 1e-9), (0.1, 0.3), (1.0, 1e-5), (30.0, 1e-12), (1e3, 1e-3), (1e-300, 0.5)]


@pytest.mark.parametrize(("epsilon", "delta"), [*BUDGETS, (1.0, 1e-300), (1e100, 1e-20)])
def test_the_least_holds_and_less_does_not(epsilon, delta):
    sigma = least_sigma(epsilon, delta)
    assert is_private(1.0 / sigma, epsilon, delta)
    assert not is_private(1.0 / (sigma * (1.0 - 2e-9)), epsilon, delta)
    rho = epsilon  # a number as good as another
    ratio, least = math.sqrt(2.0) * math.sqrt(rho), least_epsilon(rho, delta)
    assert is_private(ratio, least, delta)
    assert not least or not is_private(ratio, least * (1.0 - 1e-12), delta)
