"""Fits at usual budgets, and the bound on what a sketch tells."""

import math

import pytest

from privclust.subspaces import MomentSubspaceClustering, SuLQKPlanes
from privclust_papers.dpsc import data as subspaces
from privclust_papers.dpsc.frontier import evaluate_frontier, fit_frontier, release_bound
from privclust_papers.pipeline.runner import TrialStreams

POINT = {
    "n_samples": 2000,
    "n_clusters": 2,
    "n_features": 4,
    "dimension": 2,
    "noise": 0.01,
    "n_sweeps": 1,
}


def streams(method="m"):
    spec = {"seed": 1, "paper": "dpsc", "experiment": "e", "swept": ["epsilon"]}
    return TrialStreams({**spec, "method": {"name": method}}, POINT, 0)


@pytest.fixture(scope="module")
def data():
    return subspaces.mixture_trial(POINT, 0, streams(), None)


def test_a_fit_is_held_against_the_bound_of_its_release(data):
    outputs = fit_frontier(MomentSubspaceClustering, {"epsilon": 3.0}, data, streams())
    data.extra["reference"] = release_bound(data, streams("bound"), epsilon=3.0)
    of_bound = evaluate_frontier(data, data.extra["reference"])
    of_fit = evaluate_frontier(data, outputs)
    assert of_bound["over_bound"] == 1.0
    assert of_bound["budget"] == of_fit["budget"] == 1.0
    assert math.isnan(of_bound["stated"])
    assert of_fit["over_bound"] == pytest.approx(of_fit["distance"] / of_bound["distance"])
    assert 0.3 < of_fit["stated"] / of_fit["distance"] < 3.0
    assert of_fit["last_round"] in (0.0, 1.0)
    assert of_fit["relative_distance"] < 0.05


def test_other_methods_state_no_error(data):
    outputs = fit_frontier(SuLQKPlanes, {"epsilon": 3.0, "max_iter": 3}, data, streams())
    metrics = evaluate_frontier(data, outputs)
    assert math.isnan(metrics["stated"])
    assert math.isnan(metrics["last_round"])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_sketch_and_rounds_share_the_budget(data):
    model = subspaces.method_for(
        SuLQKPlanes, {"init": "moments", "max_iter": 3, "epsilon": 2.0}, data, streams()
    ).fit(data.X)
    assert model.delta == model.init.delta == data.extra["delta"]
    assert model.guarantee_.delta == pytest.approx(data.extra["delta"])
    assert 1.9 < model.guarantee_.epsilon <= 2.0 + 1e-6
