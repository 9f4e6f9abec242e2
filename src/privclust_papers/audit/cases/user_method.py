"""A case of the privacy audit for any class with a claimed guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust_papers.audit.cases.audit_case import AuditCase
from privclust_papers.pipeline.runner import random_state_for
from privclust_papers.settings.config import ConfigError
from privclust_papers.settings.dotted import construct, load_object


class OwnMethod(AuditCase):
    """Audit of a published attribute of any class, without a specific case.

    The attack is learned on half of the runs, since the noise is unknown. `estimator` is the dotted
    path of the class, `params` its keyword arguments; `pair` the dotted path of a function without
    arguments that returns two neighbouring data sets; `read` the name of the published fitted
    attribute; `epsilon` and `delta` are the claim.
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
    """Return two rows of one number in [-1, 1], and the rows with the second one negated."""
    return np.array([[0.0], [1.0]]), np.array([[0.0], [-1.0]])
