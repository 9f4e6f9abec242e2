"""What is done to samples before a method sees them."""

from privclust.preprocessing.bounds_scaler import BoundsScaler
from privclust.preprocessing.linear import AppendOne, PrincipalCoordinates

__all__ = ["AppendOne", "BoundsScaler", "PrincipalCoordinates"]
