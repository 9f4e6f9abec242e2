"""Printed numbers beside ours, with the uncertainty that decides whether they agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Z95 = 1.96
_RESAMPLES = 2000
STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "std": lambda values, axis: np.std(values, axis=axis, ddof=1),
}
_KEYS = ("target", "experiment", "method", "metric", "statistic", "select")
PRINTED_COLUMNS = (*_KEYS, "value", "trials")


def bootstrap_interval(values: np.ndarray, statistic: str) -> tuple[float, float]:
    """95 % percentile interval of a key of `STATISTICS` over trials, from 2000 resamples of these.

    The resamples are drawn from a fixed seed, so that a run gives the same verdicts twice. Fewer
    than two trials give NaN.
    """
    if len(values) < 2:
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    resamples = values[rng.integers(len(values), size=(_RESAMPLES, len(values)))]
    low, high = np.quantile(STATISTICS[statistic](resamples, axis=1), [0.025, 0.975])
    return float(low), float(high)


def select(trials: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the trials that meet a condition ``"column=value"``, or all for an empty one."""
    if not condition:
        return trials
    column, _, value = condition.partition("=")
    if column not in trials:
        raise ValueError(f"select: got {condition!r}; the columns are {', '.join(trials)}")
    return trials[trials[column].astype(str) == value]


def decimals(printed: str) -> int:
    """Return how many digits a printed number has behind the point.

    Examples
    --------
    >>> decimals("0.21"), decimals("7.1"), decimals("0")
    (2, 1, 0)
    """
    return len(printed.partition(".")[2])


def compare(printed: pd.DataFrame, trials: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Put ours, from the trials by experiment, beside each printed number.

    `printed` has `PRINTED_COLUMNS`: the value as text just as it is printed, in per cent, and the
    number of trials it was computed from. The result has these and: label, n (our trials), ours,
    its 95 % interval low to high, agrees (whether the printed number lies in the interval, widened
    by half a unit of its last digit), source. Without trials there is no number of ours.
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
        low, high = bootstrap_interval(values, entry["statistic"])
        rounding = 0.5 * 10.0 ** -decimals(entry["value"])
        rows.append(
            head
            | {
                "label": table["label"].iloc[0],
                "n": len(values),
                "ours": ours,
                "low": low,
                "high": high,
                "agrees": low - rounding <= head["printed"] <= high + rounding,
                "source": table["source"].iloc[0],
            }
        )
    columns = ["label", "n", "ours", "low", "high", "agrees", "source"]
    return pd.DataFrame(rows).reindex(columns=[*PRINTED_COLUMNS, "printed", *columns])
