"""The audit of the Gibbs sampler by number of sweeps, compared with its exact privacy loss."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.ndimage import map_coordinates

from privclust.core.validation import check_option
from privclust.subspaces import KPlanes
from privclust_audit.black_box import vectorised
from privclust_papers.audit.cases.audit_case import AuditCase
from privclust_papers.audit.cases.subspaces import lines_sampler, rows_at
from privclust_papers.audit.exact_lines import ExactLines

_THREE_ANGLES = (0.0, math.pi / 3.0, 2.0 * math.pi / 3.0)
_TWO_ANGLES = (0.0, math.pi / 2.0)
PAIRS = {
    "best": lambda n: (_THREE_ANGLES, (n + 1, n, n), (n, n + 1, n)),
    "stray": lambda n: (_TWO_ANGLES, (3 * n // 2, 3 * n // 2), (3 * n // 2 - 1, 3 * n // 2 + 1)),
}
"""Directions, and numbers of rows in each for both data sets of the pair.

``best``: the record decides which two lines are best. ``stray``: two lines of rows at right angles
are best with and without the record, which changes the speed at which two lines that start close
together separate."""

# Cases with other numbers of sweeps share the chain and the sweeps that it has cached.
_exact_lines = lru_cache(maxsize=16)(ExactLines)


class LinesAfterSweeps(AuditCase):
    """Two lines after some sweeps of the Gibbs sampler; see `PAIRS`.

    The attack is the likelihood ratio of the two lines, from their exact distribution. For `start`
    see `GibbsChain`. There are `n_rows` in each of three directions, or 1.5 `n_rows` in each of
    two.
    """

    epsilon = 4.0
    draws, least_draws = 10_000, 1_000

    def __init__(
        self, start: str = "random", pair: str = "best", n_sweeps: int = 1, n_rows: int = 30
    ) -> None:
        check_option("start", start, ("random", "data"))
        self.claimed_by(start == "random", "nobody")
        self._n_sweeps = int(n_sweeps)
        directions, *sides = PAIRS[pair](int(n_rows))
        self.data, self.neighbour = (rows_at(np.repeat(directions, counts)) for counts in sides)
        self._starts = {}
        self._exact = []
        for rows, counts in zip((self.data, self.neighbour), sides, strict=True):
            init, at = "random", "random"
            if start == "data":
                model = KPlanes(2, n_init=20, random_state=0).fit(rows)
                init, at = model.labels_, tuple(_angles(model.subspaces_[..., 0]))
            self._starts[rows.tobytes()] = init
            self._exact.append(_exact_lines(directions, counts, self.epsilon, at))
        self.statistic = vectorised("likelihood_ratio", self._ratios)

    def __call__(self, data, rng):
        model = lines_sampler(2, self.epsilon, self._n_sweeps, rng)
        model.init = self._starts[data.tobytes()]
        return _angles(model.fit(data).subspaces_[..., 0])

    def laws(self, n_sweeps: int | None = None) -> list[np.ndarray]:
        """Return the exact distributions of the lines on both data sets; None: the limit."""
        return [
            lines.limit() if n_sweeps is None else lines.after(n_sweeps) for lines in self._exact
        ]

    def _ratios(self, outputs):
        """Return log-likelihood ratios, interpolated linearly on the grid of the distributions."""
        size = len(self._exact[0].angles)
        first, second = self.laws(self._n_sweeps)
        places = np.asarray(outputs, dtype=float).T * (size / math.pi)
        return map_coordinates(np.log(first) - np.log(second), places, order=1, mode="grid-wrap")


def _angles(vectors):
    """Return the angles, from 0 to pi, of lines along unit vectors (n, 2)."""
    return np.arctan2(vectors[:, 1], vectors[:, 0]) % math.pi
