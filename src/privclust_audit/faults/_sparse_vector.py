"""The sparse vector technique in six variants, of which two are private.

It releases which answers are above a threshold, up to a given number. The variants and their faults
are those that M. Lyu, D. Su and N. Li collected in "Understanding the sparse vector technique for
differential privacy", PVLDB 10(6), 2017, Figure 1; numbers are theirs.
"""

from __future__ import annotations

import numpy as np
from scipy import integrate, stats

from privclust_audit.faults._fault import SNIPER, Fault, batched

_CLAIM = 0.1
_ANSWERS = "each of ten answers changes by up to 1"
_LYU = "M. Lyu, D. Su and N. Li, PVLDB 10(6), 2017"
_THRESHOLD = 0.5
_NOTHING = -1  # for answers after the last


def _compared(answers, rng, n, threshold_scale, answer_scale, most=None, again=None):
    """Marks (n, k): 1 above, 0 below, -1 not released; and the noisy answers.

    After `most` marks of 1, nothing more is released. With `again` the threshold gets new noise of
    that scale after each.
    """
    k = len(answers)
    thresholds = rng.laplace(_THRESHOLD, threshold_scale, n)
    noisy = rng.laplace(answers, answer_scale, (n, k)) if answer_scale else np.tile(answers, (n, 1))
    marks = np.full((n, k), _NOTHING, dtype=np.int8)
    count = np.zeros(n, dtype=int)
    for j in range(k):
        # With k marks at most, the limit is never reached before the last answer.
        is_told = count < (k if most is None else most)
        is_above = is_told & (noisy[:, j] >= thresholds)
        marks[is_told, j] = is_above[is_told]
        count += is_above
        if again is not None:
            thresholds = np.where(is_above, rng.laplace(_THRESHOLD, again, n), thresholds)
    return marks, noisy


def _with_value(marks, answers):
    """Marks, and the answer at the mark 1; 0 if there is none (n, k + 1)."""
    told = np.where(marks == 1, answers, 0.0).sum(axis=1, keepdims=True)
    return np.hstack([marks, told]).astype(np.float32)


def _marks(name, *of_noise):
    """Return a mechanism that releases the marks of `_compared`."""

    def marks(data, rng, n):
        return _compared(data, rng, n, *of_noise)[0]

    return batched(marks, name)


# half of the budget for the threshold, half for the answers
svt_1 = _marks("svt_1", 2.0 / _CLAIM, 4.0 / _CLAIM, 1)
# the same for two answers above, with new noise for the threshold after the first
svt_2 = _marks("svt_2", 4.0 / _CLAIM, 8.0 / _CLAIM, 2, 4.0 / _CLAIM)
# too little noise for the answers: it does not grow with their number
svt_4 = _marks("svt_4", 4.0 / _CLAIM, 4.0 / (3.0 * _CLAIM), 1)
# no noise for the answers, and no end
svt_5 = _marks("svt_5", 2.0 / _CLAIM, 0.0)
# noise for the answers, but no end
svt_6 = _marks("svt_6", 2.0 / _CLAIM, 2.0 / _CLAIM)


@batched
def svt_3(data, rng, n):
    """The noisy answer is released with the mark, though its noise was already compared."""
    return _with_value(*_compared(data, rng, n, 2.0 / _CLAIM, 2.0 / _CLAIM, 1))


@batched
def numerical_svt(data, rng, n):
    """`svt_1` with half of the budget; the released answer gets separate noise."""
    marks = _compared(data, rng, n, 4.0 / _CLAIM, 8.0 / _CLAIM, 1)[0]
    fresh = rng.laplace(data, 2.0 / _CLAIM, (n, len(data)))
    return _with_value(marks, fresh)


@batched
def svt_3_and_4(data, rng, n):
    """The faults of `svt_3` and `svt_4` together."""
    return np.hstack([svt_3.many(data, rng, n), svt_4.many(data, rng, n)])


@batched
def svt_halves(data, rng, n):
    """`svt_1` twice, each with half of the budget."""
    halves = [_compared(data, rng, n, 4.0 / _CLAIM, 8.0 / _CLAIM, 1)[0] for _ in range(2)]
    return np.hstack(halves)


def _reached(answers, threshold_scale, answer_scale):
    """Return a grid of noisy thresholds (m,), their density, and probabilities of answers below.

    These are, for each answer, the probabilities that all earlier ones are below (k + 1, m), and
    that the answer itself is (k, m).
    """
    # Beyond 40 scales the densities are below e^-40, less than the rounding of the sums.
    reach = 40.0 * max(threshold_scale, answer_scale)
    thresholds = np.linspace(-reach, reach, 2**14 + 1)
    density = stats.laplace.pdf(thresholds, _THRESHOLD, threshold_scale)
    below = stats.laplace.cdf(thresholds, np.asarray(answers)[:, None], answer_scale)
    before = np.cumprod(np.vstack([np.ones_like(thresholds), below]), axis=0)
    return thresholds, density, before, below


def _which(marks) -> np.ndarray:
    """Return the position of the first mark 1, or the number of marks if there is none."""
    is_above = np.asarray(marks) == 1
    return np.where(is_above.any(axis=-1), is_above.argmax(axis=-1), is_above.shape[-1])


def _marks_density(threshold_scale, answer_scale):
    """Log-probability of marks up to the first 1, by an integral over the threshold."""

    def log_density(outputs, data):
        thresholds, density, before, below = _reached(data, threshold_scale, answer_scale)
        # The last row is the output without a mark 1: all answers are below.
        ends = before * density * np.vstack([1.0 - below, np.ones_like(thresholds)])
        return np.log(integrate.trapezoid(ends, thresholds, axis=1))[_which(outputs)]

    return log_density


def _value_density(outputs, data):
    """Log-density of `svt_3`: marks, and the noisy answer, which is not below the threshold."""
    scale = 2.0 / _CLAIM  # of both noises
    outputs = np.asarray(outputs, dtype=float)
    marks, value = outputs[..., :-1], outputs[..., -1]
    thresholds, density, before, _ = _reached(data, scale, scale)
    which, law = _which(marks), np.ones(value.shape)
    for j in range(len(data)):
        # The released answer bounds the threshold from above, the only joint condition on the two.
        below = integrate.cumulative_trapezoid(before[j] * density, thresholds, initial=0.0)
        told = np.interp(value, thresholds, below) * stats.laplace.pdf(value, data[j], scale)
        law = np.where(which == j, told, law)
    nothing = integrate.trapezoid(before[-1] * density, thresholds)
    return np.log(np.where(which == len(data), nothing, law))


_LAST = np.array([0.0] * 9 + [1.0]), np.array([1.0] * 9 + [0.0])
_SIXTH = np.array([0.0] * 5 + [1.0]), np.array([1.0] * 5 + [0.0])
_HALVES = np.array([0.0] * 5 + [1.0] * 5), np.array([1.0] * 5 + [0.0] * 5)

ALL = [
    Fault("svt_1", "none", _CLAIM, _ANSWERS, svt_1, *_LAST, None, _LYU, published=0.077,
          log_density=_marks_density(2.0 / _CLAIM, 4.0 / _CLAIM)),
    Fault("svt_2", "none", _CLAIM, _ANSWERS, svt_2, *_LAST, None, _LYU, published=0.079),
    Fault("svt_3", "the noisy answer is told, though its noise was compared already", _CLAIM,
          "each of six answers changes by up to 1", svt_3, *_SIXTH, numerical_svt, _LYU,
          loss=np.inf, published=0.165, log_density=_value_density),
    Fault("svt_4", "too little noise for the answers", _CLAIM, _ANSWERS, svt_4, *_LAST, svt_1, _LYU,
          published=0.167, log_density=_marks_density(4.0 / _CLAIM, 4.0 / (3.0 * _CLAIM))),
    Fault("svt_5", "no noise for the answers", _CLAIM, _ANSWERS, svt_5, *_HALVES, svt_1, _LYU,
          loss=np.inf, published=1.757),
    Fault("svt_6", "no end to what is told", _CLAIM, _ANSWERS, svt_6, *_HALVES, svt_1, _LYU,
          published=0.269),
    Fault("svt_numerical", "none", _CLAIM, _ANSWERS, numerical_svt, *_LAST, None, SNIPER,
          published=0.027),
    Fault("svt_3_and_4", "two variants side by side, each with a fault", _CLAIM,
          "each of six answers changes by up to 1", svt_3_and_4, *_SIXTH, svt_halves, SNIPER,
          loss=np.inf, published=0.26),
]  # fmt: skip
