import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from privclust.kmeans import CompressiveKMeans, LloydKMeans
from privclust.preprocessing import TableEncoder

DECLARED = {
    "age": (0, 110),
    "since": ("2020-01-01", "2020-12-31"),
    "plan": ["basic", "plus", "pro"],
}
TABLE = {
    "age": [0, 55, 110, 200, -3],
    "since": ["2020-01-01", "2020-07-01 12:00", "2021-06-01", "2019-01-01", "2020-12-31"],
    "plan": ["basic", "plus", "pro", "basic", "plus"],
    "secret": ["never", "looked", "at", "by", "it"],
}


def encoder(**params):
    return TableEncoder(**{"columns": DECLARED, **params})


def test_each_column_is_mapped_by_what_is_declared_of_it():
    X = encoder().fit_transform(TABLE)
    np.testing.assert_allclose(X[:, 0], [0.0, 0.5, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(X[:, 1], [0.0, 182.5 / 365, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(X[:, 2:] ** 2, 0.5 * np.eye(3)[[0, 1, 2, 0, 1]])
    low, high = encoder().bounds_
    assert ((low <= X) & (high >= X)).all()
    names = ["age", "since", "plan=basic", "plan=plus", "plan=pro"]
    assert encoder().get_feature_names_out().tolist() == names


def test_a_category_is_as_far_as_a_whole_range():
    X = encoder(columns={"age": (0, 110), "plan": ["basic", "plus"]}).transform(
        {"age": [0, 110, 0], "plan": ["basic", "basic", "plus"]}
    )
    assert np.linalg.norm(X[0] - X[1]) == pytest.approx(1.0)
    assert np.linalg.norm(X[0] - X[2]) == pytest.approx(1.0)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, "arrow", "polars"])
def test_any_table_gives_the_same(make):
    if isinstance(make, str):
        make = {"arrow": "pyarrow", "polars": "polars"}[make]
        module = pytest.importorskip(make)
        table = module.table(TABLE) if make == "pyarrow" else module.DataFrame(TABLE)
    else:
        table = make(TABLE)
    np.testing.assert_array_equal(encoder().transform(table), encoder().transform(TABLE))


def test_typed_columns_are_read_as_they_are():
    frame = pd.DataFrame(TABLE)
    frame["since"] = pd.to_datetime(frame["since"], format="ISO8601")
    frame["plan"] = frame["plan"].astype("category")
    frame["age"] = frame["age"].astype("float32")
    np.testing.assert_allclose(encoder().transform(frame), encoder().transform(TABLE))
    numbers = TableEncoder({"rooms": ["1", "2"]}).transform({"rooms": np.array([1.0, 2.0])})
    np.testing.assert_array_equal(numbers > 0, np.eye(2, dtype=bool))


MISSING = {
    "age": [None, "old", np.nan, np.inf, "12"],
    "since": [None, "soon", "", pd.NaT, "2020-01-01T00:00:00+02:00"],
    "plan": [None, "other", np.nan, 3.5, "pro"],
}


def test_what_is_missing_or_unreadable_is_nan():
    X = encoder().transform(MISSING)
    assert np.isnan(X[:3]).all()
    assert np.isnan(X[3]).tolist() == [False, True, True, True, True]
    assert not np.isnan(X[4]).any()
    is_missing, is_unreadable = encoder().unread(MISSING)
    assert is_missing[:, 0].tolist() == [True, False, True, False, False]
    assert is_missing[:, 1].tolist() == [True, False, True, True, False]
    assert is_missing[:, 2].tolist() == [True, False, True, False, False]
    assert ((is_missing | is_unreadable) == np.isnan(X[:, :3])).all()
    assert not (is_missing & is_unreadable).any()


def test_missing_entries_count_as_the_middle_if_asked_for():
    X = encoder(missing="middle").transform(MISSING)
    np.testing.assert_allclose(X[:3, :2], 0.5)
    np.testing.assert_allclose(X[:4, 2:], np.sqrt(0.5) / 3)
    assert X[3, 0] == 1.0  # infinite is far, not missing
    assert X[4, 0] == pytest.approx(12 / 110)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder(missing="middle").fit_transform(MISSING)


def test_a_row_has_the_same_coordinates_among_any_others():
    both = {name: [*TABLE[name], *MISSING[name]] for name in MISSING}
    whole = encoder().transform(both)
    for i in range(10):
        alone = encoder().transform({name: both[name][i : i + 1] for name in both})
        np.testing.assert_array_equal(alone[0], whole[i])


def test_points_come_back_in_units_of_the_table():
    X = encoder().transform(TABLE)
    back = encoder().inverse_transform(X)
    np.testing.assert_allclose(back["age"], [0, 55, 110, 110, 0], atol=1e-12)
    assert back["since"][1] == np.datetime64("2020-07-01T12:00:00")
    np.testing.assert_allclose(back["plan=plus"], [0, 1, 0, 0, 1], atol=1e-12)
    means = encoder().inverse_transform(X.mean(axis=0, keepdims=True))
    assert means["plan=basic"][0] == pytest.approx(0.4)
    shares = encoder().inverse_transform(np.random.default_rng(0).normal(size=(50, 5)))
    total = sum(shares[f"plan={name}"] for name in DECLARED["plan"])
    np.testing.assert_allclose(total, 1.0)
    assert min(shares[f"plan={name}"].min() for name in DECLARED["plan"]) >= 0.0
    np.testing.assert_allclose(encoder().scale(), [110, 365, *[np.sqrt(2)] * 3])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "columns must be a mapping of names"),
        ([("age", (0, 1))], "columns must be a mapping of names"),
        ({"age": (1, 1)}, "column 'age': bounds must be numbers with low < high"),
        ({"age": (0, np.inf)}, "column 'age': bounds must be numbers"),
        ({"age": ("2021-01-01", "2020-01-01")}, "column 'age': bounds must be dates"),
        ({"age": ("soon", "later")}, "column 'age': bounds must be dates"),
        ({"age": 3}, "column 'age': must be declared as"),
        ({"age": ["one"]}, "column 'age': needs at least two categories"),
        ({"age": ["one", "one"]}, "none of them twice"),
        ({"other": (0, 1)}, "the table has no column 'other'"),
    ],
)
def test_declarations_that_are_none_are_named(columns, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(columns).fit(TABLE)


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(ValueError, match="missing must be one of drop, middle"):
        encoder(missing="skip").fit(TABLE)


def test_unequal_columns_are_refused():
    with pytest.raises(ValueError, match="columns must be of one length"):
        encoder(columns={"a": (0, 1), "b": (0, 1)}).transform({"a": [0.1], "b": [0.1, 0.2]})


def test_it_is_a_step_of_a_pipeline_and_centers_make_sense():
    """Raw columns of very different units: two kinds of customers are found in their own units."""
    rng = np.random.default_rng(0)
    n = 20_000
    kind = rng.integers(2, size=n)
    table = pd.DataFrame(
        {
            "age": np.where(kind, 65, 30) + rng.normal(0, 5, n),
            "income": np.where(kind, 30_000, 90_000) + rng.normal(0, 9_000, n),
            "plan": np.where(rng.random(n) < np.where(kind, 0.9, 0.2), "basic", "plus"),
        }
    )
    encode = clone(TableEncoder({"age": (0, 110), "income": (0, 200_000)}))
    kmeans = CompressiveKMeans(2, bounds=encode.bounds_, delta=1e-6, random_state=0)
    make_pipeline(encode, kmeans).fit(table)
    centers = encode.inverse_transform(kmeans.cluster_centers_)
    order = np.argsort(centers["age"])
    np.testing.assert_allclose(centers["age"][order], [30, 65], atol=1.5)
    np.testing.assert_allclose(centers["income"][order], [90_000, 30_000], atol=3_000)

    columns = {"age": (0, 110), "income": (0, 200_000), "plan": ["basic", "plus"]}
    encode = TableEncoder(columns)
    X = encode.transform(table)
    kmeans = CompressiveKMeans(4, bounds=encode.bounds_, delta=1e-6, random_state=0).fit(X)
    squares = [
        ((X[:, None] - found) ** 2).sum(axis=2).min(axis=1).sum()
        for found in (
            kmeans.cluster_centers_,
            LloydKMeans(4, random_state=0).fit(X).cluster_centers_,
        )
    ]
    assert squares[0] < 1.05 * squares[1]
    shares = encode.inverse_transform(kmeans.cluster_centers_)["plan=basic"]
    np.testing.assert_allclose(np.sort(shares), [0, 0, 1, 1], atol=0.05)
