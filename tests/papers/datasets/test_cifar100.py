"""CIFAR-100: the official archive and contact sheets give the same arrays."""

import io
import tarfile
import zipfile

import numpy as np
import pytest

from privclust_papers.datasets import cifar100
from privclust_papers.datasets.registry import DataError

N_IMAGES = {"train": 4, "test": 2}
NAMES = [f"class_{i}" for i in range(100)]


@pytest.fixture(autouse=True)
def _few_images(monkeypatch):
    monkeypatch.setattr(cifar100, "N_IMAGES", N_IMAGES)


@pytest.fixture(scope="module")
def pixels():
    rng = np.random.default_rng(0)
    shapes = {split: (100, count, 32, 32, 3) for split, count in N_IMAGES.items()}
    return {s: rng.integers(0, 256, shape, dtype=np.uint8) for s, shape in shapes.items()}


def _pack(path, files, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def _binary(pixels, order_seed=1):
    files = {"fine_label_names.txt": "\n".join(NAMES).encode() + b"\n"}
    for split, images in pixels.items():
        labels = np.repeat(np.arange(100, dtype=np.uint8), N_IMAGES[split])
        planes = images.reshape(-1, 1024, 3).transpose(0, 2, 1).reshape(-1, 3072)
        records = np.column_stack([labels // 5, labels, planes])
        shuffled = np.random.default_rng(order_seed).permutation(records)
        files[f"{split}.bin"] = shuffled.astype(np.uint8).tobytes()
    return files


def _sheets(pixels):
    image_module = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")
    files = {}
    for split, images in pixels.items():
        rows = N_IMAGES[split] // 2
        for label, tiles in enumerate(images):
            sheet = tiles.reshape(rows, 2, 32, 32, 3).transpose(0, 2, 1, 3, 4)
            buffer = io.BytesIO()
            sheet = np.ascontiguousarray(sheet.reshape(rows * 32, 64, 3))
            image_module.fromarray(sheet).save(buffer, "WEBP", lossless=True, method=0)
            files[f"{split}/{label:02d}_{NAMES[label]}.webp"] = buffer.getvalue()
    return files


@pytest.fixture(scope="module")
def official(pixels, tmp_path_factory):
    files = {f"cifar-100-binary/{name}": content for name, content in _binary(pixels).items()}
    return _pack(tmp_path_factory.mktemp("cifar") / "official.tar.gz", files, "w:gz")


def test_official_archive(official, pixels):
    arrays = cifar100.read(official)
    assert arrays["images"].shape == (600, 32, 32, 3)
    assert arrays["images"].dtype == np.uint8
    np.testing.assert_array_equal(arrays["train"], np.arange(600) < 400)
    np.testing.assert_array_equal(arrays["y"][:400], np.repeat(np.arange(100), 4))
    np.testing.assert_array_equal(arrays["y"][400:], np.repeat(np.arange(100), 2))
    assert arrays["names"].tolist() == [name.encode() for name in NAMES]
    for split in N_IMAGES:
        for label in (0, 41, 99):
            here = (arrays["y"] == label) & (arrays["train"] == (split == "train"))
            found = {image.tobytes() for image in arrays["images"][here]}
            assert found == {image.tobytes() for image in pixels[split][label]}


def test_contact_sheets_give_the_same_arrays(official, pixels, tmp_path):
    files = _sheets(pixels)
    sheets = _pack(tmp_path / "sheets.tar", files)
    folder = tmp_path / "unpacked"
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    expected = cifar100.read(official)
    for source in (sheets, folder):
        found = cifar100.read(source)
        assert list(found) == list(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
    assert cifar100.content_sha256(sheets) == cifar100.content_sha256(official)


def test_order_of_the_archive_does_not_matter_but_its_pixels_do(official, pixels, tmp_path):
    other = _pack(tmp_path / "order.tar", _binary(pixels, order_seed=2))
    assert cifar100.content_sha256(other) == cifar100.content_sha256(official)
    changed = {split: images.copy() for split, images in pixels.items()}
    changed["test"][7, 1, 3, 4, 2] ^= 1
    other = _pack(tmp_path / "changed.tar", _binary(changed))
    assert cifar100.content_sha256(other) != cifar100.content_sha256(official)


def test_binary_archives_that_are_something_else(pixels, tmp_path):
    whole = _binary(pixels)
    moved = bytearray(whole["test.bin"])
    moved[1] = (moved[1] + 1) % 100
    beyond = bytearray(whole["test.bin"])
    beyond[1] = 100
    for changes, reason in (
        (
            {"test.bin": whole["test.bin"][:-1]},
            r"test\.bin has \d+ bytes; it must have 200 rec",
        ),
        ({"train.bin": None}, r"train\.bin has 0 bytes"),
        ({"fine_label_names.txt": b"apple\n"}, "names 1 classes; it may name 100"),
        ({"test.bin": bytes(moved)}, "has not 2 images of each class"),
        ({"test.bin": bytes(beyond)}, "has not 2 images of each class"),
    ):
        files = {name: content for name, content in (whole | changes).items() if content}
        with pytest.raises(DataError, match=reason):
            cifar100.read(_pack(tmp_path / "other.tar", files))
    with pytest.raises(DataError, match=r"has neither train\.bin"):
        cifar100.read(_pack(tmp_path / "other.tar", {"a.txt": b"a"}))


def test_sheets_that_are_something_else(pixels, tmp_path):
    whole = _sheets(pixels)
    last, other = f"test/99_{NAMES[99]}.webp", f"train/00_{NAMES[0]}.webp"
    for changes, reason in (
        ({last: None}, r"1 of 200 contact sheets are missing, such as test/99"),
        ({last: whole[last][:50]}, r"test/99_class_99\.webp: cannot be decoded"),
        ({last: whole[other]}, r"has 64 x 64 pixels; it must have 2 tiles"),
        ({last: None, "test/99_other.webp": whole[last]}, "name other classes"),
    ):
        files = {name: content for name, content in (whole | changes).items() if content}
        with pytest.raises(DataError, match=reason):
            cifar100.read(_pack(tmp_path / "other.tar", files))


def test_archive_that_is_not_whole(official, tmp_path):
    for content in (official.read_bytes()[:5000], b"<html>", b""):
        (tmp_path / "cut.tar.gz").write_bytes(content)
        with pytest.raises(DataError, match=r"cut\.tar\.gz: not a whole tar archive"):
            cifar100.read(tmp_path / "cut.tar.gz")
    with pytest.raises(DataError, match="no such file; fetch the data set first"):
        cifar100.read(tmp_path / "none.tar.gz")


def test_a_damaged_archive_is_named_by_what_it_is(tmp_path):
    """The first bytes tell the kind of archive, whatever its name ends in."""
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("train.txt", "1 2\n" * 200)
    for name in ("cut.ZIP", "cut.tar.gz", "cut"):
        (tmp_path / name).write_bytes(whole.read_bytes()[:-30])
        with pytest.raises(DataError, match="the archive is truncated"):
            cifar100.read(tmp_path / name)
    (tmp_path / "page.ZIP").write_bytes(b"<html>")
    with pytest.raises(DataError, match="not a zip archive"):
        cifar100.read(tmp_path / "page.ZIP")


@pytest.mark.slow
def test_real_sheets(mirror, monkeypatch):
    pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")
    if not (mirror / "cifar100").is_dir():
        pytest.skip("the mirror has no cifar100")
    monkeypatch.setattr(cifar100, "N_IMAGES", {"train": 500, "test": 100})
    arrays = cifar100.read(mirror / "cifar100")
    train = arrays["images"][arrays["train"]].reshape(-1, 3)
    channels = [channel.astype(np.uint16) for channel in train.T]
    means = np.array([channel.sum() for channel in channels]) / (255.0 * len(train))
    # the well-known values of the training set
    np.testing.assert_allclose(means, [0.50707516, 0.48654887, 0.44091784], atol=1e-8)
    squares = np.array([(channel**2).sum() for channel in channels]) / (255.0**2 * len(train))
    deviations = np.sqrt(squares - means**2)
    np.testing.assert_allclose(deviations, [0.26733429, 0.25643846, 0.27615047], atol=1e-8)
    assert arrays["names"][[0, 99]].tolist() == [b"apple", b"worm"]
