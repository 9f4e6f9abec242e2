"""Errors of private unions of subspaces, and the least error that a release allows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.metrics.subspaces import wasserstein_distance
from privclust.privacy import Neighbours
from privclust.sketches import MomentSketch
from privclust.sketches.moment_release import measurement
from privclust.subspaces import least_error
from privclust_papers.dpsc.data import fitted
from privclust_papers.dpsc.metrics import budget_range, distance_of_random
from privclust_papers.pipeline.runner import TrialData, TrialStreams


def fit_frontier(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Cluster a trial's rows, as `fit_subspaces` does.

    Returns ``bases`` (k, d, q); for a method with a budget ``epsilon``; for a method that states
    its error ``stated``, the expected distance over all subspaces, and ``last_round``, 1 if a last
    round was run.
    """
    model = fitted(estimator, params, data, streams)
    outputs = {"bases": model.subspaces_}
    if "epsilon" in params:
        outputs["epsilon"] = np.float64(params["epsilon"])
    if hasattr(model, "errors_"):
        # Squared errors of the subspaces add up, as in eq. (2).
        outputs["stated"] = np.float64(np.linalg.norm(model.errors_))
        outputs["last_round"] = np.float64(model.has_last_round_)
    return outputs


def release_bound(
    data: TrialData, streams: TrialStreams, *, epsilon: float
) -> dict[str, np.ndarray]:
    """Return ``bound``, the least error of a decoder of a noisy sketch, see `least_error`."""
    exact = MomentSketch.of(data.X)
    size, relation = (exact.n_features, exact.degree), Neighbours.REPLACE_ONE
    noise = measurement(*size, relation, epsilon, data.extra["delta"])
    sketch = exact.with_noise(noise, streams.get("noise"))
    bound = least_error(
        sketch, data.X, data.y, data.extra["truth"], random_state=streams.get("init")
    )
    return {"bound": np.float64(bound), "epsilon": np.float64(epsilon)}


def evaluate_frontier(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return ``distance``, eq. (2), of the release to the truth, or the bound itself.

    ``relative_distance``: relative to random subspaces; ``over_bound``: relative to the bound, if
    that is the reference. ``budget``: as in `evaluate_subspaces`. ``stated`` and ``last_round``:
    outputs of the method, or NaN.
    """
    truth = data.extra["truth"]
    if "bound" in outputs:
        distance = float(outputs["bound"])
    else:
        distance = wasserstein_distance(outputs["bases"], truth)
    bound = data.extra.get("reference", {}).get("bound", math.nan)
    return {
        "distance": distance,
        "over_bound": distance / float(bound),
        "budget": budget_range(outputs.get("epsilon")),
        "relative_distance": distance / distance_of_random(*truth.shape),
        "stated": float(outputs.get("stated", math.nan)),
        "last_round": float(outputs.get("last_round", math.nan)),
    }
