"""What is done to samples before a method sees them."""

from privclust.preprocessing.bounds_scaler import BoundsScaler
from privclust.preprocessing.linear import AppendOne, PrincipalCoordinates
from privclust.preprocessing.table_encoder import TableEncoder

__all__ = ["AppendOne", "BoundsScaler", "PrincipalCoordinates", "TableEncoder"]
