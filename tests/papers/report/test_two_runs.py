"""Two runs compared: what differs is named, and nothing else."""

import hashlib
import zipfile

import numpy as np
import pandas as pd
import pytest

from privclust_papers.report.two_runs import NoRunError, compare_runs, read_cells, read_run

VERDICTS = pd.DataFrame(
    {"id": ["c1", "c2", "t/a/mean"], "verdict": ["reproduced", "partly", "not run"], "data": "made"}
)
FIGURE = pd.DataFrame(
    {
        "method": ["a", "a", "b"],
        "epsilon": [0.1, 1.0, 0.1],
        "mean": [0.5, 0.25, np.nan],
        "cpu_seconds": [1.0, 2.0, 3.0],
    }
)
TABLE = pd.DataFrame({"metric": ["error", "cpu_s"], "mean": [1.0, 9.0]})


def write(folder, verdicts=VERDICTS, **tables):
    tables = {"fig": FIGURE, "tab": TABLE} | tables
    for name, table in {"": verdicts, **tables}.items():
        if table is None:
            continue
        file = folder / (f"targets/{name}/{name}.csv" if name else "verdicts.csv")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(table.to_csv(index=False))
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        file.with_name(f"{file.name}.sha256").write_text(f"{digest}  {file.name}\n")
    return read_run(folder)


@pytest.fixture
def before(tmp_path):
    return write(tmp_path / "before")


def numbers(outcome):
    return [(d.name, d.before, d.after) for d in outcome.numbers]


def test_a_run_is_equal_to_itself_and_to_one_that_took_longer(before, tmp_path):
    slower = write(
        tmp_path / "after", fig=FIGURE.assign(cpu_seconds=7.0), tab=TABLE.assign(mean=[1.0, 90.0])
    )
    outcome = compare_runs(before, slower)
    assert outcome.is_equal
    assert (outcome.n_verdicts, outcome.n_numbers) == (3, 4)


def test_verdicts_that_differ_are_named(before, tmp_path):
    other = VERDICTS.assign(id=["c1", "c2", "c9"], verdict=["partly", "partly", "not run"])
    outcome = compare_runs(before, write(tmp_path / "after", other))
    found = [(d.name, d.before, d.after) for d in outcome.verdicts]
    assert found == [
        ("c1", "reproduced", "partly"),
        ("t/a/mean", "not run", None),
        ("c9", None, "not run"),
    ]
    assert not outcome.numbers
    assert not outcome.is_equal


def test_differing_numbers_are_named_in_any_order_of_rows(before, tmp_path):
    other = FIGURE.assign(mean=[0.5, 0.26, np.nan]).iloc[::-1]
    outcome = compare_runs(before, write(tmp_path / "after", fig=other))
    assert numbers(outcome) == [("fig[method=a, epsilon=1.0].mean", "0.25", "0.26")]


def test_rows_columns_and_targets_that_one_run_lacks_are_named(before, tmp_path):
    other = FIGURE.iloc[:2].assign(n=3)
    after = write(tmp_path / "after", fig=other, tab=None, new=TABLE)
    assert numbers(compare_runs(before, after)) == [
        ("fig.n", None, "there"),
        ("fig[method=b, epsilon=0.1]", "there", None),
        ("new", None, "there"),
        ("tab", "there", None),
    ]


@pytest.mark.parametrize(
    ("value", "relative", "is_equal"),
    [
        ("0.2501", 0.0, False),
        ("0.2501", 1e-3, True),
        ("0.2501", 1e-4, False),
        ("0.2500", 0.0, True),  # the same number, written otherwise
        ("", 1.0, False),
        ("nan", 1.0, False),
        ("inf", 1.0, False),
        ("-0.25", 0.5, False),
    ],
)
def test_the_tolerance_is_what_it_says(before, tmp_path, value, relative, is_equal):
    mean = ["0.5", value, ""]
    after = write(tmp_path / "after", fig=FIGURE.astype(str).assign(mean=mean))
    outcome = compare_runs(before, after, relative)
    assert outcome.is_equal == is_equal


def test_rows_that_nothing_tells_apart_are_told_by_their_number(tmp_path):
    same = pd.DataFrame({"text": ["x", "x"], "value": ["1", "1"]})
    one = write(tmp_path / "one", fig=same)
    two = write(tmp_path / "two", fig=same.assign(value=["1", "2"]))
    # with another value the rows of one can be told apart, those of the other cannot
    assert numbers(compare_runs(one, two)) == [("fig[row 2].value", "1", "2")]


def test_a_table_without_rows_is_a_table(before, tmp_path):
    after = write(tmp_path / "after", tab=TABLE.iloc[:0])
    assert numbers(compare_runs(before, after)) == [
        ("tab, rows of times", "1", "0"),
        ("tab[metric=error]", "there", None),
    ]


def test_an_archive_is_as_good_as_the_folder(before, tmp_path):
    crate = tmp_path / "run.crate.zip"
    with zipfile.ZipFile(crate, "w") as file:
        for path in (tmp_path / "before").rglob("*.*"):
            name = path.relative_to(tmp_path / "before").as_posix()
            file.write(path, f"results/quick/{name}")
        file.writestr("config/config.yaml", "effort: quick")
    assert compare_runs(before, read_run(crate)).is_equal


def test_what_is_no_run_is_refused_in_one_line(tmp_path):
    with pytest.raises(NoRunError, match="there is no such folder or file"):
        read_run(tmp_path / "none")
    with pytest.raises(NoRunError, match=r"has no verdicts\.csv; it must be results/<effort>"):
        read_run(tmp_path)
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(NoRunError, match=r"is neither a folder of results nor a \.zip archive"):
        read_run(tmp_path / "text.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as file:
        file.writestr("verdicts.csv", "id,verdict\n")
    with pytest.raises(NoRunError, match="contains no run"):
        read_run(tmp_path / "other.zip")
    with pytest.raises(NoRunError, match="has no columns id and verdict"):
        write(tmp_path / "wrong", pd.DataFrame({"name": ["c"]}))


def test_a_table_that_was_changed_by_hand_is_refused(before, tmp_path):
    (tmp_path / "before/targets/fig/fig.csv").write_text("method,mean\na,9\n")
    with pytest.raises(NoRunError, match=r"targets/fig/fig\.csv does not match its checksum"):
        read_run(tmp_path / "before")


def test_cells_are_read_as_they_are():
    table = read_cells(b'n,name,n\n1,"a, ""b""\nc",\n2,NA,x\n')
    assert list(table) == ["n", "name", "n.1"]
    assert table.to_numpy().tolist() == [["1", 'a, "b"\nc', ""], ["2", "NA", "x"]]
    assert read_cells(b"").empty
    assert list(read_cells(b"a,b\n")) == ["a", "b"]
    for text in (b"a,b\n1,2,3\n", b"a,b\n1\n", b"a,b\n1,2\n\n", b'a,b\n"1,2\n', b"a\n\xff\n"):
        with pytest.raises(ValueError, match=r"more or fewer cells|unexpected end|decode"):
            read_cells(text)


def test_a_time_that_one_table_alone_has_is_a_difference(before, tmp_path):
    more = write(tmp_path / "more", tab=TABLE.assign(cpu_seconds=1.0))
    assert numbers(compare_runs(before, more)) == [("tab.cpu_seconds", None, "there")]
    fewer = write(tmp_path / "fewer", tab=TABLE.iloc[:1])
    assert numbers(compare_runs(before, fewer)) == [("tab, rows of times", "1", "0")]


def test_rows_are_not_told_by_what_was_measured(tmp_path):
    """Trials have their measured columns first, and last digits may be others."""
    trials = pd.DataFrame({"loss": [0.5, 0.25, 0.125], "method": "a", "trial": [0, 1, 2]})
    runs = [
        write(tmp_path / str(f), fig=trials.assign(loss=trials["loss"] * f)) for f in (1, 1.001)
    ]
    assert compare_runs(*runs, relative=0.01).is_equal
    assert [name for name, *_ in numbers(compare_runs(*runs))] == [
        f"fig[method=a, trial={trial}].loss" for trial in range(3)
    ]


def test_two_verdicts_of_one_claim_are_refused(tmp_path):
    with pytest.raises(NoRunError, match="two verdicts with the same id"):
        write(tmp_path / "twice", pd.concat([VERDICTS, VERDICTS.iloc[:1]]))


def test_columns_that_cannot_be_told_apart_are_refused():
    with pytest.raises(ValueError, match="have the same name"):
        read_cells(b"n,n.1,n\n1,2,3\n")
