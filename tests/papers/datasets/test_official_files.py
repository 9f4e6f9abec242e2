"""Files of the official layout, generated: what their readers give, and in how much memory.

benchmarks/official_files.py reads them as large as the real ones are.
"""

import importlib.util
import tarfile
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from privclust.features.images import ImageList, take_images
from privclust_papers.datasets import cars196, cub200, gowalla

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "official_files.py"


@pytest.fixture(scope="module")
def official():
    pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")
    spec = importlib.util.spec_from_file_location("official_files", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cars(official, tmp_path_factory):
    """Path of an archive of Cars196, and its number of images."""
    path = tmp_path_factory.mktemp("cars") / "cars196.tar"
    return path, official.write_cars196(path, share=0.02)


@pytest.fixture(scope="module")
def birds(official, tmp_path_factory):
    """Path of an archive of CUB-200-2011, and its number of images."""
    path = tmp_path_factory.mktemp("birds") / "CUB_200_2011.tgz"
    return path, official.write_cub200(path, share=0.02)


def comments(arrays):
    """Return the number that each JPEG's first comment begins with."""
    starts = arrays["offsets"][:-1] + 6
    return [int(arrays["images"][s : s + 8].tobytes().split(b" ")[0]) for s in starts]


def check_images(arrays):
    """Decode each image, grey and CMYK ones too, and cut it to its box."""
    images = ImageList.from_arrays(arrays)
    assert images.unreadable() == []
    for image, (_, _, width, height) in zip(images, arrays["boxes"], strict=True):
        assert image.dtype == np.uint8
        assert image.shape == (height, width, 3)


def test_sizes_are_the_published_ones(official):
    assert official.N_BIRDS == cub200.N_IMAGES
    assert sum(official.N_CARS) == cars196.N_IMAGES


def test_birds(birds, tmp_path, monkeypatch):
    path, n_images = birds
    monkeypatch.setattr(cub200, "N_IMAGES", n_images)
    arrays = cub200.read(path)
    check_images(arrays)
    order = np.random.default_rng(1).permutation(n_images)
    np.testing.assert_array_equal(comments(arrays), np.argsort(order))
    np.testing.assert_array_equal(arrays["train"], np.arange(n_images) % 2 == 1)
    assert np.bincount(arrays["y"]).min() == 1
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    unpacked = cub200.read(tmp_path / "unpacked" / "CUB_200_2011")
    for name, array in arrays.items():
        np.testing.assert_array_equal(unpacked[name], array)


def test_cars(cars, tmp_path, monkeypatch):
    path, n_images = cars
    monkeypatch.setattr(cars196, "N_IMAGES", n_images)
    arrays = cars196.read(path)
    check_images(arrays)
    n_train = arrays["train"].sum()
    assert comments(arrays) == [*range(n_train), *range(n_images - n_train)]
    assert arrays["files"][[0, -1]].tolist() == [
        b"cars_train/00001.jpg",
        b"cars_test/%05d.jpg" % (n_images - n_train),
    ]
    assert len(set(map(bytes, arrays["names"]))) == 196
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    for name, array in cars196.read(tmp_path / "unpacked").items():
        np.testing.assert_array_equal(array, arrays[name])
    assert cars196.content_sha256(tmp_path / "unpacked") == cars196.content_sha256(path)


def test_checkins(official, tmp_path):
    path = tmp_path / "loc-gowalla_totalCheckins.txt.gz"
    n_places = official.write_gowalla(path, share=0.02)
    points = gowalla.read(path)["points"]
    assert points.shape == (n_places, 2)
    assert (np.abs(points) <= [180, 90]).all()


@pytest.mark.parametrize(("reader", "archive"), [(cub200, "birds"), (cars196, "cars")])
def test_images_are_in_memory_once(request, monkeypatch, reader, archive):
    path, n_images = request.getfixturevalue(archive)
    monkeypatch.setattr(reader, "N_IMAGES", n_images)
    tracemalloc.start()
    try:
        if reader is cars196:
            reader.content_sha256(path)
        arrays = reader.read(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = arrays["images"].nbytes
    assert size > 20e6
    assert most < size + 8e6  # annotations, and one image


def test_some_images_are_taken_and_all_are_not_copied(official, tmp_path, monkeypatch):
    path = tmp_path / "CUB_200_2011.tgz"
    monkeypatch.setattr(cub200, "N_IMAGES", official.write_cub200(path, share=0.002))
    arrays = cub200.read(path)
    n_images = len(arrays["y"])
    assert take_images(arrays, np.arange(n_images))["images"] is arrays["images"]
    some = take_images(arrays, np.array([3, 0, n_images - 1]))
    bounds = list(pairwise(arrays["offsets"]))
    expected = [arrays["images"][slice(*bounds[i])] for i in (3, 0, n_images - 1)]
    np.testing.assert_array_equal(some["images"], np.concatenate(expected))
    np.testing.assert_array_equal(np.diff(some["offsets"]), [len(e) for e in expected])
