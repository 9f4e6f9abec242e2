"""The privacy audit as an experiment: every private mechanism attacked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust_audit.black_box import audit_mechanism
from privclust_papers.audit.cases.audit_case import AuditCase
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.pipeline.words import AUDIT_VERDICTS, CLAIMANTS, VIOLATED
from privclust_papers.settings.config import ConfigError

SOURCE = "worst pairs"


def audit_trial(
    point: Mapping[str, Any], trial: int, streams: TrialStreams, dataset: None
) -> TrialData:
    """Return a trial without data, since cases have their own pairs.

    The point's ``cost`` is the share of the runs (or pairs of a search) of each case, above 0 and
    at most 1.
    """
    if not 0.0 < point["cost"] <= 1.0:
        raise ConfigError(f"cost: got {point['cost']!r}; it must be above 0 and at most 1")
    return TrialData(np.zeros((1, 1)), None, SOURCE, extra={"cost": float(point["cost"])})


def fit_audit_anytime(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Attack one case, of a class of `AuditCase`, with the trial's noise stream and early stopping.

    The output ``draws`` is the number of runs. The error probability of each single verdict is at
    most 5 %, for any stopping time.
    """
    return fit_case(estimator(**params), data, streams, stopping="anytime")


def fit_case(
    case: AuditCase, data: TrialData, streams: TrialStreams, stopping: str = "fixed"
) -> dict[str, np.ndarray]:
    """Attack an instance of a case; for `stopping` see `audit_mechanism`.

    Outputs are the claim, the bounds, the counts of the event for the bound on epsilon, and numbers
    for the verdict, the claimant and the expectation.
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
    """Return the outputs as numbers, the excess of epsilon over the claim, and surprises.

    ``excess``: least excess of epsilon over the claim; ``shortfall``: distance of a bound below the
    claim; ``is_surprise``: 1 if a valid claim was convicted or an invalid one was not.
    """
    numbers = {name: float(value) for name, value in outputs.items()}
    gap = numbers["epsilon_bound"] - numbers["claimed_epsilon"]
    is_convicted = numbers["verdict"] == AUDIT_VERDICTS.index(VIOLATED)
    numbers["excess"], numbers["shortfall"] = max(gap, 0.0), max(-gap, 0.0)
    numbers["is_surprise"] = float(is_convicted == bool(numbers["is_private"]))
    return numbers
