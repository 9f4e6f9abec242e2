"""Panels of the subspace clustering figures: chains along sweeps, trials by epsilon, a circle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from privclust.report.figures import PALETTE
from privclust_papers.report.drawing.style import MARKERS


def epsilon_colors(epsilons: Sequence[float]) -> dict[float, object]:
    """Return a colour for each epsilon, darker for less privacy."""
    # The lightest part of the map is hard to see on white.
    shades = mpl.colormaps["viridis_r"](np.linspace(0.12, 1.0, len(epsilons)))
    return {epsilon: tuple(shade) for epsilon, shade in zip(sorted(epsilons), shades, strict=True)}


def chain_lines(
    axis: Axes,
    chains: Iterable[tuple[pd.Series, dict[str, np.ndarray]]],
    quantity: str,
    colors: dict[float, object],
    remark: str = "",
    **line: object,
) -> None:
    """Draw a recorded quantity along the sweeps, with a line per chain and a colour per epsilon.

    `chains` are from `privclust_papers.report.drawing.panels.rows_of`; the remark follows each
    epsilon in the legend.
    """
    named = set()
    for trial, arrays in chains:
        epsilon = trial["epsilon"]
        label = None if epsilon in named else f"ε = {epsilon:g}{remark}"
        named.add(epsilon)
        axis.plot(arrays["sweep"], arrays[quantity], color=colors[epsilon], label=label, **line)
    axis.set_xlabel("sweeps")


def by_epsilon(axis: Axes, trials: pd.DataFrame, metric: str, methods: Sequence[str]) -> None:
    """Draw a metric of each trial as a point at its epsilon, with methods side by side."""
    epsilons = sorted(trials["epsilon"].unique())
    width = 0.7 / max(len(methods), 1)
    for number, method in enumerate(methods):
        rows = trials[trials["method"] == method]
        if rows.empty:
            continue
        shift = (number - (len(methods) - 1) / 2.0) * width
        places = rows["epsilon"].map(epsilons.index).to_numpy(float) + shift
        look = {"color": PALETTE[number], "alpha": 0.75, "markersize": 4, "linestyle": "none"}
        axis.plot(places, rows[metric], MARKERS[number], label=rows["label"].iloc[0], **look)
    axis.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
    axis.set_xlabel("privacy budget, ε")


def circle_panel(
    axis: Axes, points: np.ndarray, added: np.ndarray, lines: np.ndarray, before: np.ndarray
) -> None:
    """Draw rows on a circle, the added row, the best two lines, and earlier lines in grey."""
    for line in before.reshape(-1, 2):
        axis.plot(*np.outer(line, [-1.25, 1.25]), color="#cccccc", linewidth=3.0)
    for line in lines:
        axis.plot(*np.outer(line, [-1.25, 1.25]), color="#d00000")
    axis.plot(*points.T, "o", color=PALETTE[1])
    axis.plot(*added, "X", color=PALETTE[1], markersize=11, markeredgecolor="white")
    axis.set_aspect("equal")
    axis.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
