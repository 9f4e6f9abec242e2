"""The server of private retrieval: a gallery, and the places of released queries in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from privclust.embedding._alignment import align
from privclust.embedding._privatemail import PrivateMail
from privclust.embedding._smlq import SMLQ, checked_labels

_GALLERY_STREAM = 1  # random stream of the start for the gallery, next to the public start


class RetrievalServer:
    """The server, with the gallery. It needs no source of noise.

    Parameters
    ----------
    model : PrivateMail
        The public settings: variant, alpha, sigma, T, the seed of the start.
    X_public, y_public
        The client's public set, in the same order.
    X_gallery : array-like of shape (n_gallery, n_features)
    y_gallery : array-like of shape (n_gallery,) or None
        Needed for the embedding of ``variant="paper"`` and ``"code"``.

    Attributes
    ----------
    gallery_ : ndarray of shape (n_gallery, n_components)
        The searched rows: the gallery in a joint embedding with the public set (`SMLQ`), or under
        the public map.
    anchors_ : ndarray of shape (n_public, n_components) or None
        The public set in that embedding.

    Raises
    ------
    ValueError
        If gallery labels are missing, or see `PrivateMail.fit` and `SMLQ.fit`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 20)
    >>> X = np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3))
    >>> model = PrivateMail(epsilon=50.0, random_state=0).fit(X, y)
    >>> server = RetrievalServer(model, X, y, X)
    >>> place = server.locate(model.release(X[:1]))
    >>> nearest = np.argsort(np.linalg.norm(server.gallery_ - place, axis=1))[:3]
    >>> y[nearest].tolist()
    [0, 0, 0]
    """

    _embedding = SMLQ

    def __init__(
        self,
        model: PrivateMail,
        X_public: ArrayLike,
        y_public: ArrayLike,
        X_gallery: ArrayLike,
        y_gallery: ArrayLike | None = None,
    ) -> None:
        if model.variant == "corrected":
            # only the map is used, without noise: the seed has no effect
            public = clone(model).set_params(random_state=0).fit(X_public, y_public)
            self.gallery_, self.anchors_ = public.public_map(X_gallery), None
            return
        if y_gallery is None:
            raise ValueError(f"y_gallery is missing, and variant={model.variant!r} embeds with it")
        y_public = checked_labels(y_public, "y_public")
        y_gallery = checked_labels(y_gallery, "y_gallery")
        X_public, X_gallery = np.asarray(X_public), np.asarray(X_gallery)
        if X_public.ndim != 2 or X_public.shape[1:] != X_gallery.shape[1:]:
            raise ValueError(
                "X_gallery must have the features of X_public, got shapes "
                f"{X_gallery.shape} and {X_public.shape}"
            )
        k, n_public = model.n_components or 2, len(y_public)
        # the public start is that of the client; the gallery has a stream of its own
        seeds: tuple[Any, Any] = (model.start_seed, [model.start_seed, _GALLERY_STREAM])
        start = np.vstack(
            [
                np.random.default_rng(seed).normal(scale=model.init_scale, size=(n, k))
                for seed, n in zip(seeds, (n_public, len(y_gallery)), strict=True)
            ]
        )
        embedding = self._embedding(
            k,
            alpha=model.alpha,
            sigma=model.sigma,
            init_scale=model.init_scale,
            n_iter=model.n_iter,
            variant=model.variant,
            kernel=model.kernel,
            init=start,
        ).fit_transform(np.vstack([X_public, X_gallery]), np.append(y_public, y_gallery))
        self.anchors_, self.gallery_ = embedding[:n_public], embedding[n_public:]

    def locate(self, released: np.ndarray) -> np.ndarray:
        """Return queries in the gallery's coordinates, for many releases at once.

        Parameters
        ----------
        released : ndarray
            Result of `PrivateMail.release`; with dummies, only the public rows and the query's row.

        Returns
        -------
        ndarray of shape (n_queries, n_components)
        """
        if self.anchors_ is None:
            return released
        # public rows are in both embeddings and give the similarity
        return align(released[:, :-1], self.anchors_).apply(released[:, -1:])[:, 0]
