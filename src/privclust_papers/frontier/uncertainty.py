"""Trials of standard errors: coverage of the population's centers.

The extra of a trial has ``n_clusters``, ``bounds``, ``epsilon``, ``delta`` and ``truth``, a
function that returns ``centers`` (k, d), the k-means centers, ``weights`` (k,) and ``mean_inertia``
of the population.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from privclust.core.lloyd import lloyd, nearest_center_statistics, plus_plus
from privclust.report.figures import PALETTE
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.report.comparison import half_width
from privclust_papers.report.drawing.panels import (
    TRIALS_FOR_A_BAND,
    caption,
    counted,
    legend_below,
    plain_ticks,
    statistics,
)
from privclust_papers.report.drawing.style import Drawing, Results, canvas
from privclust_papers.settings.dotted import COMPLETE, construct
from privclust_papers.shared.rows import Point

_DELTA = 1e-6
_APART, _NARROWEST, _WIDEST = 3.0, 0.7, 1.3  # centers, and clusters: standard deviations
_EVEN = 20.0  # of the Dirichlet law of weights
_BOX = 6.0 * _APART
_POPULATION, _FEW, _STARTS = 500_000, 20_000, 30
_NORMAL_95 = 1.959964
_MARKERS = "osD^v<>"
_METRICS = "missed_centers", "missed_weights", "missed_inertia", "missed_unreliable", "unreliable"
_TITLES = "centers", "weights", "mean squared distance", "centers flagged as unreliable"
AXES = ["n_clusters", "n_features", "n_samples", "epsilon"]


def clusters_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return normal clusters of unequal weight and spread, some of which overlap.

    The point has ``n_samples``, ``n_clusters``, ``n_features`` and ``epsilon``. The truth is
    computed from 500,000 more rows at first use, since fits do not need it.
    """
    rng = streams.get("data")
    n, k, d = (point[name] for name in ("n_samples", "n_clusters", "n_features"))
    means = rng.normal(0.0, _APART, (k, d))
    weights = rng.dirichlet(np.full(k, _EVEN))
    spreads = rng.uniform(_NARROWEST, _WIDEST, k)

    def drawn(size):
        labels = rng.choice(k, size, p=weights)
        return means[labels] + spreads[labels][:, None] * rng.standard_normal((size, d))

    X = drawn(n)

    # A second call would continue the generator and draw another population.
    @functools.cache
    def truth():
        return _truth(drawn(_POPULATION), means, rng)

    how = {"n_clusters": k, "bounds": (-_BOX, _BOX), "epsilon": point["epsilon"], "delta": _DELTA}
    return TrialData(X, None, "generated", extra={**how, "truth": truth})


def _truth(population, means, rng):
    few, k = population[:_FEW], len(means)
    # The generating means are a good start, but not always that of the least inertia.
    starts = [means, *(plus_plus(few, k, rng) for _ in range(_STARTS))]
    best = min((lloyd(few, start, 100, 1e-6) for start in starts), key=lambda run: run[1])[0]
    centers, inertia, _ = lloyd(population, best, 300, 1e-7)
    return {
        "centers": centers,
        "weights": nearest_center_statistics(population, centers)[0] / _POPULATION,
        "mean_inertia": inertia / _POPULATION,
    }


def fit_with_errors(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Return centers, weights and mean inertia of a private fit, with their standard errors."""
    rng = streams.get("noise")
    names = "n_clusters", "bounds", "epsilon", "delta"
    offered = {name: data.extra[name] for name in names}
    offered["random_state"] = random_state_for(estimator, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = construct(estimator, params, **COMPLETE, **offered).fit(data.X)
    errors = model.standard_errors(random_state=rng)
    return {
        "centers": model.cluster_centers_,
        "weights": model.weights_,
        "mean_inertia": np.array(model.mean_inertia_),
        "center_errors": errors.centers,
        "weight_errors": errors.weights,
        "inertia_error": np.array(errors.mean_inertia),
        "is_reliable": errors.is_reliable & model.is_detected_,
    }


def evaluate_errors(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the shares of 95 % intervals that do not contain the population's values.

    ``missed_centers`` (coordinates) and ``missed_weights`` are for detected, reliable clusters;
    ``missed_inertia`` is NaN unless all are. ``missed_unreliable`` is for coordinates of the other
    clusters, ``unreliable`` their share.
    """
    truth = data.extra["truth"]()
    # Clusters have no order: they are matched by the least total distance.
    own, true = linear_sum_assignment(cdist(outputs["centers"], truth["centers"]))
    is_reliable = outputs["is_reliable"][own]
    away = np.abs(outputs["centers"][own] - truth["centers"][true])
    of_centers = away > _NORMAL_95 * outputs["center_errors"][own]
    away = np.abs(outputs["weights"][own] - truth["weights"][true])
    of_weights = away > _NORMAL_95 * outputs["weight_errors"][own]
    of_inertia = float(
        abs(outputs["mean_inertia"] - truth["mean_inertia"]) > _NORMAL_95 * outputs["inertia_error"]
    )
    is_known = bool(is_reliable.all() and np.isfinite(outputs["inertia_error"]))
    return {
        "missed_centers": _part(of_centers[is_reliable]),
        "missed_weights": _part(of_weights[is_reliable]),
        "missed_inertia": of_inertia if is_known else math.nan,
        "missed_unreliable": _part(of_centers[~is_reliable]),
        "unreliable": float(1.0 - is_reliable.mean()),
    }


def _part(missed):
    return float(missed.mean()) if missed.size else math.nan


def coverage(results: Results) -> Drawing:
    """Coverage of 95 % intervals for each kind of number, against epsilon."""
    table = statistics(results.trials, AXES, _METRICS)
    panels = dict(zip(_TITLES, _METRICS, strict=False))
    with canvas(9.0, 6.2, results.trials) as figure:
        draw_by_clusters(figure, table, panels, _panel, "coverage of 95 % intervals")
        caption(
            figure,
            f"Mean of up to {counted(*results.trials.values())}, bars: 95 % intervals by Student's "
            "t. Grey: coverage of 95 %, and of 90 to 98 %.",
        )
    return Drawing(figure, table.drop(columns="experiment"))


def draw_by_clusters(
    figure: Figure,
    table: pd.DataFrame,
    panels: Mapping[str, str],
    draw: Callable[[Axes, pd.DataFrame], None],
    y_name: str,
) -> None:
    """Draw a row of panels for each number of clusters; `panels` maps titles to metrics."""
    numbers = sorted(table["n_clusters"].unique())
    axes = figure.subplots(len(numbers), len(panels), sharex=True, sharey=True, squeeze=False)
    for row, k in zip(axes, numbers, strict=True):
        here = table[table["n_clusters"] == k]
        for axis, metric in zip(row, panels.values(), strict=True):
            draw(axis, here[here["metric"] == metric])
            plain_ticks(axis.xaxis, 1.0, 3.0)
        row[0].set_ylabel(f"k = {k}: {y_name}")
    for axis, title in zip(axes[0], panels, strict=True):
        axis.set_title(title, fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("epsilon")
    legend_below(figure, *axes.flat, ncols=3, fontsize=8)


def line_of_sizes(i: int, d: int, n: int, fewest: int) -> dict[str, Any]:
    """Return style and label of the i-th line, for d features and n rows."""
    # Lines come in pairs of few and many rows, which share a colour.
    color, marker = PALETTE[i // 2 % len(PALETTE)], _MARKERS[i // 2 % len(_MARKERS)]
    look = {"marker": marker, "color": color, "markersize": 5, "linewidth": 1.0}
    if n == fewest:
        look |= {"linestyle": "--", "markerfacecolor": "white"}
    return look | {"label": f"d = {d}, n = {n:,}"}


def _panel(axis: Axes, table: pd.DataFrame) -> None:
    """Draw the coverage of a kind of number with a line for each size of data."""
    axis.axhspan(0.90, 0.98, color="0.9", linewidth=0)
    axis.axhline(0.95, color="0.6", linewidth=0.7)
    fewest = table["n_samples"].min()
    for i, ((d, n), rows) in enumerate(table.groupby(AXES[1:-1], sort=True)):
        rows = rows.sort_values("epsilon").dropna(subset="mean")
        if rows.empty:
            continue
        is_told = rows["n"].min() >= TRIALS_FOR_A_BAND
        error = half_width(rows["se"], rows["n"]) if is_told else None
        place = rows["epsilon"] * 1.04 ** (i - 2)
        look = line_of_sizes(i, d, n, fewest)
        axis.errorbar(place, 1.0 - rows["mean"], yerr=error, capsize=0, **look)
    axis.set(xscale="log", ylim=(0.0, 1.03))
