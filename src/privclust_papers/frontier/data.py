"""Trials of the frontier: the table's data sets, scaled as its authors scale them, or in public.

Each trial's extra has ``n_clusters``, the box ``bounds`` and ``scale``, the largest norm of the
centered rows, in units of which losses are given.
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
"""Budgets of the protocol, over which the score is an area."""
_DELTA_POWER = -1.1
_BLOBS, _BLOBS_BOX = 20_000, 15.0  # centers lie within 10, and rows are normal about them
_G2_BOX = 200.0, 900.0
_CLUSTERS = {"birch2": 100, "adult": 3, "gas": 6, "gas_11": 6}
_IRIS_BOX, _LETTER_BOX = (0.0, 10.0), (0.0, 15.0)  # centimetres; the format's range


def synthetic_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """A set that needs no file, the same in all trials, which differ by noise and starts.

    The point has ``set``, of `privclust_papers.frontier.printed.SCORES`, and ``scaling``:
    ``"data"``, centered by the mean and divided by the largest norm, which sees the data, as the
    table's authors do for all methods; or ``"public"``, as they are, in a box known without them.
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
    """Letter Recognition, all rows; the point has ``scaling``, as of `synthetic_trial`."""
    return _trial(dataset["X"], 26, _LETTER_BOX, point["scaling"], dataset["source"])


def archived_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """All rows of a set of a file; the point has ``set`` and ``scaling`` as `synthetic_trial`.

    Only g2 has a box that is known without the data. ``gas_11`` is ``gas`` without the year: the
    table says 12 columns, and its printed score is a local optimum of Lloyd's with the year.
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
    """Return a trial on rows that are scaled, or in their public box."""
    centered = X - X.mean(axis=0)
    scale = float(np.linalg.norm(centered, axis=1).max())
    if scaling == "data":
        X, box, scale = centered / scale, (-1.0, 1.0), 1.0
    return TrialData(X, None, source, extra={"n_clusters": k, "bounds": box, "scale": scale})


def fit_budgets(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Cluster a trial's rows by any class at each of the protocol's budgets.

    A class gets what it accepts of: the number of clusters, the box, epsilon, a delta of n^-1.1 and
    the noise stream. Returns ``centers`` (5, n_clusters, n_features); of a class without an epsilon
    the same ones.
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
    return {"centers": np.array(fits if len(fits) > 1 else fits * len(EPSILONS))}


def evaluate_budgets(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Loss at each budget, ``loss_0_25`` to ``loss_4``, and the area under it, ``score``.

    The loss is the sum of squared distances to the nearest center a row, in units of the largest
    norm of centered rows, the area by the trapezoid rule: a constant loss counts 3.75 times.
    """
    scale = len(data.X) * data.extra["scale"] ** 2
    losses = [inertia(data.X, centers) / scale for centers in outputs["centers"]]
    metrics: dict[str, object] = {
        f"loss_{epsilon:g}".replace(".", "_"): loss
        for epsilon, loss in zip(EPSILONS, losses, strict=True)
    }
    return metrics | {"score": float(np.trapezoid(losses, EPSILONS))}
