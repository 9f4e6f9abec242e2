"""Published mechanisms for testing auditors: counts, maxima, RAPPOR, sums, geometric noise.

Claims, and the mechanisms without a fault, are those of DP-Sniper's experiments.
"""

from __future__ import annotations

import numpy as np

from privclust_audit.faults._fault import SNIPER, Fault, LaplaceNoise, batched

_CLAIM = 0.1
_COUNTS = "one of five counts changes by 1"
_ANSWERS = "each of ten answers changes by up to 1"
_DING = "Z. Ding et al., 'Detecting violations of differential privacy', CCS 2018 (StatDP)"


def _itself(data):
    return data


LAPLACE = LaplaceNoise(_itself, 1.0 / _CLAIM)
LAPLACE_PARALLEL = LaplaceNoise(lambda data: np.repeat(data, 20), 20.0 / _CLAIM)
HISTOGRAM = LaplaceNoise(_itself, 1.0 / _CLAIM)
HISTOGRAM_UPSIDE_DOWN = LaplaceNoise(_itself, _CLAIM)


# --- report noisy max -------------------------------------------------------------------------


def _index_of_largest(name, scale):
    """Return a mechanism: the index of the largest answer with Laplace noise."""

    def index(data, rng, n):
        return rng.laplace(data, scale, (n, len(data))).argmax(axis=1)

    return batched(index, name)


noisy_max = _index_of_largest("noisy_max", 2.0 / _CLAIM)
# noise for answers that all change in one direction, although they may change in both
noisy_max_half_noise = _index_of_largest("noisy_max_half_noise", 1.0)
noisy_max_whole_noise = _index_of_largest("noisy_max_whole_noise", 2.0)


@batched
def noisy_max_exponential(data, rng, n):
    """The index of the largest answer with exponential noise."""
    return (data + rng.exponential(2.0 / _CLAIM, (n, len(data)))).argmax(axis=1)


@batched
def noisy_max_value(data, rng, n):
    """The largest noisy answer itself, which depends on each answer's noise."""
    return rng.laplace(data, 2.0 / _CLAIM, (n, len(data))).max(axis=1)


@batched
def noisy_max_value_exponential(data, rng, n):
    """The largest answer with exponential noise, which is never below 0."""
    return (data + rng.exponential(2.0 / _CLAIM, (n, len(data)))).max(axis=1)


@batched
def noisy_max_fresh_value(data, rng, n):
    """The index of the largest answer, for half of the budget, and this answer with new noise."""
    which = rng.laplace(data, 4.0 / _CLAIM, (n, len(data))).argmax(axis=1)
    return rng.laplace(data[which], 2.0 / _CLAIM)


# --- geometric noise on 0 to 5 ----------------------------------------------------------------

_GEOMETRIC_CLAIM = 0.12
_PLACES = np.arange(6)


def _geometric(data, is_redrawn: bool) -> np.ndarray:
    """Probabilities of 0 to 5: values outside are clipped to the ends, or drawn again."""
    decay = np.exp(-_GEOMETRIC_CLAIM)
    weights = decay ** np.abs(_PLACES - data)
    if is_redrawn:
        return weights / weights.sum()
    # The two-sided geometric distribution; each end takes its whole tail, a geometric series.
    weights *= (1.0 - decay) / (1.0 + decay)
    weights[[0, -1]] /= 1.0 - decay
    return weights


@batched
def truncated_geometric(data, rng, n):
    """Two-sided geometric noise; values outside 0 to 5 are clipped."""
    return rng.choice(6, p=_geometric(data, False), size=n)


@batched
def redrawn_geometric(data, rng, n):
    """Geometric noise, drawn again until inside: the number of draws depends on the data."""
    return rng.choice(6, p=_geometric(data, True), size=n)


def _redrawn_density(outputs, data):
    return np.log(_geometric(data, True))[np.asarray(outputs)]


# At 0 the normalising sums of neighbours differ most.
_REDRAWN_LOSS = float(np.abs(np.log(_geometric(0, True) / _geometric(1, True))).max())

# --- RAPPOR -----------------------------------------------------------------------------------

_HASHES, _BITS = 4, 20


def _bits_kept(probabilities):
    """Return a mechanism on 20 bits, and its log-density.

    A bit of the value is 1 with the second of two probabilities, any other bit with the first.
    """

    def chances(data):
        return np.where(np.isin(np.arange(_BITS), data), probabilities[1], probabilities[0])

    def rappor(data, rng, n):
        return (rng.random((n, _BITS)) < chances(data)).astype(np.int8)

    def log_density(outputs, data):
        p = chances(data)
        return np.where(np.asarray(outputs) == 1, np.log(p), np.log1p(-p)).sum(axis=-1)

    return batched(rappor), log_density


RAPPOR_ONCE, _ONCE_DENSITY = _bits_kept((0.475, 0.525))  # f = 0.95
# after both steps, with f = 0.75, p = 0.45 and q = 0.55
RAPPOR, _RAPPOR_DENSITY = _bits_kept((0.375 + 0.25 * 0.45, 0.375 + 0.25 * 0.55))
_PER_BIT = float(np.log(0.525 / 0.475))
# A value moves two bits for each hash. A quarter of the log-odds per bit makes the total of four
# hashes equal to the claim for one.
_QUARTER = 1.0 / (1.0 + np.exp(-_PER_BIT / _HASHES))
RAPPOR_FOR_ALL_HASHES, _ = _bits_kept((1.0 - _QUARTER, _QUARTER))

# --- prefix sums ------------------------------------------------------------------------------


@batched
def prefix_sums(data, rng, n):
    """Prefix sums of noisy elements, each of which may change."""
    return np.cumsum(rng.laplace(data, len(data), (n, len(data))), axis=1)


def _prefix_density(outputs, data):
    elements = np.diff(outputs, axis=-1, prepend=0.0)
    # The map from elements to prefix sums has determinant 1, so that densities are equal.
    return -np.abs(elements - data).sum(axis=-1) / len(data)


PREFIX_FORGOTTEN = LaplaceNoise(np.cumsum, 1.0)
PREFIX_COUNTED = LaplaceNoise(np.cumsum, lambda data: float(len(data)))

_ONE = np.array([1.0, 1.0, 1.0, 1.0, 1.0]), np.array([2.0, 1.0, 1.0, 1.0, 1.0])
_ALL_UP = np.ones(10), np.full(10, 2.0)
_APART = np.array([1.0] + [0.0] * 9), np.array([0.0] + [1.0] * 9)
_ELEMENT = np.zeros(10), np.array([1.0] + [0.0] * 9)
_HASHED = np.arange(4), np.arange(4, 8)

ALL = [
    Fault("laplace", "none", _CLAIM, "one number changes by 1", LAPLACE, np.zeros(1), np.ones(1),
          None, SNIPER, loss=_CLAIM, published=0.092, log_density=LAPLACE.log_density),
    Fault("laplace_parallel", "none: twenty releases share the claim", _CLAIM,
          "one number changes by 1", LAPLACE_PARALLEL, np.zeros(1), np.ones(1), None, SNIPER,
          loss=_CLAIM, published=0.029, log_density=LAPLACE_PARALLEL.log_density),
    Fault("noisy_histogram", "none", _CLAIM, _COUNTS, HISTOGRAM, *_ONE, None, SNIPER,
          loss=_CLAIM, published=0.096, log_density=HISTOGRAM.log_density),
    Fault("noisy_histogram_upside_down", "scale of the noise is epsilon in place of 1 / epsilon",
          _CLAIM, _COUNTS, HISTOGRAM_UPSIDE_DOWN, *_ONE, HISTOGRAM, _DING,
          loss=1.0 / _CLAIM, published=4.60, log_density=HISTOGRAM_UPSIDE_DOWN.log_density),
    Fault("noisy_max", "none", _CLAIM, _ANSWERS, noisy_max, *_APART, None, SNIPER,
          published=0.085),
    Fault("noisy_max_exponential", "none", _CLAIM, _ANSWERS, noisy_max_exponential, *_APART, None,
          SNIPER, published=0.09),
    Fault("noisy_max_value", "the largest noisy answer is returned, not which it is", _CLAIM,
          _ANSWERS, noisy_max_value, *_ALL_UP, noisy_max_fresh_value, _DING, published=0.243),
    Fault("noisy_max_value_exponential", "as noisy_max_value, with exponential noise", _CLAIM,
          _ANSWERS, noisy_max_value_exponential, *_ALL_UP, noisy_max_fresh_value, _DING,
          loss=np.inf, published=0.344),
    Fault("noisy_max_half_noise", "noise for answers that move one way, where they move either way",
          1.0, _ANSWERS, noisy_max_half_noise, *_APART, noisy_max_whole_noise,
          "C. Dwork and A. Roth, 'The algorithmic foundations of differential privacy', 2014, 3.3"),
    Fault("truncated_geometric", "none", _GEOMETRIC_CLAIM, "one number of 0 to 5 changes by 1",
          truncated_geometric, np.array(2), np.array(3), None, SNIPER, loss=_GEOMETRIC_CLAIM,
          published=0.109),
    Fault("redrawn_geometric", "noise is drawn again until it is within the range",
          _GEOMETRIC_CLAIM, "one number of 0 to 5 changes by 1", redrawn_geometric, np.array(0),
          np.array(1), truncated_geometric, "folklore", loss=_REDRAWN_LOSS,
          log_density=_redrawn_density),
    Fault("rappor_once", "none", 2 * _HASHES * _PER_BIT, "one value is another", RAPPOR_ONCE,
          *_HASHED, None, SNIPER, loss=2 * _HASHES * _PER_BIT, published=0.592,
          log_density=_ONCE_DENSITY),
    Fault("rappor", "none", 0.401, "one value is another", RAPPOR, *_HASHED, None, SNIPER,
          published=0.292, log_density=_RAPPOR_DENSITY),
    Fault("rappor_hashes_forgotten", "a value sets four bits; the claim is that of one",
          2 * _PER_BIT, "one value is another", RAPPOR_ONCE, *_HASHED, RAPPOR_FOR_ALL_HASHES,
          "U. Erlingsson, V. Pihur and A. Korolova, 'RAPPOR', CCS 2014, Theorem 1",
          loss=2 * _HASHES * _PER_BIT, log_density=_ONCE_DENSITY),
    Fault("prefix_sums", "none", 1.0, "each of ten elements changes by up to 1", prefix_sums,
          *_ALL_UP, None, SNIPER, loss=1.0, published=0.506, log_density=_prefix_density),
    Fault("prefix_sums_forgotten", "an element is in ten sums, and each gets noise for one", 1.0,
          "one of ten elements changes by 1", PREFIX_FORGOTTEN, *_ELEMENT, PREFIX_COUNTED,
          "folklore", loss=10.0, log_density=PREFIX_FORGOTTEN.log_density),
]  # fmt: skip
