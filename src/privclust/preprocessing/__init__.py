"""Preparation of samples before a method is applied."""

from privclust.preprocessing.bounds_scaler import BoundsScaler
from privclust.preprocessing.linear import AppendOne, PrincipalCoordinates
from privclust.preprocessing.missing_counts import MissingCounts, missing_counts, noise_by_column
from privclust.preprocessing.private_bounds import PrivateBounds, private_bounds
from privclust.preprocessing.table_encoder import TableEncoder

__all__ = [
    "AppendOne",
    "BoundsScaler",
    "MissingCounts",
    "PrincipalCoordinates",
    "PrivateBounds",
    "TableEncoder",
    "missing_counts",
    "noise_by_column",
    "private_bounds",
]
