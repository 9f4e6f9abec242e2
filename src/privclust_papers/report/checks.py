"""The kinds of check: comparisons of means, each of which holds, fails or stays open.

Each returns what became of the comparisons and a sentence on the one that is least favourable.

A bound that lies within the 95 % interval of a mean leaves it open: no tolerance is picked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from privclust_papers.report.comparison import SCENE, half_width, mean_and_half
from privclust_papers.report.sentences import (
    FAILS,
    HOLDS,
    OPEN,
    Estimate,
    Wording,
    higher_or_lower,
    short,
    with_interval,
)

Judged = tuple[list[str], str]


def _lowest(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Compare a method with others, trial by trial, at each point: is its mean the lowest?"""
    results, least = _all_on_one_side(_paired(check, table), 0.0, is_below=False)
    if not least:
        return [], ""
    other = replace(least, mean=-least.mean)
    return results, (
        f"{wording.quantity} was expected lower for {wording.label} than for {wording.others}; "
        f"against {wording.label_of(least.other)}{wording.place(least)} it is "
        f"{higher_or_lower(other)}{_of_several(results, 'the least favourable')}"
    )


def _below(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Compare a method's mean at each point with a bound."""
    means = [
        _estimate(_by_trial(part, "method", check["metric"]), check["method"], at=point)
        for point, part in _points(check, table)
    ]
    results, highest = _all_on_one_side(means, check["bound"], is_below=True)
    if not highest:
        return [], ""
    values = table.loc[table["method"] == check["method"], check["metric"]].dropna()
    range_of = (0.0, 1.0) if values.isin((0.0, 1.0)).all() else (-np.inf, np.inf)  # of a share
    return results, (
        f"{wording.quantity} was expected below {short(check['bound'])} for {wording.label}; it is "
        f"{with_interval(highest, range_of=range_of)}{wording.place(highest)}"
        f"{_of_several(results, 'the highest')}"
    )


def _within(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Compare how far a method's mean lies above another's, trial by trial, with a bound."""
    gaps = [replace(gain, mean=-gain.mean) for gain in _paired(check, table)]
    results, largest = _all_on_one_side(gaps, check["bound"], is_below=True)
    if not largest:
        return [], ""
    return results, (
        f"{wording.quantity} was expected less than {short(check['bound'])} higher for "
        f"{wording.label} than for {wording.others}; against {wording.label_of(largest.other)}"
        f"{wording.place(largest)} it is {higher_or_lower(largest)}"
        f"{_of_several(results, 'the least favourable')}"
    )


def _alike(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Compare by what factor a method's standard deviation is off another's, with a bound."""
    ratios = []
    for point, part in _points(check, table):
        wide = _by_trial(part, "method", check["metric"])
        for other in set(check["against"]) & set(wide):
            both = wide[[other, check["method"]]].dropna()
            if len(both) > 2:
                log_ratio, half = _log_ratio_of_spreads(both.to_numpy())
                ratios.append(Estimate(abs(log_ratio), half, len(both), point, other))
    results, largest = _all_on_one_side(ratios, np.log(check["bound"]), is_below=True)
    if not largest:
        return [], ""
    low, high = np.exp([largest.mean - largest.half, largest.mean + largest.half])
    return results, (
        f"the standard deviation of {wording.quantity} was expected within a factor of "
        f"{short(check['bound'])} for {wording.label} and {wording.others}; against "
        f"{wording.label_of(largest.other)}{wording.place(largest)} the factor is "
        f"{short(np.exp(largest.mean))} (95 % interval {short(low)} to {short(high)}, "
        f"{largest.n} trials){_of_several(results, 'the largest')}"
    )


def _at_most(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Compare the largest value over all trials with a bound."""
    values = table.loc[table["method"] == check["method"], check["metric"]].dropna()
    results = [HOLDS if value <= check["bound"] else FAILS for value in values]
    if not results:
        return [], ""
    return results, (
        f"{wording.quantity} was expected at most {short(check['bound'])} in every trial for "
        f"{wording.label}; the largest of {len(values)} is {short(values.max())}"
    )


def _lower(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Compare a method's value with the others' on the one data set that a figure shows."""
    values = table.set_index("method")[check["metric"]]
    value = values[check["method"]]
    results = [HOLDS if value < values[other] else FAILS for other in check["against"]]
    others = ", ".join(f"{wording.label_of(o)} {values[o]:.4g}" for o in check["against"])
    return results, (
        f"{wording.quantity} was expected lowest for {wording.label}; it is {value:.4g}, "
        f"and that of others: {others}"
    )


def _falls(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Compare a method at each point of an axis with itself at the next, trial by trial."""
    wide = _along(check, table)
    falls = [
        _estimate(wide, low, high, at={"from": low, "to": high})
        for low, high in itertools.pairwise(wide.columns)
    ]
    results, least = _all_on_one_side(falls, 0.0, is_below=False)
    if not least:
        return [], ""
    axis = wording.words(check["along"])
    start, end = (short(least.at[name]) for name in ("from", "to"))
    at_end = replace(least, mean=-least.mean)
    return results, (
        f"{wording.quantity} was expected to fall as {axis} grows for {wording.label}"
        f"{_fixed(check, wording)}; from {axis} = {start} to {end} it gets "
        f"{higher_or_lower(at_end)}{_of_several(results, 'the least favourable step')}"
    )


def _stable(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Compare with a bound how far apart a method's means lie along an axis.

    The two points are picked as those farthest apart, so that noise widens what is judged: it
    speaks against a claim that the spread is small, and for one that it is large.
    """
    wide = _along(check, table)
    if len(wide.columns) < 2:
        return [], ""
    means = wide.mean()
    low, high = means.idxmin(), means.idxmax()
    spread = _estimate(wide, high, low)
    is_below = check["kind"] == "stable"
    results, _ = _all_on_one_side([spread], check["bound"], is_below)
    axis = wording.words(check["along"])
    return results, (
        f"{wording.quantity} was expected to change by {'less' if is_below else 'more'} than "
        f"{short(check['bound'])} along {axis} for {wording.label}{_fixed(check, wording)}; at "
        f"{axis} = {short(high)} it is {higher_or_lower(spread)} than at {short(low)}"
    )


KINDS: dict[str, Callable[..., Judged]] = {
    "lowest": _lowest,
    "lower": _lower,
    "below": _below,
    "within": _within,
    "alike": _alike,
    "at_most": _at_most,
    "falls": _falls,
    "stable": _stable,
    "varies": _stable,
}
WITHOUT_INTERVAL = ("at_most", "lower")
TOLERANCES = {
    "lowest": "the 95 % interval of paired differences",
    "lower": "one data set, no trials: the plain order",
    "below": "the 95 % interval of the mean",
    "within": "the 95 % interval of paired differences, against {bound:g}: {reason}",
    "alike": "the 95 % interval of ratios of standard deviations, against {bound:g}: {reason}",
    "at_most": "{bound:g}: {reason}",
    "falls": "the 95 % interval of paired differences of neighbouring points",
    "stable": "the 95 % interval of the change, against {bound:g}: {reason}",
    "varies": "the 95 % interval of the change, against {bound:g}: {reason}",
}


def at_chance(check: Mapping[str, Any], table: pd.DataFrame) -> bool:
    """Return whether no method that a check compares is above chance at any point."""
    chance = check["chance"]
    methods = [check["method"], *check.get("against", [])]
    axes = [axis for axis in (*check.get("by", []), check.get("along")) if axis]
    at_points = table.groupby(axes, sort=True) if axes else [((), table)]
    for _, part in at_points:
        wide = _by_trial(part, "method", chance["metric"])
        for method in methods:
            if method in wide:
                estimate = _estimate(wide, method)
                if estimate.mean - estimate.half > chance["value"]:
                    return False
    return True


def _side(estimate: Estimate, bound: float, is_below: bool) -> str:
    """Say whether a mean lies below a bound (or above it) by more than half its interval."""
    below = estimate.mean + estimate.half < bound
    above = estimate.mean - estimate.half > bound
    holds, fails = (below, above) if is_below else (above, below)
    return HOLDS if holds else FAILS if fails else OPEN


def _all_on_one_side(
    means: Sequence[Estimate], bound: float, is_below: bool
) -> tuple[list[str], Estimate | None]:
    """Compare means with a bound; return the one that is closest to it, or farthest beyond, too."""
    if not means:
        return [], None
    results = [_side(estimate, bound, is_below) for estimate in means]
    return results, (max if is_below else min)(means, key=attrgetter("mean"))


def _of_several(results: Sequence[str], which: str) -> str:
    """Say that a sentence tells of one comparison among several."""
    return f", {which} of {len(results)}" if len(results) > 1 else ""


def _fixed(check: Mapping[str, Any], wording: Wording) -> str:
    """Write the values of other axes that a check keeps fixed."""
    return f" at {wording.at(check['at'])}" if "at" in check else ""


def _along(check: Mapping[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    """Return a method's metric by trial and point of an axis, other axes as ``at`` says.

    A point without a value is left out.
    """
    others = check.get("at", {})
    for axis in (check["along"], *others):
        if axis not in table:
            raise ValueError(f"along, at: got {axis!r}; the columns are {', '.join(table)}")
    table = table[table["method"] == check["method"]]
    for axis, value in others.items():
        table = table[np.isclose(table[axis], value)]
    return _by_trial(table, check["along"], check["metric"])


def _paired(check: Mapping[str, Any], table: pd.DataFrame) -> list[Estimate]:
    """Return, for each other method and point, the mean of what it has more.

    Where one of the two has no value (it cannot be run there), nothing is compared.
    """
    gains = []
    for point, part in _points(check, table):
        wide = _by_trial(part, "method", check["metric"])
        for other in check["against"]:
            if other in wide and wide[[other, check["method"]]].notna().all(axis=1).any():
                gains.append(_estimate(wide, other, check["method"], at=point, method=other))
    return gains


def _by_trial(table: pd.DataFrame, column: str, metric: str) -> pd.DataFrame:
    """Return a metric by trial (and scene, where trials are of scenes) and a column's values."""
    index = ["trial", *(name for name in (SCENE,) if name in table)]
    means = table.groupby([*index, column])[metric].mean()  # as pivot_table, which is slower
    return means.dropna().unstack(column)


def _estimate(
    wide: pd.DataFrame,
    one: Any,
    other: Any = None,
    at: Mapping[str, Any] | None = None,
    method: str = "",
) -> Estimate:
    """Return the mean of a column, or of what it has more than another, with its interval."""
    values = (wide[one] if other is None else wide[one] - wide[other]).dropna()
    scenes = values.index.get_level_values(SCENE) if SCENE in values.index.names else None
    return Estimate(*mean_and_half(values.to_numpy(), scenes), len(values), at or {}, method)


def _log_ratio_of_spreads(pairs: np.ndarray) -> tuple[float, float]:
    """Return log of sd of the first column / sd of the second, and half its 95 % interval.

    By the jackknife over trials with Student's t.
    """
    n = len(pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = [np.delete(pairs, i, axis=0).std(axis=0, ddof=1) for i in range(n)]
        logs = np.log(np.vstack([pairs.std(axis=0, ddof=1), left_out]))
        ratios = logs[:, 0] - logs[:, 1]
        error = np.sqrt((n - 1) / n * np.sum(np.square(ratios[1:] - ratios[1:].mean())))
    return float(ratios[0]), float(half_width(error, n))


def _points(check: Mapping[str, Any], table: pd.DataFrame):
    """Split a table by the grid axes of a check; without any it is one point.

    A point at which the method has no value (it cannot be run there) decides nothing.
    """
    axes = check.get("by", [])
    methods = {check["method"], *check.get("against", [])}
    table = table[table["method"].isin(methods)].dropna(subset=[check["metric"]])
    for values, part in table.groupby(axes, sort=True) if axes else [((), table)]:
        if check["method"] in set(part["method"]):
            yield dict(zip(axes, values, strict=True)), part
