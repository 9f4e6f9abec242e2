r"""Random projections of rows with many features, in which clusters are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from privclust.core.compiled import kernel
from privclust.privacy.bounds import Box


@dataclass(frozen=True)
class Projection:
    """A map of rows to their coordinates along random orthonormal columns, about a `middle`."""

    basis: np.ndarray
    middle: np.ndarray

    @classmethod
    def drawn(cls, middle: np.ndarray, n_directions: int, rng: np.random.Generator) -> Self:
        """Return a map along orthonormal directions of a uniformly random subspace."""
        basis = np.linalg.qr(rng.standard_normal((len(middle), n_directions)))[0]
        return cls(np.ascontiguousarray(basis), middle)

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Return the coordinates of rows (n, n_features), each by itself, (n, n_directions)."""
        out = np.zeros((len(X), self.basis.shape[1]))
        _project(np.ascontiguousarray(X), self.middle, self.basis, out)
        return out

    def box(self, box: Box) -> Box:
        """Return a box that contains the coordinates of all rows of a box about the middle."""
        reach = box.half_widths @ np.abs(self.basis)
        return Box(-reach, reach)


@kernel()
def _project(X, middle, basis, out):
    """Multiply row by row, in the order of features, so that rows round independently."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = np.float64(X[i, j]) - middle[j]
            for c in range(basis.shape[1]):
                out[i, c] += x * basis[j, c]
