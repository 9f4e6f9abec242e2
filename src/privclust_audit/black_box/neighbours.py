"""Neighbouring arrays of records, and changes of one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privclust.privacy.sensitivity import Neighbours
from privclust_audit.black_box._runs import LABELS

_DIFFERENCE_PROBABILITY = 0.4  # of changing the record, or row, in which the two differ


def replace_one(draw_record: Callable) -> Callable:
    """Return the change that gives one row of an array (n, d) other values.

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
    """Return the change that adds a row to an array (n, d), or removes one, at random.

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


def refuse_equal(data, neighbour, names: tuple[str, str] = LABELS) -> None:
    """Raise a ValueError that names two data sets if they are the same, or equal arrays."""
    try:
        is_equal = data is neighbour or np.array_equal(data, neighbour)
        # Second, because `equal_nan` raises a TypeError for entries such as strings.
        is_equal = is_equal or np.array_equal(data, neighbour, equal_nan=True)
    except (TypeError, ValueError):  # no arrays, or of entries that cannot be NaN
        is_equal = False
    if is_equal:
        raise ValueError(
            f"{names[0]} and {names[1]} are equal: no run can tell them apart, whatever the "
            "mechanism; take two that differ in one record"
        )


def check_pair(
    data, neighbour, relation: Neighbours | None, names: tuple[str, str] = LABELS
) -> None:
    """Raise a ValueError that names two arrays (n, d) unless they differ in one record.

    One record is replaced or added; `relation` requires one of these.
    """
    pair = np.asarray(data), np.asarray(neighbour)
    if pair[0].ndim != 2 or pair[1].ndim != 2:
        raise ValueError(
            f"{names[0]} and {names[1]} must be arrays (n, d) of records, got shapes "
            f"{pair[0].shape} and {pair[1].shape}"
        )
    refuse_equal(*pair, names)
    lengths = len(pair[0]), len(pair[1])
    possible = Neighbours.REPLACE_ONE if lengths[0] == lengths[1] else Neighbours.ADD_REMOVE
    problem = ""
    if pair[0].shape[1] != pair[1].shape[1]:
        problem = f"they have {pair[0].shape[1]:,} and {pair[1].shape[1]:,} columns"
    elif abs(lengths[0] - lengths[1]) > 1 or relation not in (None, possible):
        problem = f"they have {lengths[0]:,} and {lengths[1]:,} rows"
    elif Rows.of(pair) is None:
        problem = "row by row, more than one record differs"
    if problem:
        claimed = f"{relation} neighbours" if relation else "neighbours"
        raise ValueError(
            f"{names[0]} and {names[1]} are not {claimed}: {problem}; a claim is about two data "
            "sets that differ in one record, so other pairs cannot show a violation"
        )


@dataclass(frozen=True)
class Rows:
    """A pair as the rows of its larger data set, and the row in which the other differs.

    `record` is that row's value in the other data set, None if it is missing there; `is_first` says
    whether the larger one is the first of the two.
    """

    rows: np.ndarray
    index: int
    record: np.ndarray | None
    is_first: bool

    @classmethod
    def of(cls, pair) -> Rows | None:
        """Return a pair in this form; None if it is not arrays that differ in at most one row."""
        first, second = (np.asarray(one) for one in pair)
        if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
            return None
        if len(first) == len(second):
            # NaN differs from itself: a row with NaN counts as changed.
            differing = np.flatnonzero((first != second).any(axis=1))
            if differing.size > 1 or len(first) == 0:
                return None
            index = int(differing[0]) if differing.size else 0
            return cls(first.astype(float), index, second[index].astype(float), True)
        is_first = len(first) > len(second)
        longer, shorter = (first, second) if is_first else (second, first)
        if len(longer) != len(shorter) + 1:
            return None
        # The additional row is the first that differs from the shorter data set at its place.
        unequal = np.flatnonzero((longer[:-1] != shorter).any(axis=1))
        index = int(unequal[0]) if unequal.size else len(shorter)
        if (np.delete(longer, index, axis=0) != shorter).any():
            return None
        return cls(longer.astype(float), index, None, is_first)

    def pair(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the two data sets, in order."""
        if self.record is None:
            other = np.delete(self.rows, self.index, axis=0)
        else:
            other = self.rows.copy()
            other[self.index] = self.record
        return (self.rows, other) if self.is_first else (other, self.rows)

    def pick(self, rng) -> int:
        """Return the index of a row to change; the number of rows means the other record."""
        if self.record is not None and rng.random() < _DIFFERENCE_PROBABILITY:
            return len(self.rows)
        if rng.random() < _DIFFERENCE_PROBABILITY:
            return self.index
        return int(rng.integers(len(self.rows)))

    def row(self, where: int) -> np.ndarray:
        """Return the row, or the other record, of an index."""
        return self.record if where == len(self.rows) else self.rows[where]

    def with_row(self, where: int, row) -> Rows:
        """Return the pair with this row, or other record, replaced."""
        if where == len(self.rows):
            return replace(self, record=np.asarray(row, dtype=float))
        rows = self.rows.copy()
        rows[where] = row
        return replace(self, rows=rows)
