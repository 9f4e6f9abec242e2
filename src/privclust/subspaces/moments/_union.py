"""A union of subspaces as decoders of moments describe it, and priors of its parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import null_space

RIDGE = 0.5  # prior deviation of an amplitude, in parts of its mean
LEAST_AMPLITUDE = 0.05  # in parts of that mean
SPREAD_OF_RATIO = 0.7  # prior deviation of a ratio's logarithm
RANGE_OF_LOG_RATIO = -5.0, 0.4
_LEAST_AMPLITUDES, _MOST_OUTSIDE = 1e-3, 0.9  # where draws are nearly uniform


@dataclass(frozen=True)
class Union:
    """Subspaces with the amplitudes and spreads that explain moments.

    Attributes
    ----------
    bases : ndarray of shape (k, d, q)
        Orthonormal columns.
    spreads : ndarray of shape (k, q)
        Second moments of rows along them, in parts of their mean: eigenvalues of factors C.
    amplitudes : ndarray of shape (k,)
        Of degree 2. The part of rows over q, where no row lies beside its subspace.
    log_ratios : dict of int to float
        By degree from 4 on, what amplitudes are multiplied by.
    """

    bases: np.ndarray
    spreads: np.ndarray
    amplitudes: np.ndarray
    log_ratios: Mapping[int, float]

    @property
    def factors(self) -> np.ndarray:
        """C, shape (k, d, d)."""
        return (self.bases * self.spreads[:, None, :]) @ self.bases.transpose(0, 2, 1)

    @property
    def complements(self) -> np.ndarray:
        """Orthonormal bases of what is orthogonal to each subspace, (k, d, d - q)."""
        return np.stack([null_space(basis.T) for basis in self.bases])

    @property
    def weights(self) -> np.ndarray:
        """Parts of the rows, (k,)."""
        return self.amplitudes / self.amplitudes.sum()

    def turned(self, tangents: np.ndarray, complements: np.ndarray) -> Union:
        """Return it with bases U + V T, made orthonormal; tangents are (k, d - q, q)."""
        bases = np.linalg.qr(self.bases + complements @ tangents)[0]
        signs = np.where(np.einsum("kij,kij->kj", bases, self.bases) < 0, -1.0, 1.0)
        return replace(self, bases=bases * signs[:, None, :])

    @property
    def outside(self) -> float:
        """Part of the squares beside the subspaces, as amplitudes have it.

        With a part s there, amplitudes add up to (1 - s) / q - s / (d - q).
        """
        _, d, q = self.bases.shape
        total = min(max(float(self.amplitudes.sum()), _LEAST_AMPLITUDES), 1.0 / q)
        return (1.0 / q - total) / (1.0 / q + 1.0 / (d - q))

    def draw(
        self, n_rows: int, rng: np.random.Generator, outside: float | None = None
    ) -> np.ndarray:
        """Draw directions of rows near the subspaces, (n_rows, d), with squares beside them."""
        _, d, q = self.bases.shape
        part = min(self.outside if outside is None else outside, _MOST_OUTSIDE * (d - q) / d)
        deviation = math.sqrt(part / (d - q - d * part))
        labels = rng.choice(len(self.bases), size=n_rows, p=self.weights)
        inside = rng.standard_normal((n_rows, q)) * np.sqrt(self.spreads[labels])
        inside /= np.linalg.norm(inside, axis=1, keepdims=True)
        rows = np.einsum("ndq,nq->nd", self.bases[labels], inside)
        rows += deviation * rng.standard_normal((n_rows, d))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def prior_amplitude(n_clusters: int, dimension: int) -> float:
    """Return the amplitude of one of several equal clusters on their subspaces."""
    return 1.0 / (n_clusters * dimension)


def even_ratio(dimension: int, degree: int) -> float:
    """Return the ratio of amplitudes of a degree and 2, of rows spread evenly in a subspace.

    Examples
    --------
    >>> even_ratio(3, 2), even_ratio(3, 4)
    (1, 0.6)
    """
    return math.prod((2 * j + 1) / (dimension + 2 * j) for j in range(1, degree // 2))
