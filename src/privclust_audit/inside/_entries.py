"""Neighbours that differ in an entry of another kind: a cell or an ID that is no number.

Records are numbers; here their form in the arguments of a fit varies. A NaN in a record marks the
odd cell, and the ID of one record differs in the neighbour.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

CELLS: tuple[Any, ...] = (
    None, math.nan, "unknown", "3", "", 10**400, -(10**400), Decimal("0.5"), True, 1j, b"\xff",
    datetime.datetime(2020, 1, 1), np.datetime64("2020-01-01"), np.float32(0.1), [], (1.0, 2.0), {},
)  # fmt: skip
"""Cells that are no numbers, and some that are."""
IDS: tuple[Any, ...] = (
    None, math.nan, "unknown", "", 0.5, -1, 10**30, np.float32(0.5), Decimal("0.5"), True, (1, 2),
    datetime.date(2020, 1, 1), np.datetime64("NaT", "s"), b"u7",
)  # fmt: skip
"""IDs of unusual kinds."""
_LARGE = 2**53  # from here on floats cannot represent all integers
Written = Callable[[tuple[Any, ...], bool], tuple[Any, ...]]
"""A function of arguments of a fit, and whether they are those of the neighbour."""


def as_they_are(arguments: tuple[Any, ...], is_neighbour: bool) -> tuple[Any, ...]:
    """Return the arguments of a fit unchanged, for rows without unusual entries."""
    return arguments


def with_cells(cell: Any, container: str) -> Written:
    """Return a function that writes rows into an untyped container, with a cell in place of NaN."""

    def written(arguments: tuple[Any, ...], is_neighbour: bool) -> tuple[Any, ...]:
        X, *others = arguments
        rows = [[cell if value != value else value for value in row] for row in X.tolist()]
        if container == "list":
            return rows, *others
        array = np.empty(X.shape, dtype=object)
        for place in np.ndindex(X.shape):  # a cell that is a sequence stays one
            array[place] = rows[place[0]][place[1]]
        return array, *others

    return written


def with_ids(odd: Any, kind: str, place: int) -> Written:
    """Return a function that writes IDs of a kind, and an odd one for one record of the neighbour.

    Kinds are ``"whole"`` and ``"text"``; the record has an ID of the kind in the first data set.
    """

    def written(arguments: tuple[Any, ...], is_neighbour: bool) -> tuple[Any, ...]:
        X, y, groups = arguments
        names = [_LARGE + int(i) if kind == "whole" else f"u{i}" for i in groups]
        if is_neighbour:
            names = [odd if i == place else name for i, name in zip(groups, names, strict=True)]
        return X, y, names

    return written
