"""Trials of ``n_clusters="auto"``: errors of the number of clusters, and warnings.

The extra of a trial has ``n_clusters``, ``bounds``, ``epsilon`` and ``delta``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from privclust_papers.frontier.uncertainty import AXES, draw_by_clusters, line_of_sizes
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.report.drawing.panels import caption, counted, statistics
from privclust_papers.report.drawing.style import Drawing, Results, canvas
from privclust_papers.settings.dotted import COMPLETE, construct
from privclust_papers.shared.rows import Point

_DELTA = 1e-6
_NARROWEST, _WIDEST, _APART = 0.7, 1.3, 5.0  # clusters' standard deviations, centers' distances
_EVEN = 20.0  # of the Dirichlet law of weights
_CENTERS, _BOX = 10.0, 14.0  # half widths of the bounds of centers and rows
_METRICS = "wrong", "wrong_unsaid", "hidden"
_TITLES = (
    "wrong number of clusters",
    "wrong, without a warning",
    "a warning that noise hides clusters",
)


def apart_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return spherical normal clusters of unequal weight and spread, at least 5 apart.

    The point has ``n_samples``, ``n_clusters``, ``n_features`` and ``epsilon``. Centers are uniform
    in a box; a center too near to earlier ones is redrawn.
    """
    rng = streams.get("data")
    n, k, d = (point[name] for name in ("n_samples", "n_clusters", "n_features"))
    centers = np.empty((0, d))
    while len(centers) < k:
        center = rng.uniform(-_CENTERS, _CENTERS, d)
        if np.all(np.linalg.norm(centers - center, axis=1) >= _APART):
            centers = np.vstack([centers, center])
    weights = rng.dirichlet(np.full(k, _EVEN))
    spreads = rng.uniform(_NARROWEST, _WIDEST, k)
    labels = rng.choice(k, n, p=weights)
    X = centers[labels] + spreads[labels][:, None] * rng.standard_normal((n, d))
    how = {"n_clusters": k, "bounds": (-_BOX, _BOX), "epsilon": point["epsilon"], "delta": _DELTA}
    return TrialData(X, None, "generated", extra=how)


def fit_auto(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Return the chosen number, and the largest number distinguishable from noise."""
    rng = streams.get("noise")
    offered = {name: data.extra[name] for name in ("bounds", "epsilon", "delta")}
    offered |= {"n_clusters": "auto", "random_state": random_state_for(estimator, rng)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = construct(estimator, params, **COMPLETE, **offered).fit(data.X)
    count = model.cluster_count_
    # Without a warning, no true number can be above the limit.
    most = math.inf if not count.hidden() else max(count.most_told, count.n_clusters)
    return {"n_clusters": np.array(model.n_clusters_), "most_told": np.array(float(most))}


def evaluate_count(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return whether the number is wrong, and whether a warning says that noise hides clusters."""
    true = data.extra["n_clusters"]
    is_wrong = bool(outputs["n_clusters"] != true)
    is_hidden = bool(outputs["most_told"] < true)
    return {
        "wrong": float(is_wrong),
        "wrong_unsaid": float(is_wrong and not is_hidden),
        "hidden": float(is_hidden),
        "chosen": float(outputs["n_clusters"]),
    }


def count_errors(results: Results) -> Drawing:
    """Rates of wrong numbers and of warnings, against epsilon."""
    table = statistics(results.trials, AXES, [*_METRICS, "chosen"])
    panels = dict(zip(_TITLES, _METRICS, strict=True))
    with canvas(8.2, 7.2, results.trials) as figure:
        draw_by_clusters(figure, table, panels, _panel, "share of fits")
        caption(figure, f"Mean of {counted(*results.trials.values())}; k is the true number.")
    return Drawing(figure, table.drop(columns="experiment"))


def _panel(axis: Axes, table: pd.DataFrame) -> None:
    """Draw a metric with a line for each size of data."""
    fewest = table["n_samples"].min()
    for i, ((d, n), rows) in enumerate(table.groupby(AXES[1:-1], sort=True)):
        rows = rows.sort_values("epsilon")
        # Lines side by side, 4 % apart on the logarithmic axis, so that none hides another.
        place = rows["epsilon"] * 1.04 ** (i - 1.5)
        axis.plot(place, rows["mean"], **line_of_sizes(i, d, n, fewest))
    axis.set(xscale="log", ylim=(-0.05, 1.05))
