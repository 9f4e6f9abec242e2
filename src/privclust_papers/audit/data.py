"""The privacy audit as an experiment: every private mechanism attacked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.core.validation import check_real
from privclust_audit.black_box import audit_mechanism
from privclust_papers.audit.cases.audit_case import AuditCase
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.pipeline.words import AUDIT_VERDICTS, CLAIMANTS, VIOLATED

SOURCE = "worst pairs"


def audit_trial(
    point: Mapping[str, Any], trial: int, streams: TrialStreams, dataset: None
) -> TrialData:
    """Return no data: a case brings its own pair.

    The point's ``cost`` is the part of the runs (or of the tries of a search) that each case asks
    for, above 0 and at most 1.
    """
    check_real("cost", point["cost"])
    if point["cost"] > 1:
        raise ValueError(f"cost must be at most 1, got {point['cost']!r}")
    return TrialData(np.zeros((1, 1)), None, SOURCE, extra={"cost": float(point["cost"])})


def fit_audit(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Attack one case, of a class of `AuditCase`, with the trial's noise stream."""
    return fit_case(estimator(**params), data, streams)


def fit_audit_anytime(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """As `fit_audit`, until enough is seen; ``draws`` are the runs that it took.

    Each verdict errs with 5 % at most, whenever its audit stops; as with `fit_audit`, that is of
    each case by itself.
    """
    return fit_case(estimator(**params), data, streams, stopping="anytime")


def fit_case(
    case: AuditCase, data: TrialData, streams: TrialStreams, stopping: str = "fixed"
) -> dict[str, np.ndarray]:
    """Attack a case that was made already, with `stopping` as `audit_mechanism` has it.

    Outputs are the claim, the bounds, the counts of the event behind the bound on epsilon, and
    numbers for the verdict, the claimant and what was expected.
    """
    pair, claim = (case.data, case.neighbour), (case.epsilon, case.delta)
    n_trials = case.n_trials(data.extra["cost"])
    rng = streams.get("noise")
    how = {"stopping": stopping, "closeness": case.closeness}
    result = audit_mechanism(case, *pair, *claim, n_trials, case.statistic, rng, **how)
    event = result.epsilon_event
    outputs = {
        "claimed_epsilon": result.epsilon,
        "claimed_delta": result.delta,
        "epsilon_bound": result.epsilon_lower_bound,
        "delta_bound": result.delta_lower_bound,
        "verdict": AUDIT_VERDICTS.index(result.verdict),
        "claimant": CLAIMANTS.index(case.claimant),
        "is_private": case.is_private,
        "hits": event.hits,
        "other_hits": event.other_hits,
        "certifying": event.draws,
        "draws": result.n_trials,
    }
    return {name: np.float64(value) for name, value in outputs.items()}


def evaluate_audit(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The outputs as numbers, what epsilon exceeds the claim by, and surprises.

    ``excess``: by how much epsilon is above its claim at least; ``shortfall``: by how much the
    bound stays below the claim; ``is_surprise``: 1 where a claim that is right was convicted or one
    that is wrong was not.
    """
    numbers = {name: float(value) for name, value in outputs.items()}
    gap = numbers["epsilon_bound"] - numbers["claimed_epsilon"]
    is_convicted = numbers["verdict"] == AUDIT_VERDICTS.index(VIOLATED)
    numbers["excess"], numbers["shortfall"] = max(gap, 0.0), max(-gap, 0.0)
    numbers["is_surprise"] = float(is_convicted == bool(numbers["is_private"]))
    return numbers
