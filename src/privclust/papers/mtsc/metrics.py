"""Metrics of trials. Only these depend on the metrics' code, so that a new one refits nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust.metrics.segmentation import l1_error, l2_error, segmentation_error
from privclust.pipeline.runner import TrialData


def evaluate_segmentation(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Segmentation error and, of coefficients, the l2 error (eq. 19) and its l1 form."""
    Z = outputs.get("coefficients")
    return {
        "segmentation_error": segmentation_error(data.y, outputs["labels"]),
        "l2_error": np.nan if Z is None else l2_error(Z, data.y),
        "l1_error": np.nan if Z is None else l1_error(Z, data.y),
    }


def evaluate_heat_map(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Metrics of Figure 2 and the magnitudes of Z with the points sorted by motion.

    Beside the two errors: ``off_block_energy``, the part of Z's squared entries that joins
    different motions; and ``active_rows``, the effective number of points that represent a motion
    (the participation ratio of the row energies of its block) as a part of the motion's points:
    small where the block is row-sparse.
    """
    coefficients = outputs["coefficients"].astype(np.float64)
    order = np.argsort(data.y, kind="stable")
    magnitudes = np.abs(coefficients[np.ix_(order, order)])
    sizes = np.bincount(data.y)
    energy = magnitudes**2
    same = data.y[order][:, None] == data.y[order]
    active = []
    for motion in range(data.n_clusters):
        members = data.y[order] == motion
        rows = energy[np.ix_(members, members)].sum(axis=1)
        active.append(rows.sum() ** 2 / (rows**2).sum() / members.sum())
    return {
        **evaluate_segmentation(data, outputs),
        "off_block_energy": float(energy[~same].sum() / energy.sum()),
        "active_rows": float(np.mean(active)),
        "sorted_magnitudes": magnitudes.astype(np.float32),
        "motion_sizes": sizes,
    }
