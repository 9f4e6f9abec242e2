"""Cases of the privacy audit: PrivateMail, private projections and private t-SNE."""

from __future__ import annotations

from functools import partial

import numpy as np

from privclust.embedding import DPdSNE, PrivateMail, PrivatePCA, PrivateRandomProjection, unit_rows
from privclust_audit.black_box import vectorised
from privclust_papers.audit.cases.audit_case import N_PUBLIC, AuditCase, along, public_features

_AXES = np.eye(2)
_LABELS = 10, 80  # labels of the two halves of the public images
_SMALL_DELTA = 1e-5
_LITTLE_NOISE = 1e9  # an epsilon with negligible noise
_N_AVERAGED = 200  # releases, each with its own dummies


def _public_set():
    return public_features(), np.repeat(_LABELS, N_PUBLIC // 2)


class PrintedMail(AuditCase):
    """PrivateMail as printed, or in the authors' code: one query.

    Without dummies and with the label in the iterates after the noise, queries with equal features
    and labels 10 and 80 are distinguished by the position of the query between the public images of
    both labels. Otherwise (without that label, or with the dummies of Algorithm 1) the queries also
    have opposite features. With dummies, replacing the query changes two rows: attacks use the
    positions of both, their distance, and the projection on the difference without noise.
    """

    delta = _SMALL_DELTA
    draws, least_draws = 60_000, 3_000

    def __init__(
        self, variant: str = "paper", label_after_noise: bool = True, obfuscate: bool = False
    ) -> None:
        # the paper has dummies and the code has none; leaving out the label is our correction
        is_repaired = variant == "paper" and not label_after_noise
        self.claimant = variant if obfuscate else "ours" if is_repaired else "code"
        # the code's noise is the square of the needed scale, which is far below 1
        self.is_private = variant == "paper" and (obfuscate or not label_after_noise)
        self._settings = {
            "n_components": 10, "variant": variant, "label_after_noise": label_after_noise,
            "obfuscate": obfuscate,
        }  # fmt: skip
        self._public, self._labels = _public_set()
        x = self._public[2]
        self.data = x, _LABELS[0]
        is_leaking = label_after_noise and not obfuscate
        self.neighbour = (x if is_leaking else -x), _LABELS[1]
        self.statistic = vectorised("between_labels", self._between_labels)
        if obfuscate:
            without_noise = (
                self._released(data, 0, _LITTLE_NOISE, _N_AVERAGED).mean(axis=0)
                for data in (self.data, self.neighbour)
            )
            difference = np.subtract(*without_noise)
            self.statistic = [
                self.statistic,
                vectorised("other_row", partial(self._between_labels, row=-2)),
                vectorised("difference", lambda outputs: _projections(outputs, difference)),
                vectorised("rows_apart", lambda outputs: _lengths(outputs[:, -1] - outputs[:, -2])),
            ]

    def many(self, data, rng, n):
        return self._released(data, rng, self.epsilon, n)

    def _released(self, data, random_state, epsilon, n):
        model = PrivateMail(
            random_state=random_state, epsilon=epsilon, delta=self.delta, **self._settings
        ).fit(self._public, self._labels)
        x, label = data
        return model.release(np.repeat(x[None], n, axis=0), np.full(n, label))

    def _between_labels(self, outputs, row=-1):
        """Return the position of a row between the images of both labels, from 0 to 1."""
        public = outputs[:, :N_PUBLIC]
        first, second = (public[:, self._labels == label].mean(axis=1) for label in _LABELS)
        way = second - first
        along_way = np.einsum("ij,ij->i", outputs[:, row] - first, way)
        return along_way / np.einsum("ij,ij->i", way, way)


def _projections(outputs, direction):
    return np.einsum("ijk,jk->i", outputs, direction)


def _lengths(rows):
    return np.linalg.norm(rows, axis=1)


class CorrectedMail(AuditCase):
    """`PrivateMail` with its defaults: a query and its opposite."""

    delta = 0.01
    draws, least_draws = 1_000_000, 50_000

    def __init__(self, released: str = "feature") -> None:
        self._released = released
        model, (X, _) = self._fitted(0), _public_set()
        X = unit_rows(X)
        images = model.public_map(X)
        # The pair of a public row and an opposite of one whose images are farthest apart.
        gaps = ((images[:, None] - model.public_map(-X)) ** 2).sum(axis=2)
        i, j = np.unravel_index(gaps.argmax(), gaps.shape)
        self.data, self.neighbour = X[i], -X[j]
        first, second = (model.public_map(x[None]) for x in (self.data, self.neighbour))
        self.statistic = along(first - second)

    def many(self, data, rng, n):
        return self._fitted(rng).release(np.repeat(data[None], n, axis=0))

    def _fitted(self, random_state):
        model = PrivateMail(released=self._released, **self.budget, random_state=random_state)
        return model.fit(*_public_set())


class WholePCA(AuditCase):
    """`PrivatePCA` end to end: one record at 0 or 90 degrees, all components and eigenvalues."""

    delta = 0.01
    draws, least_draws = 60_000, 4_000
    data, neighbour = _AXES[:1], _AXES[1:]

    def __init__(self, mechanism: str = "gaussian") -> None:
        self._mechanism = mechanism
        self.statistic = along(np.diag([1.0, -1.0]))

    def __call__(self, data, rng):
        model = PrivatePCA(
            2, **self.budget, mechanism=self._mechanism, norm_bound=1.0, random_state=rng
        ).fit(data)
        # The signs of components are arbitrary, and cancel in this product.
        return model.components_.T * model.explained_ @ model.components_


class ExponentialPCA(AuditCase):
    """`PrivatePCA` by the exponential mechanism: two records at 0 degrees, or one at 90."""

    epsilon = 4.0
    draws, least_draws, closeness = 100_000, 4_000, 0.6  # only rare lines have a larger loss
    data, neighbour = _AXES[[0, 0]], _AXES[[0, 1]]
    statistic = staticmethod(vectorised("square", lambda outputs: outputs[:, 0] ** 2))

    def __call__(self, data, rng):
        model = PrivatePCA(
            1, epsilon=self.epsilon, mechanism="exponential", norm_bound=1.0, random_state=rng
        )
        return model.fit(data).components_[0]


class RandomProjection(AuditCase):
    """`PrivateRandomProjection`: the row, or the attribute, with the largest change."""

    delta = 0.01
    draws, least_draws = 1_000_000, 50_000

    def __init__(self, neighbours: str = "row") -> None:
        self._model = PrivateRandomProjection(
            2, **self.budget, neighbours=neighbours, norm_bound=1.0, random_state=0
        ).fit(np.zeros((1, 4)))
        P = self._model.components_.T
        if neighbours == "row":
            # The direction that the projection shrinks least, inside the ball despite rounding.
            self.data = np.linalg.svd(P)[0][:, 0] * (1.0 - 1e-12)
            self.neighbour = -self.data
        else:
            self.data = np.eye(4)[(P**2).sum(axis=1).argmax()]
            self.neighbour = np.zeros(4)
        self.statistic = along((self.data - self.neighbour) @ P)

    def many(self, data, rng, n):
        """Return n projections of the row, under the same public matrix."""
        return self._model.with_noise_from(rng).transform(np.repeat(data[None], n, axis=0))


class PrintedTSNE(AuditCase):
    """DP-dSNE's noise for one clipped gradient, with two rows in a call and one step.

    One anchor is near the rows, and near the middle of the embedding. If the record is close to the
    other row, they are nearest neighbours without attraction, and both are repelled by the anchor.
    Otherwise both are attracted by the anchor: two gradients change sign.
    """

    claimant, is_private = "paper", False
    epsilon, delta = 2.0, 0.01
    draws, least_draws = 100_000, 16_000
    _ANCHORS = np.array([[0.0], [100.0], [200.0]])
    _EMBEDDING = np.array([[-1.0], [-5e4], [5e4 + 1.0]])
    data, neighbour = np.array([[0.8], [1.0]]), np.array([[-5.0], [1.0]])
    statistic = staticmethod(along([1.0, 1.0]))

    def __init__(self) -> None:
        model = DPdSNE(
            # With a perplexity near 1, only the nearest anchor attracts a row.
            variant="paper", **self.budget, perplexity=1.01, max_iter=1, learning_rate=1.0,
            clip=1e-3, random_state=0,
        )  # fmt: skip
        self._model = model.fit(self._ANCHORS, self._EMBEDDING)

    def __call__(self, data, rng):
        return self._model.with_noise_from(rng).transform(data)


class CorrectedTSNE(AuditCase):
    """`DPdSNE` with its defaults: a row close to one of two anchors."""

    delta = 0.01
    draws, least_draws = 400_000, 20_000
    data, neighbour = np.array([-1.0]), np.array([1.0])
    statistic = staticmethod(along(1.0))

    def many(self, data, rng, n):
        """Return n embeddings; rows of one call are independent."""
        model = DPdSNE(
            **self.budget, perplexity=1.01, max_iter=1, learning_rate=0.5, random_state=rng
        ).fit(np.array([[-1.0], [1.0], [50.0], [-50.0]]), np.array([[-1.0], [1.0], [9.0], [-9.0]]))
        return model.transform(np.repeat(data[None], n, axis=0))
