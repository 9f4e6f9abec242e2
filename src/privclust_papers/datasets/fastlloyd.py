"""Data sets of the record that comes with FastLloyd: birch2, adult, g2 and SynthNew.

A. Diaa, T. Humphries and F. Kerschbaum, "FastLloyd", USENIX Security 2025; Zenodo, record 15615521.
Its archives hold text files of numbers, one row per line; lines that contain an x are skipped, as
in the authors' reader. Three distributions are known: birch2 (100 clusters along a sine, T. Zhang,
R. Ramakrishnan and M. Livny, 1997), g2 (two normal clusters) and, roughly, SynthNew (clusters of
sizes 1 to k with different covariances). Data generated here are other draws than the published.
"""

from __future__ import annotations

import os

import numpy as np

from privclust_papers.datasets._archives import read_members
from privclust_papers.datasets._parsing import rows_of_numbers
from privclust_papers.datasets.registry import damaged

REAL = {"birch2": 2, "adult": 6}
"""Numbers of features of the sets in the first archive."""
G2 = 4, 16, 64, 128
"""Numbers of features of the g2 sets with a standard deviation of 50."""
SCALE = tuple((k, d) for k in (4, 16, 64) for d in (4, 16, 64, 128))
"""Numbers of clusters and features of the SynthNew sets; the first replicate is read."""

_G2_ROWS, _G2_MEANS, _G2_DEVIATION = 1_024, (500.0, 600.0), 50.0
_BIRCH_CLUSTERS, _BIRCH_ROWS, _BIRCH_CYCLES = 100, 250, 4
_ADULT_ROWS, _SCALE_ROWS = 48_842, 10_000


def read_real(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read ``birch2.txt`` and ``adult.txt`` of a tar archive; each (n, d), float64, by its name.

    Raises a DataError if the archive is damaged, a file is missing, or a line is malformed.
    """
    return _read(path, {name: (f"{name}.txt", d) for name, d in REAL.items()})


def read_g2(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read ``g2-d-50.txt`` from ``g2_datasets.tar.xz``, as ``g2_d``; errors as in `read_real`."""
    return _read(path, {f"g2_{d}": (f"g2-{d}-50.txt", d) for d in G2})


def read_scale(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read ``SynthNew_k_d_1.txt`` from ``scale_datasets.tar.xz``, as ``scale_k_d``.

    Errors are those of `read_real`.
    """
    return _read(path, {f"scale_{k}_{d}": (f"SynthNew_{k}_{d}_1.txt", d) for k, d in SCALE})


def generate_real(seed: int) -> dict[str, np.ndarray]:
    """Generate substitutes for birch2 and adult of the same sizes.

    birch2 is drawn from the published distribution: 100 normal clusters of variance 1, 2 pi apart
    along four cycles of a sine of amplitude 25. adult is six skewed columns, otherwise unrelated.
    """
    rng = np.random.default_rng(seed)
    place = np.arange(_BIRCH_CLUSTERS)
    period = _BIRCH_CLUSTERS / _BIRCH_CYCLES
    centers = np.stack([2.0 * np.pi * place, period * np.sin(2.0 * np.pi * place / period)], axis=1)
    birch = np.repeat(centers, _BIRCH_ROWS, axis=0)
    birch += rng.standard_normal(birch.shape)
    scales = np.array([10.0, 1e5, 3.0, 5e3, 400.0, 12.0])
    return {"birch2": birch, "adult": scales * rng.lognormal(0.0, 1.0, (_ADULT_ROWS, 6)).round(2)}


def generate_g2(seed: int) -> dict[str, np.ndarray]:
    """Draw the g2 sets: 1,024 rows about 500 and 600 each, with standard deviation 50."""
    sets = {}
    for d in G2:
        # A seed for each set, so that a set does not depend on the others.
        rng = np.random.default_rng([seed, d])
        draws = [rng.normal(mean, _G2_DEVIATION, (_G2_ROWS, d)) for mean in _G2_MEANS]
        sets[f"g2_{d}"] = np.vstack(draws)
    return sets


def generate_scale(seed: int) -> dict[str, np.ndarray]:
    """Generate substitutes for SynthNew: clusters of sizes 1 to k with different covariances."""
    sets = {}
    for k, d in SCALE:
        rng = np.random.default_rng([seed, k, d])
        # Cluster i has a share proportional to i. Rounded cumulative sums add up to all rows.
        sizes = np.diff(np.round(_SCALE_ROWS * np.cumsum(np.arange(k + 1)) / (k * (k + 1) / 2)))
        parts = []
        for size in sizes.astype(int):
            axes = np.linalg.qr(rng.standard_normal((d, d)))[0] * rng.uniform(1.0, 3.0, d)
            parts.append(8.0 * rng.standard_normal(d) + rng.standard_normal((size, d)) @ axes.T)
        sets[f"scale_{k}_{d}"] = np.vstack(parts)
    return sets


def _read(path, files):
    members = read_members(path, "|".join(name.replace(".", r"\.") for name, _ in files.values()))
    sets = {}
    for name, (file, d) in files.items():
        if file not in members:
            raise damaged(path, f"has no {file}")
        # Empty lines in place of those with an x keep the line numbers of messages.
        lines = [b"" if b"x" in line else line for line in members[file].splitlines()]
        expected = f"{d} numbers, separated by blanks"

        # `d=d` binds the number of this turn.
        def is_row(row, d=d):
            return len(row) == d and all(map(np.isfinite, row))

        sets[name] = rows_of_numbers(f"{path}: {file}", lines, None, is_row, expected)
    return sets
