"""What centers say, at no further cost, of entries that were not read as their owner meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privclust.records.cells import seconds
from privclust.records.columns import column_of
from privclust.report.coordinate import Coordinate

_NEAR, _NEAREST = 0.01, 0.002  # at most and at least, in parts of the range; else by the errors


def suspicions(
    coordinates: Sequence[Coordinate], columns: Mapping[str, Any], is_detected: np.ndarray
) -> list[str]:
    """Return a remark for each column all of whose detected centers are at its middle or an end.

    Entries that are missing or cannot be read count as the middle, those beyond bounds as the
    nearest one; it may be that the rows do lie there.
    """
    remarks = []
    for name, ends in columns.items() if is_detected.any() else ():
        own = [c for c in coordinates if c.column == name]
        places, near = zip(*(_in_parts(c, ends, is_detected) for c in own), strict=True)
        middle = 1.0 / len(own) if isinstance(ends, list) else 0.5
        if (np.abs(np.array(places) - middle) < near).all():
            of = "of all categories alike" if len(own) > 1 else "in the middle of its bounds"
            remarks.append(
                f"column {name!r}: every detected cluster is {of}, as entries are taken to be "
                "that are missing or cannot be read: do they look as was declared?"
            )
        elif not isinstance(ends, list):
            at_end = np.minimum(places[0], 1.0 - places[0]) < near[0]
            if at_end.all():
                remarks.append(
                    f"column {name!r}: every detected cluster is at an end of its bounds, to which "
                    "entries beyond are drawn: if there are some, widen them"
                )
    return remarks


def _in_parts(
    coordinate: Coordinate, ends: Any, is_detected: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return where detected centers lie in a range, and the distance that counts as one place."""
    values, errors = coordinate.centers[is_detected], coordinate.errors[is_detected]
    if isinstance(ends, list):
        low, width = 0.0, 1.0
    elif values.dtype.kind == "M":
        low, high = (seconds(end) for end in ends)
        values, errors, width = column_of(values).seconds(), errors * 86_400.0, high - low
    else:
        low, width = ends[0], ends[1] - ends[0]
    near = np.clip(2.0 * errors / width, _NEAREST, _NEAR)
    return (values - low) / width, near
