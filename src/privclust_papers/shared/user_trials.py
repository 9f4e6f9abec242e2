"""Trials on a user's data, with declared bounds.

The prepared data set has ``X``, ``low``, ``high``. Each point has ``n_clusters``, at most the
number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.pipeline.words import ROWS, ROWS_OUTSIDE
from privclust_papers.settings.config import ConfigError
from privclust_papers.shared.rows import TEST_PART, Dataset, Point, random_split


def clusters_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return all rows, clipped to the bounds; trials differ by noise.

    Private methods, which clip rows, and Lloyd's reference then use the same rows.
    """
    extra = _extra(point, dataset) | {"n_frequencies": None}
    X, facts = _clipped(dataset)
    return TrialData(X, None, dataset["source"], facts, extra)


def mixture_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """Return a random split of the rows into 90 % and 10 %, scaled from their bounds to the ball.

    Rows are clipped to the bounds, centred at their middle and divided by half their diagonal, so
    that norms are at most 1 without using the data. There must be ten rows or more. The point also
    has ``n_starts``.
    """
    extra = _extra(point, dataset)
    low, high = extra["bounds"]
    n_samples = len(dataset["X"])
    if n_samples < TEST_PART:
        raise ConfigError(
            f"{dataset['source']}: got {n_samples} rows; a mixture may have {TEST_PART} or more"
        )
    X, facts = _clipped(dataset)
    X = X - 0.5 * (low + high)
    X /= np.linalg.norm(0.5 * (high - low))
    X, test = random_split(X, streams)
    extra |= {"test": test, "n_starts": point["n_starts"]}
    return TrialData(X, None, dataset["source"], facts, extra)


def _clipped(dataset: Dataset) -> tuple[np.ndarray, dict[str, str | int]]:
    """Return the rows clipped to their bounds, and the numbers of clipped and of all rows."""
    X, low, high = (dataset[name] for name in ("X", "low", "high"))
    n_outside = int(((low > X) | (high < X)).any(axis=1).sum())
    facts = {ROWS_OUTSIDE: n_outside, ROWS: len(X)}
    return (np.clip(X, low, high) if n_outside else X), facts


def _extra(point: Point, dataset: Dataset) -> dict[str, Any]:
    k, n_samples = point["n_clusters"], len(dataset["X"])
    if k > n_samples:
        raise ConfigError(
            f"{dataset['source']}: got n_clusters: {k}; it must be at most {n_samples}, the rows"
        )
    return {"n_clusters": k, "bounds": (dataset["low"], dataset["high"])}
