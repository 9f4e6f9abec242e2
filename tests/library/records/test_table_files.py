"""Rows of tables in files; what is wrong with a file is said in one line."""

import bz2
import gzip
import lzma
import os
import re
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from privclust.records.arrow import RowReader
from privclust.records.table_files import open_table
from privclust.sketches import Sketch

pytest.importorskip("pyarrow")

# dyadic numbers: decimal text holds them exactly
X = np.random.default_rng(0).integers(-4096, 4096, (1000, 3)) / 256
FILES = ["x.parquet", "x.csv", "x.csv.gz"]


def parts_of(path, n_rows=1 << 16, columns=None):
    """The rows of a table, in parts."""
    table = open_table(path)
    reader = RowReader(columns).for_schema(table.schema)
    yield from map(reader.rows, table.batches(reader.columns, n_rows))


def joined(path, **how):
    return np.concatenate(list(parts_of(path, **how)))


def write(path, array):
    """Write a file of the kind that the suffix names."""
    frame = pd.DataFrame(array, columns=[f"c{j}" for j in range(array.shape[1])])
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=170)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("size", [1, 7, 170, 5000])
@pytest.mark.parametrize("name", FILES)
def test_files_give_all_rows_in_order(tmp_path, name, size):
    found = list(parts_of(write(tmp_path / name, X), size))
    assert max(map(len, found)) <= size
    np.testing.assert_array_equal(np.concatenate(found), X)
    assert list(parts_of(write(tmp_path / name, X[:0]), size)) == []


def test_single_precision_stays(tmp_path):
    path = write(tmp_path / "x.parquet", X.astype(np.float32))
    assert {part.dtype for part in parts_of(path, 99)} == {np.dtype(np.float32)}


def test_a_csv_file_has_a_header_and_lines(tmp_path):
    path = tmp_path / "x.csv"
    for text in (
        "a,b\n1,2\n3,4\n",
        "\ufeffa,b\r\n1,2\r\n3,4\r\n",
        'a,"b"\n"1","2"\n3,4',
        "a,b\r1,2\r3,4",
    ):
        path.write_bytes(text.encode("utf-8"))
        np.testing.assert_array_equal(joined(path), [[1, 2], [3, 4]])
    for suffix, module in ((".gz", gzip), (".bz2", bz2), (".xz", lzma)):
        with module.open(tmp_path / f"y.csv{suffix}", "wt") as file:
            file.write("a,b\n1.5,2\n")
        np.testing.assert_array_equal(joined(tmp_path / f"y.csv{suffix}"), [[1.5, 2]])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1,2\n3,4\n", "first line holds numbers, and must be a header"),
        ("1,x\n3,4\n", "first line holds numbers, and must be a header"),
        (",x,y\n0,1,2\n", "column '' has no name, .* index=False"),
        ("x,y,\n0,1,2\n", "column '' has no name, .* index=False"),
        ("x,x\n0,1\n", "its first line has a name twice"),
        ("a;b\n3;4\n", "semicolons are seen .*--delimiter ';'"),
        ("a\tb\n3\t4\n", "tabs are seen .*--delimiter tab"),
        ("", r"cannot be read \(it is empty\)"),
    ],
)
def test_faults_of_a_header_are_named(tmp_path, text, reason):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*{reason}") as caught:
        Sketch.of_table(path, np.ones((2, 1)))
    assert "\n" not in str(caught.value)


def test_no_line_of_text_changes_how_another_is_read(tmp_path):
    """300 lines at random, each read alone and among others."""
    rng = np.random.default_rng(0)
    signs = ['"', ",", "1", ".", "\ufffd", "-", "x", " ", "e", "'", "#", "\\", "NaN", "inf", "\t"]
    signs += ["True", "9" * 25, "0.1234567890123456789", "\r", "\x1f", "_"]
    lines = ["0.1,12345678901234567", "3,4,5,6", "-2.5e-3"]
    path = tmp_path / "x.csv"

    def read(lines):
        path.write_bytes("\n".join(["a,b", *lines]).encode() + b"\n")
        return joined(path, columns=("a", "b"))

    assert read(lines).shape == (3, 2)
    odd = ["".join(rng.choice(signs, rng.integers(9))) for _ in range(300)]
    among = [line for one in odd for line in (one, *lines)]
    alone = {line: read([line]) for line in {*odd, *lines}}
    np.testing.assert_array_equal(read(among), np.concatenate([alone[line] for line in among]))


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused_by_name(tmp_path, name):
    path = write(tmp_path / name, X)
    content = path.read_bytes()
    damaged = [b"", b"\xff\xfe not what it says"]
    if name != "x.csv":  # half of a text is a text
        damaged.append(content[: len(content) // 2])
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: ") as caught:
            Sketch.of_table(path, np.ones((3, 1)))
        assert "\n" not in str(caught.value)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv: there is no such file"):
        open_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"folder\.csv: is a directory"):
        open_table(tmp_path / "folder.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match=r"pipe\.csv: is a pipe or a device"):
        open_table(tmp_path / "pipe.csv")
    for name in ("x.doc", "x", "x.tar.gz"):
        with pytest.raises(ValueError, match=r"a table must be a file \.csv, .*\.pq$"):
            open_table(tmp_path / name)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path / "x.parquet", X)
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"Parquet files need pyarrow.*pip install 'pyarrow>=17'"):
        open_table(path)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are listed by Linux")
def test_a_parquet_file_is_open_only_while_it_is_read(tmp_path):
    path = write(tmp_path / "x.parquet", X)

    def is_open():
        links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
        return any(os.path.realpath(link) == str(path.resolve()) for link in links)

    records = parts_of(path, 400)
    assert not is_open()
    next(records)
    assert is_open()
    assert len(list(records)) == 2
    assert not is_open()


@pytest.mark.parametrize("name", ["x.parquet", "x.csv"])
def test_memory_is_that_of_a_part(tmp_path, name):
    """Of a file of 32 parts, Python holds less than 4 at a time; of a text file, less than 8."""
    n, d, size = 64_000, 8, 2_000
    path = write(tmp_path / name, np.ones((n, d)))
    next(parts_of(path, size))  # what is imported or kept is not counted
    tracemalloc.start()
    rows = sum(map(len, parts_of(path, size)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == n
    assert peak < (8 if name == "x.csv" else 4) * size * d * 8 + 300_000
