"""The collection of faults: what is said of each is so, each is found, and no twin is."""

import numpy as np
import pytest
from scipy import stats

from privclust_audit.black_box import audit_mechanism
from privclust_audit.black_box.neighbours import refuse_equal
from privclust_audit.faults import FAULTS, LaplaceNoise

N = 4000
WRONG = [name for name, fault in FAULTS.items() if not fault.is_private]
HARD = [name for name in WRONG if FAULTS[name].epsilon < 0.5 and name != "svt_5"]
CLEAR = sorted(set(WRONG) - {*HARD, "steps_forgotten", "noisy_histogram_upside_down"})
WITH_DENSITY = [name for name, fault in FAULTS.items() if fault.log_density is not None]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_what_it_is_and_runs(name):
    fault = FAULTS[name]
    assert fault.name == name
    assert fault.about
    assert fault.source
    assert fault.neighbours
    assert fault.epsilon > 0
    assert 0 <= fault.delta < 1
    assert (fault.about.split(":")[0] == "none") == fault.is_private
    refuse_equal(fault.data, fault.neighbour)
    assert fault.loss is None or (fault.loss > 1.0001 * fault.epsilon) != fault.is_private
    for mechanism in (fault.mechanism, fault.twin):
        if mechanism is None:
            continue
        for data in (fault.data, fault.neighbour):
            first, again = (mechanism.many(data, np.random.default_rng(0), 3) for _ in range(2))
            assert len(first) == 3
            np.testing.assert_array_equal(first, again)
            one = mechanism(data, np.random.default_rng(0))
            assert np.shape(one) == np.shape(first)[1:]


def test_mechanisms_are_called_by_their_names():
    """Messages of an audit name the mechanism that raised."""
    made = [one for fault in FAULTS.values() for one in (fault.mechanism, fault.twin)]
    assert not [one for one in made if "<" in getattr(one, "__qualname__", "")]
    for name in ("noisy_max", "noisy_max_half_noise", *(f"svt_{i}" for i in range(1, 7))):
        assert FAULTS[name].mechanism.__qualname__ == name


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_densities_are_those_of_the_outputs(name):
    """Runs on one data set, weighed by the ratio of densities, are as likely as on the other.

    In the event that the weight is at most 3, where it varies little.
    """
    fault, rng, n = FAULTS[name], np.random.default_rng(1), 40_000
    for data, other in ((fault.data, fault.neighbour), (fault.neighbour, fault.data)):
        means, variances = [], []
        for drawn in (data, other):
            outputs = fault.mechanism.many(drawn, rng, n)
            ratios = fault.log_density(outputs, data) - fault.log_density(outputs, other)
            taken = np.where(ratios <= np.log(3.0), 1.0, 0.0)
            if drawn is other:
                taken *= np.exp(np.minimum(ratios, np.log(3.0)))
            means.append(taken.mean())
            variances.append(taken.var() / n)
        assert abs(means[0] - means[1]) <= 5.0 * np.sqrt(sum(variances)) + 1e-6


@pytest.mark.parametrize(
    "name", [n for n in WITH_DENSITY if isinstance(FAULTS[n].mechanism, LaplaceNoise)]
)
def test_the_pair_attains_the_loss_that_is_stated(name):
    """Beyond both values on either side, the ratio of Laplace densities is at its largest."""
    fault = FAULTS[name]
    (first, scale), (second, other_scale) = (
        fault.mechanism._law(data) for data in (fault.data, fault.neighbour)
    )
    if (scale != other_scale).any():
        assert fault.loss == np.inf
    elif fault.loss is None or np.isfinite(fault.loss):
        loss = float((np.abs(first - second) / scale).sum())
        assert loss == pytest.approx(fault.loss if fault.loss is not None else loss)
        assert (loss > 1.0001 * fault.epsilon) != fault.is_private


def audit(mechanism, fault, n_trials, seed=0):
    return audit_mechanism(
        mechanism, fault.data, fault.neighbour, fault.epsilon, fault.delta, n_trials, None, seed,
        stopping="anytime",
    )  # fmt: skip


@pytest.mark.parametrize("name", CLEAR)
def test_clear_faults_are_found_in_a_few_thousand_runs(name):
    result = audit(FAULTS[name].mechanism, FAULTS[name], 10_000)
    assert result.verdict == "violated"
    assert FAULTS[name].loss is None or result.epsilon_lower_bound <= FAULTS[name].loss


@pytest.mark.parametrize("name", CLEAR)
def test_no_twin_of_a_clear_fault_is_convicted(name):
    assert audit(FAULTS[name].twin, FAULTS[name], 2000).verdict != "violated"


@pytest.mark.system
@pytest.mark.parametrize("name", [*HARD, "steps_forgotten"])
def test_faults_that_take_many_runs_are_found(name):
    assert audit(FAULTS[name].mechanism, FAULTS[name], 3_000_000).verdict == "violated"


@pytest.mark.system
def test_sound_mechanisms_are_rarely_convicted():
    corrected = [
        (fault.mechanism if fault.is_private else fault.twin, fault) for fault in FAULTS.values()
    ]
    convicted = [
        fault.name for mechanism, fault in corrected
        if audit(mechanism, fault, 20_000, 7).verdict == "violated"
    ]  # fmt: skip
    assert len(convicted) <= stats.binom.isf(1e-4, len(corrected), 0.05), convicted


def test_redrawn_geometric_noise_has_the_stated_loss():
    fault = FAULTS["redrawn_geometric"]
    places = np.arange(6)
    laws = [fault.log_density(places, data) for data in range(6)]
    losses = [np.abs(laws[k] - laws[k + 1]).max() for k in range(5)]
    assert max(losses) == pytest.approx(fault.loss)
    assert all(np.exp(law).sum() == pytest.approx(1.0) for law in laws)
