"""Events that distinguish two data sets: a score beyond a threshold, chosen on separate draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust_audit.black_box._bounds import (
    delta_bound,
    epsilon_bound,
    lower_probability,
    upper_probability,
)
from privclust_audit.black_box._runs import LABELS
from privclust_audit.black_box._wealth import Counts

SIDES = (">=", "<=")
_RELATIVE_RESOLUTION = 1e-6  # closer scores, relative to their spread, count as equal
_FLOATING_RESOLUTION = 1e-12  # the same relative to their magnitude, if the spread is rounding
_THRESHOLDS = 256  # most thresholds that are compared for one statistic
_LARGEST_EXPONENT = 700.0  # its exponential is a float


@dataclass(frozen=True)
class Event:
    """An event of an audit, with its counts in the certifying draws.

    Attributes
    ----------
    statistic : str
        Name of the statistic.
    side : {">=", "<="}
        The event is that the score lies on this side of the threshold.
    threshold : float
        May be infinite.
    likelier : {"data", "neighbour"}
        The data set on which the event is claimed to be likelier.
    hits, draws : int
        Counts on that data set.
    other_hits, other_draws : int
        Counts on the other.
    low : float
        Lower confidence bound on the event's probability on that data set.
    high : float
        Upper confidence bound on its probability on the other.
    """

    statistic: str
    side: str
    threshold: float
    likelier: str
    hits: int
    draws: int
    other_hits: int
    other_draws: int
    low: float
    high: float


@dataclass(frozen=True)
class Choice:
    """An event before it is certified; statistic, side and direction are numbers."""

    statistic: int
    side: int
    threshold: float
    likelier: int


@dataclass(frozen=True)
class Rounding:
    """Rounds scores, so that floating-point errors cannot distinguish two data sets.

    A score keeps 20 bits beyond the larger of its distance from the centre and the spread: one
    part in a million. The map is monotone and was fixed on other draws than those certified.
    """

    centre: float
    spread: float

    @classmethod
    def of(cls, scores: np.ndarray) -> Rounding:
        """Return centre and spread of scores (n,), without infinite ones."""
        finite = scores[np.isfinite(scores)]
        if finite.size == 0:
            return cls(0.0, 0.0)
        centre = float(np.median(finite))
        with np.errstate(over="ignore"):
            distances = np.abs(finite - centre)
            spread = float(np.median(distances)) or float(distances.mean())
        floor = abs(centre) * _FLOATING_RESOLUTION / _RELATIVE_RESOLUTION
        return cls(centre, min(max(spread, floor), float(np.finfo(float).max)))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            shifted = scores - self.centre
        finite = np.isfinite(shifted)
        size = np.maximum(np.abs(shifted[finite]), self.spread)
        _, exponent = np.frexp(size * _RELATIVE_RESOLUTION)
        quantum = np.ldexp(1.0, exponent)
        rounded = shifted.copy()
        rounded[finite] = np.round(shifted[finite] / quantum) * quantum
        return rounded


def choose(scores, epsilon: float, delta: float, alpha: float) -> tuple[Choice, Choice]:
    """Return the most promising events for epsilon and for delta, of rounded scores.

    Events are ranked by the bound that their counts would certify, which excludes rare events.
    """
    promises = (
        lambda low, high: epsilon_bound(low, high, delta),
        lambda low, high: low - np.exp(min(epsilon, _LARGEST_EXPONENT)) * high,
    )
    best: list[tuple[float, Any]] = [(-np.inf, None), (-np.inf, None)]
    for number, pair in enumerate(scores):
        thresholds = _candidates(np.concatenate(pair))
        counts = [_counts(one, thresholds) for one in pair]
        for likelier in (0, 1):
            low = lower_probability(counts[likelier], pair[likelier].size, alpha)
            high = upper_probability(counts[1 - likelier], pair[1 - likelier].size, alpha)
            for which, promise in enumerate(promises):
                values = promise(low, high)
                side, at = np.unravel_index(np.argmax(values), values.shape)
                if values[side, at] > best[which][0]:
                    choice = Choice(number, int(side), float(thresholds[at]), likelier)
                    best[which] = (values[side, at], choice)
    return best[0][1], best[1][1]


def certify(choice: Choice, names, roundings, scores, alpha: float) -> Event:
    """Count a chosen event in draws that did not choose it, and bound its probabilities."""
    counts = counted(choice, scores[choice.statistic])
    low = float(lower_probability(counts.hits, counts.draws, alpha))
    high = float(upper_probability(counts.other_hits, counts.other_draws, alpha))
    return described(choice, names, roundings, counts, (low, high))


def counted(choice: Choice, pair) -> Counts:
    """Return counts of a chosen event, by rounded scores on the data and the neighbour."""
    hits = [int(_counts(one, np.array([choice.threshold]))[choice.side, 0]) for one in pair]
    first, second = choice.likelier, 1 - choice.likelier
    return Counts(hits[first], pair[first].size, hits[second], pair[second].size)


def described(choice: Choice, names, roundings, counts: Counts, bounds) -> Event:
    """A chosen event in the units of its statistic, with bounds on its two probabilities."""
    low, high = bounds
    return Event(
        names[choice.statistic], SIDES[choice.side],
        roundings[choice.statistic].centre + choice.threshold, LABELS[choice.likelier],
        int(counts.hits), counts.draws, int(counts.other_hits), counts.other_draws, low, high,
    )  # fmt: skip


def certified(events, epsilon: float, delta: float) -> tuple[float, float]:
    """Return the lower bounds on epsilon and on delta from all events together."""
    return (
        float(max(epsilon_bound(event.low, event.high, delta) for event in events)),
        float(max(delta_bound(event.low, event.high, epsilon) for event in events)),
    )


def _candidates(scores: np.ndarray) -> np.ndarray:
    """At most 256 of the scores: evenly by rank, and ever closer towards both ends."""
    values = np.sort(scores)
    even = np.linspace(0, values.size - 1, _THRESHOLDS // 2)
    tail = np.geomspace(1, values.size, _THRESHOLDS // 4) - 1
    ranks = np.concatenate([even, tail, values.size - 1 - tail]).astype(int)
    return np.unique(values[ranks])


def _counts(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    values = np.sort(scores)
    at_least = values.size - np.searchsorted(values, thresholds, side="left")
    at_most = np.searchsorted(values, thresholds, side="right")
    return np.stack([at_least, at_most])
