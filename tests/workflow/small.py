"""A data set, its trials, a method and a drawing, as someone outside of the package would write."""

import numpy as np

from privclust_papers.pipeline.runner import TrialData


class Mean:
    def __init__(self, scale):
        self.scale = scale


def read(path):
    return {"values": np.loadtxt(path)}


def generate(size):
    return {"values": np.arange(float(size))}


def rows(point, trial, streams, dataset):
    chosen = streams.get("data").choice(dataset["values"], size=(point["n"], 3))
    return TrialData(chosen, None, dataset["source"])


def noisy_rows(estimator, params, data, streams):
    """As many numbers as the data has: what a full disk has no room for."""
    noise = streams.get("noise").standard_normal(data.X.shape)
    return {"rows": data.X + estimator(**params).scale * noise}


def errors(data, outputs):
    return {"error": np.abs(outputs["rows"].mean(axis=0) - data.X.mean(axis=0)).max()}


def draw(results):
    # Fits and data read this file too: they need neither Matplotlib nor pandas.
    from privclust.report.figures import new_figure
    from privclust_papers.report.drawing.style import Drawing

    (trials,) = results.trials.values()
    figure = new_figure(3.0, 2.0)
    figure.subplots().plot(trials["error"])
    return Drawing(figure, trials)
