"""Known faults as an experiment: detections by each tool, and false alarms on private twins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privclust_audit import inside
from privclust_audit.black_box import CANNOT_TELL, VIOLATED, audit_mechanism, likelihood_ratio
from privclust_audit.faults import FAULTS, Fault
from privclust_papers.audit.data import audit_trial
from privclust_papers.audit.sniper import sniper
from privclust_papers.pipeline.runner import TrialData, TrialStreams

MOST_RUNS, MOST_TWIN_RUNS, SNIPER_RUNS = 4_000_000, 200_000, 2_000_000
"""Runs on each data set at cost 1: of an audit, of an audit of a twin, of DP-Sniper's method."""
WRONG = tuple(name for name, fault in FAULTS.items() if not fault.is_private)
"""Names of the mechanisms with a fault."""
UNKNOWN = -1.0
"""Value instead of 0 or 1 if a tool cannot be used."""
UNSEEN = -2.0
"""Value instead of 0 or 1 if an inspection is inconclusive."""


def fault_trial(
    point: Mapping[str, Any], trial: int, streams: TrialStreams, dataset: None
) -> TrialData:
    """Return a trial for one fault, at the ``cost`` of `audit_trial`, without data."""
    data, name = audit_trial(point, trial, streams, dataset), point["fault"]
    return replace(data, extra={**data.extra, "fault": FAULTS[name]})


def outputs_alone(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Audit a fault and its twin from outputs only, with early stopping."""
    fault, rng = data.extra["fault"], streams.get("noise")
    most, most_twin = (_runs(data, n) for n in (MOST_RUNS, MOST_TWIN_RUNS))
    # Twin and fault share one generator: their order determines the random numbers.
    twin = _audit(fault, fault.twin, most_twin, None, rng)
    return _outputs(fault, *_audit(fault, fault.mechanism, most, None, rng), twin[0])


def density_ratio(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Audit a fault by the likelihood ratio, if its log-density is known."""
    fault = data.extra["fault"]
    if fault.log_density is None:
        return _outputs(fault, UNKNOWN, 0.0, 0, 0.0)
    runs = _runs(data, MOST_RUNS)
    ratio = likelihood_ratio(fault.log_density, fault.data, fault.neighbour)
    return _outputs(fault, *_audit(fault, fault.mechanism, runs, ratio, streams.get("noise")), 0.0)


def dp_sniper(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Attack a fault and its twin by DP-Sniper's method."""
    fault, rng = data.extra["fault"], streams.get("noise")
    (bound, n_runs), (of_twin, _) = (
        sniper(mechanism, fault.data, fault.neighbour, _runs(data, SNIPER_RUNS), rng)
        for mechanism in (fault.mechanism, fault.twin)
    )
    return _outputs(fault, bound > fault.epsilon, bound, n_runs, of_twin > fault.epsilon)


def looked_inside(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Inspect the releases of a fault and its twin, on the pair that shows the fault."""
    fault, seed = data.extra["fault"], int(streams.get("noise").integers(2**31))
    verdict, bound, runs = look_at(fault, fault.mechanism, seed)
    found = {VIOLATED: 1.0, CANNOT_TELL: UNSEEN}.get(verdict, 0.0)
    return _outputs(fault, found, bound, runs, look_at(fault, fault.twin, seed)[0] == VIOLATED)


def look_at(fault: Fault, mechanism: Callable, seed: int = 0) -> tuple[str, float, int]:
    """Inspect the releases of a mechanism, with its noise and with zero noise.

    Returns the verdict; the epsilon of its releases on the pair, 0 unless it exceeds the claim; and
    the number of runs on both data sets.
    """
    reports = [
        inside.inspect_pair(
            mechanism, fault.data, fault.neighbour, random_state=seed, quiet=quiet, samplers=True,
            epsilon=fault.epsilon, delta=fault.delta,
        )
        for quiet in (False, True)
    ]  # fmt: skip
    verdicts = [report.verdict for report in reports]
    # One violation proves the fault; "cannot tell" in one of the two is not "nothing found".
    verdict = next((one for one in (VIOLATED, CANNOT_TELL) if one in verdicts), verdicts[0])
    is_dear = any(one.kind == inside.CLAIM for one in reports[0].violations)
    cost = reports[0].cost if is_dear and np.isfinite(reports[0].cost) else 0.0
    return verdict, cost, len(reports) * inside.RUNS_WITH_GENERATOR


def evaluate_fault(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the outputs as numbers; ``is_missed``: 1 if an applicable tool finds no fault."""
    numbers = {name: float(value) for name, value in outputs.items()}
    return numbers | {"is_missed": float(numbers["found"] == 0.0)}


def _runs(data: TrialData, most: int) -> int:
    return max(1000, round(data.extra["cost"] * most))


def _audit(fault: Fault, mechanism, most: int, statistic, rng) -> tuple[bool, float, int]:
    result = audit_mechanism(
        mechanism, fault.data, fault.neighbour, fault.epsilon, fault.delta, most, statistic, rng,
        stopping="anytime",
    )  # fmt: skip
    return result.verdict == VIOLATED, result.epsilon_lower_bound, 2 * result.n_trials


def _outputs(fault: Fault, found, bound, runs, twin_found) -> dict[str, np.ndarray]:
    outputs = {
        "claimed_epsilon": fault.epsilon,
        "found": found,
        "epsilon_bound": bound,
        "runs": runs,
        "twin_found": twin_found,
    }
    return {name: np.float64(value) for name, value in outputs.items()}
