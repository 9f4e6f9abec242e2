"""Plans: simulated fits, against fits to as many rows as are planned for."""

import numpy as np
import pytest
from scipy import stats

from privclust.kmeans import CompressiveKMeans, DPLloyd, EUGkM, TreeKMeans, plan
from privclust.kmeans import _plan as module
from privclust.privacy import Budget, Guarantee


@pytest.mark.parametrize(
    ("epsilon", "delta", "estimator", "n_trials"),
    [
        (0.2, 1e-6, CompressiveKMeans(), 8),
        (0.3, 1e-6, DPLloyd(accounting="pld"), 15),
        (0.3, 1e-6, DPLloyd(), 15),  # its pure noise has no use for the delta
        (0.1, 0.0, EUGkM(n_init=3), 15),
    ],
)
def test_fewer_rows_with_as_much_less_noise_come_out_alike(
    epsilon, delta, estimator, n_trials, monkeypatch
):
    """What 20,000 rows are planned to have on 5,000 is what fits to 20,000 have."""
    settings = {"estimator": estimator, "n_trials": n_trials, "random_state": 0}
    whole = plan(20_000, 3, 4, epsilon, delta, **settings)
    monkeypatch.setattr(module, "_MOST_ROWS", 5_000)
    small = plan(20_000, 3, 4, epsilon, delta, **settings)
    assert (whole.n_simulated, small.n_simulated) == (20_000, 5_000)
    excess = [np.log(np.maximum(one.errors - 1.0, 1e-5)) for one in (whole, small)]
    apart = np.mean(excess[0]) - np.mean(excess[1])
    error = np.sqrt(sum(np.var(one, ddof=1) / len(one) for one in excess))
    most = stats.t.isf(8e-4, 2 * n_trials - 2)  # a false alarm in 600
    assert abs(apart) < most * error + np.log(1.5)  # rows that scatter more count by half more


def test_more_budget_and_more_rows_have_less_error():
    settings = {"delta": 1e-6, "n_trials": 3, "random_state": 0}
    errors = [plan(10_000, 2, 3, epsilon, **settings).median for epsilon in (0.03, 0.3, 3.0)]
    assert errors[0] > errors[1] > errors[2] > 0.99
    billion = plan(10**9, 2, 3, 0.03, **settings)
    assert billion.median < 1.001
    assert billion.n_simulated == 50_000
    assert billion.detected.tolist() == [1.0] * 3


def test_what_noise_hides_is_said():
    outcome = plan(300, 2, 3, 0.01, 1e-6, n_trials=2, random_state=0)
    assert outcome.detected.mean() < 0.5
    assert "noise hides" in str(outcome)
    low, high = outcome.interval
    assert low <= outcome.median <= high


@pytest.mark.parametrize("n_samples", [20_000, 800_000])
def test_intervals_of_one_cluster_are_those_of_a_mean(n_samples):
    """1.96 deviations over the root of n, whether all rows are simulated or a sixteenth."""
    how = {"estimator": TreeKMeans(), "n_trials": 2, "random_state": 0}
    outcome = plan(n_samples, 2, 1, 1e4, 1e-6, **how)
    assert outcome.width == pytest.approx(1.96 / np.sqrt(n_samples), rel=0.1)
    assert outcome.marked.tolist() == [0.0, 0.0]
    skewed = plan(n_samples, 2, 1, 1e4, 1e-6, shape="skewed", **how)
    assert skewed.marked.tolist() == [1.0, 1.0]  # the tree clips long tails
    assert np.isnan(skewed.width)


def test_intervals_narrow_with_the_budget_until_none_is_marked():
    settings = {"delta": 1e-6, "separation": 4.0, "n_trials": 2, "random_state": 0}
    plans = [plan(20_000, 2, 3, epsilon, **settings) for epsilon in (0.001, 0.1, 1.0)]
    hidden, small, large = plans
    assert hidden.marked.min() == 1.0
    assert np.isnan(hidden.width)
    assert str(hidden).endswith("; 100 % of clusters marked")
    assert small.width > large.width > 1.96 / np.sqrt(20_000) / 10  # of a column, not of a cluster
    assert f"± {100 * large.width:.2g} % of a column's standard deviation" in str(large)


def test_rows_of_skewed_clusters_have_a_tail_on_the_right():
    rng = np.random.default_rng(0)
    for shape, skewness in (("round", 0.0), ("skewed", 2.0 / np.sqrt(1.5))):
        rows, means = module._rows(100_000, 2, np.ones(1), 3.0, shape, rng)
        offsets = rows - means
        assert np.abs(offsets.mean(axis=0)).max() < 0.02
        assert offsets.var(axis=0) == pytest.approx([1.0, 1.0], rel=0.03)
        assert stats.skew(offsets) == pytest.approx([skewness] * 2, abs=0.1)


def test_intervals_are_of_the_first_thirty_clusters():
    outcome = plan(2_000, 1, 16, 1.0, 1e-6, estimator=TreeKMeans(), n_trials=3, random_state=0)
    assert np.isfinite(outcome.marked).tolist() == [True, True, False]
    assert f"{100 * outcome.marked[:2].mean():.0f} % of clusters marked" in str(outcome)


def test_a_plan_says_what_the_budget_is_spent_on():
    shares = {
        delta: plan(5_000, 2, 2, 2.0, delta, n_trials=1, random_state=0).shares
        for delta in (1e-6, 0.0)
    }
    of_rounds = "sums, counts and spreads of rows by cluster"
    gaussian = {"sums of features": 0.4, "pilot: sums of features": 0.1, of_rounds: 0.5}
    assert shares[1e-6] == pytest.approx(gaussian)
    assert shares[0.0] == pytest.approx({"sums of features": 0.9, "pilot: sums of features": 0.1})
    tree = plan(5_000, 2, 2, 2.0, 1e-6, estimator=TreeKMeans(), n_trials=1, random_state=0)
    assert tree.budget() == "84 % for counts of cells, 16 % for sums, counts and spreads by cluster"


def test_a_method_without_standard_errors_has_no_intervals():
    outcome = plan(5_000, 2, 2, 1.0, estimator=EUGkM(n_init=1), n_trials=1, random_state=0)
    assert np.isnan([outcome.width, *outcome.marked]).all()
    assert "interval" not in str(outcome)
    assert "marked" not in str(outcome)


def test_simulated_noise_has_the_scale_of_all_rows():
    sigma = module.analytic_gaussian_sigma
    unit = module.Sensitivity(1.0, "l2", module.Neighbours.REPLACE_ONE, "a unit")
    for epsilon in (0.01, 1.0, 5.0):
        simulated = module._simulated_epsilon(epsilon, 1e-6, 20.0)
        ratio = sigma(unit, epsilon, 1e-6) / sigma(unit, simulated, 1e-6)
        assert ratio == pytest.approx(20.0, rel=1e-4)
    assert module._simulated_epsilon(0.1, 0.0, 20.0) == pytest.approx(2.0)
    assert module._simulated_epsilon(0.7, 1e-6, 1.0) == 0.7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2, 3, 1.0), "n_samples must be"),
        ((100, 2, 100, 1.0), "n_clusters must be less than n_samples, 100"),
        ((100, 2, 3, 0.0), "epsilon must be"),
        ((100, 2, 3, 1.0, 1.0), "delta must be less than 1"),
        ((100, 2, 3, 1.0, -1e-9), "delta must be"),
    ],
)
def test_bad_settings_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan(*arguments)
    with pytest.raises(ValueError, match="n_trials must be"):
        plan(100, 2, 3, 1.0, n_trials=0)
    with pytest.raises(ValueError, match="shape must be"):
        plan(100, 2, 3, 1.0, shape="square")


@pytest.mark.parametrize("smallest", [0.0, -0.1, 0.4, np.nan])
def test_the_smallest_cluster_is_no_larger_than_the_others(smallest):
    with pytest.raises(ValueError, match="smallest must be"):
        plan(100, 2, 3, 1.0, smallest=smallest)


@pytest.fixture
def simulated(monkeypatch):
    """What each simulated fit is given."""
    given, drawn = [], []
    told = (1.0, 1.0, 0.1, 0.0), Guarantee("none", "replace_one")

    def rows(n, d, weights, scale, shape, rng):
        drawn.append((n, d, weights, scale, rng))
        return None, None

    def outcome(model, *_):
        given.append((model, *drawn[-1]))
        return told

    monkeypatch.setattr(module, "_rows", rows)
    monkeypatch.setattr(module, "_outcome", outcome)
    return given


def test_simulated_rows_and_bounds_are_those_of_the_question(simulated):
    """Centers have a deviation of s k^(1/d); bounds are four deviations of a feature."""
    plan(1000, 3, 8, 1.0, separation=2.0, n_trials=2)
    plan(10**6, 2, 9, 1.0, 0.99, neighbours="add_remove", n_trials=1)
    plan(10**6, 1, 100, 1.0, n_trials=1)
    _, again, other, many = simulated
    model, n, d, weights, scale, _ = again
    assert (n, d, len(weights), scale) == (1000, 3, 8, pytest.approx(4.0))
    assert model.bounds == pytest.approx((-4.0 * np.sqrt(17.0), 4.0 * np.sqrt(17.0)))
    assert (model.n_clusters, model.epsilon, model.neighbours) == (8, 1.0, "replace_one")
    model, n, d, _, scale, _ = other
    assert (n, d, scale) == (50_000, 2, pytest.approx(4.5))
    assert (model.n_clusters, model.delta, model.neighbours) == (9, 0.99, "add_remove")
    assert many[1] == 100_000  # a thousand of each cluster


def test_one_cluster_has_the_part_that_is_told(simulated):
    plan(1000, 2, 4, 1.0, smallest=0.01, n_trials=1)
    plan(1000, 2, 4, 1.0, n_trials=1)
    plan(1000, 2, 1, 1.0, n_trials=1)
    small, equal, alone = (given[3] for given in simulated)
    assert np.allclose(small, [0.01, 0.33, 0.33, 0.33])
    assert np.allclose(equal, 0.25)
    assert alone.tolist() == [1.0]


def test_a_small_cluster_is_harder_to_find():
    """Where equal clusters far apart are all found, one of 0.5 % is missed in some fits."""
    settings = {"delta": 1e-6, "separation": 5.0, "n_trials": 6, "random_state": 0}
    equal, small = (plan(20_000, 2, 3, 0.1, smallest=w, **settings) for w in (None, 0.005))
    assert equal.errors.max() < 1.05
    assert small.errors.max() > 1.2


def test_pure_noise_of_fewer_rows_is_as_much_smaller(simulated):
    epsilons = []
    for accounting in ("pure", "pld"):
        plan(10**6, 2, 3, 0.1, 1e-6, estimator=DPLloyd(accounting=accounting), n_trials=1)
        epsilons.append(simulated[-1][0].epsilon)
    assert epsilons[0] == pytest.approx(0.1 * 10**6 / 50_000)
    assert epsilons[1] > 1.1 * epsilons[0]  # what a delta buys shrinks


def test_nothing_is_charged_to_a_ledger():
    with Budget(1.0) as ledger, pytest.raises(ValueError, match="plan outside"):
        plan(1000, 2, 2, 1.0)
    assert not ledger.entries
