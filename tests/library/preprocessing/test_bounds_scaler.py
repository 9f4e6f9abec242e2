"""Scaling by declared bounds: exact at the corners, the same for all data, row by row."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privclust.kmeans import DPLloyd
from privclust.preprocessing import BoundsScaler
from privclust.privacy import PrivacyLeakWarning
from privclust.privacy.bounds import Box

LOW, HIGH = np.array([0.0, -7e5, 0.1]), np.array([120.0, 1e6, 0.3])
PAGE = Path(__file__).parents[3] / "docs/scaling.md"


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(LOW, HIGH, size=(1000, 3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.1, 0.3), (-0.1, 1e-3), (1.0, 1.0 + 1e-6)])
def test_the_box_is_mapped_onto_the_range_and_no_row_leaves_it(X, dtype, ends):
    """The formula, and bounds of the range that hold as represented."""
    X = np.vstack([X, LOW, HIGH, np.nextafter(LOW, HIGH), np.nextafter(HIGH, LOW)]).astype(dtype)
    X = Box(LOW, HIGH).clipped(X)  # 0.3 in single precision is outside
    scaled = BoundsScaler((LOW, HIGH), feature_range=ends).fit_transform(X)
    assert scaled.dtype == dtype
    assert scaled.min() >= ends[0]
    assert scaled.max() <= ends[1]
    expected = ends[0] + (X.astype(np.float64) - LOW) / (HIGH - LOW) * (ends[1] - ends[0])
    rounding = 8 * np.finfo(dtype).eps * max(map(abs, ends))
    np.testing.assert_allclose(scaled, expected, rtol=0, atol=rounding)


def test_corners_are_mapped_to_corners_and_back():
    for ends in ((-3.0, 5.0), (-0.7, 0.1), (-7.3, 11.1)):  # -7.3 + (11.1 + 7.3) is not 11.1
        scaler = BoundsScaler((LOW, HIGH), feature_range=ends).fit(LOW[None])
        for corner, end in ((LOW, ends[0]), (HIGH, ends[1])):
            assert (scaler.transform(corner[None]) == end).all()
            assert (scaler.inverse_transform(np.full((1, 3), end)) == corner).all()


def test_centers_come_back_in_the_units_of_the_data(X):
    scaler = BoundsScaler((LOW, HIGH)).fit(X)
    back = scaler.inverse_transform(scaler.transform(X))
    np.testing.assert_allclose(back, X, rtol=0, atol=1e-15 * np.abs([LOW, HIGH]).max())
    beyond = scaler.inverse_transform([[3.0, 0.0, np.nan]])  # nothing is clipped
    np.testing.assert_allclose(beyond, [[240.0, 1.5e5, np.nan]])


def test_rows_outside_go_on_or_are_drawn_in():
    X = np.array([[-1.0, 3.0], [np.inf, -np.inf], [np.nan, 1.0], [1.7e308, -1.7e308]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        beyond = BoundsScaler((0, 2)).fit_transform(X)
        clipped = BoundsScaler((0, 2), clip=True).fit_transform(X)
        single = BoundsScaler((0, 1e-3), clip=True).fit_transform((X[:3] * 1e38).astype(np.float32))
    np.testing.assert_array_equal(beyond[:3], [[-2, 2], [np.inf, -np.inf], [np.nan, 0]])
    np.testing.assert_array_equal(clipped, [[-1, 1], [1, -1], [0, 0], [1, -1]])
    np.testing.assert_array_equal(single, [[-1, 1], [1, -1], [0, 1]])


def test_a_fit_knows_the_number_of_features_and_nothing_else(X):
    scaler = BoundsScaler((LOW, HIGH))
    states = [
        clone(scaler).fit(rows).__dict__ for rows in (X, X[:3] * 1e9, np.full((1, 3), np.nan))
    ]
    for state in states:
        assert sorted(state) == ["bounds", "clip", "feature_range", "n_features_in_"]
        assert state["n_features_in_"] == 3


def test_no_fit_is_needed_and_no_rows_are_no_trouble(X):
    scaler = BoundsScaler((LOW, HIGH))
    np.testing.assert_array_equal(scaler.transform(X), scaler.fit(X).transform(X))
    assert scaler.transform(np.empty((0, 3))).shape == (0, 3)


def test_names_of_features_are_kept(X):
    table = pd.DataFrame(X, columns=["age", "income", "rate"])
    scaler = BoundsScaler((LOW, HIGH)).set_output(transform="pandas")
    assert list(scaler.fit_transform(table).columns) == ["age", "income", "rate"]
    assert list(scaler.get_feature_names_out()) == ["age", "income", "rate"]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (([0, 1, 2], [1, 1, 3]), "low < high on every axis, got 1 and 1 for feature 1"),
        ((1.0, -1.0), "low < high on every axis, got 1 and -1 for feature 0"),
        ((0.0, np.inf), "got 0 and inf for feature 0"),
        (([0, 0], [1, 1]), r"bounds must be .* of shape \(3,\)"),
        (5.0, r"bounds must be \(low, high\)"),
        ((0.0, 1e200), "magnitude of at most 1e\\+100"),
    ],
)
def test_bad_bounds_are_named(X, bounds, message):
    with pytest.raises(ValueError, match=message):
        BoundsScaler(bounds).fit(X)


@pytest.mark.parametrize("ends", [(1.0, 1.0), (0.0, np.nan), (0.0,), ([0.0], [1.0]), (1, 0)])
def test_a_bad_range_is_named(X, ends):
    with pytest.raises(ValueError, match="feature_range must be"):
        BoundsScaler((LOW, HIGH), feature_range=ends).fit(X)


def test_messages_hold_no_cell():
    for method in ("fit", "transform", "inverse_transform"):
        with pytest.raises(ValueError, match="Expected 2D array") as raised:
            getattr(BoundsScaler((0, 1)), method)(["Mary", "Bob"])
        assert "Mary" not in str(raised.value)


def test_rows_of_a_list_have_as_many_columns_as_most_of_them():
    rows = BoundsScaler((0, 2)).fit_transform([[1.0, 2.0], [1.0, 2.0, 9.0], [1.0], [2.0, "x"]])
    np.testing.assert_array_equal(rows, [[0, 1], [0, 1], [0, np.nan], [1, np.nan]])


def test_text_counts_as_no_number():
    rows = BoundsScaler((0, 1), clip=True).fit_transform([["Mary", 1.0]])
    assert rows.tolist() == [[0.0, 1.0]]


def test_it_does_not_hide_a_scaler_before_it(X):
    """What it returns is standardised no more, so that it must tell itself."""
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler"):
        make_pipeline(StandardScaler(), BoundsScaler((-5, 5))).fit(X)


def test_a_pipeline_finds_centers_in_the_units_of_the_data():
    rng = np.random.default_rng(1)
    centers = np.array([[30.0, 2e5], [70.0, 8e5]])
    X = np.repeat(centers, 5000, axis=0) + rng.normal(size=(10_000, 2)) * [3.0, 2e4]
    model = DPLloyd(2, epsilon=2.0, bounds=(-1, 1), init="separated", random_state=0)
    pipeline = make_pipeline(BoundsScaler(([0, 0], [120, 1e6])), model).fit(X)
    released = pipeline[0].inverse_transform(model.cluster_centers_)
    released = released[np.argsort(released[:, 0])]
    np.testing.assert_allclose(released, centers, atol=0, rtol=0.05)


def test_the_page_on_scaling_runs_as_it_stands(capsys):
    page = PAGE.read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```\n", page, re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    told = re.findall(r"```text\n(.*?)```\n", page, re.S)
    assert capsys.readouterr().out == "".join(told)
