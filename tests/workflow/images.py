"""Functions of a trial on features, as someone outside of the package would write them."""

import numpy as np

from privclust_papers.pipeline.runner import TrialData


class Mean:
    """A method without settings."""


def test_part(point, trial, streams, dataset):
    """Features of the test images, with their pixels as a control."""
    test = ~dataset["train"]
    extra = {"pixels": dataset["pixels"][test]}
    return TrialData(dataset["X"][test], dataset["y"][test], dataset["source"], extra=extra)


def spread_about_mean(estimator, params, data, streams):
    return {"spread": np.float64(data.X.var(axis=0).sum())}


def spread(data, outputs):
    """The spread of features and of pixels, and how many images there are."""
    return {
        "spread": outputs["spread"],
        "pixel_spread": data.extra["pixels"].var(axis=0).sum(),
        "n_images": len(data.X),
    }
