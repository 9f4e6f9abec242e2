"""A report in words: no seed and no folder, a guarantee of any size, clusters in any units."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privclust.preprocessing import TableEncoder
from privclust.privacy import Guarantee, Loss, Release
from privclust.report import write
from privclust.report.coordinate import DATE, NUMBER, SHARE, Coordinate
from privclust.report.table_clusters import TableClusters
from privclust.report.words import (
    clusters_in_words,
    five_rows_in_words,
    guarantee_in_words,
    origin,
)

FOLDER = "/some/where"
ENCODER = TableEncoder(
    {"age": (0, 110), "day": ("2020-01-01", "2024-12-31"), "plan": ["basic", "plus"]}
)


@pytest.mark.parametrize("seed", ["--seed 4711", "--seed=4711", "--see 4711", "--s=4711"])
@pytest.mark.parametrize("output", ["-o {}/out", "-o{}/out", "--output={}/out", "--out {}/out"])
def test_neither_the_seed_nor_a_folder_is_shown(seed, output):
    words = ["cluster", f"{FOLDER}/a b.csv", *seed.split(), *output.format(FOLDER).split()]
    shown = origin(words, [f"{FOLDER}/a b.csv", f"{FOLDER}/out", None])
    assert "4711" not in shown
    assert FOLDER not in shown
    assert "'a b.csv'" in shown


def test_other_options_are_shown_as_they_were_given():
    words = ["cluster", "a.csv", "--separator", ";", "-o", "/", "--bounds", "x=0:1/2"]
    assert origin(words[:4], ["a.csv"]).endswith("privclust cluster a.csv --separator ';'")
    assert origin(["cluster", "a", "-o", ".."], ["a", ".."]).endswith("cluster a -o ..")


@given(
    epsilon=st.one_of(st.floats(0.0, 1e300, exclude_min=True), st.just(math.inf)),
    delta=st.sampled_from([0.0, 1e-300, 1e-6, 0.5, 1.0 - 2.0**-53]),
)
def test_a_guarantee_of_any_size_has_its_sentence(epsilon, delta):
    kind = "approximate" if delta else "pure"
    said = guarantee_in_words(Guarantee(kind, "replace-one", epsilon=epsilon, delta=delta))
    found = re.fullmatch(
        r"Replacing one row of the table changes the probability of any result from p to at most "
        r"(?:exp\((.*)\)|(.*?)) p(?: \+ (\S+))?\.",
        said,
    )
    if found[1]:
        assert float(found[1]) >= epsilon  # never rounded down
    else:
        assert float(found[2].replace(",", "")) >= math.exp(epsilon)
    assert float(found[3] or 0.0) >= delta
    assert not (found[3] or "").endswith(".")


@pytest.mark.parametrize("rho", [1e-9, 0.5, 1e6])
def test_a_guarantee_in_zcdp_has_one_too(rho):
    noise = Release("sums", "gaussian", "sigma 3", "by hand", Loss(rho=rho))
    said = guarantee_in_words(Guarantee.of([noise], "zcdp", "add-remove"))
    assert said.startswith("Adding or removing one row of the table changes the probability of")
    assert said.endswith(" p + 0.000001.")


@given(epsilon=st.floats(1e-6, 100.0), delta=st.sampled_from([0.0, 1e-300, 1e-6]))
def test_five_rows_lose_no_more_than_is_said(epsilon, delta):
    """Group privacy: 5 epsilon, and delta times the sum of exp(i epsilon), i from 0 to 4."""
    kind = "approximate" if delta else "pure"
    said = five_rows_in_words(Guarantee(kind, "replace-one", epsilon=epsilon, delta=delta))
    needed = delta * sum(math.exp(min(i * epsilon, 700.0)) for i in range(5))
    if said.endswith("not at all."):
        assert 5.0 * math.exp(min(4.0 * epsilon, 700.0)) * delta >= 1.0
        return
    found = re.search(r"up to (?:exp\((.*)\)|(.*?)) p(?: \+ (\S+))?\.$", said)
    factor = math.exp(min(float(found[1]), 700.0)) if found[1] else float(found[2].replace(",", ""))
    assert factor >= math.exp(min(5.0 * epsilon, 700.0)) * (1.0 - 1e-12)
    assert float(found[3] or 0.0) >= needed * (1.0 - 1e-12)
    by_person = Guarantee(kind, "replace-one", epsilon=epsilon, delta=delta, unit="group")
    assert five_rows_in_words(by_person) == ""


@pytest.mark.parametrize(
    ("epsilon", "factor"), [(0.01, "1.01006"), (1.0, "2.72"), (5.0, "149"), (50.0, "exp(50)")]
)
def test_the_factor_is_exp_of_epsilon(epsilon, factor):
    said = guarantee_in_words(Guarantee("pure", "replace-one", epsilon=epsilon))
    assert said.endswith(f"from p to at most {factor} p.")


def clusters(ages, errors, shares=(0.9, 0.2), weights=(0.6, 0.4)):
    """Two clusters of a table with a column of each kind."""
    days, shares = np.array(["2021-03-01", "2023-05-01"], "datetime64[s]"), np.array(shares)
    errors = np.array(errors, dtype=float)
    coordinates = (
        Coordinate("age", "age", NUMBER, np.array(ages, dtype=float), errors),
        Coordinate("day", "day", DATE, days, errors),
        Coordinate("plan=basic", "plan", SHARE, shares, errors),
        Coordinate("plan=plus", "plan", SHARE, 1.0 - shares, errors),
    )
    there, known = np.array([True, True]), np.array([True, True])
    weights = np.array(weights, dtype=float)
    promise = Guarantee("pure", "replace-one", epsilon=1.0)
    numbers = weights, errors, there, known, 1000, dict(ENCODER.columns), promise
    return TableClusters(coordinates, *numbers)


@pytest.mark.parametrize("known", [(True, True), (True, False), (False, False)])
def test_a_mark_says_that_errors_are_not_known_well(tmp_path, known):
    pytest.importorskip("matplotlib")
    spreads = {"spreads": np.ones(2), "spread_errors": np.full(2, 0.1)}
    both = clusters([30.0, 60.0], [0.5, 0.5])
    coordinates = [replace(c, **spreads) if c.kind != SHARE else c for c in both.coordinates]
    both = replace(both, coordinates=tuple(coordinates), is_reliable=np.array(known))
    write(both, tmp_path)
    report = (tmp_path / "report.html").read_text()
    n_marked = known.count(False)
    assert report.count(" ?</th>") == 3 * n_marked  # centers, shares of categories, spreads
    assert report.count("(?) About") == n_marked
    assert ("may be much too small" in report) == (not all(known))
    assert ("Only those of cluster 1 are reliable" in report) == (known == (True, False))


@pytest.mark.parametrize(
    ("unit", "n", "said"),
    [
        ("row", 1.2, "About 1 row in 2 clusters."),
        ("row", 12.3, "About 12 rows in 2 clusters."),
        ("row", 1, "1 row in 2 clusters."),
        ("group", 0.9, "About 1 person in 2 clusters."),
        ("group", 1234.0, "About 1,234 persons in 2 clusters."),
    ],
)
def test_one_record_is_in_the_singular(tmp_path, unit, n, said):
    both = clusters([30.0, 60.0], [0.5, 0.5])
    write(replace(both, n_records=n, guarantee=replace(both.guarantee, unit=unit)), tmp_path)
    assert said in (tmp_path / "report.html").read_text()


def wide_report(folder, n_columns, n_categories):
    """Write a report of two clusters; return its HTML."""
    values, errors = np.array([1.0, 2.0]), np.array([0.1, 0.2])
    names = [f"x{j}" for j in range(n_columns)]
    of_numbers = [Coordinate(name, name, NUMBER, values, errors) for name in names]
    kinds = [f"k{j}" for j in range(n_categories)]
    shares = [Coordinate(f"c={kind}", "c", SHARE, values / 2.5, errors) for kind in kinds]
    base = clusters([30.0, 60.0], [0.5, 0.5])
    columns = {name: (0.0, 9.0) for name in names} | {"c": kinds}
    told = replace(base, coordinates=(*of_numbers, *shares), columns=columns)
    write(told, folder)
    return (folder / "report.html").read_text()


@pytest.mark.parametrize(("n_columns", "n_categories"), [(1, 2), (6, 7), (7, 8), (40, 15)])
def test_every_column_is_in_a_table_of_at_most_seven(tmp_path, n_columns, n_categories):
    """A wider table would be cut off on paper; each row is a cluster."""
    report = wide_report(tmp_path, n_columns, n_categories)
    tables = re.findall(r"<thead>(.*?)</thead>", report)
    heads = [re.findall(r'<th scope="col">(.*?)</th>', table) for table in tables]
    shown = [head[1:] for head in heads if head[0] == "cluster"]
    assert max(map(len, shown)) <= 7
    expected = ["share of rows", *(f"x{j}" for j in range(n_columns))]
    expected += [f"c=k{j}" for j in range(n_categories)]
    assert [name for head in shown for name in head] == expected


def test_intervals_stay_in_the_range_of_their_quantity(tmp_path):
    errors = np.full(2, 0.05)
    spreads = {"spreads": np.array([0.01, 4.0]), "spread_errors": np.full(2, 0.1)}
    both = clusters([30.0, 60.0], [0.05, 0.05], shares=(0.95, 0.5))
    age, day, *shares = both.coordinates
    shares = [replace(share, errors=errors) for share in shares]
    write(replace(both, coordinates=(replace(age, **spreads), day, *shares)), tmp_path)
    report = (tmp_path / "report.html").read_text()
    for cell in (
        "at least 85.2 %",
        "at most 14.8 %",
        "50.0 ± 9.8 %",
        "about 0.21 or less",
        "about 4.0",
    ):
        assert f"<td>{cell}</td>" in report
    assert "at least 85 % with plan basic" in report


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("error", [0.0, 1e-300, 1e300, np.inf, np.nan])
def test_a_report_is_written_whatever_the_errors(tmp_path, error):
    """Its budget is spent already."""
    spreads = {"spreads": np.array([error, 1.0]), "spread_errors": np.full(2, error)}
    both = clusters([30.0, 60.0], [error, error])
    coordinates = [replace(c, **spreads) if c.kind != SHARE else c for c in both.coordinates]
    write(replace(both, coordinates=tuple(coordinates)), tmp_path)
    assert "age about" in (tmp_path / "report.html").read_text()


def test_clusters_are_said_to_the_digits_that_errors_leave():
    first, second = clusters_in_words(clusters([68.123, 33.456], [0.001, 0.4]))
    assert first == (
        "About 60.0 % of the rows: age about 68.1, day about 2021-03-01, about 90 % with plan basic"
    )
    assert second == (
        "About 40 % of the rows: age about 33.5, day about 2023-05-01, at least 1 % with plan plus"
    )


@given(
    ages=st.tuples(*[st.floats(-1e300, 1e300)] * 2),
    errors=st.tuples(*[st.one_of(st.floats(0.0, 1e300), st.just(np.inf))] * 2),
    shares=st.tuples(*[st.floats(-3.0, 3.0)] * 2),
    weights=st.sampled_from([(0.6, 0.4), (0.0, 0.0), (-0.1, 1.1), (-0.5, 0.5)]),
)
def test_any_numbers_have_their_sentences(ages, errors, shares, weights):
    with np.errstate(all="ignore"):
        said = clusters_in_words(clusters(ages, errors, shares, weights))
    assert len(said) == 2
    for sentence in said:
        *_, told = sentence.split(", ")
        if not told.startswith("most often plan "):
            percent = re.fullmatch(r"(?:at least|about) (\d+) % with plan .*", told)[1]
            assert 0.0 <= float(percent) <= 100.0
