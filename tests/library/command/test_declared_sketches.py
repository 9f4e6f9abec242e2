"""Sketches of declared columns: what they carry, and the report that is made of them."""

import filecmp
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privclust.privacy import Budget, NoisyCount
from privclust.report.missing import missing_remarks
from privclust.sketches import Sketch

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

DECLARED = ("--bounds", "age=0:110", "income=0:200000", "--categories", "plan=basic:plus")
DRAWN = (*DECLARED, "--frequencies", "200", "--variance", "0.02", "--seed", "1")
PRIVATE = ("--epsilon", "1", "--delta", "1e-5")
N = 3000


def customers():
    """Two groups of rows; 40 have no age, and 30 others a plan that is not declared."""
    rng = np.random.default_rng(0)
    is_old = rng.random(N) < 0.4
    table = pd.DataFrame(
        {
            "age": np.where(is_old, 68.0, 33.0) + rng.normal(0, 4, N),
            "income": np.where(is_old, 3e4, 1.2e5) + rng.normal(0, 7e3, N),
            "plan": np.where(is_old, "basic", "plus").astype(object),
            "who": np.arange(N) // 2,
        }
    )
    table.loc[::75, "age"] = None
    table.loc[1::100, "plan"] = "gold"
    return table


@pytest.fixture
def run(command_in_folder):
    """Run the command in a folder with the table, whole and in two parts."""
    table = customers()
    table.to_csv("all.csv", index=False)
    table[:1000].to_csv("a.csv", index=False)
    table[1000:].to_parquet("b.parquet", index=False)
    return command_in_folder


def done(run, *arguments):
    code, out, err = run(*arguments)
    assert code == 0, err
    return out, err


def sketched_parts(run, *private):
    done(run, "sketch", "a.csv", "-o", "a.h5", *DRAWN, *private)
    done(run, "sketch", "b.parquet", "-o", "b.h5", "--like", "a.h5", *private)


def decoded(run, *sketches, to):
    how = ("--clusters", "2", "--seed", "1", "--report", to)
    return done(run, "decode", *sketches, *how)[1]


def test_two_machines_end_in_the_report_of_one(run):
    sketched_parts(run)
    done(run, "sketch", "all.csv", "-o", "all.h5", *DRAWN)
    whole = Sketch.load("all.h5")
    assert (whole.n_samples, whole.left_out) == (N - 70, 70)
    assert whole.table.counts.tolist() == [[40.0, 0.0, 0.0], [0.0, 0.0, 30.0]]
    err = decoded(run, "a.h5", "b.h5", to="parts")
    decoded(run, "all.h5", to="whole")
    names = sorted(path.name for path in Path("parts").iterdir())
    same, others, _ = filecmp.cmpfiles("parts", "whole", names, shallow=False)
    assert len(same) == len(names) - 1
    assert others == ["report.html"]  # its last line has the names of the sketches
    reports = (Path(name, "report.html").read_text() for name in ("parts", "whole"))
    first, second = (report.partition("Made on")[0] for report in reports)
    assert first == second
    assert "70 of 3,000 (2.3 %) rows are left out: 40 have no 'age'" in err
    assert "30 of 3,000 (1.0 %) rows have an entry in 'plan' that is not a category" in err
    assert "Not private" in Path("parts/report.html").read_text()
    centers = pd.read_csv("parts/centers.csv").sort_values("age")
    np.testing.assert_allclose(centers["age"], [33, 68], atol=1.0)
    np.testing.assert_allclose(centers["income"], [1.2e5, 3e4], rtol=0.05)
    np.testing.assert_allclose(centers["plan=plus"], [1, 0], atol=0.02)
    assert (centers[["age error", "income error"]] > 0).all(axis=None)
    for column, center in (("age", [33, 68]), ("income", [1.2e5, 3e4])):
        assert (abs(centers[column] - center) < 5 * centers[f"{column} error"]).all()


def test_private_parts_give_a_private_report(run):
    sketched_parts(run, *PRIVATE)
    merged = Sketch.load("a.h5") + Sketch.load("b.h5")
    assert isinstance(merged.left_out, NoisyCount)
    assert merged.left_out.value == pytest.approx(70, abs=6 * merged.left_out.deviation)
    deviation = merged.table.deviation
    known = [[40, 0, 0], [0, 0, 30]]
    np.testing.assert_allclose(merged.table.counts, known, rtol=0.0, atol=6 * deviation)
    assert deviation == pytest.approx(Sketch.load("a.h5").table.deviation * np.sqrt(2))
    assert merged.guarantee.epsilon == pytest.approx(1.0)
    names = [release.name for release in merged.guarantee.releases]
    assert names[0] == "missing and unreadable entries, by column"
    decoded(run, "a.h5", "b.h5", to="out")
    told = json.loads(Path("out/clusters.json").read_text())
    assert told["guarantee"]["epsilon"] == pytest.approx(1.0)
    assert "may be published under this" in Path("out/report.html").read_text()
    out, _ = done(run, "decode", "a.h5", "b.h5", "--clusters", "2", "--seed", "1")
    assert out == Path("out/centers.csv").read_text()


@pytest.mark.parametrize(
    ("private", "definition"),
    [
        (("--epsilon", "2"), "pure"),
        ((*PRIVATE, "--noise", "laplace"), "pure"),
        ((*PRIVATE, "--neighbours", "add_remove"), "approximate"),
        ((*PRIVATE, "--groups", "who"), "approximate"),
        ((*PRIVATE, "--groups", "who", "--neighbours", "add_remove"), "approximate"),
        ((*PRIVATE, "--missing", "middle"), "approximate"),
    ],
)
def test_all_that_is_released_costs_what_was_asked_for(run, private, definition):
    epsilon, delta = float(private[1]), 1e-5 if definition == "approximate" else 0.0
    of_rows_added = "add_remove" in private and "--groups" not in private
    relation = "add_remove" if of_rows_added else "replace_one"
    budget = Budget.open("ledger.json", epsilon=epsilon, delta=1e-5, neighbours=relation)
    if "--groups" in private and "add_remove" in private:  # which no ledger of rows counts
        done(run, "sketch", "all.csv", "-o", "s.h5", *DRAWN, *private)
        assert Sketch.load("s.h5").guarantee.epsilon <= epsilon * (1 + 1e-9)
        return
    done(run, "sketch", "all.csv", "-o", "s.h5", *DRAWN, *private, "--budget", "ledger.json")
    guarantee = Sketch.load("s.h5").guarantee
    assert (guarantee.definition, guarantee.delta) == (definition, delta)
    assert 0.98 * epsilon < guarantee.epsilon <= epsilon * (1 + 1e-9)
    assert 0.0 < budget.spent <= epsilon * (1 + 1e-9)


def test_a_persons_rows_count_as_one_among_missing_entries(run):
    done(run, "sketch", "all.csv", "-o", "s.h5", *DRAWN, "--groups", "who")
    sketch = Sketch.load("s.h5")
    table = customers()
    is_odd = table["age"].isna() | (table["plan"] == "gold")
    assert sketch.left_out == is_odd.groupby(table["who"]).all().sum()
    assert sketch.n_samples == N // 2 - sketch.left_out
    assert sketch.table.counts.tolist() == [[20.0, 0.0, 0.0], [0.0, 0.0, 15.0]]


def remarks_on(sketch):
    return missing_remarks(sketch.table, sketch.n_samples, sketch.left_out, sketch.unit)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), r"^70 of 3,000 \(2.3 %\) rows are left out: 40 have no 'age'$"),
        (("--missing", "middle"), "of the rows, 40 have no 'age' and count there as the middle"),
        # each person lacks the age of one of two rows, and no person is left out
        (("--groups", "who"), "of the persons, 20 have no 'age' and are left out"),
        # the noise of the number of all rows has a deviation of 1.3
        (("--epsilon", "4", "--delta", "1e-5"), r"^about \d+ of 3,000 \(2.\d %\) rows are left"),
    ],
)
def test_missing_entries_are_told_without_a_part_larger_than_the_whole(run, options, said):
    done(run, "sketch", "all.csv", "-o", "s.h5", *DRAWN, *options)
    sketch = Sketch.load("s.h5")
    remarks = remarks_on(sketch)
    assert any(re.search(said, remark) for remark in remarks)
    if not sketch.noise:
        assert "not a category of its list" in remarks[-1]


@pytest.mark.parametrize(("deviations", "is_told"), [(2.9, False), (3.1, True)])
def test_private_numbers_of_entries_are_told_from_three_deviations_on(run, deviations, is_told):
    done(run, "sketch", "all.csv", "-o", "s.h5", *DRAWN, *PRIVATE, "--groups", "who")
    sketch = Sketch.load("s.h5")
    table, left_out = sketch.table, sketch.left_out
    counts = np.full_like(table.counts, deviations * table.deviation)
    found = replace(left_out, value=deviations * left_out.deviation)
    remarks = remarks_on(replace(sketch, table=replace(table, unread=counts), left_out=found))
    assert ("are left out" in remarks[0]) == is_told
    assert ("noise may hide up to" in remarks[0]) != is_told
    assert remarks[0].endswith("persons in each column") != is_told


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("sketch", "a.csv", "--subspaces", *DECLARED), "--bounds do not go with --subspaces"),
        (("sketch", "a.csv", "--frequencies", "9", "--variance", "1", "--missing", "middle"),
         "--missing middle needs"),
        (("sketch", "a.csv", "--like", "s.h5", "--bounds", "age=0:99"), "with other columns"),
        (("sketch", "a.csv", "--like", "bare.h5", *DECLARED), "without --bounds"),
        (("sketch", "a.csv", "--like", "middle.h5", "--missing", "drop"), "--missing middle"),
        (("decode", "s.h5", "--clusters", "2", "--bounds", "0", "1"), "that were declared are in"),
        (("decode", "s.h5", "--clusters", "2", "--subspaces", "--dimension", "1", "--report", "r"),
         "--report does not go with"),
    ],
)  # fmt: skip
def test_misuse_is_one_line_and_code_2(run, arguments, reason):
    done(run, "sketch", "a.csv", "-o", "s.h5", *DRAWN)
    done(run, "sketch", "a.csv", "-o", "middle.h5", *DRAWN, "--missing", "middle")
    drawn = ("--frequencies", "9", "--variance", "1", "--columns", "age,income")
    done(run, "sketch", "a.csv", "-o", "bare.h5", *drawn)
    output = () if arguments[0] == "decode" else ("-o", "t.h5")
    code, out, err = run(*arguments, *output)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err


def test_a_report_needs_declared_columns_and_a_free_folder(run):
    drawn = ("--frequencies", "9", "--variance", "1", "--columns", "age,income")
    done(run, "sketch", "a.csv", "-o", "bare.h5", *drawn)
    code, _, err = run("decode", "bare.h5", "--clusters", "1", "--report", "out")
    assert (code, "bare.h5: carries no declared columns" in err) == (1, True)
    done(run, "sketch", "a.csv", "-o", "s.h5", *DRAWN)
    decoded(run, "s.h5", to="out")
    code, _, err = run("decode", "s.h5", "--clusters", "2", "--report", "out")
    assert (code, "exists already" in err) == (1, True)
    other = ("--bounds", "age=0:100", "income=0:200000", "--categories", "plan=basic:plus")
    done(run, "sketch", "b.parquet", "-o", "o.h5", *other, *DRAWN[len(DECLARED) :])
    code, _, err = run("decode", "s.h5", "o.h5", "--clusters", "2")
    assert (code, "declared columns differ" in err) == (1, True)


def test_no_entry_of_a_table_causes_an_error(run):
    """Also where no row can be read: of noise alone."""
    Path("odd.csv").write_text("age,income,plan\n" + "x,,gold\n" * 50)
    for neighbours in ("replace_one", "add_remove"):
        options = (*DRAWN, *PRIVATE, "--neighbours", neighbours, "--force")
        done(run, "sketch", "odd.csv", "-o", "s.h5", *options)
        assert Sketch.load("s.h5").left_out.value == pytest.approx(50, abs=40)
    code, _, err = run("sketch", "odd.csv", "-o", "t.h5", *DRAWN)
    assert (code, "each of the 50 rows" in err) == (1, True)


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.filterwarnings("default")  # the command prints what users see
def test_a_weak_guarantee_says_so(run, declared):
    columns = DRAWN if declared else (*DRAWN[len(DECLARED) :], "--columns", "age,income")
    done(run, "sketch", "all.csv", "-o", "s.h5", *columns, *PRIVATE)
    assert not any("weak" in caveat for caveat in Sketch.load("s.h5").guarantee.caveats)
    for number, weak in enumerate((("--epsilon", "30"), ("--epsilon", "1", "--delta", "0.01"))):
        _, err = done(run, "sketch", "all.csv", "-o", f"{number}.h5", *columns, *weak)
        assert "privclust: warning: weak: " in err
        (caveat,) = (c for c in Sketch.load(f"{number}.h5").guarantee.caveats if "weak" in c)
        assert ("epsilon of 30" in caveat) == (number == 0)
    hidden = ("--epsilon", "1", "--delta", "0.01", "--neighbours", "add_remove")
    done(run, "sketch", "all.csv", "-o", "h.h5", *columns, *hidden)
    assert not any("weak" in caveat for caveat in Sketch.load("h.h5").guarantee.caveats)


def test_a_file_with_columns_of_other_features_is_refused(run):
    done(run, "sketch", "a.csv", "-o", "s.h5", *DRAWN)
    sketch = Sketch.load("s.h5")
    other = replace(sketch.table, columns={"<script>": (0.0, 1.0)}, unread=None)
    replace(sketch, table=other).save("other.h5")
    code, _, err = run("decode", "other.h5", "--clusters", "2", "--report", "out")
    assert (code, "declared columns are not those" in err) == (1, True)
    columns = {f"<b>{name}": ends for name, ends in sketch.table.columns.items()}
    named = replace(sketch.table, columns=columns)
    replace(sketch, table=named).save("named.h5")
    decoded(run, "named.h5", to="out")
    assert "<b>" not in Path("out/report.html").read_text()
