"""Cars196: the four official files in one archive."""

import hashlib
import io
import tarfile

import numpy as np
import pytest
from scipy.io import savemat

from privclust_papers.datasets import cars196
from privclust_papers.datasets.registry import DataError

TYPE = [(name, "O") for name in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")]


def _mat(**variables):
    buffer = io.BytesIO()
    savemat(buffer, variables)
    return buffer.getvalue()


def _annotations(*records):
    return _mat(annotations=np.array(list(records), dtype=TYPE).reshape(1, -1))


def _tgz(files, mode="w:gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


TRAIN = _annotations((39, 116, 569, 375, 14, "00001.jpg"), (1, 1, 10, 20, 196, "00002.jpg"))
TEST = _annotations((30, 52, 246, 147, 1, "00001.jpg"))
META = _mat(class_names=np.array([[f"Model {i}" for i in range(196)]], dtype=object))


IMAGES = {"cars_train/00002.jpg": b"second", "cars_train/00001.jpg": b"first"}


def _written(path, files):
    path.write_bytes(_tgz({n: c for n, c in files.items() if c is not None}, "w"))
    return path


@pytest.fixture
def pack(tmp_path, monkeypatch):
    """Write an archive with two training images and a test image."""
    monkeypatch.setattr(cars196, "N_IMAGES", 3)

    def write(changes=(), devkit=()):
        kit = {"cars_train_annos.mat": TRAIN, "cars_meta.mat": META} | dict(devkit)
        kit = {f"devkit/{name}": content for name, content in kit.items() if content is not None}
        files = {
            "car_devkit.tgz": _tgz(kit),
            "cars_train.tgz": _tgz(IMAGES),
            "cars_test.tgz": _tgz({"cars_test/00001.jpg": b"third"}),
            "cars_test_annos_withlabels.mat": TEST,
        } | dict(changes)
        return _written(tmp_path / "cars196.tar", files)

    return write


def test_official_layout(pack):
    arrays = cars196.read(pack())
    assert arrays["images"].tobytes() == b"firstsecondthird"
    np.testing.assert_array_equal(arrays["offsets"], [0, 5, 11, 16])
    np.testing.assert_array_equal(arrays["y"], [13, 195, 0])
    np.testing.assert_array_equal(arrays["train"], [True, True, False])
    # MATLAB's pixel 1 is ours 0, and its last pixel is in the box
    np.testing.assert_array_equal(
        arrays["boxes"], [[38, 115, 531, 260], [0, 0, 10, 20], [29, 51, 217, 96]]
    )
    assert arrays["names"][195] == b"Model 195"
    assert arrays["files"].tolist()[2] == b"cars_test/00001.jpg"


def test_checksum_is_of_the_official_files_md5(pack):
    path = pack()
    with tarfile.open(path) as archive:
        lines = sorted(
            f"{m.name} {hashlib.md5(archive.extractfile(m).read()).hexdigest()}\n" for m in archive
        )
    expected = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert cars196.content_sha256(path) == expected
    assert cars196.content_sha256(pack({"cars_test.tgz": b"other"})) != expected


@pytest.mark.parametrize(
    ("changes", "devkit", "reason"),
    [
        ({"cars_test.tgz": None}, {}, "has no cars_test.tgz"),
        ({"cars_test.tgz": b"no"}, {}, "cars_test.tgz: not a whole tar archive"),
        ({"cars_train.tgz": _tgz({"a/00001.jpg": b""})}, {}, "1 images are missing in cars_train"),
        ({}, {"cars_meta.mat": None}, "car_devkit.tgz has no cars_meta.mat"),
        ({}, {"cars_meta.mat": _mat(a=1)}, "cars_meta.mat: has no variable class_names"),
        ({}, {"cars_meta.mat": b"text"}, "cars_meta.mat: cannot be read as MATLAB 5"),
        ({}, {"cars_train_annos.mat": _mat(annotations=1)}, "annotations may have fname, class"),
        (
            {"cars_test_annos_withlabels.mat": _annotations((1, 1, 2, 2, 197, "00001.jpg"))},
            {},
            "classes must be 1 to 196",
        ),
    ],
)
def test_archives_that_are_something_else(pack, changes, devkit, reason):
    with pytest.raises(DataError, match=reason) as error:
        cars196.read(pack(changes, devkit))
    assert "\n" not in str(error.value)


def test_number_of_images(pack, monkeypatch):
    path = pack()
    monkeypatch.setattr(cars196, "N_IMAGES", 16_185)
    with pytest.raises(DataError, match="holds 3 images where the data set has 16185"):
        cars196.read(path)


@pytest.fixture
def crops(tmp_path, monkeypatch):
    monkeypatch.setattr(cars196, "N_TRAIN", 2)

    def write(changes=()):
        files = {
            "cars_meta.mat": META,
            "cars_train.tar.gz": _tgz(IMAGES),
            "cars_train_annos.mat": TRAIN,
        } | dict(changes)
        return _written(tmp_path / "cars196_crops.tar", files)

    return write


def test_crops_have_no_boxes(crops):
    arrays = cars196.read_crops(crops())
    assert arrays["images"].tobytes() == b"firstsecond"
    np.testing.assert_array_equal(arrays["y"], [13, 195])
    assert "boxes" not in arrays
    assert arrays["train"].all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cars_meta.mat": None}, "has no cars_meta.mat"),
        ({"cars_train.tar.gz": None}, "holds 0 images where the training half has 2"),
        ({"cars_train.tar.gz": _tgz({"cars_train/00001.jpg": b"x"})}, "holds 1 images"),
        ({"cars_train.tar.gz": b"junk"}, "not a whole tar archive"),
    ],
)
def test_crops_that_are_something_else(crops, changes, reason):
    with pytest.raises(DataError, match=reason):
        cars196.read_crops(crops(changes))


def test_real_crops(mirror):
    if not (mirror / "cars196_crops").is_dir():
        pytest.skip("the mirror has no cars196_crops")
    arrays = cars196.read_crops(mirror / "cars196_crops")
    assert len(np.unique(arrays["y"])) == 196
    assert len(arrays["files"]) == 8144
