"""Inputs of trials, random parts of rows, and centers of fitted models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.settings.config import ConfigError

Point = Mapping[str, Any]  # a grid point: values by axis
Dataset = Mapping[str, Any]  # prepared arrays by name, and their "source"

TEST_PART = 10
"""1 / `TEST_PART` of the rows are held out for testing."""


def random_subset(rows: np.ndarray, n_samples: int, streams: TrialStreams) -> np.ndarray:
    """Return `n_samples` of the rows, drawn without replacement by the data stream."""
    if n_samples > len(rows):
        raise ConfigError(f"n_samples: got {n_samples}; it must be at most {len(rows)}")
    return rows[streams.get("data").choice(len(rows), size=n_samples, replace=False)]


def random_split(rows: np.ndarray, streams: TrialStreams) -> tuple[np.ndarray, np.ndarray]:
    """Return a random split of the rows into 90 % and 10 %, by the data stream."""
    order = streams.get("data").permutation(len(rows))
    n_test = len(rows) // TEST_PART
    return rows[order[n_test:]], rows[order[:n_test]]


def centers_of(model: Any) -> np.ndarray:
    """Return the centers of a fitted clustering, or the means of a mixture."""
    return np.asarray(model.means_ if hasattr(model, "means_") else model.cluster_centers_)
