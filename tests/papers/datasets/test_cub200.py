"""CUB-200-2011: the official layout, and the photographs cropped and made smaller."""

import io
import tarfile

import numpy as np
import pytest

from privclust.features.images import ImageList
from privclust_papers.datasets import cub200
from privclust_papers.datasets.registry import DataError


def _jpeg(width, height, seed=0):
    image_module = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")
    colour = np.random.default_rng(seed).integers(0, 256, 3)
    pixels = np.broadcast_to(colour.astype(np.uint8), (height, width, 3))
    buffer = io.BytesIO()
    image_module.fromarray(pixels).save(buffer, "JPEG")
    return buffer.getvalue()


def write_tar(path, files, prefix=""):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            if content is not None:
                content = content.encode() if isinstance(content, str) else content
                member = tarfile.TarInfo(prefix + name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


SIZES = [(384, 256), (256, 341), (200, 150)]
BOXES = [[60.0, 27.0, 325.0, 304.0], [0.0, 0.0, 375.0, 500.0], [10.0, 20.0, 100.0, 90.0]]


@pytest.fixture
def pack(tmp_path, monkeypatch):
    """Write an archive of three images of classes 4, 4 and 9."""

    monkeypatch.setattr(cub200, "N_IMAGES", 3)

    def write(changes=(), prefix="CUB_200_2011/", crops=False):
        names = ["004.A/one.jpg", "004.A/two.jpg", "009.B/three.jpg"]
        files = {
            "images.txt": "".join(f"{i + 1} {name}\n" for i, name in enumerate(names)),
            "image_class_labels.txt": "1 4\n2 4\n3 9\n4 1\n",
            "train_test_split.txt": "1 0\n2 1\n3 1\n4 1\n",
            "bounding_boxes.txt": "".join(
                f"{i + 1} {' '.join(map(str, box))}\n" for i, box in enumerate(BOXES)
            ),
            "classes.txt": "".join(f"{i} {i:03d}.Name_{i}\n" for i in range(1, 201)),
            "parts/parts.txt": "1 back\n",
        }
        images = {
            f"images/{n}": _jpeg(*s) for n, s in zip(reversed(names), SIZES[::-1], strict=True)
        }
        if crops:
            write_tar(tmp_path / "images.tar.gz", images)
            images = {"images.tar.gz": (tmp_path / "images.tar.gz").read_bytes()}
        path = tmp_path / "CUB_200_2011.tgz"
        write_tar(path, files | images | dict(changes), prefix)
        return path

    return write


def test_official_layout(pack):
    arrays = cub200.read(pack())
    np.testing.assert_array_equal(arrays["y"], [3, 3, 8])
    np.testing.assert_array_equal(arrays["train"], [False, True, True])
    np.testing.assert_array_equal(arrays["boxes"], BOXES)
    assert arrays["files"].tolist() == [b"004.A/one.jpg", b"004.A/two.jpg", b"009.B/three.jpg"]
    assert len(arrays["names"]) == 200
    first = arrays["images"][: arrays["offsets"][1]].tobytes()
    assert first == _jpeg(*SIZES[0])


def test_a_part_is_not_the_whole(pack, monkeypatch):
    monkeypatch.setattr(cub200, "N_IMAGES", 11_788)
    for read in (cub200.read, cub200.read_crops):
        with pytest.raises(DataError, match="lists 3 images where the data set has 11788"):
            read(pack())


def test_crops_are_in_an_archive_of_their_own_and_have_no_boxes(pack):
    arrays = cub200.read_crops(pack(crops=True, prefix=""))
    np.testing.assert_array_equal(arrays["y"], [3, 3, 8])
    assert arrays["files"].tolist() == [b"004.A/one.jpg", b"004.A/two.jpg", b"009.B/three.jpg"]
    images = ImageList.from_arrays(arrays)
    assert [images[i].shape[:2] for i in range(3)] == [(h, w) for w, h in SIZES]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"images.txt": None}, "has no images.txt"),
        ({"images.txt": ""}, "lists 0 images where"),
        ({"images.txt": "one 004.A/one.jpg\n"}, "images.txt has the line 'one 004"),
        ({"images/004.A/two.jpg": None}, "has no images/004.A/two.jpg, which images.txt lists"),
        ({"bounding_boxes.txt": "1 1 2 3\n"}, "it must be a number and 4 value"),
        ({"bounding_boxes.txt": "1 1 2 3 4\n"}, "bounding_boxes.txt has no line for image 2"),
        ({"image_class_labels.txt": "1 4\n"}, "has no line for image 2"),
        ({"image_class_labels.txt": "1 4\n2 4\n3 201\n"}, "may give 1 to 200"),
        ({"train_test_split.txt": "1 a\n2 1\n3 1\n"}, "must be numbers"),
        ({"classes.txt": "1 001.Name\n"}, "may number the classes 1 to 200"),
    ],
)
def test_archives_that_are_something_else(pack, changes, reason):
    with pytest.raises(DataError, match=reason) as error:
        cub200.read(pack(changes))
    assert "\n" not in str(error.value)


def test_archive_that_is_not_whole(pack, tmp_path):
    path = pack()
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="not a whole tar archive"):
        cub200.read(path)


def test_real_crops(mirror):
    pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")
    if not (mirror / "cub200_crops").is_dir():
        pytest.skip("the mirror has no cub200_crops")
    arrays = cub200.read_crops(mirror / "cub200_crops")
    assert len(np.unique(arrays["y"])) == 200
    assert arrays["train"].sum() == 5994
    images = ImageList.from_arrays(arrays)
    assert all(0 < min(images[i].shape[:2]) <= 100 for i in range(0, len(images), 500))
