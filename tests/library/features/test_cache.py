"""Features of a data set: extracted once, refused where they do not fit."""

import numpy as np
import pytest

from privclust.core.hdf5 import FileError
from privclust.features import _cache, cache_features, extract_features
from privclust.features.images import UnreadableImagesError
from privclust_papers.pipeline import artefacts

SIZE = 40


@pytest.fixture
def counted(monkeypatch):
    """Count the images that the network is given."""
    run, counts = _cache.run_network, []

    def counting(images, settings, **how):
        counts.append(len(images))
        return run(images, settings, **how)

    monkeypatch.setattr(_cache, "run_network", counting)
    return counts


@pytest.fixture
def broken(gratings, png):
    """Encoded images of which two cannot be read."""
    contents = [png(image) for image in gratings["images"]]
    contents[3], contents[30] = b"", contents[30][:60]
    offsets = np.cumsum([0, *map(len, contents)])
    images = np.frombuffer(b"".join(contents), np.uint8)
    return {**gratings, "images": images, "offsets": offsets}


def test_features_are_extracted_once(network, gratings, tmp_path, counted):
    path = tmp_path / "new" / "f.h5"
    features = cache_features(gratings, path, size=SIZE)
    assert counted == [40]
    np.testing.assert_array_equal(features.X, extract_features(gratings["images"], size=SIZE))
    np.testing.assert_array_equal(features.y, gratings["y"])
    np.testing.assert_array_equal(features.train, gratings["train"])
    assert features.names == tuple(f"grating {i}" for i in range(5))
    again = cache_features(gratings, path, size=SIZE)
    assert counted == [40]
    np.testing.assert_array_equal(again.X, features.X)
    assert sorted(p.name for p in path.parent.iterdir()) == ["f.h5"]


def test_size_of_batches_and_threads_change_no_byte(network, gratings, tmp_path):
    settings = ({"batch": 3, "threads": 2}, {"threads": 1})
    files = [tmp_path / f"{i}.h5" for i in range(2)]
    for file, setting in zip(files, settings, strict=True):
        cache_features(gratings, file, size=SIZE, **setting)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_file_of_something_else_is_refused(network, gratings, tmp_path):
    path = tmp_path / "f.h5"
    cache_features(gratings, path, size=SIZE)
    with pytest.raises(FileError, match="was made with size = 40, not 64"):
        cache_features(gratings, path, size=64)
    with pytest.raises(FileError, match="was made with labels"):
        cache_features({**gratings, "y": gratings["y"] + 1}, path, size=SIZE)
    with pytest.raises(FileError, match="was made with images"):
        cache_features({**gratings, "images": gratings["images"][::-1]}, path, size=SIZE)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match="not a whole artefact"):
        cache_features(gratings, path, size=SIZE)


def test_unreadable_images_are_counted_and_named(network, broken, tmp_path):
    path = tmp_path / "f.h5"
    with pytest.raises(UnreadableImagesError, match=r"2 of 40 images .*generated 3 .*generated 30"):
        cache_features(broken, path, size=SIZE)
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"y": None}, "arrays: has no y, only"),
        ({"y": np.zeros(3, dtype=int)}, r"y: got shape \(3,\); it must be \(40,\)"),
        ({"y": np.full(40, np.nan)}, "labels must be whole numbers, none missing"),
        ({"train": np.ones(3, dtype=bool)}, r"train: got shape \(3,\)"),
        ({"files": np.array([b"a"])}, "names: got 1 for 40 images"),
        ({"boxes": np.ones((40, 3))}, r"boxes: got shape \(40, 3\)"),
    ],
)
def test_arrays_that_do_not_fit(gratings, tmp_path, changes, reason):
    arrays = {k: v for k, v in (gratings | changes).items() if v is not None}
    with pytest.raises(ValueError, match=reason):
        cache_features(arrays, tmp_path / "f.h5")


def test_other_suffix(gratings, tmp_path):
    with pytest.raises(ValueError, match=r"features are written to \.h5, got 'f\.npz'"):
        cache_features(gratings, tmp_path / "f.npz")


def test_artefact_says_what_decided_the_features(network, gratings, tmp_path):
    cache_features(gratings, tmp_path / "f.h5", size=SIZE)
    about = artefacts.read(tmp_path / "f.h5", "features").parameters
    assert (about["model"], about["size"], about["crop"]) == ("lite0", SIZE, 0.875)
    assert about["weights"].startswith("57934424")
