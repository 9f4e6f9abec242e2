"""Letter Recognition: reader of either order of columns, checksum, generated stand-in."""

import numpy as np
import pytest

from privclust_papers.datasets import letter
from privclust_papers.datasets.registry import DataError

ROW = ",".join(map(str, range(16)))


def written(tmp_path, text):
    path = tmp_path / "letter.dat"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n"])
@pytest.mark.parametrize("line", [f"C,{ROW}", f"{ROW},C", ROW.replace(",", ", ") + ", C"])
def test_letter_first_or_last(tmp_path, line, end):
    arrays = letter.read(written(tmp_path, f"{line}{end}{end}A,{ROW}{end}"))
    np.testing.assert_array_equal(arrays["X"], [np.arange(16.0)] * 2)
    np.testing.assert_array_equal(arrays["y"], [2, 0])


@pytest.mark.parametrize(
    "line", ["", f"c,{ROW}", f"CC,{ROW}", ROW, f"C,{ROW},1", f"C,16{ROW[1:]}", f"C,-1{ROW[1:]}"]
)
def test_bad_line_is_named(tmp_path, line):
    if not line:
        with pytest.raises(DataError, match="holds no row"):
            letter.read(written(tmp_path, "\n"))
        return
    with pytest.raises(DataError, match=r"line 2: got b'.*it must be 16 whole numbers"):
        letter.read(written(tmp_path, f"A,{ROW}\n{line}\n"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        letter.read(tmp_path / "none")


def test_checksum_is_of_the_rows_in_any_order(tmp_path):
    first = letter.content_sha256(written(tmp_path, f"A,{ROW}\nB,{ROW}\n"))
    assert first == letter.content_sha256(written(tmp_path, f"{ROW},B\r\n{ROW},A\r\n"))
    assert first != letter.content_sha256(written(tmp_path, f"A,{ROW}\nA,{ROW}\n"))


def test_generated_set_has_the_size_and_range():
    arrays = letter.generate(3)
    assert arrays["X"].shape == (letter.N_ROWS, letter.N_FEATURES)
    assert arrays["X"].min() >= 0
    assert arrays["X"].max() <= 15
    assert set(arrays["y"]) == set(range(letter.N_LETTERS))
    np.testing.assert_array_equal(arrays["X"], letter.generate(3)["X"])
