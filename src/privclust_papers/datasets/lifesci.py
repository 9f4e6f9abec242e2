"""Life Sciences data set ds1.10: reader, and generator of a substitute.

26,733 records of a chemistry or biology experiment: ten principal components, and a label for
active compounds. One of P. Komarek's data sets (Auton Lab, Carnegie Mellon University), also
distributed with P. Mohan et al., "GUPT: Privacy Preserving Data Analysis Made Easy", SIGMOD 2012,
which declares `LOWER` and `UPPER` as ranges of the input.
"""

from __future__ import annotations

import bz2
import os

import numpy as np

from privclust_papers.datasets._parsing import lines_of, rows_of_numbers

N_RECORDS, N_COMPONENTS = 26_733, 10
N_ACTIVE = 804
"""Number of records labelled 1."""

# fmt: off
LOWER = np.array([-13.4531, -6.4655, -7.5628, -4.7937, -6.9696,
                  -5.0108, -4.6077, -4.9134, -5.12, -3.4201])
UPPER = np.array([-0.010748, 5.9762, 5.6764, 5.3849, 4.7242,
                  6.466, 6.3295, 4.5263, 4.7116, 4.9505])
"""Range of each component as published with the data."""
# fmt: on
LOWER.flags.writeable = UPPER.flags.writeable = False

_FIRST_SHAPE, _FIRST_SCALE = 7.0, 0.93  # of the mirrored gamma law of the first component
_SCALES = 2.2 * 0.92 ** np.arange(N_COMPONENTS - 1)  # of the others, all groups together
_GROUP_SHARES = (0.5, 0.3, 0.2)
_GROUP_SPREAD = 0.8  # of the groups' centres, in units of the scales


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read ``ds1.10.csv.bz2``: no header, ten components and the label, separated by commas.

    Returns ``X``, shape (n, 10), float64: the components, not scaled; ``y``, shape (n,), int64: 1
    for an active compound, else 0. The published file has n = 26,733.
    """
    lines = lines_of(path, bz2.open)
    expected = f"{N_COMPONENTS} finite numbers and a label 0 or 1, separated by commas"
    table = rows_of_numbers(path, lines, b",", _is_record, expected, "record")
    return {"X": table[:, :-1].copy(), "y": table[:, -1].astype(np.int64)}


def generate(seed: int) -> dict[str, np.ndarray]:
    """Generate a set of the same size: a substitute for ds1.10 that is not comparable.

    The first component is negative and skewed (a mirrored gamma law). The others have three
    Gaussian groups, with decreasing scales like principal components. All are within the published
    ranges. 804 records are labelled 1.
    """
    rng = np.random.default_rng(seed)
    first = -rng.gamma(_FIRST_SHAPE, _FIRST_SCALE, size=N_RECORDS)
    group = rng.choice(len(_GROUP_SHARES), size=N_RECORDS, p=_GROUP_SHARES)
    centres = _GROUP_SPREAD * rng.standard_normal((len(_GROUP_SHARES), N_COMPONENTS - 1))
    others = centres[group] + rng.standard_normal((N_RECORDS, N_COMPONENTS - 1))
    # Exact scales, whatever the drawn centres added to the variances.
    others *= _SCALES / others.std(axis=0)
    X = np.clip(np.column_stack([first, others - others.mean(axis=0)]), LOWER, UPPER)
    score = X[:, 1] - X[:, 2] + rng.standard_normal(N_RECORDS)
    y = np.zeros(N_RECORDS, dtype=np.int64)
    y[np.argsort(score)[-N_ACTIVE:]] = 1
    return {"X": X, "y": y}


def _is_record(row: list[float]) -> bool:
    return len(row) == N_COMPONENTS + 1 and bool(np.isfinite(row).all()) and row[-1] in (0.0, 1.0)
