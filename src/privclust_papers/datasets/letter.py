"""Letter Recognition: 16 statistics of the black pixels of each of 20,000 printed capitals.

P. W. Frey and D. J. Slate, "Letter recognition using Holland-style adaptive classifiers", Machine
Learning 6(2), 1991; UCI Machine Learning Repository, set 59. Features are integers from 0 to 15,
which serves as public bounds. The letter is first in each line of the repository's file, and last
in that of KEEL; both can be read.
"""

from __future__ import annotations

import hashlib
import os

import numpy as np

from privclust_papers.datasets._parsing import lines_of, wrong_line
from privclust_papers.datasets.registry import damaged

N_ROWS, N_FEATURES, N_LETTERS = 20_000, 16, 26
_LARGEST = 15
_EXPECTED = "16 whole numbers from 0 to 15 and a capital, first or last, separated by commas"


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the file, in either order of columns.

    Returns ``X``, shape (n, 16), float64, and ``y``, shape (n,), int64, 0 for A. The published set
    has n = 20,000.

    Raises a DataError if the file cannot be read, or a line is malformed.
    """
    rows = [_row(path, number, line) for number, line in _lines(path)]
    if not rows:
        raise damaged(path, "holds no row")
    table = np.array(rows)
    return {"X": table[:, 1:].astype(float), "y": table[:, 0]}


def content_sha256(path: str | os.PathLike[str]) -> str:
    """Return a checksum of the rows in any order, with the letter first or last.

    SHA-256 over the sorted lines ``"<letter>,<16 numbers>\\n"``.
    """
    rows = (_row(path, number, line) for number, line in _lines(path))
    lines = sorted(f"{chr(row[0] + ord('A'))},{','.join(map(str, row[1:]))}\n" for row in rows)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def generate(seed: int) -> dict[str, np.ndarray]:
    """Generate a set of the same size and range: a substitute that is not comparable.

    Each letter has a center, uniform in [3, 12]^16, and rows about it with a standard deviation of
    2, rounded and clipped to 0 to 15.
    """
    rng = np.random.default_rng(seed)
    centers = rng.uniform(3.0, 12.0, (N_LETTERS, N_FEATURES))
    y = rng.integers(N_LETTERS, size=N_ROWS)
    X = centers[y] + 2.0 * rng.standard_normal((N_ROWS, N_FEATURES))
    return {"X": np.clip(X.round(), 0.0, float(_LARGEST)), "y": y}


def _lines(path):
    return [(number, line) for number, line in enumerate(lines_of(path), start=1) if line.strip()]


def _row(path, number, line):
    fields = [field.strip() for field in line.split(b",")]
    if fields and fields[-1].isalpha():
        fields = [fields[-1], *fields[:-1]]
    letter, numbers = fields[0], fields[1:]
    is_letter = len(letter) == 1 and b"A" <= letter <= b"Z"
    are_numbers = all(value.isdigit() and int(value) <= _LARGEST for value in numbers)
    if not is_letter or len(numbers) != N_FEATURES or not are_numbers:
        raise wrong_line(path, number, line, _EXPECTED)
    return [letter[0] - ord("A"), *map(int, numbers)]
