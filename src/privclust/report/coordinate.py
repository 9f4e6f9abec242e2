"""A coordinate of clusters of a table, in the table's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NUMBER, DATE, SHARE = "number", "date", "share"
WIDTH_95 = 1.96  # standard errors on either side


@dataclass(frozen=True)
class Coordinate:
    """A column of numbers or dates, or the share of one category of a column.

    Attributes
    ----------
    name : str
    column : str
        Of the table.
    kind : {"number", "date", "share"}
    centers : ndarray of shape (n_clusters,)
        In units of the column; ``datetime64[s]`` of dates.
    errors : ndarray of shape (n_clusters,)
        Standard errors; of dates in days.
    """

    name: str
    column: str
    kind: str
    centers: np.ndarray
    errors: np.ndarray
