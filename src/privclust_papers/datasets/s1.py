"""S1: 15 Gaussian clusters in the plane; reader, and generator of a substitute.

P. Fränti and O. Virmajoki, "Iterative shrinking method for clustering problems", Pattern
Recognition 39(5), 2006. The file is that published by D. Su et al., "Differentially private k-means
clustering", CODASPY 2016, with their code: scaled to [-1, 1], which serves as public bounds. The
original file of the set holds integers on another scale.
"""

from __future__ import annotations

import os

import numpy as np

from privclust_papers.datasets._parsing import lines_of, rows_of_numbers

N_POINTS, N_CLUSTERS = 5_000, 15
BEST_NICV = 0.00822959028045
"""Mean squared distance to the nearest of the true centroids, as published with the data."""

_SPREAD = 0.06  # of a generated cluster
_MARGIN, _SEPARATION = 0.8, 0.3  # largest coordinate of a generated centre; their least distance


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read ``S1_processed.txt``: two numbers per line, separated by blanks.

    Returns ``X``, shape (n, 2), float64: points in [-1, 1]^2. The published file has n = 5,000.
    """
    expected = "two numbers in [-1, 1], separated by blanks"
    return {"X": rows_of_numbers(path, lines_of(path), None, _is_point, expected, "point")}


def generate(seed: int) -> dict[str, np.ndarray]:
    """Generate a set of the same size and kind: a substitute for S1 that is not comparable.

    Centres are uniform in [-0.8, 0.8]^2, at least 0.3 from each other; each has the same number of
    points, with a standard deviation of 0.06 along both axes.
    """
    rng = np.random.default_rng(seed)
    centres = _apart(rng)
    # Rounded up, then cut: the last cluster has a few points less.
    X = np.repeat(centres, -(-N_POINTS // N_CLUSTERS), axis=0)[:N_POINTS]
    return {"X": np.clip(X + _SPREAD * rng.standard_normal(X.shape), -1.0, 1.0)}


def _apart(rng: np.random.Generator) -> np.ndarray:
    """Draw centres with a least distance, starting again if there is no room."""
    centres: list[np.ndarray] = []
    n_drawn = 0
    while len(centres) < N_CLUSTERS:
        candidate = rng.uniform(-_MARGIN, _MARGIN, size=2)
        n_drawn += 1
        if all(np.hypot(*(candidate - other)) >= _SEPARATION for other in centres):
            centres.append(candidate)
        # The centres so far may leave no room for another one.
        elif n_drawn > 1000:
            centres, n_drawn = [], 0
    return np.array(centres)


def _is_point(row: list[float]) -> bool:
    return len(row) == 2 and all(abs(value) <= 1.0 for value in row)
