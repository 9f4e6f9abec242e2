"""A coordinate of clusters of a table, in the table's units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust.records.cells import seconds

NUMBER, DATE, SHARE = "number", "date", "share"
_DAY = 86_400.0
WIDTH_95 = 1.96  # half-width of a 95 % interval, in standard errors


@dataclass(frozen=True)
class Coordinate:
    """A column of numbers or dates, or the share of one category of a column.

    Attributes
    ----------
    name : str
    column : str
        The column of the table.
    kind : {"number", "date", "share"}
    centers : ndarray of shape (n_clusters,)
        In units of the column; ``datetime64[s]`` for dates.
    errors : ndarray of shape (n_clusters,)
        Standard errors; for dates in days.
    spreads, spread_errors : ndarray of shape (n_clusters,) or None
        Standard deviation of the rows of a cluster, and its standard error, in units of the column
        (dates: days). None for shares, and if it was not released.
    """

    name: str
    column: str
    kind: str
    centers: np.ndarray
    errors: np.ndarray
    spreads: np.ndarray | None = None
    spread_errors: np.ndarray | None = None

    @property
    def numbers(self) -> np.ndarray:
        """Centers as numbers, (n_clusters,); dates in days since 1970."""
        if self.kind == DATE:
            return self.centers.astype("datetime64[s]").astype(np.int64) / _DAY
        return self.centers.astype(float)

    def bounds(self, declared: Any) -> tuple[float, float]:
        """Return the column's declared range as numbers; dates in days since 1970."""
        low, high = (0.0, 1.0) if self.kind == SHARE else declared
        if self.kind == DATE:
            return seconds(low) / _DAY, seconds(high) / _DAY
        return low, high

    def scaled(self, declared: Any) -> tuple[np.ndarray, float]:
        """Return centers as fractions of the column's declared range, and its width (in days)."""
        low, high = self.bounds(declared)
        return (self.numbers - low) / (high - low), high - low

    @property
    def hidden_spreads(self) -> np.ndarray:
        """Which spreads noise hides, (n_clusters,): 0 is within their 95 % intervals.

        Other uses of the errors of spreads would be wrong: they are too small
        (docs/results/frontier_intervals.md).
        """
        width = WIDTH_95 * self.spread_errors
        return (self.spreads < width) & (width < np.inf)

    @property
    def width_95(self) -> np.ndarray:
        """Half the width of 95 % intervals of centers, (n_clusters,)."""
        return WIDTH_95 * self.errors

    @property
    def reach(self) -> np.ndarray:
        """Distance from the center to which a cluster is drawn on either side, (n_clusters,)."""
        return self.width_95 if self.spreads is None else np.maximum(self.width_95, self.spreads)
