"""Parts of figures that several papers share: captions, counts, legends, curves and tables."""

from __future__ import annotations

import numbers
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import FigureBase
from matplotlib.ticker import LogLocator, NullFormatter

from privclust_papers.report.comparison import RANGES, half_width
from privclust_papers.report.drawing.style import BELOW, Drawing, MethodStyle, Results, canvas

_TABLE_SIZE = 8.0
TRIALS_FOR_A_BAND = 5
BAND = f" (bands: 95 % intervals by Student's t, if there are at least {TRIALS_FOR_A_BAND} trials)"


def caption(figure: FigureBase, text: str) -> None:
    """Write a caption above a figure, wrapped to the figure's width."""
    # About 15 letters of size 9 fit into an inch.
    letters = int(15.0 * figure.bbox.width / figure.figure.dpi)
    lines = "\n".join(textwrap.wrap(text, letters))
    figure.suptitle(lines, x=0.01, horizontalalignment="left", fontsize=9)


def counted(*tables: pd.DataFrame) -> str:
    """Return the number of trials: "12 trials", or "1 trial or 3 trials" if tables differ."""
    numbers = {trials["trial"].nunique() for trials in tables}
    return " or ".join(sorted("1 trial" if n == 1 else f"{n} trials" for n in numbers))


def legend_below(figure: FigureBase, axis: Axes, *others: Axes, ncols: int, **look: float) -> None:
    """Put a legend of the curves of some panels, each named once, below all panels.

    `note_sources` adds its note to this legend.
    """
    named: dict[str, Any] = {}
    for panel in (axis, *others):
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    place = {"loc": "outside lower center", "ncols": ncols}
    figure.legend(named.values(), named, **place, **look).set_gid(BELOW)


def legend_above(figure: FigureBase, *axes: Axes, ncols: int = 2) -> None:
    """Put a legend of the curves of some panels, each named once, above all panels."""
    named: dict[str, Any] = {}
    for axis in axes:
        named.update(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(named.values(), named, loc="outside upper center", ncols=ncols)


def plain_ticks(axis: Axis, *subs: float) -> None:
    """Put short tick labels on a logarithmic axis, at multiples of powers of ten."""
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def ticks_at(axis: Axes, values: Iterable[float], text: str = "{x:g}") -> None:
    """Put ticks of a panel's horizontal axis only at given values."""
    axis.set_xticks(sorted(values))
    axis.xaxis.set_major_formatter(text)
    axis.minorticks_off()


def limits(epsilons: pd.Series) -> tuple[float, float]:
    """Return the limits of a logarithmic axis of epsilon, with margins."""
    return 0.8 * epsilons.min(), 1.25 * epsilons.max()


def rows_of(
    results: Results, experiment: str, method: str
) -> Iterator[tuple[pd.Series, dict[str, np.ndarray]]]:
    """Yield each trial of a method with its recorded arrays by name."""
    trials = results.trials[experiment]
    of_method = trials[trials["method"] == method].reset_index(drop=True)
    for row, trial in of_method.iterrows():
        yield trial, arrays_of(results, experiment, method, row)


def arrays_of(results: Results, experiment: str, method: str, row: int) -> dict[str, np.ndarray]:
    """Return the arrays of one trial by name; `row` counts the trials of the method."""
    prefix = f"array/{row:05d}/"
    arrays = results.arrays[experiment, method]
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def statistics(
    tables: Mapping[str, pd.DataFrame],
    axes: Sequence[str],
    metrics: Sequence[str],
    quantiles: Mapping[str, float] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return summary statistics over each experiment's trials by method, point and metric.

    Columns: experiment, method, label, the axes, metric, n, mean, std, se = std / sqrt(n), and the
    named quantiles.
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
    """Write a table into a panel, with a font size that fits a width in inches."""
    axis.axis("off")
    if table.empty:
        axis.text(0.5, 0.5, "no results", ha="center", va="center")
        return
    names = [str(name).replace("_", " ") for name in table.columns]
    cells = [[cell(value) for value in row] for row in table.itertuples(index=False)]
    longest = [max(map(len, column)) + 2 for column in zip(names, *cells, strict=True)]
    drawn = axis.table(cells, colLabels=names, loc="center", cellLoc="right", edges="horizontal")
    drawn.auto_set_font_size(False)
    # About 118 letters of size 1 fit into an inch.
    drawn.set_fontsize(min(_TABLE_SIZE, 118.0 * width / sum(longest)))
    drawn.auto_set_column_width(range(len(names)))


def table_drawing(
    results: Results,
    table: pd.DataFrame,
    shown: pd.DataFrame,
    text: str,
    size: tuple[float, float],
) -> Drawing:
    """Draw a table as a picture of a size in inches with a caption; `table` has all numbers."""
    with canvas(*size, results.trials) as figure:
        put_table(figure.subplots(), shown, size[0])
        caption(figure, text)
    return Drawing(figure, table)


def cell(value: object) -> str:
    """Return the text of a table's cell; numbers have four digits."""
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
    is_log: bool = False,
    has_bands: bool = True,
    kinds: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw the mean of each method that has rows along a logarithmic axis, with its 95 % band.

    The band (Student's t from columns ``mean``, ``se``, ``n``) needs at least five trials. With
    `is_log`, for a logarithmic vertical axis, the band is symmetric around the mean on that axis,
    and its lower end is positive. `kinds` has the kinds of metrics, keys of `RANGES`: the band of a
    table with a column ``metric`` keeps the range of its metric.
    """
    for method in methods:
        curve = table[table["method"] == method].sort_values(x)
        if curve.empty:
            continue
        style, mean, label = styles[method], curve["mean"], curve["label"].iloc[0]
        if has_bands and curve["n"].min() >= TRIALS_FOR_A_BAND:
            half = half_width(curve["se"], curve["n"])
            low, high = mean - half, mean + half
            if is_log:
                low = mean**2 / high
            metric = curve["metric"].iloc[0] if "metric" in curve else ""
            low, high = (end.clip(*RANGES[kinds.get(metric, "")]) for end in (low, high))
            axis.fill_between(curve[x], low, high, color=style.color, alpha=0.15, linewidth=0)
        axis.plot(curve[x], mean, **style.line, label=label)
    axis.set_xscale("log")
