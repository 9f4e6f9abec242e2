"""Search for neighbours that change a statistic by more than its stated sensitivity."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer, check_option, check_real
from privclust_audit.black_box.neighbours import Rows

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}
_BOUND_TOLERANCE = 1e-9  # relative excess over the bound that is ignored
_GROWTH, _SHRINKAGE = 1.5, 0.9  # factors of a step after a gain or loss: equal at one gain in five
_FIRST_STEP, _LONGEST_STEP, _SHORTEST_STEP = 0.3, 1.0, 1e-5  # in units of the domain's extent
_LEAST_GAIN = 1e-4  # relative gain since the last reset that allows another reset of steps
_PATIENCE = 200  # tries without a gain that end a climb
_MOVE_PROBABILITY = 0.8  # of moving a row, if possible, instead of replacing it
_ONE_AXIS_PROBABILITY = 0.5  # of moving a row along one axis, by at least the step
_N_STARTS = 8  # climbs from the best random pairs; later ones start anywhere


@dataclass(frozen=True)
class SensitivitySearch:
    """The largest change of a statistic found between neighbours, and the stated bound.

    Attributes
    ----------
    largest : float
        Largest change found, in the norm.
    bound : float
        The stated sensitivity.
    norm : {"l1", "l2", "linf"}
    exceeded : bool
        Whether `largest` is above `bound` by more than rounding: then the bound is wrong. If not,
        it may still be wrong.
    data, neighbour : object
        The pair with the largest change.
    n_trials : int
        Pairs tried.
    """

    largest: float
    bound: float
    norm: str
    exceeded: bool
    data: Any
    neighbour: Any
    n_trials: int


def numerical_sensitivity(
    function: Callable,
    draw: Callable,
    change: Callable,
    norm: str,
    n_trials: int,
    bound: float,
    *,
    project: Callable | None = None,
    random_state: RandomState = None,
) -> SensitivitySearch:
    r"""Search for neighbours X, X' that maximise :math:`\|f(X) - f(X')\|`.

    Half of the trials draw pairs at random, the other half climb from the best of them. A row of
    both data sets, or the record in which they differ, is replaced or moved by adaptive steps. A
    gain lengthens them, up to the extent of the drawn data sets, and a loss shortens them. Ties are
    accepted. Tiny steps are reset to long ones; if this fails, or nothing was gained for long, the
    climb restarts from another good pair, later from fresh ones. No gradient is used.

    Parameters
    ----------
    function : callable
        ``function(X)`` returns a number or an array, of one shape for all data sets; the statistic
        before noise. It must be deterministic.
    draw : callable
        ``draw(rng)`` returns a data set; for climbing, an array (n, d) of records.
    change : callable
        ``change(X, rng)`` returns a neighbour of X without changing X: `replace_one`, `add_remove`
        or another function.
    norm : {"l1", "l2", "linf"}
        Norm of all entries together, with separate real and imaginary parts.
    n_trials : int
        Pairs to try, at least 2.
    bound : float
        The stated sensitivity, finite and positive.
    project : callable or None
        ``project(row)`` returns the nearest row (d,) of the domain. Without it rows are replaced,
        never moved, because a moved one might leave the domain.
    random_state : None, int, numpy.random.Generator or RandomState

    Returns
    -------
    SensitivitySearch

    Raises
    ------
    ValueError
        If a parameter is not as described, or the statistic is not finite or changes its shape.

    Examples
    --------
    The mean of five rows in the unit ball changes by at most 2/5, not by at most 1/5:

    >>> from privclust_audit.black_box import replace_one
    >>> def ball(rows):
    ...     return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1.0)
    >>> search = numerical_sensitivity(
    ...     lambda X: X.mean(axis=0),
    ...     lambda rng: ball(rng.normal(size=(5, 3))),
    ...     replace_one(lambda rng: ball(rng.normal(size=3))),
    ...     "l2", 2000, 0.2, project=ball, random_state=0,
    ... )
    >>> search.exceeded, 0.39 < search.largest < 0.4 * (1 + 1e-9)
    (True, True)
    """
    check_option("norm", norm, tuple(NORMS))
    check_integer("n_trials", n_trials, minimum=2)
    check_real("bound", bound)
    rng = as_generator(random_state)

    def evaluated():
        data = draw(rng)
        pair = (data, change(data, rng))
        return _distance(function, pair, norm), pair

    n_random = n_trials - n_trials // 2
    # Without the key, pairs with equal distances would compare arrays, which is an error.
    starts = heapq.nlargest(_N_STARTS, (evaluated() for _ in range(n_random)), key=itemgetter(0))
    climb = _Climb(lambda pair: _distance(function, pair, norm), draw, change, project, starts)
    largest, pair = climb.run(evaluated, n_trials // 2, rng)
    return SensitivitySearch(
        largest=largest, bound=float(bound), norm=norm,
        exceeded=largest > bound * (1.0 + _BOUND_TOLERANCE), data=pair[0], neighbour=pair[1],
        n_trials=int(n_trials),
    )  # fmt: skip


class _Climb:
    """Climbs from pairs with their distances, the best first; see `numerical_sensitivity`."""

    def __init__(self, distance: Callable, draw, change, project, starts) -> None:
        self._distance, self._draw, self._change = distance, draw, change
        self._project, self._starts = project, starts
        self._extent = _extent([pair for _, pair in starts])

    def run(self, evaluated: Callable, n_trials: int, rng):
        """Climb until the trials are used up; return the largest change and its pair."""
        largest, best = self._starts[0]
        # `pop` takes from the end: the best start comes first.
        waiting = self._starts[::-1]
        while n_trials > 0:
            if waiting:
                height, pair = waiting.pop()
            else:
                height, pair = evaluated()
                n_trials -= 1
            level, pair, used = self._ascend(height, pair, n_trials, rng)
            n_trials -= used
            if level > largest:
                largest, best = level, pair
        return largest, best

    def _ascend(self, level: float, pair, most: int, rng):
        """Climb for at most `most` tries; return the last pair and the number of tries."""
        step, idle, used, before = _FIRST_STEP, 0, 0, level
        while used < most and idle < _PATIENCE:
            candidate, is_step = self._varied(pair, step, rng)
            moved = self._distance(candidate)
            used += 1
            # A gain by rounding is accepted, but neither ends the wait nor lengthens the step.
            gain, least = moved - level, _BOUND_TOLERANCE * level
            if gain >= 0:
                level, pair = moved, candidate
            idle = 0 if gain > least else idle + 1
            if is_step and gain > least:
                step = min(step * _GROWTH, _LONGEST_STEP)
            elif is_step and gain < -least:
                step *= _SHRINKAGE
            if step < _SHORTEST_STEP:
                if level - before <= _LEAST_GAIN * level:
                    break
                step, before = _FIRST_STEP, level
        return level, pair, used

    def _varied(self, pair, step: float, rng):
        """Return another pair, and whether its change is in proportion to the step."""
        rows = Rows.of(pair)
        if rows is None:
            data = pair[int(rng.random() < 0.5)]
            return (data, self._change(data, rng)), False
        where = rows.pick(rng)
        if self._project is not None and rng.random() < _MOVE_PROBABILITY:
            move = self._extent * rng.normal(size=self._extent.shape)
            is_step = rng.random() >= _ONE_AXIS_PROBABILITY
            if is_step:
                move = step * move
            else:  # one coordinate, since steps in all of them rarely reach corners
                # Lengths from the step to the extent, evenly by logarithm.
                length = step ** rng.random()
                move = length * np.where(np.arange(move.size) == rng.integers(move.size), move, 0.0)
            new = self._project(rows.row(where) + move)
            return rows.with_row(where, new).pair(), is_step
        # One row of a new data set: `change` draws a record, too, but does not return it alone.
        fresh = np.asarray(self._draw(rng), dtype=float)
        return rows.with_row(where, fresh[rng.integers(len(fresh))]).pair(), False


def _extent(pairs):
    """Return the extent of the rows of these pairs, by column; None for other data sets."""
    tables = [rows.rows for rows in map(Rows.of, pairs) if rows is not None]
    if not tables:
        return None
    extent = np.ptp(np.concatenate(tables), axis=0)
    # A column that is constant among the starts may vary in the domain.
    return np.where(extent > 0, extent, extent.max(initial=0.0) or 1.0)


def _distance(function, pair, norm: str) -> float:
    values = [np.asarray(function(one)) for one in pair]
    if values[0].shape != values[1].shape:
        raise ValueError(
            f"function must return one shape for all data sets, got {values[0].shape} and "
            f"{values[1].shape}"
        )
    difference = np.ravel(values[0] - values[1])
    if difference.dtype.kind == "c":
        # Real and imaginary parts are separate entries, as in the noise that is added to them.
        difference = difference.view(difference.real.dtype)
    difference = difference.astype(float)
    if not np.isfinite(difference).all():
        raise ValueError("function must return finite numbers")
    return float(np.linalg.norm(difference, NORMS[norm])) if difference.size else 0.0
