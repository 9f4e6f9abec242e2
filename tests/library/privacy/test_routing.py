"""IDs of persons reach a fit by scikit-learn's metadata routing, and by name only."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline

from privclust.kmeans import DPLloyd
from privclust.preprocessing import BoundsScaler

X = np.random.default_rng(0).uniform(-0.9, 0.9, (120, 2))
IDS = np.repeat(np.arange(40), 3)
pytestmark = pytest.mark.filterwarnings("ignore")


def zero(model, X, y=None):
    """A score that reads nothing."""
    return 0.0


def search(model):
    """Fit a search over numbers of clusters, with folds of persons."""
    grid = GridSearchCV(model, {"n_clusters": [2, 3]}, cv=GroupKFold(2), scoring=zero)
    return grid.fit(X, groups=IDS).best_estimator_


def test_a_search_protects_persons_where_groups_are_requested():
    model = DPLloyd(bounds=(-1, 1), random_state=0)
    with config_context(enable_metadata_routing=True):
        with pytest.raises(UnsetMetadataPassedError, match="groups"):
            search(model)
        assert search(model.set_fit_request(groups=True)).guarantee_.unit == "group"
        assert search(model.set_fit_request(groups=False)).guarantee_.unit == "row"


def test_a_pipeline_passes_them_on():
    model = DPLloyd(2, bounds=(-1, 1), random_state=0)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(BoundsScaler((-1, 1)), model.set_fit_request(groups=True))
        assert pipeline.fit(X, groups=IDS)[-1].guarantee_.unit == "group"


def test_the_third_argument_is_none_of_groups():
    """It is the weights of rows elsewhere."""
    with pytest.raises(TypeError, match="positional"):
        DPLloyd(2, bounds=(-1, 1)).fit(X, None, IDS)


def test_requests_outlive_a_refused_fit():
    with config_context(enable_metadata_routing=True):
        model = DPLloyd(2, bounds=(-1, 1)).set_fit_request(groups=True)
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1.0).fit(X)
    assert model.get_metadata_routing().fit.requests["groups"] is True
