"""Faults of released libraries: data read without noise, or releases not counted.

The patterns are those of the collection behind Re:cord-play (arXiv 2602.17454), each implemented on
sums and counts of rows in [0, 1]; the claim is 1.
"""

from __future__ import annotations

import numpy as np

from privclust_audit.faults._fault import Fault, LaplaceNoise, batched

_RECORD = "Re:cord-play, arXiv 2602.17454"
_MORE, _OTHER = "one row more or less", "one row is another"
_CATEGORIES = np.arange(5)


def _total(data) -> float:
    """Return the sum of rows, clipped to [0, 1]."""
    return float(np.clip(data, 0.0, 1.0).sum())


def _known_total(data) -> float:
    """Return this sum, with rows that are no numbers as 0."""
    return _total(np.nan_to_num(data))


@batched
def private_divisor(data, rng, n):
    """A mean of a noisy sum and an exact number of rows."""
    return rng.laplace(_total(data), 1.0, n) / max(len(data), 1)


@batched
def noisy_divisor(data, rng, n):
    """A noisy sum and a noisy number, for half of the budget each."""
    return rng.laplace(_total(data), 2.0, n) / np.maximum(rng.laplace(len(data), 2.0, n), 1.0)


def _counts(data) -> np.ndarray:
    return (np.asarray(data)[:, None] == _CATEGORIES).sum(axis=0)


@batched
def domain_from_data(data, rng, n):
    """A histogram of the categories in the data; others are missing."""
    counts = _counts(data)
    return np.where(counts > 0, rng.laplace(counts, 1.0, (n, len(counts))), np.nan)


DOMAIN_KNOWN = LaplaceNoise(_counts, 1.0)
RAW_FOR_CLIPPED = LaplaceNoise(np.sum, 1.0)
CLIPPED = LaplaceNoise(_total, 1.0)


def _largest(data) -> float:
    return float(np.max(data, initial=0.0))


SENSITIVITY_OF_DATA = LaplaceNoise(_total, _largest)
NAN_KEPT = LaplaceNoise(_total, 1.0)
NAN_MAPPED = LaplaceNoise(_known_total, 1.0)
TWICE_SPENT = LaplaceNoise(lambda data: (len(data), len(data)), 1.0)
SPENT_IN_HALVES = LaplaceNoise(lambda data: (len(data), len(data)), 2.0)


def _signed_total(data) -> float:
    return float(np.clip(data, -1.0, 1.0).sum())


FOR_ADDED_ROWS = LaplaceNoise(_signed_total, 1.0)
FOR_REPLACED_ROWS = LaplaceNoise(_signed_total, 2.0)

_ZEROS = np.zeros(4)
_CHANGED = np.array([0.0, 0.0, 0.0, 1.0])

ALL = [
    Fault("private_divisor", "a noisy sum is divided by the exact number of rows", 1.0, _MORE,
          private_divisor, np.ones(1), np.ones(2), noisy_divisor, _RECORD, loss=np.inf),
    Fault("domain_from_data", "which categories there are is read from the data", 1.0, _MORE,
          domain_from_data, np.array([0, 0, 1, 3]), np.array([0, 0, 1]), DOMAIN_KNOWN, _RECORD,
          loss=np.inf),
    Fault("raw_for_clipped", "rows are summed as they are, the noise is for clipped ones", 1.0,
          _OTHER, RAW_FOR_CLIPPED, _ZEROS, 5.0 * _CHANGED, CLIPPED, _RECORD, loss=np.inf,
          log_density=RAW_FOR_CLIPPED.log_density),
    Fault("sensitivity_of_data", "the sensitivity is the largest row, and 0 where there is none",
          1.0, _OTHER, SENSITIVITY_OF_DATA, _ZEROS, _CHANGED, CLIPPED, _RECORD, loss=np.inf),
    Fault("nan_through_clip", "a row that is no number passes the clip, and so does the sum", 1.0,
          _OTHER, NAN_KEPT, _ZEROS, np.nan * _CHANGED, NAN_MAPPED, _RECORD, loss=np.inf),
    Fault("twice_spent", "two releases, each with all of the budget", 1.0, _MORE, TWICE_SPENT,
          np.zeros(3), np.zeros(4), SPENT_IN_HALVES, _RECORD, loss=2.0,
          log_density=TWICE_SPENT.log_density),
    Fault("replaced_row", "noise for a row that is added, where it is replaced", 1.0, _OTHER,
          FOR_ADDED_ROWS, -1.0 + _ZEROS, -1.0 + 2.0 * _CHANGED, FOR_REPLACED_ROWS, _RECORD,
          loss=2.0, log_density=FOR_ADDED_ROWS.log_density),
]  # fmt: skip
