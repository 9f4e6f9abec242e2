"""What checks of a paper's statements have in common: a number that is measured is the metric.

A `Check` gets a trial's extra and a generator; it returns by what part its statement is exceeded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from privclust_papers.pipeline.runner import TrialData, TrialStreams

Setting = Mapping[str, Any]
Check = Callable[[Setting, np.random.Generator], float]


def without_rows(extra: Setting, source: str = "arithmetic") -> TrialData:
    """Return a trial whose numbers come from its extra alone."""
    return TrialData(np.zeros((1, 1)), None, source, extra=dict(extra))


def measure_excess(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Return the ``excess`` of the data's ``check``, at most 0 where the statement holds."""
    return {"excess": np.float64(data.extra["check"](data.extra, streams.get("init")))}


def evaluate_numbers(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The numbers that were measured, as they are."""
    return {name: float(value) for name, value in outputs.items()}
