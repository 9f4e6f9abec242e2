"""Computations without sampling: Figure 1, and the convergence of a small chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust_papers.dpsc.circle import circle_instability, circle_optimum
from privclust_papers.dpsc.exact_chain import total_variation_curve
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.settings.config import ConfigError
from privclust_papers.shared.rows import Point

_SPREAD = 0.1  # standard deviation of the angles of rows about a line, in radians
_SHAPES = ("lines", "circle")
_MOST_ROWS = 7  # of an exact chain: its matrix has 4^n entries


def circle_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return evenly spaced points on the unit circle, and one more at two places (Figure 1).

    The point has ``n_points``, which the paper does not state. Nothing is random.
    """
    points, extra = circle_instability(point["n_points"])
    return TrialData(points, None, "computed", extra=extra)


def fit_circle(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Cluster both data sets by a method without privacy; return ``costs`` (2,) of eq. (3)."""
    costs = []
    for row in data.extra["added"]:
        X = np.vstack([data.X, row])
        model = estimator(2, 1, **params, random_state=streams.get("noise")).fit(X)
        costs.append(model.inertia_ / len(X))
    return {"costs": np.array(costs)}


def evaluate_circle(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the change of the optimum by one row, the local sensitivity.

    ``distance``: Wasserstein distance of the two optima. ``gap``: the larger excess of the method's
    cost over the optimum. Points and lines are kept as arrays.
    """
    extra = data.extra
    return {
        "distance": extra["distance"],
        "gap": float(np.max(outputs["costs"] - extra["costs"])),
        "points": data.X,
        "added": extra["added"],
        "lines": extra["subspaces"][..., 0],
    }


def chain_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return a few unit rows in the plane, for which the chain on labels is a small matrix.

    The point has ``n_samples``, at most 7; ``n_sweeps``; and ``shape``: "lines", half of the rows
    about each of two lines at right angles, or "circle", evenly spaced lines at a random angle,
    without a unique optimum.
    """
    n, rng = point["n_samples"], streams.get("data")
    if not 1 <= n <= _MOST_ROWS:
        raise ConfigError(f"n_samples: got {n}; it must be from 1 to {_MOST_ROWS}")
    if point["shape"] == "lines":
        angles = 0.5 * np.pi * (np.arange(n) % 2) + rng.normal(scale=_SPREAD, size=n)
    elif point["shape"] == "circle":
        angles = np.pi * (np.arange(n) / n + rng.random())
    else:
        raise ConfigError(f"shape: got {point['shape']!r}; it must be one of {', '.join(_SHAPES)}")
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    return TrialData(X, None, "generated: not the paper's", extra={"n_sweeps": point["n_sweeps"]})


def follow_exact_chain(
    data: TrialData, streams: TrialStreams, *, epsilon: float, init: str
) -> dict[str, np.ndarray]:
    """Return the distance of a Gibbs chain of k = 2, q = 1 from its target, without sampling.

    The start is ``"random"`` or ``"optimum"``: the best two lines in random order, taken from the
    data like the paper's starts. Returns ``sweep`` and ``total_variation``, about ten per decade.
    """
    n_sweeps, is_best = data.extra["n_sweeps"], init == "optimum"
    start = circle_optimum(data.X)[0] if is_best else init
    # With a fixed order, the distance would measure how labels are exchanged, which means nothing.
    curve = total_variation_curve(data.X, epsilon, n_sweeps, start, is_ordered=not is_best)
    # Ten per digit of the number of sweeps; rounded, the first ones coincide.
    sweeps = np.unique(np.geomspace(1, n_sweeps, 10 * len(str(n_sweeps))).round().astype(int))
    return {"sweep": sweeps, "total_variation": curve[sweeps - 1]}


def evaluate_exact_chain(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the total variation distance from the target.

    ``final_distance``: after the last sweep; rounding adds about 1e-15 per sweep. Arrays:
    ``sweep``, ``total_variation``.
    """
    return {"final_distance": outputs["total_variation"][-1], **outputs}
