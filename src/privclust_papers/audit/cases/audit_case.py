"""Base classes of the cases of the privacy audit: a claim, a worst pair and an attack."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privclust_audit.black_box import vectorised
from privclust_audit.inside import released_law

N_PUBLIC = 20
"""Public images of PrivateMail's cases."""


class Claim:
    """The claimant of a guarantee, and whether the guarantee is known to hold.

    `claimant` is "ours", "paper" (as printed), "code" (the authors' code), "copy" (our copy of the
    text, which is garbled there), or "nobody", if the audit shows the loss when a guarantee is
    misread. `is_private` is whether the claim holds, to the best of our knowledge.
    """

    claimant = "ours"
    is_private = True

    def claimed_by(self, is_ours: bool, other: str = "paper") -> None:
        """Set the claimant: ours with a valid claim, or another with an invalid one."""
        self.is_private, self.claimant = is_ours, "ours" if is_ours else other


class AuditCase(Claim):
    """A mechanism with its claimed guarantee; subclasses supply the mechanism.

    An instance is called as ``case(data, rng)`` and returns one output; ``many(data, rng, n)``, if
    defined, returns several. `draws` is the number of runs on each data set at cost 1,
    `least_draws` the least number with which the audit still detects a violation, `closeness` the
    share of the claim at which it may stop. `data` and `neighbour` are the worst known pair.
    `statistic` is the attack, see `privclust_audit.black_box.audit_mechanism`; None learns one.
    """

    epsilon = 1.0
    delta = 0.0
    draws = 1_000_000
    least_draws = 1_000_000
    closeness = 0.95
    data: object = None
    neighbour: object = None
    statistic: object = None

    def __call__(self, data, rng: np.random.Generator):
        return self.many(data, rng, 1)[0]  # subclasses without `many` have a call of their own

    @property
    def budget(self) -> dict[str, float]:
        """The claim, as keyword arguments of an estimator."""
        return {"epsilon": self.epsilon, "delta": self.delta}

    def n_trials(self, cost: float) -> int:
        """Return the number of runs on each data set at a cost from 0 to 1."""
        return max(self.least_draws, round(cost * self.draws))


class RecordedFit(AuditCase):
    """A fit, attacked by all its releases, that change by independent amounts.

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


def along(direction) -> Callable:
    """Return the projection on a direction: the likelihood ratio for equal Gaussian noise.

    >>> float(along([1.0, -1.0])(np.array([3.0, 1.0])))
    2.0
    """
    direction = np.ravel(direction).astype(float)
    return vectorised("projection", lambda outputs: outputs.reshape(len(outputs), -1) @ direction)


def laplace_ratio(value, other, scale: float) -> Callable:
    """Return the log-likelihood ratio of a value with Laplace noise against another.

    >>> float(laplace_ratio(0.0, 1.0, 0.5)(np.array(-2.0)))
    2.0
    """
    value, other = np.ravel(value).astype(float), np.ravel(other).astype(float)

    def scores(outputs):
        flat = outputs.reshape(len(outputs), -1)
        return (np.abs(flat - other) - np.abs(flat - value)).sum(axis=1) / scale

    return vectorised("likelihood_ratio", scores)


def repeated(value, n: int) -> np.ndarray:
    """Return n copies of a statistic, so that noise is added to all at once."""
    value = np.asarray(value, dtype=float)
    return np.broadcast_to(value, (n, *value.shape))


def public_features() -> np.ndarray:
    """Return features of public images, of norm 1, the same for all cases."""
    X = np.random.default_rng(0).normal(size=(N_PUBLIC, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def two_crowds() -> tuple[np.ndarray, np.ndarray]:
    """Return as many rows at 1 as at -1, and the same rows with one moved from 1 to -1.

    With many rows the clusters stay in place despite the noise, so that the row has the same effect
    in every round.
    """
    rows = np.repeat([[1.0], [-1.0]], 10_000, axis=0)
    other = rows.copy()
    other[0] = -1.0
    return rows, other
