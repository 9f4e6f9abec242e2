"""Tables of an experiment: the metrics of all methods, and their summary."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd


def columns_of(method: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the columns ``"<method>/<column>"`` of one method in a metrics artefact."""
    prefix = f"{method}/"
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def tables_of(
    metrics: Mapping[str, np.ndarray], labels: Mapping[str, str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the trials of an experiment and their summary: `trials_table`, `summary_table`.

    `metrics` is from `privclust_papers.pipeline.runner.evaluate_fits`; `labels` maps names of
    methods to labels.
    """
    columns = {method: columns_of(method, metrics) for method in labels}
    tables = [trials_table(labels[method], method, columns[method]) for method in columns]
    every = list(dict.fromkeys(itertools.chain.from_iterable(columns.values())))
    axes = [key.removeprefix("point/") for key in every if key.startswith("point/")]
    trials = pd.concat(tables, ignore_index=True)
    return trials, summary_table(trials, metric_names(every), axes)


def trials_table(label: str, method: str, columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return the metrics of one method as a table with one row per trial."""
    table: dict[str, Any] = {"method": method, "label": label}
    for key, column in columns.items():
        if key.startswith("array/"):
            continue
        table[key.split("/", 1)[-1]] = (
            np.char.decode(column, "utf-8") if column.dtype.kind == "S" else column
        )
    return pd.DataFrame(table)


def metric_names(columns: Iterable[str]) -> list[str]:
    """Return the names of the metrics among the columns of a metrics artefact."""
    return [key.removeprefix("value/") for key in columns if key.startswith("value/")]


def summary_table(
    trials: pd.DataFrame, metrics: Sequence[str], point_names: Sequence[str]
) -> pd.DataFrame:
    """Summarise metrics of trials, from `trials_table`, per method and grid point.

    Columns of the result: method, label, the axes of the grid, metric, n (trials with a value),
    mean, median, std (n - 1 in the denominator), se = std / sqrt(n), min, max.
    """
    keys = ["method", "label", *point_names]
    rows: list[dict[str, Any]] = []
    for values, part in trials.groupby(keys, sort=False, dropna=False):
        head = dict(zip(keys, values, strict=True))
        rows.extend(head | {"metric": name} | _statistics(part[name]) for name in metrics)
    return pd.DataFrame(rows)


def _statistics(values: pd.Series) -> dict[str, float]:
    n = int(values.count())  # trials with a value: some metrics have none in some trials
    std = float(values.std(ddof=1)) if n > 1 else float("nan")
    return {
        "n": n,
        "mean": float(values.mean()),
        "median": float(values.median()),
        "std": std,
        "se": std / np.sqrt(n) if n else float("nan"),
        "min": float(values.min()),
        "max": float(values.max()),
    }
