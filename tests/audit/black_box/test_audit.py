"""The audit as a whole: what is reported, which parameters are refused, odd outputs and scores."""

import dataclasses
import math

import numpy as np
import pytest

from privclust_audit.black_box import _bounds, _events, audit_mechanism, likelihood_ratio


def laplace(data, rng):
    return data + rng.laplace()


def identity(output):
    return output


def test_result_is_frozen_repeats_and_tells_its_counts():
    def run():
        return audit_mechanism(laplace, 0.0, 1.0, 0.5, 0.0, 1001, identity, 7)

    result = run()
    assert dataclasses.replace(result, cpu_seconds=0) == dataclasses.replace(run(), cpu_seconds=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.verdict = "consistent"
    event = result.epsilon_event
    assert (event.draws, event.other_draws, result.n_trials) == (501, 501, 1001)
    seen = math.log(event.hits / event.draws * event.other_draws / event.other_hits)
    assert 0 < result.epsilon_lower_bound < seen
    assert event.statistic == "identity"
    assert result.cpu_seconds > 0
    for part in (result.verdict, "claimed epsilon 0.5", f"{event.hits:,} of 501", "identity"):
        assert part in str(result)


def test_the_threshold_is_in_the_units_of_the_statistic():
    """Scores about 10^6: the event is one on the output itself."""
    result = audit_mechanism(laplace, 1e6, 1e6 + 30, 1.0, 0.0, 400, identity, 0)
    assert 1e6 < result.epsilon_event.threshold < 1e6 + 30
    assert result.epsilon_event.hits > 190


def test_each_direction_and_side_is_found():
    """Noise downwards or upwards, from the smaller or the larger value."""
    found = set()
    for sign in (1, -1):
        for data, neighbour in ((0.0, 1.0), (1.0, 0.0)):
            result = audit_mechanism(
                lambda x, rng, sign=sign: x + sign * rng.exponential(),
                data,
                neighbour,
                1.0,
                0.0,
                4000,
                identity,
                0,
            )
            assert result.epsilon_event.other_hits == 0
            found.add((result.epsilon_event.side, result.epsilon_event.likelier))
    assert found == {("<=", "data"), ("<=", "neighbour"), (">=", "data"), (">=", "neighbour")}


def test_verdicts():
    def audit(scale, n_trials, epsilon=1.0, delta=0.0):
        def mechanism(data, rng):
            return data + rng.laplace(scale=scale)

        return audit_mechanism(mechanism, 0.0, 1.0, epsilon, delta, n_trials, identity, 0)

    assert audit(0.3, 4000).verdict == "violated"
    assert audit(1.0, 4000).verdict == "consistent"
    weak = audit(50.0, 4000)
    assert weak.verdict == "cannot tell"
    assert "hardly distinguishes" in weak.advice
    few = audit(0.3, 30)
    assert few.verdict == "cannot tell"
    needed = _bounds.draws_needed(_bounds.Claim(1.0, 0.0, 0.95), 0.5, 2.0)
    assert f"{2 * needed:,} trials" in few.advice
    assert few.advice in str(few)
    # at epsilon = 0 all is delta: total variation is 1 - e^-1/2 for scale 1
    assert audit(1.0, 4000, 0.0, 0.42).verdict == "consistent"
    assert audit(1.0, 4000, 0.0, 0.3).verdict == "violated"
    assert audit(1e9, 4000, 0.0, 0.0).verdict == "cannot tell"


def test_atoms_and_infinite_scores():
    """Output 1 only ever comes from the data: its ratio is infinite."""

    def mechanism(data, rng):
        return int(data and rng.random() < 0.4)

    def log_probability(outputs, data):
        return np.log([0.6, 0.4])[outputs] if data else np.where(outputs, -np.inf, 0.0)

    ratio = likelihood_ratio(log_probability, True, False)
    result = audit_mechanism(mechanism, True, False, 1.0, 0.0, 2000, ratio, 0)
    assert result.verdict == "violated"
    assert result.epsilon_event.other_hits == 0
    assert 0.35 < result.delta_lower_bound < 0.4
    constant = audit_mechanism(lambda data, rng: 5, True, False, 1.0, 0.0, 100, identity, 0)
    assert constant.epsilon_lower_bound == constant.delta_lower_bound == 0


def test_outputs_of_any_kind_go_with_a_statistic():
    def mechanism(data, rng):
        return {"answer": "yes" if rng.random() < (0.9 if data else 0.1) else "no"}

    result = audit_mechanism(
        mechanism, True, False, 1.0, 0.0, 1000, lambda output: output["answer"] == "yes", 0
    )
    assert result.verdict == "violated"


def test_the_best_of_several_statistics_is_used():
    def noise(output):
        return output[1]

    def signal(output):
        return output[0]

    def mechanism(data, rng):
        return data + rng.laplace(scale=0.3), rng.random()

    result = audit_mechanism(mechanism, 0.0, 1.0, 1.0, 0.0, 2000, [noise, signal], 0)
    assert (result.verdict, result.epsilon_event.statistic) == ("violated", "signal")


def test_progress_counts_all_runs():
    counted = []
    audit_mechanism(laplace, 0.0, 1.0, 1.0, 0.0, 50, identity, 0, progress=counted.append)
    assert sum(counted) == 100

    def mechanism(data, rng):
        return mechanism.many(data, rng, 1)[0]

    mechanism.many = lambda data, rng, n: rng.random(n)
    audit_mechanism(mechanism, 0, 1, 1.0, 0.0, 70_000, identity, 0, progress=counted.append)
    assert sum(counted) == 100 + 140_000


def test_both_data_sets_have_streams_of_their_own():
    """A statistic that knows the noise would otherwise tell the two apart."""
    seen = {0: [], 1: []}

    def mechanism(data, rng):
        seen[data].append(rng.random())
        return data

    audit_mechanism(mechanism, 0, 1, 1.0, 0.0, 20, identity, 0)
    assert len(set(seen[0] + seen[1])) == 40


def test_rounding_is_monotone_and_keeps_what_is_not_noise():
    scores = np.random.default_rng(0).standard_cauchy(2000) + 1e3
    rounding = _events.Rounding.of(scores)
    rounded = rounding(np.sort(scores))
    assert (np.diff(rounded) >= 0).all()
    assert np.unique(rounded).size > 1990
    error = np.abs(rounded - (np.sort(scores) - rounding.centre))
    assert (error <= 1e-6 * np.maximum(np.abs(rounded), rounding.spread)).all()
    ends = rounding(np.array([-np.inf, np.inf]))
    assert (ends == [-np.inf, np.inf]).all()


def test_rounding_takes_noise_off_atoms():
    ones = 1.0 + np.array([0.0, 2.0**-52, -(2.0**-53)] * 10)
    assert np.unique(_events.Rounding.of(ones)(ones)).size == 1
    mixed = np.concatenate([ones, np.linspace(-1, 0.99, 100)])
    assert np.unique(_events.Rounding.of(mixed)(ones)).size == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"epsilon": -0.1}, "epsilon must be"),
        ({"epsilon": math.inf}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be less than 1"),
        ({"n_trials": 15}, "n_trials must be an integer of at least 16, got 15"),
        ({"confidence": 1.0}, "confidence must be less than 1"),
        ({"mechanism": 3}, "mechanism must be callable"),
        ({"statistic": 3}, "statistic must be None, a callable"),
        ({"statistic": []}, "at least one statistic"),
        ({"statistic": lambda output: math.nan}, "returned NaN"),
        ({"statistic": lambda output: [1, 2]}, "one number for each of 10 outputs"),
        ({"statistic": lambda output: "a"}, "statistic <lambda> failed"),
        ({"random_state": "0"}, "random_state must be"),
        ({"mechanism": lambda data, rng: "a"}, "numbers or arrays of numbers"),
        ({"mechanism": lambda data, rng: np.zeros(rng.integers(1, 9))}, "vary in shape"),
        ({"mechanism": lambda data, rng: np.zeros(1 + data)}, r"vary in shape, got \(1,\) and"),
        ({"mechanism": lambda data, rng: [[1], [1, 2]]}, "is no array"),
    ],
)
def test_what_cannot_be_audited_is_named(changes, reason):
    arguments = {
        "mechanism": lambda data, rng: data + rng.random(),
        "data": 0,
        "neighbour": 1,
        "epsilon": 1.0,
        "delta": 0.0,
        "n_trials": 20,
    }
    with pytest.raises(ValueError, match=reason):
        audit_mechanism(**arguments | changes)


def test_many_must_return_as_many_as_asked():
    def mechanism(data, rng):
        return data

    mechanism.many = lambda data, rng, n: np.zeros(3)
    with pytest.raises(ValueError, match=r"n=20 outputs .* got shape \(3,\)"):
        audit_mechanism(mechanism, 0, 1, 1.0, 0.0, 20, identity)
