"""The audit of a mechanism: bounds on its privacy that use only its outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer, check_option, check_real
from privclust.privacy.sensitivity import Neighbours
from privclust_audit.black_box import _anytime, _events, _statistics
from privclust_audit.black_box._bounds import check_claim
from privclust_audit.black_box._result import (
    CANNOT_TELL,
    AuditResult,
    advice_for,
    oddity,
    verdict_on,
)
from privclust_audit.black_box._runs import draw, is_nan_alone, name_of, nan_alone
from privclust_audit.black_box._statistics import Statistic
from privclust_audit.black_box.neighbours import check_pair, refuse_equal

_FEWEST_TRIALS = 16
_STOPPING = ("fixed", "anytime")


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
    progress: Callable[[int], object] | None = None,
    stopping: str = "fixed",
    closeness: float = 0.9,
) -> AuditResult:
    r"""Attack a claim of :math:`(\epsilon, \delta)`-differential privacy on one pair of data sets.

    With a fixed number of runs the mechanism runs `n_trials` times on each. The first half of the
    runs chooses the statistic, threshold, side and roles of the data sets. The other half only
    counts, so that no correction for the choice is needed. There are two chosen events, one for
    epsilon and one for delta, with two one-sided Clopper-Pearson bounds each; all four hold
    together with probability `confidence` (Bonferroni: each errs with (1 - confidence) / 4, or / 2
    if the two events are the same). Both events serve both bounds.

    With ``stopping="anytime"`` the runs come in batches. The audit stops at a conviction, when the
    bounds are close to the claim, when more runs would hardly change the verdict, or after
    `n_trials` runs. There are attempts of growing size, with at most ..., 1/16, 1/4 and all of the
    runs: all earlier runs, a quarter of an attempt's, choose events; later runs count. Bounds come
    from a betting martingale, and hold for any stopping time (``docs/audit_quality.md``). The last
    attempt has an error of half of 1 - confidence, and earlier ones share the other half.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data, rng)`` returns an output. Runs must be independent given `rng`, a numpy
        Generator, which a mechanism with its own randomness may ignore. An attribute
        ``mechanism.many(data, rng, n)`` that returns n outputs as one array is used if present.
    data, neighbour : object
        Two different data sets that are neighbours by the claim. The audit checks this only if
        `neighbours` is given.
    epsilon : float
        Claimed, in nats, at least 0.
    delta : float
        Claimed, from 0 to less than 1.
    n_trials : int
        Runs on each data set, at least 16; see `draws_needed`. With ``stopping="anytime"``, the
        largest number.
    statistic : None, callable, likelihood ratio, or list of these
        Maps an output to a number, which may be infinite; ``statistic.many`` maps an array of
        outputs to an array. See `likelihood_ratio`. None learns several on a quarter of the runs,
        from outputs that are numbers or arrays of one shape.
    random_state : None, int, numpy.random.Generator or RandomState
    confidence : float
        Greater than 0, less than 1.
    neighbours : Neighbours, str or None
        ``"replace_one"`` or ``"add_remove"`` for two arrays (n, d), which must then differ in one
        row in this way, with the same other rows in the same order.
    progress : callable or None
        Called after some runs with their number; at most ``2 * n_trials`` in total.
    stopping : {"fixed", "anytime"}
    closeness : float
        Share of the claimed epsilon, or of a delta greater than 0, at which an audit with
        ``stopping="anytime"`` stops because it is nearly proved, unless the frequencies so far
        would convict with `n_trials`; above 0, at most 1.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        If a parameter is not as described, the data sets are equal or not neighbours, the mechanism
        raises or always returns NaN, a statistic returns NaN, or outputs for learned statistics are
        not numbers of one shape.

    Notes
    -----
    Scores that differ by less than a millionth of their spread count as equal: a private mechanism
    should not be convicted for floating-point rounding, unless a statistic measures it.

    An output that is NaN in some runs is an output like any other: learned statistics use it, and a
    mechanism that returns it on only one data set is convicted.

    References
    ----------
    M. Jagielski, J. Ullman and A. Oprea, "Auditing differentially private machine learning: how
    private is private SGD?", NeurIPS 2020, Section 4 (Clopper-Pearson bounds).

    Examples
    --------
    Noise of half the scale that epsilon = 1 requires:

    >>> def mechanism(data, rng):
    ...     return data + rng.laplace(scale=0.5)
    >>> mechanism.many = lambda data, rng, n: data + rng.laplace(scale=0.5, size=n)
    >>> result = audit_mechanism(mechanism, 0.0, 1.0, 1.0, 0.0, 20_000, random_state=0)
    >>> result.verdict, result.epsilon_lower_bound > 1.5
    ('violated', True)
    >>> result = audit_mechanism(
    ...     mechanism, 0.0, 1.0, 1.0, 0.0, 20_000, random_state=0, stopping="anytime"
    ... )
    >>> result.verdict, result.stopped, result.n_trials < 5_000
    ('violated', 'convicted', True)
    """
    if neighbours is not None:
        check_pair(data, neighbour, Neighbours.of(neighbours))
    refuse_equal(data, neighbour)
    check_option("stopping", stopping, _STOPPING)
    check_real("closeness", closeness)
    if closeness > 1:
        raise ValueError(f"closeness must be at most 1, got {closeness!r}")
    claim = (epsilon, delta, confidence)
    if stopping == "anytime":
        _check(mechanism, claim, n_trials)
        return _anytime.audited(
            mechanism, data, neighbour, claim, n_trials, statistic, random_state,
            progress or _unwatched, closeness,
        )  # fmt: skip
    return audited(
        mechanism, data, neighbour, claim, n_trials, statistic, random_state, progress or _unwatched
    )


def audited(
    mechanism, data, neighbour, claim, n_trials, statistic, random_state, progress
) -> AuditResult:
    """Audit a claim (epsilon, delta, confidence) on any pair, even an equal one."""
    _check(mechanism, claim, n_trials)
    epsilon, delta, confidence = claim
    start = time.process_time()
    runs, learning = as_generator(random_state).spawn(2)
    statistics = _statistics.prepared(statistic, data, neighbour)
    outputs = draw(mechanism, data, neighbour, n_trials, runs, progress)
    if is_nan_alone(outputs):
        raise nan_alone(name_of(mechanism), n_trials)
    half = n_trials // 2
    n_learning = 0
    if statistics is None:
        n_learning = half // 2
        statistics = _statistics.learn(_part(outputs, 0, n_learning), learning)
    parts = _part(outputs, n_learning, half), _part(outputs, half, n_trials)
    events, values = _chosen_and_certified(statistics, *parts, epsilon, delta, 1.0 - confidence)
    bounds = _events.certified(events, epsilon, delta)
    verdict = verdict_on(*bounds, epsilon, delta)
    advice = oddity(values)
    if not advice and verdict == CANNOT_TELL:
        advice = advice_for(n_trials - half, epsilon, delta, confidence)
    return AuditResult(
        verdict=verdict, epsilon=float(epsilon), delta=float(delta),
        epsilon_lower_bound=bounds[0], delta_lower_bound=bounds[1], confidence=float(confidence),
        epsilon_event=events[0], delta_event=events[1], n_trials=int(n_trials),
        cpu_seconds=time.process_time() - start, advice=advice,
    )  # fmt: skip


def _check(mechanism, claim, n_trials) -> None:
    """Raise a ValueError unless mechanism, claim and number of runs are valid."""
    check_claim(*claim)
    check_integer("n_trials", n_trials, minimum=_FEWEST_TRIALS)
    if not callable(mechanism):
        raise ValueError(f"mechanism must be callable as mechanism(data, rng), got {mechanism!r}")


def _unwatched(n_runs: int) -> None:
    """Ignore progress."""


def _chosen_and_certified(statistics, choosing, certifying, epsilon, delta, alpha):
    """Choose an event for epsilon and one for delta on one half, count them on the other.

    Also returns the values that each statistic took on each data set for the choice.
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
    return tuple(one[start:stop] for one in outputs)
