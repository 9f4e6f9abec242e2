"""Checks of other statements of the PrivateMail paper: iterates, sensitivity, alignment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.embedding import align, search_sensitivity, sensitivity_constant
from privclust.metrics.retrieval import hit_ranks
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.privatemail.data import method_for, task_for, task_of
from privclust_papers.privatemail.methods import GalleryServer, sent_for
from privclust_papers.privatemail.structure import locality, separation
from privclust_papers.shared.rows import Point

_SHOWN = 1500  # gallery images of a scatter plot, at most
_SHOWN_ITERATES = (1, 2, 3)  # of Figure 2
_ALIGNED = 25  # queries whose alignments are averaged


def fit_iterates(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Embed public images and gallery by SMLQ, and search for gallery images at each iterate.

    Returns ``ranks`` (n_iter + 1, n_gallery), see `RetrievalTask.ranks`; ``objectives``; ``shown``
    and ``shown_labels``, iterates 1 to 3 of evenly spaced gallery images; ``separation`` and
    ``locality`` (4,) of the start and of these iterates, see
    `privclust_papers.privatemail.structure`.
    """
    task, params = task_for(params, data, streams)
    labels, n_public = task.y_gallery, len(task.y_public)
    X = np.concatenate([task.X_public, task.X_gallery])
    model = method_for(estimator, params, data, streams).fit(X, np.append(task.y_public, labels))
    iterates = model.iterates_[:, n_public:]
    ranks = [hit_ranks(rows, rows, labels, labels, own=task.spaced()) for rows in iterates]
    shown = task.spaced(_SHOWN)
    measured = iterates[[0, *_SHOWN_ITERATES]]
    return {
        "separation": np.array([separation(rows, labels) for rows in measured]),
        "locality": np.array([locality(task.X_gallery, rows, shown) for rows in measured]),
        "ranks": np.array(ranks, dtype=np.int32),
        "objectives": model.objectives_,
        "shown": iterates[list(_SHOWN_ITERATES)][:, shown],
        "shown_labels": labels[shown],
    }


def sensitivity_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """Return a trial of Theorem 2: ``n``, ``alpha``, ``sigma``, ``n_classes``, ``relation``."""
    return TrialData(None, None, "worst cases, no data", extra={"settings": dict(point)})


def search_worst_pair(
    data: TrialData, streams: TrialStreams, *, n_steps: int = 50, kernel: str = "2 sigma^2"
) -> dict[str, np.ndarray]:
    """Search for neighbours with the largest change of the first iterate (`search_sensitivity`).

    Returns the largest ``change``, and the ``bound`` and ``constant`` of Theorem 2.
    """
    settings, rng = data.extra["settings"], streams.get("noise")
    worst = search_sensitivity(**settings, n_steps=n_steps, kernel=kernel, random_state=rng)
    names = ("n", "alpha", "sigma", "n_classes")
    constant = sensitivity_constant(*(settings[name] for name in names))
    numbers = {"change": worst.change, "bound": worst.bound, "constant": constant}
    return {name: np.array(number) for name, number in numbers.items()}


def fit_alignment(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Release 25 queries by PrivateMail and align each with the server's embedding.

    Returns ``anchors``, the public images in the server's embedding; for each query ``released``
    and ``aligned`` (n_queries, n_public + 1, k); ``gallery``, evenly spaced images of the server;
    ``labels`` of public images; ``query_labels``; ``moved``, the proved sensitivity to one query;
    ``noise``, the standard deviation of the noise.
    """
    task = task_of(data, "deep", streams)
    model = method_for(estimator, params, data, streams).fit(task.X_public, task.y_public)
    server = GalleryServer(model, task)
    queries = task.spaced(_ALIGNED)
    released = sent_for(model, task, queries)
    aligned = align(released[:, :-1], server.anchors_).apply(released)
    return {
        "anchors": server.anchors_,
        "gallery": server.gallery_[task.spaced(_SHOWN)],
        "released": released,
        "aligned": aligned,
        "labels": task.y_public,
        "query_labels": task.y_gallery[queries],
        "noise": np.array(model.noise_scale_),
        "moved": np.array(model.iterate_sensitivity()),
    }
