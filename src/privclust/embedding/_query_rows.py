"""The rows that a query adds to the public ones: one row, or one per class (Algorithm 1)."""

from __future__ import annotations

import numpy as np

from privclust.embedding._smlq import FLOORS, LabelLaplacian, label_matrix
from privclust.embedding._smlq_kernels import first_iterate
from privclust.embedding._smlq_sensitivity import exchanged_sensitivity, proved_sensitivity

_MAX_LABELS = 4096  # weights between all labels are kept as a matrix


def label_range(classes: np.ndarray) -> np.ndarray:
    """Return all labels that a query may have, from the sorted public labels."""
    low, high = int(classes[0]), int(classes[-1])
    if high - low >= _MAX_LABELS:
        raise ValueError(
            f"y must be labels within {_MAX_LABELS} of each other, got {low} to {high}: number the "
            "classes from 0"
        )
    return np.arange(low, high + 1)


class QueryRow:
    """The query as one row after the public rows."""

    def __init__(self, features, y, values, start, *, alpha, width, variant) -> None:
        self._y, self._values, self._start = y, values, start
        self._alpha, self._width, self._variant = alpha, width, variant
        self._columns = np.ascontiguousarray(start.T)
        self.matrix = label_matrix(values, variant, width)
        self._degrees = features.degrees
        self._products = np.ascontiguousarray(features.kernel_dot(start[: len(y)]).T)
        self._classes = np.append(np.searchsorted(values, y), 0)

    def classes(self, label: int | None) -> np.ndarray:
        """Return the labels of all rows as indices into `values`, -1 without label (None)."""
        self._classes[-1] = -1 if label is None else label
        return self._classes

    def first_iterates(self, weights, labels, rng) -> np.ndarray:
        """Return first iterates (m, k, n_rows), transposed.

        `weights` (m, n) are kernel values of queries and public images, `labels` (m,) indices into
        `values`.
        """
        columns = np.empty((len(weights), *self._columns.shape))
        for row, label, image in zip(weights, labels, columns, strict=True):
            first_iterate(
                row, self._degrees, self._products, self._columns, self.classes(label),
                self.matrix, self._variant == "code", self._alpha, FLOORS[self._variant], image,
            )  # fmt: skip
        return columns

    def sensitivity(self, unit: float) -> float:
        """Return the sensitivity of the first iterate to a replaced query, in that unit."""
        return proved_sensitivity(
            self._degrees, self._products.T / unit, self._start / unit, self._y, self._values,
            alpha=self._alpha, width=self._width, variant=self._variant,
        )  # fmt: skip


class ClassRows:
    """One row per class: the query for its own class, a dummy for each other class.

    The order, labels and starts (rows of Q) of these rows do not depend on the query.
    """

    def __init__(self, kernel, y, values, start, *, alpha, width, variant) -> None:
        self._kernel, self._start, self._width = kernel, start, width
        self._columns = np.ascontiguousarray(start.T)
        self._floor, self._n_public = FLOORS.get(variant, 0.0), len(y)
        self.matrix = label_matrix(values, variant, width)
        present, places = np.unique(y, return_inverse=True)
        labels = np.append(y, present)
        self._labelled = alpha * LabelLaplacian(labels, variant, width).dot(start)
        self._classes = np.searchsorted(values, labels)
        self._unlabelled = self._classes.copy()
        self._unlabelled[len(y) :] = -1
        self._by_class, self._counts = np.argsort(places, kind="stable"), np.bincount(places)
        self._first = np.cumsum(self._counts) - self._counts
        others = kernel.copy()
        np.fill_diagonal(others, 0.0)
        self._degrees, self._products = others.sum(axis=1), self._columns[:, : len(y)] @ others

    def classes(self, label: int | None) -> np.ndarray:
        """Return the labels of all rows as indices into `values`; for None, -1 for class rows."""
        return self._unlabelled if label is None else self._classes

    def draw(self, n_queries: int, rng: np.random.Generator) -> np.ndarray:
        """Return a random public image of each class for each query, (n_queries, C)."""
        places = rng.random((n_queries, len(self._counts))) * self._counts
        return self._by_class[self._first + places.astype(np.int64)]

    def first_iterates(self, weights, labels, rng) -> np.ndarray:
        """As in `QueryRow`; a dummy is also drawn for the query's class, and not used."""
        columns = np.empty((len(weights), *self._columns.shape))
        places = np.searchsorted(self._classes[self._n_public :], labels)
        dummies = self.draw(len(weights), rng)
        for row, chosen, place, image in zip(weights, dummies, places, columns, strict=True):
            self._first_iterate(row, chosen, place, image)
        return columns

    def _first_iterate(self, weights, dummies, place, out):
        n = self._n_public
        public = self._kernel[dummies]
        among = public[:, dummies]
        public[place] = weights
        among[place] = among[:, place] = weights[dummies]
        np.fill_diagonal(among, 0.0)
        degrees = np.concatenate(
            [self._degrees + public.sum(axis=0), public.sum(axis=1) + among.sum(axis=1)]
        )
        out[:, :n] = self._products + self._columns[:, n:] @ public
        out[:, n:] = self._columns[:, :n] @ public.T + self._columns[:, n:] @ among
        out += self._labelled.T - degrees * self._columns
        out *= 0.5 / np.where(degrees > 0.0, degrees, self._floor or np.inf)
        out += self._columns

    def sensitivity(self, unit: float) -> float:
        """Return the sensitivity of the first iterate to a replaced query, in that unit."""
        n_classes = len(self._counts)
        return exchanged_sensitivity(
            self._start / unit, self._labelled / unit, n_classes, self._width
        )
