"""Budget needed for an accuracy: fits with the share of pure composition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust_papers.dpem.data import fit_mixture
from privclust_papers.pipeline.runner import TrialData, TrialStreams

_N_ITER = 10


def fit_at_budget(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Fit as `fit_mixture`, also with ``accounting: pure``.

    Pure composition adds up the 2 K + 1 releases of each iteration: eps' = epsilon / (J (2 K + 1)).
    This is the share of Section 5 for a CDP budget of J (2 K + 1) eps'^2 / 2.
    """
    if params.get("accounting") == "pure":
        n_iter = params.get("max_iter", _N_ITER)
        n_releases = n_iter * (2 * params["n_components"] + 1)
        budget = params["epsilon"] ** 2 / (2.0 * n_releases)
        params = {**params, "max_iter": n_iter, "accounting": "cdp", "epsilon": budget}
    return fit_mixture(estimator, params, data, streams)
