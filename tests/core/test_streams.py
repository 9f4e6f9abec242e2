"""Chunks from arrays, iterators and files; what is wrong with a file is said in one line."""

import builtins
import gzip
import re
import tracemalloc
import warnings

import h5py
import numpy as np
import pandas as pd
import pytest

from privclust.core.streams import chunks

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

# dyadic numbers: decimal text holds them exactly
X = np.random.default_rng(0).integers(-4096, 4096, (1000, 3)) / 256


def joined(source, **kwargs):
    return np.concatenate(list(chunks(source, **kwargs)))


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


@pytest.mark.parametrize("chunk_size", [1, 7, 170, 5000, None])
@pytest.mark.parametrize("name", FILES)
def test_files_give_all_rows_in_order(tmp_path, name, chunk_size):
    path = write(tmp_path / name, X)
    stream = chunks(path, chunk_size=chunk_size)
    assert stream.n_features == 3
    assert stream.n_rows == (None if ".csv" in name else len(X))
    found = list(stream)
    if chunk_size is not None:
        assert max(map(len, found)) <= chunk_size
    np.testing.assert_array_equal(np.concatenate(found), X)
    assert (joined(str(path)) == X).all()


@pytest.mark.parametrize("name", ["x.h5", "x.npy", "x.parquet"])
def test_single_precision_stays(tmp_path, name):
    path = write(tmp_path / name, X.astype(np.float32))
    assert {chunk.dtype for chunk in chunks(path, chunk_size=99)} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f2", "f4"), (">f4", "f4"), ("i4", "f8"), (">f8", "f8"), ("u1", "f8"), ("f8", "f8")],
)
def test_other_numbers_become_floats(dtype, expected):
    whole = np.abs(np.round(X)).astype(dtype)
    found = joined(whole, chunk_size=300)
    assert found.dtype == np.dtype(expected)
    np.testing.assert_array_equal(found, whole)


def test_arrays_frames_and_iterables(tmp_path):
    np.testing.assert_array_equal(joined(X[:, ::-1], chunk_size=33), X[:, ::-1])
    np.testing.assert_array_equal(joined(pd.DataFrame(X, index=range(5, 1005)), chunk_size=33), X)
    memory_map = np.load(write(tmp_path / "x.npy", X), mmap_mode="r")
    np.testing.assert_array_equal(joined(memory_map, chunk_size=999), X)
    with h5py.File(write(tmp_path / "x.h5", X)) as file:
        np.testing.assert_array_equal(joined(file["group/points"], chunk_size=64), X)
    pieces = [X[:1], X[1:1], X[1:700], X[700:]]
    assert [len(chunk) for chunk in chunks(iter(pieces))] == [1, 0, 699, 300]
    assert chunks(pieces).n_rows is None
    np.testing.assert_array_equal(joined([X.tolist()]), X)
    empty = chunks(X[:0])
    assert (empty.n_rows, empty.n_features, list(empty)) == (0, 3, [])


@pytest.mark.parametrize("name", FILES)
def test_files_without_rows(tmp_path, name):
    stream = chunks(write(tmp_path / name, X[:0]))
    assert stream.n_features == 3
    assert list(stream) == []


def test_csv_with_and_without_header(tmp_path):
    path = tmp_path / "x.csv"
    for text in (
        "1,2\n3,4\n",
        "a,b\n1,2\n3,4\n",
        "\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n\r\n",
        '"1","2"\n3,4',
    ):
        path.write_text(text, encoding="utf-8")
        np.testing.assert_array_equal(joined(path), [[1, 2], [3, 4]])
    with gzip.open(tmp_path / "y.csv.gz", "wt") as file:
        file.write("1.5,2\n")
    np.testing.assert_array_equal(joined(tmp_path / "y.csv.gz"), [[1.5, 2]])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\n1,2\n3,x\n", r"row 2, column 2 \(b\) is 'x', not a number"),
        ("1,2\n3,4\n5,\n", "row 3, column 2 is missing"),
        ("a,b\n1,2\n3,nan\n", r"row 2, column 2 \(b\) is missing or NaN"),
        ("1,2\n3,-inf\n", "row 2, column 2 is infinite"),
        ("1,2\n3,1e999\n", "row 2, column 2 is infinite"),
        ("1,x\n3,4\n", "row 1, column 2 is 'x' beside numbers"),
        (",x,y\n0,1,2\n", "column 1 of the header has no name"),
        ("1,2\n3,4,5\n", "cannot be read .*line 2"),
        ("a,b\n3,4,5\n", "2 fields, the next 3"),
        ("a,b\n1,True\n", "row 1, column 2 .* is 'True'"),
        ("1;2\n3;4\n", "not a number"),
        ("", "cannot be read"),
    ],
)
def test_csv_faults_are_named_with_their_place(tmp_path, text, reason):
    path = tmp_path / "x.csv"
    path.write_text(text)
    for chunk_size in (1, None):
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: .*{reason}") as caught:
            joined(path, chunk_size=chunk_size)
        assert "\n" not in str(caught.value)


def test_text_late_in_a_long_chunk_raises_without_warnings(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("1,2\n" * 200_000 + "3,x\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="row 200001, column 2 is 'x'"):
            joined(path, chunk_size=300_000)


@pytest.mark.parametrize("name", ["x.h5", "x.npy", "x.parquet", "x.csv"])
def test_missing_numbers_are_named_with_file_row_and_column(tmp_path, name):
    bad = X.copy()
    bad[616, 1] = np.nan
    path = write(tmp_path / name, bad)
    with pytest.raises(ValueError, match=rf"{name}: row 617, column 2.* is missing or NaN"):
        joined(path, chunk_size=100)


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
    with pytest.raises(FileNotFoundError, match="no such file"):
        chunks(tmp_path / "folder.csv")
    for name in ("x.txt", "x", "x.tar.gz"):
        with pytest.raises(ValueError, match=r"suffix must say .* \.h5, .*\.npy"):
            chunks(tmp_path / name)


def test_data_sets_of_hdf5_files(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=X, chunks=(64, 2), compression="gzip")
        file["b/c"] = -X
        file["line"] = X[0]
    assert [len(c) for c in chunks(path, dataset="a", chunk_size=100)][:-1] == [128] * 7
    np.testing.assert_array_equal(joined(path, dataset="b/c"), -X)
    with pytest.raises(ValueError, match=r"x\.h5: has 2 two-dimensional data sets: a, b/c"):
        chunks(path)
    for name in ("line", "none", "b"):
        with pytest.raises(ValueError, match=f"no two-dimensional data set '{name}'.* a, b/c"):
            chunks(path, dataset=name)
    with pytest.raises(ValueError, match="for HDF5 files only"):
        chunks(write(tmp_path / "x.npy", X), dataset="a")
    with pytest.raises(ValueError, match="without a file"):
        chunks(X, dataset="a")


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
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match=r"x\.parquet: .*pip install 'privclust\[files\]'"):
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
        (X.astype(str), "where real numbers should be"),
        (X + 1j, "where real numbers should be"),
        (3, "an array, a path or an iterable"),
        (np.where(X[2, 2] == X, np.inf, X)[2:], "row 1, column 3 is infinite"),
    ],
)
def test_arrays_that_are_no_records(source, reason):
    with pytest.raises(ValueError, match=reason):
        joined(source)


def test_chunk_size_is_checked():
    with pytest.raises(ValueError, match="chunk_size"):
        chunks(X, chunk_size=0)


@pytest.mark.parametrize("name", ["x.h5", "x.npy", "x.parquet", "x.csv"])
def test_memory_is_that_of_a_chunk(tmp_path, name):
    """32 times the rows of a chunk take less than 4 chunks (text: 8) of what Python allocates."""
    n, d, size = 64_000, 8, 2_000
    path = write(tmp_path / name, np.ones((n, d)))
    chunk_bytes = size * d * 8
    joined(path, chunk_size=size)[0]  # what is imported or kept is not counted
    tracemalloc.start()
    rows = sum(len(chunk) for chunk in chunks(path, chunk_size=size))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == n
    assert peak < (8 if name == "x.csv" else 4) * chunk_bytes + 300_000
