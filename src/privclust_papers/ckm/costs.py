"""What private k-means costs in CPU seconds: sketches, with and without masks, and earlier methods.

Compiled loops are run once on a few rows before they are timed. Unlike all other results of the
paper, these are of the machine that they were measured on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privclust.decoding import decode
from privclust.sketches import FeatureSums, Sketch, release
from privclust_papers.ckm.data import as_array, mixture_trial
from privclust_papers.ckm.methods import trial_frequencies
from privclust_papers.pipeline.runner import TrialData, TrialStreams, random_state_for
from privclust_papers.settings.dotted import COMPLETE, construct
from privclust_papers.shared.rows import Point

_WARM_ROWS = 1000


def costs_trial(point: Point, trial: int, streams: TrialStreams, dataset: None) -> TrialData:
    """A mixture whose rows have a ``precision``, float32 or float64; else as `mixture_trial`."""
    data = mixture_trial(point, trial, streams, dataset)
    return replace(data, X=as_array(data.X).astype(point["precision"]))


def time_sketch(
    data: TrialData, streams: TrialStreams, *, alpha_r: float = 1.0, epsilon: float | None = None
) -> dict[str, np.ndarray]:
    """Time a sketch; with `epsilon` also its noise and CL-OMPR, for L = 1.

    Returns ``cpu_s``.
    """
    k, m = data.extra["n_clusters"], data.extra["n_frequencies"]
    bounds = data.extra["bounds"]
    frequencies = trial_frequencies(streams.get("init"), len(bounds[0]), m)
    noise = streams.get("noise")

    def run(X: np.ndarray) -> None:
        """One pass over rows and, with noise, a decoder."""
        sums = FeatureSums(frequencies, n_measurements=round(alpha_r * m)).add(X)
        if epsilon is not None:
            sketch = release(Sketch.from_feature_sums(sums), epsilon, 0.0, random_state=noise)
            decode(sketch, k, bounds=bounds, method="clompr", random_state=noise)

    return _timed(run, data.X)


def time_fit(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Time a fit of an estimator with the trial's box and number of clusters; ``cpu_s``."""
    offered = {
        "n_clusters": data.extra["n_clusters"],
        "bounds": data.extra["bounds"],
        "random_state": random_state_for(estimator, streams.get("noise")),
    }
    with warnings.catch_warnings():
        # the box is a box of the law, not of the sample: some rows lie outside by design
        warnings.filterwarnings("ignore", message="rows outside bounds")
        return _timed(construct(estimator, params, **COMPLETE, **offered).fit, data.X)


def _timed(run: Callable[[np.ndarray], object], X: np.ndarray) -> dict[str, np.ndarray]:
    """Run on a few rows, which compiles, and on all; CPU seconds of the second run."""
    run(X[:_WARM_ROWS])
    start = time.process_time()
    run(X)
    return {"cpu_s": np.float64(time.process_time() - start)}


def evaluate_costs(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """``cpu_s``, and ``of_reference``: in parts of the reference's of the same trial."""
    cpu_s = float(outputs["cpu_s"])
    return {"cpu_s": cpu_s, "of_reference": cpu_s / float(data.extra["reference"]["cpu_s"])}
