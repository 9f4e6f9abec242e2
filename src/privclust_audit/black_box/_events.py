"""Events that distinguish two data sets: a score beyond a threshold, chosen on separate draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust_audit.black_box import _statistics
from privclust_audit.black_box._bounds import (
    Claim,
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
    """

    statistic: str
    side: str
    threshold: float
    likelier: str
    hits: int
    draws: int
    other_hits: int
    other_draws: int


@dataclass(frozen=True)
class _Choice:
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
            # If more than half of the scores are equal, their median distance is 0.
            spread = float(np.median(distances)) or float(distances.mean())
        # Scores far from 0 that differ only by rounding have a spread of a few last bits.
        floor = abs(centre) * _FLOATING_RESOLUTION / _RELATIVE_RESOLUTION
        return cls(centre, min(max(spread, floor), float(np.finfo(float).max)))

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            shifted = scores - self.centre
        finite = np.isfinite(shifted)
        # The quantum is a power of 2, so that dividing by it and multiplying again round nothing
        # else.
        size = np.maximum(np.abs(shifted[finite]), self.spread)
        _, exponent = np.frexp(size * _RELATIVE_RESOLUTION)
        quantum = np.ldexp(1.0, exponent)
        rounded = shifted.copy()
        rounded[finite] = np.round(shifted[finite] / quantum) * quantum
        return rounded


def _best(scores, claim: Claim, alpha: float) -> tuple[_Choice, _Choice]:
    """Return the most promising events for epsilon and for delta, of rounded scores.

    Events are ranked by the bound that their counts would certify, which excludes rare events.
    """
    promises = (
        lambda low, high: epsilon_bound(low, high, claim.delta),
        # Not `delta_bound`, which is 0 for every weak event, so that weak events would all tie.
        lambda low, high: low - np.exp(min(claim.epsilon, _LARGEST_EXPONENT)) * high,
    )
    best: list[tuple[float, Any]] = [(-np.inf, None), (-np.inf, None)]
    for number, pair in enumerate(scores):
        thresholds = _candidates(np.concatenate(pair))
        counts = [_counts(one, thresholds) for one in pair]
        for likelier in (0, 1):
            # One row of `counts` per side, one column per threshold.
            low = lower_probability(counts[likelier], pair[likelier].size, alpha)
            high = upper_probability(counts[1 - likelier], pair[1 - likelier].size, alpha)
            for which, promise in enumerate(promises):
                values = promise(low, high)
                side, at = np.unravel_index(np.argmax(values), values.shape)
                if values[side, at] > best[which][0]:
                    choice = _Choice(number, int(side), float(thresholds[at]), likelier)
                    best[which] = (values[side, at], choice)
    return best[0][1], best[1][1]


class Chosen:
    """Events chosen on some runs, to be counted in others.

    An event that is the best for epsilon and for delta is counted once. `counts` are those of the
    runs that chose; `values` are the scores of each statistic in them, on each data set.
    """

    def __init__(self, statistics, outputs, claim: Claim, alpha: float) -> None:
        self._statistics = statistics
        scores = [[_statistics.score(s, one) for one in outputs] for s in statistics]
        self._roundings = [Rounding.of(np.concatenate(pair)) for pair in scores]
        rounded = [
            [rounding(one) for one in pair]
            for rounding, pair in zip(self._roundings, scores, strict=True)
        ]
        self.values = [(np.unique(pair[0]), np.unique(pair[1])) for pair in rounded]
        # The two best events are often the same one, which then needs only two of the four bounds.
        self._choices = list(dict.fromkeys(_best(rounded, claim, alpha / 4)))
        self.counts = [_counted(one, rounded[one.statistic]) for one in self._choices]

    def counted(self, outputs) -> list[Counts]:
        """Return the counts of each event in other runs."""
        scores = {
            k: [self._roundings[k](_statistics.score(self._statistics[k], one)) for one in outputs]
            for k in sorted({choice.statistic for choice in self._choices})
        }
        return [_counted(choice, scores[choice.statistic]) for choice in self._choices]

    def events(self, counts: list[Counts]) -> list[Event]:
        """Return the events for epsilon and for delta, with counts in other runs.

        Thresholds are in the units of the statistics.
        """
        names = _statistics.names(self._statistics)
        events = [
            Event(
                names[choice.statistic], SIDES[choice.side],
                self._roundings[choice.statistic].centre + choice.threshold,
                LABELS[choice.likelier], int(count.hits), count.draws, int(count.other_hits),
                count.other_draws,
            )
            for choice, count in zip(self._choices, counts, strict=True)
        ]  # fmt: skip
        # One event serves as both if it is the best for epsilon and for delta.
        return [events[0], events[-1]]


def _counted(choice: _Choice, pair) -> Counts:
    """Return counts of a chosen event, by rounded scores on the data and the neighbour."""
    hits = [int(_counts(one, np.array([choice.threshold]))[choice.side, 0]) for one in pair]
    first, second = choice.likelier, 1 - choice.likelier
    return Counts(hits[first], pair[first].size, hits[second], pair[second].size)


def _candidates(scores: np.ndarray) -> np.ndarray:
    """At most 256 of the scores: evenly by rank, and ever closer towards both ends."""
    values = np.sort(scores)
    even = np.linspace(0, values.size - 1, _THRESHOLDS // 2)
    # Ranks close to both ends give rare events, which have the largest ratios for Gaussian noise.
    tail = np.geomspace(1, values.size, _THRESHOLDS // 4) - 1
    ranks = np.concatenate([even, tail, values.size - 1 - tail]).astype(int)
    return np.unique(values[ranks])


def _counts(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    values = np.sort(scores)
    at_least = values.size - np.searchsorted(values, thresholds, side="left")
    at_most = np.searchsorted(values, thresholds, side="right")
    return np.stack([at_least, at_most])
