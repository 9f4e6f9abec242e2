"""A case of the privacy audit for any class that says of itself that it is private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust_papers.audit.cases.audit_case import AuditCase
from privclust_papers.pipeline.runner import random_state_for
from privclust_papers.settings.config import ConfigError
from privclust_papers.settings.dotted import construct, load_object


class OwnMethod(AuditCase):
    """A class that needs no case of its own, a user's or ours: what it publishes after a fit.

    The attack is learned on half of the runs, since nothing is known of the noise. `estimator` is
    the dotted path of the class, `params` its keyword arguments; `pair` the dotted path of a
    function without arguments that returns two neighbouring data sets; `read` the name of the
    fitted attribute that is published; `epsilon` and `delta` are the claim.
    """

    draws, least_draws = 60_000, 4_000

    def __init__(
        self,
        estimator: str,
        pair: str,
        read: str,
        epsilon: float,
        delta: float = 0.0,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self._estimator, self._read, self._params = load_object(estimator), read, dict(params or {})
        self.epsilon, self.delta = float(epsilon), float(delta)
        neighbours = load_object(pair)()
        if not isinstance(neighbours, tuple | list) or len(neighbours) != 2:
            kind = type(neighbours).__name__
            raise ConfigError(f"{pair}: got {kind}; it may return two data sets")
        self.data, self.neighbour = neighbours

    def __call__(self, data: Any, rng: np.random.Generator) -> np.ndarray:
        random_state = random_state_for(self._estimator, rng)
        model = construct(self._estimator, self._params, random_state=random_state).fit(data)
        return np.asarray(getattr(model, self._read), dtype=float)


def one_row_exchanged() -> tuple[np.ndarray, np.ndarray]:
    """Two rows of one number in [-1, 1], and the second exchanged for its opposite."""
    return np.array([[0.0], [1.0]]), np.array([[0.0], [-1.0]])
