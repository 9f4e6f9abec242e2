"""Panels of the image retrieval figures: curves, levels, bounds and embeddings."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from privclust.metrics.retrieval import recall_ceiling
from privclust.report.figures import PALETTE
from privclust_papers.privatemail.metrics import N_RETURNED
from privclust_papers.report.drawing.panels import (
    legend_below,
    limits,
    plain_ticks,
    rows_of,
    statistics,
)
from privclust_papers.report.drawing.style import Results

FEW_CLASSES = 20  # largest number of classes with distinct colours
_MOST_SHOWN = 0.995  # quantile of a cloud's coordinates at each side of the frame
_MARGIN = 0.08  # around them
_LETTER = 0.06  # inches per letter in a legend
_LEGEND_SIZE = 7.5
_LEAST_RECALL = 0.005  # lower limit of a logarithmic axis
_CEILING = "#000000"
_CEILING_POINTS = 200
SWEEPS = {"n_components": "embedding's dimension, k", "alpha": "α", "sigma": "σ"}


def ceiling(axis: Axes, trials: pd.DataFrame) -> None:
    """Draw the upper bound for private methods along epsilon, shaded above.

    Delta and the number of classes are the same in all trials.
    """
    delta, n_classes = float(trials["delta"].iloc[0]), int(trials["n_classes"].iloc[0])
    epsilons = np.geomspace(*limits(trials["epsilon"]), _CEILING_POINTS)
    level = [recall_ceiling(epsilon, delta, N_RETURNED, n_classes) for epsilon in epsilons]
    axis.fill_between(epsilons, level, 1.0, color=_CEILING, alpha=0.06, linewidth=0, zorder=0)
    label = "upper bound for (ε, δ)-private queries"
    axis.plot(epsilons, level, "-.", color=_CEILING, linewidth=1.0, label=label)
    axis.set_xlim(epsilons[0], epsilons[-1])


def chance(axis: Axes, level: float, label: str = "chance: a random order") -> None:
    """Draw the recall of a random order of the gallery."""
    axis.axhline(level, color="#999999", linewidth=1.2, zorder=1, label=label)


def recall_scale(axis: Axes, highest: float) -> None:
    """Set the axis of recall, from 0 to a little above the highest value."""
    axis.set_ylim(0.0, min(1.02, 1.1 * highest + 0.02))


def log_recall_scale(axis: Axes, lowest: float) -> None:
    """Set a logarithmic axis of recall, from a little below the lowest value to 1."""
    axis.set(yscale="log", ylim=(max(0.8 * lowest, _LEAST_RECALL), 1.08))
    plain_ticks(axis.yaxis, 1.0, 2.0, 3.0, 5.0, 7.0)


def named_below(figure: FigureBase, axis: Axes, width: float) -> None:
    """Draw the legend of a panel below all panels, with columns for a width in inches."""
    longest = max(map(len, axis.get_legend_handles_labels()[1]))
    ncols = max(int(width // (0.75 + _LETTER * longest)), 1)
    legend_below(figure, axis, ncols=ncols, fontsize=_LEGEND_SIZE, handlelength=3.4)


def class_colors(labels: np.ndarray) -> np.ndarray:
    """Return a colour (n, 4) for each row by its class, from a circle of hues for many classes."""
    n_classes = int(labels.max()) + 1
    if n_classes <= len(PALETTE):
        return mpl.colors.to_rgba_array([PALETTE[label] for label in labels])
    if n_classes <= FEW_CLASSES:
        return mpl.colormaps["tab20"](labels)
    return mpl.colormaps["hsv"](labels / n_classes)


def scaled(rows: np.ndarray, by: np.ndarray | None = None) -> np.ndarray:
    """Return two coordinates of a cloud, centred and scaled to spread 1 (of `by`, if given).

    A cloud without spread stays at 0. A single coordinate is drawn against 0.
    """
    by = rows if by is None else by
    center = by[:, :2].mean(axis=0)
    spread = np.sqrt(((by[:, :2] - center) ** 2).sum(axis=1).mean())
    plane = (rows[:, :2] - center) / (spread if spread > 0 else 1.0)
    # The additional column of zeros is the second coordinate of embeddings that have one.
    return np.column_stack([plane, np.zeros(len(plane))])[:, :2]


def cloud(axis: Axes, rows: np.ndarray, colors: object) -> None:
    """Draw points of a plane without ticks, since units have no meaning."""
    axis.scatter(*rows.T, c=colors, s=5.0, linewidths=0, rasterized=True)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    for side in ("top", "right"):
        axis.spines[side].set_visible(True)
    for spine in axis.spines.values():
        spine.set_color("#bbbbbb")


def frame(axis: Axes, rows: np.ndarray) -> None:
    """Set a panel's limits to nearly all points of a cloud, without a few far points."""
    low, high = np.quantile(rows, [1.0 - _MOST_SHOWN, _MOST_SHOWN], axis=0)
    room = _MARGIN * np.maximum(high - low, 1e-9)
    axis.set_xlim(low[0] - room[0], high[0] + room[0])
    axis.set_ylim(low[1] - room[1], high[1] + room[1])


def along_iterates(results: Results) -> pd.DataFrame:
    """Return mean and standard error of recall and objective at each iterate."""
    tables = {}
    for experiment, trials in results.trials.items():
        parts = []
        for method in dict.fromkeys(trials["method"]):
            for trial, arrays in rows_of(results, experiment, method):
                columns = {"recall_8": arrays["recall"], "objective": arrays["objective"]}
                part = pd.DataFrame({"method": method, "label": trial["label"], **columns})
                parts.append(part.rename_axis("iterate").reset_index())
        tables[experiment] = pd.concat(parts, ignore_index=True)
    return statistics(tables, ["iterate"], ["recall_8", "objective"])


def defaults(trials: pd.DataFrame) -> dict[str, float]:
    """Return the most frequent value of each axis, its default while others vary."""
    points = trials[list(SWEEPS)].drop_duplicates()
    return {name: points[name].mode().iloc[0] for name in SWEEPS}


def one_axis(trials: pd.DataFrame, varied: str) -> pd.DataFrame:
    """Return the trials with defaults on all axes except `varied`."""
    others = {name: value for name, value in defaults(trials).items() if name != varied}
    is_kept = np.all([np.isclose(trials[name], value) for name, value in others.items()], axis=0)
    return trials[is_kept]


def without_infinite_guarantees(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Replace infinite guarantees (no guarantee) by NaN, so that means are finite."""
    infinite = {"guaranteed_epsilon": {np.inf: np.nan}}
    return {name: trials.replace(infinite) for name, trials in tables.items()}


def weaker(trials: pd.DataFrame) -> set[str]:
    """Return the methods with a guarantee weaker than their nominal budget."""
    is_weaker = trials["guaranteed_epsilon"] > trials["epsilon"] * (1.0 + 1e-9)
    return set(trials.loc[is_weaker, "method"])
