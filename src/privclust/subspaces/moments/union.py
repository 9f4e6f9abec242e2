"""A union of subspaces, as decoded from moments, and priors of its parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import null_space

LEAST_PRECISION = 1.0  # prior precision of a tangent: angles are at most a right angle
RIDGE = 0.5  # prior deviation of an amplitude, relative to its prior mean
LEAST_AMPLITUDE = 0.05  # least amplitude, relative to that mean
SPREAD_OF_RATIO = 0.7  # prior deviation of a ratio's logarithm
RANGE_OF_LOG_RATIO = -5.0, 0.4  # of the logarithm of a ratio
_N_PROBES, _N_TURNS = 2000, 30  # drawn rows and iterations for the deviations of normal rows
_MOST_OUTSIDE = 0.9  # largest share of squares outside subspaces, relative to uniform directions


@dataclass(frozen=True)
class Union:
    """Subspaces with the amplitudes and spreads that explain moments.

    Attributes
    ----------
    bases : ndarray of shape (k, d, q)
        Orthonormal columns.
    spreads : ndarray of shape (k, q)
        Second moments of rows along them, relative to their mean: eigenvalues of factors C.
    amplitudes : ndarray of shape (k,)
        For degree 2: the share of rows over q, if all rows lie within their subspaces.
    log_ratios : dict of int to float
        Logarithm of the factor of amplitudes, by degree from 4 on.
    """

    bases: np.ndarray
    spreads: np.ndarray
    amplitudes: np.ndarray
    log_ratios: Mapping[int, float]

    @property
    def factors(self) -> np.ndarray:
        """Factors C, (k, d, d)."""
        return (self.bases * self.spreads[:, None, :]) @ self.bases.transpose(0, 2, 1)

    @property
    def complements(self) -> np.ndarray:
        """Orthonormal bases of the orthogonal complements, (k, d, d - q)."""
        return np.stack([null_space(basis.T) for basis in self.bases])

    @property
    def weights(self) -> np.ndarray:
        """Fractions of the rows, (k,)."""
        return self.amplitudes / self.amplitudes.sum()

    def ordered(self) -> Union:
        """Return the union with the subspace of the largest amplitude first."""
        order = np.argsort(-self.amplitudes, kind="stable")
        return Union(
            self.bases[order], self.spreads[order], self.amplitudes[order], self.log_ratios
        )

    def turned(self, tangents: np.ndarray, complements: np.ndarray) -> Union:
        """Return the union with bases U + V T, made orthonormal; tangents are (k, d - q, q)."""
        bases = np.linalg.qr(self.bases + complements @ tangents)[0]
        signs = np.where(np.einsum("kij,kij->kj", bases, self.bases) < 0, -1.0, 1.0)
        return replace(self, bases=bases * signs[:, None, :])

    @property
    def outside(self) -> float:
        """Share of a row's squared norm outside its subspace, from the ratio of degrees 4 and 2."""
        _, d, q = self.bases.shape
        parts = np.linspace(0.0, _MOST_OUTSIDE * (d - q) / d, 200)
        second, fourth = _noisy_amplitudes(parts, d, q)
        # the ratio falls with the share outside: the first share at which it is low enough, or the
        # last one, if noise has made the ratio lower than all
        is_low = fourth / second <= math.exp(self.log_ratios[4])
        return float(parts[np.argmax(is_low)] if is_low.any() else parts[-1])

    def draw(
        self, n_rows: int, rng: np.random.Generator, outside: float | None = None
    ) -> np.ndarray:
        """Draw directions of rows, (n_rows, d): near the subspaces, and of any direction.

        `outside` is the share of the squared norm outside the subspaces, for rows near them. If it
        is given, the amplitudes set the number of rows with random directions, which do not change
        the moments.
        """
        k, d, q = self.bases.shape
        part = self.outside if outside is None else min(outside, _MOST_OUTSIDE * (d - q) / d)
        # noise of deviation s on a unit row: `part` = (d - q) s^2 / (1 + d s^2) is outside
        deviation = math.sqrt(part / (d - q - d * part))
        # rows of any direction have no moments: amplitudes below those of near rows are due to them
        near = min(float(self.amplitudes.sum()) / float(_noisy_amplitudes(part, d, q)[0]), 1.0)
        labels = rng.choice(k, size=n_rows, p=self.weights)
        deviations = np.stack([_deviations_of(tuple(one)) for one in self.spreads])
        inside = rng.standard_normal((n_rows, q)) * deviations[labels]
        inside /= np.linalg.norm(inside, axis=1, keepdims=True)
        inside *= rng.random((n_rows, 1)) < near
        rows = np.einsum("ndq,nq->nd", self.bases[labels], inside)
        # such rows have nothing inside: normal entries of any scale give a uniform direction
        is_any = ~inside.any(axis=1, keepdims=True)
        rows += np.where(is_any, 1.0, deviation) * rng.standard_normal((n_rows, d))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@lru_cache(maxsize=256)
def _deviations_of(spreads: np.ndarray) -> np.ndarray:
    """Return deviations of normal rows that have these second moments once they have norm 1."""
    target = np.array(spreads) / sum(spreads)
    if np.ptp(target) == 0:
        return np.ones(len(target))
    # a fixed seed: the result is cached and must depend only on the spreads
    squares = np.random.default_rng(0).standard_normal((_N_PROBES, len(target))) ** 2
    variances = target.copy()
    # fixed point: scale each variance until rows of norm 1 have the target moments
    for _ in range(_N_TURNS):
        rows = squares * variances
        moments = (rows / rows.sum(axis=1, keepdims=True)).mean(axis=0)
        # a direction of no variance has moment 0 and keeps it
        variances *= target / np.maximum(moments, 1e-12)
        variances /= variances.sum()
    return np.sqrt(variances)


def _noisy_amplitudes(part: float | np.ndarray, d: int, q: int) -> tuple[Any, Any]:
    """Return amplitudes of degrees 2 and 4 of one cluster with a share of squares outside it.

    Uses trace-free moments of rows spread evenly within and around their subspace, as H(P x (I -
    P)) = -H(P x P) = -H((I - P) x (I - P)).
    """
    p = d - q
    second = (1.0 - part) / q - part / p
    fourth = 3.0 * (1.0 - part) ** 2 / (q * (q + 2)) + 3.0 * part**2 / (p * (p + 2))
    return second, fourth - 6.0 * part * (1.0 - part) / (q * p)


def prior_amplitude(n_clusters: int, dimension: int) -> float:
    """Return the amplitude of one of n_clusters equal clusters of rows on their subspaces."""
    return 1.0 / (n_clusters * dimension)


def even_ratio(dimension: int, degree: int) -> float:
    """Return the ratio of amplitudes of `degree` and 2, for rows spread evenly in a subspace.

    Examples
    --------
    >>> even_ratio(3, 2), even_ratio(3, 4)
    (1, 0.6)
    """
    return math.prod((2 * j + 1) / (dimension + 2 * j) for j in range(1, degree // 2))
