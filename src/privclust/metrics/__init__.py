"""Metrics; pure functions of labels and arrays."""

from privclust.metrics.mixtures import mean_error, normalised_intracluster_variance
from privclust.metrics.segmentation import l1_error, l2_error, segmentation_error
from privclust.metrics.subspaces import (
    subspace_cost,
    wasserstein_distance,
)

__all__ = [
    "l1_error",
    "l2_error",
    "mean_error",
    "normalised_intracluster_variance",
    "segmentation_error",
    "subspace_cost",
    "wasserstein_distance",
]
