"""What the figures of several papers share: captions, counts and tables."""

from __future__ import annotations

import numbers
import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from privclust.report.comparison import Z95
from privclust.report.drawing.style import MethodStyle, Results

_TABLE_SIZE = 8.0
_FEWEST_TRIALS = 5  # with a band
BAND = f" (band, from {_FEWEST_TRIALS} trials on: 95 % of its standard error)"


def caption(figure: FigureBase, text: str) -> None:
    """Say above a figure what it shows, as wide as the figure is."""
    letters = int(15.0 * figure.bbox.width / figure.figure.dpi)
    lines = "\n".join(textwrap.wrap(text, letters))
    figure.suptitle(lines, x=0.01, horizontalalignment="left", fontsize=9)


def counted(trials: pd.DataFrame) -> str:
    """Write how many trials there are."""
    number = trials["trial"].nunique()
    return "1 trial" if number == 1 else f"{number} trials"


def arrays_of(results: Results, experiment: str, method: str, row: int) -> dict[str, np.ndarray]:
    """Return the arrays of one trial by their names, by its row among a method's."""
    prefix = f"array/{row:05d}/"
    arrays = results.arrays[experiment, method]
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def statistics(
    tables: Mapping[str, pd.DataFrame],
    axes: Sequence[str],
    metrics: Sequence[str],
    quantiles: Mapping[str, float] = MappingProxyType({}),
) -> pd.DataFrame:
    """Sum metrics up over trials: one row an experiment, method, point and metric.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Trials by experiment.
    axes, metrics : sequence of str
        Columns of the trials.
    quantiles : mapping of str to float
        Further columns, each with the share of trials that lie below.

    Returns
    -------
    DataFrame
        Columns: experiment, method, label, the axes, metric, n, mean, std, se = std / sqrt(n), the
        quantiles.
    """
    parts = []
    for name, trials in tables.items():
        keys = ["method", "label", *axes]
        long = trials[[*keys, *metrics]].melt(keys, list(metrics), "metric", "value")
        groups = long.groupby([*keys, "metric"], sort=False)["value"]
        table = groups.agg(["count", "mean", "std"]).rename(columns={"count": "n"})
        table["se"] = table["std"] / np.sqrt(table["n"])
        for column, share in quantiles.items():
            table[column] = groups.quantile(share)
        table = table.reset_index()
        table.insert(0, "experiment", name)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def put_table(axis: Axes, table: pd.DataFrame, width: float) -> None:
    """Write a table into a panel, in letters small enough for a width in inches."""
    axis.axis("off")
    if table.empty:
        axis.text(0.5, 0.5, "no results", ha="center", va="center")
        return
    names = [str(name).replace("_", " ") for name in table.columns]
    cells = [[cell(value) for value in row] for row in table.itertuples(index=False)]
    longest = [max(map(len, column)) + 2 for column in zip(names, *cells, strict=True)]
    drawn = axis.table(cells, colLabels=names, loc="center", cellLoc="right", edges="horizontal")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(min(_TABLE_SIZE, 118.0 * width / sum(longest)))
    drawn.auto_set_column_width(range(len(names)))


def cell(value: object) -> str:
    """Write a table's cell; numbers with four digits."""
    if isinstance(value, numbers.Integral):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return "n/a"
    return f"{value:,.0f}" if 1000.0 <= abs(value) < 1e9 else f"{value:.4g}"


def mean_curves(
    axis: Axes,
    table: pd.DataFrame,
    x: str,
    methods: Sequence[str],
    styles: Mapping[str, MethodStyle],
) -> None:
    """Draw the mean of each method along a logarithmic axis, with 95 % of its standard error.

    The band is left out below five trials, whose spread says little of it.

    Parameters
    ----------
    axis : Axes
    table : DataFrame
        One row a method and point; columns ``mean``, ``se``, ``n``.
    x : str
    methods : sequence of str
        In the order of the legend; those without rows are left out.
    styles : mapping of str to MethodStyle
    """
    for method in methods:
        own = table[table["method"] == method].sort_values(x)
        if own.empty:
            continue
        style = styles[method]
        if own["n"].min() >= _FEWEST_TRIALS:
            low, high = (own["mean"] + side * Z95 * own["se"] for side in (-1.0, 1.0))
            axis.fill_between(own[x], low, high, color=style.color, alpha=0.15, linewidth=0)
        axis.plot(
            own[x],
            own["mean"],
            **style.line,
            label=own["label"].iloc[0],
        )
    axis.set_xscale("log")
