"""Trials of private subspace clustering: data, fits and metrics."""

import math

import numpy as np
import pytest

from privclust.core.grassmann import random_bases
from privclust.metrics.subspaces import subspace_cost, wasserstein_distance
from privclust.subspaces import KPlanes, SuLQKPlanes
from privclust_papers.dpsc import data as subspaces
from privclust_papers.dpsc import metrics as subspaces_evaluation
from privclust_papers.dpsc.methods import subspaces_of_labels
from privclust_papers.dpsc.solvers import SOLVERS
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.settings.config import ConfigError

POINT = {
    "n_samples": 90,
    "n_clusters": 3,
    "n_features": 6,
    "dimension": 2,
    "noise": 0.05,
    "n_sweeps": 20,
}
FACES = {"n_samples": 60, "n_clusters": 3, "n_features": 30, "dimension": 4, "n_sweeps": 20}


def streams(point, trial=0, method="m", swept=("epsilon",)):
    spec = {"seed": 1, "paper": "dpsc", "experiment": "e", "swept": list(swept)}
    return TrialStreams({**spec, "method": {"name": method}}, point, trial)


def mixture(point=POINT, trial=0):
    return subspaces.mixture_trial(point, trial, streams(point, trial), None)


@pytest.fixture
def faces():
    """A prepared set of six people with 25 images of 80 pixels, and one with fewer."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(7), [25] * 6 + [24])
    bases = rng.normal(size=(7, 10, 80))
    pixels = 128 + 15 * np.einsum("ij,ijp->ip", rng.normal(size=(len(labels), 10)), bases[labels])
    images = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return {"images": images, "labels": labels, "source": "yaleb"}


# --- data ------------------------------------------------------------------------------------


def test_mixtures_know_their_subspaces_and_delta():
    data = mixture()
    assert data.X.shape == (90, 6)
    truth = data.extra["truth"]
    own = [subspace_cost(data.X[data.y == k], truth[k : k + 1]) for k in range(3)]
    # four of six coordinates of the noise lie outside: 120 squares a cluster, five standard errors
    np.testing.assert_allclose(own, 4 * 0.05**2, rtol=5 * math.sqrt(2 / 120))
    assert data.extra["delta"] == pytest.approx(1 / (90 * math.log(90)))
    assert (data.extra["n_sweeps"], data.extra["dimension"]) == (20, 2)


def test_points_of_a_sweep_share_rows_and_trials_do_not():
    X = mixture().X
    np.testing.assert_array_equal(X, mixture().X)
    swept = {**POINT, "epsilon": 3.0}
    np.testing.assert_array_equal(X, subspaces.mixture_trial(POINT, 0, streams(swept), None).X)
    assert not np.isin(X, mixture(trial=1).X).any()


def test_faces_are_prepared_as_the_paper_says(faces):
    data = subspaces.yale_trial(FACES, 0, streams(FACES), faces)
    assert data.X.shape == (60, 30)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1.0)
    assert np.bincount(data.y).tolist() == [20, 20, 20]
    for person, basis in enumerate(data.extra["truth"]):
        own = data.X[data.y == person]
        # an affine subspace of dimension 4 off the origin spans 5 dimensions
        assert np.linalg.matrix_rank(own, tol=1e-8) == 5
        np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-12)
        # the best 4 of these 5: what is left is the smallest singular value
        values = np.linalg.svd(own, compute_uv=False)
        left = subspace_cost(own, basis[None]) * len(own)
        assert left == pytest.approx(values[4] ** 2)
    assert data.source == "yaleb"


def test_people_of_whom_images_are_missing_are_not_picked(faces):
    everyone = {**FACES, "n_clusters": 6, "n_samples": 150, "dimension": 3}
    for trial in range(3):
        data = subspaces.yale_trial(everyone, trial, streams(everyone, trial), faces)
        assert len(data.X) == 150
    gone = {**faces, "images": np.where((faces["labels"] == 6)[:, None], 0, faces["images"])}
    for trial in range(20):
        found = [
            subspaces.yale_trial(FACES, trial, streams(FACES, trial), d).X for d in (faces, gone)
        ]
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("n", [61, 12, 78])
def test_faces_in_other_numbers(faces, n):
    point = {**FACES, "n_samples": n}
    with pytest.raises(ConfigError, match=f"n_samples: got {n}; it must be 3 times a number from "):
        subspaces.yale_trial(point, 0, streams(point), faces)


# --- what methods share ----------------------------------------------------------------------


def test_labels_are_shared_with_clusterings_without_privacy(faces):
    data = mixture()
    shared = subspaces.share_labels(POINT, 0, streams(POINT), None, 0, 1)
    assert shared.keys() == set(SOLVERS)
    for name, labels in shared.items():
        assert labels.shape == (90,)
        assert labels.dtype == np.int64
        data.extra["shared"] = shared
        found = subspaces_of_labels(data, streams(POINT), by=name)
        for k in range(3):
            own = data.X[labels == k]
            values = np.linalg.svd(own, compute_uv=False)
            left = subspace_cost(own, found["bases"][k][None]) * len(own)
            assert left == pytest.approx((values[2:] ** 2).sum())
    own = subspaces.share_labels(FACES, 0, streams(FACES), faces, 0, 1)
    assert {len(labels) for labels in own.values()} == {60}
    with pytest.raises(ConfigError, match="shards: got 2; it must be 1"):
        subspaces.share_labels(POINT, 0, streams(POINT), None, 0, 2)


def test_a_solver_has_a_name():
    assert [type(solver(3)).__name__ for solver in SOLVERS.values()] == ["SSC", "LRR", "TSC"]


# --- fits ------------------------------------------------------------------------------------


def recorder(record, estimator):
    """Return an estimator class that keeps what it is given, under the other's signature."""

    class Recorder(estimator):
        def fit(self, X, y=None):
            record.append((X, self.get_params()))
            return super().fit(X, y)

    return Recorder


def test_methods_get_what_their_class_accepts():
    data = mixture()
    data.extra["shared"] = {"ssc": data.y}
    record = []
    private, plain = recorder(record, SuLQKPlanes), recorder(record, KPlanes)
    found = subspaces.fit_subspaces(private, {"epsilon": 0.5}, data, streams(POINT))
    assert found["epsilon"] == 0.5
    subspaces.fit_subspaces(plain, {"init": "ssc"}, data, streams(POINT))
    (X, params), (rows, others) = record
    np.testing.assert_array_equal(X, data.X)  # who is private draws rows in by itself
    np.testing.assert_array_equal(rows, data.X)
    assert (params["n_clusters"], params["dimension"], params["norm_bound"]) == (3, 2, 1.0)
    assert params["delta"] == data.extra["delta"]
    np.testing.assert_array_equal(others["init"], data.y)
    again = subspaces.fit_subspaces(SuLQKPlanes, {"epsilon": 0.5}, data, streams(POINT))
    np.testing.assert_array_equal(found["bases"], again["bases"])
    other = streams(POINT, method="other")
    assert not np.array_equal(
        found["bases"], subspaces.fit_subspaces(SuLQKPlanes, {"epsilon": 0.5}, data, other)["bases"]
    )


# --- metrics ---------------------------------------------------------------------------------


def evaluated(outputs, data=None):
    data = data or mixture()
    data.extra["reference"] = {"bases": data.extra["truth"]}
    return subspaces_evaluation.evaluate_subspaces(data, outputs)


def test_the_truth_is_at_distance_zero():
    data = mixture()
    found = evaluated({"bases": data.extra["truth"][::-1]}, data)
    assert found["distance"] == found["distance_last"] == pytest.approx(0.0, abs=1e-12)
    assert found["relative_cost"] == pytest.approx(1.0)
    assert found["closeness"] == pytest.approx(1.0)
    assert found["cost"] == subspace_cost(data.X, data.extra["truth"])
    assert math.isnan(found["budget"])


def test_metrics_of_a_sampler_are_means_over_what_it_kept():
    data = mixture()
    kept = np.stack([random_bases(3, 6, 2, np.random.default_rng(i)) for i in range(4)])
    outputs = {"bases": kept[-1], "kept": kept.astype(np.float32), "epsilon": np.float64(10.0)}
    found = evaluated(outputs, data)
    costs = [subspace_cost(data.X, bases) for bases in kept]
    distances = [wasserstein_distance(bases, data.extra["truth"]) for bases in kept]
    assert found["cost"] == pytest.approx(np.mean(costs), rel=1e-5)
    assert found["distance"] == pytest.approx(np.mean(distances), rel=1e-5)
    assert found["cost_last"] == costs[-1]
    assert found["distance_last"] == distances[-1]
    assert found["budget"] == 1.0


@pytest.mark.parametrize(("epsilon", "budget"), [(0.316, 0), (1.0, 1), (10.0, 1), (31.6, 2)])
def test_budgets(epsilon, budget):
    bases = mixture().extra["truth"]
    assert evaluated({"bases": bases, "epsilon": np.float64(epsilon)})["budget"] == budget


def test_methods_that_ignore_the_data_are_as_far_as_chance():
    """In five dimensions the best matching brings random subspaces nearer by 9 %."""
    data, rng = mixture(), np.random.default_rng(1)
    shape = data.extra["truth"].shape
    found = []
    for _ in range(300):
        data.extra["truth"] = random_bases(*shape, rng)
        found.append(evaluated({"bases": random_bases(*shape, rng)}, data)["relative_distance"])
    assert np.mean(found) == pytest.approx(1.0, abs=5 * np.std(found) / np.sqrt(300))
    in_fixed_matching = np.sqrt(2 * 3 * 3 * (1 - 3 / 5))
    assert subspaces_evaluation.distance_of_random(3, 5, 3) < 0.93 * in_fixed_matching


def chain(bases_of, n=40):
    """Records of a chain whose samples are given by a function of the record's number."""
    return {
        "sweep": np.arange(1, n + 1),
        "statistic": np.linspace(1.0, 0.1, n),
        "aligned_statistic": np.linspace(1.0, 0.2, n),
        "subspaces": np.stack([bases_of(i) for i in range(n)]).astype(np.float32),
    }


def test_chains_of_one_distribution_are_not_apart():
    data = mixture()
    one, two = (
        chain(lambda i, s=s: random_bases(3, 6, 2, np.random.default_rng([s, i]))) for s in (1, 2)
    )
    data.extra["reference"] = two
    found = subspaces_evaluation.evaluate_chain(data, one)
    assert found["final_statistic"] == pytest.approx(0.1)
    assert found["final_aligned"] == pytest.approx(0.2)
    # four sequences of ten independent costs each: B/W has 3 and 36 degrees of freedom, so that
    # rhat^2 = 0.9 + F/10 exceeds 1.6 with probability 0.0005
    assert found["rhat"] < math.sqrt(1.6)
    # distances vary by a tenth of their mean: means of 20 by 0.022, of which 5 are allowed
    assert found["separation"] == pytest.approx(1.0, abs=0.15)
    assert found["apart"] == float(found["separation"] > 1.1)
    costs = [subspace_cost(data.X, bases) for bases in one["subspaces"]]
    np.testing.assert_allclose(found["cost_path"], costs)
    assert found["distance_path"][3] == pytest.approx(
        wasserstein_distance(one["subspaces"][3], data.extra["truth"])
    )


def test_chains_that_stay_where_they_began_are_apart():
    data = mixture()
    truth = data.extra["truth"]

    def near(start, i):
        noise = 0.01 * np.random.default_rng(i).normal(size=start.shape)
        return np.linalg.qr(start + noise)[0]

    far = random_bases(3, 6, 2, np.random.default_rng(5))
    data.extra["reference"] = chain(lambda i: near(far, i))
    found = subspaces_evaluation.evaluate_chain(data, chain(lambda i: near(truth, 100 + i)))
    assert found["rhat"] > 3.0
    assert found["separation"] > 3.0
    assert (found["unmixed"], found["apart"]) == (1.0, 1.0)
    own = subspaces_evaluation.evaluate_chain(data, data.extra["reference"])
    assert own["rhat"] < math.sqrt(3.0)  # two sequences: F of 1 and 18, above 21 with 0.0002
    assert math.isnan(own["separation"])
    assert math.isnan(own["apart"])


def test_potential_scale_reduction_of_constants():
    of = subspaces_evaluation.potential_scale_reduction
    assert of(np.ones((2, 5))) == 1.0
    assert of(np.array([[1.0, 1.0], [2.0, 2.0]])) == math.inf
