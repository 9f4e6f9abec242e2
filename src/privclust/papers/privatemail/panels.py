"""Parts of the image retrieval figures: curves, levels, bounds and embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from privclust.metrics.retrieval import recall_ceiling
from privclust.report.drawing.panels import arrays_of, statistics
from privclust.report.drawing.style import BELOW, MethodStyle, Results

FEW_CLASSES = 20  # up to which each has a colour of its own
_MOST_SHOWN = 0.995  # of a cloud's coordinates lie within the frame, at each end
_MARGIN = 0.08  # about them
_LETTER = 0.06  # inches of a letter in a legend
_LEGEND_SIZE = 7.5
_CHANCE = "#999999"
_CEILING = "#000000"
_CEILING_POINTS = 200
_RETURNED = 9  # images for Recall@8: a query that is left out of its answer comes back too
VARIED = {"n_components": "embedding's dimension, k", "alpha": "α", "sigma": "σ"}
_LEAST_OBJECTIVE = 1e-3  # in parts of the start's: what is nearer to 0 is drawn linearly


def rows_of(
    results: Results, experiment: str, method: str
) -> Iterator[tuple[pd.Series, dict[str, np.ndarray]]]:
    """Yield each trial of a method with the arrays that it recorded, by their names."""
    own = results.trials[experiment]
    own = own[own["method"] == method].reset_index(drop=True)
    for row, trial in own.iterrows():
        yield trial, arrays_of(results, experiment, method, row)


def levels(
    axis: Axes,
    table: pd.DataFrame,
    methods: Sequence[str],
    styles: Mapping[str, MethodStyle],
) -> None:
    """Draw methods that do not depend on a panel's axis as horizontal lines at their means."""
    for method in methods:
        own = table[table["method"] == method]
        if not own.empty:
            style = styles[method]
            axis.axhline(
                own["mean"].mean(),
                color=style.color,
                linestyle=style.dash,
                linewidth=1.3,
                label=own["label"].iloc[0],
            )


def ceiling(axis: Axes, trials: pd.DataFrame) -> None:
    """Draw the most that a private method can have along epsilon, shaded above.

    Parameters
    ----------
    axis : Axes
    trials : DataFrame
        Columns epsilon, delta and n_classes, the latter two the same in all rows.
    """
    delta, n_classes = float(trials["delta"].iloc[0]), int(trials["n_classes"].iloc[0])
    epsilons = np.geomspace(*limits(trials["epsilon"]), _CEILING_POINTS)
    level = [recall_ceiling(epsilon, delta, _RETURNED, n_classes) for epsilon in epsilons]
    axis.fill_between(epsilons, level, 1.0, color=_CEILING, alpha=0.06, linewidth=0, zorder=0)
    label = "most that an (ε, δ)-private query can have"
    axis.plot(epsilons, level, color=_CEILING, linewidth=1.0, label=label)
    axis.set_xlim(epsilons[0], epsilons[-1])


def limits(epsilons: pd.Series) -> tuple[float, float]:
    """Return the ends of an axis of epsilon, with some room."""
    return 0.8 * epsilons.min(), 1.25 * epsilons.max()


def chance(axis: Axes, level: float, label: str = "chance: a random order") -> None:
    """Draw what a random order of the gallery has."""
    axis.axhline(level, color=_CHANCE, linewidth=1.2, zorder=1, label=label)


def recall_scale(axis: Axes, highest: float) -> None:
    """Give a panel of recall its axis, from 0 to a little above the highest value."""
    axis.set_ylim(0.0, min(1.02, 1.1 * highest + 0.02))


def legend_below(figure: FigureBase, axes: Sequence[Axes], width: float) -> None:
    """Name what panels draw once below them, in as many columns as a width in inches has."""
    found: dict[str, object] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return
    each = 0.75 + _LETTER * max(map(len, found))
    figure.legend(
        list(found.values()),
        list(found),
        loc="outside lower center",
        ncols=int(np.clip(width // each, 1, len(found))),
        fontsize=_LEGEND_SIZE,
        handlelength=3.4,
    ).set_gid(BELOW)


def class_colors(labels: np.ndarray) -> np.ndarray:
    """Return a colour for each row by its class: one each for few classes, else a circle of hues.

    Parameters
    ----------
    labels : ndarray of shape (n,), ints from 0

    Returns
    -------
    ndarray of shape (n, 4)
    """
    n_classes = int(labels.max()) + 1
    if n_classes <= FEW_CLASSES:
        return mpl.colormaps["tab20"](labels)
    return mpl.colormaps["hsv"](labels / n_classes)


def scaled(rows: np.ndarray, by: np.ndarray | None = None) -> np.ndarray:
    """Return the first two coordinates of a cloud about its mean, its spread 1.

    A cloud without spread stays at 0, and one coordinate is drawn against 0.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
    by : ndarray of shape (m, k) or None, default=None
        Whose mean and spread are taken; None for the cloud's own.

    Returns
    -------
    ndarray of shape (n, 2)
    """
    by = rows if by is None else by
    center = by[:, :2].mean(axis=0)
    spread = np.sqrt(((by[:, :2] - center) ** 2).sum(axis=1).mean())
    found = (rows[:, :2] - center) / (spread if spread > 0 else 1.0)
    return np.column_stack([found, np.zeros(len(found))])[:, :2]


def cloud(axis: Axes, rows: np.ndarray, colors: object, size: float = 5.0) -> None:
    """Draw points of a plane without ticks, whose units mean nothing."""
    axis.scatter(*rows.T, c=colors, s=size, linewidths=0, rasterized=True)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    for side in ("top", "right"):
        axis.spines[side].set_visible(True)
    for spine in axis.spines.values():
        spine.set_color("#bbbbbb")


def frame(axis: Axes, rows: np.ndarray) -> None:
    """Set a panel's limits to nearly all of a cloud, which a few far points would make small."""
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
                part = pd.DataFrame(
                    {"recall_8": arrays["recall"], "objective": arrays["objective"]}
                )
                part.insert(0, "iterate", range(len(part)))
                parts.append(part.assign(method=method, label=trial["label"]))
        tables[experiment] = pd.concat(parts, ignore_index=True)
    return statistics(tables, ["iterate"], ["recall_8", "objective"])


def objective_scale(axis: Axes, values: pd.Series) -> None:
    """Give a panel of the objective a logarithmic axis, linear in the middle if it is not > 0."""
    if values.min() > 0:
        axis.set_yscale("log")
    else:
        axis.set_yscale("symlog", linthresh=_LEAST_OBJECTIVE)


def defaults(trials: pd.DataFrame) -> dict[str, float]:
    """Return the setting of each axis that most points have, where the others are varied."""
    points = trials[list(VARIED)].drop_duplicates()
    return {name: points[name].mode().iloc[0] for name in VARIED}


def one_axis(trials: pd.DataFrame, varied: str) -> pd.DataFrame:
    """Return the trials at which all axes but one have their defaults."""
    others = {name: value for name, value in defaults(trials).items() if name != varied}
    is_kept = np.all([np.isclose(trials[name], value) for name, value in others.items()], axis=0)
    return trials[is_kept]


def without_infinite_guarantees(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Write guarantees that are infinite, hence none, as missing, so that they have a mean."""
    return {
        name: trials.assign(
            guaranteed_epsilon=trials["guaranteed_epsilon"].where(
                np.isfinite(trials["guaranteed_epsilon"])
            )
        )
        for name, trials in tables.items()
    }


def weaker(trials: pd.DataFrame) -> set[str]:
    """Return the methods whose own guarantee is weaker than the budget that they are run at."""
    is_weaker = trials["guaranteed_epsilon"] > trials["epsilon"] * (1.0 + 1e-9)
    return set(trials.loc[is_weaker, "method"])
