r"""Rows seen in a few random directions, which clusters are found in where features are many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from privclust.core.compiled import kernel
from privclust.privacy.bounds import Box


@dataclass(frozen=True)
class Projection:
    """Rows as coordinates along orthonormal columns, drawn without the data, about a `middle`."""

    basis: np.ndarray
    middle: np.ndarray

    @classmethod
    def drawn(cls, middle: np.ndarray, n_directions: int, rng: np.random.Generator) -> Self:
        """Draw directions, uniformly."""
        basis = np.linalg.qr(rng.standard_normal((len(middle), n_directions)))[0]
        return cls(np.ascontiguousarray(basis), middle)

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Return the coordinates of rows (n, n_features), each by itself, (n, n_directions)."""
        out = np.zeros((len(X), self.basis.shape[1]))
        _project(np.ascontiguousarray(X), self.middle, self.basis, out)
        return out

    def box(self, box: Box) -> Box:
        """Return a box that holds the coordinates of all rows of a box about the middle."""
        reach = box.half_widths @ np.abs(self.basis)
        return Box(-reach, reach)


@kernel()
def _project(X, middle, basis, out):
    """Add up the products of each row in the order of features."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = np.float64(X[i, j]) - middle[j]
            for c in range(basis.shape[1]):
                out[i, c] += x * basis[j, c]
