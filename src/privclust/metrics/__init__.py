"""Metrics; pure functions of labels and arrays."""

from privclust.metrics.mixtures import mean_error, normalised_intracluster_variance
from privclust.metrics.segmentation import l1_error, l2_error, segmentation_error

__all__ = [
    "l1_error",
    "l2_error",
    "mean_error",
    "normalised_intracluster_variance",
    "segmentation_error",
]
