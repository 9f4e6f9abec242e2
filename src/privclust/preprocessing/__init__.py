"""Preparation of samples before a method is applied."""

from privclust.preprocessing.bounds_scaler import BoundsScaler
from privclust.preprocessing.linear import AppendOne, PrincipalCoordinates
from privclust.preprocessing.missing_counts import CountsByColumn, MissingCounts, missing_counts
from privclust.preprocessing.private_bounds import PrivateBounds, private_bounds
from privclust.preprocessing.table_encoder import TableEncoder

__all__ = [
    "AppendOne",
    "BoundsScaler",
    "CountsByColumn",
    "MissingCounts",
    "PrincipalCoordinates",
    "PrivateBounds",
    "TableEncoder",
    "missing_counts",
    "private_bounds",
]
