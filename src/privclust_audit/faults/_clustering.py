"""Faults common in private clustering; the claim is 1."""

from __future__ import annotations

import numpy as np

from privclust_audit.faults._fault import Fault, LaplaceNoise, batched

_MORE, _OTHER = "one row more or less", "one row is another"
_D = 5  # number of coordinates, each in [-1, 1]


def _leaves(data) -> np.ndarray:
    """Return numbers of rows in each of four cells of [0, 1)."""
    return np.bincount((np.asarray(data) * 4).astype(int), minlength=4)


@batched
def empty_leaf(data, rng, n):
    """Counts with noise, and 0 for cells without a row."""
    counts = _leaves(data)
    return np.where(counts > 0, rng.laplace(counts, 1.0, (n, 4)), 0.0)


ALL_LEAVES = LaplaceNoise(_leaves, 1.0)


def _sums(data) -> np.ndarray:
    return np.clip(data, -1.0, 1.0).sum(axis=0)


@batched
def one_noise_for_all(data, rng, n):
    """One noise value is added to all coordinates, so that their differences are exact."""
    sums = _sums(data)
    # The scale is right for independent noise: each of d coordinates changes by up to 2.
    return sums + rng.laplace(0.0, 2.0 * len(sums), (n, 1))


NOISE_FOR_EACH = LaplaceNoise(_sums, 2.0 * _D)


@batched
def one_seed_for_two(data, rng, n):
    """A count and a sum get noise from generators of one seed: the same up to its scale."""
    noise = rng.laplace(0.0, 1.0, (n, 1))
    return np.hstack([len(data) + 2.0 * noise, _sums(data)[:1] + 2.0 * noise])


COUNT_AND_SUM = LaplaceNoise(lambda data: (len(data), _sums(data)[0]), 2.0)


@batched
def first_round_seed_0(data, rng, n):
    """Two rounds of sums; the first one's noise always has seed 0."""
    known = np.random.default_rng(0).laplace(_sums(data)[:1], 4.0, 1)
    return np.hstack([np.tile(known, (n, 1)), rng.laplace(_sums(data)[:1], 4.0, (n, 1))])


TWO_ROUNDS = LaplaceNoise(lambda data: np.repeat(_sums(data)[:1], 2), 4.0)


def _count_and_sums(data) -> np.ndarray:
    return np.append(len(data), _sums(data))


def _shares(of_count: float, of_coordinate: float) -> np.ndarray:
    """Scales of a count's noise and of each coordinate's, by shares of epsilon."""
    return np.append(1.0 / of_count, np.full(_D, 1.0 / of_coordinate))


_OF_COUNT = 0.5
_OF_COORDINATE = (1.0 - _OF_COUNT) / _D
SHARES_SWAPPED = LaplaceNoise(_count_and_sums, _shares(_OF_COORDINATE, _OF_COUNT))
SHARES_KEPT = LaplaceNoise(_count_and_sums, _shares(_OF_COUNT, _OF_COORDINATE))
# The row of ones changes the count and each coordinate by 1.
_SWAPPED_LOSS = _OF_COORDINATE + _D * _OF_COUNT


def _ball(data) -> np.ndarray:
    """Sums of rows (n, d), clipped to the unit ball."""
    norms = np.linalg.norm(data, axis=1, keepdims=True)
    return (data / np.maximum(norms, 1.0)).sum(axis=0)


L2_FOR_L1 = LaplaceNoise(_ball, 1.0)
L1_FOR_L1 = LaplaceNoise(_ball, float(np.sqrt(_D)))


def _scaled_total(data) -> float:
    return float(np.asarray(data)[:, 0].sum())


def _longest(data) -> float:
    # A scale of 0 would release the sum itself, which is another fault.
    return max(float(np.linalg.norm(data, axis=1).max(initial=0.0)), 1e-3)


SCALE_OF_LONGEST = LaplaceNoise(_scaled_total, _longest)
SCALE_OF_BOUND = LaplaceNoise(lambda data: _sums(data)[0], 1.0)

_STEPS, _EXTRA = 4, 2


def _steps(data) -> np.ndarray:
    """The count, once for each step, and for two forgotten ones."""
    return np.full(_STEPS + _EXTRA, float(len(data)))


STEPS_FORGOTTEN = LaplaceNoise(_steps, float(_STEPS))
STEPS_COUNTED = LaplaceNoise(_steps, float(_STEPS + _EXTRA))
DIMENSIONS_FORGOTTEN = LaplaceNoise(_sums, 1.0)
DIMENSIONS_COUNTED = LaplaceNoise(_sums, float(_D))

_NONE, _ROW = np.zeros((3, _D)), np.vstack([np.zeros((3, _D)), np.ones((1, _D))])
# A unit row along the diagonal has the largest l1 norm, the root of d.
_DIAGONAL = np.vstack([np.zeros((3, _D)), np.full((1, _D), 1.0 / np.sqrt(_D))])
_AXIS = np.vstack([np.zeros((3, _D)), np.eye(1, _D)])
_SHORT = np.full((3, 1), 0.01)

ALL = [
    Fault("empty_leaf", "a cell without a row returns 0, without noise", 1.0, _MORE, empty_leaf,
          np.array([0.1, 0.3]), np.array([0.1, 0.3, 0.9]), ALL_LEAVES,
          "trees of private clusterings", loss=np.inf),
    Fault("one_noise_for_all", "all coordinates get the same number of noise", 1.0, _OTHER,
          one_noise_for_all, np.vstack([_NONE, _NONE[:1]]), _AXIS, NOISE_FOR_EACH,
          "scalar noise on a vector", loss=np.inf),
    Fault("one_seed_for_two", "a count and a sum get noise from one seed", 1.0, _MORE,
          one_seed_for_two, _NONE, np.vstack([_NONE, -np.ones((1, _D))]), COUNT_AND_SUM,
          "seeded generators", loss=np.inf),
    Fault("first_round_seed_0", "the first round's noise has seed 0", 1.0, _OTHER,
          first_round_seed_0, np.vstack([_NONE, _NONE[:1]]), _ROW, TWO_ROUNDS,
          "seeded generators", loss=np.inf),
    Fault("shares_swapped", "the count gets a coordinate's share, each coordinate the count's", 1.0,
          _MORE, SHARES_SWAPPED, _NONE, _ROW, SHARES_KEPT, "diffprivlib 0.6.6, KMeans",
          loss=_SWAPPED_LOSS, log_density=SHARES_SWAPPED.log_density),
    Fault("l2_for_l1", "Laplace noise for the l2 norm of a change, not for its l1 norm", 1.0, _MORE,
          L2_FOR_L1, _NONE, _DIAGONAL, L1_FOR_L1, "folklore", loss=float(np.sqrt(_D)),
          log_density=L2_FOR_L1.log_density),
    Fault("scale_of_longest", "the noise has the scale of the data's longest row", 1.0, _MORE,
          SCALE_OF_LONGEST, _SHORT, np.vstack([_SHORT, [[1.0]]]), SCALE_OF_BOUND,
          "normalisation by the data", loss=np.inf, log_density=SCALE_OF_LONGEST.log_density),
    Fault("steps_forgotten", "noise for four steps, of which six are taken", 1.0, _MORE,
          STEPS_FORGOTTEN, np.zeros(3), np.zeros(4), STEPS_COUNTED, "iterative clusterings",
          loss=1.5, log_density=STEPS_FORGOTTEN.log_density),
    Fault("dimensions_forgotten", "Laplace noise for one coordinate of a row, on five", 1.0, _MORE,
          DIMENSIONS_FORGOTTEN, _NONE, _ROW, DIMENSIONS_COUNTED, "folklore", loss=float(_D),
          log_density=DIMENSIONS_FORGOTTEN.log_density),
]  # fmt: skip
