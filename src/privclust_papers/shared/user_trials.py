"""Trials on data of a user's own: their rows in the box that was declared for them.

The prepared data set has ``X``, ``low``, ``high``; each point ``n_clusters``, at most the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.pipeline.words import ROWS, ROWS_OUTSIDE
from privclust_papers.settings.config import ConfigError
from privclust_papers.shared.rows import TEST_PART, Dataset, Point, random_split


def clusters_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """All rows, those outside the box clipped to it; trials differ by noise.

    So private methods, which draw rows in, and Lloyd's reference see the same rows.
    """
    extra = _extra(point, dataset) | {"n_frequencies": None}
    X, facts = _clipped(dataset)
    return TrialData(X, None, dataset["source"], facts, extra)


def mixture_trial(point: Point, trial: int, streams: TrialStreams, dataset: Dataset) -> TrialData:
    """A random split of the rows into 90 % and 10 %, moved and scaled from their box to the ball.

    The middle of the box goes to the origin, half its diagonal to 1, so that norms are at most 1
    without a look at the data; rows outside the box are clipped to it. There must be ten or more.
    The point also has ``n_starts``.
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
    """Return the rows clipped to their box, and how many of how many that were to."""
    X, low, high = (dataset[name] for name in ("X", "low", "high"))
    n_outside = int(((low > X) | (high < X)).any(axis=1).sum())
    facts = {ROWS_OUTSIDE: n_outside, ROWS: len(X)}
    return (np.clip(X, low, high) if n_outside else X), facts


def _extra(point: Point, dataset: Dataset) -> dict[str, Any]:
    k, n_samples = point["n_clusters"], len(dataset["X"])
    if k > n_samples:
        raise ConfigError(
            f"{dataset['source']}: got n_clusters: {k}; it may be at most {n_samples}, the rows"
        )
    return {"n_clusters": k, "bounds": (dataset["low"], dataset["high"])}
