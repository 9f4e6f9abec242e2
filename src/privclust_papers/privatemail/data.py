"""Trials of private image retrieval: public images, and a gallery of images that are queries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privclust.core.validation import signature_of
from privclust.metrics.retrieval import hit_ranks
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.settings.config import ConfigError
from privclust_papers.settings.dotted import COMPLETE, construct
from privclust_papers.shared.rows import Dataset, Point

KINDS = ("deep", "pixels", "random")
"""Features: of a network, raw pixels, and random ones that are independent of the image."""
UNIT_NORM_BOUND = 1.0 + 1e-6
"""Bound on the norm of features scaled to norm 1, with the rounding of float32."""
_COMPONENTS = 50  # input dimension of t-SNE, as is usual
_PERPLEXITY = 30


@dataclass(frozen=True, eq=False)
class RetrievalTask:
    """Data of client and server."""

    # (n_public, n_features), (n_gallery, n_features): features. Each gallery image is a query in
    # turn and left out of its own answer.
    X_public: np.ndarray
    # labels, each numbered from 0. If public and gallery classes differ, as in CUB-200-2011 and
    # Cars196, equal labels are different classes, as in the authors' code.
    y_public: np.ndarray
    X_gallery: np.ndarray
    y_gallery: np.ndarray
    # (n_public + n_gallery, 2) or None: all images embedded by `share_tsne`
    tsne: np.ndarray | None = None
    # number of queries, in total and if each is placed separately; None for all gallery images
    n_queries: int | None = None
    n_placed: int | None = None

    def spaced(self, n_rows: int | None = None) -> np.ndarray:
        """Return indices of all gallery rows, or of `n_rows` evenly spaced ones."""
        n = len(self.y_gallery)
        if n_rows is None or n_rows >= n:
            return np.arange(n)
        return np.linspace(0, n - 1, n_rows).astype(np.int64)

    def client_labels(self, queries: np.ndarray) -> np.ndarray:
        """Return the client's labels of gallery images, clipped to the range of public labels."""
        return np.clip(self.y_gallery[queries], self.y_public.min(), self.y_public.max())

    def ranks(self, located, gallery, queries) -> dict[str, np.ndarray]:
        """Return ``queries`` and ``ranks`` for queries located in a gallery's space.

        A rank is the number of images before the first of the query's class, which determines
        Recall@k for every k.
        """
        ranks = hit_ranks(located, gallery, self.y_gallery[queries], self.y_gallery, own=queries)
        return {"ranks": ranks.astype(np.int32), "queries": queries.astype(np.int32)}


def retrieval_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return random public images of the training part, and the test part as the gallery.

    The point has ``n_public``, the limit on public images; ``delta``; and settings of methods:
    ``alpha``, ``sigma``, ``n_components``, ``init_scale``, ``n_iter``; optionally ``n_gallery``,
    the number of evenly spaced images of the test part. The data set is a feature set: ``X``,
    ``y``, ``train`` and optionally ``pixels``. The extra has ``settings``, the point; ``labels``
    of public images and gallery; ``deep`` and ``pixels`` features of both.
    """
    train, gallery = np.flatnonzero(dataset["train"]), np.flatnonzero(~dataset["train"])
    n_gallery = min(point.get("n_gallery", len(gallery)), len(gallery))
    gallery = gallery[np.linspace(0, len(gallery) - 1, n_gallery).astype(np.int64)]
    if len(train) < 2 or len(gallery) < 2:
        raise ConfigError(
            f"dataset: got {len(train)} training and {len(gallery)} test images; there must be "
            "2 or more of each"
        )
    public = np.sort(streams.get("data").permutation(train)[: point["n_public"]])
    labels = dataset["y"]
    y_public, y_gallery = (  # indices among all classes of the part, drawn or not
        np.searchsorted(np.unique(labels[part]), labels[rows]).astype(np.int64)
        for part, rows in ((train, public), (gallery, gallery))
    )
    extra = {
        kind: (dataset[name][public], dataset[name][gallery])
        for kind, name in (("deep", "X"), ("pixels", "pixels"))
        if name in dataset
    }
    extra["settings"] = {name: value for name, value in point.items() if name != "n_public"}
    extra["labels"] = y_public, y_gallery
    facts = {
        "n_images": len(gallery),
        "n_public_images": len(public),
        "n_classes": int(y_gallery.max()) + 1,
        "n_public_classes": len(np.unique(y_public)),
    }
    return TrialData(None, y_gallery, dataset["source"], facts=facts, extra=extra)


def task_of(data: TrialData, kind: str, streams: TrialStreams) -> RetrievalTask:
    """Return the task with features of a kind; random ones are drawn from the init stream."""
    if kind not in KINDS:
        raise ConfigError(f"features: got {kind!r}; it must be one of {', '.join(KINDS)}")
    if kind == "pixels" and kind not in data.extra:
        raise ConfigError(f"features: got 'pixels'; {data.source} has none, only 'deep'")
    y_public, y_gallery = data.extra["labels"]
    if kind == "random":
        rng, width = streams.get("init"), data.extra["deep"][0].shape[1]
        X_public, X_gallery = (
            rng.standard_normal((len(y), width), dtype=np.float32) for y in (y_public, y_gallery)
        )
    else:
        X_public, X_gallery = data.extra[kind]
    tsne = data.extra.get("shared", {}).get("tsne")
    n_placed = data.extra["settings"].get("n_placed")
    return RetrievalTask(X_public, y_public, X_gallery, y_gallery, tsne, n_placed=n_placed)


def share_tsne(
    point: Point,
    trial: int,
    streams: TrialStreams,
    dataset: Dataset,
    shard: int,
    n_shards: int,
) -> dict[str, np.ndarray]:
    """Return ``tsne`` (n_public + n_gallery, 2), a joint embedding without privacy and labels."""
    from openTSNE import TSNE
    from sklearn.decomposition import PCA

    if n_shards != 1:
        raise ConfigError(f"shards: got {n_shards}; t-SNE is not a sum over parts, so it must be 1")
    data = retrieval_trial(point, trial, streams, dataset)
    X = np.concatenate(data.extra["deep"]).astype(np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    width = min(_COMPONENTS, *X.shape)
    X = PCA(width, svd_solver="full" if len(X) < X.shape[1] else "covariance_eigh").fit_transform(X)
    seed = int(streams.get("init").integers(2**31))
    # The largest perplexity that openTSNE accepts.
    perplexity = min(_PERPLEXITY, (len(X) - 1) / 3)
    # Exact neighbours and one job, so that every machine and number of cores gives the same.
    model = TSNE(perplexity=perplexity, neighbors="exact", n_jobs=1, random_state=seed)
    return {"tsne": np.asarray(model.fit(X))}


def fit_retrieval(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Run a class with ``search(task)``, see `privclust_papers.privatemail.methods`, on a trial.

    Its parameters may also have ``features``, one of `KINDS`, and ``n_queries``. Returns ``ranks``
    and ``queries``; ``claimed``, the nominal (epsilon, delta); ``guaranteed``, the epsilon of its
    guarantee at that delta, infinite for none.
    """
    task, params = task_for(params, data, streams)
    model = method_for(estimator, params, data, streams)
    budget = (getattr(model, name, math.nan) for name in ("epsilon", "delta"))
    return model.search(task) | claimed(*budget)


def task_for(
    params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> tuple[RetrievalTask, dict[str, Any]]:
    """Return the task, and the remaining parameters, those of the method's class."""
    left = {name: value for name, value in params.items() if name not in ("features", "n_queries")}
    task = task_of(data, params.get("features", "deep"), streams)
    return replace(task, n_queries=params.get("n_queries")), left


def claimed(epsilon: float = math.nan, delta: float = math.nan) -> dict[str, np.ndarray]:
    """Return the nominal budget of a method, to be recorded."""
    return {"claimed": np.array((epsilon, delta), dtype=float)}


def method_for(estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams):
    """Construct a method with those arguments of the trial that its class accepts."""
    noise = random_state_for(estimator, streams.get("noise"))
    offered = {
        **data.extra["settings"],
        "shared": data.extra.get("shared", {}),
        "norm_bound": UNIT_NORM_BOUND,
        "random_state": noise,
    }
    if "start_seed" in signature_of(estimator).parameters:
        # The public start has a seed of its own, which client and server share.
        offered["start_seed"] = int(noise.integers(2**31))
    return construct(estimator, params, **COMPLETE, **offered)
