"""DP-Sniper's method, against mechanisms whose loss is known."""

import numpy as np
import pytest

from privclust_audit.faults import FAULTS, LaplaceNoise, batched
from privclust_papers.audit.sniper import LEAST_PROBABILITY, _Attack, sniper


def test_it_bounds_laplace_noise_from_below_and_closely():
    bounds = [
        sniper(LaplaceNoise(np.atleast_1d, 1.0), 0.0, 1.0, 100_000, np.random.default_rng(seed))[0]
        for seed in range(4)
    ]
    assert 0.7 < np.median(bounds) < 1.0


def test_it_convicts_by_what_is_no_number_and_by_single_values():
    for name in ("nan_through_clip", "refused_n", "empty_leaf"):
        fault = FAULTS[name]
        rng = np.random.default_rng(0)
        bound, _ = sniper(fault.mechanism, fault.data, fault.neighbour, 20_000, rng)
        assert bound > 3.0


@pytest.mark.parametrize("n_runs", [1000, 20_000])
def test_runs_are_counted(n_runs):
    runs = []

    @batched
    def mechanism(data, rng, n):
        runs.append(n)
        return rng.laplace(data, 1.0, n)

    _, counted = sniper(mechanism, 0.0, 1.0, n_runs, np.random.default_rng(0))
    assert counted == sum(runs)
    assert counted <= 2.2 * n_runs + 2000


def test_a_coin_decides_on_the_threshold():
    """A mechanism of two outputs: the attack takes each with the probability c that it may have."""
    mechanism = batched(lambda data, rng, n: rng.random(n) < 0.5)
    rng = np.random.default_rng(2)
    attack = _Attack(mechanism, 0, 1, 100_000, rng)
    share = attack.hits(mechanism, 1, 200_000) / 200_000
    assert share == pytest.approx(LEAST_PROBABILITY, rel=0.1)


def test_tight_noise_is_not_convicted():
    """At 2.5 % for each of two bounds: of 40, more than eight would be odd."""
    noise = LaplaceNoise(np.atleast_1d, 1.0)
    rng = np.random.default_rng(3)
    found = [sniper(noise, 0.0, 1.0, 2000, rng)[0] > 1.0 for _ in range(40)]
    assert sum(found) <= 8
