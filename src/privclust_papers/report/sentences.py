"""The reasons for a verdict in words: the quantity, the expected and the observed result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

HOLDS, FAILS, OPEN = "holds", "fails", "open"  # results of one comparison
_NAMED = 3  # most methods that a sentence names; more are only counted
_SIDES = {
    HOLDS: "the interval is on the expected side",
    FAILS: "the interval is on the other side",
    OPEN: "the interval includes both sides",
}


@dataclass(frozen=True)
class Estimate:
    """A mean (or median) over trials, its interval, and its point of the grid."""

    value: float
    n: int  # trials, or other units
    ends: Callable[[float], tuple[float, float]]  # interval for a level such as 0.95
    at: Mapping[str, Any] = field(default_factory=dict)  # values of axes
    other: str = ""  # the method compared with
    units: str = "trials"
    is_at_chance: bool = False  # both methods are, so that their order says nothing

    def negated(self) -> Estimate:
        """Return the difference with the opposite sign."""

        def ends(level: float) -> tuple[float, float]:
            low, high = self.ends(level)
            return -high, -low

        return replace(self, value=-self.value, ends=ends)


class Wording:
    """Names of a check's quantity, axes and methods in sentences.

    `quantities` has descriptions of metrics and axes; a name without one is used as it is. Labels
    of methods are from the table of trials.
    """

    def __init__(
        self, check: Mapping[str, Any], table: pd.DataFrame, quantities: Mapping[str, str]
    ) -> None:
        self._quantities = quantities
        self._labels = dict(zip(table["method"], table.get("label", table["method"]), strict=True))
        self.is_log = check.get("scale") == "log"
        of = "" if check.get("statistic", "mean") == "mean" else f"the {check['statistic']} of "
        self.quantity = of + self.words(check["metric"])
        self.label = self.label_of(check["method"])
        self.others = self._listed(check.get("against", []))

    def words(self, name: str) -> str:
        """Return the description of a metric or an axis."""
        return self._quantities.get(name, name.replace("_", " "))

    def label_of(self, method: str) -> str:
        """Return the label of a method, in quotes if it has a comma."""
        label = str(self._labels.get(method, method))
        return f'"{label}"' if "," in label else label

    def at(self, values: Mapping[str, Any]) -> str:
        """Write values of axes, such as ``epsilon = 0.1``."""
        return ", ".join(f"{self.words(name)} = {short(value)}" for name, value in values.items())

    def place(self, estimate: Estimate) -> str:
        """Write the point of an estimate after a space; empty if there are no axes."""
        return f" at {self.at(estimate.at)}" if estimate.at else ""

    def _listed(self, methods: Sequence[str]) -> str:
        if len(methods) > _NAMED:
            return f"{len(methods)} other methods"
        *first, last = [self.label_of(method) for method in methods] or [""]
        return f"{', '.join(first)} and {last}" if first else last


def short(value: Any, digits: int = 3) -> str:
    """Write a number with a number of digits; texts are unchanged.

    Examples
    --------
    >>> short(0.123456), short(20.0), short(100000), short(-0.0), short("a")
    ('0.123', '20', '100000', '0', 'a')
    """
    if isinstance(value, str):
        return value
    number = float(value) + 0.0  # -0 becomes 0
    is_whole = number.is_integer() and abs(number) < 1e9
    return f"{number:.0f}" if is_whole else f"{number:.{digits}g}"


def with_interval(estimate: Estimate, is_log: bool = False, digits: int = 3) -> str:
    """Write an estimate with its 95 % interval; logarithms are transformed back.

    Examples
    --------
    >>> with_interval(Estimate(0.05, 20, lambda level: (0.0, 0.25)))
    '0.05 (95 % interval 0 to 0.25, 20 trials)'
    >>> with_interval(Estimate(0.5, 1, lambda level: (float("nan"), float("nan"))))
    '0.5 (one trial, no interval)'
    """
    if not estimate.n:
        return "an unknown amount (no trial has both values)"
    value, *ends = np.array([estimate.value, *estimate.ends(0.95)])
    if is_log:
        value, *ends = np.exp([value, *ends])
    if np.isnan(ends).any():
        few = f"one {estimate.units[:-1]}" if estimate.n == 1 else f"{estimate.n} {estimate.units}"
        return f"{short(value, digits)} ({few}, no interval)"
    low, high = (short(end, digits) for end in ends)
    return f"{short(value, digits)} (95 % interval {low} to {high}, {estimate.n} {estimate.units})"


def higher_or_lower(estimate: Estimate, is_log: bool = False) -> str:
    """Write a difference as ``higher by`` or ``lower by`` its size, with its interval."""
    is_higher = estimate.value >= 0.0
    amount = with_interval(estimate if is_higher else estimate.negated(), is_log)
    factor = "a factor of " if is_log else ""
    return f"{'higher' if is_higher else 'lower'} by {factor}{amount}"


def outcome(results: Sequence[str], has_interval: bool = True) -> str:
    """Return the number of comparisons that hold; for a single one, the side of its interval.

    Examples
    --------
    >>> outcome(["holds", "open"])
    '1 of 2 comparisons hold, none is contradicted'
    >>> outcome(["open"])
    'the interval includes both sides'
    >>> outcome(["fails"], has_interval=False)
    'not as expected'
    """
    if len(results) == 1:
        plain = "as expected" if results[0] == HOLDS else "not as expected"
        return _SIDES[results[0]] if has_interval else plain
    held, failed = results.count(HOLDS), results.count(FAILS)
    contradicted = {0: "none is", 1: "1 is"}.get(failed, f"{failed} are")
    return f"{held} of {len(results)} comparisons hold, {contradicted} contradicted"
