"""Algorithm 2, threshold-based subspace clustering, on the stochastic model of Section 3.3."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from privclust.core.grassmann import bases_of_labels
from privclust.core.validation import check_option
from privclust.metrics.subspaces import wasserstein_distance
from privclust.segmentation import TSC
from privclust.synthetic.subspaces import subspace_mixture
from privclust_papers.dpsc.data import GENERATED
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.shared.rows import Point

_FIRST_N = 300.0  # number of rows at which decaying noise equals `noise`


def stochastic_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return points near random subspaces, with noise N(0, sigma^2 / d) on each coordinate.

    The point has ``n_samples``, ``n_clusters``, ``n_features``, ``dimension``; ``noise`` and
    ``decay``, with which sigma is ``noise * (log 300 / log n_samples)**decay``.
    """
    n, k, d, q = (point[name] for name in ("n_samples", "n_clusters", "n_features", "dimension"))
    sigma = point["noise"] * (math.log(_FIRST_N) / math.log(n)) ** point["decay"]
    rng = streams.get("data")
    X, labels, truth = subspace_mixture(n, k, d, q, rng, sigma / math.sqrt(d))
    return TrialData(X, labels, GENERATED, extra={"truth": truth})


def threshold_clusters(
    data: TrialData, streams: TrialStreams, *, subspaces: str
) -> dict[str, np.ndarray]:
    """Return the connected components of TSC's graph, and a subspace for each.

    The number of neighbours is 1/20 of the mean cluster size, within the range of Lemma 3.5.
    ``subspaces``: ``points``, the span of q random rows of a component, as printed, or ``rows``,
    the best fit to all its rows. Returns ``labels`` (n,) and ``bases`` (n_components, d, q).
    """
    check_option("subspaces", subspaces, ("points", "rows"))
    k, _, q = data.extra["truth"].shape
    n_neighbors = max(q, math.ceil(len(data.X) / (20 * k)))
    model = TSC(n_neighbors=n_neighbors).fit(data.X)
    rng, rows, labels = streams.get("init"), data.X, model.labels_
    if subspaces == "points":
        members = (np.flatnonzero(labels == label) for label in range(model.n_clusters_))
        drawn = np.concatenate([rng.choice(own, min(q, len(own)), False) for own in members])
        rows, drawn_labels = rows[drawn], labels[drawn]
    else:
        drawn_labels = labels
    return {
        "labels": labels,
        "bases": bases_of_labels(rows, drawn_labels, model.n_clusters_, q, rng),
    }


def evaluate_threshold(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Compare components and their subspaces with the truth.

    ``mismatch``: 0 if components are exactly the clusters, else 1. ``distance``: Wasserstein
    distance, eq. (2); NaN if the numbers of components and subspaces differ.
    """
    # Two partitions are equal if each component meets one cluster and each cluster one component.
    pairs = np.unique(np.stack([outputs["labels"], data.y]), axis=1).shape[1]
    n_found, truth = len(outputs["bases"]), data.extra["truth"]
    is_exact = n_found == pairs == len(np.unique(data.y))
    same = n_found == len(truth)
    return {
        "mismatch": float(not is_exact),
        "distance": wasserstein_distance(outputs["bases"], truth) if same else math.nan,
    }
