"""What checks of a paper's statements have in common: a number that is measured is the metric."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust.pipeline.runner import TrialData, TrialStreams


def measure_excess(data: TrialData, streams: TrialStreams) -> dict[str, np.ndarray]:
    """Return by what part a statement is exceeded, at most 0 where it holds.

    Parameters
    ----------
    data : TrialData
        Its ``check`` is a function of all that the trial drew and of a generator.
    streams : TrialStreams
        The init stream is used.

    Returns
    -------
    dict of str to ndarray
        ``excess``.
    """
    return {"excess": np.float64(data.extra["check"](data.extra, streams.get("init")))}


def evaluate_numbers(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The numbers that were measured, as they are."""
    return {name: float(value) for name, value in outputs.items()}
