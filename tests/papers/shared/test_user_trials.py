"""Fits of classes that are not ours, trials on data that are not ours."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from privclust.core.lloyd import nearest_center_statistics
from privclust.kmeans import DPLloyd
from privclust_papers.audit.cases.user_method import OwnMethod
from privclust_papers.ckm.metrics import evaluate_clusters
from privclust_papers.pipeline import runner
from privclust_papers.pipeline.runner import TrialStreams, random_state_for, run_block
from privclust_papers.settings.config import ConfigError
from privclust_papers.shared.user_trials import clusters_trial, mixture_trial

SPEC = {"seed": 0, "paper": "own", "experiment": "rows_kmeans", "swept": ["epsilon"]}


class NoisyMean:
    """The mean of rows in [-1, 1] with Laplace noise for a claim of epsilon = 1."""

    def __init__(self, scale=2.0, random_state=None):
        self.scale = scale
        self.random_state = random_state

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        self.sum_ = X.sum() + rng.laplace(scale=self.scale)
        return self


class Forgetful(NoisyMean):
    def __init__(self, n_clusters=2):
        super().__init__()
        self.n_clusters = n_clusters


def pair():
    return np.array([[1.0]]), np.array([[-1.0]])


def one():
    return (np.array([[1.0]]),)


@pytest.fixture
def dataset():
    rng = np.random.default_rng(0)
    X = rng.normal([10.0, -3.0], [2.0, 0.5], (500, 2))
    return {"X": X, "low": np.array([5.0, -4.0]), "high": np.array([15.0, -2.0]), "source": "own"}


def spec_of(estimator, fit, data, params=None, point=None):
    method = {"name": "mine", "estimator": estimator, "params": params or {}, "transforms": []}
    instance = [point or {"n_clusters": 3}, 0, [{"epsilon": 1.0}]]
    return {
        **SPEC,
        "fit": fit,
        "data": data,
        "share": None,
        "methods": [method],
        "instances": [instance],
    }


def test_random_state_is_a_generator_or_a_number():
    rng = np.random.default_rng(3)
    assert random_state_for(DPLloyd, rng) is rng
    number = random_state_for(KMeans, rng)
    assert isinstance(number, int)
    assert 0 <= number < 2**31


def test_k_means_of_another_library_is_fitted(dataset):
    spec = spec_of(
        "sklearn.cluster.KMeans",
        "privclust_papers.ckm.data.fit_clusters",
        "privclust_papers.shared.user_trials.clusters_trial",
        {"n_init": 1},
    )
    arrays, _ = run_block(spec, dataset)
    centers = arrays["mine/00000/centers"]
    assert centers.shape == (3, 2)
    again, _ = run_block(spec, dataset)
    np.testing.assert_array_equal(again["mine/00000/centers"], centers)


def test_a_mixture_of_another_library_is_fitted_in_the_ball(dataset):
    spec = spec_of(
        "sklearn.mixture.GaussianMixture",
        "privclust_papers.dpem.data.fit_mixture",
        "privclust_papers.shared.user_trials.mixture_trial",
        point={"n_clusters": 2, "n_starts": 2},
    )
    arrays, _ = run_block(spec, dataset)
    assert arrays["mine/00000/means"].shape == (2, 2, 2)
    assert isinstance(GaussianMixture(), object)


def test_a_class_without_what_is_read_is_named(dataset, monkeypatch):
    monkeypatch.setattr(
        runner,
        "load_object",
        lambda path: (
            {"mine": Forgetful}.get(path)
            or __import__("privclust_papers.settings.dotted", fromlist=["x"]).load_object(path)
        ),
    )
    spec = spec_of(
        "mine",
        "privclust_papers.ckm.data.fit_clusters",
        "privclust_papers.shared.user_trials.clusters_trial",
    )
    with pytest.raises(
        ConfigError, match="Forgetful has no 'cluster_centers_' after it was fitted"
    ):
        run_block(spec, dataset)


def test_errors_within_a_class_are_its_own(dataset, monkeypatch):
    class Broken(Forgetful):
        def fit(self, X, y=None):
            return np.linalg.nothing

    load = runner.load_object
    monkeypatch.setattr(runner, "load_object", lambda p: Broken if p == "mine" else load(p))
    spec = spec_of(
        "mine",
        "privclust_papers.ckm.data.fit_clusters",
        "privclust_papers.shared.user_trials.clusters_trial",
    )
    with pytest.raises(AttributeError, match="nothing"):
        run_block(spec, dataset)


def test_rows_of_a_mixture_lie_in_the_ball_by_the_box_alone(dataset):
    streams = TrialStreams(SPEC, {"n_clusters": 2}, 0)
    data = mixture_trial({"n_clusters": 2, "n_starts": 1}, 0, streams, dataset)
    rows = np.concatenate([data.X, data.extra["test"]])
    assert rows.shape == (500, 2)
    assert len(data.extra["test"]) == 50
    assert np.linalg.norm(rows, axis=1).max() <= 1.0
    corner = {**dataset, "X": np.array([[15.0, -2.0]] * 20)}
    moved = mixture_trial({"n_clusters": 2, "n_starts": 1}, 0, streams, corner)
    np.testing.assert_allclose(np.linalg.norm(moved.X, axis=1), 1.0)
    np.testing.assert_array_equal(dataset["low"], [5.0, -4.0])


@pytest.mark.parametrize("trial", [clusters_trial, mixture_trial])
def test_how_many_rows_lie_outside_the_box_is_a_fact(dataset, trial):
    point = {"n_clusters": 2, "n_starts": 1}
    X, low, high = dataset["X"], dataset["low"], dataset["high"]
    outside = [i for i in range(500) if any(X[i] < low) or any(X[i] > high)]
    assert 0 < len(outside) < 100
    facts = trial(point, 0, TrialStreams(SPEC, point, 0), dataset).facts
    assert facts == {"rows_outside": len(outside), "rows": 500}
    inside = {**dataset, "X": np.clip(X, low, high)}
    assert trial(point, 0, TrialStreams(SPEC, point, 0), inside).facts["rows_outside"] == 0


def test_rows_of_clusters_are_clipped_and_data_stay(dataset):
    before = dataset["X"].copy()
    data = clusters_trial({"n_clusters": 2}, 0, TrialStreams(SPEC, {}, 0), dataset)
    np.testing.assert_array_equal(data.X, np.clip(before, dataset["low"], dataset["high"]))
    np.testing.assert_array_equal(dataset["X"], before)


def test_a_far_row_does_not_hide_what_methods_find():
    """Lloyd's reference on rows as they are would have the one far row as a center of its own."""
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(c, 0.05, (500, 2)) for c in (-0.5, 0.5)] + [[[1e4, 1e4]]])
    rows = {"X": X, "low": np.full(2, -1.0), "high": np.ones(2), "source": "own"}
    data = clusters_trial({"n_clusters": 2}, 0, TrialStreams(SPEC, {}, 0), rows)
    _, _, best = nearest_center_statistics(data.X, np.array([[-0.5, -0.5], [0.5, 0.5]]))
    data.extra["reference"] = {"sse": best}
    found = evaluate_clusters(data, {"centers": np.array([[-0.4, -0.5], [0.5, 0.5]])})
    assert 1.0 < found["relative_sse"] < 4.0


@pytest.mark.parametrize("trial", [clusters_trial, mixture_trial])
def test_more_clusters_than_rows_are_refused(dataset, trial):
    with pytest.raises(ConfigError, match="got n_clusters: 501; it must be at most 500, the rows"):
        trial({"n_clusters": 501, "n_starts": 1}, 0, TrialStreams(SPEC, {}, 0), dataset)


def test_a_mixture_needs_rows_to_test_on(dataset):
    few = {**dataset, "X": dataset["X"][:9]}
    with pytest.raises(ConfigError, match="got 9 rows; a mixture may have 10 or more"):
        mixture_trial({"n_clusters": 2, "n_starts": 1}, 0, TrialStreams(SPEC, {}, 0), few)


@pytest.mark.parametrize(("scale", "convicted"), [(2.0, False), (0.5, True)])
def test_the_audit_convicts_too_little_noise(scale, convicted):
    from privclust_papers.audit.data import fit_case
    from privclust_papers.pipeline.runner import TrialData

    params = {
        "estimator": f"{__name__}.NoisyMean",
        "pair": f"{__name__}.pair",
        "read": "sum_",
        "epsilon": 1.0,
        "params": {"scale": scale},
    }
    data = TrialData(np.zeros((1, 1)), None, "worst pairs", extra={"cost": 0.01})
    streams = TrialStreams({**SPEC, "method": {"name": "mine"}}, {"cost": 0.01}, 0)
    found = fit_case(OwnMethod(**params), data, streams)
    assert (found["verdict"] == 1) == convicted


def test_what_is_no_pair_is_named():
    with pytest.raises(ConfigError, match="one: got tuple; it may return two data sets"):
        OwnMethod(f"{__name__}.NoisyMean", f"{__name__}.one", "sum_", 1.0)
