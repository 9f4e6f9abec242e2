"""Oxford Flowers-17: the mirror's layout."""

import numpy as np
import pytest

from privclust_papers.datasets import flowers17
from privclust_papers.datasets.registry import DataError


@pytest.fixture
def folder(tmp_path):
    """A folder of 17 classes of four files."""
    (tmp_path / "images").mkdir()
    lines = ["file,class,sha256_of_original"]
    for i in range(68):
        (tmp_path / "images" / f"image_{i + 1:04d}.jpg").write_bytes(b"x" * (i + 1))
        lines.append(f"image_{i + 1:04d}.jpg,{i // 4 + 1},00")
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_layout(folder):
    arrays = flowers17.read(folder)
    np.testing.assert_array_equal(arrays["y"], np.repeat(np.arange(17), 4))
    np.testing.assert_array_equal(arrays["train"], np.tile([True, True, False, False], 17))
    np.testing.assert_array_equal(np.diff(arrays["offsets"]), np.arange(1, 69))
    assert arrays["files"][67] == b"image_0068.jpg"
    assert len(arrays["names"]) == 17


def test_folders_that_are_something_else(folder):
    whole = (folder / "labels.csv").read_text()
    for text, reason in (
        (whole.replace("class,", "kind,"), "may have the columns file and class"),
        (whole.replace(",17,", ",rose,"), "a whole number"),
        (whole.replace(",17,", ",16,"), "may name the classes 1 to 17"),
        (whole.replace(",1,", ",0,"), "may name the classes 1 to 17"),
        ("file,class\n", "may name the classes 1 to 17"),
        (whole + "image_0069.jpg,1,00\n", r"1 images of labels\.csv are missing, such as image_00"),
    ):
        (folder / "labels.csv").write_text(text)
        with pytest.raises(DataError, match=reason):
            flowers17.read(folder)
    (folder / "labels.csv").unlink()
    with pytest.raises(DataError, match=r"has no labels\.csv"):
        flowers17.read(folder)


def test_real_part(mirror):
    if not (mirror / "flowers17").is_dir():
        pytest.skip("the mirror has no flowers17")
    arrays = flowers17.read(mirror / "flowers17")
    np.testing.assert_array_equal(np.bincount(arrays["y"]), [80] * 17)
    assert arrays["train"].sum() == 680
