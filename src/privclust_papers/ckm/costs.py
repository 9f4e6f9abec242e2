"""CPU time of private k-means: sketches, with and without masks, and earlier methods.

Compiled loops are run once on a few rows before they are timed. Unlike all other results of the
paper, these depend on the machine.
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
    """Return a trial as `mixture_trial`, with rows in ``precision``: float32 or float64."""
    data = mixture_trial(point, trial, streams, dataset)
    return replace(data, X=as_array(data.X).astype(point["precision"]))


def time_sketch(
    data: TrialData, streams: TrialStreams, *, alpha_r: float = 1.0, epsilon: float | None = None
) -> dict[str, np.ndarray]:
    """Return ``cpu_s`` of a sketch; with `epsilon` also of its noise and CL-OMPR, for L = 1."""
    k, m = data.extra["n_clusters"], data.extra["n_frequencies"]
    bounds = data.extra["bounds"]
    frequencies = trial_frequencies(streams.get("init"), len(bounds[0]), m)
    noise = streams.get("noise")

    def run(X: np.ndarray) -> None:
        """Sketch the rows and, with noise, decode."""
        sums = FeatureSums(frequencies, n_measurements=round(alpha_r * m)).add(X)
        if epsilon is not None:
            sketch = release(Sketch.from_feature_sums(sums), epsilon, 0.0, random_state=noise)
            decode(sketch, k, bounds=bounds, method="clompr", random_state=noise)

    return _timed(run, data.X)


def time_fit(
    estimator: type, params: Mapping[str, Any], data: TrialData, streams: TrialStreams
) -> dict[str, np.ndarray]:
    """Return ``cpu_s`` of a fit with the trial's bounds and number of clusters."""
    offered = {
        "n_clusters": data.extra["n_clusters"],
        "bounds": data.extra["bounds"],
        "random_state": random_state_for(estimator, streams.get("noise")),
    }
    with warnings.catch_warnings():
        # bounds are for the distribution, not the sample: some rows are outside by design
        warnings.filterwarnings("ignore", message="rows outside bounds")
        return _timed(construct(estimator, params, **COMPLETE, **offered).fit, data.X)


def _timed(run: Callable[[np.ndarray], object], X: np.ndarray) -> dict[str, np.ndarray]:
    """Run on a few rows, which compiles, then on all; return CPU seconds of the second run."""
    run(X[:_WARM_ROWS])
    start = time.process_time()
    run(X)
    return {"cpu_s": np.float64(time.process_time() - start)}


def evaluate_costs(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return ``cpu_s``, and ``of_reference``: its ratio to the reference of the same trial."""
    cpu_s = float(outputs["cpu_s"])
    return {"cpu_s": cpu_s, "of_reference": cpu_s / float(data.extra["reference"]["cpu_s"])}
