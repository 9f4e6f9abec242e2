"""Features of a data set: extracted once, resumed, refused where they do not fit."""

import logging

import numpy as np
import pytest

from privclust.core.hdf5 import FileError
from privclust.features import _cache, cache_features, extract_features
from privclust.features.images import UnreadableImagesError, join_files
from privclust_papers.pipeline import artefacts

SIZE = 40


@pytest.fixture
def counted(monkeypatch):
    """Count the images that the network is given."""
    run, counts = _cache.run_network, []

    def counting(images, starts, settings):
        counts.append(len(images))
        return run(images, starts, settings)

    monkeypatch.setattr(_cache, "run_network", counting)
    return counts


@pytest.fixture
def broken(gratings, png):
    """Encoded images of which two cannot be read."""
    contents = [png(image) for image in gratings["images"]]
    contents[3], contents[30] = b"", contents[30][:60]
    return {**gratings, **join_files(contents)}


def test_features_are_extracted_once(network, gratings, tmp_path, counted):
    path = tmp_path / "new" / "f.h5"
    features = cache_features(gratings, path, size=SIZE, shard=16)
    assert counted == [16, 16, 8]
    np.testing.assert_array_equal(features.X, extract_features(gratings["images"], size=SIZE))
    np.testing.assert_array_equal(features.y, gratings["y"])
    np.testing.assert_array_equal(features.train, gratings["train"])
    assert features.names == tuple(f"grating {i}" for i in range(5))
    assert features.about["skipped"] == []
    again = cache_features(gratings, path, size=SIZE)
    assert counted == [16, 16, 8]
    np.testing.assert_array_equal(again.X, features.X)
    assert sorted(p.name for p in path.parent.iterdir()) == ["f.h5"]


def test_size_of_shards_batches_and_threads_change_no_byte(network, gratings, tmp_path):
    settings = ({"shard": 7, "batch": 3, "threads": 2}, {"shard": 100, "threads": 1})
    files = [tmp_path / f"{i}.h5" for i in range(2)]
    for file, setting in zip(files, settings, strict=True):
        cache_features(gratings, file, size=SIZE, **setting)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_interrupted_run_goes_on_where_it_was(network, gratings, tmp_path, monkeypatch):
    path, run, n_runs = tmp_path / "f.h5", _cache.run_network, []

    def interrupted(images, starts, settings):
        n_runs.append(len(images))
        if len(n_runs) == 3:
            raise KeyboardInterrupt
        return run(images, starts, settings)

    monkeypatch.setattr(_cache, "run_network", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache_features(gratings, path, size=SIZE, shard=10)
    assert not path.exists()
    first, _ = sorted((tmp_path / ".f.h5.shards").iterdir())
    first.write_bytes(first.read_bytes()[:100])  # a damaged shard is extracted again
    features = cache_features(gratings, path, size=SIZE, shard=10)
    assert n_runs == [10, 10, 10, 10, 10, 10]
    np.testing.assert_array_equal(features.X, extract_features(gratings["images"], size=SIZE))


def test_shards_of_other_images_are_not_taken(network, gratings, tmp_path, counted, monkeypatch):
    path = tmp_path / "f.h5"
    monkeypatch.setattr(_cache.shutil, "rmtree", lambda *args, **kwargs: None)
    cache_features(gratings, path, size=SIZE, shard=20)
    path.unlink()
    changed = gratings["images"].copy()
    changed[0, 0, 0, 0] ^= 1
    cache_features({**gratings, "images": changed}, path, size=SIZE, shard=20)
    assert counted == [20, 20, 20, 20]


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


def test_unreadable_images_are_skipped_only_when_asked(network, broken, tmp_path, caplog):
    path = tmp_path / "f.h5"
    with pytest.raises(UnreadableImagesError, match=r"2 of 40 images .*generated 3 .*generated 30"):
        cache_features(broken, path, size=SIZE)
    assert not path.exists()
    with caplog.at_level(logging.WARNING, "privclust"):
        features = cache_features(broken, path, size=SIZE, skip_unreadable=True)
    assert "2 of 40 images cannot be read: generated 3 " in caplog.text
    kept = np.delete(np.arange(40), [3, 30])
    np.testing.assert_array_equal(features.y, broken["y"][kept])
    np.testing.assert_array_equal(features.train, broken["train"][kept])
    assert features.about["skipped"] == ["generated 3", "generated 30"]
    assert len(cache_features(broken, path, size=SIZE, skip_unreadable=True).X) == 38
    with pytest.raises(UnreadableImagesError, match="2 of 40"):
        cache_features(broken, path, size=SIZE)


def test_no_image_can_be_read(network, tmp_path):
    arrays = {**join_files([b"a", b"b"]), "y": np.zeros(2, dtype=int)}
    with pytest.raises(UnreadableImagesError, match="2 of 2 images cannot be read: image 0"):
        cache_features(arrays, tmp_path / "f.h5", skip_unreadable=True)


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


def test_other_suffix_and_empty_shards(gratings, tmp_path):
    with pytest.raises(ValueError, match=r"features are written to \.h5, got 'f\.npz'"):
        cache_features(gratings, tmp_path / "f.npz")
    with pytest.raises(ValueError, match="shard must be an integer of at least 1"):
        cache_features(gratings, tmp_path / "f.h5", shard=0)


def test_artefact_says_what_decided_the_features(network, gratings, tmp_path):
    cache_features(gratings, tmp_path / "f.h5", size=SIZE)
    about = artefacts.read(tmp_path / "f.h5", "features").parameters
    assert (about["model"], about["size"], about["crop"]) == ("lite0", SIZE, 0.875)
    assert about["weights"].startswith("57934424")
