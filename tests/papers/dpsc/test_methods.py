"""Composed methods of private subspace clustering, and what a Gibbs sampler hands on."""

import numpy as np
import pytest

from privclust.metrics.subspaces import wasserstein_distance
from privclust.subspaces import GibbsSubspaceClustering, SampleAggregateSubspaceClustering
from privclust_papers.dpsc import data as subspaces
from privclust_papers.dpsc.methods import AnnealedGibbs
from privclust_papers.dpsc.solvers import SOLVERS
from privclust_papers.pipeline.runner import TrialStreams

POINT = {
    "n_samples": 240,
    "n_clusters": 2,
    "n_features": 4,
    "dimension": 1,
    "noise": 0.05,
    "n_sweeps": 250,
}


def streams(method="m"):
    spec = {"seed": 1, "paper": "dpsc", "experiment": "e", "swept": ["epsilon"]}
    return TrialStreams({**spec, "method": {"name": method}}, POINT, 0)


@pytest.fixture
def data():
    return subspaces.mixture_trial(POINT, 0, streams(), None)


@pytest.mark.parametrize("by", SOLVERS)
@pytest.mark.parametrize("variant", ["paper", "corrected"])
def test_aggregation_by_each_solver(data, by, variant):
    params = {"base": by, "variant": variant, "epsilon": 1.0}
    aggregate = SampleAggregateSubspaceClustering
    found = subspaces.fit_subspaces(aggregate, params, data, streams())
    gram = found["bases"].transpose(0, 2, 1) @ found["bases"]
    np.testing.assert_allclose(gram, np.ones((2, 1, 1)), atol=1e-9)
    again = subspaces.fit_subspaces(aggregate, params, data, streams())
    np.testing.assert_array_equal(found["bases"], again["bases"])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_guarantees_of_aggregation(data):
    corrected, printed = (
        subspaces.method_for(
            SampleAggregateSubspaceClustering,
            {"base": "lrr", "epsilon": 1.0, "delta": 1e-3, "variant": variant},
            data,
            streams(),
        )
        .fit(data.X)
        .guarantee_
        for variant in ("corrected", "paper")
    )
    assert (corrected.definition, corrected.epsilon, corrected.delta) == ("approximate", 1.0, 1e-3)
    assert printed.definition == "none"


@pytest.mark.filterwarnings("ignore:rows with a norm above:UserWarning")
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_start_and_chain_share_the_budget(data, share):
    params = {"init": "sulq", "share": share, "epsilon": 3.0}
    chain = {"n_sweeps": 50, "n_kept": 10, "record_every": 25}
    data.extra["delta"] = 1e-4
    model = subspaces.method_for(GibbsSubspaceClustering, params | chain, data, streams()).fit(
        data.X
    )
    assert model.init.epsilon == pytest.approx(share * 3.0)
    assert model.guarantee_.definition == "asymptotic"
    assert model.guarantee_.epsilon == pytest.approx(3.0)
    assert model.guarantee_.delta == pytest.approx(1e-4)
    assert model.kept_subspaces_.shape == (10, 2, 4, 1)
    np.testing.assert_array_equal(model.kept_subspaces_[-1], model.subspaces_)
    assert model.diagnostics_["sweep"].tolist() == [25, 50]


def test_a_sampler_that_starts_from_shared_labels_keeps_samples(data):
    data.extra["shared"] = {"ssc": data.y}
    params = {"init": "ssc", "n_kept": 20, "epsilon": 50.0}
    found = subspaces.fit_subspaces(GibbsSubspaceClustering, params, data, streams())
    assert found["kept"].shape == (20, 2, 4, 1)
    assert found["kept"].dtype == np.float32
    np.testing.assert_allclose(found["kept"][-1], found["bases"], atol=1e-6)


@pytest.mark.parametrize("init", ["random", "sulq"])
def test_first_sweeps_and_about_a_hundred_later_are_recorded(data, init):
    params = {"epsilon": 1.0, "init": init}
    found = subspaces.fit_chain(GibbsSubspaceClustering, params, data, streams())
    sweep = [*range(1, 31), *range(32, 251, 2)]
    assert found["sweep"].tolist() == sweep
    assert found["subspaces"].shape == (len(sweep), 2, 4, 1)
    assert found["statistic"].shape == found["aligned_statistic"].shape == (len(sweep),)
    assert [found[name][0] for name in ("statistic", "aligned_statistic")] == pytest.approx([1, 1])


def test_annealing_ends_at_the_budget(data):
    """Half of the sweeps in twenty stages, the others at the budget; the guarantee is its own."""
    model = AnnealedGibbs(
        2, 1, epsilon=3.0, n_sweeps=100, n_kept=10, norm_bound=2.0, random_state=0
    ).fit(data.X)
    assert (model.guarantee_.definition, model.guarantee_.epsilon) == ("asymptotic", 3.0)
    assert model.kept_subspaces_.shape == (10, 2, 4, 1)
    np.testing.assert_array_equal(model.kept_subspaces_[-1], model.subspaces_)
    found = subspaces.fit_subspaces(AnnealedGibbs, {"epsilon": 3.0}, data, streams())
    again = subspaces.fit_subspaces(AnnealedGibbs, {"epsilon": 3.0}, data, streams())
    np.testing.assert_array_equal(found["bases"], again["bases"])


def test_annealing_finds_what_there_is_at_a_large_budget(data):
    """Two lines with noise of 0.05: distance of random lines 1.7, of the limit about 0.05."""
    found = subspaces.fit_subspaces(AnnealedGibbs, {"epsilon": 1000.0}, data, streams())
    assert wasserstein_distance(found["bases"], data.extra["truth"]) < 0.2
