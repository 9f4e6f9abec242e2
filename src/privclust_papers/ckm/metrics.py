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
    """Sum of squared errors, eq. (1), in parts of the reference's.

    ``relative_sse``: against the reference (Lloyd's best of several starts). ``relative_sse_true``:
    against Lloyd's algorithm from the true means, NaN where there are none. ``missed``: 1 where
    `relative_sse` exceeds 1.2, else 0, so that a mean below 0.5 says that the median succeeds;
    ``recovered``: the reverse. ``possible``: 0 where the method could not be run, all else then
    being NaN. ``snr_attained`` and ``regime`` as of the method, NaN where it has none.
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
        "snr_attained": float(outputs.get("snr_attained", np.nan)),
        "regime": float(outputs.get("regime", np.nan)),
    }


def evaluate_on_fresh_rows(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Error of centers on a million other rows of the mixture (fewer, if it has fewer).

    ``relative_sse``: against Lloyd's algorithm from the true means on these rows; ``sse_per_row``.
    Rows by the hundred million are sketched once, not drawn again.
    """
    mixture = data.X.mixture
    n = min(mixture.n_samples, _FRESH_ROWS)
    seed = data.extra["seed"] ^ 1
    fresh = Rows(MixtureRows(n, mixture.centers, seed)).array
    _, best, _ = lloyd(fresh, mixture.centers, _MAX_UPDATES, 0.0)
    sse = inertia(fresh, np.asarray(outputs["centers"], dtype=float))
    return {"relative_sse": sse / best, "sse_per_row": sse / n}
