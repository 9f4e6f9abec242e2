"""CUB-200-2011: the official layout, the part with boxes of other sizes."""

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


SIZES = [(384, 256), (256, 341), (200, 150)]  # of the part: two made smaller, one as it was
BOXES = [[60.0, 27.0, 325.0, 304.0], [0.0, 0.0, 375.0, 500.0], [10.0, 20.0, 100.0, 90.0]]


@pytest.fixture
def pack(tmp_path):
    """Write an archive of three images of classes 4, 4 and 9."""

    def write(changes=(), prefix="CUB_200_2011/"):
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
        path = tmp_path / "CUB_200_2011.tgz"
        with tarfile.open(path, "w:gz") as archive:
            for name, content in (files | images | dict(changes)).items():
                if content is not None:
                    content = content.encode() if isinstance(content, str) else content
                    member = tarfile.TarInfo(prefix + name)
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        return path

    return write


def test_official_layout(pack, monkeypatch):
    monkeypatch.setattr(cub200, "N_IMAGES", 3)
    arrays = cub200.read(pack())
    np.testing.assert_array_equal(arrays["y"], [3, 3, 8])
    np.testing.assert_array_equal(arrays["train"], [False, True, True])
    np.testing.assert_array_equal(arrays["boxes"], BOXES)
    assert arrays["files"].tolist() == [b"004.A/one.jpg", b"004.A/two.jpg", b"009.B/three.jpg"]
    assert len(arrays["names"]) == 200
    first = arrays["images"][: arrays["offsets"][1]].tobytes()
    assert first == _jpeg(*SIZES[0])


def test_whole_is_not_a_part(pack):
    with pytest.raises(DataError, match="holds 3 images where the data set has 11788"):
        cub200.read(pack())


def test_part_has_boxes_in_its_own_pixels(pack):
    arrays = cub200.read_part(pack(prefix=""))
    np.testing.assert_array_equal(arrays["y"], [0, 0, 1])
    assert arrays["names"].tolist() == [b"004.Name_4", b"009.Name_9"]
    scales = np.array([[384 / 500], [341 / 500], [1.0]])
    np.testing.assert_allclose(arrays["boxes"], BOXES * scales)
    images = ImageList.from_arrays(arrays)
    assert images[1].shape == (341, 256, 3)
    assert images[2].shape == (90, 100, 3)
    assert images.name(2) == "009.B/three.jpg"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"images.txt": None}, "has no images.txt"),
        ({"images.txt": ""}, "images.txt lists no image"),
        ({"images.txt": "one 004.A/one.jpg\n"}, "images.txt has the line 'one 004"),
        ({"images/004.A/two.jpg": None}, "has no images/004.A/two.jpg, which images.txt lists"),
        ({"bounding_boxes.txt": "1 1 2 3\n"}, "it may be a number and 4 value"),
        ({"bounding_boxes.txt": "1 1 2 3 4\n"}, "bounding_boxes.txt has no line for image 2"),
        ({"image_class_labels.txt": "1 4\n"}, "has no line for image 2"),
        ({"image_class_labels.txt": "1 4\n2 4\n3 201\n"}, "may give 1 to 200"),
        ({"train_test_split.txt": "1 a\n2 1\n3 1\n"}, "may be numbers"),
        ({"classes.txt": "1 001.Name\n"}, "may number the classes 1 to 200"),
        ({"images/004.A/two.jpg": b"<html>"}, "004.A/two.jpg: cannot be decoded"),
    ],
)
def test_archives_that_are_something_else(pack, changes, reason):
    with pytest.raises(DataError, match=reason) as error:
        cub200.read_part(pack(changes))
    assert "\n" not in str(error.value)


def test_archive_that_is_not_whole(pack, tmp_path):
    path = pack()
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match="not a whole tar archive"):
        cub200.read_part(path)


def test_real_part(mirror):
    pytest.importorskip("PIL.Image", reason="needs Pillow: pip install '.[images]'")
    if not (mirror / "cub200").is_dir():
        pytest.skip("the mirror has no cub200")
    arrays = cub200.read_part(mirror / "cub200")
    counts = np.bincount(arrays["y"])
    np.testing.assert_array_equal(counts, [60, 60, 58, 60, 44, 41, 53, 48, 59, 60])
    images = ImageList.from_arrays(arrays)
    for i in range(0, len(images), 20):
        left, top, width, height = arrays["boxes"][i]
        shown = images[i].shape
        # as large as the box, which lies in the image: rounded outwards, cut at the edge
        assert 0 <= shown[0] - height < 2 or top + height > 255
        assert 0 <= shown[1] - width < 2 or left + width > 255
