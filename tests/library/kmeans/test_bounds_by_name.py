"""Bounds of columns by their names, in whatever order."""

import numpy as np
import pandas as pd
import pytest

from privclust.kmeans import CompressiveKMeans, DPLloyd, EUGkM, PrivateKMeans, TreeKMeans
from privclust.preprocessing import BoundsScaler

ENDS = {"income": (0, 4.0), "age": (-1.0, 3)}
LOW, HIGH = [-1.0, 0.0], [3.0, 4.0]
FRAME = pd.DataFrame(np.random.default_rng(0).uniform(0, 3, (500, 2)), columns=["age", "income"])
HOW = {"epsilon": 1.0, "random_state": 0}
ESTIMATORS = [
    CompressiveKMeans(2, delta=1e-6, **HOW),
    DPLloyd(2, **HOW),
    EUGkM(2, **HOW),
    TreeKMeans(2, **HOW),
    PrivateKMeans(2, **HOW),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")
def test_they_are_those_of_arrays(estimator):
    by_name = estimator.set_params(bounds=ENDS).fit(FRAME)
    centers, guarantee = by_name.cluster_centers_, by_name.guarantee_
    by_place = estimator.set_params(bounds=(LOW, HIGH)).fit(FRAME)
    np.testing.assert_array_equal(centers, by_place.cluster_centers_)
    assert guarantee == by_place.guarantee_


def test_a_scaler_takes_them_too():
    by_name = BoundsScaler(ENDS).fit_transform(FRAME)
    np.testing.assert_array_equal(by_name, BoundsScaler((LOW, HIGH)).fit_transform(FRAME))


@pytest.mark.parametrize(
    ("bounds", "X", "message"),
    [
        (ENDS, FRAME.to_numpy(), "need rows with names"),
        ({"age": (0, 1)}, FRAME, "'income' is not in bounds"),
        ({**ENDS, "wage": (0, 1)}, FRAME, "'wage' is not in the columns of X"),
        ({**ENDS, "age": 3}, FRAME, "of each column"),
        ({**ENDS, "age": (3, 0)}, FRAME, "low < high"),
    ],
)
def test_others_are_refused(bounds, X, message):
    for estimator in (*ESTIMATORS, BoundsScaler(None)):
        with pytest.raises(ValueError, match=message):
            estimator.set_params(bounds=bounds).fit(X)
