"""The rows that a query adds to the public ones: one row, or one per class (Algorithm 1)."""

from __future__ import annotations

import numpy as np

from privclust.embedding._smlq import (
    FLOORS,
    LabelLaplacian,
    first_iterate,
    kernel_dot,
    label_matrix,
)
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
    """The query as one row after the public rows.

    `kernel` (n, n) is that of the public rows, with zeros on its diagonal.
    """

    def __init__(self, kernel, y, values, start, *, alpha, width, variant) -> None:
        self._start, self._width, self._floor = start, width, FLOORS.get(variant, 0.0)
        self.matrix = label_matrix(values, variant, width)
        self._degrees = kernel.sum(axis=1, dtype=np.float64)
        self._products = kernel_dot(kernel, start[: len(y)])
        # the last place is that of the query, see `classes`
        self._classes = np.append(np.searchsorted(values, y), 0)
        self._labelled = np.array(
            [
                alpha * LabelLaplacian(np.append(y, label), variant, width).dot(start)
                for label in values
            ]
        )

    def classes(self, label: int | None) -> np.ndarray:
        """Return the labels of all rows as indices into `values`, -1 without label (None)."""
        self._classes[-1] = -1 if label is None else label
        return self._classes

    def first_iterates(self, weights, labels, rng) -> np.ndarray:
        """Return first iterates (m, k, n_rows), transposed.

        `weights` (m, n) are kernel values of queries and public images, `labels` (m,) indices into
        `values`.
        """
        columns = np.empty((len(weights), *self._start.shape[::-1]))
        for row, label, image in zip(weights, labels, columns, strict=True):
            image[:] = first_iterate(
                self._start, self._degrees, self._products, row[None], np.zeros((1, 1)),
                self._labelled[label], self._floor,
            ).T  # fmt: skip
        return columns

    def sensitivity(self, unit: float) -> float:
        """Return the sensitivity of the first iterate to a replaced query, in that unit."""
        products, start, labelled = self._products, self._start, self._labelled
        return proved_sensitivity(
            self._degrees, products / unit, start / unit, labelled / unit, self._width
        )


class ClassRows:
    """One row per class: the query for its own class, a dummy for each other class.

    The order, labels and starts (rows of Q) of these rows do not depend on the query. For arguments
    see `QueryRow`.
    """

    def __init__(self, kernel, y, values, start, *, alpha, width, variant) -> None:
        self._kernel, self._start, self._width = kernel, start, width
        self._floor, self._n_public = FLOORS.get(variant, 0.0), len(y)
        self.matrix = label_matrix(values, variant, width)
        present, places = np.unique(y, return_inverse=True)
        labels = np.append(y, present)
        self._labelled = alpha * LabelLaplacian(labels, variant, width).dot(start)
        self._classes = np.searchsorted(values, labels)
        self._unlabelled = self._classes.copy()
        self._unlabelled[len(y) :] = -1
        # public rows ordered by class; those of class c begin at _first[c]
        self._by_class, self._counts = np.argsort(places, kind="stable"), np.bincount(places)
        self._first = np.cumsum(self._counts) - self._counts
        self._degrees = kernel.sum(axis=1, dtype=np.float64)
        self._products = kernel_dot(kernel, start[: len(y)])

    def classes(self, label: int | None) -> np.ndarray:
        """Return the labels of all rows as indices into `values`; for None, -1 for class rows."""
        return self._unlabelled if label is None else self._classes

    def draw(self, n_queries: int, rng: np.random.Generator) -> np.ndarray:
        """Return a random public image of each class for each query, (n_queries, C)."""
        places = rng.random((n_queries, len(self._counts))) * self._counts
        return self._by_class[self._first + places.astype(np.int64)]

    def first_iterates(self, weights, labels, rng) -> np.ndarray:
        """As in `QueryRow`; a dummy is also drawn for the query's class, and not used."""
        columns = np.empty((len(weights), *self._start.shape[::-1]))
        places = np.searchsorted(self._classes[self._n_public :], labels)
        dummies = self.draw(len(weights), rng)
        for row, chosen, place, image in zip(weights, dummies, places, columns, strict=True):
            public = self._kernel[chosen].astype(np.float64, copy=False)
            # a dummy is a copy of its image, and the public kernel has zeros on its diagonal
            public[np.arange(len(chosen)), chosen] = 1.0
            among = public[:, chosen]
            # the query takes the place of the dummy of its class
            public[place] = row
            among[place] = among[:, place] = row[chosen]
            np.fill_diagonal(among, 0.0)
            image[:] = first_iterate(
                self._start, self._degrees, self._products, public, among, self._labelled,
                self._floor,
            ).T  # fmt: skip
        return columns

    def sensitivity(self, unit: float) -> float:
        """Return the sensitivity of the first iterate to a replaced query, in that unit."""
        start, labelled = self._start / unit, self._labelled / unit
        return exchanged_sensitivity(start, labelled, len(self._counts), self._width)
