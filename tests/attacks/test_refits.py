"""Attacks by a fit that fails: what stands afterwards must not be another fit's."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from privclust import embedding, kmeans, mixtures, subspaces
from privclust.privacy import Budget, BudgetError
from privclust.privacy.estimator import PrivateEstimator
from privclust.subspaces import KPlanes

SETTINGS = {
    "DPLloyd": {"bounds": (-1, 1), "max_iter": 2},
    "EUGkM": {"bounds": (-1, 1), "n_init": 1},
    "TreeKMeans": {"bounds": (-1, 1)},
    "PrivateKMeans": {"bounds": (-1, 1), "n_clusters": 2},
    "CompressiveKMeans": {"n_clusters": 2, "bounds": (-1, 1), "n_frequencies": 20},
    "PrivateGaussianMixture": {"norm_bound": 1.0, "max_iter": 1},
    "AdaptiveGaussianMixture": {"n_components": 2, "norm_bound": 1.0, "max_iter": 1},
    "MomentSubspaceClustering": {"n_clusters": 1, "last_round": False},
    "SuLQKPlanes": {"norm_bound": 1.0, "max_iter": 1},
    "GibbsSubspaceClustering": {"norm_bound": 1.0, "n_sweeps": 1, "n_kept": 0},
    "SampleAggregateSubspaceClustering": {
        **{"base": KPlanes(1, 1, n_init=1), "norm_bound": 1.0, "n_subsets": 10}
    },
    "PrivatePCA": {"norm_bound": 1.0},
}
ROOMS = (kmeans, mixtures, subspaces, embedding)
CLASSES = {
    name: thing
    for room in ROOMS
    for name in room.__all__
    if isinstance(thing := getattr(room, name), type) and issubclass(thing, PrivateEstimator)
}
CHARGED_IN_FIT = [name for name in CLASSES if name in SETTINGS]
X = np.clip(np.random.default_rng(0).normal(0, 0.3, (200, 3)), -0.5, 0.5)

pytestmark = pytest.mark.filterwarnings("ignore")


def fitted(name, epsilon):
    """A model of a class, fitted."""
    return CLASSES[name](**SETTINGS[name], epsilon=epsilon, random_state=0).fit(X)


def is_not_fitted(model):
    """Whether nothing of any fit is left."""
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    return set(vars(model)) == set(model.get_params(deep=False))


@pytest.mark.attack(
    claim="The attacks on refits below cover every private estimator that charges a ledger in its "
    "fit.",
    before="No test listed the estimators.",
    now="A new estimator must be added to the list.",
)
def test_all_estimators_that_charge_in_a_fit_are_attacked():
    later = {"DPdSNE", "PrivateRandomProjection"}  # whose calls of transform are releases
    assert set(CLASSES) - set(SETTINGS) <= later


@pytest.mark.attack(
    claim="Centers of one fit never appear under the guarantee of another.",
    before="After a ledger refused a refit, the model had centers of epsilon = 100 under a "
    "guarantee of 0.1.",
    now="A refused fit leaves the estimator unfitted.",
)
@pytest.mark.parametrize("name", CHARGED_IN_FIT)
def test_a_refused_refit(name):
    model = fitted(name, 100.0).set_params(epsilon=0.1)
    with Budget(epsilon=1e-9), pytest.raises(BudgetError):
        model.fit(X)
    assert is_not_fitted(model)


@pytest.mark.attack(
    claim="Centers of one fit never appear under the guarantee of another.",
    before="The same after a fit that was interrupted between its charge and its end.",
    now="An interrupted fit leaves the estimator unfitted.",
)
@pytest.mark.parametrize("name", CHARGED_IN_FIT)
def test_an_interrupted_refit(name, monkeypatch):
    model = fitted(name, 100.0).set_params(epsilon=0.1)
    cls = CLASSES[name]

    def interrupted(self, key, value):
        object.__setattr__(self, key, value)
        if key == "guarantee_":
            raise KeyboardInterrupt

    monkeypatch.setattr(cls, "__setattr__", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert is_not_fitted(model)


@pytest.mark.attack(
    claim="Centers of one fit never appear under the guarantee of another.",
    before="Refused parameters left the previous fit with its own guarantee. A guarantee set "
    "before a failed check remained.",
    now="Any error of a fit leaves the estimator unfitted.",
)
@pytest.mark.parametrize("name", CHARGED_IN_FIT)
def test_a_refit_with_a_bad_parameter(name):
    model = fitted(name, 1.0).set_params(epsilon=-1.0)
    with pytest.raises(ValueError, match="epsilon"):
        model.fit(X)
    assert is_not_fitted(model)


@pytest.mark.attack(
    claim="A user's own estimator that derives from the base class also never shows one fit's "
    "centers under another's guarantee.",
    before="Each class set its guarantee by itself.",
    now="The base class wraps the method fit of each subclass.",
)
def test_an_estimator_of_ones_own():
    class Own(PrivateEstimator, BaseEstimator):
        def fit(self, X, y=None):
            self.guarantee_ = "new"
            raise RuntimeError

    model = Own()
    model.center_ = 1.0
    with pytest.raises(RuntimeError):
        model.fit(X)
    assert vars(model) == {}
    assert clone(model).get_params() == {}
