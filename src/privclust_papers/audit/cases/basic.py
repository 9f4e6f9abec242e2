"""Controls of the audit: mechanisms with a tight guarantee."""

from __future__ import annotations

import numpy as np

from privclust.privacy import Neighbours, Sensitivity, measurements
from privclust_audit.black_box import vectorised
from privclust_papers.audit.cases.audit_case import AuditCase, along, laplace_ratio, repeated

_UNIT_L1 = Sensitivity(1.0, "l1", Neighbours.ADD_REMOVE, "one row is one count")
_UNIT_L2 = Sensitivity(1.0, "l2", Neighbours.ADD_REMOVE, "one row is one count")
_VOTE = Sensitivity(1.0, "range", Neighbours.REPLACE_ONE, "one row moves each score by 1 at most")


class Laplace(AuditCase):
    """A count with Laplace noise, compared with the count plus one."""

    closeness = 0.99
    data, neighbour = 0.0, 1.0
    statistic = staticmethod(laplace_ratio(0.0, 1.0, 1.0))

    def many(self, data, rng, n):
        return measurements.Laplace(_UNIT_L1, self.epsilon).release(repeated(data, n), rng)


class Gaussian(AuditCase):
    """A count with Gaussian noise (analytic calibration), compared with the count plus one."""

    delta = 0.01
    data, neighbour = 0.0, 1.0
    statistic = staticmethod(along(1.0))

    def many(self, data, rng, n):
        sigma = measurements.analytic_gaussian_sigma(_UNIT_L2, **self.budget)
        return measurements.Gaussian(_UNIT_L2, sigma).release(repeated(data, n), rng)


class Exponential(AuditCase):
    """One of twenty candidates; a row raises the score of one and lowers all others."""

    draws, least_draws = 400_000, 20_000
    data = np.array([1.0] + [0.0] * 19)
    neighbour = 1.0 - data
    statistic = staticmethod(vectorised("is_first", lambda outputs: outputs == 0))
    budgets = 1.0  # epsilon of the mechanism relative to the loss on the pair

    def __call__(self, data, rng):
        return measurements.Exponential(_VOTE, self.budgets * self.epsilon).release(data, rng)


class RandomisedResponse(Exponential):
    """The truth or its opposite: the exponential mechanism on two candidates.

    A row changes both scores by 1, in opposite directions: log-probabilities change by epsilon. The
    truth has probability e^epsilon / (1 + e^epsilon).
    """

    closeness = 0.99
    data, neighbour = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    budgets = 2.0  # the loss for two candidates is half of the mechanism's epsilon
