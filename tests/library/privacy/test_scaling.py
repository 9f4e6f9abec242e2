"""What tells rows that were scaled by their own statistics."""

import inspect
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.preprocessing import MinMaxScaler, PowerTransformer, StandardScaler

from privclust.kmeans import DPLloyd
from privclust.privacy import PrivacyLeakWarning, scaling
from privclust.privacy.estimator import PrivateEstimator, private_records
from privclust.privacy.scaling import is_standardised


class Fit(PrivateEstimator, BaseEstimator):
    def __init__(self, bounds=None, norm_bound=None, epsilon=1.0):
        self.bounds, self.norm_bound, self.epsilon = bounds, norm_bound, epsilon


@pytest.fixture
def X():
    skewed = np.random.default_rng(0).gamma(2.0, size=(500, 4)) * [1.0, 1e-6, 1e5, 30.0]
    return skewed + np.array([0.0, 1.0, 2e9, 2000.0])


@pytest.mark.parametrize(
    ("scaler", "is_told"),
    [
        (StandardScaler(), True),
        (PowerTransformer(), True),
        (PCA(whiten=True), True),
        (StandardScaler(with_std=False), False),
        (MinMaxScaler(), False),  # rows that were clipped to declared bounds look the same
    ],
    ids=str,
)
def test_scalers_that_leave_deviations_of_one_are_told(scaler, is_told):
    X = np.random.default_rng(0).gamma(2.0, size=(500, 3))
    assert is_standardised(scaler.fit_transform(X)) == is_told


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("n", [3, 4, 500])
def test_scaling_by_hand_is_told_in_either_precision(X, dtype, ddof, n):
    X = X[:n]
    scaled = ((X - X.mean(axis=0)) / X.std(axis=0, ddof=ddof)).astype(dtype)
    assert is_standardised(scaled)
    assert is_standardised(scaled.astype(np.float64))  # an estimator may widen what it is given
    assert is_standardised(scaled.T.copy().T)


@pytest.mark.parametrize(("dtype", "mean"), [(np.float32, 400.0), (np.float64, 1e9)])
def test_a_mean_of_many_deviations_is_told(dtype, mean):
    for n in (1000, 200_000):  # one block, and several
        X = np.random.default_rng(1).exponential(size=(n, 2)) + mean
        assert is_standardised(StandardScaler().fit_transform(X.astype(dtype)))


def test_constant_columns_and_integers_prove_nothing(X):
    scaled = StandardScaler().fit_transform(X)
    constant = np.c_[np.zeros(500), scaled, np.full(500, 7.0)]
    assert is_standardised(constant)
    balanced = np.tile([[-1.0], [1.0]], (250, 1))
    assert is_standardised(np.c_[scaled, balanced])
    for other in (balanced, np.zeros((500, 3)), np.ones((500, 1)), np.empty((500, 0))):
        assert not is_standardised(other)


def test_one_column_that_is_not_standardised_is_enough(X):
    scaled = StandardScaler().fit_transform(X)
    for j in range(4):
        for other in (scaled[:, j] * (1 + 1e-6), scaled[:, j] + 1e-4, X[:, j]):
            assert not is_standardised(np.c_[scaled[:, :j], other, scaled[:, j + 1 :]])


def test_few_rows_and_rows_that_are_no_numbers_are_silent():
    two = np.array([[1.0, -1.0], [-1.0, 1.0]])
    for X in (
        np.empty((0, 2)),
        two[:1],
        two,
        two * np.sqrt(0.5),
        np.full((5, 2), np.nan),
        np.full((5, 2), 1e200),
    ):
        assert not is_standardised(X)
    for strange in (np.nan, np.inf, -np.inf, 1e308):  # no warning of NumPy's either
        rows = np.vstack([StandardScaler().fit_transform(np.eye(4)), [strange] * 4])
        assert is_standardised(rows) == np.isnan(strange)  # a scaler leaves out what is missing


def test_false_alarms_are_as_rare_as_said(monkeypatch):
    """With tolerances s and t the chance is 0.9 to 1.8 s t n, if the scale is exactly right."""
    s, t, n, n_runs = 2e-2, 1e-2, 100, 10_000
    monkeypatch.setattr(scaling, "_MEAN", s)
    monkeypatch.setattr(scaling, "_DEVIATION", t)
    rng = np.random.default_rng(2)
    alarms = sum(is_standardised(rng.normal(size=(n, 1))) for _ in range(n_runs))
    assert alarms >= stats.binom.ppf(1e-6, n_runs, 0.9 * s * t * n)
    assert alarms <= stats.binom.ppf(1 - 1e-6, n_runs, 1.8 * s * t * n)


def test_usual_data_are_read_in_one_column(monkeypatch):
    read = []
    moments = scaling._moments
    monkeypatch.setattr(scaling, "_moments", lambda column: read.append(1) or moments(column))
    assert not is_standardised(np.random.default_rng(3).uniform(-1, 1, (1000, 8)))
    assert len(read) == 1


def test_a_private_fit_with_bounds_warns(X):
    scaled = StandardScaler().fit_transform(X)
    for declared in ({"bounds": (-5, 5)}, {"norm_bound": 9.0}, {"bounds": (-9, 9), "epsilon": 0.1}):
        with pytest.warns(PrivacyLeakWarning, match="BoundsScaler") as caught:
            private_records(Fit(**declared), scaled)
        assert "500" not in str(caught[0].message)


def test_other_fits_and_later_calls_are_silent(X):
    scaled = StandardScaler().fit_transform(X)
    fitted = Fit((-5, 5))
    fitted.n_features_in_ = 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private_records(Fit(), scaled)  # bounds from the data are warned of where they are taken
        private_records(Fit((-5, 5), epsilon=None), scaled)
        private_records(Fit((-5, 5)), X)
        private_records(fitted, scaled, reset=False)


def test_the_warning_is_that_of_the_line_that_fits(X):
    model = DPLloyd(2, bounds=(-5, 5), random_state=0)
    line = inspect.currentframe().f_lineno + 2
    with pytest.warns(PrivacyLeakWarning) as caught:
        model.fit(StandardScaler().fit_transform(X))
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)
