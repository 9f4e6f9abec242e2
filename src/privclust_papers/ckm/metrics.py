"""Metrics of clusterings against Lloyd's algorithm without privacy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust.core.lloyd import inertia, lloyd
from privclust.synthetic.clusters import MixtureRows
from privclust_papers.ckm.data import Rows, as_array
from privclust_papers.pipeline.runner import TrialData

SUCCESS = 1.2
"""Relative SSE below which the paper calls a reconstruction successful."""
_FRESH_ROWS, _MAX_UPDATES = 1_000_000, 300


def evaluate_clusters(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the sum of squared errors, eq. (1), relative to the reference.

    ``relative_sse``: relative to Lloyd's algorithm, best of several starts. ``relative_sse_true``:
    relative to Lloyd's algorithm from the true means, or NaN. ``missed``: 1 if `relative_sse`
    exceeds 1.2, else 0; a mean below 0.5 means that the median succeeds. ``recovered``: 1 minus
    ``missed``. ``possible``: 0 if the method could not be run; other values are then NaN.
    ``of_masks`` and ``regime``: outputs of the method, or NaN.
    """
    reference, centers = data.extra["reference"], outputs["centers"]
    sse = np.nan
    if np.isfinite(centers).all():
        sse = inertia(as_array(data.X), np.asarray(centers, dtype=float))
    relative = sse / float(reference["sse"])
    possible = np.isfinite(relative)
    return {
        "relative_sse": relative,
        "relative_sse_true": sse / float(reference.get("sse_true", np.nan)),
        "missed": float(relative > SUCCESS) if possible else np.nan,
        "recovered": float(relative <= SUCCESS) if possible else np.nan,
        "possible": float(possible),
        "of_masks": float(outputs.get("of_masks", np.nan)),
        "regime": float(outputs.get("regime", np.nan)),
    }


def evaluate_on_fresh_rows(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the error of centers on up to a million other rows of the mixture.

    ``relative_sse``: relative to Lloyd's algorithm from the true means on these rows;
    ``sse_per_row``. Very large samples are sketched once and not drawn again.
    """
    mixture = data.X.mixture
    n = min(mixture.n_samples, _FRESH_ROWS)
    # Another seed than that of the sketched rows, which `mixture_trial` used.
    seed = data.extra["seed"] ^ 1
    fresh = Rows(MixtureRows(n, mixture.centers, seed)).array
    _, best, _ = lloyd(fresh, mixture.centers, _MAX_UPDATES, 0.0)
    sse = inertia(fresh, np.asarray(outputs["centers"], dtype=float))
    return {"relative_sse": sse / best, "sse_per_row": sse / n}
