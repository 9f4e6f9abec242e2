"""Functions of a trial and two methods, as someone outside of the package would write them."""

import numpy as np

from privclust_papers.pipeline.runner import TrialData


class Lean:
    def __init__(self, epsilon):
        self.scale = 1.0 / epsilon


class Deaf:
    scale = 0.0


def rows(point, trial, streams, dataset):
    X = streams.get("data").integers(0, 1000, size=(point["n"], 3))
    return TrialData(X, None, "made")


def column_sums(point, trial, streams, dataset, shard, n_shards):
    part = rows(point, trial, streams, dataset).X[shard::n_shards]
    return {"sums": part.sum(axis=0), "count": np.int64(len(part))}


def noisy_mean(estimator, params, data, streams):
    shared = data.extra["shared"]
    noise = streams.get("noise").standard_normal(3) * estimator(**params).scale
    return {"mean": shared["sums"] / shared["count"] + noise}


def distances(data, outputs):
    """Distances to the mean of the data and to the reference method's."""
    true, reference = data.X.mean(axis=0), data.extra["reference"]["mean"]
    return {
        "error": np.abs(outputs["mean"] - true).max(),
        "to_reference": np.abs(outputs["mean"] - reference).max(),
    }
