"""The least noise and epsilon of the Gaussian mechanism, to the last bit."""

import math

import pytest

from privclust.privacy import gaussian_delta
from privclust.privacy.gaussian_delta import is_private, least_epsilon, least_sigma

BUDGETS = [(1e-6, 1e-9), (0.1, 0.3), (1.0, 1e-5), (30.0, 1e-12), (1e3, 1e-3), (1e-300, 0.5)]


@pytest.mark.parametrize(("epsilon", "delta"), [*BUDGETS, (1.0, 1e-300), (1e100, 1e-20)])
def test_a_guess_changes_no_bit(epsilon, delta):
    sigma = gaussian_delta._bisected(lambda value: is_private(1.0 / value, epsilon, delta))
    assert least_sigma.__wrapped__(epsilon, delta) == sigma * (1.0 + 1e-9)
    rho = epsilon  # a number as good as another
    ratio = math.sqrt(2.0) * math.sqrt(rho)
    least = gaussian_delta._bisected(lambda value: is_private(ratio, value, delta))
    expected = 0.0 if is_private(ratio, 0.0, delta) else least
    assert least_epsilon.__wrapped__(rho, delta) == expected


@pytest.mark.parametrize("border", [1e-300, 0.7, 3.0, 1e200, math.inf])
@pytest.mark.parametrize("off", [0.0, 1e-300, 0.5, 1.0 - 1e-11, 1.0, 1.0 + 1e-11, 2.0, math.inf])
def test_no_guess_leads_astray(border, off):
    def holds(value):
        return value >= border

    guess = border * off if off and math.isfinite(border) else off
    found = gaussian_delta._least(holds, lambda value: value >= guess)
    assert found == gaussian_delta._bisected(holds)
    assert found >= border


def test_a_good_guess_saves_most_evaluations(monkeypatch):
    counts = {"with": 0, "without": 0}

    def counted(name):
        def evaluate(*claim):
            counts[name] += 1
            return is_private(*claim)

        return evaluate

    monkeypatch.setattr(gaussian_delta, "is_private", counted("with"))
    least_sigma.__wrapped__(1.0, 1e-5)
    without = counted("without")
    gaussian_delta._bisected(lambda value: without(1.0 / value, 1.0, 1e-5))
    assert 3 * counts["with"] < counts["without"]
