"""The frontier's table: printed scores and those of the methods here."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from privclust_papers.frontier.printed import PRIVATE, SCORES, best_private
from privclust_papers.report.comparison import half_width
from privclust_papers.report.drawing.panels import (
    TRIALS_FOR_A_BAND,
    caption,
    legend_below,
    plain_ticks,
    statistics,
)
from privclust_papers.report.drawing.style import Drawing, Results, canvas

_MARKERS = dict(zip(PRIVATE, "sD^v<>", strict=True))
_COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#999999", "#999999", "#BBBBBB")
_COLOUR_OF = dict(zip(PRIVATE, _COLOURS, strict=True))


def scores(results: Results) -> Drawing:
    """Scores relative to Lloyd's k-means, printed and reproduced, with a line per data set."""
    trials = pd.concat(results.trials.values(), ignore_index=True)
    # The points of Letter Recognition have no axis ``set``.
    trials = trials.assign(set=trials["set"].fillna("letter") if "set" in trials else "letter")
    table = statistics({results.target: trials}, ["set"], ["score"])
    table["half_width"] = half_width(table["se"], table["n"])
    table = table.drop(columns=["experiment", "metric"])
    for place, name in enumerate(("Lloyd, printed", *PRIVATE)):
        table[name] = [SCORES[row][place] for row in table["set"]]
    order = [name for name in SCORES if name in set(table["set"])]
    with canvas(7.6, 0.29 * len(order) + 2.3, results.trials) as figure:
        axis = figure.subplots()
        for y, name in enumerate(order[::-1]):
            _line(axis, y, table[table["set"] == name], results)
        axis.set_yticks(range(len(order)), order[::-1])
        axis.set(xscale="log", xlabel="score relative to Lloyd's k-means as printed")
        plain_ticks(axis.xaxis, 1.0, 2.0, 5.0)
        axis.axvline(1.0, color="black", linewidth=0.7)
        axis.grid(axis="x", linewidth=0.3)
        legend_below(figure, axis, ncols=3)
        caption(
            figure,
            "Score: area under the curve of the loss against epsilon (lower is better), divided by "
            "the printed score of Lloyd's k-means, which has no privacy. Means of "
            f"{' or '.join(str(n) for n in sorted(table['n'].unique()))} runs; bars: 95 % "
            "intervals by Student's t.",
        )
    table["best_printed"] = [best_private(name) for name in table["set"]]
    return Drawing(figure, table.sort_values("set", key=lambda column: column.map(order.index)))


def _line(axis: Axes, y: float, rows: pd.DataFrame, results: Results) -> None:
    unit = rows["Lloyd, printed"].iloc[0]
    for name in PRIVATE:
        look = {"color": _COLOUR_OF[name], "marker": _MARKERS[name], "markersize": 5}
        look["linestyle"] = ""
        axis.plot(rows[name].iloc[0] / unit, y, label=f"{name}, printed", **look)
    for row in rows.itertuples():
        style = results.styles[row.method]
        error = row.half_width / unit if row.n >= TRIALS_FOR_A_BAND else None
        look = {"color": style.color, "marker": style.marker or "|", "markersize": 6}
        axis.errorbar(row.mean / unit, y, xerr=error, linestyle="", label=row.label, **look)
