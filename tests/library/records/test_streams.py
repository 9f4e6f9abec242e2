"""Chunks from arrays, iterators and files; what is wrong with a file is said in one line."""

import bz2
import gzip
import lzma
import os
import re
import sys
import tracemalloc
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest

from privclust.records import streams
from privclust.records.arrow import RowReader
from privclust.records.streams import chunks
from privclust.records.table_files import open_table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

# dyadic numbers: decimal text holds them exactly
X = np.random.default_rng(0).integers(-4096, 4096, (1000, 3)) / 256


def joined(source):
    return np.concatenate(list(chunks(source)))


@pytest.fixture
def of_rows(monkeypatch):
    """Make chunks have a number of rows."""

    def of_rows(n):
        monkeypatch.setattr(streams, "_rows", lambda n_features: n)

    return of_rows


def write(path, array):
    """Write a file of the kind that the suffix names."""
    frame = pd.DataFrame(array, columns=[f"c{j}" for j in range(array.shape[1])])
    if path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["group/points"] = array
            file["labels"] = np.zeros(len(array))
    elif path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=170)
    else:
        frame.to_csv(path, index=False)
    return path


FILES = ["x.h5", "x.npy", "x.parquet", "x.csv", "x.csv.gz"]


@pytest.mark.parametrize("size", [1, 7, 170, 5000])
@pytest.mark.parametrize("name", FILES)
def test_files_give_all_rows_in_order(tmp_path, name, size, of_rows):
    path = write(tmp_path / name, X)
    of_rows(size)
    stream = chunks(path)
    assert stream.n_features == 3
    found = list(stream)
    assert max(map(len, found)) <= size
    np.testing.assert_array_equal(np.concatenate(found), X)
    assert (joined(str(path)) == X).all()


@pytest.mark.parametrize("name", ["x.h5", "x.npy", "x.parquet"])
def test_single_precision_stays(tmp_path, name, of_rows):
    path = write(tmp_path / name, X.astype(np.float32))
    of_rows(99)
    assert {chunk.dtype for chunk in chunks(path)} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f2", "f4"), (">f4", "f4"), ("i4", "f8"), (">f8", "f8"), ("u1", "f8"), ("f8", "f8")],
)
def test_other_numbers_become_floats(dtype, expected):
    whole = np.abs(np.round(X)).astype(dtype)
    found = joined(whole)
    assert found.dtype == np.dtype(expected)
    np.testing.assert_array_equal(found, whole)


def test_arrays_frames_and_iterables(tmp_path, of_rows):
    of_rows(33)
    np.testing.assert_array_equal(joined(X[:, ::-1]), X[:, ::-1])
    np.testing.assert_array_equal(joined(pd.DataFrame(X, index=range(5, 1005))), X)
    memory_map = np.load(write(tmp_path / "x.npy", X), mmap_mode="r")
    np.testing.assert_array_equal(joined(memory_map), X)
    with h5py.File(write(tmp_path / "x.h5", X)) as file:
        np.testing.assert_array_equal(joined(file["group/points"]), X)
    pieces = [X[:1], X[1:1], X[1:700], X[700:]]
    assert [len(chunk) for chunk in chunks(iter(pieces))] == [1, 0, 699, 300]
    np.testing.assert_array_equal(joined([X.tolist()]), X)
    empty = chunks(X[:0])
    assert (empty.n_features, list(empty)) == (3, [])


@pytest.mark.parametrize("name", FILES)
def test_files_without_rows(tmp_path, name):
    stream = chunks(write(tmp_path / name, X[:0]))
    assert stream.n_features == 3
    assert list(stream) == []


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
        ("a,b\n1,2\n3,x\n", r"row 2, column 2 \(b\) is missing or no number$"),
        ("a,b\n1,2\n3,4\n5,\n", "row 3, column 2 .* is missing or no number"),
        ("a,b\n1,2\n\n3,4\n", "row 2, column 1 .* is missing or no number"),
        ("a,b\n1,2\n3,nan\n", "row 2, column 2 .* is missing or no number"),
        ("a,b\n1,2\n3,-inf\n", "row 2, column 2 .* is infinite"),
        ("a,b\n3,1e999\n", "row 1, column 2 .* is infinite"),
        ("1,2\n3,4\n", "first line holds numbers, and must be a header"),
        ("1,x\n3,4\n", "first line holds numbers, and must be a header"),
        (",x,y\n0,1,2\n", "column '' has no name, .* index=False"),
        ("x,y,\n0,1,2\n", "column '' has no name, .* index=False"),
        ("x,x\n0,1\n", "its first line has a name twice"),
        ("a,b\n1,True\n", "row 1, column 2 .* is missing or no number"),
        ("a;b\n3;4\n", "semicolons are seen .*--delimiter ';'"),
        ("a\tb\n3\t4\n", "tabs are seen .*--delimiter tab"),
        ("", r"cannot be read \(it is empty\)"),
    ],
)
def test_csv_faults_are_named_with_their_place(tmp_path, text, reason, of_rows):
    path = tmp_path / "x.csv"
    path.write_text(text)
    for size in (1000, 1):
        of_rows(size)
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*{reason}") as caught:
            joined(path)
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
        table = open_table(path)
        reader = RowReader(("a", "b")).for_schema(table.schema)
        return np.concatenate([reader.rows(part) for part in table.batches(reader.reads)])

    assert read(lines).shape == (3, 2)
    odd = ["".join(rng.choice(signs, rng.integers(9))) for _ in range(300)]
    among = [line for one in odd for line in (one, *lines)]
    alone = {line: read([line]) for line in {*odd, *lines}}
    np.testing.assert_array_equal(read(among), np.concatenate([alone[line] for line in among]))


def test_files_that_are_not_what_their_names_say(tmp_path):
    path = tmp_path / "x.npy"
    path.write_text("Mary Smith,1\n")
    with pytest.raises(ValueError, match=r"x\.npy: is no \.npy file") as caught:
        chunks(path)
    assert "pickle" not in str(caught.value)
    np.save(path, np.array([[object()]]), allow_pickle=True)
    with pytest.raises(ValueError, match="holds no whole array of numbers") as caught:
        chunks(path)
    assert "pickle" not in str(caught.value)
    np.save(path, np.array([["2026-01-31"]], dtype="M8[D]"))
    with pytest.raises(ValueError, match=r"holds datetime64\[D\], .*; turn times into numbers"):
        joined(path)
    pd.DataFrame({"day": pd.to_datetime(["2026-01-31"])}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"column 'day' holds timestamp.*; turn times into"):
        chunks(tmp_path / "x.parquet")


def test_text_late_in_a_long_chunk_raises_without_warnings(tmp_path, of_rows):
    path = tmp_path / "x.csv"
    of_rows(300_000)
    path.write_text("a,b\n" + "1,2\n" * 200_000 + "3,x\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"row 200001, column 2 .* is missing or no number"):
            joined(path)


@pytest.mark.parametrize("name", ["x.h5", "x.npy", "x.parquet", "x.csv"])
def test_missing_numbers_are_named_with_file_row_and_column(tmp_path, name, of_rows):
    bad = X.copy()
    bad[616, 1] = np.nan
    path = write(tmp_path / name, bad)
    of_rows(100)
    with pytest.raises(ValueError, match=rf"{name}: row 617, column 2.* is missing or no number"):
        joined(path)


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
            joined(path)
        assert "\n" not in str(caught.value)


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npy: there is no such file"):
        chunks(tmp_path / "none.npy")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"folder\.csv: is a directory"):
        chunks(tmp_path / "folder.csv")
    os.mkfifo(tmp_path / "pipe.npy")
    with pytest.raises(ValueError, match=r"pipe\.npy: is a pipe or a device"):
        chunks(tmp_path / "pipe.npy")
    for name in ("x.doc", "x", "x.tar.gz"):
        with pytest.raises(ValueError, match=r"suffix must say .* \.h5, .*\.npy"):
            chunks(tmp_path / name)


def test_data_sets_of_hdf5_files(tmp_path, of_rows):
    path = tmp_path / "x.h5"
    of_rows(100)
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=X, chunks=(64, 2), compression="gzip")
        file["line"] = X[0]
    assert [len(chunk) for chunk in chunks(path)][:-1] == [128] * 7
    with h5py.File(path, "a") as file:
        file["b/c"] = -X
    with pytest.raises(ValueError, match=r"x\.h5: must have one .* and has 2: a, b/c$"):
        chunks(path)


def test_parquet_columns_must_be_numbers(tmp_path):
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"a": [1, 2], "b": [1.5, 2.5], "name": ["x", "y"]})
    frame.to_parquet(path)
    with pytest.raises(ValueError, match=r"x\.parquet: column 'name' holds .*string, not numbers"):
        chunks(path)
    frame[["a", "b"]].to_parquet(path)
    np.testing.assert_array_equal(joined(path), [[1, 1.5], [2, 2.5]])
    parquet.write_table(pa.table({"a": pa.array([1, None])}), path)
    with pytest.raises(ValueError, match=r"row 2, column 1 \(a\) is missing"):
        joined(path)
    frame[["a"]].set_index(pd.Index([7.5, 3.0])).to_parquet(path)
    with pytest.raises(ValueError, match="is an index that pandas wrote"):
        chunks(path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path / "x.parquet", X)
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"Parquet files need pyarrow.*pip install 'pyarrow>=17'"):
        chunks(path)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ([X, X[:, :2]], r"after row 1000 comes a chunk of shape \(1000, 2\), not \(n, 3\)"),
        ([X, X[0]], r"shape \(3,\)"),
        ([X[0]], r"got \(3,\) for the first one"),
        ([], "holds no chunk"),
        (X[0], r"\(n, n_features\), got \(3,\)"),
        (X[:, :0], r"got \(1000, 0\)"),
        (X.astype(str), "the array: X holds text, not numbers"),
        (X + 1j, "complex numbers, not real ones"),
        (3, "an array, a path or an iterable"),
        (np.where(X[2, 2] == X, np.inf, X)[2:], "row 1, column 3 is infinite"),
    ],
)
def test_arrays_that_are_no_records(source, reason):
    with pytest.raises(ValueError, match=reason):
        joined(source)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are listed by Linux")
def test_a_parquet_file_is_open_only_while_it_is_read(tmp_path, of_rows):
    path = write(tmp_path / "x.parquet", X)

    def is_open():
        links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
        return any(os.path.realpath(link) == str(path.resolve()) for link in links)

    of_rows(400)
    records = chunks(path)
    assert not is_open()
    next(records)
    assert is_open()
    assert len(list(records)) == 2
    assert not is_open()


@pytest.mark.parametrize("name", ["x.h5", "x.npy", "x.parquet", "x.csv"])
def test_memory_is_that_of_a_chunk(tmp_path, name, of_rows):
    """32 times the rows of a chunk take less than 4 chunks (text: 8) of what Python allocates."""
    n, d, size = 64_000, 8, 2_000
    path = write(tmp_path / name, np.ones((n, d)))
    chunk_bytes = size * d * 8
    of_rows(size)
    joined(path)[0]  # what is imported or kept is not counted
    tracemalloc.start()
    rows = sum(map(len, chunks(path)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == n
    assert peak < (8 if name == "x.csv" else 4) * chunk_bytes + 300_000


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
def test_chunks_of_npy_leave_no_pages_in_memory(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((1 << 20, 8)))  # 64 megabytes

    def mapped():
        with open("/proc/self/status") as status:
            return sum(int(line.split()[1]) for line in status if line.startswith("RssFile"))

    if not mapped():
        pytest.skip("this kernel does not count pages of files")

    before = mapped()
    assert max(mapped() - before for _ in chunks(path)) < 32 << 10  # kilobytes
