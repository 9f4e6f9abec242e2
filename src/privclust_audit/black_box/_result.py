"""The result of an audit: bounds, verdict and advice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privclust_audit.black_box._bounds import Claim, draws_needed
from privclust_audit.black_box._events import Event
from privclust_audit.black_box._runs import LABELS

VIOLATED, CONSISTENT, CANNOT_TELL = "violated", "consistent", "cannot tell"
CONVICTED, CLOSE, HOPELESS, SPENT = "convicted", "close", "hopeless", "spent"
_STOPS = {
    CONVICTED: "stopped at the conviction",
    CLOSE: "stopped close to the claim",
    HOPELESS: "stopped as the remaining runs would hardly have improved the bounds",
    SPENT: "stopped as all runs were used",
}
TELLING_SHARE = 0.5  # share of the claim that an attack must prove for the verdict "consistent"


@dataclass(frozen=True)
class AuditResult:
    r"""The result of an audit of a claim of :math:`(\epsilon, \delta)`-differential privacy.

    Attributes
    ----------
    verdict : {"violated", "consistent", "cannot tell"}
        ``"violated"``: a lower bound exceeds the claim; the claim is wrong, up to the confidence.
        ``"consistent"``: it does not, though the attack proved at least half of the claimed epsilon
        (or of a delta greater than 0); with twice the proved loss, the mechanism would have been
        convicted. The claim may still be wrong by less, or on another pair of data sets. ``"cannot
        tell"``: neither; the attack is weak, or the runs are too few.
    epsilon, delta : float
        The claim.
    epsilon_lower_bound : float
        No smaller epsilon is possible at the claimed delta; in nats.
    delta_lower_bound : float
        No smaller delta is possible at the claimed epsilon.
    confidence : float
        Least probability that both bounds hold.
    epsilon_event, delta_event : Event
        The events behind the bounds.
    n_trials : int
        Runs made on each data set; with a fixed number, half (rounded up) certified.
    cpu_seconds : float
        CPU time of this process.
    advice : str
        Advice on a stronger audit if the verdict is "cannot tell", and a note if all runs on a data
        set were equal; else empty.
    stopped : {"", "convicted", "close", "hopeless", "spent"}
        Why an audit with ``stopping="anytime"`` stopped: the claim was convicted; the bounds were
        close to the claim, with frequencies that would not convict; "cannot tell" was the likely
        verdict even with all runs; or all runs were spent. Empty for a fixed number of runs. At a
        conviction the bound is only slightly above the claim; more runs would raise it.
    """

    verdict: str
    epsilon: float
    delta: float
    epsilon_lower_bound: float
    delta_lower_bound: float
    confidence: float
    epsilon_event: Event
    delta_event: Event
    n_trials: int
    cpu_seconds: float
    advice: str
    stopped: str = ""

    @property
    def excess(self) -> float:
        """Lower bound on the excess of epsilon over the claim; 0 if none was shown."""
        return max(0.0, self.epsilon_lower_bound - self.epsilon)

    def __str__(self) -> str:
        event = self.epsilon_event
        other = LABELS[1 - LABELS.index(event.likelier)]
        lines = [
            f"{self.verdict}: claimed epsilon {self.epsilon:g} and delta {self.delta:g}; "
            f"at {self.confidence:.6g} confidence, epsilon is at least "
            f"{self.epsilon_lower_bound:.4g} at this delta and delta at least "
            f"{self.delta_lower_bound:.4g} at this epsilon",
            f"{event.statistic} {event.side} {event.threshold:.6g}: {event.hits:,} of "
            f"{event.draws:,} certifying runs on the {event.likelier}, {event.other_hits:,} of "
            f"{event.other_draws:,} on the {other}; {self.cpu_seconds:.2f} s",
        ]
        if self.stopped:
            lines.append(f"{_STOPS[self.stopped]} after {self.n_trials:,} runs on each data set")
        return "\n".join([*lines, self.advice] if self.advice else lines)


def concluded(
    claim: Claim,
    bounds: tuple[float, float],
    events: list[Event],
    values,
    n_trials: int,
    cpu_seconds: float,
    stopped: str = "",
) -> AuditResult:
    """Return the result of an audit from bounds on epsilon and on delta, with verdict and advice.

    `values` are those that each statistic took on each data set.
    """
    verdict, advice = _verdict(claim, *bounds), _oddity(values)
    if not advice and verdict == CANNOT_TELL:
        advice = _advice(events[0].draws, claim)
    return AuditResult(
        verdict=verdict, epsilon=float(claim.epsilon), delta=float(claim.delta),
        epsilon_lower_bound=bounds[0], delta_lower_bound=bounds[1],
        confidence=float(claim.confidence), epsilon_event=events[0], delta_event=events[1],
        n_trials=int(n_trials), cpu_seconds=cpu_seconds, advice=advice, stopped=stopped,
    )  # fmt: skip


def _verdict(claim: Claim, epsilon_bound: float, delta_bound: float) -> str:
    """Compare bounds with the claim; see `AuditResult`."""
    if epsilon_bound > claim.epsilon or delta_bound > claim.delta:
        return VIOLATED
    close = claim.epsilon > 0 and epsilon_bound >= TELLING_SHARE * claim.epsilon
    close_delta = claim.delta > 0 and delta_bound >= TELLING_SHARE * claim.delta
    return CONSISTENT if close or close_delta else CANNOT_TELL


def _oddity(values) -> str:
    """Return a note if each statistic took one value on each data set; else empty."""
    if any(one.size > 1 for pair in values for one in pair):
        return ""
    if all((first == second).all() for first, second in values):
        return (
            "all runs on both data sets score the same: either the mechanism returned one constant "
            "output, so that no release was audited, or the statistic ignores the part that "
            "varies; check the mechanism, or use another statistic"
        )
    return (
        "all runs on one data set score the same: the mechanism adds no noise, or the same noise "
        "in each run; check that nothing fixes its seed"
    )


def _advice(draws: int, claim: Claim) -> str:
    # Halfway between delta, up to which an event shows nothing, and 1.
    probability = (1.0 + claim.delta) / 2
    needed = draws_needed(claim, probability, 2 * claim.epsilon if claim.epsilon > 0 else np.inf)
    if needed > draws:
        return (
            f"too few runs: {2 * needed:,} trials are needed to convict a mechanism with twice the "
            f"claimed loss on an event of probability {probability:g}"
        )
    return (
        "the attack hardly distinguishes the two data sets: on this pair the mechanism may be more "
        "private than claimed, or another pair or statistic is needed"
    )
