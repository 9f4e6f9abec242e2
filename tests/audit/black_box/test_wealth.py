"""Bounds that hold whenever one stops, against what can be computed exactly."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import betaln, xlog1py, xlogy

from privclust_audit.black_box._wealth import Counts, Wealth

BEFORE = Counts(7, 10, 2, 10)


def wealth(k, n, other, m, before=BEFORE):
    return Wealth(Counts(k, n, other, m), before)


@functools.cache
def against(k, other, n, before, epsilon, delta):
    """The logarithm of the wealth against a claim after n pairs of runs, computed once."""
    return wealth(k, n, other, n, before).against(epsilon, delta)


def log_wealth(one, p, q):
    """Logarithm of the wealth against a pair, from SciPy's functions."""
    seen, before = one.counts, one.before
    total = 0.0
    for hits, draws, chosen, of, at in (
        (seen.hits, seen.draws, before.hits, before.draws, p),
        (seen.other_hits, seen.other_draws, before.other_hits, before.other_draws, q),
    ):
        a, b = chosen + 0.5, of - chosen + 0.5
        total += betaln(a + hits, b + draws - hits) - betaln(a, b)
        total -= xlogy(hits, at) + xlog1py(draws - hits, -at)
    return total


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.9, 0.2), (0.01, 0.001)])
def test_the_mean_wealth_against_what_is_true_is_1(p, q):
    """A sum over all sequences of 6 runs on either data set: a fair game."""
    mean = 0.0
    for k, other in itertools.product(range(7), repeat=2):
        one = wealth(k, 6, other, 6)
        chance = math.comb(6, k) * p**k * (1 - p) ** (6 - k)
        chance *= math.comb(6, other) * q**other * (1 - q) ** (6 - other)
        if chance:
            mean += chance * math.exp(log_wealth(one, p, q))
    assert mean == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize(
    ("epsilon", "delta", "q", "before"),
    [
        (0.0, 0.0, 0.5, BEFORE),
        (1.0, 0.0, 0.3, BEFORE),
        (0.5, 0.1, 0.4, BEFORE),
        (2.0, 0.0, 0.1, Counts(0, 0, 0, 0)),
    ],
)
def test_a_tight_claim_is_convicted_with_alpha_at_most(alpha, epsilon, delta, q, before):
    """Exactly, by going through all counts of 60 pairs of runs, looked at after each pair."""
    p = math.exp(epsilon) * q + delta
    n_runs, convicted = 60, 0.0
    reached = np.zeros((n_runs + 1, n_runs + 1))
    reached[0, 0] = 1.0
    for n in range(1, n_runs + 1):
        later = (1 - p) * (1 - q) * reached
        later[1:] += p * (1 - q) * reached[:-1]
        later[:, 1:] += (1 - p) * q * reached[:, :-1]
        later[1:, 1:] += p * q * reached[:-1, :-1]
        for k, other in zip(*np.nonzero(later), strict=True):
            if against(int(k), int(other), n, before, epsilon, delta) >= -math.log(alpha):
                convicted += later[k, other]
                later[k, other] = 0.0
        reached = later
    assert 0.0 < convicted <= alpha


@pytest.mark.parametrize(
    ("counts", "epsilon", "delta"),
    [
        ((60, 100, 20, 100), 0.5, 0.0),
        ((60, 100, 20, 100), 0.5, 0.1),
        ((100, 100, 20, 100), 0.2, 0.01),
        ((60, 100, 0, 100), 2.0, 0.0),
        ((60, 100, 0, 100), 2.0, 0.2),
        ((5, 100_000, 0, 100_000), 0.1, 0.0),
        ((30, 40, 200, 900), 0.5, 0.0),
    ],
)
def test_the_hardest_pair_is_that_of_another_solver(counts, epsilon, delta):
    one = wealth(*counts)

    def on_the_line(q):
        return log_wealth(one, min(math.exp(epsilon) * q + delta, 1.0), q)

    most = (1 - delta) * math.exp(-epsilon)
    hardest = minimize_scalar(on_the_line, bounds=(0.0, most), options={"xatol": 1e-12})
    candidates = [hardest.fun, *(on_the_line(q) for q in (1e-300, most * (1 - 1e-15)))]
    assert one.against(epsilon, delta) == pytest.approx(min(candidates), abs=1e-6)
    for allowed in (0.0, 0.3, 1.0):  # pairs that keep to the claim are no harder
        p = allowed * (math.exp(epsilon) * hardest.x + delta)
        assert log_wealth(one, p, hardest.x) >= one.against(epsilon, delta) - 1e-9


def test_bounds_are_where_the_region_ends():
    one, alpha = wealth(300, 500, 60, 500), 0.02
    epsilon, delta = one.epsilon_bound(0.01, alpha), one.delta_bound(0.7, alpha)
    for bound in ((epsilon, 0.01), (0.7, delta)):
        assert one.against(*bound) == pytest.approx(-math.log(alpha), abs=1e-6)
    assert 0 < epsilon < math.log((0.6 - 0.01) / 0.12)
    assert 0 < delta < 0.6 - math.exp(0.7) * 0.12


def test_no_hit_bounds_epsilon_by_the_logarithm_of_runs():
    for n in (10, 1000, 100_000):
        bound = wealth(n, n, 0, n).epsilon_bound(0.0, 0.05)
        assert 0.0 < bound < math.log(n)
        assert wealth(n, n, 0, n).epsilon_bound(0.5, 0.05) < bound
        assert wealth(n, n, 0, n).delta_bound(1.0, 0.05) < 1.0


def test_what_keeps_to_the_claim_is_no_evidence():
    for one in (wealth(20, 100, 60, 100), wealth(0, 0, 0, 0), wealth(60, 100, 20, 100)):
        assert one.against(2.0, 0.0) == -math.inf
    assert wealth(60, 100, 20, 100).against(800.0, 0.0) == -math.inf
    assert wealth(20, 100, 60, 100).epsilon_bound(0.0, 0.05) == 0.0
    assert wealth(20, 100, 60, 100).delta_bound(0.0, 0.05) == 0.0


def test_a_gambler_that_has_seen_runs_before_loses_little():
    """Half the logarithm of 1 + n / n' for each probability, whoever knows these having 1."""
    told, untold = (
        wealth(5000, 10_000, 500, 10_000, before)
        for before in (Counts(2500, 5000, 250, 5000), Counts(0, 0, 0, 0))
    )
    assert log_wealth(told, 0.5, 0.05) == pytest.approx(-math.log(1 + 10_000 / 5000), abs=0.01)
    assert log_wealth(untold, 0.5, 0.05) < -8.0
    assert told.epsilon_bound(0.0, 0.05) > untold.epsilon_bound(0.0, 0.05)
