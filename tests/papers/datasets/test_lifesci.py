"""Life Sciences ds1.10: reader and generated stand-in."""

import bz2

import numpy as np
import pytest

from privclust_papers.datasets import lifesci
from privclust_papers.datasets.registry import DataError


@pytest.fixture
def packed(tmp_path):
    def write(text):
        path = tmp_path / "ds1.10.csv.bz2"
        path.write_bytes(bz2.compress(text.encode()))
        return path

    return write


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_components_and_labels(packed, end):
    text = f"-1.5,2,3,4,5,6,7,8,9,10,0{end}{end}1,1,1,1,1,1,1,1,1,2e-1,1{end}"
    arrays = lifesci.read(packed(text))
    np.testing.assert_array_equal(
        arrays["X"], [[-1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1] * 9 + [0.2]]
    )
    assert arrays["y"].tolist() == [0, 1]
    assert arrays["y"].dtype == np.int64


@pytest.mark.parametrize(
    "line",
    [
        *("1,2,3", "1,2,3,4,5,6,7,8,9,10,11", "1,2,3,4,5,6,7,8,9,10,0,0"),
        *("1,2,3,4,5,6,7,8,9,nan,0", "1,2,3,4,5,6,7,8,9,ten,0", "1,2,3,4,5,6,7,8,9,,0"),
        "-inf,2,3,4,5,6,7,8,9,10,1",
    ],
)
def test_bad_line_is_named(packed, line):
    good = "1,2,3,4,5,6,7,8,9,10,0\n"
    with pytest.raises(DataError, match=r"line 3: got b'.*it must be 10 finite numbers and a lab"):
        lifesci.read(packed(good * 2 + line + "\n" + good))


def test_file_that_is_not_whole(packed, tmp_path):
    path = packed("1,2,3,4,5,6,7,8,9,10,0\n" * 50)
    for content in (path.read_bytes()[:-4], b"1,2,3"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="cannot be read"):
            lifesci.read(path)
    with pytest.raises(DataError, match="No such file"):
        lifesci.read(tmp_path / "none.bz2")
    with pytest.raises(DataError, match="holds no record"):
        lifesci.read(packed("\n"))


def test_the_generated_set_looks_like_principal_components():
    arrays = lifesci.generate(seed=5)
    X, y = arrays["X"], arrays["y"]
    assert X.shape == (26_733, 10)
    assert y.dtype == np.int64
    assert (y.min(), y.sum()) == (0, 804)
    assert (lifesci.LOWER <= X).all()
    assert (lifesci.UPPER >= X).all()
    spread = X.std(axis=0)
    assert (np.diff(spread) < 0).all()
    skewness = (((X - X.mean(axis=0)) / spread) ** 3).mean(axis=0)
    # sqrt(6 / n) is the standard error of a Gaussian's: 30 of them
    assert skewness[0] < -30 * np.sqrt(6 / len(X))
    assert np.isfinite(X).all()


def test_published_data(published):
    arrays = published("lifesci")
    assert arrays["X"].shape == (26_733, 10)
    assert np.bincount(arrays["y"]).tolist() == [25_929, 804]
    np.testing.assert_array_equal(arrays["X"].min(axis=0), lifesci.LOWER)
    np.testing.assert_array_equal(arrays["X"].max(axis=0), lifesci.UPPER)
