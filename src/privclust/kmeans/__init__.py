"""k-means under differential privacy."""

from privclust.kmeans._dplloyd import DPLloyd

__all__ = ["DPLloyd"]
