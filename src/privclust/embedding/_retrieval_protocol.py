"""The protocol of private retrieval: a client, a server and the messages between them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import clone

from privclust.core.validation import check_integer
from privclust.embedding._alignment import align
from privclust.embedding._privatemail import PrivateMail
from privclust.embedding._smlq import SMLQ, checked_labels

_GALLERY_STREAM = 1  # random stream of the start for the gallery, next to the public start


@dataclass(frozen=True)
class Message:
    """The complete message of a client.

    Attributes
    ----------
    queries : ndarray of shape (n_queries, n_components)
        Rows to look up: the query, or the query among dummies.
    anchors : ndarray of shape (n_public, n_components) or None
        Public images in the client's embedding, for alignment; None if queries are in public
        coordinates.
    k : int
        Number of neighbours requested for each row.

    Examples
    --------
    >>> message = Message(np.array([[0.5, 1.0]]), None, 3)
    >>> print(message)
    3 nearest of 1 row of 2 numbers, no anchors
      queries: 0.5 1
    >>> Message.from_json(message.to_json()).queries.tolist()
    [[0.5, 1.0]]
    """

    queries: np.ndarray
    anchors: np.ndarray | None
    k: int

    def __post_init__(self) -> None:
        check_integer("k", self.k, minimum=1)
        rows = [("queries", self.queries)]
        if self.anchors is not None:
            rows.append(("anchors", self.anchors))
        for name, values in rows:
            values = np.asarray(values)
            if values.dtype.kind not in "fiu" or values.ndim != 2 or not np.isfinite(values).all():
                raise ValueError(
                    f"{name} must be a matrix of finite numbers, got shape {values.shape} of dtype "
                    f"{values.dtype}"
                )
            object.__setattr__(self, name, values.astype(np.float64))

    def __str__(self) -> str:
        """Return a summary of the message, with the first numbers."""
        n, width = self.queries.shape
        anchors = "no anchors" if self.anchors is None else f"{len(self.anchors)} anchors"
        lines = [f"{self.k} nearest of {n} row{'s'[: n > 1]} of {width} numbers, {anchors}"]
        for name, rows in (("queries", self.queries), ("anchors", self.anchors)):
            if rows is not None and rows.size:
                shown = " ".join(f"{value:.4g}" for value in rows.ravel()[:6])
                lines.append(f"  {name}: {shown}{' ...' if rows.size > 6 else ''}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the message as JSON; numbers are exact."""
        anchors = None if self.anchors is None else self.anchors.tolist()
        return json.dumps({"queries": self.queries.tolist(), "anchors": anchors, "k": self.k})

    @classmethod
    def from_json(cls, text: str | bytes) -> Message:
        """Return the message of a JSON text, or raise a ValueError if it is malformed."""
        try:
            content = json.loads(text)
            queries = np.asarray(content["queries"], dtype=np.float64)
            anchors = content["anchors"]
            anchors = None if anchors is None else np.asarray(anchors, dtype=np.float64)
            k = content["k"]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise ValueError(f"message: not queries, anchors and k in JSON ({error})") from None
        return cls(queries, anchors, k)


class RetrievalClient:
    """The client, with a private image and a public set.

    Parameters
    ----------
    model : PrivateMail
        Settings of the release; the model is cloned and fitted to the public set. With
        ``obfuscate=True`` the message has one row per class (P_r of Algorithm 1), and the reply k
        images per class; with ``variant="code"`` the noise is too small to hide the query's row.
    X_public : array-like of shape (n_public, n_features)
    y_public : array-like of shape (n_public,)

    Attributes
    ----------
    model_ : PrivateMail
        The fitted model; its `guarantee_` is for one call of `ask`.

    Raises
    ------
    ValueError
        See `PrivateMail.fit`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 20)
    >>> X = np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3))
    >>> model = PrivateMail(epsilon=50.0, random_state=0)
    >>> client = RetrievalClient(model, X, y)
    >>> server = RetrievalServer(model, X, y, X, y)
    >>> message = client.ask(X[0], k=3)
    >>> y[client.read(server.answer(message))].tolist()
    [0, 0, 0]
    """

    def __init__(self, model: PrivateMail, X_public: ArrayLike, y_public: ArrayLike) -> None:
        y_public = checked_labels(y_public, "y_public")
        self._n_public = len(y_public)
        self.model_ = clone(model).fit(np.asarray(X_public), y_public)
        self._place = 0

    def ask(self, x: ArrayLike, label: int | None = None, *, k: int = 8) -> Message:
        """Return the message for one query; it spends the budget once.

        Parameters
        ----------
        x : array-like of shape (n_features,)
        label : int or None
            Not used with ``variant="corrected"``.
        k : int
            Number of neighbours to request.

        Returns
        -------
        Message

        Raises
        ------
        ValueError
            See `PrivateMail.release`.
        """
        x = np.asarray(x)
        if x.ndim != 1:
            raise ValueError(f"x must be one image's features, a vector, got shape {x.shape}")
        if self.model_.variant == "corrected":
            return Message(self.model_.release(x[None]), None, k)
        if label is None:
            raise ValueError(f"label is missing, and variant={self.model_.variant!r} needs it")
        rows = self.model_.release(x[None], [label])[0]
        if self.model_.obfuscate:
            self._place = int(np.searchsorted(self.model_.classes_, label))
        return Message(rows[self._n_public :], rows[: self._n_public], k)

    def read(self, reply: np.ndarray) -> np.ndarray:
        """Return the neighbours of the query from the reply to the last message.

        Parameters
        ----------
        reply : ndarray of shape (n_queries, k)
            Result of `RetrievalServer.answer`.

        Returns
        -------
        ndarray of shape (k,)
        """
        return np.asarray(reply)[self._place]


class RetrievalServer:
    """The server, with the gallery.

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
        return align(released[:, :-1], self.anchors_).apply(released[:, -1:])[:, 0]

    def answer(self, message: Message) -> np.ndarray:
        """Return the gallery rows nearest to each of the message's queries; ties in their order.

        Several threads may call this method at once.

        Parameters
        ----------
        message : Message

        Returns
        -------
        ndarray of shape (n_queries, k), int64

        Raises
        ------
        ValueError
            If the message does not match the gallery.
        """
        is_aligned = self.anchors_ is None
        if (message.anchors is None) != is_aligned:
            wanted = "no anchors" if is_aligned else f"{len(self.anchors_)} anchors"
            raise ValueError(f"message: this server expects {wanted}")
        queries = message.queries
        if not is_aligned:
            if message.anchors.shape != self.anchors_.shape:
                raise ValueError(
                    f"message: anchors must have shape {self.anchors_.shape}, got "
                    f"{message.anchors.shape}"
                )
            queries = align(message.anchors, self.anchors_).apply(queries)
        if message.k > len(self.gallery_):
            raise ValueError(
                f"message: k must be at most the size of the gallery, {len(self.gallery_)}, got "
                f"{message.k}"
            )
        distances = cdist(queries, self.gallery_, "sqeuclidean")
        return np.argsort(distances, axis=1, kind="stable")[:, : message.k]
