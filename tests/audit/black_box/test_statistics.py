"""Statistics: ratios against closed forms, learned ones against what there is to learn."""

import numpy as np
import pytest

from privclust_audit.black_box import _statistics, audit_mechanism, likelihood_ratio


def test_ratios_of_single_outputs_and_of_many_agree():
    def log_density(outputs, data):
        return np.where(outputs < data, -np.inf, -np.abs(outputs - data))

    ratio = likelihood_ratio(log_density, 0.0, 1.0)
    outputs = np.array([-1.0, 0.5, 2.0])
    # neither can return -1; only the first can return 0.5; e^-2 / e^-1 at 2
    np.testing.assert_allclose(ratio.many(outputs), [0.0, np.inf, -1.0])
    assert [float(ratio(one)) for one in outputs] == ratio.many(outputs).tolist()


LEARNED = {
    "shift in one of ten": lambda rng, k, n: rng.normal(size=(n, 10)) + 2 * k * np.eye(10)[3],
    "difference without noise": lambda rng, k, n: (
        rng.normal(scale=50, size=(n, 1)) + np.array([k, 0.0])
    ),
    "scale": lambda rng, k, n: rng.normal(scale=1 + 2 * k, size=(n, 4)),
    "complex phase": lambda rng, k, n: np.exp(1j * (k + 0.3 * rng.normal(size=n))),
    "parity": lambda rng, k, n: 2 * rng.integers(0, 3, size=n) + k,
    "sign of a product": lambda rng, k, n: (
        rng.normal(size=(n, 1)) * [1, 1 - 2 * k] + 0.1 * rng.normal(size=(n, 2))
    ),
    "which is not a number": lambda rng, k, n: np.where(
        (rng.random(n) < 0.8)[:, None] & (np.arange(2) == k), np.nan, rng.normal(size=(n, 2))
    ),
    "infinite or not": lambda rng, k, n: np.where(
        rng.random(n) < 0.8 * k, np.inf, rng.normal(size=n)
    ),
    "heavy tails": lambda rng, k, n: rng.standard_cauchy((n, 3)) + 4 * k,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", LEARNED)
def test_some_learned_statistic_tells_what_can_be_told(name):
    """Fresh draws are told apart more than four times in five (one in two is by guessing)."""
    rng = np.random.default_rng(0)
    draw = LEARNED[name]
    statistics = _statistics.learn((draw(rng, 0, 2000), draw(rng, 1, 2000)), rng)
    first, second = draw(rng, 0, 500), draw(rng, 1, 500)
    accuracies = []
    for statistic in statistics:
        scores = np.concatenate([_statistics.score(statistic, one) for one in (first, second)])
        truth = np.repeat([1, 0], 500)
        order = np.argsort(-scores, kind="stable")
        hits = np.cumsum(truth[order]) - np.cumsum(1 - truth[order])
        accuracies.append(0.5 + np.abs(hits).max() / 1000)
        assert statistic(first[0]) == pytest.approx(scores[0])
    assert max(accuracies) > 0.8


def test_learning_does_not_depend_on_the_units():
    rng = np.random.default_rng(1)
    outputs = [rng.laplace(size=(400, 3)) + k for k in (0, 1)]
    for factor, shift in ((1e-9, 0.0), (1e12, 1e13)):
        scaled = [factor * one + shift for one in outputs]
        for one, other in zip(
            _statistics.learn(outputs, np.random.default_rng(0)),
            _statistics.learn(scaled, np.random.default_rng(0)),
            strict=True,
        ):
            scores = [_statistics.score(one, outputs[0]), _statistics.score(other, scaled[0])]
            assert np.corrcoef(*scores)[0, 1] > 0.999


@pytest.mark.parametrize("kind", [bool, int, np.int8, float, lambda k: [[k], [1]]])
def test_numbers_of_any_kind_are_told_apart(kind):
    """Outputs that are lists of runs become arrays, and a statistic is learned."""
    result = audit_mechanism(lambda data, rng: kind(data), 0, 1, 0.1, 0.0, 200, random_state=0)
    assert result.verdict == "violated"


def test_outputs_become_features():
    assert _statistics.flattened(np.array([True, False])).tolist() == [[1], [0]]
    assert _statistics.flattened(np.array([np.int8(3), 4])).tolist() == [[3], [4]]
    features = _statistics.flattened(np.array([[[1 + 2j, 3]]]))
    assert features.tolist() == [[1, 2, 3, 0]]
