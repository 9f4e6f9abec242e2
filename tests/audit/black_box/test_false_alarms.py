"""How often the auditor convicts mechanisms that are exactly as private as claimed.

Each mechanism is tight, so that no claim is easier to violate by chance. The stated rate is 5 %. A
test asks whether the number of convictions is compatible with a rate of at most 5 %, and would
fail by chance with probability at most ALPHA if the rate were exactly that.
"""

import numpy as np
import pytest
from scipy import stats

from privclust.privacy.measurements import analytic_gaussian_sigma
from privclust.privacy.sensitivity import Sensitivity
from privclust_audit.black_box import _audit, _events, audit_mechanism, likelihood_ratio
from privclust_audit.faults import batched

ALPHA = 1e-4
STATED = 0.05
N_AUDITS = 300
N_TRIALS = 2000
EPSILON, DELTA = 1.0, 0.01
SIGMA = analytic_gaussian_sigma(Sensitivity(1.0, "l2", "add-remove", "by hand"), EPSILON, DELTA)
SCORES = {0: np.zeros(5), 1: np.array([1.0, -1.0, -1.0, -1.0, -1.0])}


def weights(data):
    """Of the exponential mechanism with parameter 1 and scores of sensitivity 1."""
    exponents = np.exp(SCORES[data] / 2)
    return exponents / exponents.sum()


def randomised_response(data, rng, n):
    truth = rng.random(n) < np.exp(EPSILON) / (1 + np.exp(EPSILON))
    return np.where(truth, data, 1 - data)


# Among few candidates its loss is less than its parameter, the weights' sums being unequal.
SELECTION_LOSS = np.abs(np.log(weights(0) / weights(1))).max()
LAPLACE = batched(lambda data, rng, n: data + rng.laplace(scale=1 / EPSILON, size=n))
TIGHT = {
    "laplace": (
        LAPLACE,
        EPSILON,
        0.0,
        likelihood_ratio(lambda y, data: -EPSILON * np.abs(y - data), 0, 1),
    ),
    "gaussian": (
        batched(lambda data, rng, n: data + rng.normal(scale=SIGMA, size=n)),
        EPSILON,
        DELTA,
        likelihood_ratio(lambda y, data: -(((y - data) / SIGMA) ** 2) / 2, 0, 1),
    ),
    "randomised response": (
        batched(randomised_response),
        EPSILON,
        0.0,
        likelihood_ratio(lambda y, data: np.where(y == data, EPSILON, 0.0), 0, 1),
    ),
    "exponential": (
        batched(lambda data, rng, n: rng.choice(5, p=weights(data), size=n)),
        SELECTION_LOSS,
        0.0,
        likelihood_ratio(lambda y, data: np.log(weights(data))[y], 0, 1),
    ),
}
LIMIT = int(stats.binom.isf(ALPHA, N_AUDITS, STATED))


def convictions(mechanism, epsilon, delta, statistic, n_audits, n_trials, seed):
    rng = np.random.default_rng(seed)
    results = (
        audit_mechanism(mechanism, 0, 1, epsilon, delta, n_trials, statistic, rng)
        for _ in range(n_audits)
    )
    return sum(result.verdict == "violated" for result in results)


@pytest.mark.parametrize("name", TIGHT)
def test_sound_mechanisms_are_rarely_convicted(name):
    mechanism, epsilon, delta, statistic = TIGHT[name]
    assert convictions(mechanism, epsilon, delta, statistic, N_AUDITS, N_TRIALS, 0) <= LIMIT


@pytest.mark.system
@pytest.mark.parametrize("name", ["laplace", "gaussian", "exponential"])
def test_learned_statistics_rarely_convict_sound_mechanisms(name):
    """Of the two answers of randomised response there is nothing to learn but which is which."""
    mechanism, epsilon, delta, _ = TIGHT[name]
    limit = int(stats.binom.isf(ALPHA, 60, STATED))
    assert convictions(mechanism, epsilon, delta, None, 60, N_TRIALS, 1) <= limit


def noise_columns(k):
    def statistic(output):
        return output[k]

    statistic.many = lambda outputs: outputs[:, k]
    return statistic


def test_choosing_on_certifying_draws_convicts_too_often(monkeypatch):
    """The same test, of an auditor that does not hold runs out; a claim of epsilon = 0 is tight."""
    mechanism = batched(lambda data, rng, n: rng.normal(size=(n, 20)))
    statistics = [noise_columns(k) for k in range(20)]

    def count(seed):
        rng = np.random.default_rng(seed)
        results = (
            audit_mechanism(mechanism, 0, 1, 0.0, 0.0, 400, statistics, rng) for _ in range(30)
        )
        return sum(result.verdict == "violated" for result in results)

    limit = stats.binom.isf(ALPHA, 30, STATED)
    assert count(2) <= limit
    honest = _audit._part

    def dishonest(outputs, start, stop):  # both halves are the one that certifies
        return honest(outputs, 200, 400)

    monkeypatch.setattr(_audit, "_part", dishonest)
    assert count(2) > limit


def test_rounding_errors_of_scores_convict_nobody(monkeypatch):
    """For outputs below 0 the ratio is 1, and in floating point 1 with rounding errors.

    Of those there are none where the output is ``1 + noise``, whose low-order bits were lost: the
    event "not exactly 1" has an infinite loss. Without rounding of the scores it is found.
    """
    mechanism, epsilon, delta, _ = TIGHT["laplace"]
    statistic = likelihood_ratio(lambda y, data: -np.abs(y - data), 0, 1)
    limit = stats.binom.isf(ALPHA, 20, STATED)
    assert convictions(mechanism, epsilon, delta, statistic, 20, 40_000, 3) <= limit
    monkeypatch.setattr(_events.Rounding, "__call__", lambda self, scores: scores - self.centre)
    assert convictions(mechanism, epsilon, delta, statistic, 20, 40_000, 3) > limit
