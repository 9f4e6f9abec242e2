"""Printed numbers beside ours, with the uncertainty that decides whether they agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

SCENE = "scene"
"""The column that says which trials repeat one another: those of one scene count as one."""
FEWEST = 20
"""Trials of a part of the paper's, below which a printed number is not judged."""
SHARE, SHARE_DIFFERENCE = "share", "difference of shares"
RANGES = {
    "": (-np.inf, np.inf),
    "positive": (0.0, np.inf),
    "fraction": (0.0, 1.0),
    "difference of fractions": (-1.0, 1.0),
    SHARE: (0.0, 1.0),
    SHARE_DIFFERENCE: (-1.0, 1.0),
}
"""The kinds of quantity and the values that each can have; a share is of trials, each 0 or 1."""
_RESAMPLES = 2000
STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "std": lambda values, axis: np.std(values, axis=axis, ddof=1),
}
_KEYS = ("target", "experiment", "method", "metric", "statistic", "select")
PRINTED_COLUMNS = (*_KEYS, "value", "trials")


def half_width(error: Any, n: Any, level: float = 0.95) -> Any:
    """Return half the interval of means of n trials each, from their standard errors.

    By Student's t, whose interval covers the mean of normal trials in 95 % for any n >= 2.
    """
    return special.stdtrit(np.asarray(n) - 1, 0.5 + 0.5 * level) * error


def mean_interval(
    values: np.ndarray, scenes: Any = None, level: float = 0.95, kind: str = ""
) -> tuple[float, float]:
    """Return the interval of the mean of trials, (NaN, NaN) for fewer than two.

    Student's t; trials of one scene are one draw (the linearised error of a mean over clusters).
    `kind` is a key of `RANGES`, to which the ends are cut. Shares of trials, and differences of
    shares, have exact intervals, which are not of length 0 where all trials are alike. Any other
    quantity that is alike in all trials does not vary, and its interval is that value.
    """
    values = np.asarray(values, dtype=float)
    n, mean = len(values), float(np.mean(values)) if len(values) else float("nan")
    off = pd.Series(values - mean)
    sums = off if scenes is None else off.groupby(np.asarray(scenes)).sum()
    n_draws = len(sums)
    if n_draws < 2:
        return float("nan"), float("nan")
    if kind == SHARE and n_draws == n:
        return _clopper_pearson(values.sum(), n, level)
    if kind == SHARE_DIFFERENCE and n_draws == n:
        return _mcnemar(values, level)
    error = np.sqrt(n_draws / (n_draws - 1) * np.sum(np.square(sums))) / n
    half = float(half_width(error, n_draws, level))
    low, high = mean - half, mean + half
    if kind == SHARE:  # of scenes that repeat one another: no shorter than that of as many draws
        exact = _clopper_pearson(mean * n_draws, n_draws, level)
        low, high = min(low, exact[0]), max(high, exact[1])
    low, high = np.clip([low, high], *RANGES[kind])
    return float(low), float(high)


def median_interval(values: np.ndarray, level: float = 0.95, kind: str = "") -> tuple[float, float]:
    """Return the exact interval of the median of trials, between two of the sorted values.

    It holds for any distribution. Too few trials for any (fewer than 6 at 95 %) give the range of
    the kind.
    """
    values = np.sort(np.asarray(values, dtype=float))
    n = len(values)
    if n < 2:
        return float("nan"), float("nan")
    k = int(np.sum(special.bdtr(np.arange(n // 2), n, 0.5) <= 0.5 - 0.5 * level))
    return (float(values[k - 1]), float(values[n - k])) if k else RANGES[kind]


def _clopper_pearson(hits: float, n: int, level: float) -> tuple[float, float]:
    tail = 0.5 - 0.5 * level
    low = special.betaincinv(hits, n - hits + 1.0, tail) if hits > 0 else 0.0
    high = special.betaincinv(hits + 1.0, n - hits, 1.0 - tail) if hits < n else 1.0
    return float(low), float(high)


def _mcnemar(values: np.ndarray, level: float) -> tuple[float, float]:
    """Return an interval of a difference of shares on the same trials (values -1, 0 and 1).

    Which side of 0 it lies on is exact: among trials that differ, both signs are as likely where
    the shares are the same.
    """
    n, more, differ = len(values), int(np.sum(values > 0)), int(np.sum(values != 0))
    if not differ:
        most = _clopper_pearson(0, n, level)[1]
        return -most, most
    low, high = _clopper_pearson(more, differ, level)
    return float(differ / n * (2.0 * low - 1.0)), float(differ / n * (2.0 * high - 1.0))


def bootstrap_interval(
    values: np.ndarray, statistic: str, scenes: Any = None
) -> tuple[float, float]:
    """95 % percentile interval of a key of `STATISTICS` over trials, from 2000 resamples of these.

    Scenes are drawn whole. The resamples are drawn from a fixed seed, so that a run gives the same
    verdicts twice. Fewer than two trials (or scenes) give NaN.
    """
    draws = np.arange(len(values)) if scenes is None else pd.factorize(np.asarray(scenes))[0]
    members = [np.flatnonzero(draws == i) for i in range(draws.max(initial=-1) + 1)]
    if len(members) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    picked = rng.integers(len(members), size=(_RESAMPLES, len(members)))
    if scenes is None:
        resampled = STATISTICS[statistic](values[picked], axis=1)
    else:
        resampled = [
            STATISTICS[statistic](values[np.concatenate([members[i] for i in row])], axis=0)
            for row in picked
        ]
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)


def interval(values: np.ndarray, statistic: str, scenes: Any = None) -> tuple[float, float]:
    """95 % interval of a key of `STATISTICS`: of means by `mean_interval`, else by resampling."""
    if statistic != "mean":
        return bootstrap_interval(values, statistic, scenes)
    return mean_interval(values, scenes)


def select(trials: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the trials that meet a condition ``"column=value"``, or all for an empty one."""
    if not condition:
        return trials
    column, _, value = condition.partition("=")
    if column not in trials:
        raise ValueError(f"select: got {condition!r}; the columns are {', '.join(trials)}")
    return trials[trials[column].astype(str) == value]


def decimals(printed: str) -> int:
    """Return how many digits a printed number has behind the point."""
    return len(printed.partition(".")[2])


def compare(printed: pd.DataFrame, trials: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Put ours, from the trials by experiment, beside each printed number.

    `printed` has `PRINTED_COLUMNS`: the value as text just as it is printed, in per cent, and the
    number of trials it was computed from. The result has these and: label, n (our trials), ours,
    its 95 % interval low to high, agrees (whether the printed number lies in the interval, widened
    by half a unit of its last digit), others (how many of the other numbers that are printed for
    other methods lie in it as well, which says how much the agreement means) of n_others,
    source. Without trials there is no number of ours.
    """
    rows = []
    for entry in printed.to_dict("records"):
        head = {**entry, "printed": float(entry["value"])}
        table = trials.get(entry["experiment"])
        if table is not None:
            table = table[table["method"] == entry["method"]]
            table = select(table, entry["select"])
        if table is None or table.empty:
            rows.append(head | {"label": entry["method"], "n": 0, "source": ""})
            continue
        values = 100.0 * table[entry["metric"]].to_numpy()
        ours = float(STATISTICS[entry["statistic"]](values, axis=0)) if len(values) > 1 else np.nan
        scenes = table.get(SCENE)
        low, high = interval(values, entry["statistic"], scenes)
        others = _printed_for_others(printed, entry)
        rows.append(
            head
            | {
                "label": table["label"].iloc[0],
                "n": len(values),
                "ours": ours,
                "low": low,
                "high": high,
                "agrees": _lies_in(entry["value"], low, high),
                "others": sum(_lies_in(value, low, high) for value in others),
                "n_others": len(others),
                "source": table["source"].iloc[0],
            }
        )
    columns = ["label", "n", "ours", "low", "high", "agrees", "others", "n_others", "source"]
    return pd.DataFrame(rows).reindex(columns=[*PRINTED_COLUMNS, "printed", *columns])


def compare_margins(
    printed: pd.DataFrame, trials: Mapping[str, pd.DataFrame], method: str
) -> pd.DataFrame:
    """Put ours beside by how much each printed mean lies above that of one method.

    The result has the index of `printed` and: label, source, n; printed_margin and its rounding;
    margin, the mean difference on the same trials, with its 95 % interval low to high, those of a
    scene counted as one draw. Where the two are not to be had, or of no mean, there is no number.
    """
    rows = []
    for entry in printed.to_dict("records"):
        part = trials.get(entry["experiment"])
        tops = printed[printed["method"] == method]
        same = [key for key in _KEYS if key != "method"]
        top = tops[(tops[same] == [entry[key] for key in same]).all(axis=1)]
        is_margin = entry["statistic"] == "mean" and entry["method"] != method and len(top)
        if not is_margin or part is None or not {entry["method"], method} <= set(part["method"]):
            rows.append({})
            continue
        part = select(part, entry["select"])
        wide = part.pivot_table(index="trial", columns="method", values=entry["metric"])
        more = 100.0 * (wide[entry["method"]] - wide[method]).dropna()
        scenes = part.drop_duplicates("trial").set_index("trial").get(SCENE)
        low, high = interval(more, "mean", None if scenes is None else scenes.loc[more.index])
        values = [str(entry["value"]), str(top["value"].iloc[0])]
        of_method = part[part["method"] == entry["method"]]
        rows.append(
            {
                "label": of_method["label"].iloc[0],
                "source": of_method["source"].iloc[0],
                "n": len(more),
                "printed_margin": float(values[0]) - float(values[1]),
                "rounding": sum(map(_rounding, values)),
                "margin": more.mean(),
                "low": low,
                "high": high,
            }
        )
    columns = ["label", "source", "n", "printed_margin", "rounding", "margin", "low", "high"]
    return pd.DataFrame(rows, index=printed.index).reindex(columns=columns)


def _lies_in(value: str, low: float, high: float) -> bool:
    """Return whether a printed number may, before it was rounded, have been in an interval."""
    return low - _rounding(value) <= float(value) <= high + _rounding(value)


def _rounding(value: str) -> float:
    return 0.5 * 10.0 ** -decimals(value)


def _printed_for_others(printed: pd.DataFrame, entry: dict[str, Any]) -> list[str]:
    """Return the numbers printed for other methods in the same place, but for equal ones."""
    same = [key for key in _KEYS if key != "method"]
    rows = printed[(printed[same] == [entry[key] for key in same]).all(axis=1)]
    values = rows.loc[rows["method"] != entry["method"], "value"].astype(str)
    return [value for value in values if value not in ("nan", str(entry["value"]))]
