r"""Rows of one person, or of any other group that is protected as a whole.

Each row of a group of n rows gets the weight 1 / n, so that a group is a weighted mean of rows. Let
a row's contribution to a sum lie in a set S. A group's contribution then lies in the convex hull of
S, which has the diameter and the largest norm of S, in any norm. Replacing, adding or removing a
group therefore changes the sum by at most as much as doing so with a row of weight 1. A sensitivity
that is proved for rows holds for groups, and noise does not grow.

**Exact.** Fixed-point sums cannot represent fractions 1 / n. But rows of groups of one size n have
the same weight, so they are added up exactly, like rows, to integers :math:`M_n`, and
`weighted_sums` returns

.. math:: T = M_1 + \sum_{n > 1} R_n(M_n), \qquad
          R_n(m) = \lfloor m / n \rfloor - \lfloor m / (n 2^s) \rfloor
                 = (1 - 2^{-s}) \frac{m}{n} + \rho, \quad |\rho| < 1 \text{ unit } (2^{-b}).

Groups of one row are rows, bit for bit. For all others the shift s compensates for rounding. Let D
be the diameter of S and N its largest norm, in the norm of the sensitivity, and u the norm of one
unit in every entry. A group that is added or removed changes one :math:`M_n`, by n times a point h
of the hull. Then T changes by :math:`(1 - 2^{-s}) h` and less than two units per entry, in norm by
at most :math:`(1 - 2^{-s}) N + 2 u`. Replacing a group changes two of them (or one twice). With
weights :math:`a, a' \le 1` in units of 1 / n, of which at most one is 1,

.. math:: |a h - a' h'| + 4 u \le \max(a', a) D - |a - a'| (D - N) + 4 u
          \le D - 2^{-s} (D - N) + 4 u,

since :math:`|a h - a' h'| \le a' |h - h'| + (a - a') |h|` for :math:`a' \le a`, and D - N is
at most N. Both are within the bounds of a row if :math:`2^{-s} (D - N) \ge 4 u`. Sensitivities
here have :math:`D = 2 N` in l1, and :math:`D \ge \sqrt 2 N` in l2, since rows in different clusters
are orthogonal. So :math:`2^{-s} \ge 16\, u / N` is sufficient, and s is the largest such number. If
no entry has a weight above N, u / N is at most the number of entries times :math:`2^{-b}`. For
1,000 entries of 30 bits, the weight of a group of several rows is only :math:`2^{-16}` below 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import FixedPoint
from privclust.records.arrow import GroupedRows
from privclust.records.columns import check_kind, column_of
from privclust.records.errors import ReadingError

ROW, GROUP = "row", "group"
"""The protected unit: one row, or all rows of one group."""
UNITS = {ROW: "one row", GROUP: "all rows of one group"}
UNIT_BITS = 30
_SPARE_BITS = 4  # 16 u / N
_LARGEST_DIVISOR = 2**62
# the numbers of rows and of groups may be private
_ONE_A_ROW = "groups must be one a row, an array of one dimension as long as the rows"


@dataclass(frozen=True)
class Groups:
    """The number of rows in the group of each row.

    Attributes
    ----------
    sizes : ndarray of shape (n_samples,), int64
        0 for a row without a group, which contributes nothing.
    count : int
        The number of groups.
    """

    sizes: np.ndarray
    count: int

    @classmethod
    def of(cls, groups: ArrayLike | Groups, n_samples: int) -> Groups:
        """Return the sizes of groups from the ID of each row.

        Parameters
        ----------
        groups : array-like of shape (n_samples,)
            The person of each row: numbers, text or times. Each is read independently, so that 3,
            3.0 and "3" are one person. A row with a missing entry (None, NaN, blank) has no group.
        n_samples : int

        Returns
        -------
        Groups
            A `Groups` object is returned unchanged.

        Raises
        ------
        privclust.records.errors.ReadingError
            If their number differs from the rows, or they are durations, complex numbers or nested
            values.

        Examples
        --------
        >>> groups = Groups.of(["ann", "bob", "ann"], 3)
        >>> groups.sizes.tolist(), groups.weights.tolist(), groups.count
        ([2, 1, 2], [0.5, 1.0, 0.5], 2)
        """
        if isinstance(groups, Groups):
            if len(groups.sizes) != n_samples:
                raise ValueError(_ONE_A_ROW)
            return groups
        return cls.of_codes(*person_codes(groups, n_samples))

    @classmethod
    def of_codes(cls, codes: np.ndarray, n_codes: int) -> Groups:
        """Return the sizes of groups from codes below `n_codes`, -1 for rows without a group."""
        counts = np.bincount(codes[codes >= 0], minlength=n_codes)
        # the code -1 finds the 0 at the end
        return cls(np.append(counts, 0)[codes], int(np.count_nonzero(counts)))

    @property
    def weights(self) -> np.ndarray:
        """One over the number of rows of each row's group, (n_samples,); 0 without a group."""
        # np.where computes both values: the maximum avoids a division by 0
        return np.where(self.sizes > 0, 1.0 / np.maximum(self.sizes, 1), 0.0)

    @property
    def units(self) -> np.ndarray:
        """The weight of each row in whole units of 2^-30, rounded down, (n_samples,), int64.

        The weights of a group add up to at most 1. If each row is counted once, in units, a group
        adds a point of the convex hull of 0 and the rows' contributions, without a margin.
        """
        return np.where(self.sizes > 0, 2**UNIT_BITS // np.maximum(self.sizes, 1), 0)

    def rows(self, start: int, stop: int) -> Groups:
        """Return the groups of a part of the rows; only the first part has their number."""
        return Groups(self.sizes[start:stop], 0 if start else self.count)


def person_codes(groups: Any, n_samples: int) -> tuple[np.ndarray, int]:
    """Return a number for the person of each row (-1 without an ID), and the number of persons.

    Errors are those of `Groups.of`.
    """
    if not hasattr(groups, "shape"):
        groups = list(groups)
    shape = getattr(groups, "shape", (len(groups),))
    if shape != (n_samples,):
        raise ReadingError(_ONE_A_ROW)
    column = column_of(groups)
    check_kind(column.kind, column.type, "groups", "persons")
    return column.codes()


def unit_of(groups: Groups | str | None) -> str:
    """Return the protected unit, row or group; a column of a table may identify persons."""
    return ROW if groups is None else GROUP


def counted_rows(part: np.ndarray | GroupedRows) -> tuple[np.ndarray, Groups | None, int]:
    """Return the rows of a part of a table that count, their groups, and the number left out.

    Parameters
    ----------
    part : ndarray of shape (n, n_features) or GroupedRows
        NaN marks entries that are missing or cannot be read.

    Returns
    -------
    rows : ndarray
    groups : Groups or None
        None: each row is a record.
    n_left_out : int
        Number of records left out: rows, or groups of which no row counts.
    """
    if isinstance(part, GroupedRows):
        is_counted = part.sizes > 0
        groups = Groups(part.sizes[is_counted], part.n_new)
        return _kept(part.rows, is_counted), groups, part.n_left_out
    kept = _kept(part, whole_rows(part))
    return kept, None, len(part) - len(kept)


def _kept(rows: np.ndarray, is_counted: np.ndarray) -> np.ndarray:
    """Return rows that count, without a copy if all do."""
    return rows if is_counted.all() else rows[is_counted]


def whole_rows(rows: np.ndarray) -> np.ndarray:
    """Return which rows have no NaN, (n,)."""
    return ~np.isnan(rows).any(axis=1)


def by_size(groups: Groups | None, *arrays: np.ndarray) -> list[tuple[Any, ...]]:
    """Return the rows of arrays in parts, one part for each size of group.

    Parameters
    ----------
    groups : Groups or None
        None: each row is its own group.
    *arrays : ndarray of shape (n_samples, ...)

    Returns
    -------
    list of tuples
        The size, and the rows of each array, in their order, C-contiguous; at least one tuple. Rows
        without a group are left out. With groups, one part, possibly empty, has a size above 1, so
        that unsupported uses are refused for all sizes.

    Examples
    --------
    >>> by_size(Groups.of([7, 8, 7], 3), np.array([1, 2, 3]))
    [(1, array([2])), (2, array([1, 3]))]
    """
    if groups is None:
        return [(1, *arrays)]
    sizes = groups.sizes
    if (sizes == 0).any():
        arrays = tuple(array[sizes > 0] for array in arrays)
        sizes = sizes[sizes > 0]
    if not (sizes > 1).any():
        return [(1, *arrays), (2, *(array[:0] for array in arrays))]
    # stable, to keep the order of rows within a part
    order = np.argsort(sizes, kind="stable")
    sizes, starts = np.unique(sizes[order], return_index=True)
    pieces = [np.split(array[order], starts[1:]) for array in arrays]
    return list(zip(sizes.tolist(), *pieces, strict=True))


def weighted_sums(
    terms: Iterable[tuple[int, Sequence[FixedPoint]]], spread: float | None = None
) -> list[FixedPoint]:
    """Return exact sums in which every group weighs as much as one row.

    Parameters
    ----------
    terms : iterable of tuples
        The size n of groups, and the exact sums of all their rows. At least one tuple, each with
        the same arrays of the same number of bits; sizes in any order, each once.
    spread : float or None
        At least u / N of the module's description, in units of 2^-b. None: the number of entries;
        in l2 its root is enough.

    Raises
    ------
    ValueError
        If there are so many entries that the rounding is as large as a row.

    Examples
    --------
    >>> terms = [(n, [FixedPoint(np.array([2**30]), 30)]) for n in (1, 2)]  # 1 a row, 1 a pair
    >>> np.asarray(weighted_sums(terms)[0]).round(6).tolist()
    [1.5]
    """
    totals: list[FixedPoint] = []
    divisor = 0
    for size, parts in terms:
        # all sizes have sums of the same shapes, so one shift holds for all
        if size > 1 and not divisor:
            divisor = 1 << _shift(parts, spread)
        if not totals:
            totals = [FixedPoint(np.zeros_like(part.integers), part.bits) for part in parts]
        for total, part in zip(totals, parts, strict=True):
            integers = part.integers
            if size > 1:
                # R_n of the module's description; the divisor must fit in 64 bits
                integers = integers // size - integers // min(size * divisor, _LARGEST_DIVISOR)
            # in place, although FixedPoint is frozen: the arrays were made above
            total.integers[...] += integers
    return totals


def _shift(parts: Any, spread: float) -> int:
    if spread is None:
        spread = sum(part.integers.size for part in parts)
    bits = {part.bits for part in parts}
    if len(bits) > 1:
        raise ValueError(f"parts must be of one number of bits, got {sorted(bits)}")
    shift = math.floor(bits.pop() - _SPARE_BITS - math.log2(max(spread, 1.0)))
    if shift < 1:
        raise ValueError(
            f"a release of {spread:.3g} numbers leaves no room for groups: use fewer clusters or "
            "features"
        )
    return shift
