"""Chunks from arrays and iterators; what is wrong with one is said in one line."""

import tracemalloc

import h5py
import numpy as np
import pandas as pd
import pytest

from privclust.records import streams
from privclust.records.streams import chunks

X = np.random.default_rng(0).integers(-4096, 4096, (1000, 3)) / 256


def joined(source):
    return np.concatenate(list(chunks(source)))


@pytest.fixture
def of_rows(monkeypatch):
    """Make chunks have a number of rows."""

    def of_rows(n):
        monkeypatch.setattr(streams, "_rows", lambda n_features: n)

    return of_rows


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
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(joined(np.load(tmp_path / "x.npy", mmap_mode="r")), X)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        np.testing.assert_array_equal(joined(file.create_dataset("points", data=X)), X)
    pieces = [X[:1], X[1:1], X[1:700], X[700:]]
    assert [len(chunk) for chunk in chunks(iter(pieces))] == [1, 0, 699, 300]
    np.testing.assert_array_equal(joined([X.tolist()]), X)
    empty = chunks(X[:0])
    assert (empty.n_features, list(empty)) == (3, [])


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
        (3, "an array or an iterable of chunks, got <class 'int'>"),
        ("x.csv", r"got a path: read tables by .*of_table, .npy files by numpy\.load"),
        (np.where(X[2, 2] == X, np.inf, X)[2:], "row 1, column 3 is infinite"),
    ],
)
def test_arrays_that_are_no_records(source, reason):
    with pytest.raises(ValueError, match=reason):
        joined(source)


def test_memory_is_that_of_a_chunk(tmp_path, of_rows):
    """32 times the rows of a chunk take less than 4 chunks of what Python allocates."""
    n, d, size = 64_000, 8, 2_000
    np.save(tmp_path / "x.npy", np.ones((n, d)))
    of_rows(size)
    source = np.load(tmp_path / "x.npy", mmap_mode="r")
    next(iter(chunks(source)))  # what is imported or kept is not counted
    tracemalloc.start()
    rows = sum(map(len, chunks(source)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == n
    assert peak < 4 * size * d * 8 + 300_000
