"""Attacks on rows before a fit: scalers that look at all rows, and one that looks at none."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privclust.kmeans import DPLloyd
from privclust.preprocessing import AppendOne, BoundsScaler
from privclust.privacy import PrivacyLeakWarning
from privclust.privacy.estimator import PrivateEstimator, private_records
from privclust_audit.black_box import bounds_from_counts

LOW, HIGH = np.array([0.0, 0.0]), np.array([120.0, 1e6])
STRANGE = (0.0, 1e9, 1e308, np.inf, -np.inf, np.nan)


class Fit(PrivateEstimator, BaseEstimator):
    """What private estimators do before anything else."""

    def __init__(self, bounds):
        self.bounds = bounds

    def fit(self, X, y=None):
        self.rows_ = private_records(self, X, dtype=[np.float64, np.float32]).rows
        return self


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(LOW, HIGH, size=(2000, 2))


def with_row(X, row):
    """The neighbour of X whose first record is another."""
    return np.vstack([np.broadcast_to(row, (1, X.shape[1])), X[1:]])


def proved_epsilon(scaler, n_runs=300):
    """What an attack proves of DPLloyd at (1, 0) behind a scaler: a record far away, or not."""
    half = 1.0 if isinstance(scaler, BoundsScaler) else 5.0 / 3.0
    groups = np.repeat([[0.2, 0.2], [0.8, 0.8]], 500, axis=0)
    X = HIGH * (groups + 0.02 * np.random.default_rng(0).normal(size=groups.shape))
    hits = []
    for rows in (X, with_row(X, HIGH * 1e7)):
        starts = 0.6 * half * np.array([[-1.0, -1.0], [1.0, 1.0]])
        settings = {"bounds": (-3 * half, 3 * half), "init": starts, "max_iter": 1}
        hits.append(0)
        for seed in range(n_runs):
            model = DPLloyd(2, epsilon=1.0, random_state=seed, **settings)
            first = make_pipeline(scaler, model).fit(rows)[-1].cluster_centers_[0]
            hits[-1] += bool((np.abs(first - starts[0]) < 0.3 * half).all())
    return bounds_from_counts(hits[0], n_runs, hits[1], n_runs, epsilon=1.0)[0]


@pytest.mark.attack(
    claim="DPLloyd with its own bounds is (1, 0)-private after a scaler that uses only declared "
    "bounds, and warns after any other.",
    before="StandardScaler: one record changed all rows, epsilon was at least 4.2, and there was "
    "no warning.",
    now="With BoundsScaler, the audit finds no violation. For StandardScaler, the documentation "
    "and a warning say that no guarantee covers it.",
)
@pytest.mark.filterwarnings("ignore")
def test_one_record_changes_all_rows_of_a_fitted_scaler():
    assert proved_epsilon(StandardScaler()) > 4.0
    assert proved_epsilon(BoundsScaler((LOW, HIGH))) <= 1.0


@pytest.mark.attack(
    claim="A scaler fitted to private data is detected before the private fit, as in a Pipeline "
    "of StandardScaler and a private fit with bounds=(-5, 5).",
    before="Exact means and deviations were used without a warning.",
    now="A PrivacyLeakWarning before the fit, whichever record is replaced, in either precision.",
)
def test_a_scaler_fitted_to_the_data_is_detected(X):
    for row in (X[0], *STRANGE[:2]):
        for dtype in (np.float32, np.float64):
            for ddof in (0, 1):  # StandardScaler, and by hand
                rows = with_row(X, row)
                rows = (rows - rows.mean(axis=0)) / rows.std(axis=0, ddof=ddof)
                with pytest.warns(PrivacyLeakWarning, match="own statistics"):
                    Fit((-5, 5)).fit(rows.astype(dtype))
            with pytest.warns(PrivacyLeakWarning, match="own statistics"):
                make_pipeline(StandardScaler(), Fit((-5, 5))).fit(with_row(X, row).astype(dtype))


@pytest.mark.attack(
    claim="After a scaler that uses only declared bounds, neighbouring data sets are still "
    "neighbours.",
    before="There was no such scaler; after StandardScaler, one replaced record changed all 2,000 "
    "rows.",
    now="BoundsScaler: one row differs, the others have the same bits, and the fitted state is "
    "the same.",
)
@pytest.mark.parametrize("clip", [False, True])
def test_a_scaler_by_bounds_learns_nothing(X, clip):
    fitted = BoundsScaler((LOW, HIGH), clip=clip).fit(X)
    scaled = fitted.transform(X)
    for value in STRANGE:
        other = BoundsScaler((LOW, HIGH), clip=clip).fit(with_row(X, value))
        assert pickle.dumps(other) == pickle.dumps(BoundsScaler((LOW, HIGH), clip=clip).fit(X))
        differs = other.transform(with_row(X, value)).view(np.int64) != scaled.view(np.int64)
        assert set(np.flatnonzero(differs.any(axis=1))) == {0}
    moved = StandardScaler().fit_transform(with_row(X, 1e9)) != StandardScaler().fit_transform(X)
    assert moved.any(axis=1).all()


@pytest.mark.attack(
    claim="A scaled row depends only on that row.",
    before="No scaler claimed this.",
    now="The same bits one by one, in blocks, in reverse, at any offset and in single precision.",
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_scaled_row_does_not_depend_on_other_rows(X, dtype):
    strange = np.repeat([np.inf, -np.inf, np.nan], 2).reshape(3, 2)
    X = np.vstack([strange, np.tile(X * 1.3, (10, 1))]).astype(dtype)  # more rows than a block
    scaler = BoundsScaler((LOW, HIGH), feature_range=(-0.7, 0.7)).fit(X)
    scaled = scaler.transform(X).tobytes()
    one_by_one = b"".join(scaler.transform(row[None]).tobytes() for row in X[:500])
    assert scaled.startswith(one_by_one)
    assert scaler.transform(X[::-1])[::-1].tobytes() == scaled
    assert scaler.transform(np.asfortranarray(X)).tobytes() == scaled
    for offset in range(1, 8):
        parts = [scaler.transform(X[:offset]), scaler.transform(X[offset:])]
        assert np.vstack(parts).tobytes() == scaled


@pytest.mark.attack(
    claim="No record decides between a result and an exception.",
    before="An infinite entry raised an error in StandardScaler.",
    now="BoundsScaler accepts any record; with clip=True, the result lies in the range.",
)
@pytest.mark.parametrize("clip", [False, True])
def test_no_record_stops_a_scaled_fit(X, clip):
    with pytest.raises(ValueError, match="infinity"):
        StandardScaler().fit(with_row(X, np.inf))
    for value in STRANGE:
        pipeline = make_pipeline(BoundsScaler((LOW, HIGH), clip=clip), Fit((-1, 1)))
        rows = pipeline.fit(with_row(X, value))[-1].rows_
        assert np.abs(rows[0 if clip else 1 :]).max() <= 1.0


@pytest.mark.attack(
    claim="add_remove after a scaler hides whether a record is present.",
    before="1 row gave a result; 0 rows gave 'Found array with 0 sample(s)'. AppendOne quoted a "
    "cell.",
    now="BoundsScaler and AppendOne accept any number of rows and any cells, and quote none.",
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scaler", [BoundsScaler((-1, 1)), AppendOne()])
def test_no_rows_and_odd_cells_pass_a_scaler(scaler):
    odd = np.array([[np.nan, 0.5], ["SECRET", 10**400]], dtype=object)
    model = DPLloyd(2, bounds=(-1, 1), neighbours="add_remove", random_state=0)
    for rows in (np.zeros((1, 2)), np.zeros((0, 2)), odd):
        centers = make_pipeline(scaler, model).fit(rows)[-1].cluster_centers_
        assert np.isfinite(centers).all()


@pytest.mark.attack(
    claim="A table scaled by its own statistics is detected.",
    before="It was not detected if one cell was missing, as in most raw tables.",
    now="A warning, with and without missing cells.",
)
def test_a_missing_cell_hides_no_scaler():
    X = np.random.default_rng(0).normal(40.0, 12.0, (500, 3))
    X[::7, 1] = np.nan
    model = DPLloyd(2, bounds=(-4, 4), random_state=0)
    with pytest.warns(PrivacyLeakWarning, match="its own statistics"):
        model.fit(StandardScaler().fit_transform(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        model.fit((X - 40.0) / 12.0)
