"""The kinds of check: comparisons of means or medians, each of which holds, fails or is open.

Each kind returns a function and two texts. The function gives, for a level such as 0.95, the
outcome of each comparison. The texts state the expected result and the result of the least
favourable comparison. A comparison is open if its interval at the level includes the bound; no
other tolerance is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from privclust_papers.report.comparison import (
    DIFFERENCES,
    SCENE,
    half_width,
    mean_interval,
    median_interval,
)
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

Outcomes = Callable[[float], list[str]]
# the texts are the expected and the found result; None if there is nothing to compare
Judged = tuple[Outcomes, tuple[str, str]] | None


def _lowest(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check that a method has the lowest mean at each point, by paired differences of trials."""
    gains = _paired(check, table)
    outcomes, least = _all_on_one_side(gains, 0.0, is_below=False)
    if not least:
        return None
    return outcomes, (
        f"{wording.quantity} lower for {wording.label} than for {wording.others}",
        f"{higher_or_lower(least.negated(), wording.is_log)} than for "
        f"{wording.label_of(least.other)}{wording.place(least)}"
        f"{_of_several(gains, 'the least favourable')}",
    )


def _below(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check that a method's mean is below a bound at each point.

    A printed bound stands for all numbers that round to it: up to ``rounding`` above or below.
    """
    means = [
        _estimate(check, _by_trial(part, "method", check["metric"]), check["method"], at=point)
        for point, part in _points(check, table)
    ]
    rounding = check.get("rounding", 0.0)
    outcomes, highest = _all_on_one_side(means, _bound(check), is_below=True, rounding=rounding)
    if not highest:
        return None
    limit, digits = short(check["bound"]), 3
    if rounding:
        ends = (short(check["bound"] + sign * rounding, 5) for sign in (-1.0, 1.0))
        limit, digits = f"the printed {check['bound']:g} ({' to '.join(ends)} before rounding)", 5
    return outcomes, (
        f"{wording.quantity} below {limit} for {wording.label}",
        f"{with_interval(highest, wording.is_log, digits)}{wording.place(highest)}"
        f"{_of_several(means, 'the highest')}",
    )


def _within(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check that a method's mean exceeds the others' by less than a bound, trial by trial."""
    gaps = [gain.negated() for gain in _paired(check, table)]
    outcomes, largest = _all_on_one_side(gaps, _bound(check), is_below=True)
    if not largest:
        return None
    most = f"a factor of {short(check['bound'])}" if wording.is_log else short(check["bound"])
    return outcomes, (
        f"{wording.quantity} higher by less than {most} for {wording.label} than for "
        f"{wording.others}",
        f"{higher_or_lower(largest, wording.is_log)} than for {wording.label_of(largest.other)}"
        f"{wording.place(largest)}{_of_several(gaps, 'the least favourable')}",
    )


def _alike(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check that a method's statistic is within a factor of the others', in both directions."""
    if check["statistic"] == "std":
        ratios = list(_ratios_of_spreads(check, table))
    else:
        ratios = [gain.negated() for gain in _paired(check, table)]
    if not ratios:
        return None
    largest = max(ratios, key=lambda ratio: abs(ratio.value))
    # The text has a factor of at least 1, whichever of the two methods is larger.
    upwards = largest if largest.value >= 0.0 else largest.negated()
    return partial(_both_sides, ratios, np.log(check["bound"])), (
        f"{wording.quantity} within a factor of {short(check['bound'])} for {wording.label} and "
        f"{wording.others}",
        f"a factor of {with_interval(upwards, is_log=True)} to "
        f"{wording.label_of(largest.other)}{wording.place(largest)}"
        f"{_of_several(ratios, 'the largest')}",
    )


def _at_most(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check that no trial exceeds a bound: one comparison a trial, or one a point of ``by``."""
    own = table[table["method"] == check["method"]].dropna(subset=[check["metric"]])
    if own.empty:
        return None
    values = own[check["metric"]]
    largest = values.groupby([own[axis] for axis in check["by"]]).max() if "by" in check else values
    results = [HOLDS if value <= check["bound"] else FAILS for value in largest]
    where = own.iloc[values.to_numpy().argmax()][check.get("by", [])].to_dict()
    at = f" at {wording.at(where)}" if where else ""
    several = f", the largest of {len(values)} values" if len(values) > 1 else ""
    return lambda level: results, (
        f"{wording.quantity} at most {short(check['bound'])} in every trial for {wording.label}",
        f"{short(values.max())}{at}{several}",
    )


def _falls(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check that a method's metric falls between neighbouring points of an axis, trial by trial."""
    wide = _along(check, table)
    falls = [
        _estimate(check, wide, low, high, at={"from": low, "to": high})
        for low, high in itertools.pairwise(wide.columns)
    ]
    outcomes, least = _all_on_one_side(falls, 0.0, is_below=False)
    if not least:
        return None
    axis = wording.words(check["along"])
    start, end = (short(least.at[name]) for name in ("from", "to"))
    return outcomes, (
        f"{wording.quantity} falls as {axis} grows, for {wording.label}{_fixed(check, wording)}",
        f"{higher_or_lower(least.negated(), wording.is_log)} at {axis} = {end} than at {start}"
        f"{_of_several(falls, 'the least favourable')}",
    )


def _correlated(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check that a method's metric falls along an axis on the whole, by a rank correlation."""
    rhos = _rank_correlations(check, table)
    outcomes, rho = _all_on_one_side(rhos, 0.0, is_below=True)
    if not rho:
        return None
    axis = wording.words(check["along"])
    return outcomes, (
        f"a negative rank correlation of {wording.quantity} with {axis}, for {wording.label}"
        f"{_fixed(check, wording)}",
        with_interval(rho),
    )


def _independent(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check that a method's metric has no rank correlation with an axis, at each point.

    A comparison is contradicted or open: trials can show a correlation, but not that none exists.
    """
    rhos = _rank_correlations(check, table)
    if not rhos:
        return None
    strongest = max(rhos, key=lambda rho: abs(rho.value))

    def outcomes(level: float) -> list[str]:
        ends = [rho.ends(level) for rho in rhos]
        return [OPEN if low <= 0.0 <= high else FAILS for low, high in ends]

    axis = wording.words(check["along"])
    return outcomes, (
        f"no rank correlation of {wording.quantity} with {axis}, for {wording.label}"
        f"{_fixed(check, wording)}",
        f"{with_interval(strongest)}{wording.place(strongest)}{_of_several(rhos, 'the strongest')}",
    )


def _rank_correlations(check: Mapping[str, Any], table: pd.DataFrame) -> list[Estimate]:
    """Return Spearman's correlation of a metric with an axis at each point of ``by``.

    It is that of each trial that has all values of the axis, averaged over trials.
    """
    rhos = []
    for point, part in _points(check, table):
        # Spearman's correlation is Pearson's of ranks; the columns are in order, so that their
        # places are the ranks of the axis.
        wide = _along(check, part).dropna().rank(axis=1)
        along = np.arange(len(wide.columns), dtype=float)
        by_trial = pd.DataFrame({"rho": wide.T.corrwith(pd.Series(along, wide.columns))}).dropna()
        if not by_trial.empty:
            kind = {"quantity_kind": "difference of fractions"}
            rhos.append(_estimate(kind, by_trial, "rho", at=point))
    return rhos


def _stable(check: Mapping[str, Any], table: pd.DataFrame, wording: Wording) -> Judged:
    """Check whether a method's mean changes by less than a bound along an axis.

    The change is the largest difference of two means (``stable``; ``varies``: more than the bound),
    or the growth from the first point to the last (``grows_less``; ``grows``).
    """
    is_below = check["kind"] in ("stable", "grows_less")
    is_growth = check["kind"] in ("grows", "grows_less")
    measure = _growth if is_growth else _largest_change
    changes = [
        measure(check, wide, point)
        for point, part in _points(check, table)
        for wide in [_along(check, part)]
        if len(wide.columns) > 1
    ]
    outcomes, change = _all_on_one_side(changes, _bound(check), is_below)
    if not change:
        return None
    axis = wording.words(check["along"])
    low, high = (short(change.at[name]) for name in ("from", "to"))
    point = {name: value for name, value in change.at.items() if name not in ("from", "to")}
    return outcomes, (
        f"{wording.quantity} {'grows' if is_growth else 'changes'} by "
        f"{'less' if is_below else 'more'} than {short(check['bound'])} along {axis}, for "
        f"{wording.label}{_fixed(check, wording)}",
        f"{higher_or_lower(change, wording.is_log)} at {axis} = {high} than at {low}"
        f"{'' if is_growth else ', the largest difference'}"
        f"{wording.place(replace(change, at=point))}"
        f"{_of_several(changes, 'the least favourable')}",
    )


def _growth(check: Mapping[str, Any], wide: pd.DataFrame, point: Mapping[str, Any]) -> Estimate:
    """Return the excess of the last column over the first."""
    first, last = wide.columns[0], wide.columns[-1]
    return _estimate(check, wide, last, first, at={**point, "from": first, "to": last})


def _largest_change(
    check: Mapping[str, Any], wide: pd.DataFrame, point: Mapping[str, Any]
) -> Estimate:
    """Return the difference between the two columns whose means are farthest apart.

    This choice biases the difference upwards, so the lower end of the interval has a Bonferroni
    correction for the number of pairs.
    """
    values = wide.agg(check.get("statistic", "mean"))
    low, high = values.idxmin(), values.idxmax()
    picked = _estimate(check, wide, high, low, at={**point, "from": low, "to": high})
    n_pairs = len(values) * (len(values) - 1) // 2

    def ends(level: float) -> tuple[float, float]:
        return picked.ends(1.0 - (1.0 - level) / n_pairs)[0], picked.ends(level)[1]

    return replace(picked, ends=ends)


KINDS: dict[str, Callable[..., Judged]] = {
    "lowest": _lowest,
    "below": _below,
    "within": _within,
    "alike": _alike,
    "at_most": _at_most,
    "falls": _falls,
    "correlated": _correlated,
    "independent": _independent,
    "stable": _stable,
    "varies": _stable,
    "grows": _stable,
    "grows_less": _stable,
}
CHANCE_ALONE = (
    "; without a true difference, at most 2.5 % of such claims would have a comparison that holds "
    "by chance, and at most 2.5 % one that is contradicted"
)
WITHOUT_INTERVAL = ("at_most",)
TOLERANCES = {
    "lowest": "the 95 % interval of paired differences{chance_alone}",
    "below": "the 95 % interval, against {bound:g} ({reason})",
    "within": "the 95 % interval of paired differences, against {bound:g} ({reason})",
    "alike": "the 95 % interval of ratios, against factors of 1/{bound:g} and {bound:g} ({reason})",
    "at_most": "the bound {bound:g} in every trial ({reason})",
    "falls": "the 95 % interval of paired differences of neighbouring points{chance_alone}",
    "correlated": "the 95 % interval of Spearman's rank correlation within a trial, against 0",
    "independent": "the 95 % interval of Spearman's rank correlation within a trial, against 0",
    "stable": "the 95 % interval of the change, against {bound:g} ({reason})",
    "varies": "the 95 % interval of the change, against {bound:g} ({reason})",
    "grows": "the 95 % interval of the growth, against {bound:g} ({reason})",
    "grows_less": "the 95 % interval of the growth, against {bound:g} ({reason})",
}


def at_chance(check: Mapping[str, Any], table: pd.DataFrame) -> bool:
    """Return whether no method of a check is above chance."""
    return _at_chance(check, table) == {check["method"], *check.get("against", [])}


def _at_chance(check: Mapping[str, Any], table: pd.DataFrame) -> set[str]:
    """Return the methods that are not above chance: at any point, or on average over them.

    The average guards against wide intervals, which reach chance wherever the mean lies.
    """
    if "chance" not in check:
        return set()
    metric, limit = check["chance"]["metric"], check["chance"]["value"]
    axes = [axis for axis in (*check.get("by", []), check.get("along")) if axis]
    at_points = table.groupby(axes, sort=True) if axes else [((), table)]
    wides = [_by_trial(part, "method", metric) for _, part in at_points]
    found = set()
    for method in (check["method"], *check.get("against", [])):
        means = [_estimate({}, wide, method) for wide in wides if method in wide]
        is_above = any(mean.ends(0.95)[0] > limit for mean in means)
        if not is_above and (not means or np.mean([mean.value for mean in means]) <= limit):
            found.add(method)
    return found


def _sides(
    means: Sequence[Estimate], bound: float, is_below: bool, rounding: float, level: float
) -> list[str]:
    """Return for each mean whether its interval lies below a bound (or above it)."""
    results = []
    for estimate in means:
        low, high = estimate.ends(level)
        below, above = high < bound - rounding, low > bound + rounding
        holds, fails = (below, above) if is_below else (above, below)
        is_open = estimate.is_at_chance or not (holds or fails)
        results.append(OPEN if is_open else HOLDS if holds else FAILS)
    return results


def _both_sides(ratios: Sequence[Estimate], bound: float, level: float) -> list[str]:
    """Return for each log ratio whether its interval lies in [-bound, bound]."""
    ends = [ratio.ends(level) for ratio in ratios]
    return [
        HOLDS if -bound < low and high < bound else FAILS if low > bound or high < -bound else OPEN
        for low, high in ends
    ]


def _all_on_one_side(
    means: Sequence[Estimate], bound: float, is_below: bool, rounding: float = 0.0
) -> tuple[Outcomes, Estimate | None]:
    """Return the comparisons of means with a bound, and the least favourable mean."""
    extreme = (max if is_below else min)(means, key=attrgetter("value"), default=None)
    return partial(_sides, means, bound, is_below, rounding), extreme


def _bound(check: Mapping[str, Any]) -> float:
    return float(np.log(check["bound"]) if check.get("scale") == "log" else check["bound"])


def _of_several(estimates: Sequence[Estimate], which: str) -> str:
    return f", {which} of {len(estimates)} comparisons" if len(estimates) > 1 else ""


def _fixed(check: Mapping[str, Any], wording: Wording) -> str:
    return f" at {wording.at(check['at'])}" if "at" in check else ""


def _along(check: Mapping[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    """Return a method's metric by trial and point of an axis, without points that lack values."""
    others = check.get("at", {})
    for axis in (check["along"], *others):
        if axis not in table:
            raise ValueError(f"along, at: got {axis!r}; the columns are {', '.join(table)}")
    table = table[table["method"] == check["method"]]
    for axis, value in others.items():
        table = table[np.isclose(table[axis], value)]
    return _by_trial(table, check["along"], check["metric"])


def _paired(check: Mapping[str, Any], table: pd.DataFrame) -> list[Estimate]:
    """Return the mean excess of each other method at each point where both have values."""
    gains, silent = [], _at_chance(check, table)
    for point, part in _points(check, table):
        wide = _by_trial(part, "method", check["metric"])
        for other in check["against"]:
            if other in wide and wide[[other, check["method"]]].notna().all(axis=1).any():
                gain = _estimate(check, wide, other, check["method"], point, other)
                gains.append(replace(gain, is_at_chance={other, check["method"]} <= silent))
    return gains


def _by_trial(table: pd.DataFrame, column: str, metric: str) -> pd.DataFrame:
    """Return a metric by trial (and scene, if there are scenes) and the values of a column."""
    index = ["trial", *(name for name in (SCENE,) if name in table)]
    means = table.groupby([*index, column])[metric].mean()  # as pivot_table, which is slower
    # Groups that have only NaN would become empty columns.
    return means.dropna().unstack(column)


def _estimate(
    check: Mapping[str, Any],
    wide: pd.DataFrame,
    one: Any,
    other: Any = None,
    at: Mapping[str, Any] | None = None,
    method: str = "",
) -> Estimate:
    differences = (wide[one] if other is None else wide[one] - wide[other]).dropna()
    index, kind = differences.index, check.get("quantity_kind", "")
    if other is not None:
        kind = DIFFERENCES.get(kind, "")
    if check.get("statistic") == "median":
        units = "scenes" if SCENE in index.names else "trials"
        if SCENE in index.names:  # trials of a scene are not independent: their median counts once
            differences = differences.groupby(level=SCENE).median()
        values = differences.to_numpy()
        ends = partial(median_interval, values, kind=kind)
        value = float(np.median(values)) if len(values) else float("nan")
        return Estimate(value, len(values), ends, at or {}, method, units)
    values = differences.to_numpy()
    scenes = index.get_level_values(SCENE) if SCENE in index.names else None

    def ends_of_mean(level: float) -> tuple[float, float]:
        return mean_interval(values, scenes, level, kind)

    value = float(values.mean()) if len(values) else float("nan")
    return Estimate(value, len(values), ends_of_mean, at or {}, method)


def _ratios_of_spreads(check: Mapping[str, Any], table: pd.DataFrame) -> Iterator[Estimate]:
    """Yield the log ratio of standard deviations to each other method, with jackknife errors."""
    for point, part in _points(check, table):
        wide = _by_trial(part, "method", check["metric"])
        for other in sorted(set(check["against"]) & set(wide)):
            pairs = wide[[check["method"], other]].dropna().to_numpy()
            # The jackknife leaves one trial out and needs two for a standard deviation.
            if len(pairs) > 2:
                log_ratio, error = _log_ratio_of_spreads(pairs)
                ends = partial(_around, log_ratio, error, len(pairs))
                yield Estimate(log_ratio, len(pairs), ends, point, other)


def _around(value: float, error: float, n: int, level: float) -> tuple[float, float]:
    """Return the Student's t interval of a value with a standard error."""
    half = float(half_width(error, n, level))
    return value - half, value + half


def _log_ratio_of_spreads(pairs: np.ndarray) -> tuple[float, float]:
    """Return log(sd of column 0 / sd of column 1) and its jackknife standard error."""
    n = len(pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = [np.delete(pairs, i, axis=0).std(axis=0, ddof=1) for i in range(n)]
        logs = np.log(np.vstack([pairs.std(axis=0, ddof=1), left_out]))
        ratios = logs[:, 0] - logs[:, 1]
        error = np.sqrt((n - 1) / n * np.sum(np.square(ratios[1:] - ratios[1:].mean())))
    return float(ratios[0]), float(error)


def _points(check: Mapping[str, Any], table: pd.DataFrame):
    """Yield the points of a check's grid axes with their trials, if there are values."""
    axes = check.get("by", [])
    methods = {check["method"], *check.get("against", [])}
    table = table[table["method"].isin(methods)].dropna(subset=[check["metric"]])
    for values, part in table.groupby(axes, sort=True) if axes else [((), table)]:
        if check["method"] in set(part["method"]):
            yield dict(zip(axes, values, strict=True)), part
