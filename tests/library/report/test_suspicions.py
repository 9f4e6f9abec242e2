"""What centers say of entries that were not read as their owner meant."""

from dataclasses import replace

import numpy as np
import pytest

from privclust.report.coordinate import (
    DATE,
    NUMBER,
    SHARE,
    Coordinate,
)
from privclust.report.suspicions import separated_by_categories, suspicions

COLUMNS = {"age": (0.0, 110.0), "day": ("2020-01-01", "2024-12-31"), "plan": ["basic", "plus"]}
BOTH = np.array([True, True])


def coordinates(ages, days, shares, error=1e-3):
    days, shares = np.array(days, dtype="datetime64[s]"), np.array(shares)
    errors = np.full(len(ages), error)
    return [
        Coordinate("age", "age", NUMBER, np.array(ages), errors),
        Coordinate("day", "day", DATE, days, errors),
        Coordinate("plan=basic", "plan", SHARE, shares, errors),
        Coordinate("plan=plus", "plan", SHARE, 1.0 - shares, errors),
    ]


GOOD = ([30.0, 60.0], ["2021-03-01", "2023-05-01"], [0.1, 0.9])


def test_nothing_is_said_of_columns_that_were_read():
    assert suspicions(coordinates(*GOOD), COLUMNS, BOTH) == []


@pytest.mark.parametrize(
    ("changed", "name", "word"),
    [
        (([55.02, 54.99], *GOOD[1:]), "age", "middle"),
        (([109.99, 0.0], *GOOD[1:]), "age", "an end"),
        ((GOOD[0], ["2022-07-02", "2022-07-02T12:00"], GOOD[2]), "day", "middle"),
        ((GOOD[0], ["2020-01-01", "2020-01-02"], GOOD[2]), "day", "an end"),
        ((*GOOD[:2], [0.5004, 0.4998]), "plan", "all categories alike"),
    ],
)
def test_a_column_that_was_not_is_told(changed, name, word):
    (remark,) = suspicions(coordinates(*changed), COLUMNS, BOTH)
    assert remark.startswith(f"column {name!r}")
    assert word in remark


def test_one_cluster_is_enough_and_hidden_ones_do_not_count():
    of_two = coordinates([60.0, 55.0], *GOOD[1:])
    (one,) = suspicions(of_two, COLUMNS, BOTH)
    assert "'age': cluster 2 lies in the middle" in one
    assert suspicions(of_two, COLUMNS, np.array([True, False])) == []
    assert suspicions(of_two, COLUMNS, ~BOTH) == []


@pytest.mark.parametrize(("spread", "n_remarks"), [(0.0, 1), (3.0, 1), (12.0, 0), (np.nan, 1)])
@pytest.mark.parametrize("place", [0, 1])
def test_entries_that_differ_were_read(place, spread, n_remarks):
    column = coordinates([60.0, 55.0], ["2021-03-01", "2022-07-02"], [0.1, 0.9])[place]
    width = 110.0 if place == 0 else 1826.0  # years, or days
    spreads = np.full(2, spread / 110.0 * width)
    errors = np.full(2, 1.5 / 110.0 * width)
    known = replace(column, spreads=spreads, spread_errors=errors)
    columns = {column.name: COLUMNS[column.name]}
    assert len(suspicions([known], columns, BOTH)) == n_remarks


def test_a_column_of_zeros_and_ones_is_no_alarm():
    ends = {"age": (0.0, 1.0)}
    assert suspicions(coordinates([0.0, 1.0], *GOOD[1:])[:1], ends, BOTH) == []
    (both,) = suspicions(coordinates([0.0, 100.0], *GOOD[1:])[:1], {"age": (0.0, 100.0)}, BOTH)
    assert "'age': clusters 1, 2 lie at an end" in both


@pytest.mark.filterwarnings("error")
def test_bounds_may_name_a_time_zone():
    day = coordinates(*GOOD)[1]
    ends = {"day": ("2020-01-01T00:00Z", "2024-12-31T00:00+02:00")}
    assert suspicions([day], ends, BOTH) == []


WITH_CATEGORIES = {"x": (0.0, 100.0), "cut": ["a", "b"], "make": ["u", "v"]}
OF_COORDINATE = ["x", "cut", "make"]


def separated(x, cut, make, columns=WITH_CATEGORIES, of=OF_COORDINATE, spread=1.0):
    """Remarks on clusters at these places, with one coordinate for each column."""
    centers = np.column_stack([x, cut, make])[:, : len(of)]
    k = len(centers)
    return separated_by_categories(
        columns, of, np.full(k, 1.0 / k), centers, np.full(centers.shape, spread)
    )


def test_a_category_that_separates_clusters_is_named():
    assert separated([50, 51], [0, 9], [3, 3]) == [
        "without column 'cut' there would be no separate clusters: in the other columns they "
        "overlap, one with the next"
    ]
    (both,) = separated([50, 51, 50, 51], [0, 9, 0, 9], [0, 0, 9, 9])
    assert "the columns of categories" in both


@pytest.mark.parametrize(
    ("x", "cut"), [([20, 80], [0, 9]), ([50, 51], [3, 3]), ([20, 80], [3, 3]), ([50], [0])]
)
def test_other_clusters_get_no_remark_on_categories(x, cut):
    assert separated(x, cut, [3] * len(x)) == []


def test_a_table_of_categories_only_gets_no_remark():
    assert separated([0, 9], [0, 9], [0, 0], {"cut": ["a", "b"]}, ["cut", "cut"]) == []
    assert separated([0, 9], [0, 9], [0, 0], {"cut": ["a", "b"]}, ["cut", "cut"], 0.0) == []
