"""Coverage of standard errors: trials, what they are judged by, and the picture."""

import numpy as np
import pandas as pd
import pytest

from privclust.kmeans import CompressiveKMeans
from privclust_papers.frontier import uncertainty
from privclust_papers.pipeline.runner import TrialData, TrialStreams
from privclust_papers.report.drawing.style import Results, styles_of

SPEC = {"seed": 1, "paper": "frontier", "experiment": "frontier_errors", "swept": []}
SPEC["method"] = {"name": "compressive"}


def test_a_trial_s_intervals_hold_more_often_than_not():
    point = {"n_samples": 20_000, "n_clusters": 3, "n_features": 2, "epsilon": 1.0}
    streams = TrialStreams(SPEC, {}, 0)
    trial = uncertainty.clusters_trial(point, 0, streams, None)
    assert trial.X.shape == (20_000, 2)
    truth = trial.extra["truth"]()
    assert truth["weights"].sum() == pytest.approx(1.0)
    assert trial.extra["truth"]() is truth  # another drawing would be another population
    outputs = uncertainty.fit_with_errors(CompressiveKMeans, {}, trial, streams)
    metrics = uncertainty.evaluate_errors(trial, outputs)
    assert metrics["unreliable"] == 0.0
    assert metrics["missed_centers"] <= 0.5
    assert np.isnan(metrics["missed_unreliable"])


def test_what_is_missed_is_counted_by_matched_clusters():
    truth = {"centers": np.array([[0.0], [10.0]]), "weights": np.array([0.4, 0.6])}
    truth["mean_inertia"] = 1.0
    trial = TrialData(np.zeros((1, 1)), None, "", extra={"truth": lambda: truth})
    outputs = {
        "centers": np.array([[10.5], [0.1]]),  # the other way round
        "weights": np.array([0.6, 0.4]),
        "mean_inertia": np.array(1.1),
        "center_errors": np.array([[0.2], [0.1]]),
        "weight_errors": np.array([0.1, 0.1]),
        "inertia_error": np.array(0.1),
        "is_reliable": np.array([True, True]),
    }
    metrics = uncertainty.evaluate_errors(trial, outputs)
    assert metrics["missed_centers"] == 0.5  # 2.5 and 1 standard errors off
    assert metrics["missed_weights"] == metrics["missed_inertia"] == metrics["unreliable"] == 0.0
    outputs["is_reliable"] = np.array([False, True])
    metrics = uncertainty.evaluate_errors(trial, outputs)
    assert (metrics["missed_centers"], metrics["missed_unreliable"]) == (0.0, 1.0)
    assert metrics["unreliable"] == 0.5
    assert np.isnan(metrics["missed_inertia"])


def test_the_picture_has_a_line_for_each_size():
    sizes = {"n_features": 2, "n_samples": 1000, "method": "compressive", "label": "ours"}
    rows = [
        {**sizes, "n_clusters": k, "epsilon": epsilon, "trial": trial, "source": "generated"}
        | dict.fromkeys(uncertainty._METRICS, 0.05 * trial)
        for k in (3, 10)
        for epsilon in (0.3, 1.0)
        for trial in (0, 1, 2)
    ]
    look = [("compressive", {"colour": "vermillion", "marker": "o", "promise": "private"})]
    trials = {"frontier_errors": pd.DataFrame(rows)}
    results = Results("frontier_errors", trials, {}, {}, pd.DataFrame(), styles=styles_of(look))
    drawing = uncertainty.coverage(results)
    assert len(drawing.figure.axes) == 8  # a row for each k
    assert len(drawing.figure.axes[0].containers) == 1
    held = drawing.table.query("metric == 'missed_centers'")["mean"]
    np.testing.assert_allclose(held, 0.05)
