"""Fits of classes that are not ours."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from privclust.kmeans import DPLloyd
from privclust_papers.audit.cases.user_method import OwnMethod
from privclust_papers.pipeline import runner
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for, run_block
from privclust_papers.settings.config import ConfigError

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


def rows_trial(point, trial, streams, dataset):
    """Rows in the unit ball."""
    X = np.random.default_rng(0).normal(scale=0.1, size=(500, 2))
    extra = {**point, "bounds": (-np.ones(2), np.ones(2)), "n_frequencies": None, "test": X[:50]}
    return TrialData(X, None, "made", extra=extra)


def spec_of(estimator, fit, params=None, point=None):
    method = {"name": "mine", "estimator": estimator, "params": params or {}, "transforms": []}
    instance = [point or {"n_clusters": 3}, 0, [{"epsilon": 1.0}]]
    return {
        **SPEC,
        "fit": fit,
        "data": f"{__name__}.rows_trial",
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


def test_k_means_of_another_library_is_fitted():
    spec = spec_of(
        "sklearn.cluster.KMeans",
        "privclust_papers.ckm.data.fit_clusters",
        {"n_init": 1},
    )
    arrays, _ = run_block(spec, None)
    centers = arrays["mine/00000/centers"]
    assert centers.shape == (3, 2)
    again, _ = run_block(spec, None)
    np.testing.assert_array_equal(again["mine/00000/centers"], centers)


def test_a_mixture_of_another_library_is_fitted_in_the_ball():
    spec = spec_of(
        "sklearn.mixture.GaussianMixture",
        "privclust_papers.dpem.data.fit_mixture",
        point={"n_clusters": 2, "n_starts": 2},
    )
    arrays, _ = run_block(spec, None)
    assert arrays["mine/00000/means"].shape == (2, 2, 2)
    assert isinstance(GaussianMixture(), object)


def test_a_class_without_what_is_read_is_named(monkeypatch):
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
    )
    with pytest.raises(
        ConfigError, match="Forgetful has no 'cluster_centers_' after it was fitted"
    ):
        run_block(spec, None)


def test_errors_within_a_class_are_its_own(monkeypatch):
    class Broken(Forgetful):
        def fit(self, X, y=None):
            return np.linalg.nothing

    load = runner.load_object
    monkeypatch.setattr(runner, "load_object", lambda p: Broken if p == "mine" else load(p))
    spec = spec_of(
        "mine",
        "privclust_papers.ckm.data.fit_clusters",
    )
    with pytest.raises(AttributeError, match="nothing"):
        run_block(spec, None)


@pytest.mark.parametrize(("scale", "convicted"), [(2.0, False), (0.5, True)])
def test_the_audit_convicts_too_little_noise(scale, convicted):
    from privclust_papers.audit.data import fit_case

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
