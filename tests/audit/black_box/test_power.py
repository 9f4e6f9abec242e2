"""What the auditor finds: the loss of private mechanisms, and every mechanism broken on purpose."""

import time

import numpy as np
import pytest

from privclust_audit.black_box import _bounds, audit_mechanism, likelihood_ratio
from privclust_audit.faults import batched


def laplace(scale):
    return batched(lambda data, rng, n: data + rng.laplace(scale=scale, size=(n, *np.shape(data))))


def absolute(output, data):
    return -np.abs(output - data)


def test_sound_laplace_at_epsilon_1_audits_to_more_than_0_9():
    """With 10 times the runs that certify 0.9 half of the time, and all chosen from data."""
    n_trials = 20 * _bounds.draws_needed(_bounds.Claim(0.9, 0.0, 0.95), 0.5, 1.0)
    assert n_trials < 200_000
    start = time.process_time()
    for statistic in (likelihood_ratio(absolute, 0.0, 1.0), None):
        result = audit_mechanism(laplace(1.0), 0.0, 1.0, 1.0, 0.0, n_trials, statistic, 0)
        assert result.verdict == "consistent"
        assert 0.9 <= result.epsilon_lower_bound <= 1.0
        assert result.advice == ""
    assert time.process_time() - start < 60


def test_bounds_are_below_the_truth_and_close_to_it():
    """Randomised response that gives no answer at all where the truth is told: all is known."""
    p, q = 0.3, 0.05
    mechanism = batched(lambda data, rng, n: (rng.random(n) < (p if data else q)).astype(int))
    result = audit_mechanism(
        mechanism, 1, 0, 0.5, 0.01, 400_000, lambda output: output, np.random.default_rng(3)
    )
    truth = np.log((p - 0.01) / q), p - np.exp(0.5) * q
    assert truth[0] - 0.05 < result.epsilon_lower_bound < truth[0]
    assert truth[1] - 0.01 < result.delta_lower_bound < truth[1]
    assert result.verdict == "violated"
    assert result.excess == result.epsilon_lower_bound - 0.5


def wrong_norm(data, rng, n):
    """Ten sums, scaled by the l2 norm of their change where Laplace noise needs the l1 norm."""
    return data + rng.laplace(scale=np.linalg.norm(np.ones(10)), size=(n, 10))


def seed_reused(data, rng, n):
    return data + np.random.default_rng(5).laplace(size=(n, 1))[0] + np.zeros((n, 1))


def noise_from_one_stream_twice(data, rng, n):
    """Two sums with noise from two generators of one seed: their difference has none."""
    seeds = rng.integers(2**31, size=n)
    noise, again = (
        np.array([np.random.default_rng(seed).laplace(scale=2) for seed in seeds]) for _ in range(2)
    )
    return np.column_stack([data + noise, -data + again])


def noise_cancels(data, rng, n):
    """Noise is added to a sum and to its parts, which add up to it without noise."""
    noise = rng.laplace(scale=20.0, size=(n, 2))
    return np.column_stack([data + noise[:, 0], noise[:, 1], noise.sum(axis=1)])


def one_sided(data, rng, n):
    return data + rng.exponential(size=n)


def bounds_of_the_data(data, rng, n):
    """Records clipped at the largest record, which sets the scale as well."""
    largest = np.max(data)
    return np.sum(np.clip(data, 0, largest)) + rng.laplace(scale=largest, size=n)


def composition(data, rng, n):
    return data + rng.laplace(size=(n, 2))


ZERO, ONE = 0.0, 1.0
BROKEN = {
    "half the noise": (laplace(0.5), ZERO, ONE),
    "wrong norm": (batched(wrong_norm), np.zeros(10), np.ones(10)),
    "seed reused": (batched(seed_reused), ZERO, ONE),
    "one stream twice": (batched(noise_from_one_stream_twice), ZERO, ONE),
    "noise cancels": (batched(noise_cancels), ZERO, ONE),
    "one-sided": (batched(one_sided), ZERO, ONE),
    "bounds of the data": (batched(bounds_of_the_data), np.ones(5), np.array([1, 1, 1, 1, 100.0])),
    "composition": (batched(composition), ZERO, ONE),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("seed", range(3))
def test_broken_mechanisms_are_convicted_without_hints(name, seed):
    mechanism, data, neighbour = BROKEN[name]
    result = audit_mechanism(mechanism, data, neighbour, 1.0, 0.0, 8000, random_state=seed)
    assert result.verdict == "violated"
    assert result.excess > 0


def test_the_sound_forms_of_broken_mechanisms_are_not_convicted():
    """The same data sets and statistics; each audit alone may err with probability 5 %.

    At confidence 1 - 10^-6 none may.
    """
    corrected = {
        "wrong norm": batched(lambda data, rng, n: data + rng.laplace(scale=10, size=(n, 10))),
        "one stream twice": batched(
            lambda data, rng, n: np.array([data, -data]) + rng.laplace(scale=2, size=(n, 2))
        ),
        "bounds of the data": batched(
            lambda data, rng, n: np.clip(data, 0, 1).sum() + rng.laplace(size=n)
        ),
        "composition": batched(lambda data, rng, n: data + rng.laplace(scale=2, size=(n, 2))),
    }
    for name, mechanism in corrected.items():
        _, data, neighbour = BROKEN[name]
        result = audit_mechanism(
            mechanism, data, neighbour, 1.0, 0.0, 8000, random_state=0, confidence=1 - 1e-6
        )
        assert result.verdict != "violated", name


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_one_sided_noise_has_the_delta_of_its_missing_support(epsilon):
    """Below the larger value the other data set has nothing: delta = 1 - e^-1 at every epsilon.

    The bound misses it by the deviation of 50,000 draws (0.005), and by e^epsilon times the upper
    bound on the probability of what never happened (8.8e-5, times 148 at most).
    """
    mechanism, data, neighbour = BROKEN["one-sided"]
    result = audit_mechanism(mechanism, data, neighbour, epsilon, 0.0, 100_000, random_state=1)
    truth = 1 - np.exp(-1)
    assert result.delta_event.likelier == "data"
    assert truth - 0.03 < result.delta_lower_bound < truth
    assert result.epsilon_lower_bound > 8
