"""Audits that stop when they have seen enough: error, stops, bounds, and what is refused."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from privclust_audit.black_box import _anytime, audit_mechanism, likelihood_ratio

ALPHA, STATED = 1e-4, 0.05  # of these tests, and what audits promise


def noise(scale):
    def mechanism(data, rng):
        return mechanism.many(data, rng, 1)[0]

    mechanism.runs = 0

    def many(data, rng, n):
        mechanism.runs += n
        return data + rng.laplace(scale=scale, size=n)

    mechanism.many = many
    return mechanism


def identity(output):
    return output


identity.many = np.asarray


def log_density(output, data):
    return -np.abs(output - data)


RATIO = likelihood_ratio(log_density, 0.0, 1.0)


def audit(scale, n_trials, statistic=identity, seed=0, **options):
    return audit_mechanism(
        noise(scale), 0.0, 1.0, 1.0, 0.0, n_trials, statistic, seed, stopping="anytime", **options
    )


def test_clear_cases_stop_after_few_runs():
    result = audit(0.3, 1_000_000)
    assert (result.verdict, result.stopped) == ("violated", "convicted")
    assert result.n_trials < 1000
    assert 1.0 < result.epsilon_lower_bound < 1 / 0.3
    assert "stopped at the conviction after" in str(result)


def test_a_tight_claim_is_audited_to_the_stated_closeness():
    runs = []
    for closeness in (0.7, 0.9):
        result = audit(1.0, 1_000_000, closeness=closeness)
        assert (result.verdict, result.stopped) == ("consistent", "close")
        assert closeness <= result.epsilon_lower_bound <= 1.0
        runs.append(result.n_trials)
    assert runs[0] < runs[1] < 200_000


def test_a_weak_attack_stops_when_no_more_is_to_be_hoped_for():
    results = [audit(20.0, 20_000, seed=seed) for seed in range(5)]
    assert {(one.verdict, one.stopped) for one in results} == {("cannot tell", "hopeless")}
    assert all(one.n_trials < 20_000 for one in results)
    assert np.median([one.n_trials for one in results]) < 8000
    assert "hardly" in results[0].advice
    odd = [audit(20.0, 20_001, seed=seed).n_trials for seed in range(5)]
    assert np.median(odd) < 1.1 * np.median([one.n_trials for one in results])
    assert audit(1.0, 3000, closeness=1.0).stopped == "spent"


def test_runs_are_those_that_were_made_and_watched():
    mechanism, watched = noise(0.5), []
    result = audit_mechanism(
        mechanism, 0.0, 1.0, 1.0, 0.0, 50_000, identity, 0, stopping="anytime",
        progress=watched.append,
    )  # fmt: skip
    assert mechanism.runs == sum(watched) == 2 * result.n_trials
    event = result.epsilon_event
    assert 0 < event.hits <= event.draws < result.n_trials
    seen = math.log(event.hits / event.draws * event.other_draws / event.other_hits)
    assert 0 < result.epsilon_lower_bound < seen


def test_one_run_at_a_time_and_any_number_of_them():
    def mechanism(data, rng):
        return data + rng.laplace(scale=0.1)

    for n_trials in (16, 17, 100, 1001):
        for statistic in (identity, None, RATIO):
            result = audit_mechanism(
                mechanism, 0.0, 1.0, 0.5, 0.01, n_trials, statistic, 3, stopping="anytime"
            )
            assert result.n_trials <= n_trials
            assert n_trials < 100 or result.verdict == "violated"
            assert result.epsilon_event.draws == result.epsilon_event.other_draws > 0


def test_it_repeats_itself():
    first, again, other = (audit(0.8, 2000, None, seed) for seed in (1, 1, 2))
    assert dataclasses.replace(first, cpu_seconds=0) == dataclasses.replace(again, cpu_seconds=0)
    assert first.epsilon_event != other.epsilon_event


def test_a_claim_with_delta_is_convicted():
    """A disaster in one run of ten, with a claim of one in a hundred."""

    def mechanism(data, rng):
        return rng.normal() + 1000.0 * data * (rng.random() < 0.1)

    result = audit_mechanism(
        mechanism, 0.0, 1.0, 2.0, 0.01, 20_000, identity, 0, stopping="anytime"
    )
    assert (result.verdict, result.stopped) == ("violated", "convicted")
    assert 0.01 < result.delta_lower_bound < 0.1


def test_bounds_are_about_those_of_a_fixed_number_of_runs():
    """In the mean of some audits of tight noise, with all runs spent."""
    anytime = [audit(1.0, 4000, seed=seed, closeness=1.0) for seed in range(20)]
    fixed = [
        audit_mechanism(noise(1.0), 0.0, 1.0, 1.0, 0.0, 4000, identity, seed) for seed in range(20)
    ]
    spent = [one.epsilon_lower_bound for one in anytime if one.stopped == "spent"]
    assert len(spent) > 15
    mean = np.mean([one.epsilon_lower_bound for one in fixed])
    assert np.mean(spent) > mean - 0.05


def test_nothing_but_nan_is_refused_and_some_nan_is_an_output():
    def nothing(data, rng):
        return np.nan

    with pytest.raises(ValueError, match=r"only NaN in all 200 runs"):
        audit_mechanism(nothing, 0.0, 1.0, 1.0, 0.0, 200, stopping="anytime")

    def some(data, rng):
        return np.nan if data else rng.normal()

    result = audit_mechanism(some, 0.0, 1.0, 1.0, 0.0, 2000, None, 0, stopping="anytime")
    assert result.verdict == "violated"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stopping": "soon"}, "stopping"),
        ({"closeness": 0.0}, "closeness"),
        ({"closeness": 1.5}, "closeness must be at most 1, got 1.5"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        audit_mechanism(
            noise(1.0), 0.0, 1.0, 1.0, 0.0, 100, identity, **{"stopping": "anytime"} | options
        )
    with pytest.raises(ValueError, match="n_trials"):
        audit(1.0, 15)


def test_the_plan_spends_all_runs_and_the_probability_to_err():
    for n_trials in (16, 100, 511, 512, 2000, 60_000, 1_000_000):
        attempts = list(_anytime._plan(n_trials))
        assert attempts[-1][1] == n_trials
        assert sum(share for *_, share in attempts) == pytest.approx(1.0)
        for n_choosing, n, _ in attempts:
            assert 0 < n_choosing < n
        for (_, before, _), (n_choosing, _, _) in itertools.pairwise(attempts):
            assert before <= n_choosing


def convictions(statistic, n_audits, n_trials, seed):
    rng = np.random.default_rng(seed)
    return sum(
        audit(1.0, n_trials, statistic, rng, closeness=1.0).verdict == "violated"
        for _ in range(n_audits)
    )


def test_tight_noise_is_rarely_convicted():
    assert convictions(identity, 200, 1000, 5) <= stats.binom.isf(ALPHA, 200, STATED)


@pytest.mark.system
def test_tight_noise_is_rarely_convicted_by_learned_statistics():
    assert convictions(None, 40, 2000, 6) <= stats.binom.isf(ALPHA, 40, STATED)


@pytest.mark.slow
def test_choosing_on_counted_runs_would_convict_too_often(monkeypatch):
    """A claim of epsilon = 0 on noise in 20 columns, each read by a statistic of its own."""

    def column(k):
        def statistic(output):
            return output[k]

        statistic.many = lambda outputs: outputs[:, k]
        return statistic

    def mechanism(data, rng):
        return rng.normal(size=20)

    mechanism.many = lambda data, rng, n: rng.normal(size=(n, 20))

    def count():
        rng = np.random.default_rng(4)
        return sum(
            audit_mechanism(
                mechanism, 0, 1, 0.0, 0.0, 512, [column(k) for k in range(20)], rng,
                stopping="anytime",
            ).verdict == "violated"
            for _ in range(20)
        )  # fmt: skip

    limit = stats.binom.isf(ALPHA, 20, STATED)
    assert count() <= limit
    honest = _anytime._Attempt

    def dishonest(statistics, outputs, claim, alpha):
        attempt = honest(statistics, outputs, claim, alpha)
        attempt.count(outputs)
        return attempt

    monkeypatch.setattr(_anytime, "_Attempt", dishonest)
    assert count() > limit
