"""What is done to samples before a method sees them."""

from privclust.preprocessing.linear import AppendOne, PrincipalCoordinates

__all__ = ["AppendOne", "PrincipalCoordinates"]
