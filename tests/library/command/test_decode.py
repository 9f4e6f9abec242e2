"""The command ``decode``: the report of a sketch of declared columns."""

import filecmp
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privclust.preprocessing import TableEncoder, missing_counts
from privclust.privacy import NoisyCount
from privclust.report.missing import missing_remarks
from privclust.sketches import Sketch, draw_frequencies, release

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")
pytest.importorskip("opendp", reason="noise for release needs the extra privclust[secure]")

DECLARED = {"age": (0, 110), "income": (0, 200_000), "plan": ["basic", "plus"]}
FREQUENCIES = draw_frequencies(4, 200, variance=0.02, random_state=1)
N = 3000
COUNTS = np.array([[40, 0, 0], [0, 0, 30]])


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


def sketched(rows=slice(None), missing="drop", counts=COUNTS, **how):
    """The exact sketch of some customers, with the numbers of their entries."""
    encoder = TableEncoder(DECLARED, missing=missing)
    sketch = Sketch.of_table(customers()[rows], FREQUENCIES, encoder=encoder, **how)
    return replace(sketch, table=replace(sketch.table, unread=counts.astype(float)))


def private(sketch, epsilon=1.0):
    """A release of a sketch, with noisy numbers of entries."""
    numbers = np.arange(N)[:, None]
    missing, unreadable = (numbers < row for row in sketch.table.unread)
    counts = missing_counts(missing, unreadable & ~missing, 0.1 * epsilon, 1e-5)
    noisy = release(sketch, epsilon, 1e-5)
    unread = np.stack([counts.missing, counts.unreadable])
    return replace(noisy, table=replace(sketch.table, unread=unread, deviation=counts.deviation))


@pytest.fixture
def run(command_in_folder):
    return command_in_folder


def decoded(run, sketch, to, *options):
    sketch.save("s.h5")
    return decoded_files(run, ["s.h5"], to, *options)


def decoded_files(run, files, to, *options):
    how = ("--clusters", "2", "--seed", "1", *options)
    code, out, err = run("decode", *files, *how, "-o", to, "--force")
    assert (code, out) == (0, ""), err
    return err


def test_two_machines_end_in_the_report_of_one(run):
    parts = [sketched(slice(1000), counts=COUNTS // 3), sketched(slice(1000, None), counts=COUNTS)]
    whole = sketched(counts=COUNTS // 3 + COUNTS)
    for name, part in zip("ab", parts, strict=True):
        part.save(f"{name}.h5")
    err = decoded_files(run, ["a.h5", "b.h5"], "parts")
    decoded(run, whole, "whole")
    names = sorted(path.name for path in Path("parts").iterdir())
    same, others, _ = filecmp.cmpfiles("parts", "whole", names, shallow=False)
    assert len(same) == len(names) - 1
    assert others == ["report.html"]  # its last line has the name of the folder
    assert "exact sums, which can reveal records" in err
    assert "Not private" in Path("parts/report.html").read_text()
    centers = pd.read_csv("parts/centers.csv").sort_values("age")
    np.testing.assert_allclose(centers["age"], [33, 68], atol=1.0)
    np.testing.assert_allclose(centers["income"], [1.2e5, 3e4], rtol=0.05)
    np.testing.assert_allclose(centers["plan=plus"], [1, 0], atol=0.02)
    for column, center in (("age", [33, 68]), ("income", [1.2e5, 3e4])):
        assert (abs(centers[column] - center) < 5 * centers[f"{column} error"]).all()
        assert (centers[f"{column} error"] > 0).all()


def test_a_private_sketch_gives_a_private_report(run):
    parts = [private(sketched(rows)) for rows in (slice(1000), slice(1000, None))]
    merged = parts[0] + parts[1]
    assert isinstance(merged.left_out, NoisyCount)
    assert merged.left_out.value == pytest.approx(70, abs=6 * merged.left_out.deviation)
    np.testing.assert_allclose(
        merged.table.unread, 2 * COUNTS, rtol=0.0, atol=6 * merged.table.deviation
    )
    assert merged.table.deviation == pytest.approx(parts[0].table.deviation * np.sqrt(2))
    err = decoded(run, merged, "out", "--clusters", "auto")
    assert "(1, 1e-05)-differential privacy" in err
    told = json.loads(Path("out/clusters.json").read_text())
    assert told["guarantee"]["epsilon"] == pytest.approx(1.0)
    assert "may be published under this" in Path("out/report.html").read_text()
    first = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    decoded(run, merged, "out", "--clusters", "auto")
    assert first == {path.name: path.read_bytes() for path in Path("out").iterdir()}


def remarks_on(sketch):
    return missing_remarks(sketch.table, sketch.n_samples, sketch.left_out, sketch.unit)


@pytest.mark.parametrize(
    ("how", "epsilon", "said"),
    [
        ({}, None, r"^70 of 3,000 \(2.3 %\) rows are left out: 40 have no 'age'$"),
        ({"missing": "middle"}, None, "of the rows, 40 have no 'age' and count there as the mid"),
        # each person lacks the age of one of two rows, and no person is left out
        ({"groups": "who"}, None, "of the persons, 40 have no 'age' and are left out"),
        # the noise of the number of all rows has a deviation of 1.3
        ({}, 4.0, r"^about \d+ of 3,000 \(2.\d %\) rows are left"),
    ],
)
def test_no_part_of_missing_entries_is_larger_than_the_whole(how, epsilon, said):
    sketch = sketched(**how)
    remarks = remarks_on(sketch if epsilon is None else private(sketch, epsilon))
    assert any(re.search(said, remark) for remark in remarks)
    if epsilon is None:
        assert "not a category of its list" in remarks[-1]


@pytest.mark.parametrize(("deviations", "is_told"), [(2.9, False), (3.1, True)])
def test_noisy_numbers_are_told_from_three_deviations_on(deviations, is_told):
    sketch = private(sketched(groups="who"))
    table, left_out = sketch.table, sketch.left_out
    counts = np.full_like(table.unread, deviations * table.deviation)
    found = replace(left_out, value=deviations * left_out.deviation)
    remarks = remarks_on(replace(sketch, table=replace(table, unread=counts), left_out=found))
    assert ("are left out" in remarks[0]) == is_told
    assert ("noise may hide up to" in remarks[0]) != is_told
    assert remarks[0].endswith("persons in each column") != is_told


def test_a_report_needs_declared_columns_and_a_free_folder(run):
    Sketch.of(np.ones((9, 4)), FREQUENCIES).save("bare.h5")
    code, _, err = run("decode", "bare.h5", "-o", "out")
    assert (code, "bare.h5: carries no declared columns" in err) == (1, True)
    decoded(run, sketched(), "out")
    code, _, err = run("decode", "s.h5", "--clusters", "2", "-o", "out")
    assert (code, "exists already" in err) == (1, True)


@pytest.mark.filterwarnings("default")  # the command prints what users see
def test_warnings_are_one_line_without_a_place_in_the_code(run):
    encoder = TableEncoder({"age": (0, 110)})
    Sketch.of_table(customers(), np.ones((1, 9)), encoder=encoder).save("s.h5")
    code, _, err = run("decode", "s.h5", "--clusters", "8", "--seed", "0", "-o", "out")
    assert code == 0
    assert err.splitlines()[0].startswith("privclust: warning: 8 clusters with 1 feature")
    assert ".py" not in err


def test_a_file_with_columns_of_other_features_is_refused(run):
    sketch = sketched()
    other = replace(sketch.table, columns={"<script>": (0.0, 1.0)}, unread=None)
    replace(sketch, table=other).save("other.h5")
    code, _, err = run("decode", "other.h5", "--clusters", "2", "-o", "out")
    assert (code, "declared columns are not those" in err) == (1, True)
    columns = {f"<b>{name}": ends for name, ends in sketch.table.columns.items()}
    decoded(run, replace(sketch, table=replace(sketch.table, columns=columns)), "out")
    assert "<b>" not in Path("out/report.html").read_text()


def test_a_sketch_is_not_added_to_itself(run):
    sketched().save("a.h5")
    Path("b.h5").write_bytes(Path("a.h5").read_bytes())
    for files in (["a.h5", "a.h5"], ["a.h5", "b.h5"]):
        code, out, err = run("decode", *files, "-o", "out")
        assert (code, out) == (1, "")
        assert err == "privclust: error: two of the sketches are the same: name each once\n"
    assert not Path("out/report.html").exists()


def test_sketches_that_cannot_be_added_up_say_what_differs(run):
    table = customers()
    wide = TableEncoder(DECLARED | {"age": (0, 120)})
    sketched().save("a.h5")
    Sketch.of_table(table, FREQUENCIES, encoder=wide).save("b.h5")
    Sketch.of_table(table, FREQUENCIES[:, :150], encoder=TableEncoder(DECLARED)).save("c.h5")
    for file, what in (
        ("b.h5", "declared columns differ: use one declaration"),
        ("c.h5", "frequencies differ: draw them once"),
    ):
        code, out, err = run("decode", "a.h5", file, "-o", "out")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert what in err
