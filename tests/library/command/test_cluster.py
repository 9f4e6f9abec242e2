import datetime
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist

from privclust.command import main
from privclust.kmeans import LloydKMeans
from privclust.preprocessing import TableEncoder
from privclust.privacy import Budget, Guarantee
from privclust.sketches import Sketch

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

DECLARED = [
    *("--bounds", "age=0:110,income=0:200000", "since=2020-01-01:2024-12-31"),
    *("--categories", "plan=basic:plus:pro"),
]
PRIVACY = ["--epsilon", "2", "--delta", "1e-6", "--seed", "0"]
FILES = {
    *("centers.csv", "clusters.json", "clusters.svg", "guarantee.json", "guarantee.txt"),
    *("report.html", "sketch.h5"),
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    customer = rng.integers(0, 6000, 12_000)
    is_old = (rng.random(6000) < 0.4)[customer]
    days = np.where(is_old, 1200, 200) + rng.normal(0, 40, 12_000)
    return pd.DataFrame(
        {
            "customer": [f"c{number}" for number in customer],
            "age": np.where(is_old, 68.0, 33.0) + rng.normal(0, 5, 12_000),
            "income": np.where(is_old, 30_000.0, 90_000.0) + rng.normal(0, 6000, 12_000),
            "since": np.datetime64("2020-01-01") + days.astype("timedelta64[D]"),
            "plan": np.where(is_old, "basic", "plus"),
            "secret": "4711-0815-4711",
        }
    )


@pytest.fixture(scope="module")
def table(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "customers.csv"
    frame.to_csv(path, index=False)
    return str(path)


@pytest.fixture(scope="module")
def of_csv(table, tmp_path_factory):
    """The folder of two clusters of the table."""
    out = tmp_path_factory.mktemp("of_csv") / "out"
    assert run(table, *DECLARED, *PRIVACY, "--clusters", 2, "-o", out) == 0
    return out


def centers(folder):
    return pd.read_csv(folder / "centers.csv").sort_values("age").reset_index(drop=True)


def run(*args):
    return main(["cluster", *map(str, args)])


def test_from_a_table_to_centers_in_its_own_units(table, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(table, *DECLARED, *PRIVACY, "--groups", "customer", "-o", out) == 0
    assert set(os.listdir(out)) == FILES
    found = centers(out)
    assert len(found) == 2
    for name, truth in (("age", [33, 68]), ("income", [90_000, 30_000]), ("weight", [0.6, 0.4])):
        off = (found[name] - truth).abs() / found[f"{name} error"]
        assert (off < 5).all()  # a false alarm in 10^6, of normal errors
        assert (found[f"{name} error"] < 0.1 * np.abs(truth)).all()  # a tenth: they are of use
    assert found["since"].str.slice(0, 7).tolist() == ["2020-07", "2023-04"]
    assert found["plan=basic"].round().tolist() == [0, 1]
    assert (found["detected"] == "yes").all()
    said = capsys.readouterr().err
    assert "(2, 1e-06)-differential privacy (replace-one neighbours, all rows of one group)" in said


def test_all_files_tell_the_same_and_nothing_of_other_columns(table, of_csv):
    out = of_csv
    told = json.loads((out / "clusters.json").read_text())
    guarantee = Guarantee.from_dict(json.loads((out / "guarantee.json").read_text()))
    assert guarantee == Guarantee.from_dict(told["guarantee"])
    assert (out / "guarantee.txt").read_text() == f"{guarantee}\n"
    assert Sketch.load(out / "sketch.h5").guarantee == guarantee
    ages = sorted(cluster["center"]["age"] for cluster in told["clusters"])
    np.testing.assert_array_equal(ages, centers(out)["age"])
    report = (out / "report.html").read_text()
    assert (out / "clusters.svg").read_text().count("<path") > 5
    for text in (report, json.dumps(told)):
        assert "4711-0815-4711" not in text
        assert "secret" not in text
        assert str(out.parent) not in text
        assert str(Path(table).parent) not in text
    assert "http" not in report.replace("http://www.w3.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "").replace("https://matplotlib.org", "")


def test_csv_and_parquet_give_the_same_bytes(of_csv, frame, tmp_path):
    parquet, out = tmp_path / "customers.parquet", tmp_path / "out"
    frame.to_parquet(parquet)
    run(parquet, *DECLARED, *PRIVACY, "--clusters", 2, "-o", out)
    for name in FILES - {"report.html"}:
        assert (of_csv / name).read_bytes() == (out / name).read_bytes()
    reports = [(folder / "report.html").read_text() for folder in (of_csv, out)]
    first, second = (report.partition("Made on")[0] for report in reports)
    assert first == second.replace("customers.parquet", "customers.csv")


def test_a_refused_release_spends_nothing(table, tmp_path, capsys):
    ledger = tmp_path / "ledger.json"
    Budget.open(ledger, 1.0, 1e-6)
    ask = [table, *DECLARED, *PRIVACY, "--clusters", 2, "--budget", ledger, "-o", tmp_path / "out"]
    assert run(*ask) == 1
    assert "the ledger refuses this fit" in capsys.readouterr().err
    assert Budget.open(ledger).spent == 0.0


def test_a_budget_without_noise_for_counts_is_refused_first(table, tmp_path, capsys):
    ledger = tmp_path / "ledger.json"
    Budget.open(ledger, 1.0, 1e-5)
    budget = ["--epsilon", "1e-7", "--delta", "1e-6", "--seed", "0", "--budget", ledger]
    assert run(table, *DECLARED, *budget, "--clusters", 2, "-o", tmp_path / "out") == 1
    assert "use a smaller delta" in capsys.readouterr().err
    assert Budget.open(ledger).spent == 0.0


@pytest.mark.filterwarnings("default")
def test_a_huge_epsilon_has_its_report(table, tmp_path):
    huge = ["--epsilon", "1000", "--delta", "1e-6", "--seed", "0", "--clusters", 2]
    assert run(table, *DECLARED, *huge, "-o", tmp_path / "out") == 0
    assert "exp(1000)" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("epsilon", "delta", "reasons", "remedy"),
    [
        (10.1, 1e-6, ["an epsilon of 10.1"], "an epsilon of at most 10."),
        (1, 0.01, ["a delta of 0.01 is at least one over"], "a delta far below one over"),
        (100, 0.01, ["an epsilon of 100", "a delta of 0.01"], "epsilon of at most 10 and a delta"),
        (1, 1e-6, [], ""),
    ],
)
def test_a_weak_guarantee_is_called_weak_at_the_beginning(
    tmp_path, capsys, epsilon, delta, reasons, remedy
):
    """Also if only the sum over all releases is weak: counts of missing entries use a part."""
    pytest.importorskip("opendp", reason="noise for release needs the extra privclust[secure]")
    lines = "".join(f"{20 + i % 60}\n" for i in range(344))
    (tmp_path / "t.csv").write_text(f"age\n{lines}")
    budget = ["--epsilon", epsilon, "--delta", delta, "--clusters", 1]
    out = tmp_path / "out"
    assert run(tmp_path / "t.csv", "--bounds", "age=0:110", *budget, "-o", out) == 0
    err = capsys.readouterr().err
    warned = re.findall(r"warning: (weak: .*?)(?:; weak: .*)?\n", err)
    report, told = (out / "report.html").read_text(), (out / "guarantee.txt").read_text()
    first = " ".join(re.findall(r"<p>(.*?)</p>", report, re.S)[0].split())
    assert ("may be published" in first) == (not reasons)
    assert ("This guarantee is weak" in first) == bool(reasons)
    assert all(reason in first for reason in reasons)
    assert remedy in first
    assert told.count("weak: ") == len(reasons)  # each once, with the number of the total
    assert len(warned) == bool(reasons)
    assert all(f"note: {message}" in told for message in warned)
    assert not re.search(r"\b1 rows", err + report)


def test_counts_that_cannot_be_had_lose_no_cluster(table, tmp_path, capsys, monkeypatch):
    def fails(*_, **__):
        raise ValueError("no noise")

    monkeypatch.setattr("privclust.command._clustering.missing_counts", fails)
    assert run(table, *DECLARED, *PRIVACY, "--clusters", 2, "-o", tmp_path / "out") == 0
    assert "no counts of missing entries: no noise" in capsys.readouterr().err
    assert len(centers(tmp_path / "out")) == 2


def test_a_report_says_how_it_was_made_but_not_the_seed(of_csv):
    made = (of_csv / "report.html").read_text().partition("Made on")[2]
    assert "privclust cluster customers.csv --bounds" in made
    assert "--delta 1e-6 --seed ... --clusters 2 -o out" in made


def test_a_report_begins_with_guarantee_and_clusters(of_csv):
    report = (of_csv / "report.html").read_text()
    assert "<h1>Differentially private clusters of customers.csv</h1>" in report
    assert "from p to at most 7.39 p + 0.000001." in report
    assert "The user chose this number of clusters." in report
    assert "do not publish this page" in report  # its noise was seeded
    old = re.search(
        r"About (39|40)\S* % of the rows: age about 68\S* income about (29,9|30,0|29,8)\d0",
        report,
    )
    assert old
    assert report.index("at most 7.39") < old.start() < report.index("<svg")


def test_unknown_bounds_are_found_on_a_part_of_the_budget(table, tmp_path, capsys):
    out = tmp_path / "out"
    ledger = tmp_path / "ledger.json"
    Budget.open(ledger, 2.0, 1e-6)
    columns = ["--columns", "age,income", "--bounds", "age=0:110", "--private-bounds", "0.2"]
    assert run(table, *columns, *PRIVACY, "--clusters", 2, "--budget", ledger, "-o", out) == 0
    off = (centers(out)["income"] - [90_000, 30_000]).abs() / centers(out)["income error"]
    assert (off < 5).all()
    guarantee = Guarantee.from_dict(json.loads((out / "guarantee.json").read_text()))
    assert guarantee.releases[0].name == "bounds: histograms of columns"
    assert 2.0 * (1 - 1e-6) < guarantee.epsilon <= 2.0  # nothing of the budget is left
    assert guarantee.delta == 1e-6
    assert Budget.open(ledger).spent == pytest.approx(guarantee.epsilon, rel=1e-6)
    assert "bounds of income" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")  # the command prints what users see
def test_what_noise_hides_is_not_printed_as_a_number(table, tmp_path, capsys):
    out = tmp_path / "out"
    run(
        table,
        *DECLARED,
        "--epsilon",
        "1e-3",
        "--delta",
        "1e-9",
        "--seed",
        0,
        "-o",
        out,
        "--clusters",
        3,
    )
    found = pd.read_csv(out / "centers.csv")
    assert (found["detected"] == "no").all()
    assert found["age"].isna().all()
    assert "indistinguishable from noise" in (out / "report.html").read_text()
    assert "0 of 3 clusters above the noise" in capsys.readouterr().err


def test_files_are_replaced_only_if_asked_for(table, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("mine")
    command = (table, "--bounds", "age=0:110", *PRIVACY, "--clusters", 2, "-o", out)
    assert run(*command) == 1
    assert (out / "report.html").read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert run(*command, "--force") == 0


def test_odd_entries_decide_nothing(frame, tmp_path):
    odd = frame.astype(object).head(3000)
    odd.iloc[:8, 1] = ["", "old", "1e400", "-1e400", "nan", None, "١", "0x10"]
    odd.iloc[:4, 3] = ["", "yesterday", "2020-13-45", None]
    odd.iloc[:3, 4] = ["", "NA", "gold"]
    path = tmp_path / "odd.csv"
    odd.to_csv(path, index=False)
    assert run(path, *DECLARED, *PRIVACY, "--clusters", 2, "-o", tmp_path / "out") == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "name the columns to use"),
        (["--columns", "age"], "--private-bounds"),
        (["--bounds", "age"], "must be NAME="),
        (["--bounds", "age=1"], "LOW:HIGH"),
        (["--bounds", "age=0:1", "--categories", "age=a:b"], "--bounds and --categories"),
        (["--bounds", "age=0:1", "age=0:2"], "there twice"),
        (["--bounds", "age=0:1", "--columns", "income"], "not among --columns"),
        (["--bounds", "age=0:1", "--private-bounds"], "wasted"),
        (["--bounds", "age=0:1", "--groups", "age"], "identifies persons"),
        (["--bounds", "age=0:1", "--private-bounds", "0.9"], "at most 0.5"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(args, message, table, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        run(table, *args, *PRIVACY, "-o", tmp_path / "out")
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--bounds", "wage=0:1"], "has no column 'wage'"),
        (
            ["--bounds", "age=65:25"],
            "column 'age': bounds must be numbers with low < high, got 65 and 25",
        ),
        (["--bounds", "age=6.5:6.5"], "low < high, got 6.5 and 6.5"),
        (["--bounds", "since=2022-01-01:2021-01-01"], "low < high, got 2022-01-01 and 2021-01-01"),
        (["--bounds", "age=0:110", "--groups", "who"], "has no column 'who'"),
        (["--bounds", "age=0:110", "--clusters", "20000"], "n_clusters"),
        (["--columns", "plan", "--private-bounds"], "holds no numbers"),
    ],
)
def test_what_cannot_be_done_is_one_line(args, message, table, tmp_path, capsys):
    assert run(table, *args, *PRIVACY, "-o", tmp_path / "out") == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("privclust: error: ")
    assert message in error


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.doc", b"a\n1\n", "a table must be a file"),
        ("t.csv", b"", "it is empty"),
        ("t.csv", b"age,age\n1,2\n", "has two columns 'age'"),
        ("t.parquet", b"PAR1 no", "cannot be read"),
    ],
)
def test_bad_tables_are_named_and_not_quoted(name, content, message, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(content)
    assert run(path, "--bounds", "age=0:110", *PRIVACY, "-o", tmp_path / "out") == 1
    error = capsys.readouterr().err
    assert message in error
    assert "4711-0815-4711" not in error


def test_a_table_that_is_not_there(tmp_path, capsys):
    assert run(tmp_path / "no.csv", "--bounds", "a=0:1", *PRIVACY, "-o", tmp_path / "out") == 1
    assert "there is no such file" in capsys.readouterr().err


@pytest.mark.system
def test_what_an_analyst_does_with_two_hundred_thousand_rows(tmp_path):
    """Raw columns of different units, as in a shop's table; without privacy it is hardly better."""
    rng = np.random.default_rng(0)
    n = 200_000
    kind = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    middles = [[33, 80e3, 20, 3], [68, 50e3, 40, 4], [45, 140e3, 90, 6], [30, 50e3, 70, 9]]
    rows = np.array(middles)[kind] + rng.normal(size=(n, 4)) * [6, 9e3, 4, 0.8]
    names = ["age", "income", "visits", "spend"]
    frame = pd.DataFrame(rows, columns=names).round(2)
    frame.to_csv(tmp_path / "shop.csv", index=False)
    bounds = "age=0:110,income=0:200000,visits=0:120,spend=0:12"
    command = ["cluster", "shop.csv", "--bounds", bounds, "--epsilon", "1", "--delta", "1e-7"]
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "privclust", *command, "--seed", "0", "-o", "out"],
        cwd=tmp_path,
        check=True,
    )
    after = os.times()
    assert after.children_user - before.children_user < 60  # seconds of CPU, with compiling
    scale = np.array([110, 200e3, 120, 12.0])
    found = pd.read_csv(tmp_path / "out" / "centers.csv")[names].to_numpy()
    assert len(found) == 4

    def squares(centers):
        return cdist(frame.to_numpy() / scale, centers / scale, "sqeuclidean").min(axis=1).sum()

    best = LloydKMeans(4, random_state=0).fit(frame.to_numpy() / scale).cluster_centers_ * scale
    assert squares(found) < 1.01 * squares(best)


def test_a_missing_entry_is_no_category_of_that_name(tmp_path):
    encoder = TableEncoder({"p": ["basic", "None", "nan"]}, missing="middle")
    rows = encoder.transform({"p": np.array(["None", None, np.nan, "nan"], dtype=object)})
    assert rows[1].tobytes() == rows[2].tobytes()
    assert np.ptp(rows[1]) == 0.0
    assert not np.array_equal(rows[0], rows[1])
    huge = np.array([10**400, 1], dtype=object)
    np.testing.assert_array_equal(
        TableEncoder({"a": (0, 2)}).transform({"a": huge}), [[1.0], [0.5]]
    )


def test_a_ledger_or_a_table_in_the_folder_is_not_overwritten(tmp_path, capsys):
    table = tmp_path / "centers.csv"
    table.write_text("age\n30\n60\n")
    Budget.open(tmp_path / "guarantee.json", 5.0, 1e-5)
    for more in (["--budget", str(tmp_path / "guarantee.json")], []):
        before = table.read_bytes(), (tmp_path / "guarantee.json").read_bytes()
        command = [table, "--bounds", "age=0:110", *PRIVACY, *more, "--force", "-o", tmp_path]
        assert run(*command) == 1
        assert "is one of the inputs" in capsys.readouterr().err
        assert before == (table.read_bytes(), (tmp_path / "guarantee.json").read_bytes())


def test_odd_names_dates_and_many_categories_are_drawn(tmp_path):
    far = datetime.date(9999, 12, 31)
    n = 400
    names = ["a$\\frac$", "<script>alert(1)</script>", "_kind", "end"]
    many = [f"_c{j}" for j in range(40)]
    columns = [
        np.linspace(0, 1, n),
        np.linspace(1, 0, n),
        [many[i % 40] for i in range(n)],
        [far if i % 2 else datetime.date(2021, 1, 1) for i in range(n)],
    ]
    pd.DataFrame(dict(zip(names, columns, strict=True))).to_parquet(tmp_path / "t.parquet")
    bounds = [f"{names[0]}=0:1", f"{names[1]}=0:1", "end=2020-01-01:9999-12-31"]
    declared = ["--bounds", *bounds, "--categories", f"_kind={':'.join(many)}"]
    privacy = ["--epsilon", "50", "--delta", "1e-6", "--seed", "0", "--clusters", "2"]
    command = ["cluster", str(tmp_path / "t.parquet"), *declared, *privacy]
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    report = (tmp_path / "out" / "report.html").read_text()
    assert "<script>" not in report
    assert "&lt;script&gt;" in report


NAMES = ["年龄", "Възраст", "العمر", "a<b>&\"'"]


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """The picture of a table whose columns have these names."""
    folder = tmp_path_factory.mktemp("names")
    columns = {name: np.linspace(0, 1, 400) for name in NAMES}
    pd.DataFrame(columns | {"b": np.tile([0.2, 0.8], 200)}).to_parquet(folder / "t.parquet")
    declared = ["--bounds", *(f"{name}=0:1" for name in (*NAMES, "b")), "--clusters", "2"]
    command = ["cluster", str(folder / "t.parquet"), *declared, "--seed", "0", "--epsilon", "50"]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")
        assert main([*command, "--delta", "1e-6", "-o", str(folder / "out")]) == 0
    return ElementTree.parse(folder / "out" / "clusters.svg")


@pytest.mark.parametrize("name", NAMES)
def test_names_in_any_script_are_text_that_a_viewer_draws(name, picture):
    """Text, with a list of fonts that ends in the viewer's own: not boxes of a font without it."""
    labels = {node.text: node for node in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {name, "b", "1", "2"} <= labels.keys()
    families = labels[name].get("style")
    assert re.search(r"font-family: 'DejaVu Sans',.*, sans-serif", families)


def test_nothing_of_a_run_before_stays(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "sketch.h5").write_text("old")
    lines = [",".join(str((i * j) % 7) for j in range(1, 21)) for i in range(200)]
    names = [f"x{j}" for j in range(20)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    bounds = ["--bounds", ",".join(f"{name}=0:7" for name in names)]
    how = ["--epsilon", "5", "--delta", "1e-6", "--seed", "0", "--clusters", "2", "--force"]
    assert main(["cluster", str(tmp_path / "t.csv"), *bounds, *how, "-o", str(out)]) == 0
    assert not (out / "sketch.h5").exists()  # of random directions, of no use


GERMAN = "id;betrag;datum;plan\n1;2.455,50;01.02.2020;basic\n2;305;15.03.2021;plus\n;1.000;x;gold\n"
OF_GERMAN = [
    *("--delimiter", ";", "--bounds", "betrag=0:2000", "datum=2019-01-01:2022-01-01"),
    *("--categories", "plan=basic:plus", "--groups", "id"),
]


def test_a_check_spends_and_writes_nothing_and_shows_no_entry(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text(GERMAN)
    assert run(table, *OF_GERMAN, "--check") == 0
    out = capsys.readouterr().out
    assert out.startswith("for you, not for release")
    assert "betrag: 0 missing (0.0 %), 1 unreadable (33.3 %), from 1 to 305" in out
    assert "can be read with --decimal , --thousands ." in out
    assert "can be read with --date-format %d.%m.%Y" in out
    assert "unreadable, by form: '9.999,99' (1)" in out
    assert "id: 1 row without an ID" in out
    assert "gold" not in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]
    how = ["--decimal", ",", "--thousands", ".", "--date-format", "%d.%m.%Y"]
    assert run(table, *OF_GERMAN, *how, "--check") == 0
    out = capsys.readouterr().out
    assert "betrag: 0 missing (0.0 %), 0 unreadable (0.0 %), from 305 to 2455.5" in out
    assert "1 outside the bounds" in out


def write_like(frame, path):
    """Write a table in the format of the suffix; Parquet also with a dictionary and decimals."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
        return
    table = pa.Table.from_pandas(frame, preserve_index=False)
    places = {name: place for place, name in enumerate(table.column_names)}
    exact = table["income"].cast(pa.decimal128(12, 2))
    table = table.set_column(places["income"], "income", exact)
    table = table.set_column(places["plan"], "plan", table["plan"].dictionary_encode())
    parquet.write_table(table, path, row_group_size=200)


@pytest.mark.filterwarnings("default")
def test_private_bounds_are_warned_of_by_name(tmp_path, capsys):
    lines = "".join(f"{20 + i % 60},{i % 7 * 100},{i % 30}\n" for i in range(300))
    (tmp_path / "t.csv").write_text(f"age,visits,kids\n{lines}")
    how = ["--columns", "age,visits,kids", "--bounds", "age=0:110", "--private-bounds", 0.5]
    budget = ["--epsilon", 1.5, "--delta", 1e-6, "--seed", 0, "--clusters", 1]
    assert run(tmp_path / "t.csv", *how, *budget, "-o", tmp_path / "out") == 0
    assert "bounds of columns 'visits', 'kids' may exclude" in capsys.readouterr().err


def test_a_check_shows_dates_of_any_year(tmp_path, capsys):
    when = np.array(["1899-12-31T23:59", "20000-01-01"], dtype="datetime64[s]")
    pd.DataFrame({"day": when}).to_parquet(tmp_path / "table.parquet")
    args = ["cluster", str(tmp_path / "table.parquet"), "--check"]
    assert main([*args, "--bounds", "day=2000-01-01:2030-01-01"]) == 0
    assert "from 1899-12-31 23:59 to 20000-01-01 00:00" in capsys.readouterr().out


@pytest.mark.parametrize("id_type", [str, float])
def test_every_kind_of_file_gives_the_same_check_and_groups(id_type, tmp_path, capsys):
    frame = pd.DataFrame(
        {
            "customer": [None if i % 50 == 7 else id_type(i % 300) for i in range(600)],
            "age": [None if i % 100 == 3 else 20.0 + i % 70 for i in range(600)],
            "income": [1000.25 * (i % 90) for i in range(600)],
            "since": [datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(600)],
            "plan": [("basic", "plus", "other")[i % 3] for i in range(600)],
            "is_new": [i % 2 == 0 for i in range(600)],
        }
    )
    declared = ["--bounds", "age=0:80,income=0:50000", "since=2020-01-01:2021-01-01"]
    declared += ["--categories", "plan=basic:plus", "is_new=true:false", "--groups", "customer"]
    shown, found = {}, {}
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"t.{suffix}"
        write_like(frame, path)
        assert run(path, *declared, "--check") == 0
        shown[suffix] = capsys.readouterr().out
        out = tmp_path / suffix
        assert run(path, *declared, *PRIVACY, "--clusters", 1, "-o", out) == 0
        capsys.readouterr()
        found[suffix] = (out / "centers.csv").read_bytes()
    assert "age: 6 missing (1.0 %), 0 unreadable (0.0 %), from 20 to 89\n" in shown["csv"]
    assert "plan: 0 missing (0.0 %), 200 unreadable (33.3 %)" in shown["csv"]
    assert "customer: 12 rows without an ID" in shown["csv"]
    assert shown["parquet"] == shown["csv"]
    assert found["parquet"] == found["csv"]


def test_a_text_in_another_encoding_and_notation_is_read(tmp_path, capsys):
    rows = "".join(f"{20 + i % 60},{i % 10};Zürich\n" for i in range(3000))
    table = tmp_path / "t.csv"
    table.write_bytes(f"größe;ort\n{rows}".encode("cp1252"))
    how = ["--delimiter", ";", "--decimal", ",", "--encoding", "cp1252", "--clusters", "1"]
    out = tmp_path / "out"
    declared = ["--bounds", "größe=0:100", "--categories", "ort=Zürich:Bern"]
    assert run(table, *declared, *how, *PRIVACY, "-o", out) == 0
    center = json.loads((out / "clusters.json").read_text())["clusters"][0]["center"]
    assert center["größe"] == pytest.approx(49.9, abs=2.0)
    assert center["ort=Zürich"] > 0.9
    with pytest.raises(SystemExit):
        run(table, *declared, "--encoding", "none", "--check")


def test_without_a_check_budget_and_folder_are_needed(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text(GERMAN)
    with pytest.raises(SystemExit):
        run(table, *OF_GERMAN)
    assert "--output is needed, unless there is --check" in capsys.readouterr().err


def test_a_category_may_hold_a_comma(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text('city\n"Paris, TX"\nRome\n"Oslo, MN"\n')
    assert run(table, "--categories", "city=Paris, TX:Rome", "--check") == 0
    assert "city: 0 missing (0.0 %), 1 unreadable (33.3 %)" in capsys.readouterr().out
