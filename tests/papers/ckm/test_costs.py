import time

import numpy as np
import pytest

from privclust.kmeans import DPLloyd
from privclust_papers.ckm import costs
from privclust_papers.pipeline.runner import TrialStreams, run_method

POINT = {
    "n_samples": 2000,
    "n_clusters": 2,
    "n_features": 3,
    "n_frequencies": 40,
    "precision": "float32",
}


def trial():
    spec = {"seed": 1, "paper": "ckm", "experiment": "e", "swept": [], "method": {"name": "m"}}
    streams = TrialStreams(spec, POINT, 0)
    return costs.costs_trial(POINT, 0, streams, None), streams


def test_rows_have_the_precision_that_is_asked_for():
    assert trial()[0].X.dtype == np.float32


@pytest.mark.parametrize("params", [{}, {"alpha_r": 0.1}, {"epsilon": 1.0}])
def test_sketches_are_timed(params):
    assert costs.time_sketch(*trial(), **params)["cpu_s"] > 0.0


def test_fits_are_timed_in_the_trial_s_box():
    params = {"epsilon": 1.0, "max_iter": 2}
    assert run_method(costs.time_fit, DPLloyd, params, *trial())["cpu_s"] > 0.0


def test_what_compiles_is_not_timed(monkeypatch):
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    sizes = []
    outputs = costs._timed(lambda X: sizes.append(len(X)), np.zeros((5000, 1)))
    assert sizes == [1000, 5000]
    data, _ = trial()
    data.extra["reference"] = {"cpu_s": np.float64(5.0)}
    assert costs.evaluate_costs(data, outputs) == {"cpu_s": 2.5, "of_reference": 0.5}
