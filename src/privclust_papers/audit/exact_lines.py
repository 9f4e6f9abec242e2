r"""The distribution of the Gibbs sampler's two lines in the plane by sweep, without sampling.

`privclust_papers.dpsc.exact_chain` follows label vectors, for at most seven rows. If rows share a
few directions, the numbers of rows per label and direction are sufficient, so that more than a
hundred rows can be followed. A sweep draws these numbers given two lines, binomial, eq. (11), then
two independent lines given the numbers, with density :math:`\exp(\epsilon/2 \sum_g n_g
\cos^2(u - a_g))` up to a constant, eq. (12). Integrals over angles are sums over a uniform grid,
which converge faster than any power of its spacing for these periodic analytic functions. All terms
are positive, so that relative errors of densities are small also in the tails.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.special import gammaln, logsumexp
from sklearn.utils import gen_batches

MOST_STATES = 200_000
MOST_CHANCES = 10**8  # 8 bytes each
_GRID_MULTIPLE = 6  # divides the grid's size, so that multiples of 30 degrees are on the grid
_BLOCK_PAIRS = 2048  # pairs of angles per block


class ExactLines:
    r"""Two lines after any number of sweeps of a Gibbs chain on unit rows of a few directions.

    The two lines are in random order. `angles` are the directions in radians, `counts` the numbers
    of rows in each; `start` is "random", for two uniform lines, or the angles of two lines;
    `n_angles` is the size of the grid on half a turn, None for 16 + 10 sqrt(epsilon n), rounded up.
    Raises a ValueError if much memory would be taken: if the product of ``count + 1`` exceeds
    200,000, or if there are more than 10^8 pairs of angles and counts of one direction.

    See Y. Wang, Y.-X. Wang and A. Singh, "Differentially private subspace clustering", NIPS 2015,
    eqs. (10) to (12).
    """

    def __init__(
        self,
        angles: Sequence[float],
        counts: Sequence[int],
        epsilon: float,
        start: Literal["random"] | tuple[float, float] = "random",
        n_angles: int | None = None,
    ) -> None:
        directions, counts = np.asarray(angles, dtype=float), np.asarray(counts, dtype=np.int64)
        if (states := math.prod(int(count) + 1 for count in counts)) > MOST_STATES:
            raise ValueError(f"counts must take at most {MOST_STATES:,} values, got {states:,}")
        if n_angles is None:
            n_angles = math.ceil(16 + 10 * math.sqrt(epsilon * counts.sum()))
            n_angles += -n_angles % _GRID_MULTIPLE
        n_chances = n_angles * (n_angles + 1) // 2 * int((counts + 1).max())
        if n_chances > MOST_CHANCES:
            raise ValueError(
                f"{n_angles} angles and {counts.max():,} rows in a direction take "
                f"{n_chances:,} numbers, more than {MOST_CHANCES:,}; take fewer"
            )
        self.angles = np.pi * np.arange(n_angles) / n_angles
        self._shape = tuple(counts + 1)
        held = np.indices(self._shape).reshape(len(counts), -1).T  # rows of the second line
        exponents = _exponents(self.angles, directions, epsilon)
        # Exponents of the second line's density, eq. (12), for each vector of its counts.
        logs = held @ exponents
        self._log_norms = logsumexp(logs, axis=1)
        self._weights = np.exp(logs - self._log_norms[:, None])
        self._log_ways = _log_binomial(counts, held).sum(axis=1)
        # The law of two lines is symmetric, so that one of both orders of a pair suffices.
        self._pairs = np.triu_indices(n_angles)
        self._tables = [
            # Eq. (11): the difference of exponents is the log-odds of the second line's label.
            _binomial(count, row[self._pairs[1]] - row[self._pairs[0]])
            for count, row in zip(counts, exponents, strict=True)
        ]
        self._densities: list[np.ndarray] = []
        if start == "random":
            self._law = self._counts_after(np.full((n_angles, n_angles), n_angles**-2.0))
        else:
            at_start = _exponents(np.asarray(start, dtype=float), directions, epsilon)
            parts = [
                _binomial(n, row[1:] - row[:1])[0] for n, row in zip(counts, at_start, strict=True)
            ]
            self._law = self._in_any_order(functools.reduce(np.multiply.outer, parts))

    def after(self, n_sweeps: int) -> np.ndarray:
        """Return the probabilities of pairs of angles after sweeps, (n_angles, n_angles).

        Earlier sweeps are cached.
        """
        while len(self._densities) < n_sweeps:
            if self._densities:
                self._law = self._counts_after(self._densities[-1])
            self._densities.append(self._lines_given(self._law))
        return self._densities[n_sweeps - 1]

    def limit(self) -> np.ndarray:
        """Return the limit of `after`: the lines of the exponential mechanism, eq. (10)."""
        # Counts are in C order, in which reversal maps h to counts - h, the first line's rows.
        logs = self._log_ways + self._log_norms + self._log_norms[::-1]
        return self._lines_given(np.exp(logs - logsumexp(logs)))

    def _lines_given(self, law):
        """Return the law of two lines given that of the second line's counts."""
        return (self._weights[::-1] * law[:, None]).T @ self._weights

    def _counts_after(self, lines):
        """Return the law of counts given the symmetric law of two lines, of which half is used."""
        first, second = self._pairs
        chances = lines[first, second] * np.where(first < second, 2.0, 1.0)
        law = 0.0
        for block in gen_batches(len(chances), _BLOCK_PAIRS):
            *tables, last = (table[block] for table in self._tables)
            joint = chances[block, None]
            for table in tables:
                # Outer products by pair: labels of different directions are independent given the
                # lines.
                joint = (joint[:, :, None] * table[:, None, :]).reshape(len(joint), -1)
            # The last direction by a product of matrices, which sums over the block's pairs as
            # well.
            law = law + joint.T @ last
        return self._in_any_order(law)

    def _in_any_order(self, law):
        """Return the law of counts with the lines exchanged with probability 1/2."""
        flat = law.ravel()
        return 0.5 * (flat + flat[::-1])


def worst_ratio(first: np.ndarray, second: np.ndarray) -> float:
    """Return the least epsilon of two positive laws at delta = 0: the largest log-ratio."""
    return float(np.abs(np.log(first) - np.log(second)).max())


def least_delta(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    """Return the least delta of two laws at an epsilon in nats, in both directions."""
    factor = math.exp(epsilon)
    pairs = ((first, second), (second, first))
    return float(max(np.maximum(one - factor * other, 0.0).sum() for one, other in pairs))


def _exponents(at, directions, epsilon):
    """Return epsilon / 2 cos^2 of the angles of directions and lines, (n_directions, n_lines)."""
    return 0.5 * epsilon * np.cos(at[None, :] - directions[:, None]) ** 2


def _binomial(count, logits):
    held = np.arange(count + 1.0)
    yes, no = (-np.logaddexp(0.0, sign * logits)[:, None] for sign in (-1.0, 1.0))
    return np.exp(_log_binomial(count, held) + held * yes + (count - held) * no)


def _log_binomial(count, held):
    return gammaln(count + 1.0) - gammaln(held + 1.0) - gammaln(count - held + 1.0)
