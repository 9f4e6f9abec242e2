"""``privclust cluster`` with one or two columns of numbers: a tree of noisy counts."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from privclust.command import main
from privclust.kmeans import LloydKMeans, PrivateKMeans, TreeKMeans
from privclust.preprocessing import TableEncoder
from privclust.privacy import Budget, Guarantee
from privclust.report import TableClusters

pytest.importorskip("pyarrow")

FILES = {
    *("centers.csv", "clusters.json", "clusters.svg", "guarantee.json", "guarantee.txt"),
    "report.html",
}
BOUNDS = ("--bounds", "x=0:100,y=0:50")
PRIVACY = ("--epsilon", "1", "--delta", "1e-6", "--seed", "0")


def towns(n=60_000):
    """64 places in 8 towns in the plane, with a person's ID for two rows each."""
    rng = np.random.default_rng(0)
    middles = rng.uniform(0.1, 0.9, (8, 1, 2))
    places = (middles + rng.uniform(-0.06, 0.06, (8, 8, 2))).reshape(64, 2)
    rows = places[rng.integers(64, size=n)] + 0.002 * rng.standard_normal((n, 2))
    table = pd.DataFrame(rows * [100.0, 50.0], columns=["x", "y"])
    return table.assign(who=[f"p{i // 2}" for i in range(n)])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("towns") / "towns.csv"
    towns().to_csv(path, index=False)
    return path


def run(*args):
    return main(["cluster", *map(str, args)])


def loss(folder):
    """Mean squared distance to the nearest detected center, relative to the bounds."""
    centers = pd.read_csv(folder / "centers.csv")[["x", "y"]].dropna().to_numpy()
    scale = np.array([100.0, 50.0])
    return cdist(towns()[["x", "y"]] / scale, centers / scale, "sqeuclidean").min(axis=1).mean()


def test_many_small_clusters_in_two_columns_are_found(table, tmp_path):
    """A sketch has more than ten times the loss of Lloyd's algorithm here."""
    assert run(table, *BOUNDS, *PRIVACY, "--clusters", 64, "-o", tmp_path / "out") == 0
    scaled = towns()[["x", "y"]] / [100.0, 50.0]
    lloyd = LloydKMeans(64, n_init=5, random_state=0).fit(scaled)
    assert loss(tmp_path / "out") < 2.0 * lloyd.inertia_ / len(scaled)


def test_a_sketch_is_written_on_request(tmp_path, capsys):
    towns(1000).to_csv(tmp_path / "t.csv", index=False)
    for method, more in (("auto", set()), ("sketch", {"sketch.h5"})):
        how = (*BOUNDS, *PRIVACY, "--clusters", 2, "--method", method, "--force")
        assert run(tmp_path / "t.csv", *how, "-o", tmp_path / "out") == 0
        said = capsys.readouterr().err
        assert ("no sketch.h5: --method sketch writes one" in said) == (not more)
        assert set(os.listdir(tmp_path / "out")) == FILES | more


def test_files_and_guarantee_are_those_of_the_tree(table, tmp_path):
    out = tmp_path / "out"
    assert run(table, *BOUNDS, *PRIVACY, "--clusters", 64, "-o", out) == 0
    told = json.loads((out / "clusters.json").read_text())
    guarantee = Guarantee.from_dict(json.loads((out / "guarantee.json").read_text()))
    assert Guarantee.from_dict(told["guarantee"]) == guarantee
    assert guarantee.epsilon <= 1.0
    names = [line.name for line in guarantee.releases]
    assert any(name.startswith("counts of cells, level") for name in names)
    assert "missing and unreadable entries, by column" in names
    assert (guarantee.relation, guarantee.unit) == ("replace-one", "row")
    found = [cluster for cluster in told["clusters"] if cluster["is_detected"]]
    assert len(found) > 48
    # 0.2 of 100 and 0.1 of 50 are the true spreads
    spreads = np.array([[cluster["spread"][name] for name in "xy"] for cluster in found], float)
    spreads = spreads[~np.isnan(spreads[:, 0])]  # noise hides the others
    assert len(spreads) > 16
    np.testing.assert_allclose(spreads[:, 0], 2.0 * spreads[:, 1])  # one number for both columns
    assert 0.1 < np.median(spreads[:, 0]) < 0.6
    assert any("released by cluster only" in remark for remark in told["remarks"])
    assert "60,000" in (out / "report.html").read_text()


@pytest.mark.parametrize(
    "options",
    [
        ("--bounds", "x=0:100,y=0:50", "--delta", "1e-6"),  # the number is not given
        ("--bounds", "x=0:100,y=0:50", "--delta", "0", "--clusters", "2"),
        ("--bounds", "x=0:100", "--categories", "kind=a:b", "--delta", "1e-6", "--clusters", "2"),
        ("--bounds", "x=0:100,y=0:50,z=0:1", "--delta", "1e-6", "--clusters", "2"),
    ],
    ids=["auto", "pure", "categories", "three columns"],
)
def test_elsewhere_there_is_a_sketch(options, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0, 1, (400, 3)), columns=["x", "y", "z"])
    frame.assign(kind=["a", "b"] * 200).to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    assert run(tmp_path / "t.csv", *options, "--epsilon", 4, "--seed", 0, "-o", out) == 0
    assert (out / "sketch.h5").exists()


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize("of_persons", [False, True])
@pytest.mark.parametrize("missing", ["drop", "middle"])
def test_odd_entries_are_results_and_no_errors(neighbours, of_persons, missing, tmp_path):
    frame = towns(400).astype({"x": object, "y": object})
    frame.iloc[:6, 0] = [None, "unknown", 1e300, -1e300, "inf", "NaN"]
    frame.loc[6:9, "who"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    how = [*BOUNDS, *PRIVACY, "--clusters", 5, "--neighbours", neighbours, "--missing", missing]
    how += ["--groups", "who"] if of_persons else []
    assert run(tmp_path / "t.csv", *how, "-o", tmp_path / "out") == 0
    told = json.loads((tmp_path / "out" / "clusters.json").read_text())
    assert told["record"] == ("group" if of_persons else "row")
    assert 0.0 < told["n_records"] < 1000.0
    is_public = neighbours == "replace_one" and not of_persons and missing == "middle"
    assert (told["n_records"] == 400) == is_public


def test_no_rows_are_no_error_if_their_number_is_private(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n")
    how = (*BOUNDS, *PRIVACY, "--clusters", 3, "-o", tmp_path / "out")
    assert run(tmp_path / "t.csv", *how, "--neighbours", "add_remove") == 0
    assert run(tmp_path / "t.csv", *how, "--force") != 0


def test_dates_alone_and_private_bounds(tmp_path):
    days = np.random.default_rng(0).choice([100, 200], 5000).astype("timedelta64[D]")
    frame = pd.DataFrame({"day": np.datetime64("2020-01-01") + days, "x": days.astype(float)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "days"
    dates = ("--bounds", "day=2020-01-01:2021-01-01", "--clusters", 2)
    assert run(tmp_path / "t.csv", *dates, *PRIVACY, "-o", out) == 0
    assert sorted(pd.read_csv(out / "centers.csv")["day"].str[:7]) == ["2020-04", "2020-07"]
    out = tmp_path / "bounds"
    unknown = ("--columns", "x", "--private-bounds", "--clusters", 2)
    assert run(tmp_path / "t.csv", *unknown, *PRIVACY, "-o", out) == 0
    guarantee = Guarantee.from_dict(json.loads((out / "guarantee.json").read_text()))
    assert guarantee.epsilon <= 1.0
    assert not (out / "sketch.h5").exists()


def test_the_ledger_is_charged_once_and_refuses_without_a_loss(table, tmp_path, capsys):
    book = tmp_path / "budget.json"
    Budget.open(book, 1.2, 1e-5)
    how = (*BOUNDS, *PRIVACY, "--clusters", 8, "--budget", book)
    assert run(table, *how, "-o", tmp_path / "one") == 0
    spent = Budget.open(book).spent
    assert run(table, *how, "-o", tmp_path / "two") != 0
    assert Budget.open(book).spent == spent
    assert not (tmp_path / "two").exists() or not os.listdir(tmp_path / "two")


def test_a_tree_is_a_table_of_clusters_in_python_too():
    frame = towns(5000)
    encoder = TableEncoder({"x": (0, 100), "y": (0, 50)})
    how = {"epsilon": 4.0, "bounds": encoder.bounds_, "random_state": 0}
    X = encoder.transform(frame)
    tree, front = (kind(8, **how).fit(X) for kind in (TreeKMeans, PrivateKMeans))
    own, same = (TableClusters.of(encoder, model) for model in (tree, front))
    assert own.csv() == same.csv()
    np.testing.assert_array_equal(own.weights, np.sort(tree.weights_)[::-1])
    assert own.n_rows == 5000
