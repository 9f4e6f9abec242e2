"""What the PrivateMail paper proves and shows besides recall: iterates, sensitivity, alignment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.embedding import PrivateMail, RetrievalServer, align
from privclust.embedding._sensitivity import (
    proved_sensitivity,
    search_sensitivity,
    sensitivity_constant,
)
from privclust.embedding._smlq import KERNELS, FeatureLaplacian, kernel_width, unit_rows
from privclust.experiments.retrieval import made, task_of
from privclust.experiments.runner import TrialData, TrialStreams
from privclust.metrics.retrieval import hit_ranks
from privclust.validation import as_generator

_SHOWN = 1500  # gallery images of a scatter plot, at most
_SHOWN_ITERATES = (1, 2, 3)  # of Figure 2
_ALIGNED = 25  # queries whose alignments are averaged
_ROUNDING = 1e-9  # of the objective, in parts of its size


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


def evaluate_iterates(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Recall along the iterates, and whether the objective falls.

    Arrays: ``recall``, Recall@8 from the start on; ``objective``, in parts of the start's size;
    ``shown`` and ``shown_labels``. Numbers: ``recall_8_<t>``; ``gap_5`` and ``gap_7``, how far
    Recall@8 is from that of the last iterate; ``rises``, at how many of the steps the objective
    grows by more than rounding.
    """
    recalls = (outputs["ranks"] < 8).mean(axis=1)
    objectives = outputs["objectives"]
    rounding = _ROUNDING * np.abs(objectives[:-1])
    values = {f"recall_8_{t}": float(recall) for t, recall in enumerate(recalls)}
    values |= {f"gap_{t}": float(abs(recalls[t] - recalls[-1])) for t in (5, 7) if t < len(recalls)}
    return values | {
        "rises": float((np.diff(objectives) > rounding).sum()),
        "growth": float(objectives[-1] / objectives[0]),
        "recall": recalls,
        "objective": objectives / abs(objectives[0]),
        "shown": outputs["shown"],
        "shown_labels": outputs["shown_labels"],
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


def evaluate_sensitivity(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Theorem 2's bound beside the worst pair found.

    ``ratio``: bound over the largest change, below 1 where the bound is broken, and ``share`` its
    inverse; ``root_ratio``: the same with the square root of M, which is what the proof supports.
    """
    change, bound = float(outputs["change"]), float(outputs["bound"])
    constant = float(outputs["constant"])
    return {
        "constant": constant,
        "bound": bound,
        "change": change,
        "ratio": bound / change,
        "share": change / bound,
        "root_ratio": bound / math.sqrt(constant) / change,
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
    server = RetrievalServer(model, task.X_public, task.y_public, task.X_gallery, task.y_gallery)
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


def evaluate_alignment(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """How well released public images come to lie on the server's.

    ``residual``: root mean square of what separates them after alignment, in parts of the server's
    spread: 0 where they agree, 1 where nothing is left in common; its mean over queries.
    ``noise_to_start``: the noise's deviation over that of the start. ``noise_to_moved``: over the
    distance that one query can be proved to move the first iterate. Arrays for one query:
    ``anchors``, ``gallery``, ``released``, ``aligned``, ``labels``.
    """
    anchors, aligned = outputs["anchors"], outputs["aligned"][:, :-1]
    spread = ((anchors - anchors.mean(axis=0)) ** 2).sum()
    left = ((aligned - anchors) ** 2).sum(axis=(1, 2))
    return {
        "residual": float(np.sqrt(left / spread).mean()),
        "noise": float(outputs["noise"]),
        "noise_to_start": float(outputs["noise"] / data.extra["settings"]["init_scale"]),
        "noise_to_moved": float(outputs["noise"] / outputs["moved"]),
        "anchors": anchors,
        "gallery": outputs["gallery"],
        "released": outputs["released"][0],
        "aligned": outputs["aligned"][0],
        "labels": outputs["labels"],
    }
