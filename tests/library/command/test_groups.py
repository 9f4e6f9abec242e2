"""The command line on files of which a column says whose each record is."""

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privclust.command import _records
from privclust.command import _sketch_command as command
from privclust.privacy import Budget
from privclust.records import labels as labels_module
from privclust.records.labels import LabelCounts, SecondReading
from privclust.sketches import MomentSketch, Sketch

DRAWN = ("--frequencies", "30", "--variance", "2.5", "--seed", "1")
GROUPS = ("--groups", "who")
PRIVATE = ("--epsilon", "1", "--delta", "1e-6")
HIDES_NUMBER = (*PRIVATE, "--neighbours", "add_remove")


def visits(n=150, seed=0):
    """Rows of persons of 1 to 12, in any order: a frame with their names between the columns."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), rng.integers(1, 13, n))
    rng.shuffle(ids)
    X = rng.integers(-1024, 1024, (len(ids), 3)) / 256
    return pd.DataFrame({"a": X[:, 0], "who": ids, "b": X[:, 1], "c": X[:, 2]})


def rows(frame):
    return frame[["a", "b", "c"]].to_numpy()


@pytest.fixture
def run(command_in_folder):
    """Run the command in a folder with x.csv."""
    visits().to_csv("x.csv", index=False)
    return command_in_folder


def sketched(run, *arguments, to="s.h5"):
    code, out, err = run("sketch", *arguments, "-o", to, "--force")
    assert (code, out) == (0, ""), err
    return err


@pytest.mark.parametrize("kind", ["clusters", "subspaces"])
def test_persons_over_several_files_give_the_same_sketch(run, kind):
    """In three files, of which one has the numbers as text, one as whole numbers."""
    frame = visits()
    first, second, third = frame[:200], frame[200:201], frame[201:]
    first.to_csv("first.csv", index=False)
    second.astype({"who": str}).to_parquet("second.parquet", index=False)
    third.to_parquet("third.parquet", index=False)
    files, options = ("first.csv", "second.parquet", "third.parquet"), GROUPS
    if kind == "clusters":
        err = sketched(run, *files, *DRAWN, *options)
        found = Sketch.load("s.h5")
        known = Sketch.of(rows(frame), found.frequencies, groups=frame["who"])
        assert found.sums.tobytes() == known.sums.tobytes()
    else:
        err = sketched(run, *files, "--subspaces", *options)
        found = MomentSketch.load("s.h5")
        known = MomentSketch.of(rows(frame), groups=frame["who"])
        assert found.key == known.key
    assert (found.unit, found.n_samples) == ("group", 150)
    assert "sketch of 150 groups of records" in err
    assert "NOT private" in err


@pytest.mark.parametrize("kind", [DRAWN, ("--subspaces",)])
@pytest.mark.parametrize("private", [PRIVATE, HIDES_NUMBER])
def test_a_release_names_its_unit(run, kind, private):
    err = sketched(run, "x.csv", *kind, *GROUPS, *private)
    assert "all rows of one group" in err
    assert "none is in another merged with it" in err
    load = Sketch.load if kind is DRAWN else MomentSketch.load
    assert load("s.h5").guarantee.unit == "group"
    assert load("s.h5").noise == _of_rows(run, kind, private).noise
    code, out, err = run("decode", "s.h5", "--clusters", "1", *_decoded(kind))
    assert code == 0
    assert "groups of records in" in err
    assert out


def _of_rows(run, kind, private):
    visits().drop(columns="who").to_csv("rows.csv", index=False)
    sketched(run, "rows.csv", *kind, *private, to="rows.h5")
    return (Sketch if kind is DRAWN else MomentSketch).load("rows.h5")


def _decoded(kind):
    return ("--bounds", "-5", "5") if kind is DRAWN else ("--subspaces", "--dimension", "1")


def test_threads_change_no_byte(run):
    options = ("x.csv", *DRAWN, *GROUPS, *PRIVATE, "--seed-noise", "1")
    for threads in "12":
        sketched(run, *options, "--threads", threads, to=f"{threads}.h5")
    assert Path("1.h5").read_bytes() == Path("2.h5").read_bytes()


def test_how_many_records_a_person_has_shows_nowhere(run):
    """What is printed, at the same noise, for 1 record of a person and for 5,000."""
    frame, printed = visits(), []
    for number in (1, 5000):
        one = pd.DataFrame({"a": [1.0], "who": [-1], "b": [2.0], "c": [3.0]})
        pd.concat([frame, *[one] * number]).to_csv("x.csv", index=False)
        for private in (PRIVATE, HIDES_NUMBER):
            printed.append(sketched(run, "x.csv", *DRAWN, *GROUPS, *private, "--seed-noise", "1"))
    assert printed[:2] == printed[2:]
    assert "5,0" not in printed[2]


@pytest.mark.parametrize("private", [PRIVATE, HIDES_NUMBER])
def test_rows_of_nobody_contribute_nothing(run, private):
    frame = visits().astype({"who": object})
    frame.loc[[3, 7, 11], "who"] = None
    frame.to_csv("x.csv", index=False)
    frame.astype({"who": "Int64"}).to_parquet("x.parquet", index=False)
    frame.dropna().to_csv("known.csv", index=False)
    options = (*DRAWN, *GROUPS, *private, "--seed-noise", "1")
    sketched(run, "known.csv", *options, to="known.h5")
    for name in ("x.csv", "x.parquet"):
        err = sketched(run, name, *options)
        assert "a row without an ID contributes nothing" in err
        assert Sketch.load("s.h5").sums.tobytes() == Sketch.load("known.h5").sums.tobytes()


@pytest.mark.parametrize("private", [PRIVATE, HIDES_NUMBER])
def test_any_lines_are_taken(run, private):
    """Short lines, long ones, text for numbers: each is a row, which counts if it is whole."""
    Path("odd.csv").write_text('a,who,b\n1,ann,2\n3\n4,"bob",x,9,9\n,ann,\n5, bob ,6,8\n\n')
    sketched(run, "odd.csv", *DRAWN, *GROUPS, *private, "--seed-noise", "1")
    Path("even.csv").write_text("a,who,b\n1,ann,2\n5,bob,6\n")
    sketched(run, "even.csv", *DRAWN, *GROUPS, *private, "--seed-noise", "1", to="even.h5")
    assert Sketch.load("s.h5").sums.tobytes() == Sketch.load("even.h5").sums.tobytes()
    Path("none.csv").write_text("a,who,b\n")
    sketched(run, "none.csv", *DRAWN, *GROUPS, *HIDES_NUMBER)
    assert Sketch.load("s.h5").unit == "group"


def test_names_may_hold_delimiters_between_quotes(run):
    """Where each line is taken for itself as well; also one that is longer than CSV fields are."""
    names = ["Doe, Ann", "Doe, Bob", "Doe, Ann", 'say "Eve"']
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "who": names, "b": [0.5, 0.25, 0.0, 1.0]})
    frame.to_csv("quoted.csv", index=False)
    frame.assign(who=[1, 2, 1, 3]).to_csv("plain.csv", index=False)
    for private in (PRIVATE, HIDES_NUMBER):
        options = (*DRAWN, *GROUPS, *private, "--seed-noise", "1")
        sketched(run, "quoted.csv", *options)
        sketched(run, "plain.csv", *options, to="plain.h5")
        assert Sketch.load("s.h5").sums.tobytes() == Sketch.load("plain.h5").sums.tobytes()
    for odd in ('1,"' + "x" * 200_000 + '",2', '1,"unclosed,2', '"'):
        Path("odd.csv").write_text(f"a,who,b\n{odd}\n1,ann,2\n")
        sketched(run, "odd.csv", *DRAWN, *GROUPS, *HIDES_NUMBER)


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("x.csv", ("--groups", "nobody"), "x.csv: has no column 'nobody'"),
        ("x.npy", GROUPS, "x.npy: label is for files whose columns have names only"),
        ("bare.csv", GROUPS, "bare.csv: has no column 'who'; its first line must be a header"),
        ("twice.csv", GROUPS, "twice.csv: has two columns 'who'"),
        ("alone.csv", GROUPS, "alone.csv: has no columns but 'who'"),
        ("spans.parquet", GROUPS, "column 'who' holds duration[ns], not persons"),
        ("empty.csv", GROUPS, "empty.csv: no records"),
    ],
)
def test_what_has_no_such_column_is_refused(run, file, options, message):
    np.save("x.npy", rows(visits()))
    Path("bare.csv").write_text("1,2,3\n4,5,6\n")
    Path("twice.csv").write_text("who,a,who\nann,1,bob\n")
    Path("alone.csv").write_text("who\nann\n")
    Path("empty.csv").write_text("who,a\n")
    visits().assign(who=np.timedelta64(1, "ns")).to_parquet("spans.parquet", index=False)
    code, _, err = run("sketch", file, "-o", "s.h5", *DRAWN, *options, *PRIVATE)
    assert code == 1
    assert message in err
    assert not Path("s.h5").exists()


def test_masks_are_refused(run):
    code, _, err = run("sketch", "x.csv", "-o", "s.h5", *DRAWN, *GROUPS, "--measurements", "5")
    assert code == 2
    assert "--measurements does not go with --groups" in err
    visits().drop(columns="who").to_csv("rows.csv", index=False)
    sketched(run, "rows.csv", *DRAWN, "--measurements", "5", to="like.h5")
    code, _, err = run("sketch", "x.csv", "-o", "s.h5", "--like", "like.h5", *GROUPS)
    assert code == 1
    assert "groups cannot have 5 of 30 measurements" in err


@pytest.mark.parametrize("has_names", [True, False])
def test_a_public_sample_may_have_the_column_or_not(run, has_names):
    sample = visits(400, seed=5)
    (sample if has_names else sample.drop(columns="who")).to_csv("public.csv", index=False)
    sampled = ("--frequencies", "30", "--public-sample", "public.csv", "--seed", "1")
    err = sketched(run, "x.csv", *sampled, *GROUPS, *PRIVATE)
    assert "variance estimated on the public sample" in err


def test_a_ledger_of_added_rows_refuses_groups_first(run):
    Budget.open("ledger.json", epsilon=5.0, delta=1e-6, neighbours="add_remove")
    options = (*DRAWN, *GROUPS, *HIDES_NUMBER, "--budget", "ledger.json")
    code, _, err = run("sketch", "x.csv", "-o", "s.h5", *options)
    assert code == 1
    assert "another row of a group changes a record" in err
    assert "is read" not in err


# --- counting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["more", "less", "other"])
def test_files_that_change_between_passes_give_no_sketch(run, monkeypatch, change):
    """A person with a record more than was counted would have more than one share."""
    real, n_readings = _records.records_of, []

    def changing(*arguments):
        records = real(*arguments)
        pieces = records.pieces

        def changed():
            n_readings.append(1)
            for number, piece in enumerate(pieces()):
                names = list(piece.persons)
                if len(n_readings) == 2 and number == 0:
                    names[0] = {"more": names[1], "less": None, "other": "new"}[change]
                yield piece._replace(persons=names)

        return replace(records, pieces=changed)

    monkeypatch.setattr(command, "records_of", changing)
    code, _, err = run("sketch", "x.csv", "-o", "s.h5", *DRAWN, *GROUPS, *PRIVATE)
    assert code == 1
    assert "the records have changed while they were read" in err
    assert not Path("s.h5").exists()


def counted(names):
    """Names of which every record counts."""
    return list(names), np.ones(len(names), dtype=bool)


def test_counts_are_those_of_a_dictionary_however_names_come():
    rng = np.random.default_rng(0)
    names = np.array([f"person {i}" for i in rng.integers(3000, size=20_000)], dtype=object)
    counts = LabelCounts(map(counted, np.array_split(names, 7)))
    known = pd.Series(names).value_counts()
    assert counts.n_counted == len(known)
    second, n_new = SecondReading(counts), 0
    for some in np.array_split(names, 11):
        with pytest.raises(ValueError, match="have changed"):
            second.check_all_seen()
        sizes, new, n_left_out = second.sizes(list(some))
        np.testing.assert_array_equal(sizes, known[some].to_numpy())
        assert n_left_out == 0
        n_new += new
    second.check_all_seen()
    assert n_new == len(known)
    assert LabelCounts([]).n_counted == 0


def test_memory_is_as_stated_however_many_records_there_are(monkeypatch):
    """60 bytes a person while they are counted, 24 after; names are in memory chunk by chunk."""
    monkeypatch.setattr(labels_module, "_PENDING", 1000)
    n = 80_000
    labels = (counted([str(i) for i in range(s, s + 1000)])
              for _ in range(2) for s in range(0, n, 1000))  # fmt: skip
    tracemalloc.start()
    counts = LabelCounts(labels)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.n_counted == n
    assert kept < 26 * n
    assert peak < 60 * n + 500_000
