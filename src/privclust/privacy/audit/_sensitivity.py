"""Search for neighbours that move a statistic further than its stated sensitivity."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust.validation import as_generator, check_integer, check_option, check_real

NORMS = ("l1", "l2", "linf")
_ROUNDING = 1e-9  # a change may exceed the bound by this part of it
_GROWTH, _SHRINKAGE = 1.5, 0.9  # of the climb's steps: one success in about five keeps them


@dataclass(frozen=True)
class SensitivitySearch:
    """The furthest that neighbours were found to move a statistic, beside the stated bound.

    Attributes
    ----------
    largest : float
        Largest change found, in the norm.
    bound : float
        The stated sensitivity.
    norm : {"l1", "l2", "linf"}
    exceeded : bool
        Whether `largest` is above `bound` by more than rounding: then the bound is wrong. If not,
        it may be wrong still.
    data, neighbour : object
        The pair that moves it so far.
    n_trials : int
        Pairs tried.
    cpu_seconds : float
    """

    largest: float
    bound: float
    norm: str
    exceeded: bool
    data: Any
    neighbour: Any
    n_trials: int
    cpu_seconds: float


def replace_one(draw_record: Callable) -> Callable:
    """Return the change that gives one row of an array (n, d) other values.

    Parameters
    ----------
    draw_record : callable
        ``draw_record(rng)`` returns a row (d,) from anywhere in the domain.

    Examples
    --------
    >>> change = replace_one(lambda rng: rng.uniform(size=2))
    >>> int(change(np.zeros((3, 2)), np.random.default_rng(0)).any(axis=1).sum())
    1
    """

    def change(data, rng):
        neighbour = np.array(data)
        neighbour[rng.integers(len(neighbour))] = draw_record(rng)
        return neighbour

    return change


def add_remove(draw_record: Callable) -> Callable:
    """Return the change that adds a row to an array (n, d), or takes one away, as chance has it.

    Parameters
    ----------
    draw_record : callable
        ``draw_record(rng)`` returns a row (d,) from anywhere in the domain.

    Examples
    --------
    >>> change = add_remove(lambda rng: rng.uniform(size=2))
    >>> len(change(np.zeros((3, 2)), np.random.default_rng(0))) in (2, 4)
    True
    """

    def change(data, rng):
        if len(data) > 1 and rng.random() < 0.5:
            return np.delete(data, rng.integers(len(data)), axis=0)
        return np.concatenate([data, np.asarray(draw_record(rng))[None]])

    return change


def numerical_sensitivity(
    function: Callable,
    draw: Callable,
    change: Callable,
    norm: str,
    n_trials: int,
    bound: float,
    *,
    project: Callable | None = None,
    random_state=None,
) -> SensitivitySearch:
    r"""Search for neighbours X, X' that maximise :math:`\|f(X) - f(X')\|`.

    Half of the trials draw pairs at random, the other half climb from the best one: a row of both
    data sets, or the record in which they differ, is exchanged for a fresh one or moved a little;
    what improves is kept, and the length of the moves adapts. No gradient is used.

    Parameters
    ----------
    function : callable
        ``function(X)`` returns a number or an array, of one shape for all data sets; the statistic
        before noise. It must be deterministic.
    draw : callable
        ``draw(rng)`` returns a data set; for climbing, an array (n, d) of records.
    change : callable
        ``change(X, rng)`` returns a neighbour of X and leaves X alone: `replace_one`, `add_remove`,
        or one's own.
    norm : {"l1", "l2", "linf"}
        Of all entries together, real and imaginary parts counted apart.
    n_trials : int
        Pairs to try, at least 2.
    bound : float
        The stated sensitivity, finite and positive.
    project : callable or None
        ``project(row)`` returns the nearest row (d,) of the domain. Without it rows are exchanged,
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
    The mean of five rows in the unit ball moves by at most 2/5, and not by at most 1/5:

    >>> def ball(rows):
    ...     return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1.0)
    >>> found = numerical_sensitivity(
    ...     lambda X: X.mean(axis=0),
    ...     lambda rng: ball(rng.normal(size=(5, 3))),
    ...     replace_one(lambda rng: ball(rng.normal(size=3))),
    ...     "l2", 2000, 0.2, project=ball, random_state=0,
    ... )
    >>> found.exceeded, 0.39 < found.largest < 0.4 * (1 + 1e-9)
    (True, True)
    """
    check_option("norm", norm, NORMS)
    check_integer("n_trials", n_trials, minimum=2)
    check_real("bound", bound)
    start = time.process_time()
    rng = as_generator(random_state)
    largest, pair = -1.0, None
    for _ in range(n_trials - n_trials // 2):
        data = draw(rng)
        candidate = (data, change(data, rng))
        moved = _distance(function, candidate, norm)
        if moved > largest:
            largest, pair = moved, candidate
    if (climb := _Climb.of(pair, project)) is None:
        tries = (_changed(pair, change, rng) for _ in range(n_trials // 2))
        largest, pair = _best(function, tries, norm, largest, pair)
    else:
        largest, pair = climb.run(function, draw, norm, largest, n_trials // 2, rng)
    return SensitivitySearch(
        largest=largest,
        bound=float(bound),
        norm=norm,
        exceeded=largest > bound * (1.0 + _ROUNDING),
        data=pair[0],
        neighbour=pair[1],
        n_trials=int(n_trials),
        cpu_seconds=time.process_time() - start,
    )


class _Climb:
    """A pair as the rows of the larger data set, and one of them that the other has otherwise.

    `record` is that row's value in the other data set, None where it is missing there.
    """

    def __init__(self, rows, index: int, record, project: Callable | None) -> None:
        self._rows, self._index, self._record, self._project = rows, index, record, project
        self._step = float(np.std(rows)) or 1.0

    @classmethod
    def of(cls, pair, project: Callable | None) -> _Climb | None:
        """Understand a pair; None where it is not arrays that differ in one row."""
        first, second = (np.asarray(one) for one in pair)
        if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
            return None
        if len(first) == len(second):
            differing = np.flatnonzero((first != second).any(axis=1))
            if differing.size != 1:
                return None
            return cls(first.astype(float), differing[0], second[differing[0]], project)
        longer, shorter = (first, second) if len(first) > len(second) else (second, first)
        if len(longer) != len(shorter) + 1:
            return None
        unequal = np.flatnonzero((longer[:-1] != shorter).any(axis=1))
        index = int(unequal[0]) if unequal.size else len(shorter)
        if (np.delete(longer, index, axis=0) != shorter).any():
            return None
        return cls(longer.astype(float), index, None, project)

    def run(self, function, draw, norm: str, largest: float, n_trials: int, rng):
        """Climb; return the largest change and its pair."""
        for _ in range(n_trials):
            rows, record, is_step = self._moved(draw, rng)
            moved = _distance(function, self._pair(rows, record), norm)
            if moved > largest:
                largest, self._rows, self._record = moved, rows, record
            if is_step:
                self._step *= _GROWTH if moved >= largest else _SHRINKAGE
        return largest, self._pair(self._rows, self._record)

    def _moved(self, draw, rng):
        """Another row for one of the rows, or for the other data set's record."""
        is_step = self._project is not None and rng.random() < 0.8
        at_record = self._record is not None and rng.random() < 0.4
        row = self._index if rng.random() < 0.4 else int(rng.integers(len(self._rows)))
        old = self._record if at_record else self._rows[row]
        if is_step:
            new = self._project(old + self._step * rng.normal(size=old.shape))
        else:
            fresh = np.asarray(draw(rng), dtype=float)
            new = fresh[rng.integers(len(fresh))]
        if at_record:
            return self._rows, np.asarray(new, dtype=float), is_step
        rows = self._rows.copy()
        rows[row] = new
        return rows, self._record, is_step

    def _pair(self, rows, record):
        """The two data sets."""
        if record is None:
            return rows, np.delete(rows, self._index, axis=0)
        other = rows.copy()
        other[self._index] = record
        return rows, other


def _changed(pair, change: Callable, rng):
    """The same data set with another neighbour, or the neighbour in its place."""
    data = pair[int(rng.random() < 0.5)]
    return data, change(data, rng)


def _best(function, tries, norm: str, largest: float, pair):
    """The pair that moves the function furthest."""
    for candidate in tries:
        moved = _distance(function, candidate, norm)
        if moved > largest:
            largest, pair = moved, candidate
    return largest, pair


def _distance(function, pair, norm: str) -> float:
    """How far apart the function's values are."""
    values = [np.asarray(function(one)) for one in pair]
    if values[0].shape != values[1].shape:
        raise ValueError(
            f"function must return one shape for all data sets, got {values[0].shape} and "
            f"{values[1].shape}"
        )
    difference = np.ravel(values[0] - values[1])
    if difference.dtype.kind == "c":
        difference = difference.view(difference.real.dtype)
    difference = np.abs(difference.astype(float))
    if not np.isfinite(difference).all():
        raise ValueError("function must return finite numbers")
    if norm == "linf":
        return float(difference.max(initial=0.0))
    return float(difference.sum() if norm == "l1" else np.linalg.norm(difference))
