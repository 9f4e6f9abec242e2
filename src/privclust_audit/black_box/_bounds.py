r"""Bounds from counts, with stated confidence.

A mechanism is :math:`(\epsilon, \delta)`-differentially private if no event A has
:math:`P(A) > e^\epsilon P'(A) + \delta`, P and P' being its distributions on two neighbouring data
sets. With a lower bound on P(A) and an upper bound on P'(A), each from a binomial count, any event
therefore gives :math:`\epsilon \ge \ln((P - \delta) / P')` and
:math:`\delta \ge P - e^\epsilon P'`.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv, betaincinv

from privclust.core.validation import check_integer, check_real

_MOST_DRAWS = 2**60


def lower_probability(hits, draws, alpha: float) -> np.ndarray:
    """Return the one-sided Clopper-Pearson lower bound at confidence ``1 - alpha``.

    Counts may be arrays and need not be whole (expected counts are not).
    """
    hits = np.asarray(hits, dtype=float)
    # The quantile of Beta(hits, draws - hits + 1), which needs a parameter above 0. The next line
    # sets the bound for 0 hits.
    bound = betaincinv(np.maximum(hits, 1e-300), draws - hits + 1, alpha)
    return np.where(hits > 0, bound, 0.0)


def upper_probability(hits, draws, alpha: float) -> np.ndarray:
    """Return the one-sided Clopper-Pearson upper bound at confidence ``1 - alpha``."""
    hits = np.asarray(hits, dtype=float)
    bound = betainccinv(hits + 1, np.maximum(draws - hits, 1e-300), alpha)
    return np.where(hits < draws, bound, 1.0)


def epsilon_bound(low, high, delta: float) -> np.ndarray:
    """Return ``max(0, ln((low - delta) / high))``, low and high bounding P(A) and P'(A)."""
    return np.log(np.maximum((np.asarray(low) - delta) / high, 1.0))


def delta_bound(low, high, epsilon: float) -> np.ndarray:
    """Return ``max(0, low - e^epsilon high)``; 0 if e^epsilon overflows."""
    with np.errstate(over="ignore"):
        return np.maximum(np.asarray(low) - np.exp(epsilon) * np.asarray(high), 0.0)


@dataclass(frozen=True)
class Claim:
    """A claim to be audited, and the confidence of the bounds; a ValueError if they are not valid.

    `alpha` is the probability that a bound does not hold.
    """

    epsilon: float
    delta: float
    confidence: float

    def __post_init__(self) -> None:
        check_real("epsilon", self.epsilon, inclusive=True)
        check_real("delta", self.delta, inclusive=True)
        check_real("confidence", self.confidence)
        for name in ("delta", "confidence"):
            if getattr(self, name) >= 1:
                raise ValueError(f"{name} must be less than 1, got {getattr(self, name)!r}")

    @property
    def alpha(self) -> float:
        return 1.0 - self.confidence


def bounds_from_counts(
    hits: int,
    draws: int,
    other_hits: int,
    other_draws: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Return lower bounds on epsilon (at `delta`) and on delta (at `epsilon`) from an attack.

    For attacks run elsewhere, such as membership inference. The complement of the event, and both
    directions, are used as well: four one-sided bounds on the two probabilities serve all of them
    and share the confidence.

    Parameters
    ----------
    hits, draws : int
        Number of runs with the event, and of independent runs on one data set: true positives, and
        true positives plus false negatives.
    other_hits, other_draws : int
        The same on its neighbour: false positives, and false positives plus true negatives.
    epsilon, delta : float
        The claim.
    confidence : float
        Probability that both bounds hold. The event must have been chosen without these runs.

    Returns
    -------
    epsilon_lower_bound, delta_lower_bound : float

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> epsilon, delta = bounds_from_counts(900, 1000, 100, 1000, epsilon=1.0)
    >>> round(epsilon, 2), round(delta, 2)
    (1.96, 0.54)
    """
    claim = Claim(epsilon, delta, confidence)
    for name, count, total in (("hits", hits, draws), ("other_hits", other_hits, other_draws)):
        check_integer(name, count, minimum=0)
        check_integer(name.replace("hits", "draws"), total, minimum=1)
        if count > total:
            raise ValueError(f"{name} must be at most {total}, got {count}")
    counts = [hits, other_hits], np.array([draws, other_draws]), claim.alpha / 4
    (low, other_low), (high, other_high) = lower_probability(*counts), upper_probability(*counts)
    # either data set may be the likelier, and the event or its complement may be used
    lows = np.array([low, other_low, 1 - high, 1 - other_high])
    highs = np.array([other_high, high, 1 - other_low, 1 - low])
    return (
        float(epsilon_bound(lows, highs, delta).max()),
        float(delta_bound(lows, highs, epsilon).max()),
    )


def draws_needed(claim: Claim, probability: float, loss: float) -> int:
    """Return the number of certifying draws of each data set with which a wrong claim is convicted.

    The mechanism has an event of a `probability` with the true privacy `loss` at the claimed delta;
    two events with two bounds each are certified. At expected counts, the lower bound on epsilon
    exceeds the claim, as it does in about half of all audits with that many draws. Numbers above
    2^60 are not told apart.
    """
    # The definition of the loss with equality: P(A) = e^loss P'(A) + delta.
    other = (probability - claim.delta) * math.exp(-loss)

    def convicts(draws: int) -> bool:
        low = lower_probability(probability * draws, draws, claim.alpha / 4)
        high = upper_probability(other * draws, draws, claim.alpha / 4)
        return bool(epsilon_bound(low, high, claim.delta) > claim.epsilon)

    most = 1
    while most < _MOST_DRAWS and not convicts(most):
        most *= 2
    # `convicts` is monotone in the number of draws, so that bisection finds its first success.
    least = most // 2
    return least + bisect.bisect_left(range(least, most), True, key=convicts)
