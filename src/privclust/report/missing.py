"""Sentences on entries that are missing or cannot be read, from noisy numbers."""

from __future__ import annotations

import math
from typing import Any

from privclust.privacy import NoisyCount
from privclust.privacy.groups import GROUP
from privclust.sketches import Sketch

_FATES = {"drop": "are left out", "middle": "count there as the middle"}
_DEVIATIONS = 3.0  # deviations of noise above which a report states a number


def missing_remarks(sketch: Sketch) -> list[str]:
    """Return the remarks of a report on entries that are missing or cannot be read.

    Parameters
    ----------
    sketch : Sketch
        With `table`, and numbers of entries in it.

    Returns
    -------
    list of str
        One sentence for each number above three deviations of its noise, or one that there is none.
    """
    table, what = sketch.table, "persons" if sketch.unit == GROUP else "rows"
    if table is None or table.counts is None:
        return []
    left_out, deviation = float(sketch.n_left_out), 0.0
    if isinstance(sketch.left_out, NoisyCount):
        deviation = sketch.left_out.deviation
    n, fate = sketch.n_samples + left_out, _FATES[table.missing]
    remarks = []
    if left_out > _DEVIATIONS * deviation:
        share = _about(left_out, deviation, n)
        remarks.append(f"{share} {what} are left out")
    for (name, ends), (missing, unreadable) in zip(
        table.columns.items(), table.counts.T, strict=True
    ):
        if missing > _DEVIATIONS * table.deviation:
            share = _about(missing, table.deviation, n)
            remarks.append(f"{share} {what} have no {name!r} and {fate}")
        if unreadable > _DEVIATIONS * table.deviation:
            share, kind = _about(unreadable, table.deviation, n), _kind(ends)
            remarks.append(
                f"{share} {what} have an entry in {name!r} that is not a {kind} and {fate}: "
                "check that the entries were read as you meant"
            )
    if not remarks:
        most = _round_up(_DEVIATIONS * table.deviation) if table.deviation else 0
        remark = f"no column has missing entries in more than about {most:,} {what}"
        if not most:
            remark = f"no entry is missing in any of the {what}"
        elif most >= n:
            remark = f"the number of {what} with missing entries cannot be distinguished from noise"
        remarks.append(remark)
    return remarks


def _kind(ends: Any) -> str:
    if isinstance(ends, list):
        return "category of its list"
    return "date" if isinstance(ends[0], str) else "number"


def _about(number: float, deviation: float, n: float) -> str:
    """Return a number, rounded by its noise, and its share."""
    share = number / max(n, 1.0)
    if not deviation:
        return f"{number:,.6g} of {n:,.0f} ({share:.1%})"
    digits = max(math.floor(math.log10(max(2.0 * deviation, 1.0))), 0)
    return (
        f"about {round(number, -digits):,.0f} of {round(max(n, 1.0), -digits):,.0f} ({share:.1%})"
    )


def _round_up(number: float) -> int:
    """Round a number up to one digit."""
    step = 10 ** max(math.floor(math.log10(max(number, 1.0))), 0)
    return math.ceil(number / step) * step
