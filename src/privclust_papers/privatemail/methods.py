"""Retrieval methods of the experiments, composed of estimators.

A class is an estimator with a method ``search(task)``, which returns the result of
`privclust_papers.privatemail.data.RetrievalTask.ranks` and the guarantee, if any. A function is a
complete method.
"""

from __future__ import annotations

import hashlib
import math
from typing import ClassVar

import numpy as np

from privclust.core.validation import as_generator
from privclust.embedding import (
    SMLQ,
    DPdSNE,
    PrivateMail,
    PrivatePCA,
    PrivateRandomProjection,
    RetrievalServer,
    unit_rows,
)
from privclust.privacy import Neighbours, Sensitivity
from privclust.privacy.measurements import Gaussian, analytic_gaussian_sigma
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.privatemail.components import pca_features
from privclust_papers.privatemail.data import RetrievalTask, claimed, task_of

_BATCH = 256  # queries per block of embeddings: 4 MB with 1,000 public images


def search_features(
    data: TrialData, streams: TrialStreams, *, features="deep", n_components: int | None = None
) -> dict[str, np.ndarray]:
    """Search by features of norm 1, or by their principal components, without privacy."""
    task = task_of(data, features, streams)
    rows = unit_rows(task.X_gallery)
    if n_components is not None:
        rows = pca_features(rows, n_components)
    return task.ranks(rows, rows, task.spaced()) | claimed()


def search_tsne(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Search in a t-SNE embedding of gallery and public images, without privacy."""
    task = task_of(data, "deep", streams)
    rows = task.tsne[len(task.y_public) :]
    return task.ranks(rows, rows, task.spaced()) | claimed()


def search_released_components(
    data: TrialData, streams: TrialStreams, *, epsilon: float
) -> dict[str, np.ndarray]:
    """Search by noisy coordinates of the query along principal components of public images."""
    task, settings = task_of(data, "deep", streams), data.extra["settings"]
    delta = settings["delta"]
    directions = np.linalg.svd(unit_rows(task.X_public), full_matrices=False)[2]
    rows = unit_rows(task.X_gallery).astype(np.float64)
    coordinates = rows @ directions[: settings["n_components"]].T
    bound = Sensitivity(2.0, "l2", Neighbours.REPLACE_ONE, "two vectors of norm at most 1")
    scale = analytic_gaussian_sigma(bound, epsilon, delta)
    noisy = Gaussian(bound, scale).release(coordinates, streams.get("noise"))
    ranks = task.ranks(noisy, coordinates, task.spaced())
    return ranks | {"guaranteed": np.array(epsilon)} | claimed(epsilon, delta)


def respond_with_label(
    data: TrialData, streams: TrialStreams, *, epsilon: float, n_sent: int = 8
) -> dict[str, np.ndarray]:
    r"""Release a random set of k classes that tends to have the query's; one image of each returns.

    A set with the true class has :math:`e^\epsilon` times the probability of one without, so that
    the release is epsilon-private, for classes that client and server know. The hit rate
    :math:`k e^\epsilon / (k e^\epsilon + C - k)` is the upper bound
    `privclust.metrics.retrieval.recall_ceiling` for k returned images. Features and delta are not
    used, and k images (`n_sent`) are returned.
    """
    y = data.y
    odds = n_sent * math.exp(epsilon)
    hit = odds / (odds + max(int(y.max()) + 1 - n_sent, 0))
    is_hit = streams.get("noise").random(len(y)) < hit
    return {
        # One returned image has the class, in the worst case the last; a miss ranks after all
        # images.
        "ranks": np.where(is_hit, n_sent - 1, len(y)).astype(np.int32),
        "queries": np.arange(len(y), dtype=np.int32),
        "guaranteed": np.array(epsilon),
    } | claimed(epsilon, data.extra["settings"]["delta"])


class _SharedSMLQ(SMLQ):
    """SMLQ that reuses the Laplacian of the last fit if the features are the same."""

    # Of the class, since each method of a job makes its own server for the same gallery.
    _last: ClassVar[dict] = {}

    def _laplacian(self, X):
        digest = hashlib.blake2b(np.ascontiguousarray(X).data).digest()
        key = (digest, X.shape, X.dtype.str, self._width(), self.variant)
        if key not in self._last:
            self._last.clear()  # one at a time: 300 MB for CIFAR-100
            self._last[key] = super()._laplacian(X)
        return self._last[key]


class GalleryServer(RetrievalServer):
    """The server of a task; the feature kernel is computed once for the same images."""

    _embedding = _SharedSMLQ

    def __init__(self, model, task):
        super().__init__(model, task.X_public, task.y_public, task.X_gallery, task.y_gallery)


class EmbeddingSearch(SMLQ):
    """Search for gallery images in the server's embedding, which uses all labels."""

    def search(self, task):
        """Answer all queries."""
        settings = self.get_params()
        # The server makes its start from the seed; PrivateMail has no parameter `init`.
        del settings["init"], settings["random_state"]
        seed = int(as_generator(self.random_state).integers(2**31))
        server = GalleryServer(PrivateMail(start_seed=seed, **settings), task)
        return task.ranks(server.gallery_, server.gallery_, task.spaced())


class PrivateMailSearch(PrivateMail):
    """Search by one query at a time among public images, aligned with the server's embedding."""

    def search(self, task):
        """Answer the queries."""
        self.fit(task.X_public, task.y_public)
        server = GalleryServer(self, task)
        queries = task.spaced(task.n_queries)
        batches = np.split(queries, range(_BATCH, len(queries), _BATCH))
        located = np.concatenate([server.locate(sent_for(self, task, b)) for b in batches])
        return task.ranks(located, server.gallery_, queries) | _guaranteed(self.guarantee_)


def sent_for(model: PrivateMail, task: RetrievalTask, queries: np.ndarray) -> np.ndarray:
    """Return the released public rows and, last, the query's row for some gallery images.

    With dummies, only the row of the query is kept.
    """
    labels = task.client_labels(queries)
    if not model.obfuscate:
        return model.release(task.X_gallery[queries], labels)
    places = np.abs(labels[:, None] - model.classes_).argmin(axis=1)  # nearest drawn class
    rows = model.release(task.X_gallery[queries], model.classes_[places])
    n_public = len(task.y_public)
    # After the public rows comes one row per class: the query in its own class, dummies in the
    # others.
    own = rows[np.arange(len(rows)), n_public + places]
    return np.concatenate([rows[:, :n_public], own[:, None]], axis=1)


class DSNESearch(DPdSNE):
    """Search by placing queries among public images in the t-SNE embedding of all images.

    The paper's variant places one query at a time.
    """

    def search(self, task):
        """Answer all queries, or `n_placed` of them with the paper's variant."""
        n_public = len(task.y_public)
        self.set_params(perplexity=min(30.0, (n_public - 1) / 3.0))
        self.fit(unit_rows(task.X_public), task.tsne[:n_public])
        queries = task.spaced(task.n_placed if self.variant == "paper" else None)
        rows = unit_rows(task.X_gallery[queries])
        if self.variant == "paper":
            placed = np.concatenate([self.transform(row[None]) for row in rows])
            guarantee = self.guarantee_of(1)
        else:
            placed, guarantee = self.transform(rows), self.guarantee_
        return task.ranks(placed, task.tsne[n_public:], queries) | _guaranteed(guarantee)


class PCASearch(PrivatePCA):
    """Search by coordinates along private components of all gallery images, as published.

    The components are private, but the coordinates are not.
    """

    def search(self, task):
        """Answer all queries."""
        coordinates = self.fit_transform(unit_rows(task.X_gallery).astype(np.float64))
        ranks = task.ranks(coordinates, coordinates, task.spaced())
        return ranks | {"guaranteed": np.array(math.inf)}


class ProjectionSearch(PrivateRandomProjection):
    """Search by noisy random projections of queries in a gallery without noise."""

    def search(self, task):
        """Answer all queries."""
        rows = unit_rows(task.X_gallery).astype(np.float64)
        self.fit(unit_rows(task.X_public))
        gallery = rows @ self.components_.T
        ranks = task.ranks(self.transform(rows), gallery, task.spaced())
        return ranks | _guaranteed(self.guarantee_)


def _guaranteed(guarantee):
    epsilon = math.inf if guarantee.definition == "none" else guarantee.epsilon
    return {"guaranteed": np.array(float(epsilon))}
