"""Comparison of printed numbers with our results, by confidence intervals over trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

SCENE = "scene"
"""Column of the scene of a trial; trials of one scene are one cluster."""
FEWEST = 20
"""Smallest number of trials for which a printed number is judged, unless the paper has fewer."""
SHARE, SHARE_DIFFERENCE = "share", "difference of shares"
RANGES = {
    "": (-np.inf, np.inf),
    "positive": (0.0, np.inf),
    "fraction": (0.0, 1.0),
    "difference of fractions": (-1.0, 1.0),
    SHARE: (0.0, 1.0),
    SHARE_DIFFERENCE: (-1.0, 1.0),
}
"""Range of each kind of quantity; a share is a mean of trials that are 0 or 1."""
DIFFERENCES = {SHARE: SHARE_DIFFERENCE, "fraction": "difference of fractions"}
"""Kind of the difference of two quantities of a kind; of any other kind it is ``""``."""
_RESAMPLES = 2000
STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "std": lambda values, axis: np.std(values, axis=axis, ddof=1),
}
_KEYS = ("target", "experiment", "method", "metric", "statistic", "select")
PRINTED_COLUMNS = (*_KEYS, "value", "trials")


def half_width(error: Any, n: Any, level: float = 0.95) -> Any:
    """Return the half width of Student's t interval of means of n trials, from standard errors.

    The coverage is exact for normal trials and any n >= 2.
    """
    return special.stdtrit(np.asarray(n) - 1, 0.5 + 0.5 * level) * error


def mean_interval(
    values: np.ndarray, scenes: Any = None, level: float = 0.95, kind: str = ""
) -> tuple[float, float]:
    """Return the interval of the mean of trials, (NaN, NaN) for fewer than two.

    Student's t, with the linearised standard error of a mean over clusters if `scenes` are given.
    `kind` is a key of `RANGES`, to which the ends are clipped. Shares of trials, and differences of
    shares, have exact intervals, which have a positive length even if all trials are equal. Any
    other quantity that is equal in all trials has an interval of length 0.
    """
    values = np.asarray(values, dtype=float)
    n, mean = len(values), float(np.mean(values)) if len(values) else float("nan")
    # Sums of deviations by scene: trials of one scene vary together and count as one draw.
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
    if kind == SHARE:  # with scenes: at least the exact interval of as many independent draws
        exact = _clopper_pearson(mean * n_draws, n_draws, level)
        low, high = min(low, exact[0]), max(high, exact[1])
    low, high = np.clip([low, high], *RANGES[kind])
    return float(low), float(high)


def median_interval(values: np.ndarray, level: float = 0.95, kind: str = "") -> tuple[float, float]:
    """Return the interval of the median of trials between two order statistics.

    Its coverage is at least the level for any distribution. Too few trials (fewer than 6 at 95 %)
    give the range of the kind.
    """
    values = np.sort(np.asarray(values, dtype=float))
    n = len(values)
    if n < 2:
        return float("nan"), float("nan")
    # The largest k with P(Bin(n, 1/2) < k) at most half of the error probability.
    k = int(np.sum(special.bdtr(np.arange(n // 2), n, 0.5) <= 0.5 - 0.5 * level))
    return (float(values[k - 1]), float(values[n - k])) if k else RANGES[kind]


def _clopper_pearson(hits: float, n: int, level: float) -> tuple[float, float]:
    tail = 0.5 - 0.5 * level
    low = special.betaincinv(hits, n - hits + 1.0, tail) if hits > 0 else 0.0
    high = special.betaincinv(hits + 1.0, n - hits, 1.0 - tail) if hits < n else 1.0
    return float(low), float(high)


def _mcnemar(values: np.ndarray, level: float) -> tuple[float, float]:
    """Return an interval of a difference of shares on the same trials (values -1, 0 and 1).

    It excludes 0 exactly when the exact McNemar test rejects equal shares.
    """
    n, more, differ = len(values), int(np.sum(values > 0)), int(np.sum(values != 0))
    if not differ:
        # No trial differs: the ends are the largest share that 0 of n trials allow.
        most = _clopper_pearson(0, n, level)[1]
        return -most, most
    low, high = _clopper_pearson(more, differ, level)
    return float(differ / n * (2.0 * low - 1.0)), float(differ / n * (2.0 * high - 1.0))


def bootstrap_interval(
    values: np.ndarray, statistic: str, scenes: Any = None
) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a key of `STATISTICS`, 2000 resamples.

    Scenes are drawn whole. The seed is fixed, so that a run always gives the same verdicts. Fewer
    than two trials (or scenes) give NaN.
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


def interval(
    values: np.ndarray, statistic: str, scenes: Any = None, kind: str = ""
) -> tuple[float, float]:
    """Return the 95 % interval of a statistic: means by `mean_interval`, others by bootstrap.

    `kind` is a key of `RANGES`. Resampled medians and standard deviations keep its range anyway.
    """
    if statistic != "mean":
        return bootstrap_interval(values, statistic, scenes)
    return mean_interval(values, scenes, kind=kind)


def select(trials: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the trials that satisfy ``"column=value"`` or ``"column=one|another"``; "" is all."""
    if not condition:
        return trials
    column, _, value = condition.partition("=")
    if column not in trials:
        raise ValueError(f"select: got {condition!r}; the columns are {', '.join(trials)}")
    return trials[trials[column].astype(str).isin(value.split("|"))]


def decimals(printed: str) -> int:
    """Return the number of decimals of a printed number."""
    return len(printed.partition(".")[2])


def compare(
    printed: pd.DataFrame,
    trials: dict[str, pd.DataFrame],
    own_starts: bool = False,
    kinds: Mapping[str, str] = MappingProxyType({}),
) -> pd.DataFrame:
    """Compare each printed number with our trials of its experiment.

    `printed` has `PRINTED_COLUMNS`: the value as printed (text, in per cent) and the paper's number
    of trials. The result has in addition: label, n (our trials), ours, its 95 % interval low to
    high, agrees (whether the printed number lies in the interval, widened by half a unit of its
    last digit), others (the number of values printed for other methods that lie in the interval as
    well) of n_others, source. Without trials the numbers are missing. `kinds` has the kinds of
    metrics, keys of `RANGES`, which intervals keep.

    With `own_starts` trials are random starts on the same data, and the paper's starts are others
    than ours. Then the printed mean has a sampling error too, by our standard deviation and the
    paper's number of trials, which widens the interval. The result also has rare_start: whether our
    trials are equal up to rounding and lower, so that a start too rare for them may explain it.
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
        kind = kinds.get(entry["metric"], "")
        ends = interval(values / 100.0, entry["statistic"], table.get(SCENE), kind)
        low, high = 100.0 * np.array(ends)
        is_equal = own_starts and np.std(values) < _rounding(entry["value"])
        if own_starts:
            # Our variance s^2 / n and that of the printed mean, s^2 / n', add up.
            wider = np.sqrt(1.0 + len(values) / entry["trials"])
            ends = ours + wider * (np.array([low, high]) - ours)
            least, most = RANGES[kind]
            low, high = np.clip(ends, 100.0 * least, 100.0 * most)
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
                "rare_start": is_equal and float(entry["value"]) > high,
            }
        )
    columns = ["label", "n", "ours", "low", "high", "agrees", "others", "n_others", "source"]
    columns = [*PRINTED_COLUMNS, "printed", *columns, *(["rare_start"] if own_starts else [])]
    return pd.DataFrame(rows).reindex(columns=columns)


def compare_margins(
    printed: pd.DataFrame,
    trials: Mapping[str, pd.DataFrame],
    method: str,
    kinds: Mapping[str, str] = MappingProxyType({}),
) -> pd.DataFrame:
    """Compare the margins of printed means over one method's mean with our paired differences.

    The result has the index of `printed` and: label, source, n; printed_margin and its rounding;
    margin, the mean difference on the same trials, with its 95 % interval low to high (clustered by
    scene). Rows of other statistics, and rows without trials of both methods, have no numbers.
    `kinds` are those of `compare`.
    """
    rows = []
    for entry in printed.to_dict("records"):
        part = trials.get(entry["experiment"])
        top = _in_the_same_place(printed[printed["method"] == method], entry)
        is_margin = entry["statistic"] == "mean" and entry["method"] != method and len(top)
        if not is_margin or part is None or not {entry["method"], method} <= set(part["method"]):
            rows.append({})
            continue
        part = select(part, entry["select"])
        wide = part.pivot_table(index="trial", columns="method", values=entry["metric"])
        more = (wide[entry["method"]] - wide[method]).dropna()
        scenes = part.drop_duplicates("trial").set_index("trial").get(SCENE)
        scenes = None if scenes is None else scenes.loc[more.index]
        kind = DIFFERENCES.get(kinds.get(entry["metric"], ""), "")
        low, high = 100.0 * np.array(interval(more, "mean", scenes, kind))
        values = [str(entry["value"]), str(top["value"].iloc[0])]
        of_method = part[part["method"] == entry["method"]]
        rows.append(
            {
                "label": of_method["label"].iloc[0],
                "source": of_method["source"].iloc[0],
                "n": len(more),
                "printed_margin": float(values[0]) - float(values[1]),
                "rounding": sum(map(_rounding, values)),
                "margin": 100.0 * more.mean(),
                "low": low,
                "high": high,
            }
        )
    columns = ["label", "source", "n", "printed_margin", "rounding", "margin", "low", "high"]
    return pd.DataFrame(rows, index=printed.index).reindex(columns=columns)


def _lies_in(value: str, low: float, high: float) -> bool:
    """Return whether a printed number can have been in an interval before rounding."""
    return low - _rounding(value) <= float(value) <= high + _rounding(value)


def _rounding(value: str) -> float:
    return 0.5 * 10.0 ** -decimals(value)


def _in_the_same_place(printed: pd.DataFrame, entry: dict[str, Any]) -> pd.DataFrame:
    """Return the numbers of all methods that differ from an entry at most in the method."""
    same = [key for key in _KEYS if key != "method"]
    return printed[(printed[same] == [entry[key] for key in same]).all(axis=1)]


def _printed_for_others(printed: pd.DataFrame, entry: dict[str, Any]) -> list[str]:
    """Return the unequal numbers printed for other methods in the same place."""
    rows = _in_the_same_place(printed, entry)
    values = rows.loc[rows["method"] != entry["method"], "value"].astype(str)
    return [value for value in values if value not in ("nan", str(entry["value"]))]
