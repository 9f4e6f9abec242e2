"""What the PrivateMail paper proves and shows besides recall: iterates, sensitivity, alignment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.embedding import PrivateMail, align
from privclust.embedding._smlq import KERNELS, FeatureLaplacian, kernel_width, unit_rows
from privclust.embedding._smlq_sensitivity import (
    proved_sensitivity,
    search_sensitivity,
    sensitivity_constant,
)
from privclust.experiments.retrieval import made, task_of
from privclust.experiments.retrieval_methods import GalleryServer
from privclust.experiments.runner import TrialData, TrialStreams
from privclust.metrics.retrieval import hit_ranks
from privclust.validation import as_generator

_SHOWN = 1500  # gallery images of a scatter plot, at most
_SHOWN_ITERATES = (1, 2, 3)  # of Figure 2
_ALIGNED = 25  # queries whose alignments are averaged


def fit_iterates(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Embed public images and gallery together, and look gallery images up at each iterate.

    Parameters
    ----------
    estimator : type
        `privclust.embedding.SMLQ`.
    params : mapping
        Its keyword arguments; and ``features``.

    Returns
    -------
    dict of str to ndarray
        ``ranks`` (n_iter + 1, n_gallery), see `RetrievalTask.ranks`; ``objectives``; ``shown`` and
        ``shown_labels``, iterates 1 to 3 of some gallery images.
    """
    params = dict(params)
    task = task_of(data, params.pop("features", "deep"), streams)
    n_public = len(task.y_public)
    model = made(estimator, params, data, streams).fit(
        np.concatenate([task.X_public, task.X_gallery]),
        np.append(task.y_public, task.y_gallery),
    )
    own = np.arange(len(task.y_gallery))
    iterates = model.iterates_[:, n_public:]
    labels = task.y_gallery
    ranks = [hit_ranks(rows, rows, labels, labels, own=own) for rows in iterates]
    shown = task.some(_SHOWN)
    return {
        "ranks": np.array(ranks, dtype=np.int32),
        "objectives": model.objectives_,
        "shown": iterates[list(_SHOWN_ITERATES)][:, shown],
        "shown_labels": labels[shown],
    }


def sensitivity_trial(
    point: Mapping[str, Any], trial: int, streams: TrialStreams, dataset: None
) -> TrialData:
    """Settings of Theorem 2 alone: ``n``, ``alpha``, ``sigma``, ``n_classes``, ``relation``."""
    return TrialData(None, None, "worst cases, no data", extra={"settings": dict(point)})


class SensitivitySearch:
    """A search for the neighbours that move the first iterate most.

    Parameters
    ----------
    n, alpha, sigma, n_classes, kernel, relation, n_steps
        See `privclust.embedding.search_sensitivity`.
    random_state : numpy.random.Generator
    """

    def __init__(
        self,
        n,
        alpha,
        sigma,
        n_classes,
        *,
        kernel="2 sigma^2",
        relation="add-remove",
        n_steps=50,
        random_state=None,
    ):
        self.settings = {
            "n": n,
            "alpha": alpha,
            "sigma": sigma,
            "n_classes": n_classes,
            "kernel": kernel,
            "relation": relation,
            "n_steps": n_steps,
            "random_state": random_state,
        }


def fit_sensitivity(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Search, and return the largest change, the bound and the constant M.

    Returns
    -------
    dict of str to ndarray
        ``change``, ``bound``, ``constant`` and ``n``: numbers.
    """
    settings = made(estimator, params, data, streams).settings
    found = search_sensitivity(**settings)
    names = ("n", "alpha", "sigma", "n_classes")
    constant = sensitivity_constant(*(settings[name] for name in names))
    return {
        "change": np.array(found.change),
        "bound": np.array(found.bound),
        "constant": np.array(constant),
    }


class Aligner:
    """PrivateMail, for the alignment of what it releases.

    Parameters
    ----------
    n_components, alpha, sigma, init_scale, n_iter, epsilon, delta, variant
        See `privclust.embedding.PrivateMail`.
    random_state : numpy.random.Generator
    """

    def __init__(
        self,
        n_components=2,
        *,
        alpha=0.6,
        sigma=6.0,
        init_scale=1e-8,
        n_iter=5,
        epsilon=0.1,
        delta=1e-5,
        variant="paper",
        random_state=None,
    ):
        rng = as_generator(random_state)
        self.model = PrivateMail(
            n_components,
            alpha=alpha,
            sigma=sigma,
            init_scale=init_scale,
            n_iter=n_iter,
            epsilon=epsilon,
            delta=delta,
            variant=variant,
            start_seed=int(rng.integers(2**31)),
            random_state=rng,
        )


def fit_alignment(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Release some queries and align each with the server's embedding.

    Returns
    -------
    dict of str to ndarray
        ``anchors``, where the server has the public images, and of each query among them
        ``released`` and ``aligned`` (n_queries, n_public + 1, k); of the server ``gallery``, some
        images; ``labels`` of public images; ``query_labels``; ``moved`` and ``noise``, the proved
        sensitivity for one query and the noise's standard deviation.
    """
    task = task_of(data, "deep", streams)
    model = made(estimator, params, data, streams).model
    model.fit(task.X_public, task.y_public)
    server = GalleryServer(model, task)
    queries = task.some(_ALIGNED)
    released = model.release(task.X_gallery[queries], task.client_labels(queries))
    aligned = align(released[:, :-1], server.anchors_).apply(released)
    return {
        "anchors": server.anchors_,
        "gallery": server.gallery_[task.some(_SHOWN)],
        "released": released,
        "aligned": aligned,
        "labels": task.y_public,
        "query_labels": task.y_gallery[queries],
        "noise": np.array(model.noise_scale_),
        "moved": np.array(_moved(model, task)),
    }


def _moved(model, task):
    """Return how far one query can move the first iterate, as proved for this public set."""
    width = kernel_width(model.sigma, model.kernel or KERNELS[model.variant])
    features = FeatureLaplacian(unit_rows(task.X_public), width)
    start = model.start_
    return proved_sensitivity(
        features.degrees,
        features.kernel_dot(start[:-1]),
        start,
        task.y_public,
        np.unique(task.y_public),
        alpha=model.alpha,
        width=width,
        variant=model.variant,
    )
