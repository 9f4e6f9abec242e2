"""Confidence bounds: exact coverage by summation, closed forms, and draws that suffice."""

import math

import numpy as np
import pytest
from scipy import stats

from privclust_audit.black_box import _bounds, bounds_from_counts


@pytest.mark.parametrize("draws", [1, 7, 60])
@pytest.mark.parametrize("alpha", [0.0125, 0.2])
def test_bounds_cover_with_the_stated_probability(draws, alpha):
    """Summed over all counts, exactly; not so conservative that any smaller alpha would do."""
    hits = np.arange(draws + 1)
    low = _bounds.lower_probability(hits, draws, alpha)
    high = _bounds.upper_probability(hits, draws, alpha)
    grid = np.linspace(0, 1, 501)
    misses_low = [stats.binom.pmf(hits, draws, p)[low > p].sum() for p in grid]
    misses_high = [stats.binom.pmf(hits, draws, p)[high < p].sum() for p in grid]
    for misses in (misses_low, misses_high):
        assert max(misses) <= alpha * (1 + 1e-9)
        assert max(misses) > alpha / 2


def test_bounds_at_the_ends_have_closed_forms():
    assert _bounds.lower_probability(0, 10, 0.05) == 0
    assert _bounds.upper_probability(10, 10, 0.05) == 1
    assert _bounds.upper_probability(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1)
    assert _bounds.lower_probability(10, 10, 0.05) == pytest.approx(0.05**0.1)
    # ln(1 / 0.025) = 3.69 over the draws, for many of them
    assert _bounds.upper_probability(0, 10**6, 0.025) * 10**6 == pytest.approx(3.689, abs=1e-3)


def test_epsilon_and_delta_bounds():
    assert _bounds.epsilon_bound(0.5, 0.1, 0.0) == pytest.approx(math.log(5))
    assert _bounds.epsilon_bound(0.5, 0.1, 0.2) == pytest.approx(math.log(3))
    assert _bounds.epsilon_bound(0.1, 0.5, 0.0) == 0
    assert _bounds.epsilon_bound(0.1, 0.5, 0.3) == 0
    assert _bounds.delta_bound(0.5, 0.1, math.log(2)) == pytest.approx(0.3)
    assert _bounds.delta_bound(0.5, 0.1, 3.0) == 0
    assert _bounds.delta_bound(0.5, 0.1, 1e4) == 0


@pytest.mark.parametrize(
    ("epsilon", "delta", "probability", "loss"),
    [(1.0, 0.0, 0.5, math.inf), (1.0, 0.1, 0.3, 3.0), (0.0, 0.0, 1.0, 0.5), (5.0, 0.0, 0.01, 9.0)],
)
def test_draws_needed_is_the_least_number_that_suffices(epsilon, delta, probability, loss):
    needed = _bounds.draws_needed(_bounds.Claim(epsilon, delta, 0.95), probability, loss)
    for draws in (needed - 1, needed):
        low = _bounds.lower_probability(probability * draws, draws, 0.0125)
        high = _bounds.upper_probability(
            (probability - delta) * math.exp(-loss) * draws, draws, 0.0125
        )
        assert (_bounds.epsilon_bound(low, high, delta) > epsilon) == (draws == needed)


def test_no_hit_bounds_epsilon_by_the_logarithm_of_draws():
    """e^epsilon < n p / ln(4 / alpha) for an event of probability p that the other never has."""
    needed, most = (
        _bounds.draws_needed(_bounds.Claim(epsilon, 0.0, 0.95), 1.0, math.inf)
        for epsilon in (6.0, 1000.0)
    )
    assert needed == pytest.approx(math.exp(6) * math.log(4 / 0.05), rel=0.05)
    assert most == 2**60


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must be less than 1"),
        ({"epsilon": 1.0, "confidence": 1.0}, "confidence must be less than 1"),
    ],
)
def test_bad_parameters_are_named(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        bounds_from_counts(5, 10, 5, 10, **arguments)


def test_counts_bound_epsilon_in_the_better_direction():
    """The same bound if data sets change places, or if the event is what does not happen."""
    direct = bounds_from_counts(30, 200, 1, 300, epsilon=0.5, delta=0.01)
    assert bounds_from_counts(1, 300, 30, 200, epsilon=0.5, delta=0.01) == direct
    turned = bounds_from_counts(170, 200, 299, 300, epsilon=0.5, delta=0.01)
    assert turned == pytest.approx(direct)
    low = stats.beta.ppf(0.0125, 30, 171)
    high = stats.beta.ppf(1 - 0.0125, 2, 299)
    assert direct == pytest.approx((math.log((low - 0.01) / high), low - math.exp(0.5) * high))
    assert bounds_from_counts(5, 10, 5, 10, epsilon=0.5) == (0, 0)


def test_both_bounds_hold_with_the_stated_probability():
    """All pairs of counts, exactly, where epsilon = ln 4 and delta = 0.4 at epsilon = ln 2."""
    p, q, n = 0.8, 0.2, 25
    hits = np.arange(n + 1)
    weights = np.outer(stats.binom.pmf(hits, n, p), stats.binom.pmf(hits, n, q))
    wrong = 0.0
    for one, other in np.ndindex(weights.shape):
        bounds = bounds_from_counts(one, n, other, n, epsilon=math.log(2), confidence=0.8)
        if bounds[0] > math.log(p / q) or bounds[1] > p - 2 * q:
            wrong += weights[one, other]
    assert 0 < wrong <= 0.2


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ((11, 10, 1, 10), "hits must be at most 10, got 11"),
        ((1, 10, 11, 10), "other_hits must be at most 10, got 11"),
        ((-1, 10, 1, 10), "hits must be an integer of at least 0"),
        ((0, 10, 0, 0), "other_draws must be an integer of at least 1"),
    ],
)
def test_bad_counts_are_named(counts, reason):
    with pytest.raises(ValueError, match=reason):
        bounds_from_counts(*counts, epsilon=1.0)
