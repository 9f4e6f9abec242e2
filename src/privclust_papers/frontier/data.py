"""Trials of the frontier: the data sets of the table of "PE-means" (arXiv 2606.00342).

Rows are scaled as by the table's authors, or have public bounds.

The extra of a trial has ``n_clusters``, ``bounds`` and ``scale``, the largest norm of the centred
rows, which is the unit of losses.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, make_blobs

from privclust.core.lloyd import inertia
from privclust.core.validation import signature_of
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.settings.config import ConfigError
from privclust_papers.settings.dotted import COMPLETE, construct
from privclust_papers.shared.rows import Dataset, Point

EPSILONS = 0.25, 0.5, 1.0, 2.0, 4.0
"""Budgets of the protocol; the score is the area under the loss over them."""
_DELTA_POWER = -1.1
_BLOBS, _BLOBS_BOX = 20_000, 15.0  # centers are within 10, and rows are normal about them
_G2_BOX = 200.0, 900.0
_CLUSTERS = {"birch2": 100, "adult": 3, "gas": 6, "gas_11": 6}
_IRIS_BOX, _LETTER_BOX = (0.0, 10.0), (0.0, 15.0)  # centimetres; the format's range


def synthetic_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return a data set without a file; trials differ by noise and starts.

    The point has ``set``, of `privclust_papers.frontier.printed.SCORES`, and ``scaling``:
    ``"data"``, centred and divided by the largest norm, which uses the data, as the table's authors
    do for all methods; or ``"public"``, unscaled with public bounds.
    """
    name = point["set"]
    source = "generated as its authors do"
    if name == "iris":
        X, k, box = load_iris().data, 3, _IRIS_BOX
        source = "scikit-learn's copy, which differs in two rows from UCI's"
    else:
        k, d = map(int, name.split("_")[1:])
        X = make_blobs(n_samples=_BLOBS, n_features=d, centers=k, random_state=1)[0].round(4)
        box = (-_BLOBS_BOX, _BLOBS_BOX)
    return _trial(X, k, box, point["scaling"], source)


def letter_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return all rows of Letter Recognition; the point has ``scaling``, see `synthetic_trial`."""
    return _trial(dataset["X"], 26, _LETTER_BOX, point["scaling"], dataset["source"])


def archived_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return all rows of a set; the point has ``set`` and ``scaling``, see `synthetic_trial`.

    Only g2 has public bounds. ``gas_11`` is ``gas`` without the year. The table states 12 columns,
    and its printed score is a local optimum of Lloyd's algorithm with the year.
    """
    name = point["set"]
    X = dataset["X" if name.startswith("gas") else name]
    if name == "gas_11":
        X = X[:, 1:]
    if name.startswith("g2_"):
        return _trial(X, 2, _G2_BOX, point["scaling"], dataset["source"])
    k = _CLUSTERS.get(name) or int(name.split("_")[1])
    if point["scaling"] == "public":
        raise ConfigError(f"scaling: nothing public is known of the range of {name}")
    return _trial(X, k, None, "data", dataset["source"])


def _trial(X, k, box, scaling, source):
    """Return a trial on scaled rows, or on rows with public bounds."""
    # The unit of losses is that of the table's authors in both scalings, so that losses are
    # comparable.
    centered = X - X.mean(axis=0)
    scale = float(np.linalg.norm(centered, axis=1).max())
    if scaling == "data":
        X, box, scale = centered / scale, (-1.0, 1.0), 1.0
    return TrialData(X, None, source, extra={"n_clusters": k, "bounds": box, "scale": scale})


def fit_budgets(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Cluster a trial's rows by an estimator of any class at each budget of the protocol.

    The class receives those of these arguments that it accepts: the number of clusters, bounds,
    epsilon, a delta of n^-1.1 and the noise stream. Returns ``centers`` (5, n_clusters,
    n_features), equal at all budgets for a class without epsilon.
    """
    accepted = signature_of(estimator).parameters
    k = data.extra["n_clusters"]
    rng, fits = streams.get("noise"), []
    for epsilon in EPSILONS if "epsilon" in accepted else EPSILONS[:1]:
        offered = {
            "n_clusters": k,
            "bounds": data.extra["bounds"],
            "epsilon": epsilon,
            "delta": len(data.X) ** _DELTA_POWER,
            "random_state": random_state_for(estimator, rng),
        }
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="rows outside bounds")
            fits.append(
                construct(estimator, params, **COMPLETE, **offered).fit(data.X).cluster_centers_
            )
    # A class without epsilon is fitted once and counts at each budget.
    return {"centers": np.array(fits if len(fits) > 1 else fits * len(EPSILONS))}


def evaluate_budgets(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the loss at each budget, ``loss_0_25`` to ``loss_4``, and its area, ``score``.

    The loss is the mean squared distance to the nearest center, in units of the largest norm of
    centred rows. The area is by the trapezoid rule, over a range of 3.75.
    """
    scale = len(data.X) * data.extra["scale"] ** 2
    losses = [inertia(data.X, centers) / scale for centers in outputs["centers"]]
    metrics: dict[str, object] = {
        f"loss_{epsilon:g}".replace(".", "_"): loss
        for epsilon, loss in zip(EPSILONS, losses, strict=True)
    }
    return metrics | {"score": float(np.trapezoid(losses, EPSILONS))}
