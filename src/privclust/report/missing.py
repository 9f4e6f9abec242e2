"""Sentences on entries that are missing or cannot be read, from noisy numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from privclust.core.printable import counted
from privclust.privacy import NoisyCount
from privclust.privacy.groups import GROUP, ROW
from privclust.sketches import SketchedTable

_FATES = {"drop": "are left out", "middle": "count there as the middle"}
_DEVIATIONS = 3.0  # deviations of noise above which a report states a number


def missing_remarks(
    table: SketchedTable | None, n_records: float, left_out: NoisyCount | int | None, unit: str
) -> list[str]:
    """Return the remarks of a report on entries that are missing or cannot be read.

    Parameters
    ----------
    table : SketchedTable or None
        Declarations, and numbers of entries.
    n_records : int or float
        Number of records without those that are left out.
    left_out : privclust.privacy.NoisyCount, int or None
        Number of records that are left out; None: unknown.
    unit : str
        Whether a record is a row or a group, as in a guarantee.

    Returns
    -------
    list of str
        One sentence for each kind of number above three deviations of its noise, or one that there
        is none.
    """
    thing = "person" if unit == GROUP else "row"
    what = f"{thing}s"
    if table is None or table.unread is None:
        return []
    if isinstance(left_out, NoisyCount):
        n_left_out, deviation = left_out.value, left_out.deviation
    else:
        n_left_out, deviation = float(left_out or 0), 0.0
    counts, n, fate = table.unread, n_records + n_left_out, _FATES[table.missing]
    # the number of rows has less noise than those of columns, and is no smaller; that of persons
    # has only those without a row that counts
    is_total = table.missing == "drop" and unit == ROW and left_out is not None
    if is_total:
        counts = np.minimum(counts, max(n_left_out, 0.0))
    lacking, remarks = [], []
    for (name, ends), (missing, unreadable) in zip(table.columns.items(), counts.T, strict=True):
        if missing > _DEVIATIONS * table.deviation:
            lacking.append((name, missing))
        if unreadable > _DEVIATIONS * table.deviation:
            share, kind = _about(unreadable, table.deviation, n), _kind(ends)
            remarks.append(
                f"{share} {what} have an entry in {name!r} that is not a {kind} and {fate}: "
                "check that the entries were read as you meant"
            )
    numbers = [
        f"{_rounded(missing, table.deviation)} have no {name!r}" for name, missing in lacking
    ]
    several = f" (a {what[:-1]} may lack several)" if len(numbers) > 1 else ""
    total = []
    if n_left_out > _DEVIATIONS * deviation:
        why = f": {', '.join(numbers)}{several}" if numbers and is_total else ""
        total = [f"{_about(n_left_out, deviation, n)} {what} are left out{why}"]
    if numbers and not (total and is_total):
        total.append(f"of the {what}, {', '.join(numbers)} and {fate}{several}")
    if total or remarks:
        return [*total, *remarks]
    if is_total:
        return [_nothing_found(n_left_out + _DEVIATIONS * deviation, n, thing, "")]
    return [_nothing_found(_DEVIATIONS * table.deviation, n, thing, " in each column")]


def _nothing_found(most: float, n: float, thing: str, where: str) -> str:
    """Return a sentence for no number above its noise, which hides up to `most`."""
    if not most:
        return f"no entry is missing in any of the {thing}s"
    if (rounded := _round_up(most)) >= n:
        return f"the number of {thing}s with missing entries cannot be distinguished from noise"
    most_told = counted(rounded, thing)
    return f"no missing entries were found; noise may hide up to about {most_told}{where}"


def _kind(ends: Any) -> str:
    if isinstance(ends, list):
        return "category of its list"
    return "date" if isinstance(ends[0], str) else "number"


def _about(number: float, deviation: float, n: float) -> str:
    """Return a number, rounded by its noise, the number of all rows, and the share."""
    share = number / max(n, 1.0)
    of = f"{n:,.0f}" if is_whole(n) else _rounded(max(n, 1.0), deviation)
    return f"{_rounded(number, deviation)} of {of.removeprefix('about ')} ({100.0 * share:.1f} %)"


def is_whole(number: float) -> bool:
    """Return whether a number is an integer but for rounding: noise has cancelled, or is none."""
    return abs(number - round(number)) < 1e-3


def _rounded(number: float, deviation: float) -> str:
    """Return a number without the digits that noise changes."""
    if not deviation:
        return f"{number:,.6g}"
    digits = max(math.floor(math.log10(max(2.0 * deviation, 1.0))), 0)
    return f"about {round(number, -digits):,.0f}"


def _round_up(number: float) -> int:
    """Round a number up to one digit."""
    step = 10 ** max(math.floor(math.log10(max(number, 1.0))), 0)
    return math.ceil(number / step) * step
