"""Attacks on `privclust cluster`: what one row may do to others, and what is said beside noise."""

import json
import re

import numpy as np
import pytest

from privclust.command import main
from privclust.preprocessing import TableEncoder
from privclust.records.errors import ReadingError
from privclust.records.table_files import open_table
from privclust.sketches import Sketch

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("matplotlib")

DECLARED = {
    "year": ("2000-01-01", "2025-01-01"),
    "code": [str(2**53 + 1), str(2**53), "None", "nan"],
    "age": (0, 110),
}
LINES = [f'{2000 + i % 20},"{2**53 + i % 2}",{20 + i}' for i in range(60)]
ODD_LINES = [
    *('"', '"2009,x', '2009,"x,3', '2001,"a""b",4', '""', "", "   ", ",", '1,2,3,4,5,"'),
    *("2009,NA,nan", "0x10,None,1e999", "\x1f,\x00,5", "\udcff,é,7"),
]


def rows_of(path):
    """The coordinates of all rows of a table."""
    encoder = TableEncoder(DECLARED)
    return np.concatenate([encoder.transform(part) for part in open_table(path).columns(DECLARED)])


def written_csv(path, lines):
    text = "\n".join(["year,code,age", *lines]) + "\n"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


@pytest.mark.attack(
    claim="what a line of a CSV file is depends on that line alone, and so does how many there are",
    before="a stray quote joined the lines to the next quote: 1,500 records became 110, and this "
    "exact number is published",
    now="lines are split one by one, and each is a row, a blank one too",
)
@pytest.mark.parametrize("odd", ODD_LINES)
@pytest.mark.parametrize("at", [0, 7, 59])
def test_a_line_is_a_row_whatever_stands_in_others(odd, at, tmp_path):
    before = rows_of(written_csv(tmp_path / "a.csv", LINES))
    after = rows_of(written_csv(tmp_path / "b.csv", [*LINES[:at], odd, *LINES[at + 1 :]]))
    assert len(before) == len(after) == 60
    others = np.arange(60) != at
    assert before[others].tobytes() == after[others].tobytes()


KINDS = {
    "int64": ([2009, 2010], pa.int64(), [None, -1]),
    "codes": ([2**53 + 1, 2**53], pa.int64(), [None, 1]),
    "date32": ([0, 14_000], pa.date32(), [None, 2_932_897, -800_000]),
    "timestamp": ([0, 10**9], pa.timestamp("s"), [None, 2**50, -(2**50)]),
    "text": (["2009", "2010-01-01"], pa.string(), [None, "", "x" * 100]),
    "dictionary": (["2009", "2010"], pa.dictionary(pa.int32(), pa.string()), [None, "new"]),
    "double": ([1.0, 2.0], pa.float64(), [None, np.nan, 1e308]),
}


@pytest.mark.attack(
    claim="an entry of a Parquet file, or a missing one, changes no other row",
    before="a null made floats of a column's integers: years were no dates any more, and one row "
    "told the neighbours apart in 6 releases of 6 at epsilon = 1",
    now="entries keep the types of their column, which the file states",
)
@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_of_parquet_changes_no_other_row(kind, tmp_path):
    usual, dtype, odd = KINDS[kind]
    usual = usual * 30
    encoders = [TableEncoder({"x": ends}) for ends in (DECLARED["year"], DECLARED["code"], (0, 9))]
    encoders = [encoder for encoder in encoders if _is_taken(encoder, kind)]

    def rows(values):
        path = tmp_path / "t.parquet"
        array = pa.array(values, pa.int32() if kind == "date32" else dtype).cast(dtype)
        parquet.write_table(pa.table({"x": array}), path, row_group_size=7)
        parts = list(open_table(path).columns(["x"]))
        return [np.concatenate([e.transform(part) for part in parts]) for e in encoders]

    before = rows(usual)
    for entry in odd:
        after = rows([entry, *usual[1:]])
        for one, other in zip(before, after, strict=True):
            assert one[1:].tobytes() == other[1:].tobytes()


def _is_taken(encoder, kind):
    """Whether a column of a type may be declared so: that is decided by types alone."""
    empty = pa.table({"x": pa.array([], KINDS[kind][1])})
    try:
        encoder.fit(empty)
    except ReadingError:
        return False
    return True


HOW = ["--bounds", "age=0:110", "--epsilon", "1", "--delta", "1e-6", "--seed", "0"]


@pytest.mark.attack(
    claim="where the number of rows is private, nothing says it",
    before="rows were counted on the terminal, with groups too",
    now="they are counted where their number is public alone",
)
@pytest.mark.parametrize("more", [["--neighbours", "add_remove"], ["--groups", "code"]])
def test_what_is_printed_does_not_tell_the_number_of_rows(more, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("privclust.command.output._SECONDS_BETWEEN_LINES", 0.0)
    said = []
    for n in (300, 301):
        lines = [f"2009,{i % 150},{20 + i % 60}" for i in range(n)]
        table = written_csv(tmp_path / "t.csv", lines)
        command = ["cluster", str(table), *HOW, *more, "--clusters", "1", "--force"]
        assert main([*command, "-o", str(tmp_path / "out")]) == 0
        said.append(capsys.readouterr().err)
        told = json.loads((tmp_path / "out" / "clusters.json").read_text())
        assert told["n_records"] not in (300, 301)
    for n, text in zip(("300", "301"), said, strict=True):
        assert n not in re.findall(r"[\d.]+", text)


@pytest.mark.attack(
    claim="no message holds an entry of a table",
    before="of a file without a header the first record was named as its columns",
    now="columns of text files are not named",
)
def test_a_file_without_a_header_is_not_quoted(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("31.5,secret,c369\n4,5,6\n")
    assert main(["cluster", str(path), *HOW, "-o", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert "must be a header" in error
    assert "secret" not in error


@pytest.mark.attack(
    claim="how many records are published does not depend on what stands in one",
    before="of one column, an empty field was a blank line, which was passed over: 1,499 for 1,500",
    now="the line is a row that is left out, and the number of rows left out has noise",
)
def test_an_empty_field_of_one_column_is_a_row(tmp_path):
    path = tmp_path / "t.csv"
    for entry in ("30", "", "  "):
        path.write_text("\n".join(["age", "20", entry, *map(str, range(20, 90))]) + "\n")
        assert sum(len(part["age"]) for part in open_table(path).columns(["age"])) == 72
    drawn = ["--frequencies", "9", "--variance", "1", "--seed", "1"]
    assert main(["sketch", str(path), *drawn, "-o", str(tmp_path / "s.h5")]) == 0
    sketch = Sketch.load(tmp_path / "s.h5")
    assert (sketch.n_samples, sketch.left_out) == (71, 1)
