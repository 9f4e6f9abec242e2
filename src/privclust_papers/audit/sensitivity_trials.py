"""The search for neighbours that exceed a stated sensitivity, as an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privclust_audit.black_box import numerical_sensitivity
from privclust_papers.audit.cases.sensitivities import STATEMENTS
from privclust_papers.audit.data import audit_trial
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.pipeline.words import CLAIMANTS

_BOUND_TOLERANCE = 1e-9  # relative excess over a bound that counts as rounding


def sensitivity_trial(
    point: Mapping[str, Any], trial: int, streams: TrialStreams, dataset: None
) -> TrialData:
    """Return a trial for one of `STATEMENTS`, at the ``cost`` of `audit_trial`, without data."""
    data, name = audit_trial(point, trial, streams, dataset), point["statement"]
    return replace(data, facts={"about": STATEMENTS[name][0]}, extra={**data.extra, **point})


def search_sensitivity(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Search for neighbours with a change above the stated sensitivity."""
    _, case_class, *arguments = STATEMENTS[data.extra["statement"]]
    case = case_class(*arguments)
    n_trials = max(case.least_trials, round(data.extra["cost"] * case.trials))
    if hasattr(case, "search"):
        largest = case.search(streams.get("noise"), n_trials)
    else:
        functions, rng = (case.function, case.draw, case.change), streams.get("noise")
        search = numerical_sensitivity(
            *functions, case.norm, n_trials, case.bound, project=case.project, random_state=rng
        )
        largest = search.largest
    outputs = {
        "largest": largest,
        "bound": case.bound,
        "claimant": CLAIMANTS.index(case.claimant),
        "is_private": case.is_private,
        "tried": n_trials,
    }
    return {name: np.float64(value) for name, value in outputs.items()}


def evaluate_sensitivity(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the numbers of `search_sensitivity`, and ``ratio``, the largest change over the bound.

    ``exceeds``: the ratio minus 1; ``is_surprise``: 1 if a proved bound is exceeded by more than
    rounding, or a wrong bound is not exceeded.
    """
    numbers = {name: float(value) for name, value in outputs.items()}
    numbers["ratio"] = numbers["largest"] / numbers["bound"]
    numbers["exceeds"] = numbers["ratio"] - 1.0
    is_exceeded = numbers["exceeds"] > _BOUND_TOLERANCE
    numbers["is_surprise"] = float(is_exceeded == bool(numbers["is_private"]))
    return numbers
