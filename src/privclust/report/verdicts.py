"""Claims of the papers, judged by our results.

A claim's check names an experiment, a metric and a comparison; the tolerance of each comparison
is its own standard error (95 %), never a number picked to pass. `MEANINGS` tells the verdicts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from privclust.pipeline.words import is_substitute
from privclust.report.comparison import Z95, compare, select

REPRODUCED = "reproduced"
PARTLY = "partly"
NOT_REPRODUCED = "not reproduced"
NOT_COMPARABLE = "not comparable"
NOT_RUN = "not run"
MEANINGS = {
    REPRODUCED: "Every comparison that the claim makes holds in our results.",
    PARTLY: (
        "Some comparisons hold, and more than are contradicted; or a printed number agrees, but "
        "with only a part of the paper's trials."
    ),
    NOT_REPRODUCED: (
        "No comparison holds, as where the trials cannot tell, or at least as many are "
        "contradicted as hold; or a printed number lies outside the 95 % interval of ours."
    ),
    NOT_COMPARABLE: (
        "The paper's data could not be had, and a declared substitute stood in for them."
    ),
    NOT_RUN: "Nothing was run that could decide it, as for what paper effort alone has.",
}
"""The verdicts, and what each means."""

VERDICTS = tuple(MEANINGS)
_HOLDS, _FAILS, _OPEN = "holds", "fails", "open"  # of one comparison
COLUMNS = ("id", "paper", "target", "where", "claim", "verdict", "decided_by", "tolerance", "data")


def judge(
    claims: list[Mapping[str, Any]],
    trials: Mapping[str, pd.DataFrame],
    printed: pd.DataFrame,
) -> pd.DataFrame:
    """Return a verdict for each claim; a claim on printed numbers gives one for each number.

    `claims` are the entries of the papers' claims.yaml, each with its ``paper``, `trials` those of
    each experiment that was run, `printed` the numbers the papers print; see
    `privclust.report.comparison.PRINTED_COLUMNS`. The result has `COLUMNS`.
    """
    rows: list[dict[str, str]] = []
    for claim in claims:
        head = {key: claim[key] for key in ("id", "paper", "target", "where", "claim")}
        check = claim["check"]
        if check["kind"] == "printed":
            rows.extend(_judge_printed(head, printed, trials))
            continue
        table = trials.get(check["experiment"])
        if table is not None and "select" in check:
            table = select(table, check["select"])
        rows.append(head | _judge_comparisons(check, table))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _judge_printed(
    head: Mapping[str, str], printed: pd.DataFrame, trials: Mapping[str, pd.DataFrame]
) -> list[dict[str, str]]:
    """Judge each printed number of a target on its own."""
    entries = compare(printed[printed["target"] == head["target"]], dict(trials))
    rows = []
    for entry in entries.to_dict("records"):
        name = f"{entry['label']} {entry['statistic']} {entry['metric']}".replace("_", " ")
        row = {
            **head,
            "id": f"{head['id']}/{entry['method']}/{entry['statistic']}/{entry['select']}",
            "claim": f"{name}, {entry['select'].replace('_', ' ')}: {entry['value']}",
            "data": entry["source"],
            "decided_by": "",
            "tolerance": "",
        }
        if not entry["n"]:
            row["verdict"] = NOT_RUN
        else:
            row["decided_by"] = f"ours {entry['ours']:.3g} on {entry['n']} of {entry['trials']}"
            row["tolerance"] = f"{entry['low']:.3g} to {entry['high']:.3g} (95 % of ours)"
            whole = entry["n"] >= entry["trials"]
            agreed = REPRODUCED if whole else PARTLY
            verdict = agreed if entry["agrees"] else NOT_REPRODUCED
            row["verdict"] = NOT_COMPARABLE if is_substitute(entry["source"]) else verdict
        rows.append(row)
    return rows


def _judge_comparisons(check: Mapping[str, Any], table: pd.DataFrame | None) -> dict[str, str]:
    """Judge a claim that is a set of comparisons, each of which holds, fails or stays open."""
    methods = {check["method"], *check.get("against", [])}
    if table is None or not methods <= set(table["method"]):
        return {"verdict": NOT_RUN, "decided_by": "", "tolerance": "", "data": ""}
    results, decided_by = _CHECKS[check["kind"]](check, table)
    held, failed = results.count(_HOLDS), results.count(_FAILS)
    if not results:
        return {"verdict": NOT_RUN, "decided_by": "no value", "tolerance": "", "data": ""}
    if held == len(results):
        verdict = REPRODUCED
    elif held > failed:
        verdict = PARTLY
    else:
        verdict = NOT_REPRODUCED
    sources = sorted(set(table["source"]))
    if any(map(is_substitute, sources)):
        verdict = NOT_COMPARABLE
    counts = f"{held} of {len(results)} comparisons hold, {failed} are contradicted; "
    return {
        "verdict": verdict,
        "decided_by": counts + decided_by,
        "tolerance": _TOLERANCES[check["kind"]].format(**check),
        "data": "; ".join(sources),
    }


def _lowest(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare a method with others, trial by trial, at each point: is its mean the lowest?"""
    text = "smallest gain {mean} (over {where})"
    return _all_on_one_side(_paired(check, table), text, 0.0, is_below=False)


def _below(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare a method's mean at each point with a bound."""
    means = (
        (point, *_mean_and_half(part.loc[part["method"] == check["method"], check["metric"]]))
        for point, part in _points(check, table)
    )
    return _all_on_one_side(means, "largest mean {mean} at {where}", check["bound"], is_below=True)


def _within(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare how far a method's mean lies above another's, trial by trial, with a bound."""
    gaps = ((where, -gain, half) for where, gain, half in _paired(check, table))
    return _all_on_one_side(gaps, "largest gap {mean} (to {where})", check["bound"], is_below=True)


def _at_most(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare the largest value over all trials with a bound."""
    values = table.loc[table["method"] == check["method"], check["metric"]].dropna()
    results = [_HOLDS if value <= check["bound"] else _FAILS for value in values]
    return results, f"largest of {len(values)} trials {values.max():.3g}"


def _lower(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare a method's value with the others' on the one data set that a figure shows."""
    values = table.set_index("method")[check["metric"]]
    value = values[check["method"]]
    results = [_HOLDS if value < values[other] else _FAILS for other in check["against"]]
    others = ", ".join(f"{other} {values[other]:.4g}" for other in check["against"])
    return results, f"{value:.4g} against {others}"


def _falls(check: Mapping[str, Any], table: pd.DataFrame) -> tuple[list[str], str]:
    """Compare a method at each point of an axis with itself at the next, trial by trial."""
    wide = _along(check, table)
    falls = (
        (f"from {check['along']}={low:g} to {high:g}", *_mean_and_half(wide[low] - wide[high]))
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
    spreads = [(where, *_mean_and_half(wide[high] - wide[low]))]
    is_below = check["kind"] == "stable"
    return _all_on_one_side(spreads, "spread {mean} ({where})", check["bound"], is_below)


_CHECKS: dict[str, Callable[..., tuple[list[str], str]]] = {
    "lowest": _lowest,
    "lower": _lower,
    "below": _below,
    "within": _within,
    "at_most": _at_most,
    "falls": _falls,
    "stable": _stable,
    "varies": _stable,
}
_TOLERANCES = {
    "lowest": "paired difference against 1.96 standard errors",
    "lower": "one data set, no trials: the plain order",
    "below": "mean with 1.96 standard errors against {bound}",
    "within": "paired difference with 1.96 standard errors against {bound}: {reason}",
    "at_most": "{bound}: {reason}",
    "falls": "paired difference of neighbouring points against 1.96 standard errors",
    "stable": "spread with 1.96 standard errors against {bound}: {reason}",
    "varies": "spread with 1.96 standard errors against {bound}: {reason}",
}


def _side(mean: float, half: float, bound: float, is_below: bool) -> str:
    """Say whether a mean lies below a bound (or above it) by more than half its interval."""
    below, above = mean + half < bound, mean - half > bound
    holds, fails = (below, above) if is_below else (above, below)
    return _HOLDS if holds else _FAILS if fails else _OPEN


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
    return table.pivot_table(index="trial", columns=check["along"], values=check["metric"])


def _mean_and_half(values: pd.Series) -> tuple[float, float]:
    """Return the mean of values of trials, mostly differences, and 1.96 standard errors of it."""
    values = values.dropna()
    return float(values.mean()), Z95 * float(values.std(ddof=1)) / np.sqrt(len(values))


def _paired(check: Mapping[str, Any], table: pd.DataFrame):
    """Yield, for each other method and point, the mean of what it has more and 1.96 errors of it.

    Where one of the two has no value (it cannot be run there), nothing is compared.
    """
    for point, part in _points(check, table):
        wide = part.pivot_table(index="trial", columns="method", values=check["metric"])
        for other in check["against"]:
            if other in wide and len(more := (wide[other] - wide[check["method"]]).dropna()):
                yield f"{other} at {point}" if point else other, *_mean_and_half(more)


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
