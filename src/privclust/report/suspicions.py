"""Remarks on entries that were probably misread, from released centers, at no privacy loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privclust.decoding._cluster_count import DEEP_VALLEY, deepest_valley
from privclust.report.coordinate import WIDTH_95, Coordinate

_IN_THE_MIDDLE = "lies in the middle of the bounds: check that its entries were read as you meant"
_AT_AN_END = (
    "lies at an end of the bounds, to which values outside are clipped: if such values are "
    "plausible, widen the bounds"
)
_NEAR, _NEAREST = 0.01, 0.002  # range of the distance that counts as equal, relative to a column's


def suspicions(
    coordinates: Sequence[Coordinate], columns: Mapping[str, Any], is_detected: np.ndarray
) -> list[str]:
    """Return a remark for each column in which a detected cluster is at the middle or an end.

    Values outside bounds count as the nearest bound, so a code such as -999 or 0 for "unknown" is
    at an end or in the middle. Rows may also truly be there. There is no remark on columns with
    bounds of 0 and 1, which may have no other values, nor on the middle where the entries of a
    cluster differ: they were read.
    """
    remarks = []
    for name, ends in columns.items() if is_detected.any() else ():
        own = [c for c in coordinates if c.column == name]
        places, near = map(
            np.array, zip(*(_in_parts(c, ends, is_detected) for c in own), strict=True)
        )
        middle = 1.0 / len(own) if isinstance(ends, list) else 0.5
        in_middle = (np.abs(places - middle) < near).all(axis=0)
        in_middle &= np.array([_may_be_equal(c, ends)[is_detected] for c in own]).all(axis=0)
        if in_middle.any():
            what = "has the shares of all categories alike" if len(own) > 1 else _IN_THE_MIDDLE
            remarks.append(_remark(name, what, np.flatnonzero(is_detected)[in_middle]))
        if not isinstance(ends, list) and tuple(ends) != (0.0, 1.0):
            at_end = np.minimum(places[0], 1.0 - places[0]) < near[0]
            if at_end.any():
                remarks.append(_remark(name, _AT_AN_END, np.flatnonzero(is_detected)[at_end]))
    return remarks


def separated_by_categories(
    columns: Mapping[str, Any],
    of_coordinate: Sequence[str],
    weights: np.ndarray,
    centers: np.ndarray,
    spreads: np.ndarray,
) -> list[str]:
    """Return a remark if only columns of categories separate the clusters.

    The clusters count as Gaussian, with these spreads of coordinates. Only a column separates them
    if there is no valley between them in the other columns (`privclust.decoding.count_clusters`).
    If no column does so by itself, all columns of categories are left out together. Without other
    columns there is no remark.

    Parameters
    ----------
    columns : mapping of str to bounds or categories
    of_coordinate : sequence of str, of length d
        The column of each coordinate.
    weights, centers, spreads : ndarray of shape (k,), (k, d), (k, d)
        Those of the detected clusters.
    """

    def are_separate(left_out: Sequence[str]) -> bool:
        is_in = np.array([name not in left_out for name in of_coordinate])
        if not is_in.any():  # no columns left in which clusters could overlap
            return True
        covariances = spreads[:, None, is_in] ** 2 * np.eye(is_in.sum())
        return deepest_valley(weights, centers[:, is_in], covariances) <= DEEP_VALLEY

    categories = [name for name, declared in columns.items() if isinstance(declared, list)]
    if len(weights) < 2 or not categories or not are_separate([]):
        return []
    for left_out in [*([name] for name in categories), categories]:
        if left_out and not are_separate(left_out):
            of = f"column {left_out[0]!r}" if len(left_out) == 1 else "the columns of categories"
            return [
                f"without {of} there would be no separate clusters: in the other columns they "
                "overlap, one with the next"
            ]
    return []


def _remark(name: str, what: str, clusters: np.ndarray) -> str:
    """Return a sentence on clusters, which are counted from 1."""
    of = "cluster" if len(clusters) == 1 else "clusters"
    what = what if len(clusters) == 1 else what.replace("lies", "lie").replace("has ", "have ")
    listed = ", ".join(str(j + 1) for j in clusters)
    return f"column {name!r}: {of} {listed} {what}"


def _may_be_equal(coordinate: Coordinate, ends: Any) -> np.ndarray:
    """Return in which clusters all entries may be equal, as far as spreads are known."""
    if coordinate.spreads is None or coordinate.spread_errors is None:
        return np.ones(len(coordinate.centers), dtype=bool)
    least = coordinate.spreads - WIDTH_95 * coordinate.spread_errors
    return ~(least >= _NEAR * coordinate.scaled(ends)[1])  # a spread that is NaN is not known


def _in_parts(
    coordinate: Coordinate, ends: Any, is_detected: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of detected centers in a range, and the distance that counts as equal."""
    places, width = coordinate.scaled(ends)
    near = np.clip(2.0 * coordinate.errors / width, _NEAREST, _NEAR)
    return places[is_detected], near[is_detected]
