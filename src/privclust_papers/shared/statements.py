"""Common code for checks of a paper's statements: the measured number is the metric.

A `Check` takes a trial's extra and a generator, and returns the relative excess over the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from privclust_papers.pipeline.runner import TrialData, TrialStreams

Setting = Mapping[str, Any]
Check = Callable[[Setting, np.random.Generator], float]


def without_rows(extra: Setting, source: str = "arithmetic") -> TrialData:
    """Return a trial without rows, with all numbers in its extra."""
    return TrialData(np.zeros((1, 1)), None, source, extra=dict(extra))


def measure_excess(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Return the ``excess`` of the data's ``check``, at most 0 if the statement holds."""
    return {"excess": np.float64(data.extra["check"](data.extra, streams.get("init")))}


def evaluate_numbers(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the measured numbers unchanged."""
    return {name: float(value) for name, value in outputs.items()}
