"""Rows of one person, or of any other group that is protected as a whole.

Each row of a group of n rows gets the weight 1 / n, so that a group is a weighted mean of rows. Let
what one row adds to a sum lie in a set S. What a group adds then lies in the convex hull of S,
whose diameter in any norm is that of S, and whose largest norm is that of S: exchanging one group
for another, adding or removing one changes the sum by no more than one row does where each row
counts for itself. A sensitivity that is proved for rows holds for groups, and noise does not grow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

ROW, GROUP = "row", "group"
"""What is protected: one row, or all rows of one group."""
UNITS = {ROW: "one row", GROUP: "all rows of one group"}


@dataclass(frozen=True)
class Groups:
    """The weight of each row of groups, one over the number of its group's rows.

    Attributes
    ----------
    weights : ndarray of shape (n_samples,)
    count : int
        How many groups there are.
    """

    weights: np.ndarray
    count: int

    @classmethod
    def of(cls, groups: ArrayLike | Groups, n_samples: int) -> Groups:
        """Return the weights of rows by whose they are.

        Parameters
        ----------
        groups : array-like of shape (n_samples,)
            Whose each row is: numbers, text or whatever else can be sorted.
        n_samples : int

        Returns
        -------
        Groups
            What is one already stays as it is.

        Raises
        ------
        ValueError
            If there are more or fewer than rows, if one is missing (NaN, None), or if they cannot
            be told apart by sorting. No entry is named.

        Examples
        --------
        >>> groups = Groups.of(["ann", "bob", "ann"], 3)
        >>> groups.weights.tolist(), groups.count
        ([0.5, 1.0, 0.5], 2)
        """
        if isinstance(groups, Groups):
            if len(groups.weights) != n_samples:
                raise ValueError(f"groups are of {len(groups.weights)} rows, not of {n_samples}")
            return groups
        groups = np.asarray(groups)
        if groups.shape != (n_samples,):
            raise ValueError(
                f"groups must have shape ({n_samples},), one a row, got {groups.shape}"
            )
        try:
            if np.any(_missing(groups)):
                raise ValueError("groups must not be missing: every row must be someone's")
            _, places, counts = np.unique(groups, return_inverse=True, return_counts=True)
        except TypeError:
            raise ValueError("groups must be of one type that can be sorted") from None
        return cls(1.0 / counts[places], len(counts))

    def rows(self, start: int, stop: int) -> Groups:
        """Return those of a part of the rows; the first part alone counts the groups."""
        return Groups(self.weights[start:stop], 0 if start else self.count)


def _missing(groups: np.ndarray) -> np.ndarray:
    """Return which are None or not equal to themselves, as NaN is not."""
    if groups.dtype.kind != "O":
        return groups != groups
    return np.array([group is None or group != group for group in groups], dtype=bool)
