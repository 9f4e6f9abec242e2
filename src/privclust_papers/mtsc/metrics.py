"""Metrics of trials, separate from fits so that a changed metric needs no new fits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust.metrics.segmentation import l1_error, l2_error, segmentation_error
from privclust_papers.pipeline.runner import TrialData

_TINY = np.finfo(np.float64).tiny
_OF_COEFFICIENTS = (
    *("l2_error", "l1_error", "segmentation_error_unit_columns", "wrong_number"),
    *("connectivity", "effective_entries"),
)
_OF_DESCENTS = ("objective", "n_iter", "converged", "best_run")


def evaluate_segmentation(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the segmentation error and, for coefficients, the l2 error (eq. 19) and other metrics.

    ``l1_error``: eq. 19 with l1 norms. ``segmentation_error_unit_columns``: with columns of norm 1.
    ``wrong_number``: 1 if the eigengap does not find the number of clusters. ``connectivity``: see
    `connectivity`. ``effective_entries``: mean participation ratio of columns, an effective number
    of entries. For a descent also the values of `privclust_papers.mtsc.data.descent_end`.
    """
    metrics = {"segmentation_error": segmentation_error(data.y, outputs["labels"])}
    metrics |= {name: float(outputs.get(name, np.nan)) for name in _OF_DESCENTS}
    Z = outputs.get("coefficients")
    if Z is None:
        return metrics | dict.fromkeys(_OF_COEFFICIENTS, np.nan)
    by_unit_columns = segmentation_error(data.y, outputs["labels_unit_columns"])
    wrong_number = float(outputs["n_estimated"] != data.n_clusters)
    values = (l2_error(Z, data.y), l1_error(Z, data.y), by_unit_columns, wrong_number)
    values += (connectivity(Z, data.y), _effective_entries(Z))
    return metrics | dict(zip(_OF_COEFFICIENTS, values, strict=True))


def connectivity(Z: np.ndarray, y: np.ndarray) -> float:
    """Return the second eigenvalue of the normalised Laplacian of (3), averaged over clusters.

    It is 0 for a disconnected cluster, and N / (N - 1) for N points with equal links.
    """
    magnitudes = np.abs(Z).astype(np.float64)
    affinity = magnitudes + magnitudes.T
    values = []
    for cluster in np.unique(y):
        members = y == cluster
        block = affinity[np.ix_(members, members)]
        degrees = block.sum(axis=0)
        # A single point, or one without links, makes a cluster disconnected.
        if len(block) < 2 or not degrees.all():
            values.append(0.0)
            continue
        normalised = block / np.sqrt(degrees)[:, None] / np.sqrt(degrees)
        # Eigenvalues of the Laplacian are 1 minus those of the normalised affinity.
        values.append(max(1.0 - float(np.linalg.eigvalsh(normalised)[-2]), 0.0))
    return float(np.mean(values))


def _effective_entries(Z: np.ndarray) -> float:
    """Return the mean over columns of the participation ratio of magnitudes (0 for zeros)."""
    magnitudes = np.abs(Z).astype(np.float64)
    squares = (magnitudes**2).sum(axis=0)
    ratios = magnitudes.sum(axis=0) ** 2 / np.where(squares > 0.0, squares, 1.0)
    return float(np.mean(ratios))


def evaluate_motions(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the metrics of `evaluate_segmentation`, and those of Figure 2."""
    magnitudes, labels = np.abs(outputs["coefficients"].astype(np.float64)), data.y
    return evaluate_segmentation(data, outputs) | _of_blocks(magnitudes, labels)


def evaluate_heat_map(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the metrics of Figure 2, and the magnitudes of Z with points sorted by motion.

    In addition to the errors: ``off_block_energy``, the share of Z's squared entries between
    different motions; and ``active_rows``, the effective number of points that represent a motion
    (participation ratio of the row energies of its block) relative to the number of its points:
    small for a row-sparse block.
    """
    order = np.argsort(data.y, kind="stable")
    magnitudes = np.abs(outputs["coefficients"].astype(np.float64)[np.ix_(order, order)])
    return {
        **evaluate_motions(data, outputs),
        "sorted_magnitudes": magnitudes.astype(np.float32),
        "motion_sizes": np.bincount(data.y),
    }


def _of_blocks(magnitudes: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the energy off the blocks and the active rows of `evaluate_heat_map`."""
    energy = magnitudes**2
    active = []
    for motion in np.unique(y):
        members = y == motion
        rows = energy[np.ix_(members, members)].sum(axis=1)
        active.append(rows.sum() ** 2 / max((rows**2).sum(), _TINY) / members.sum())
    off = energy[y[:, None] != y].sum() / max(energy.sum(), _TINY)
    return {"off_block_energy": float(off), "active_rows": float(np.mean(active))}
