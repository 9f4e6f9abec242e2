"""Metrics; pure functions of labels and arrays."""

from privclust.metrics.segmentation import l2_error, segmentation_error

__all__ = ["l2_error", "segmentation_error"]
