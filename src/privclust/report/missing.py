"""Sentences on entries that are missing or cannot be read, from noisy numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from privclust.kmeans import CompressiveKMeans
from privclust.preprocessing import MissingCounts
from privclust.privacy.groups import GROUP

_DEVIATIONS = 3.0  # by which a number is above its noise before a report names it


def missing_remarks(
    counts: MissingCounts, model: CompressiveKMeans, columns: Mapping[str, Any]
) -> list[str]:
    """Return what a report says of entries that are missing or cannot be read.

    Parameters
    ----------
    counts : MissingCounts
        Of these columns, in their order.
    model : CompressiveKMeans
        Fitted with ``missing="drop"``.
    columns : mapping of str to bounds or categories

    Returns
    -------
    list of str
        For each number that is more than three deviations above 0 a sentence, or one that says that
        there is none.
    """
    what = "persons" if model.guarantee_.unit == GROUP else "rows"
    left_out = model.left_out_
    n = model.sketch_.n_samples + left_out.value
    remarks = []
    if left_out.value > _DEVIATIONS * left_out.deviation:
        remarks.append(f"{_about(left_out.value, left_out.deviation, n)} {what} are left out")
    for name, ends, missing, unreadable in zip(
        columns, columns.values(), counts.missing, counts.unreadable, strict=True
    ):
        if missing > _DEVIATIONS * counts.deviation:
            share = _about(missing, counts.deviation, n)
            remarks.append(f"{share} {what} have no {name!r} and are left out")
        if unreadable > _DEVIATIONS * counts.deviation:
            share, kind = _about(unreadable, counts.deviation, n), _kind(ends)
            remarks.append(
                f"{share} {what} have an entry in {name!r} that is no {kind} and are left out: do "
                "entries look as was declared?"
            )
    if not remarks:
        most = _round_up(_DEVIATIONS * counts.deviation)
        remarks.append(f"no column is missing in more than about {most:,} {what}")
    return remarks


def _kind(ends: Any) -> str:
    """Return what an entry of a column is to be."""
    if isinstance(ends, list):
        return "category of its list"
    return "date" if isinstance(ends[0], str) else "number"


def _about(number: float, deviation: float, n: float) -> str:
    """Return a noisy number, to the digits that noise leaves, and its share."""
    step = 10 ** max(math.floor(math.log10(max(2.0 * deviation, 1.0))), 0)
    digits = max(math.floor(math.log10(max(2.0 * deviation, 1.0))), 0)
    of = round(max(n, 1.0), -digits)
    return f"about {round(number / step) * step:,} of {of:,.0f} ({number / max(n, 1.0):.1%})"


def _round_up(number: float) -> int:
    """Return a number of one digit that is not below."""
    step = 10 ** max(math.floor(math.log10(max(number, 1.0))), 0)
    return math.ceil(number / step) * step
