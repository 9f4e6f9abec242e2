"""Gas turbine emissions: hourly records of the year, nine sensors and two emissions.

H. Kaya, P. Tüfekci and E. Uzun, 2019; UCI Machine Learning Repository, set 551.
"""

from __future__ import annotations

import os

import numpy as np

from privclust_papers.datasets._archives import read_members
from privclust_papers.datasets._parsing import rows_of_numbers
from privclust_papers.datasets.registry import damaged

N_ROWS, N_FEATURES = 36_733, 12
YEARS = 2011, 2012, 2013, 2014, 2015


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read one CSV file per year, ``gt_2011.csv`` to ``gt_2015.csv``.

    The path is the repository's zip archive, a tar archive or a folder. Returns ``X``, shape
    (n, 12), float64: the year, and 11 numbers. The published set has n = 36,733.

    Raises a DataError if the archive is damaged, a file is missing, or a line is malformed.
    """
    files = read_members(path, r"gt_\d+\.csv")
    parts = []
    for year in YEARS:
        if f"gt_{year}.csv" not in files:
            raise damaged(path, f"has no gt_{year}.csv")
        parts.append(_rows(f"{path}: gt_{year}.csv", year, files[f"gt_{year}.csv"]))
    return {"X": np.concatenate(parts)}


def generate(seed: int) -> dict[str, np.ndarray]:
    """Generate a substitute of the same size: mixtures of five latent normal variables."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((N_ROWS, 5)) @ rng.standard_normal((5, N_FEATURES))
    return {"X": latent + 0.3 * rng.standard_normal((N_ROWS, N_FEATURES))}


def _rows(where, year, text):
    head, *lines = text.splitlines() or [b""]
    if head.count(b",") != N_FEATURES - 2:
        raise damaged(where, f"line 1: has {head.count(b',') + 1} names where 11 may be")
    X = rows_of_numbers(where, [b"", *lines], b",", _is_row, "11 numbers, separated by commas")
    return np.column_stack([np.full(len(X), float(year)), X])


def _is_row(row):
    return len(row) == N_FEATURES - 1 and all(map(np.isfinite, row))
