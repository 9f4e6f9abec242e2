"""Errors of a number of clusters that is chosen: trials, what they are judged by, the picture."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist

from privclust.kmeans import CompressiveKMeans
from privclust_papers.frontier import counting
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.report.drawing.style import Results, styles_of

SPEC = {"seed": 1, "paper": "frontier", "experiment": "frontier_auto", "swept": []}
SPEC["method"] = {"name": "compressive"}
POINT = {"n_samples": 2000, "n_clusters": 3, "n_features": 2, "epsilon": 1.0}


def test_clusters_are_apart_and_inside_the_box():
    streams = TrialStreams(SPEC, {}, 0)
    trial = counting.apart_trial(POINT | {"n_clusters": 10, "epsilon": 0.1}, 0, streams, None)
    assert trial.X.shape == (2000, 2)
    low, high = trial.extra["bounds"]
    assert np.mean(np.abs(trial.X) < high) > 0.999
    truth = CompressiveKMeans(10, epsilon=None, bounds=(low, high), random_state=0).fit(trial.X)
    assert pdist(truth.cluster_centers_).min() > 4.0


@pytest.mark.parametrize(("epsilon", "hides"), [(1.0, False), (0.005, True)])
def test_a_fit_is_right_or_says_what_noise_hides(epsilon, hides):
    streams = TrialStreams(SPEC, {}, 0)
    trial = counting.apart_trial(POINT | {"epsilon": epsilon}, 0, streams, None)
    metrics = counting.evaluate_count(
        trial, counting.fit_auto(CompressiveKMeans, {}, trial, streams)
    )
    assert metrics["hidden"] == hides
    assert metrics["wrong"] == hides
    assert metrics["wrong_unsaid"] == 0.0


@pytest.mark.parametrize(
    ("chosen", "most", "wrong", "unsaid", "hidden"),
    [
        (3, np.inf, 0.0, 0.0, 0.0),
        (2, np.inf, 1.0, 1.0, 0.0),
        (2, 2.0, 1.0, 0.0, 1.0),
        (2, 3.0, 1.0, 1.0, 0.0),
        (4, 4.0, 1.0, 1.0, 0.0),
    ],
)
def test_what_counts_as_an_error(chosen, most, wrong, unsaid, hidden):
    trial = TrialData(np.zeros((1, 1)), None, "", extra={"n_clusters": 3})
    outputs = {"n_clusters": np.array(chosen), "most_told": np.array(most)}
    expected = {"wrong": wrong, "wrong_unsaid": unsaid, "hidden": hidden, "chosen": chosen}
    assert counting.evaluate_count(trial, outputs) == expected


def test_the_picture_has_a_line_for_each_size():
    sizes = {"n_features": 2, "n_samples": 1000, "method": "compressive", "label": "ours"}
    rows = [
        {**sizes, "n_clusters": k, "epsilon": epsilon, "trial": trial, "source": "generated"}
        | {"wrong": 0.5, "wrong_unsaid": 0.0, "hidden": 0.5, "chosen": 2.0}
        for k in (3, 10)
        for epsilon in (0.3, 1.0)
        for trial in (0, 1, 2)
    ]
    look = [("compressive", {"colour": "vermillion", "marker": "o", "promise": "private"})]
    trials = {"frontier_auto": pd.DataFrame(rows)}
    results = Results("frontier_auto", trials, {}, {}, pd.DataFrame(), styles=styles_of(look))
    drawing = counting.count_errors(results)
    assert len(drawing.figure.axes) == 6  # a row for each k
    assert len(drawing.figure.axes[0].lines) == 1
    assert set(drawing.table.query("metric == 'wrong'")["mean"]) == {0.5}
