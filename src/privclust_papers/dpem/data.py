"""Trials of private mixtures: generated Gaussians, a map, check-ins and life sciences.

Rows are in the unit ball. The extra of a trial may have ``test`` (held-out rows) and ``n_starts``
for scores of densities, ``start`` (means) if all methods share a start, ``true_means``, and
``pictured`` if a figure may show the rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privclust.core.validation import signature_of
from privclust.mixtures import GaussianMixtureEM, MixtureParameters, log_density
from privclust.privacy.bounds import uniform_in_ball
from privclust.synthetic.planar import MEANS, three_gaussians
from privclust_papers.datasets import gowalla, lifesci
from privclust_papers.dpem.people import MAP_CENTER, MAP_RADIUS, map_points, to_unit_ball
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.settings.dotted import COMPLETE, construct
from privclust_papers.shared.rows import (
    TEST_PART,
    Dataset,
    Point,
    centers_of,
    random_split,
    random_subset,
)

GENERATED = "generated as the paper describes"


def gaussians_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return three isotropic Gaussians in the plane and a test set of 10 % of N (Section 6).

    The point has ``n_samples`` N, ``n_starts``, ``geometry``.
    """
    n, geometry = point["n_samples"], point["geometry"]
    rng = streams.get("data")
    X, labels = three_gaussians(n, rng, geometry=geometry)
    test, _ = three_gaussians(max(n // TEST_PART, 1), rng, geometry=geometry)
    extra = {"test": test, "n_starts": point["n_starts"], "true_means": np.array(MEANS[geometry])}
    return TrialData(X, labels, GENERATED, extra=extra)


def map_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return people of three categories on a map, one far away in their own category (Figure 1).

    Scaled to the unit ball by the public bounding box of Germany. The point has ``n_copies``: 1
    gives 104 people, 50 gives 5,200; and ``start``: ``"uniform"`` in the ball, or ``"near"``, one
    mean at the far person and two in the south. The near start uses knowledge of the person.
    """
    points, labels, far = map_points(point["n_copies"], streams.get("data"))
    X = to_unit_ball(points, MAP_CENTER, MAP_RADIUS)
    start = {"start": to_unit_ball(_MAP_START, MAP_CENTER, MAP_RADIUS)}
    extra = {
        "far": X[far],
        **(start if point["start"] == "near" else {}),
        "n_starts": 1,
        "pictured": trial == 0,
        "true_means": np.stack([X[labels == k].mean(axis=0) for k in range(3)]),
    }
    return TrialData(X, labels, "substitute: a generated map", extra=extra)


_MAP_START = np.array([[8.3, 48.5], [7.0, 51.5], [9.7, 48.5]])


def gowalla_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return a random subset of the check-ins, scaled by the public bounds of the globe.

    The point has ``n_samples`` (12,563 is 1 % of the paper's points) and ``n_clusters``.
    """
    points = random_subset(dataset["points"], point["n_samples"], streams)
    X = to_unit_ball(points, (0.0, 0.0), gowalla.RADIUS)
    start = uniform_in_ball(point["n_clusters"], 2, streams.get("init"))
    return TrialData(X, None, dataset["source"], extra={"start": start, "pictured": trial == 0})


def lifesci_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return a random split of the principal components into 90 % and 10 %, norm at most 1.

    Scaled by the largest norm within the published ranges of the components. The point has
    ``n_starts``.
    """
    bound = np.linalg.norm(np.maximum(np.abs(lifesci.LOWER), np.abs(lifesci.UPPER)))
    X, test = random_split(dataset["X"] / bound, streams)
    extra = {"test": test, "n_starts": point["n_starts"]}
    return TrialData(X, None, dataset["source"], extra=extra)


def fit_mixture(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Fit a mixture from each start, with the same starts for all methods and independent noise.

    Fits of a method without starts differ only by their noise.

    A start has equal weights, means uniform in the unit ball (or the start of the trial) and
    spherical covariances, as in `privclust.mixtures.PrivateGaussianMixture`. Returns ``weights``,
    ``means`` and ``covariances``, with starts along the first axis, and, if the method has them,
    ``floors`` (starts, 3): rates of floored weights, means and covariances.
    """
    # One generator for all starts: each fit continues the stream of noise.
    rng, noise = streams.get("init"), random_state_for(estimator, streams.get("noise"))
    k, d = params.get("n_components", data.extra.get("n_clusters", 1)), data.X.shape[1]
    offered = _spherical_start(params.get("covariance_type", "full"), k, d)
    offered |= {"n_components": k, "norm_bound": 1.0, "random_state": noise}
    outputs = defaultdict(list)
    for _ in range(int(data.extra["n_starts"])):
        means = data.extra.get("start")
        if means is None:
            means = uniform_in_ball(k, d, rng)
        model = construct(estimator, params, means_init=means, **COMPLETE, **offered).fit(data.X)
        for name in ("weights", "means", "covariances"):
            outputs[name].append(getattr(model, f"{name}_"))
        if hasattr(model, "floor_rates_"):
            rates = model.floor_rates_
            outputs["floors"].append([rates.weights, rates.means, rates.covariances])
    return {name: np.stack(values) for name, values in outputs.items()}


def best_of_starts(
    data: TrialData, streams: TrialStreams, *, n_tried: int, **params: Any
) -> dict[str, np.ndarray]:
    """Fit EM from `n_tried` starts uniform in the ball, and keep the most likely fit.

    Returns the outputs of `fit_mixture` for that start. A private method would have to spend budget
    on the choice.
    """
    tried = replace(data, extra={**data.extra, "n_starts": n_tried})
    # A common start of the trial would make all tries equal. The dictionary is a copy.
    tried.extra.pop("start", None)
    outputs = fit_mixture(GaussianMixtureEM, params, tried, streams)
    fits = zip(*(outputs[name] for name in ("weights", "means", "covariances")), strict=True)
    kind = params["covariance_type"]
    scores = [log_density(data.X, MixtureParameters(*fit, kind)).mean() for fit in fits]
    best = int(np.argmax(scores))
    return {name: values[best : best + 1] for name, values in outputs.items()}


def _spherical_start(covariance_type: str, k: int, d: int) -> dict[str, np.ndarray]:
    # Uniform rows in the unit ball have variance 1 / (d + 2) in each coordinate; a k-th of its
    # volume has radius k^(-1/d).
    variance = k ** (-2.0 / d) / (d + 2.0)
    shape = {"spherical": 1.0, "full": np.eye(d)}[covariance_type]
    covariances = np.stack([variance * shape] * k)
    return {"weights_init": np.full(k, 1.0 / k), "covariances_init": covariances}


def fit_centers(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Return ``centers`` (n_clusters, n_features), from the common start of all methods."""
    start = data.extra["start"]
    offered = {
        "n_components": len(start),
        "means_init": start,
        "n_clusters": len(start),
        "init": start,
        "norm_bound": 1.0,
        "random_state": random_state_for(estimator, streams.get("noise")),
    }
    if "n_components" in signature_of(estimator).parameters:
        del offered["init"]  # for a mixture this is the name of a method
    return {"centers": centers_of(construct(estimator, params, **COMPLETE, **offered).fit(data.X))}
