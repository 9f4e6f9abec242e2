"""Extended Yale B: reader and generated stand-in."""

import io

import numpy as np
import pytest
from scipy.io import savemat

from privclust_papers.datasets import yaleb
from privclust_papers.datasets.registry import DataError

IMAGES = np.random.default_rng(0).integers(0, 256, size=(2016, 5)).astype(np.uint8)
LABELS = np.array([[2, 1, 1, 3, 2]], dtype=np.uint8)


@pytest.fixture
def written(tmp_path):
    """Write a MATLAB file; a variable given as None is left out."""

    def write(**changes):
        variables = {"EYALEB_DATA": IMAGES, "EYALEB_LABEL": LABELS, **changes}
        path = tmp_path / "ExtendedYaleB.mat"
        savemat(path, {name: value for name, value in variables.items() if value is not None})
        return path

    return write


def test_rows_are_images_and_people_are_counted_from_zero(written):
    arrays = yaleb.read(written())
    np.testing.assert_array_equal(arrays["images"], IMAGES.T)
    assert arrays["images"].flags.c_contiguous
    assert arrays["labels"].tolist() == [1, 0, 0, 2, 1]
    assert arrays["labels"].dtype == np.int64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"EYALEB_DATA": None}, r"has no variable EYALEB_DATA \(images\)"),
        ({"EYALEB_LABEL": None}, r"has no variable EYALEB_LABEL \(labels\)"),
        ({"EYALEB_DATA": IMAGES[:-1]}, r"has shape \(2015, 5\).*it must have 2016 rows of type"),
        ({"EYALEB_DATA": IMAGES.astype(float)}, "and type float64; it must have 2016 rows"),
        ({"EYALEB_LABEL": LABELS[:, :4]}, "EYALEB_LABEL has 4 values .* each of the 5 images"),
        ({"EYALEB_LABEL": LABELS - 1}, "one whole number of at least 1"),
        ({"EYALEB_LABEL": LABELS / 2.0}, "of type float64; it must have one whole number"),
        ({"EYALEB_LABEL": LABELS * 2}, "names 3 people up to number 6; it may leave no number out"),
        ({"EYALEB_DATA": IMAGES[:, :0], "EYALEB_LABEL": LABELS[:, :0]}, "EYALEB_LABEL has 0 value"),
    ],
)
def test_other_content_is_named(written, changes, message):
    with pytest.raises(DataError, match=message):
        yaleb.read(written(**changes))


def test_file_that_is_not_matlab(written, tmp_path):
    whole = written().read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"<html>Moved</html>" * 20):
        with pytest.raises(DataError, match="cannot be read as MATLAB 5"):
            yaleb.read(io.BytesIO(content))
    with pytest.raises(DataError, match="cannot be read as MATLAB 5"):
        yaleb.read(tmp_path / "none.mat")


def test_generated_people_are_lit_surfaces():
    """Nine dimensions hold a person's images but for noise, and no other person's."""
    arrays = yaleb.generate(seed=3)
    images, labels = arrays["images"], arrays["labels"]
    assert images.shape == (2414, 2016)
    assert images.dtype == np.uint8
    np.testing.assert_array_equal(np.bincount(labels), yaleb.N_IMAGES)
    images = images.astype(float)
    spans = []
    for person in range(4):
        own = images[labels == person]
        _, values, directions = np.linalg.svd(own, full_matrices=False)
        spans.append(directions[:9])
        energies = values**2 / (values**2).sum()
        # rounding and noise of two grey levels (4 + 1/12), but for pixels that were cut
        assert values[9:] @ values[9:] < 2.0 * own.size * 4.1
        assert energies[:9].sum() > 0.99
        assert energies[0] > 0.3
    for person in range(4):
        own = images[labels == person]
        for other in range(4):
            left = own - own @ spans[other].T @ spans[other]
            part = (left**2).sum() / (own**2).sum()
            assert part < 0.01 if other == person else part > 0.1


def test_published_data(published):
    arrays = published("yaleb")
    images, labels = arrays["images"], arrays["labels"]
    assert images.shape == (2414, 2016)
    np.testing.assert_array_equal(np.bincount(labels), yaleb.N_IMAGES)
    # pixels run down columns: neighbours are alike in both directions if they are read so
    pixels = images.reshape(-1, yaleb.WIDTH, yaleb.HEIGHT).astype(float)
    spread = pixels.std()
    assert np.abs(np.diff(pixels, axis=1)).mean() < 0.2 * spread
    assert np.abs(np.diff(pixels, axis=2)).mean() < 0.2 * spread
