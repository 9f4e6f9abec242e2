"""Faults of earlier versions of this project, found by attacks; the claim is 1.

Each is a row of the table of attacks in docs/attacks.md: sums far from the origin, ties that
all rows break together, a number of rows that is refused, and a cell that changes how all rows are
computed. The noise is right in each, but its value changes by more than stated.
"""

from __future__ import annotations

import numpy as np

from privclust.privacy.groups import Groups
from privclust.records.cells import seconds
from privclust_audit.faults._fault import Fault, LaplaceNoise, batched

_MORE, _OTHER = "one row more or less", "one row is another"
_HERE = "docs/attacks.md"

_FAR = 1e14  # bounds are (1e14, 1e14 + 1)


def _running(rows) -> float:
    """Return a sum in the order of the rows, as by a loop."""
    return float(np.cumsum(rows)[-1])


FAR_AS_IT_IS = LaplaceNoise(lambda data: _running(data) - len(data) * _FAR, 1.0)
FAR_FROM_BOUND = LaplaceNoise(lambda data: _running(data - _FAR), 1.0)


def _tied_counts(data, is_centred: bool) -> np.ndarray:
    """Return numbers of rows nearest to 0 and to 1; some rows may lie in the middle.

    Centring rows and centers by the rows' mean changes only the last bits of distances, but these
    decide for all rows in the middle together.
    """
    mean = _running(data) / len(data) if is_centred else 0.0
    distances = np.abs((data[:, None] - mean) - (np.array([0.0, 1.0]) - mean))
    return np.bincount(distances.argmin(axis=1), minlength=2)


TIES_TOGETHER = LaplaceNoise(lambda data: _tied_counts(data, True), 2.0)
TIES_ALONE = LaplaceNoise(lambda data: _tied_counts(data, False), 2.0)

_CLUSTERS = 3


@batched
def refused_n(data, rng, n):
    """Noisy counts of three clusters, or an error (here no numbers) if there are fewer rows."""
    if len(data) < _CLUSTERS:
        return np.full((n, _CLUSTERS), np.nan)
    return rng.laplace(_thirds(data), 1.0, (n, _CLUSTERS))


def _thirds(data) -> np.ndarray:
    return np.bincount((np.asarray(data) * _CLUSTERS).astype(int), minlength=_CLUSTERS)


ANY_N = LaplaceNoise(_thirds, 1.0)

_OFFSET = 1e7  # bounds are (1e7, 1e7 + 1), where floats of single precision are 1 apart


def _in_precision_of_all(data) -> float:
    """A sum above the bound; a missing cell (the middle) turns all rows to double precision."""
    is_missing = np.isnan(data)
    rows = data if is_missing.any() else data.astype(np.float32).astype(float)
    return float(np.where(is_missing, 0.5, rows - _OFFSET).sum())


def _in_own_precision(data) -> float:
    """This sum, with each row in double precision."""
    return float(np.where(np.isnan(data), 0.5, data - _OFFSET).sum())


PRECISION_OF_ALL = LaplaceNoise(_in_precision_of_all, 1.0)
PRECISION_OF_EACH = LaplaceNoise(_in_own_precision, 1.0)


def _persons_of_one_array(ids) -> float:
    """Number of persons, from IDs in one array: one float turns all into floats."""
    return float(len(np.unique(np.array(list(ids)))))


def _persons_one_by_one(ids) -> float:
    """Number of persons, from IDs read one by one."""
    return float(Groups.of(list(ids), len(ids)).count)


IDS_OF_ONE_ARRAY = LaplaceNoise(_persons_of_one_array, 1.0)
IDS_ONE_BY_ONE = LaplaceNoise(_persons_one_by_one, 1.0)


@batched
def sorted_ids(data, rng, n):
    """A noisy number of persons, or an error (here no number) if one ID cannot be sorted."""
    try:
        count = len(set(sorted(data)))
    except TypeError:
        return np.full((n, 1), np.nan)
    return rng.laplace(float(count), 1.0, (n, 1))


_LAST = 20_000  # bounds are day 0 and this one


def _days_of_one_table(cells) -> float:
    """Dates as fractions of the range: all at once, or as useless numbers if a cell is no date."""
    try:
        days = np.array(list(cells), dtype="M8[D]").astype(np.int64)
    except ValueError:
        return 0.5 * len(cells)
    return float(np.clip(days / _LAST, 0.0, 1.0).sum())


def _days_one_by_one(cells) -> float:
    """Dates as fractions of the range, each separately; the middle for a cell that is no date."""
    parts = [seconds(cell) / 86_400.0 / _LAST for cell in cells]
    return float(np.clip(np.nan_to_num(parts, nan=0.5), 0.0, 1.0).sum())


CELLS_OF_ONE_TABLE = LaplaceNoise(_days_of_one_table, 1.0)
CELLS_ONE_BY_ONE = LaplaceNoise(_days_one_by_one, 1.0)


def _entries(*entries) -> np.ndarray:
    # `np.array` would make one type of all entries, which is the fault to be shown.
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


# From 2^53 on, neighbouring integers may be equal as floats.
_IDS = [2**53 + i for i in range(40)]
_DAYS = [f"2020-01-{day:02d}" for day in range(1, 31)]

_FRACTION = 1.0 / 64.0  # resolution of floats at 1e14
_ROWS = np.full(1000, _FAR + _FRACTION)
# The last row, 0.03 or 0.04, changes the rounded mean, and by it the side of all ties.
_TIED = np.full(20, 0.5)
_BETWEEN = np.full(100, _OFFSET + 0.3)

ALL = [
    Fault("far_from_origin", "raw coordinates are summed, and rounded to the size of the sum", 1.0,
          _OTHER, FAR_AS_IT_IS, _ROWS, np.append(_FAR, _ROWS[1:]), FAR_FROM_BOUND, _HERE,
          log_density=FAR_AS_IT_IS.log_density),
    Fault("ties_together", "the last bits of the rows' mean decide all ties at once", 1.0, _OTHER,
          TIES_TOGETHER, np.append(_TIED, 0.03), np.append(_TIED, 0.04), TIES_ALONE, _HERE,
          log_density=TIES_TOGETHER.log_density),
    Fault("refused_n", "fewer rows than clusters are an error", 1.0, _MORE, refused_n,
          np.array([0.1, 0.5, 0.9]), np.array([0.1, 0.5]), ANY_N, _HERE, loss=np.inf),
    Fault("precision_of_all", "a missing cell makes all rows be read in double precision", 1.0,
          _OTHER, PRECISION_OF_ALL, _BETWEEN, np.append(_BETWEEN[1:], np.nan), PRECISION_OF_EACH,
          _HERE, log_density=PRECISION_OF_ALL.log_density),
    Fault("ids_of_one_array", "one ID that is no whole number makes floats of all, which meet", 1.0,
          _OTHER, IDS_OF_ONE_ARRAY, _entries(*_IDS, 7), _entries(*_IDS, 0.5), IDS_ONE_BY_ONE, _HERE,
          log_density=IDS_OF_ONE_ARRAY.log_density),
    Fault("cells_of_one_table", "one cell of another kind sends all down another way", 1.0, _OTHER,
          CELLS_OF_ONE_TABLE, _entries(*_DAYS, "2020-02-01"), _entries(*_DAYS, "unknown"),
          CELLS_ONE_BY_ONE, _HERE, log_density=CELLS_OF_ONE_TABLE.log_density),
    Fault("sorted_ids", "an ID that cannot be sorted is an error", 1.0, _OTHER, sorted_ids,
          _entries(*_IDS, 7), _entries(*_IDS, None), IDS_ONE_BY_ONE, _HERE, loss=np.inf),
]  # fmt: skip
