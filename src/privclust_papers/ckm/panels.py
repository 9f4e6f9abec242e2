"""Panels of the compressive k-means figures: curves, heat maps, tables and legends."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import FigureBase
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, Formatter, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from privclust.report.figures import COLOURS
from privclust_papers.report.drawing.panels import cell, counted
from privclust_papers.report.drawing.style import MethodStyle

SUCCESS = 1.2  # the relative SSE up to which the paper calls a clustering good
REFERENCE = "lloyd"
METRICS = ("relative_sse", "relative_sse_true")
_SSE_TICKS = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0)
_SPARSE_SSE_TICKS = (0.7, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0)
_LARGEST_SSE = 40.0  # more than any centers within the bounds have; worse curves are cut
_EXCESS_TICKS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 9.0, 29.0, 99.0, 999.0)
_SMALLEST_EXCESS = 0.001
LOWEST = 1.0 + _SMALLEST_EXCESS  # relative SSE at the lowest tick of an axis of excess
_WORST_COLOR = 3.0  # relative SSE at the end of the heat maps' colours
_OUTLINED = [withStroke(linewidth=3.2, foreground="white")]
_SIZES = {"n_samples": "n", "n_clusters": "k", "n_features": "d"}
_SUMMARY = ("method", "label", "metric", "n", "mean", "median", "std", "se", "min", "max")
_LEGEND_SIZE = 7.5
_LETTER = 0.06  # inches per letter in a legend
_SHORT_RANGE = 30.0  # ratio of axis limits below which all values are labelled


def in_order(table: pd.DataFrame, styles: Mapping[str, MethodStyle]) -> pd.DataFrame:
    """Return a table with methods in the order of the styles, others last."""
    places = {method: place for place, method in enumerate(styles)}
    rank = table["method"].map(places).fillna(len(places))
    return table.iloc[np.argsort(rank.to_numpy(), kind="stable")].reset_index(drop=True)


def metrics_of(trials: pd.DataFrame) -> list[str]:
    """Return the relative errors in a table."""
    return [name for name in METRICS if name in trials]


def statistics(
    trials: pd.DataFrame, keys: Sequence[str], metrics: Sequence[str] = ()
) -> pd.DataFrame:
    """Return statistics of finite values of metrics, by default the relative errors.

    There is one row per method, point and metric. Columns: method, label, the keys (axes), metric,
    n (of finite values), mean, median, std, q25, q75, min, max; NaN if no value is finite.
    """
    names = [*metrics] or metrics_of(trials)
    groups = ["method", "label", *keys]
    long = trials[[*groups, *names]].melt(groups, names, "metric", "value")
    long["value"] = long["value"].astype(float).replace([np.inf, -np.inf], np.nan)
    values = long.groupby([*groups, "metric"], sort=False, dropna=False)["value"]
    table = values.agg(["count", "mean", "median", "std", "min", "max"])
    table = table.rename(columns={"count": "n"})
    # After n, mean, median and std, before min and max.
    table.insert(4, "q25", values.quantile(0.25))
    table.insert(5, "q75", values.quantile(0.75))
    return table.reset_index()


def axes_of(summary: pd.DataFrame) -> list[str]:
    """Return the grid's axes among a summary's columns."""
    return [name for name in summary.columns if name not in _SUMMARY]


def counted_on(trials: pd.DataFrame) -> str:
    """Return the number and the size of trials in words."""
    shared = sizes(trials)
    return counted(trials) + (f" ({shared})" if shared else "")


def sizes(trials: pd.DataFrame) -> str:
    """Return the sizes that all trials of a table share, in words."""
    values = {sign: trials[name].unique() for name, sign in _SIZES.items() if name in trials}
    return ", ".join(f"{sign} = {cell(v[0])}" for sign, v in values.items() if len(v) == 1)


def curves(
    axis: Axes,
    table: pd.DataFrame,
    x: str,
    styles: Mapping[str, MethodStyle],
    band: str = "",
    ends: bool = False,
) -> None:
    """Draw the median of each method for one metric, against a logarithmic axis.

    Points without a value are left out. A `band` shades one standard deviation to each side ("std")
    or the range ("range"). With `ends` the legend marks curves that end before others.
    """
    table = table[table["n"] > 0]
    for method, part in table.groupby("method", sort=False):
        part = part.sort_values(x)
        style, label, end = styles[method], part["label"].iloc[0], part[x].iloc[-1]
        if ends and end < table[x].max():
            label += f" (up to {end:g})"
        if band:
            low, high = _band(part, band)
            axis.fill_between(part[x], low, high, color=style.color, alpha=0.13, linewidth=0)
        axis.plot(part[x], part["median"], **style.line, label=label)
    axis.set_xscale("log")
    if table[x].max() < _SHORT_RANGE * table[x].min():
        _set_ticks(axis.xaxis, sorted(table[x].unique()))


def _band(part: pd.DataFrame, band: str) -> tuple[pd.Series, pd.Series]:
    """Return the limits of the shaded band; one trial has no standard deviation."""
    if band == "range":
        return part["min"], part["max"]
    # The axis is logarithmic, and a lower end below 0 could not be drawn.
    return (part["median"] - part["std"]).clip(lower=0.1), part["median"] + part["std"]


def _set_ticks(axis: Axis, ticks: Sequence[float], text: Formatter | None = None) -> None:
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(text or FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def sse_scale(axis: Axes, table: pd.DataFrame) -> None:
    """Set the logarithmic axis of relative SSE, with an upper limit and a line at 1.2."""
    shown = table.loc[table["n"] > 0, "median"]
    highest = min(1.15 * max(shown.max(), 1.35), _LARGEST_SSE) if len(shown) else _LARGEST_SSE
    lowest = min([0.97, *(0.97 * shown)])
    axis.set_yscale("log")
    axis.axhline(SUCCESS, color="#000000", linestyle=":", linewidth=1.0)
    candidates = _SSE_TICKS if highest < 4.0 * lowest else _SPARSE_SSE_TICKS
    _set_ticks(axis.yaxis, [tick for tick in candidates if lowest <= tick <= highest])
    axis.set_ylim(lowest, highest)


def excess(table: pd.DataFrame) -> pd.DataFrame:
    """Return statistics of relative SSE - 1, clipped to the smallest value drawn."""
    columns = ["median", "min", "max"]
    return table.assign(**(table[columns] - 1.0).clip(lower=_SMALLEST_EXCESS))


def excess_scale(axis: Axes, table: pd.DataFrame) -> None:
    """Set the logarithmic axis of `excess`, with ticks in relative SSE."""
    shown = table.loc[table["n"] > 0, "median"]
    lowest, highest = (shown.min(), shown.max()) if len(shown) else (0.01, 1.0)
    ticks = [tick for tick in _EXCESS_TICKS if lowest / 1.6 <= tick <= highest * 1.6]
    axis.set_yscale("log")
    in_relative_sse = FuncFormatter(lambda value, _: f"{1.0 + value:.5g}")
    _set_ticks(axis.yaxis, ticks or [lowest, highest], in_relative_sse)
    axis.set_ylim(lowest / 1.6, highest * 1.6)


def cut_note(table: pd.DataFrame) -> str:
    """Return a note if curves leave a panel of relative SSE, else an empty text."""
    cut = (table["median"] > _LARGEST_SSE).any()
    return f" Curves above {_LARGEST_SSE:g} leave the panel." if cut else ""


def heat_map(axis: Axes, table: pd.DataFrame) -> ScalarMappable:
    """Draw one method's mean relative SSE over snr and m_factor, with the paper's two lines."""
    wide = table.pivot_table("mean", "m_factor", "snr", dropna=False)
    wide = wide.sort_index().sort_index(axis=1)
    snr, factor = wide.columns.to_numpy(float), wide.index.to_numpy(float)
    values = np.ma.masked_invalid(wide.to_numpy(float))
    x, y = _edges(snr), _edges(factor)
    norm = LogNorm(1.0, _WORST_COLOR)
    image = axis.pcolormesh(x, y, values, cmap="cividis_r", norm=norm, rasterized=True)
    axis.set(xscale="log", yscale="log", facecolor="#dddddd")
    axis.grid(False)
    if min(values.shape) > 1 and values.min() < SUCCESS < values.max():
        line = axis.contour(snr, factor, values, [SUCCESS], colors="#000000", linewidths=1.2)
        line.set_path_effects(_OUTLINED)
        axis.plot([], [], color="#000000", linewidth=1.2, label=f"relative SSE = {SUCCESS:g}")
    lines = (
        (np.ones(2), "#d00000", "m = kd"),
        (100.0 / x[[0, -1]], COLOURS["blue"], "SNR m/(kd) = 100"),
    )
    dashed = {"linestyle": "--", "linewidth": 1.8, "path_effects": _OUTLINED}
    for height, color, label in lines:
        axis.plot(x[[0, -1]], height, color=color, label=label, **dashed)
    axis.set(xlim=x[[0, -1]], ylim=y[[0, -1]])
    _set_ticks(axis.yaxis, [v for v in (0.5, 1, 3, 10, 30) if y[0] <= v <= y[-1]])
    return image


def heat_bar(figure: FigureBase, image: ScalarMappable, axes: Sequence[Axes]) -> None:
    """Draw the colour bar of heat maps."""
    bar = figure.colorbar(image, ax=axes, extend="both")
    _set_ticks(bar.ax.yaxis, [1.0, 1.1, SUCCESS, 1.5, 2.0, _WORST_COLOR])
    bar.set_label("mean relative SSE")


def _edges(centers: np.ndarray) -> np.ndarray:
    logs = np.log(centers)
    # Cells end halfway between values on the logarithmic axes; a single one gets a width.
    steps = np.diff(logs) / 2.0 if len(logs) > 1 else np.array([0.5])
    middles = logs[:-1] + np.diff(logs) / 2.0
    return np.exp(np.r_[logs[0] - steps[0], middles, logs[-1] + steps[-1]])


def named_cells(
    axis: Axes, values: pd.DataFrame, low: pd.DataFrame, high: pd.DataFrame, largest: float
) -> None:
    """Draw a matrix in colours, from 0 to `largest`, with the value and range of each cell."""
    matrix = values.to_numpy(float)
    image = np.ma.masked_invalid(matrix)
    axis.imshow(image, cmap="cividis", aspect="auto", vmin=0.0, vmax=largest)
    axis.grid(False)
    axis.set_xticks(range(values.shape[1]), [f"{value:g}" for value in values.columns])
    axis.set_yticks(range(values.shape[0]), [f"{value:g}" for value in values.index])
    if not np.isfinite(matrix).any():
        return
    for (row, column), value in np.ndenumerate(matrix):
        text = "n/a" if np.isnan(value) else f"{value:.3f}"
        if low.iat[row, column] < high.iat[row, column]:
            text += f"\n{low.iat[row, column]:.2f} to {high.iat[row, column]:.2f}"
        color = "white" if value < largest / 2.0 else "black"
        axis.text(column, row, text, ha="center", va="center", fontsize=6.5, color=color)


def strip(axis: Axes, trials: pd.DataFrame, metric: str, styles: Mapping[str, MethodStyle]) -> None:
    """Draw a metric of each trial as a point, one row per method, with the median as a bar."""
    labels = []
    for number, (method, part) in enumerate(trials.groupby("method", sort=False)):
        values = part[metric].to_numpy(float)
        style = styles[method]
        places = -number + np.linspace(-0.22, 0.22, len(values)) * (len(values) > 1)
        axis.plot(values, places, style.marker or "o", color=style.color, markersize=4, alpha=0.75)
        if np.isfinite(values).any():
            middle = np.nanmedian(values)
            axis.plot([middle, middle], [-number - 0.36, -number + 0.36], color="#000000", lw=1.4)
        labels.append(part["label"].iloc[0])
    axis.axvline(1.0, color="#000000", linestyle=":", linewidth=1.0)
    axis.xaxis.set_major_locator(MaxNLocator(6))
    axis.set_yticks(-np.arange(len(labels)), labels)
    axis.set_ylim(0.5 - len(labels), 0.5)


def legend_below(axis: Axes, width: float) -> None:
    """Draw a legend below a panel, with as many columns as fit in its width in inches."""
    handles, labels = axis.get_legend_handles_labels()
    if not labels:
        return
    below = ScaledTranslation(0.0, -0.42, axis.get_figure(root=True).dpi_scale_trans)
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
    place["bbox_transform"] = axis.transAxes + below
    axis.legend(handles, labels, columnspacing=1.2, **place, **_legend_look(labels, width))


def legend_of_all(axes: Sequence[Axes], free: Axes, width: float) -> None:
    """Draw one legend for several panels in a free panel of a width in inches."""
    handles = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(textwrap.fill(label, int((width - 0.6) / _LETTER)), handle)
    if handles:
        look = {"loc": "center", "labelspacing": 0.9, **_legend_look([*handles], width)}
        free.legend([*handles.values()], [*handles], **look)


def _legend_look(labels: Sequence[str], width: float) -> dict[str, float]:
    """Return the font size of a legend and the number of columns for a width in inches."""
    each = 0.55 + _LETTER * max(len(label) for label in labels)
    n_columns = int(np.clip(width // each, 1, len(labels)))
    return {"fontsize": _LEGEND_SIZE, "handlelength": 3.2, "ncols": n_columns}
