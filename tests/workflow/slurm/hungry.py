"""A trial that needs a given memory and says what threads its job allows."""

import os
import time

import numpy as np

from privclust_papers.pipeline.runner import TrialData

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Hungry:
    """Stands for an estimator."""


def rows(point, trial, streams, dataset):
    return TrialData(np.ones((point["megabytes"], 125_000)), None, "made")


def swallow(estimator, params, data, streams):
    """Keep the data for as long as a scheduler may take to look; report the threads."""
    time.sleep(3)
    return {name: np.int64(os.environ[name]) for name in THREADS}


def swallowed(data, outputs):
    return {name: float(outputs[name]) for name in THREADS}
