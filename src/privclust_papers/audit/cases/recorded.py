"""Attacks on all releases of whole fits: see `privclust_audit.inside`."""

from __future__ import annotations

import numpy as np

from privclust_audit.black_box import vectorised
from privclust_audit.inside import released_law
from privclust_papers.audit.cases.audit_case import AuditCase


class RecordedFit(AuditCase):
    """A fit with releases that change by independent amounts.

    The output is the log-likelihood ratio of all its releases, drawn from the distribution recorded
    in a few fits. A subclass has `fit`, and a pair that attains the sensitivity of each release.
    """

    least_draws = 200_000
    statistic = staticmethod(vectorised("released_ratio", lambda outputs: outputs))
    n_fits = 3

    def __init__(self) -> None:
        self.law = released_law(self.fit, self.data, self.neighbour, self.n_fits)

    def fit(self, data, rng):
        raise NotImplementedError

    def many(self, data, rng, n):
        return self.law.many(data, rng, n)


def two_crowds(n_rows: int = 10_000) -> tuple[np.ndarray, np.ndarray]:
    """Return as many rows at 1 as at -1, and the same rows with one moved from 1 to -1.

    With many rows the clusters stay in place despite the noise, so that the row has the same effect
    in every round.
    """
    rows = np.repeat([[1.0], [-1.0]], n_rows, axis=0)
    other = rows.copy()
    other[0] = -1.0
    return rows, other
