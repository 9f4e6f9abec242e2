"""The anytime audit: attempts of growing size, evaluated in batches until the claim is settled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from privclust.core.validation import as_generator
from privclust_audit.black_box import _statistics
from privclust_audit.black_box._bounds import Claim
from privclust_audit.black_box._events import Chosen, Event
from privclust_audit.black_box._result import (
    CLOSE,
    CONVICTED,
    HOPELESS,
    SPENT,
    TELLING_SHARE,
    AuditResult,
    concluded,
)
from privclust_audit.black_box._runs import draw, is_nan_alone, name_of, nan_alone
from privclust_audit.black_box._wealth import Counts, Wealth

_GROWTH = 4  # factor of the runs from one attempt to the next: a quarter chooses, the rest counts
_FEWEST_CHOOSING = 32  # choosing runs of the first attempt, or half of all if there are fewer
_LOOKS = 4  # evaluations while the number of counted runs reaches that of choosing runs
_LAST_SHARE = 0.5  # share of the error probability for the attempt with all runs
_OPTIMISM = 1.5  # standard errors by which later frequencies may be better


class _Runs:
    """All runs of an audit so far, in order."""

    def __init__(self, mechanism, pair, rng, progress: Callable[[int], None]) -> None:
        self._mechanism, self._pair, self._rng = mechanism, pair, rng
        self._progress = progress
        self.outputs: tuple | None = None
        self.n = 0

    def up_to(self, n: int):
        data, neighbour = self._pair
        new = draw(self._mechanism, data, neighbour, n - self.n, self._rng, self._progress)
        self.outputs = new if self.outputs is None else tuple(map(_joined, self.outputs, new))
        self.n = n
        return new


def _joined(outputs, more):
    """Return outputs and more of them: an array or a list."""
    return np.concatenate([outputs, more]) if isinstance(more, np.ndarray) else outputs + more


class _Attempt:
    """Events chosen on some runs, and their counts on later runs."""

    def __init__(self, statistics, outputs, claim: Claim, alpha: float) -> None:
        self._chosen, self._claim = Chosen(statistics, outputs, claim, alpha), claim
        # Bonferroni over the events: each has its own martingale, and each is tried at every look.
        self._alpha = alpha / len(self._chosen.counts)
        self._wealths = [Wealth(Counts(0, 0, 0, 0), before) for before in self._chosen.counts]

    @property
    def values(self):
        return self._chosen.values

    def count(self, outputs) -> None:
        counts = self._chosen.counted(outputs)
        self._wealths = [
            Wealth(wealth.counts + more, wealth.before)
            for wealth, more in zip(self._wealths, counts, strict=True)
        ]

    def excludes(self, epsilon: float, delta: float) -> bool:
        """Whether an event's wealth excludes a claim, or a share of it."""
        return self._exclude(self._wealths, epsilon, delta)

    def is_close(self, closeness: float, draws: int) -> bool:
        """Whether a share of the claim is proved, and `draws` draws would hardly convict."""
        epsilon, delta = self._claim.epsilon, self._claim.delta
        if not (
            (epsilon > 0 and self.excludes(closeness * epsilon, delta))
            or (delta > 0 and self.excludes(epsilon, closeness * delta))
        ):
            return False
        # The bound is close, but frequencies like those so far would still convict with all runs.
        expected = [wealth.projected(draws, 0.0) for wealth in self._wealths]
        return not self._exclude(expected, epsilon, delta)

    def is_hopeless(self, draws: int) -> bool:
        """Whether that many draws in total would hardly suffice for any verdict."""
        epsilon, delta = self._claim.epsilon, self._claim.delta
        hoped = [wealth.projected(draws, _OPTIMISM) for wealth in self._wealths]
        return not (
            self._exclude(hoped, TELLING_SHARE * epsilon, delta)
            or (delta > 0 and self._exclude(hoped, epsilon, TELLING_SHARE * delta))
        )

    def _exclude(self, wealths, epsilon: float, delta: float) -> bool:
        # Ville's inequality: a wealth of 1 / alpha excludes the claim.
        return any(one.against(epsilon, delta) >= -np.log(self._alpha) for one in wealths)

    def bounds(self) -> tuple[float, float]:
        epsilon, delta = self._claim.epsilon, self._claim.delta
        return (
            max(wealth.epsilon_bound(delta, self._alpha) for wealth in self._wealths),
            max(wealth.delta_bound(epsilon, self._alpha) for wealth in self._wealths),
        )

    def events(self) -> list[Event]:
        return self._chosen.events([wealth.counts for wealth in self._wealths])


def audited(
    mechanism, data, neighbour, claim, n_trials, statistic, random_state, progress, closeness
) -> AuditResult:
    """Audit a claim until it is settled; see `audit_mechanism`."""
    start = time.process_time()
    drawing, learning = as_generator(random_state).spawn(2)
    given = _statistics.prepared(statistic)
    runs = _Runs(mechanism, (data, neighbour), drawing, progress)
    attempt = None
    for n_choosing, n_last, share in _plan(n_trials):
        # Later attempts find enough runs: all runs of the attempt before choose the new events.
        if runs.n < n_choosing:
            runs.up_to(n_choosing)
        # No event can be chosen among outputs that are all NaN; more runs may have others.
        if is_nan_alone(runs.outputs):
            continue
        attempt = _begun(given, runs.outputs, claim, share * claim.alpha, learning)
        span = n_choosing, n_last, n_trials
        stopped = _followed(attempt, runs, span, claim, closeness)
        if stopped != SPENT:
            break
    if attempt is None:
        raise nan_alone(name_of(mechanism), n_trials)
    seconds = time.process_time() - start
    return concluded(
        claim, attempt.bounds(), attempt.events(), attempt.values, runs.n, seconds, stopped
    )


def _plan(n_trials: int) -> Iterator[tuple[int, int, float]]:
    """Return the attempts: runs that choose, runs in total, and the share of alpha."""
    last = [n_trials]
    while last[-1] // _GROWTH**2 >= _FEWEST_CHOOSING:
        last.append(last[-1] // _GROWTH)
    early = len(last) - 1
    for n in reversed(last):
        share = 1.0 if not early else _LAST_SHARE if n == n_trials else (1 - _LAST_SHARE) / early
        # Small attempts have fewer than 32 runs in a quarter, too few for a choice: they take more.
        yield max(n // _GROWTH, min(_FEWEST_CHOOSING, n // 2)), n, share


def _begun(given, outputs, claim, alpha: float, rng) -> _Attempt:
    """Choose events on all runs so far; without a statistic, learn some on half of them."""
    if given is not None:
        return _Attempt(given, outputs, claim, alpha)
    # A threshold must be chosen on runs that did not train the statistic, whose scores on its own
    # training runs are too good.
    half = len(outputs[0]) // 2
    learned = _statistics.learn(tuple(one[:half] for one in outputs), rng)
    return _Attempt(learned, tuple(one[half:] for one in outputs), claim, alpha)


def _followed(attempt: _Attempt, runs: _Runs, span, claim, closeness: float) -> str:
    """Make and count runs until the claim is settled or the attempt ends; return which."""
    n_choosing, n_last, n_trials = span
    batch = max(1, n_choosing // _LOOKS)
    for n in range(n_choosing, n_last, batch):
        attempt.count(runs.up_to(min(n + batch, n_last)))
        if attempt.excludes(claim.epsilon, claim.delta):
            return CONVICTED
        if attempt.is_close(closeness, n_trials):
            return CLOSE
        # Only the last attempts may give up: events chosen on few runs can be poor, although a
        # later choice would convict. The last attempt counts all runs except a quarter.
        is_late = n_last >= n_trials // _GROWTH
        if is_late and attempt.is_hopeless(n_trials - n_trials // _GROWTH):
            return HOPELESS
    return SPENT
