"""Features in files: the project's own, a user's, and what is refused."""

import h5py
import numpy as np
import pytest

from privclust.core.hdf5 import FileError
from privclust.features import load_features, save_features
from privclust_papers.pipeline import artefacts

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = np.array([5, -1, 5, 7])


@pytest.fixture
def written(tmp_path):
    """Write a user's own file."""

    def write(**arrays):
        path = tmp_path / "mine.npz"
        np.savez(path, **arrays)
        return path

    return write


def test_own_features_come_back(tmp_path):
    path = tmp_path / "new" / "f.h5"
    train = np.array([True, False, True, False])
    digest = save_features(path, X, Y, train=train, names=["a", "\u00e9"], about={"model": "mine"})
    assert artefacts.read(path, "features").digest == digest
    found = load_features(path)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, Y)
    np.testing.assert_array_equal(found.train, train)
    assert found.names == ("a", "\u00e9")
    assert found.about == {"model": "mine"}


def test_a_users_file(written):
    found = load_features(written(X=X, y=Y, other=np.zeros(2)))
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, Y)
    assert found.y.dtype == np.int64
    assert found.train is None
    assert found.names is None
    assert not found.about


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(np.float64, np.float64), (np.float32, np.float32), (np.float16, np.float32),
     (np.uint8, np.float32)],
)  # fmt: skip
def test_types_of_numbers(written, dtype, kept):
    found = load_features(written(X=X.astype(dtype), y=Y.astype(np.float32)))
    assert found.X.dtype == kept
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, Y)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"X": None}, "has no array X, only y"),
        ({"y": None}, "has no array y, only X"),
        ({"X": X[0]}, r"X: got shape \(3,\)"),
        ({"X": X[:, :0]}, r"X: got shape \(4, 0\)"),
        ({"X": X * 1j}, "type complex"),
        ({"X": np.where(X > 7, np.nan, X)}, "2 of 4 rows hold NaN .* the first is row 2"),
        ({"X": np.where(X == 4, np.inf, X)}, "1 of 4 rows hold NaN .* the first is row 1"),
        ({"pixels": X[:3]}, "pixels: got 3 rows; it must be 4, as X"),
        ({"pixels": X * np.nan}, "pixels: 4 of 4 rows hold NaN"),
        ({"y": Y[:3]}, r"y: got shape \(3,\); it must be \(4,\)"),
        ({"y": Y[:, None]}, r"y: got shape \(4, 1\)"),
        ({"y": Y + 0.5}, "labels must be whole numbers, none missing"),
        ({"y": np.array([1, 2, np.nan, 3])}, "labels must be whole numbers, none missing"),
        ({"y": np.array([b"a"] * 4)}, "labels must be whole numbers"),
        ({"train": np.ones(4)}, "train: got shape .* it must be 4 truth values"),
    ],
)
def test_arrays_that_do_not_fit(written, changes, reason):
    arrays = {"X": X, "y": Y} | changes
    path = written(**{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(ValueError, match=reason) as error:
        load_features(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_damaged_files(written):
    path = written(X=X, y=Y)
    for content in (path.read_bytes()[:200], b"", b"text"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{path.name}: not a whole"):
            load_features(path)


def test_pickled_objects_are_refused(tmp_path):
    np.savez(tmp_path / "f.npz", X=np.array([[None]]), y=np.zeros(1))
    with pytest.raises(ValueError, match="not a whole npz archive of numbers"):
        load_features(tmp_path / "f.npz")


def test_file_that_is_not_there_or_of_another_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.h5: there is no such file"):
        load_features(tmp_path / "none.h5")
    (tmp_path / "f.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"must be in \.h5 or \.npz, got 'f\.csv'"):
        load_features(tmp_path / "f.csv")


def test_artefact_of_another_kind_or_damaged(tmp_path):
    path = tmp_path / "f.h5"
    artefacts.write(path, "dataset", {"X": X, "y": Y}, {})
    with pytest.raises(FileError, match="holds a 'dataset' artefact, not a 'features'"):
        load_features(path)
    save_features(path, X, Y)
    with h5py.File(path, "r+") as file:
        file["X"][0, 0] = 9
    with pytest.raises(FileError, match="does not fit its digest"):
        load_features(path)


def test_features_that_do_not_fit_are_not_written(tmp_path):
    for arrays, reason in (((X * np.nan, Y), "hold NaN"), ((X, Y[:2]), "y: got shape")):
        with pytest.raises(ValueError, match=reason):
            save_features(tmp_path / "f.h5", *arrays)
    with pytest.raises(ValueError, match=r"written to \.h5, got 'f\.npz'"):
        save_features(tmp_path / "f.npz", X, Y)
    assert not list(tmp_path.iterdir())
