"""The statements of the DP-EM paper, as the pipeline tries them."""

import math

import numpy as np
import pytest

from privclust.mixtures import PlanSettings, budget_share
from privclust_papers.dpem import checks as mixture_checks
from privclust_papers.dpem.checks import STATEMENTS
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.shared.statements import evaluate_numbers, measure_excess

FAIL = {"trace_map", "two_covariances", "noise_by_rows", "gamma_private", "wishart_private"}
HOLD = set(STATEMENTS) - FAIL


def streams(trial, point):
    spec = {"seed": 0, "paper": "p", "experiment": "e", "swept": [], "method": {"name": "m"}}
    return TrialStreams(spec, point, trial)


def excess(statement, trial):
    point = {"statement": statement}
    trial_streams = streams(trial, point)
    data = mixture_checks.statement_trial(point, trial, trial_streams, None)
    outputs = measure_excess(data, trial_streams)
    return evaluate_numbers(data, outputs)["excess"], data.extra


@pytest.mark.parametrize("statement", sorted(HOLD))
def test_what_holds_is_not_exceeded(statement):
    assert max(excess(statement, trial)[0] for trial in range(4)) <= 1e-9


@pytest.mark.parametrize("statement", ["weights", "means_l2", "trace", "failure_jointly"])
def test_bounds_are_attained_by_the_search(statement):
    assert max(excess(statement, trial)[0] for trial in range(6)) > -0.01


def test_a_row_changes_the_covariances_of_all_gaussians():
    for trial in range(4):
        found, setting = excess("two_covariances", trial)
        assert found == max(setting["n_components"], 3) / 2.0 - 1.0


def test_noise_of_means_falls_with_the_rows_as_dplloyds_does():
    """The quartiles of four times 20,000 draws: an error of about 0.025."""
    found = [excess("noise_by_rows", trial)[0] for trial in range(6)]
    assert -0.06 < np.mean(found) < 0.06
    assert min(found) > -0.1  # the claim's bound


def test_gamma_noise_excludes_a_neighbour_as_often_as_derived():
    for trial in range(3):
        part_excluded, setting = excess("gamma_private", trial)
        expected = 1 - math.exp(-setting["epsilon"])
        # five standard errors of 20,000 draws: false alarm below 1e-6 each
        assert abs(part_excluded - expected) < 5 * math.sqrt(expected * (1 - expected) / 20_000)


def test_wishart_noise_excludes_a_neighbour_at_least_as_often():
    for trial in range(3):
        part_excluded, setting = excess("wishart_private", trial)
        expected = 1 - math.exp(-setting["epsilon"])
        assert part_excluded > expected - 5 * math.sqrt(expected / 2_000)


def test_the_trace_of_map_covariances_exceeds_its_bound():
    assert max(excess("trace_map", trial)[0] for trial in range(6)) > 0.5


def test_losses_from_densities_are_the_closed_forms():
    assert mixture_checks._mean_loss_of_normal_noise(0.3) == pytest.approx(0.3**2 / 2)
    response = mixture_checks._randomised_response(0.7)
    entropy = mixture_checks._relative_entropy(*response)
    assert entropy == pytest.approx(0.7 * math.tanh(0.35))


def test_the_exact_composition_sees_shares_that_are_too_large(monkeypatch):
    """Three releases of 0.5 each: what delta is left at the epsilon that was searched."""
    setting = {"n_features": 1, "n_components": 1, "n_iter": 1, "epsilon": 0.5, "delta": 1e-3}
    monkeypatch.setattr(mixture_checks, "budget_share", lambda *budget: 0.5)
    excess = mixture_checks._advanced_budget(setting, None)
    assert excess > 1.0
    epsilon, p = 0.5 * (1 + excess), math.exp(0.5) / (1 + math.exp(0.5))
    losses = {1.5: p**3, 0.5: 3 * p**2 * (1 - p)}
    delta = sum(part * max(1 - math.exp(epsilon - loss), 0.0) for loss, part in losses.items())
    assert delta == pytest.approx(1e-3)


@pytest.mark.parametrize("mean_noise", ["laplace", "gaussian", "joint"])
def test_budgets_cost_no_more_than_the_paper_counts(mean_noise):
    point = {"n_features": 2, "n_components": 3, "n_iter": 10, "epsilon": 0.9}
    data = mixture_checks.budget_trial(point, 0, None, None)
    params = {"accounting": "cdp", "mean_noise": mean_noise}
    outputs = mixture_checks.compose_budget(data, None, **params)
    costs = evaluate_numbers(data, outputs)
    assert costs["claimed_rho"] == pytest.approx(0.9)
    assert costs["rho"] <= costs["claimed_rho"] * (1 + 1e-12)
    assert costs["epsilon_1e4"] < costs["epsilon_1e6"]
    if mean_noise == "joint":
        assert np.isclose(costs["rho"], 0.9)


def scale_of_dplloyd_over_ours(k, covariance_type, epsilon, n_iter=10, d=2):
    """Ratio of the Laplace scales on a mean, both times N_k, in the paper's setting of Figure 2."""
    settings = PlanSettings(d, k, n_iter, covariance_type, "laplace", "paper", 1e-3)
    share = budget_share(settings, epsilon, 0.01, "cdp")
    return (d + 1) * n_iter / epsilon / (2.0 * math.sqrt(d) / share)


@pytest.mark.parametrize(("k", "kind", "factor"), [(3, "spherical", 1.79), (5, "zero", 1.94)])
@pytest.mark.parametrize("epsilon", [0.01, 0.9, 10.0])
def test_noise_is_smaller_than_dplloyd_s_up_to_an_epsilon(k, kind, factor, epsilon):
    ratio = scale_of_dplloyd_over_ours(k, kind, epsilon)
    assert ratio == pytest.approx(factor / math.sqrt(epsilon), rel=0.003)
    assert (ratio > 1.0) == (epsilon < factor**2)


def test_noise_for_the_same_expected_loss_is_the_same():
    """By the paper's count, the mean loss is that of eps' and of the number of releases only."""
    point = {"n_features": 2, "n_components": 3, "n_iter": 10, "epsilon": 0.9}
    data = mixture_checks.budget_trial(point, 0, None, None)
    rho = {
        rule: mixture_checks.compose_budget(data, None, accounting=rule, mean_noise="laplace")
        for rule in ("cdp", "advanced")
    }
    means = {rule: float(costs["claimed_rho"]) for rule, costs in rho.items()}
    assert means["cdp"] / means["advanced"] == pytest.approx(82, abs=0.5)
    settings = PlanSettings(2, 3, 10, "spherical", "laplace", "paper", 1e-3)
    advanced = budget_share(settings, 0.9, 0.01, "advanced")
    assert budget_share(settings, means["advanced"], 0.01, "cdp") == pytest.approx(advanced)
