"""What is computed without sampling: Figure 1, and how near a small chain is to its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust_papers.dpsc.circle import circle_instability, circle_optimum
from privclust_papers.dpsc.exact_chain import total_variation_curve
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.settings.config import ConfigError

_ORDER_ONE = 1.0  # what the paper calls O(1): the distance of two random lines in square mean
_SPREAD = 0.1  # of the angles of rows about a line, in radians
_SHAPES = ("lines", "circle")


def circle_trial(
    point: Mapping[str, Any], trial: int, streams: TrialStreams, dataset: None
) -> TrialData:
    """Points evenly spaced on the unit circle, and one more: here, or there (Figure 1).

    The point has ``n_points``; the paper does not say how many it draws. Nothing is random.
    """
    pair = circle_instability(point["n_points"])
    names = ("added", "subspaces", "costs", "distance")
    extra = {name: np.asarray(getattr(pair, name)) for name in names}
    return TrialData(pair.points, None, "computed", extra=extra)


def fit_circle(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Cluster both data sets by a method without privacy; ``costs`` (2,) of eq. (3)."""
    costs = []
    for row in data.extra["added"]:
        X = np.vstack([data.X, row])
        model = estimator(2, 1, **params, random_state=streams.get("noise")).fit(X)
        costs.append(model.inertia_ / len(X))
    return {"costs": np.array(costs)}


def evaluate_circle(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """How far one row moves the optimum, which is the local sensitivity there.

    ``distance``: Wasserstein distance of the two optima. ``shortfall``: how far it is below 1.
    ``gap``: by how much the method's cost exceeds the optimum's, the worse of the two. Points and
    lines are kept as arrays.
    """
    extra = data.extra
    return {
        "distance": extra["distance"],
        "shortfall": max(_ORDER_ONE - extra["distance"], 0.0),
        "gap": float(np.max(outputs["costs"] - extra["costs"])),
        "points": data.X,
        "added": extra["added"],
        "lines": extra["subspaces"][..., 0],
    }


def chain_trial(
    point: Mapping[str, Any], trial: int, streams: TrialStreams, dataset: None
) -> TrialData:
    """A few unit rows in the plane, whose chain on labels is a matrix of moderate size.

    The point has ``n_samples``, at most 7; ``shape``: "lines", half of the rows about each of two
    lines at right angles, with random angles to them, or "circle", evenly spaced lines at a random
    turn, of which no two are best; ``n_sweeps``.
    """
    n, rng = point["n_samples"], streams.get("data")
    if point["shape"] == "lines":
        angles = 0.5 * np.pi * (np.arange(n) % 2) + rng.normal(scale=_SPREAD, size=n)
    elif point["shape"] == "circle":
        angles = np.pi * (np.arange(n) / n + rng.random())
    else:
        raise ConfigError(f"shape: got {point['shape']!r}; it may be one of {', '.join(_SHAPES)}")
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    return TrialData(X, None, "generated: not the paper's", extra={"n_sweeps": point["n_sweeps"]})


def follow_exact_chain(
    data: TrialData, streams: TrialStreams, *, epsilon: float, init: str
) -> dict[str, np.ndarray]:
    """Compute how far a Gibbs chain of k = 2, q = 1 is from its target, without sampling.

    The start is ``"random"`` or ``"optimum"``: the best two lines in random order, taken from the
    data as the paper's starts are. Returns ``sweep`` and ``total_variation``, about ten a decade.
    """
    n_sweeps, is_best = data.extra["n_sweeps"], init == "optimum"
    start = circle_optimum(data.X)[0] if is_best else init
    curve = total_variation_curve(data.X, epsilon, n_sweeps, start, is_ordered=not is_best)
    sweeps = np.unique(np.geomspace(1, n_sweeps, 10 * len(str(n_sweeps))).round().astype(int))
    return {"sweep": sweeps, "total_variation": curve[sweeps - 1]}


def evaluate_exact_chain(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Total variation distance from the target.

    ``final_distance``: after the last sweep; rounding adds about 1e-15 a sweep. Arrays: ``sweep``,
    ``total_variation``.
    """
    return {"final_distance": outputs["total_variation"][-1], **outputs}
