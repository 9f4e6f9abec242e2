"""Ways to look up a gallery's images in it, as the experiments need them, composed of estimators.

Each has ``search(task)``, which returns what a `privclust.experiments.retrieval.RetrievalTask`
records of the answers, and where there is a guarantee what it is.
"""

from __future__ import annotations

import hashlib
import math
from typing import ClassVar

import numpy as np

from privclust.embedding import (
    SMLQ,
    DPdSNE,
    PrivateMail,
    PrivatePCA,
    PrivateRandomProjection,
    RetrievalServer,
)
from privclust.embedding._smlq import FeatureLaplacian, unit_rows
from privclust.features import pca_features
from privclust.privacy import Neighbours, Sensitivity
from privclust.privacy.measurements import Gaussian, analytic_gaussian_sigma
from privclust.privacy.noise import noise_source
from privclust.validation import as_generator

_NO_NOISE = 1e9  # an epsilon at which noise is some 1e-8 of an embedding
_TOGETHER = 256  # queries whose embeddings are held at once: 4 MB with 1,000 public images


class FeatureSearch:
    """Nearest neighbours of the features themselves, of norm 1, without privacy.

    Parameters
    ----------
    n_components : int or None
        Principal components that are kept instead; None keeps the features.
    """

    def __init__(self, n_components=None):
        self.n_components = n_components

    def search(self, task):
        """Answer all queries."""
        rows = unit_rows(task.X_gallery)
        if self.n_components is not None:
            rows = pca_features(rows, self.n_components)
        queries = task.some(None)
        return task.ranks(rows, rows, queries)


class _SharedSMLQ(SMLQ):
    """SMLQ that takes the Laplacian over from the fit before, if its features are the same."""

    _last: ClassVar[dict[tuple, FeatureLaplacian]] = {}

    def _laplacian(self, X):
        digest = hashlib.blake2b(np.ascontiguousarray(X).data).digest()
        key = (digest, X.shape, X.dtype.str, self._width(), self.variant)
        if key not in self._last:
            self._last.clear()  # one at a time: 300 MB for CIFAR-100
            self._last[key] = super()._laplacian(X)
        return self._last[key]


class GalleryServer(RetrievalServer):
    """The server of a task; on the same images the kernel of their features is made once."""

    _embedding = _SharedSMLQ

    def __init__(self, model, task):
        super().__init__(model, task.X_public, task.y_public, task.X_gallery, task.y_gallery)


class EmbeddingSearch:
    """Gallery images look each other up in the server's own embedding, which knows all labels.

    Parameters
    ----------
    n_components, alpha, sigma, init_scale, n_iter, variant
        See `privclust.embedding.SMLQ`.
    random_state : numpy.random.Generator
        Draws the start.
    """

    def __init__(
        self,
        n_components=2,
        *,
        alpha=0.6,
        sigma=6.0,
        init_scale=1e-8,
        n_iter=5,
        variant="paper",
        random_state=None,
    ):
        self.settings = {
            "n_components": n_components,
            "alpha": alpha,
            "sigma": sigma,
            "init_scale": init_scale,
            "n_iter": n_iter,
            "variant": variant,
        }
        self.random_state = random_state

    def search(self, task):
        """Answer all queries."""
        seed = int(as_generator(self.random_state).integers(2**31))
        model = PrivateMail(start_seed=seed, **self.settings)
        server = GalleryServer(model, task)
        return task.ranks(server.gallery_, server.gallery_, task.some(None))


class PrivateMailSearch:
    """Algorithm 1: one query at a time among public images, aligned with the server's embedding.

    Parameters
    ----------
    n_components, alpha, sigma, init_scale, n_iter, epsilon, delta, variant, label_after_noise
        See `privclust.embedding.PrivateMail`.
    released : {"feature", "embedding"}
        Of the variant ``"sound"``.
    n_queries : int or None
        How many gallery images query; None for all.
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
        label_after_noise=None,
        released="feature",
        n_queries=None,
        random_state=None,
    ):
        self.settings = {
            "n_components": n_components,
            "alpha": alpha,
            "sigma": sigma,
            "init_scale": init_scale,
            "n_iter": n_iter,
            "variant": variant,
            "label_after_noise": label_after_noise,
            "released": released,
        }
        self.epsilon = epsilon
        self.delta = delta
        self.n_queries = n_queries
        self.random_state = random_state

    def search(self, task):
        """Answer the queries."""
        rng = as_generator(self.random_state)
        model = PrivateMail(
            epsilon=self.epsilon,
            delta=self.delta,
            start_seed=int(rng.integers(2**31)),
            random_state=rng,
            **self.settings,
        ).fit(task.X_public, task.y_public)
        server = GalleryServer(model, task)
        queries = task.some(self.n_queries)
        located = np.concatenate(
            [
                server.locate(model.release(task.X_gallery[some], task.client_labels(some)))
                for some in np.split(queries, range(_TOGETHER, len(queries), _TOGETHER))
            ]
        )
        return task.ranks(located, server.gallery_, queries) | _guaranteed(model.guarantee_)


class NoiselessSearch(PrivateMailSearch):
    """The same without noise worth speaking of: what one query among public images can be found by.

    Parameters
    ----------
    n_components, alpha, sigma, init_scale, n_iter, variant, label_after_noise, n_queries
        As of `PrivateMailSearch`.
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
        variant="paper",
        label_after_noise=None,
        n_queries=None,
        random_state=None,
    ):
        super().__init__(
            n_components,
            alpha=alpha,
            sigma=sigma,
            init_scale=init_scale,
            n_iter=n_iter,
            epsilon=_NO_NOISE,
            variant=variant,
            label_after_noise=label_after_noise,
            n_queries=n_queries,
            random_state=random_state,
        )


class TSNESearch:
    """Nearest neighbours in a t-SNE embedding of gallery and public images, without privacy.

    Parameters
    ----------
    shared : mapping
        ``tsne``, of `privclust.experiments.retrieval.share_tsne`.
    """

    def __init__(self, shared):
        self.shared = shared

    def search(self, task):
        """Answer all queries."""
        rows = self.shared["tsne"][len(task.y_public) :]
        return task.ranks(rows, rows, task.some(None))


class DSNESearch:
    """Each query is placed by DP-dSNE among public images in that t-SNE embedding.

    Parameters
    ----------
    epsilon, delta, variant
        See `privclust.embedding.DPdSNE`. The paper's variant places one query at a time.
    shared : mapping
        As in `TSNESearch`.
    n_placed : int or None
        How many gallery images query with the paper's variant; None for all. The other has all.
    random_state : numpy.random.Generator
    """

    def __init__(
        self,
        shared,
        *,
        epsilon=0.1,
        delta=1e-5,
        variant="sound",
        n_placed=None,
        random_state=None,
    ):
        self.shared = shared
        self.epsilon = epsilon
        self.delta = delta
        self.variant = variant
        self.n_placed = n_placed
        self.random_state = random_state

    def search(self, task):
        """Answer the queries."""
        n_public, embedding = len(task.y_public), self.shared["tsne"]
        model = DPdSNE(
            epsilon=self.epsilon,
            delta=self.delta,
            variant=self.variant,
            perplexity=min(30.0, (n_public - 1) / 3.0),
            random_state=self.random_state,
        ).fit(unit_rows(task.X_public), embedding[:n_public])
        queries = task.some(self.n_placed if self.variant == "paper" else None)
        rows = unit_rows(task.X_gallery[queries])
        if self.variant == "paper":
            placed = np.concatenate([model.transform(row[None]) for row in rows])
            guarantee = model.guarantee_of(1)
        else:
            placed, guarantee = model.transform(rows), model.guarantee_
        found = task.ranks(placed, embedding[n_public:], queries)
        return found | _guaranteed(guarantee)


class PCASearch:
    """Private principal components.

    Parameters
    ----------
    released : {"components", "query"}
        ``"components"``, as published: those of all gallery images are released with noise, and
        images are looked up by their coordinates along them, which nothing protects. ``"query"``:
        components of public images, and the query's coordinates with noise.
    mechanism, n_sweeps
        See `privclust.embedding.PrivatePCA`; for ``"components"``.
    n_components : int
    epsilon, delta : float
    random_state : numpy.random.Generator
    """

    def __init__(
        self,
        n_components=2,
        *,
        released="query",
        mechanism="gaussian",
        n_sweeps=10,
        epsilon=0.1,
        delta=1e-5,
        random_state=None,
    ):
        self.n_components = n_components
        self.released = released
        self.mechanism = mechanism
        self.n_sweeps = n_sweeps
        self.epsilon = epsilon
        self.delta = delta
        self.random_state = random_state

    def search(self, task):
        """Answer all queries."""
        rows, queries = unit_rows(task.X_gallery).astype(np.float64), task.some(None)
        if self.released == "components":
            model = PrivatePCA(
                self.n_components,
                epsilon=self.epsilon,
                delta=self.delta,
                mechanism=self.mechanism,
                n_sweeps=self.n_sweeps,
                norm_bound=1.0 + 1e-6,  # rounding of float32 features
                random_state=self.random_state,
            ).fit(rows)
            coordinates = model.transform(rows)
            return task.ranks(coordinates, coordinates, queries) | {
                "guaranteed": np.array(math.inf)
            }
        directions = np.linalg.svd(unit_rows(task.X_public), full_matrices=False)[2]
        coordinates = rows @ directions[: self.n_components].T
        bound = Sensitivity(2.0, "l2", Neighbours.REPLACE_ONE, "two vectors of norm at most 1")
        scale = analytic_gaussian_sigma(bound, self.epsilon, self.delta)
        noised = Gaussian(bound, scale).release(coordinates, noise_source(self.random_state))
        return task.ranks(noised, coordinates, queries) | {"guaranteed": np.array(self.epsilon)}


class ProjectionSearch:
    """Each query is projected at random and released with noise; the gallery has none.

    Parameters
    ----------
    n_components, epsilon, delta, neighbours
        See `privclust.embedding.PrivateRandomProjection`.
    random_state : numpy.random.Generator
    """

    def __init__(
        self, n_components=2, *, epsilon=0.1, delta=1e-5, neighbours="row", random_state=None
    ):
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.random_state = random_state

    def search(self, task):
        """Answer all queries."""
        rows = unit_rows(task.X_gallery).astype(np.float64)
        model = PrivateRandomProjection(
            self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            neighbours=self.neighbours,
            norm_bound=1.0 + 1e-6,  # rounding of float32 features
            random_state=self.random_state,
        ).fit(unit_rows(task.X_public))
        gallery = rows @ model.components_.T
        found = task.ranks(model.transform(rows), gallery, task.some(None))
        return found | _guaranteed(model.guarantee_)


class LabelResponse:
    r"""The query's label by randomised response: a random set of k classes, one image of each.

    A set with the true class has :math:`e^\epsilon` times the probability of one without, so that
    the label, with whatever goes with it, is epsilon-private; for classes that client and server
    both know. The hit rate :math:`k e^\epsilon / (k e^\epsilon + C - k)` is within a few per cent
    of the ceiling of `privclust.metrics.retrieval.recall_ceiling`. Features do nothing here.

    Parameters
    ----------
    epsilon : float
    delta : float
        Not spent.
    n_sent : int
        k, images that come back.
    random_state : numpy.random.Generator
    """

    def __init__(self, *, epsilon=0.1, delta=1e-5, n_sent=8, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.n_sent = n_sent
        self.random_state = random_state

    def search(self, task):
        """Answer all queries, up to `n_sent` images."""
        queries = task.some(None)
        n, n_classes = len(queries), int(task.y_gallery.max()) + 1
        odds = self.n_sent * math.exp(self.epsilon)
        hit = odds / (odds + max(n_classes - self.n_sent, 0))
        is_hit = as_generator(self.random_state).random(n) < hit
        ranks = np.where(is_hit, self.n_sent - 1, len(task.y_gallery)).astype(np.int32)
        return {
            "ranks": ranks,
            "queries": queries.astype(np.int32),
            "guaranteed": np.array(self.epsilon),
        }


def _guaranteed(guarantee):
    """Return the epsilon that a guarantee states; infinite for none."""
    epsilon = math.inf if guarantee.definition == "none" else guarantee.epsilon
    return {"guaranteed": np.array(float(epsilon))}
