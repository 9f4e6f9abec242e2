"""The kinds of check: comparisons of means, each of which holds, fails or stays open.

A bound that lies within the 95 % interval of a mean leaves it open: no tolerance is picked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from privclust.report.comparison import SCENE, half_width, mean_and_half

HOLDS, FAILS, OPEN = "holds", "fails", "open"  # of one comparison


def _lowest(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare a method with others, trial by trial, at each point: is its mean the lowest?"""
    text = "smallest gain {mean} (over {where})"
    return _all_on_one_side(_paired(check, table), text, 0.0, is_below=False)


def _below(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare a method's mean at each point with a bound."""
    means = (
        (point, *_interval(_by_trial(part, "method", check["metric"]), check["method"]))
        for point, part in _points(check, table)
    )
    return _all_on_one_side(means, "largest mean {mean} at {where}", check["bound"], is_below=True)


def _within(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare how far a method's mean lies above another's, trial by trial, with a bound."""
    gaps = ((where, -gain, half) for where, gain, half in _paired(check, table))
    return _all_on_one_side(gaps, "largest gap {mean} (to {where})", check["bound"], is_below=True)


def _alike(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare by what factor a method's standard deviation is off another's, with a bound."""
    ratios = []
    for point, part in _points(check, table):
        wide = _by_trial(part, "method", check["metric"])
        for other in set(check["against"]) & set(wide):
            both = wide[[other, check["method"]]].dropna()
            if len(both) > 2:
                where = f"{other} at {point}" if point else other
                log_ratio, half = _log_ratio_of_spreads(both.to_numpy())
                ratios.append((where, abs(log_ratio), half))
    text = "largest logarithm of a factor {mean} (to {where})"
    return _all_on_one_side(ratios, text, np.log(check["bound"]), is_below=True)


def _at_most(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare the largest value over all trials with a bound."""
    values = table.loc[table["method"] == check["method"], check["metric"]].dropna()
    results = [HOLDS if value <= check["bound"] else FAILS for value in values]
    return results, f"largest of {len(values)} trials {values.max():.3g}"


def _lower(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare a method's value with the others' on the one data set that a figure shows."""
    values = table.set_index("method")[check["metric"]]
    value = values[check["method"]]
    results = [HOLDS if value < values[other] else FAILS for other in check["against"]]
    others = ", ".join(f"{other} {values[other]:.4g}" for other in check["against"])
    return results, f"{value:.4g} against {others}"


def _falls(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare a method at each point of an axis with itself at the next, trial by trial."""
    wide = _along(check, table)
    falls = (
        (f"from {check['along']}={low:g} to {high:g}", *_interval(wide, low, high))
        for low, high in itertools.pairwise(wide.columns)
    )
    return _all_on_one_side(falls, "smallest fall {mean} ({where})", 0.0, is_below=False)


def _stable(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare with a bound how far apart a method's means lie along an axis.

    The two points are picked as those farthest apart, so that noise widens what is judged: it
    speaks against a claim that the spread is small, and for one that it is large.
    """
    wide = _along(check, table)
    if len(wide.columns) < 2:
        return [], ""
    means = wide.mean()
    low, high = means.idxmin(), means.idxmax()
    where = f"{check['along']}={high:g} over {low:g}"
    spreads = [(where, *_interval(wide, high, low))]
    is_below = check["kind"] == "stable"
    return _all_on_one_side(spreads, "spread {mean} ({where})", check["bound"], is_below)


KINDS: dict[str, Callable[..., tuple[list[str], str]]] = {
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
TOLERANCES = {
    "lowest": "paired difference against its interval",
    "lower": "one data set, no trials: the plain order",
    "below": "mean with its interval against {bound}",
    "within": "paired difference with its interval against {bound}: {reason}",
    "alike": "ratio of standard deviations with its interval against {bound}: {reason}",
    "at_most": "{bound}: {reason}",
    "falls": "paired difference of neighbouring points against its interval",
    "stable": "spread with its interval against {bound}: {reason}",
    "varies": "spread with its interval against {bound}: {reason}",
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
                mean, half = _interval(wide, method)
                if mean - half > chance["value"]:
                    return False
    return True


def _side(mean: float, half: float, bound: float, is_below: bool) -> str:
    """Say whether a mean lies below a bound (or above it) by more than half its interval."""
    below, above = mean + half < bound, mean - half > bound
    holds, fails = (below, above) if is_below else (above, below)
    return HOLDS if holds else FAILS if fails else OPEN


def _all_on_one_side(
    means: Iterable[tuple[str, float, float]], text: str, bound: float, is_below: bool
) -> tuple[list[str], str]:
    """Compare means (where, mean, half of its interval) with a bound; tell of the closest one."""
    means = list(means)
    if not means:
        return [], ""
    results = [_side(mean, half, bound, is_below) for _, mean, half in means]
    where, mean, half = (max if is_below else min)(means, key=itemgetter(1))
    return results, text.format(where=where, mean=f"{mean:.4f} +- {half:.4f}")


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


def _paired(check: Mapping[str, Any], table: pd.DataFrame):
    """Yield, for each other method and point, the mean of what it has more and half its interval.

    Where one of the two has no value (it cannot be run there), nothing is compared.
    """
    for point, part in _points(check, table):
        wide = _by_trial(part, "method", check["metric"])
        for other in check["against"]:
            if other in wide and wide[[other, check["method"]]].notna().all(axis=1).any():
                yield (
                    f"{other} at {point}" if point else other,
                    *_interval(wide, other, check["method"]),
                )


def _by_trial(table: pd.DataFrame, column: str, metric: str) -> pd.DataFrame:
    """Return a metric by trial (and scene, where trials are of scenes) and a column's values."""
    index = ["trial", *(name for name in (SCENE,) if name in table)]
    return table.pivot_table(index=index, columns=column, values=metric)


def _interval(wide: pd.DataFrame, one: Any, other: Any = None) -> tuple[float, float]:
    """Return the mean of a column, or of what it has more than another, and half its interval."""
    values = (wide[one] if other is None else wide[one] - wide[other]).dropna()
    scenes = values.index.get_level_values(SCENE) if SCENE in values.index.names else None
    return mean_and_half(values.to_numpy(), scenes)


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
            yield ", ".join(f"{a}={v}" for a, v in zip(axes, values, strict=True)), part
