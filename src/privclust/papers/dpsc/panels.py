"""Parts of the subspace clustering figures: curves against epsilon, and chains along sweeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from privclust.report.drawing.style import MARKERS, PALETTE, Results

METRICS = (
    "cost",
    "distance",
    "cost_last",
    "distance_last",
    "relative_cost",
    "relative_distance",
)
QUARTILES = {"q25": 0.25, "median": 0.5, "q75": 0.75}
_TRIAL_LINE = 0.9  # points


def epsilon_colors(epsilons: Sequence[float]) -> dict[float, object]:
    """Give each epsilon a colour, darker where there is less privacy."""
    shades = mpl.colormaps["viridis_r"](np.linspace(0.12, 1.0, len(epsilons)))
    return {epsilon: tuple(shade) for epsilon, shade in zip(sorted(epsilons), shades, strict=True)}


def paths(
    results: Results, experiment: str, method: str, name: str
) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Yield epsilon, sweeps and a recorded quantity of each chain of a method."""
    own = results.trials[experiment]
    own = own[own["method"] == method].reset_index(drop=True)
    arrays = results.arrays[experiment, method]
    for row, epsilon in enumerate(own["epsilon"]):
        prefix = f"array/{row:05d}"
        yield epsilon, arrays[f"{prefix}/sweep"], arrays[f"{prefix}/{name}"]


def chain_lines(
    axis: Axes,
    results: Results,
    experiment: str,
    method: str,
    name: str,
    colors: dict[float, object],
) -> None:
    """Draw a quantity along the sweeps, a line a chain, a colour an epsilon."""
    named = set()
    for epsilon, sweeps, values in paths(results, experiment, method, name):
        label = None if epsilon in named else f"ε = {epsilon:g}"
        named.add(epsilon)
        axis.plot(sweeps, values, color=colors[epsilon], linewidth=_TRIAL_LINE, label=label)
    axis.set_xlabel("sweeps")
    axis.set_ylim(bottom=0.0)


def exact_lines(
    axis: Axes,
    results: Results,
    experiment: str,
    method: str,
    shape: str,
    colors: dict[float, object],
) -> None:
    """Draw the total variation distance of each trial's chain on rows of one shape."""
    own = results.trials[experiment]
    own = own[own["method"] == method].reset_index(drop=True)
    drawn = paths(results, experiment, method, "total_variation")
    named = set()
    for (epsilon, sweeps, values), kind in zip(drawn, own["shape"], strict=True):
        if kind != shape:
            continue
        label = None if epsilon in named else f"ε = {epsilon:g}, {own['label'].iloc[0]}"
        named.add(epsilon)
        dash = results.styles[method].dash
        axis.plot(sweeps, values, color=colors[epsilon], linestyle=dash, label=label)


def by_epsilon(axis: Axes, trials: pd.DataFrame, metric: str, methods: Sequence[str]) -> None:
    """Draw a metric of each trial as a point at its epsilon, methods beside one another."""
    epsilons = sorted(trials["epsilon"].unique())
    width = 0.7 / max(len(methods), 1)
    for number, method in enumerate(methods):
        own = trials[trials["method"] == method]
        if own.empty:
            continue
        shift = (number - (len(methods) - 1) / 2.0) * width
        places = own["epsilon"].map(epsilons.index).to_numpy(float) + shift
        axis.plot(
            places,
            own[metric],
            MARKERS[number],
            color=PALETTE[number],
            markersize=4,
            alpha=0.75,
            linestyle="none",
            label=own["label"].iloc[0],
        )
    axis.set_xticks(range(len(epsilons)), [f"{epsilon:g}" for epsilon in epsilons])
    axis.set_xlabel("privacy budget, ε")


def circle_panel(
    axis: Axes, points: np.ndarray, added: np.ndarray, lines: np.ndarray, before: np.ndarray
) -> None:
    """Draw rows on a circle, one more, the best two lines, and any earlier ones in grey."""
    for line in before.reshape(-1, 2):
        axis.plot(*np.outer(line, [-1.25, 1.25]), color="#cccccc", linewidth=3.0)
    for line in lines:
        axis.plot(*np.outer(line, [-1.25, 1.25]), color="#d00000")
    axis.plot(*points.T, "o", color=PALETTE[1])
    axis.plot(*added, "X", color=PALETTE[1], markersize=11, markeredgecolor="white")
    axis.set_aspect("equal")
    axis.set_xlim(-1.3, 1.3)
    axis.set_ylim(-1.3, 1.3)
