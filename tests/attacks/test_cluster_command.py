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
    claim="Each line of a CSV file is parsed independently, and no line changes the number of "
    "lines.",
    before="A stray quote joined all lines up to the next quote: 1,500 records became 110, an "
    "exact number that is published.",
    now="Lines are split one by one. Each line is a row, even a blank one.",
)
@pytest.mark.parametrize("odd", ODD_LINES)
@pytest.mark.parametrize("at", [0, 7, 59])
def test_each_line_of_a_csv_is_parsed_independently(odd, at, tmp_path):
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
    claim="No entry of a Parquet file, present or missing, changes another row.",
    before="A null turned a column of integers into floats, so that years were no longer dates. "
    "One row distinguished neighbouring data sets in 6 of 6 releases at epsilon = 1.",
    now="Entries keep the type of their column, which the file states.",
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
    claim="If the number of rows is private, no message states it.",
    before="The terminal showed the number of rows, with groups too.",
    now="It is shown only where it is public.",
)
@pytest.mark.parametrize("more", [["--neighbours", "add_remove"], ["--groups", "code"]])
def test_messages_do_not_reveal_the_number_of_rows(more, tmp_path, capsys, monkeypatch):
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
    claim="No message contains an entry of a table.",
    before="For a file without a header, the message listed the first record as the column names.",
    now="Columns of text files are not named.",
)
def test_a_file_without_a_header_is_not_quoted(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("31.5,secret,c369\n4,5,6\n")
    assert main(["cluster", str(path), *HOW, "-o", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert "must be a header" in error
    assert "secret" not in error


@pytest.mark.attack(
    claim="The published number of records does not depend on the content of a record.",
    before="In a table of one column, an empty field was skipped as a blank line: 1,499 instead "
    "of 1,500.",
    now="The line counts as a row that is left out, and the number of such rows is released with "
    "noise.",
)
def test_an_empty_field_of_one_column_is_a_row(tmp_path):
    path = tmp_path / "t.csv"
    for entry in ("30", "", "  "):
        path.write_text("\n".join(["age", "20", entry, *map(str, range(20, 90))]) + "\n")
        assert sum(len(part["age"]) for part in open_table(path).columns(["age"])) == 72
    sketch = Sketch.of_table(path, np.ones((1, 9)))
    assert (sketch.n_samples, sketch.left_out) == (71, 1)
