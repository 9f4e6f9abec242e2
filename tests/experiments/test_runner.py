import logging

import numpy as np
import pandas as pd
import pytest

from privclust.experiments import runner, tables
from privclust.experiments.plan import Experiment, Method, expand_grid


class Shifted:
    """An estimator that is no part of the package: the nearest of two bounds."""

    def __init__(self, n_clusters=None, shift=0.0, random_state=None):
        self.n_clusters, self.shift, self.random_state = n_clusters, shift, random_state

    def get_params(self):
        return {"n_clusters": None, "shift": 0.0, "random_state": None}

    def fit(self, X):
        self.labels_ = (X[:, 0] > self.shift).astype(int)
        self.start_ = self.random_state.random()
        return self


def two_bounds(point, trial, streams, dataset):
    """Two clusters at -1 and 1."""
    X = streams.get("data").standard_normal((20, 1)) / 10
    y = np.repeat([0, 1], 10)
    return runner.TrialData(X + 2 * y[:, None] - 1, y, "made", {"parity": trial % 2, "word": "ü"})


def fit_with_start(estimator, params, data, streams):
    """Keep the labels and the start that the method got."""
    model = estimator(n_clusters=2, random_state=streams.get("init"), **params).fit(data.X)
    return {"labels": model.labels_, "start": model.start_}


def errors(data, outputs):
    """Part of the labels that are wrong, and the labels themselves as an array."""
    return {"error": np.mean(outputs["labels"] != data.y), "labels": outputs["labels"]}


def experiment(block, **params):
    """Six tasks in blocks of a given size."""
    here = __name__
    return Experiment(
        paper="p",
        name="e",
        data=f"{here}.two_bounds",
        fit=f"{here}.fit_with_start",
        evaluate=f"{here}.errors",
        dataset=None,
        methods={
            "a": Method("a", "A", f"{here}.Shifted", params),
            "b": Method("b", "B", f"{here}.Shifted", {"shift": 0.5}),
        },
        points=expand_grid([{"d": [1, 2]}]),
        trials=(0, 1, 2),
        block=block,
        groups=(("parity",),),
        seed=0,
    )


def blocks(plan, method):
    return [runner.run_block(plan.fit_spec(method, b), None) for b in range(plan.n_blocks)]


def metrics(plan, method):
    spec = plan.evaluate_spec()
    spec = {"evaluate": spec["evaluate"], "fits": spec["methods"][method]}
    return runner.evaluate_method(spec, blocks(plan, method), None)


def test_blocks_do_not_change_results():
    one, many = metrics(experiment(6), "a"), metrics(experiment(1), "a")
    assert one.keys() == many.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], many[name])


def test_methods_share_data_and_starts():
    plan = experiment(6)
    (a,), (b,) = blocks(plan, "a"), blocks(plan, "b")
    starts = [a[f"{i:05d}/start"] for i in range(6)]
    assert starts == [b[f"{i:05d}/start"] for i in range(6)]
    assert len(set(map(float, starts))) == 6


def test_columns_hold_points_facts_values_and_arrays():
    columns = metrics(experiment(4), "a")
    assert columns["point/d"].tolist() == [1, 1, 1, 2, 2, 2]
    assert columns["trial"].tolist() == [0, 1, 2, 0, 1, 2]
    assert columns["value/error"].tolist() == [0.0] * 6
    assert columns["array/00005/labels"].shape == (20,)
    assert tables.metric_names(columns) == ["error"]


def test_summary_agrees_with_a_direct_computation():
    rng = np.random.default_rng(0)
    trials = pd.DataFrame(
        {
            "method": "a",
            "label": "A",
            "d": np.repeat([1, 2], 6),
            "parity": np.tile([0, 1], 6),
            "error": rng.random(12),
        }
    )
    summary = tables.summary_table(trials, ["error"], ["d"], [["parity"]])
    assert len(summary) == 2 + 4
    row = summary[(summary["d"] == 2) & (summary["parity"] == 1)].iloc[0]
    values = trials[(trials["d"] == 2) & (trials["parity"] == 1)]["error"].to_numpy()
    assert row["n"] == 3
    assert row["mean"] == pytest.approx(values.mean())
    assert row["std"] == pytest.approx(values.std(ddof=1))
    assert row["se"] == pytest.approx(values.std(ddof=1) / np.sqrt(3))
    assert (row["min"], row["max"]) == (values.min(), values.max())


def test_one_trial_has_no_spread():
    trials = pd.DataFrame({"method": ["a"], "label": ["A"], "error": [0.5]})
    row = tables.summary_table(trials, ["error"], [], []).iloc[0]
    assert row["mean"] == 0.5
    assert np.isnan(row["se"])


def test_progress_ends_with_a_line_where_there_is_no_terminal(caplog):
    with caplog.at_level(logging.INFO, logger="privclust"):
        assert list(runner.progress([1, 2, 3], "thing")) == [1, 2, 3]
    assert caplog.messages == ["thing: 3 of 3"]


def test_data_and_starts_are_the_same_along_swept_axes():
    spec = {
        "seed": 0,
        "paper": "p",
        "experiment": "e",
        "swept": ["epsilon"],
        "method": {"name": "a"},
    }
    points = [{"epsilon": 0.1, "n": 5}, {"epsilon": 1.0, "n": 5}, {"epsilon": 0.1, "n": 6}]
    first, other, elsewhere = (runner.TrialStreams(spec, point, 0) for point in points)
    for stream in ("data", "init"):
        assert first.get(stream).random() == other.get(stream).random()
        assert first.get(stream).random() != elsewhere.get(stream).random()
    assert first.get("noise").random() != other.get("noise").random()
