"""Drawing of a run's CPU time by rule and paper, and of its wall time by number of cores."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from privclust.report.figures import PALETTE
from privclust_papers.report.drawing.panels import plain_ticks
from privclust_papers.report.drawing.style import Drawing, canvas


def draw_costs(table: pd.DataFrame, model: pd.DataFrame, runs: pd.DataFrame) -> Drawing:
    """Draw the CPU time of each rule and each paper, and predicted and measured wall times.

    The tables are from `privclust_papers.report.costs`: `cost_table`, `predict` (the drawing's
    table) and `compare_runs`, of which only complete runs are drawn.
    """
    with canvas(9.0, 3.4, {}) as figure:
        by_rule, by_paper, by_cores = figure.subplots(1, 3)
        _bars(by_rule, table[table.level == "rule"], "CPU time by rule")
        _bars(by_paper, table[table.level == "paper"], "CPU time by paper")
        by_paper.legend(loc="lower right", fontsize=8)
        _times(by_cores, model, runs[runs.complete.astype(bool)])
    return Drawing(figure, model)


def _bars(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    rows = rows.sort_values("cpu_s")
    axes.barh(rows.name, rows.work_cpu_s, color=PALETTE[1], label="work")
    left = rows.work_cpu_s
    axes.barh(rows.name, rows.overhead_cpu_s, left=left, color=PALETTE[0], label="overhead")
    axes.set(title=title, xlabel="CPU seconds")
    axes.grid(False, axis="y")


def _times(axes: Axes, model: pd.DataFrame, complete: pd.DataFrame) -> None:
    low, high = model.lower_s / 60, model.upper_s / 60
    axes.fill_between(model.cores, low, high, color=PALETTE[4], alpha=0.3, label="bounds")
    axes.plot(model.cores, model.predicted_s / 60, marker="o", color=PALETTE[1], label="predicted")
    if len(complete):
        measured = complete.measured_s / 60
        axes.plot(complete.cores, measured, "X", color=PALETTE[0], markersize=8, label="measured")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis, 1.0, 2.0, 5.0)
    axes.set_xticks(model.cores, [str(n) for n in model.cores])
    axes.set(title="Time by number of cores", xlabel="cores", ylabel="minutes")
    axes.legend(fontsize=8)
