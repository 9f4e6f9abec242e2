"""The audit of a mechanism: bounds on its privacy that use only its outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer, check_option, check_real
from privclust.privacy.sensitivity import Neighbours
from privclust_audit.black_box import _anytime, _statistics
from privclust_audit.black_box._bounds import (
    Claim,
    delta_bound,
    epsilon_bound,
    lower_probability,
    upper_probability,
)
from privclust_audit.black_box._events import Chosen
from privclust_audit.black_box._result import AuditResult, concluded
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
        Runs on each data set, at least 16. With ``stopping="anytime"``, the
        largest number.
    statistic : None, callable, or list of these
        Maps an output to a number, which may be infinite; ``statistic.many`` maps an array of
        outputs to an array. See `likelihood_ratio`. None learns several on half of the runs that
        choose, from outputs that are numbers or arrays of one shape.
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
    claim = Claim(epsilon, delta, confidence)
    check_integer("n_trials", n_trials, minimum=_FEWEST_TRIALS)
    audit = partial(_anytime.audited, closeness=closeness) if stopping == "anytime" else _fixed
    watched = progress or (lambda n_runs: None)
    return audit(mechanism, data, neighbour, claim, n_trials, statistic, random_state, watched)


def _fixed(
    mechanism, data, neighbour, claim, n_trials, statistic, random_state, progress
) -> AuditResult:
    """Audit a claim with a fixed number of runs; see `audit_mechanism`."""
    start = time.process_time()
    # Separate streams: how many numbers a classifier draws must not change the mechanism's runs.
    runs, learning = as_generator(random_state).spawn(2)
    statistics = _statistics.prepared(statistic)
    outputs = draw(mechanism, data, neighbour, n_trials, runs, progress)
    if is_nan_alone(outputs):
        raise nan_alone(name_of(mechanism), n_trials)
    half = n_trials // 2
    n_learning = 0
    if statistics is None:
        n_learning = half // 2
        statistics = _statistics.learn(_part(outputs, 0, n_learning), learning)
    chosen = Chosen(statistics, _part(outputs, n_learning, half), claim, claim.alpha)
    counts = chosen.counted(_part(outputs, half, n_trials))
    # Two one-sided bounds for each event share the error probability (Bonferroni).
    alpha = claim.alpha / 2 / len(counts)
    known = [
        (
            lower_probability(one.hits, one.draws, alpha),
            upper_probability(one.other_hits, one.other_draws, alpha),
        )
        for one in counts
    ]
    bounds = (
        float(max(epsilon_bound(*both, claim.delta) for both in known)),
        float(max(delta_bound(*both, claim.epsilon) for both in known)),
    )
    events, seconds = chosen.events(counts), time.process_time() - start
    return concluded(claim, bounds, events, chosen.values, n_trials, seconds)


def _part(outputs, start: int, stop: int):
    return tuple(one[start:stop] for one in outputs)
