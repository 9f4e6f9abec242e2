"""The audit of a mechanism: how private it can be at most, from its outputs alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer
from privclust.privacy.audit import _events, _statistics
from privclust.privacy.audit._bounds import check_claim, check_order, draws_needed, renyi_bound
from privclust.privacy.audit._events import Event
from privclust.privacy.audit._neighbours import check_pair, refuse_equal
from privclust.privacy.audit._runs import LABELS, draw
from privclust.privacy.audit._statistics import Statistic
from privclust.privacy.sensitivity import Neighbours

__all__ = ["AuditResult", "Event", "audit_mechanism"]

VIOLATED, CONSISTENT, CANNOT_TELL = "violated", "consistent", "cannot tell"
_TELLING_SHARE = 0.5  # of the claim, that an attack must reach before its failure says something
_FEWEST_TRIALS = 16


@dataclass(frozen=True)
class AuditResult:
    r"""What an audit proved of a claim of :math:`(\epsilon, \delta)`-differential privacy.

    Attributes
    ----------
    verdict : {"violated", "consistent", "cannot tell"}
        ``"violated"``: a lower bound exceeds the claim; the claim is wrong, up to the confidence.
        ``"consistent"``: it does not, though the attack proved at least half of the claimed epsilon
        (or of a delta greater than 0); with twice the loss that it proved, the mechanism would have
        been convicted. The claim may still be wrong by less, or on another pair of data sets.
        ``"cannot tell"``: neither; the attack is weak, or the runs are too few.
    epsilon, delta : float
        The claim.
    epsilon_lower_bound : float
        Whoever claims the delta cannot claim a smaller epsilon; in nats.
    delta_lower_bound : float
        Whoever claims the epsilon cannot claim a smaller delta.
    confidence : float
        Probability, at least, that both bounds are right.
    epsilon_event, delta_event : Event
        What the bounds rest on.
    n_trials : int
        Runs on each data set, of which half (rounded up) certified.
    cpu_seconds : float
        Of this process.
    advice : str
        What would tell more, where the verdict is "cannot tell", and what is odd where no run
        differed from another on one data set; else empty.
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

    @property
    def excess(self) -> float:
        """By how much, at least, epsilon exceeds the claim; 0 if that was not shown."""
        return max(0.0, self.epsilon_lower_bound - self.epsilon)

    def renyi_lower_bound(self, order: float) -> float:
        """Return a lower bound on the Renyi divergence of the outputs, of an order, in nats.

        It holds with the result's confidence, together with its other bounds and for all orders at
        once: it rests on the same two events (see `renyi_bound_from_counts`). A claim of
        zero-concentrated privacy with parameter rho is wrong if the bound exceeds ``rho * order``.

        Parameters
        ----------
        order : float
            Greater than 1, finite.

        Raises
        ------
        ValueError
            If `order` is out of range.

        Examples
        --------
        Normal noise of deviation 0.5 on a change of 1 has a divergence of 2 per order, not 0.5:

        >>> mechanism = lambda data, rng: data + rng.normal(scale=0.5)
        >>> result = audit_mechanism(mechanism, 0.0, 1.0, 2.5, 0.01, 2000, float, random_state=0)
        >>> 0.5 < result.renyi_lower_bound(1.5) / 1.5 < 2.0
        True
        """
        check_order(order)
        events = (self.epsilon_event, self.delta_event)
        return float(max(renyi_bound(event.low, event.high, order) for event in events))

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
        return "\n".join([*lines, self.advice] if self.advice else lines)


def audit_mechanism(
    mechanism: Callable,
    data: Any,
    neighbour: Any,
    epsilon: float,
    delta: float,
    n_trials: int,
    statistic: Statistic | Sequence[Statistic] | None = None,
    random_state: RandomState = None,
    *,
    confidence: float = 0.95,
    neighbours: Neighbours | str | None = None,
    progress: Callable[[int], None] | None = None,
) -> AuditResult:
    r"""Attack a claim of :math:`(\epsilon, \delta)`-differential privacy on one pair of data sets.

    The mechanism runs `n_trials` times on each. The first half of the runs chooses everything:
    statistic, threshold, side, and which data set plays which part. The other half only counts, so
    that nothing needs correcting for the choice. There are two chosen events, one for epsilon and
    one for delta, with two one-sided Clopper-Pearson bounds each; all four hold together with
    probability `confidence` (Bonferroni: each errs with (1 - confidence) / 4, or / 2 where the two
    events are the same one). Both events serve both bounds.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data, rng)`` returns an output. Runs must be independent given `rng`, a numpy
        Generator, which a mechanism with randomness of its own may ignore. An attribute
        ``mechanism.many(data, rng, n)`` that returns n outputs as one array is used if present.
    data, neighbour : object
        Two data sets that the claim calls neighbours, which must not be equal. The audit cannot
        check that they are neighbours unless it is given `neighbours`.
    epsilon : float
        Claimed, in nats, at least 0.
    delta : float
        Claimed, from 0 to less than 1.
    n_trials : int
        Runs on each data set, at least 16; see `draws_needed`.
    statistic : None, callable, likelihood ratio, or list of these
        Maps an output to a number, which may be infinite; ``statistic.many`` maps an array of
        outputs to an array. See `likelihood_ratio`. None learns several on a quarter of the runs,
        from outputs that are numbers or arrays of one shape.
    random_state : None, int, numpy.random.Generator or RandomState
    confidence : float
        Greater than 0, less than 1.
    neighbours : Neighbours, str or None
        ``"replace_one"`` or ``"add_remove"`` for two arrays (n, d), which must then differ in one
        row in this manner, the others being the same in the same order.
    progress : callable or None
        Is told after some runs how many they were; there are ``2 * n_trials``.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        If a parameter is not as described, the data sets are equal or not neighbours, the mechanism
        raises or returns nothing but NaN, a statistic returns NaN, or statistics are to be
        learned from outputs that are not numbers of one shape.

    Notes
    -----
    Scores that differ by less than a millionth of their spread count as equal: floating-point
    rounding is not what a sound mechanism should be convicted for unless a statistic asks for it.

    An output that is NaN in some runs is an output like any other: learned statistics see it, and a
    mechanism that returns it on one data set alone is convicted.

    References
    ----------
    M. Jagielski, J. Ullman and A. Oprea, "Auditing differentially private machine learning: how
    private is private SGD?", NeurIPS 2020, Section 4 (Clopper-Pearson bounds).

    Examples
    --------
    Noise of half the scale that epsilon = 1 asks for:

    >>> def mechanism(data, rng):
    ...     return data + rng.laplace(scale=0.5)
    >>> mechanism.many = lambda data, rng, n: data + rng.laplace(scale=0.5, size=n)
    >>> result = audit_mechanism(mechanism, 0.0, 1.0, 1.0, 0.0, 20_000, random_state=0)
    >>> result.verdict, result.epsilon_lower_bound > 1.5
    ('violated', True)
    """
    if neighbours is not None:
        check_pair(data, neighbour, Neighbours.of(neighbours))
    refuse_equal(data, neighbour)
    claim = (epsilon, delta, confidence)
    return audited(
        mechanism, data, neighbour, claim, n_trials, statistic, random_state, progress or _unwatched
    )


def audited(
    mechanism, data, neighbour, claim, n_trials, statistic, random_state, progress
) -> AuditResult:
    """Audit a claim (epsilon, delta, confidence) on a pair as it is, which may be an equal one."""
    check_claim(*claim)
    epsilon, delta, confidence = claim
    check_integer("n_trials", n_trials, minimum=_FEWEST_TRIALS)
    if not callable(mechanism):
        raise ValueError(f"mechanism must be callable as mechanism(data, rng), got {mechanism!r}")
    start = time.process_time()
    runs, learning = as_generator(random_state).spawn(2)
    statistics = _statistics.prepared(statistic, data, neighbour)
    outputs = draw(mechanism, data, neighbour, n_trials, runs, progress)
    half = n_trials // 2
    n_learning = 0
    if statistics is None:
        n_learning = half // 2
        statistics = _statistics.learn(_part(outputs, 0, n_learning), learning)
    parts = _part(outputs, n_learning, half), _part(outputs, half, n_trials)
    events, values = _chosen_and_certified(statistics, *parts, epsilon, delta, 1.0 - confidence)
    bounds = _events.certified(events, epsilon, delta)
    verdict = _verdict(*bounds, epsilon, delta)
    advice = _oddity(values)
    if not advice and verdict == CANNOT_TELL:
        advice = _advice(n_trials - half, epsilon, delta, confidence)
    return AuditResult(
        verdict=verdict, epsilon=float(epsilon), delta=float(delta),
        epsilon_lower_bound=bounds[0], delta_lower_bound=bounds[1], confidence=float(confidence),
        epsilon_event=events[0], delta_event=events[1], n_trials=int(n_trials),
        cpu_seconds=time.process_time() - start, advice=advice,
    )  # fmt: skip


def _unwatched(n_runs: int) -> None:
    """Progress that nobody watches."""


def _chosen_and_certified(statistics, choosing, certifying, epsilon, delta, alpha):
    """Choose an event for epsilon and one for delta on one half, count them on the other.

    The events come with the values that each statistic took on each data set as they were chosen.
    """
    names = _statistics.names(statistics)
    scores = [[_statistics.score(s, outputs) for outputs in choosing] for s in statistics]
    roundings = [_events.Rounding.of(np.concatenate(pair)) for pair in scores]
    scores = [[rounded(k) for k in pair] for rounded, pair in zip(roundings, scores, strict=True)]
    choices = _events.choose(scores, epsilon, delta, alpha / 4)
    share = alpha / 2 if choices[0] == choices[1] else alpha / 4
    certified = {
        k: [roundings[k](_statistics.score(statistics[k], outputs)) for outputs in certifying]
        for k in sorted({choice.statistic for choice in choices})
    }
    values = [(np.unique(pair[0]), np.unique(pair[1])) for pair in scores]
    return [
        _events.certify(choice, names, roundings, certified, share) for choice in choices
    ], values


def _part(outputs, start: int, stop: int):
    """The runs of both data sets from one number to another."""
    return tuple(one[start:stop] for one in outputs)


def _verdict(epsilon_bound: float, delta_bound: float, epsilon: float, delta: float) -> str:
    """Compare bounds with the claim; see `AuditResult`."""
    if epsilon_bound > epsilon or delta_bound > delta:
        return VIOLATED
    close = epsilon > 0 and epsilon_bound >= _TELLING_SHARE * epsilon
    close_delta = delta > 0 and delta_bound >= _TELLING_SHARE * delta
    return CONSISTENT if close or close_delta else CANNOT_TELL


def _oddity(values) -> str:
    """What is odd about statistics that took one value on each data set; empty if one took more."""
    if any(one.size > 1 for pair in values for one in pair):
        return ""
    if all((first == second).all() for first, second in values):
        return (
            "all runs on both data sets score the same: either the mechanism returned one constant "
            "output, and what it releases was not audited, or the statistic does not see what "
            "varies; check the mechanism, or take another statistic"
        )
    return (
        "all runs on one data set score the same: the mechanism adds no noise, or the same in each "
        "run; check that nothing fixes its seed"
    )


def _advice(draws: int, epsilon: float, delta: float, confidence: float) -> str:
    """Whether more runs or another attack would tell more."""
    probability, loss = (1.0 + delta) / 2, 2 * epsilon if epsilon > 0 else np.inf
    needed = draws_needed(epsilon, delta, probability=probability, loss=loss, confidence=confidence)
    if needed > draws:
        return (
            f"too few runs: {2 * needed:,} trials are needed to convict a mechanism with twice the "
            f"claimed loss on an event of probability {probability:g}"
        )
    return (
        "the attack hardly tells the two data sets apart: on this pair the mechanism may be more "
        "private than claimed, or another pair or statistic is needed"
    )
