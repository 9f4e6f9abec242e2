import json
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privclust.core.canonical import canonical_json
from privclust_papers.pipeline import runner, seeds, tables
from privclust_papers.pipeline.experiment import Experiment, Method, expand_grid
from privclust_papers.settings.config import ConfigError


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
    X = streams.get("data").standard_normal((20, 1)) / 10
    y = np.repeat([0, 1], 10)
    return runner.TrialData(X + 2 * y[:, None] - 1, y, "made", {"parity": trial % 2, "word": "ü"})


def fit_with_start(estimator, params, data, streams):
    model = estimator(n_clusters=2, random_state=streams.get("init"), **params).fit(data.X)
    return {"labels": model.labels_, "start": model.start_}


def errors(data, outputs):
    """Part of the labels that are wrong, and the labels themselves as an array."""
    return {"error": np.mean(outputs["labels"] != data.y), "labels": outputs["labels"]}


def experiment(block, **params):
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
        seed=0,
    )


def through_json(spec):
    return json.loads(canonical_json(spec))


def shared(plan, block):
    if plan.share is None:
        return None
    specs = [plan.share_spec(block, shard) for shard in range(plan.shards)]
    return runner.merge_shards(runner.run_shard(through_json(spec), None) for spec in specs)


def blocks(plan, method):
    """One method's fits, block by block, as the jobs of its batch make them."""
    (batch,) = (name for name, methods in plan.batches.items() if method in methods)
    found = (
        runner.run_block(through_json(plan.fit_spec(batch, b)), None, shared(plan, b))
        for b in range(plan.n_blocks)
    )
    return [tables.columns_of(method, arrays) for arrays, _ in found]


def all_metrics(plan):
    fitted = {method: blocks(plan, method) for method in plan.methods}
    spec = through_json(plan.evaluate_spec())
    return runner.evaluate_fits(spec, lambda b: {m: fitted[m][b] for m in fitted}, None)


def metrics(plan, method):
    return tables.columns_of(method, all_metrics(plan))


def test_blocks_do_not_change_results():
    one, many = metrics(experiment(6), "a"), metrics(experiment(1), "a")
    assert one.keys() == many.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], many[name])


def test_batches_do_not_change_results(sweeping):
    together = replace(sweeping, together=True)
    assert together.batches == {"noisy": ("noisy", "deaf")}
    assert sweeping.batches == {"noisy": ("noisy",), "deaf": ("deaf",)}
    expected, found = all_metrics(sweeping), all_metrics(together)
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_array_equal(expected[name], found[name])


def test_a_batch_makes_data_once_and_times_each_method(sweeping):
    plan = replace(sweeping, together=True, block=100)
    _, cpu_seconds = runner.run_block(through_json(plan.fit_spec("noisy", 0)), None)
    instances = [("data", n, trial) for n in (5, 8) for trial in (0, 3)]
    assert [call for call in CALLS if call[0] == "data"] == instances
    assert set(cpu_seconds) == {"noisy", "deaf"}
    assert all(seconds > 0.0 for seconds in cpu_seconds.values())


def test_a_short_experiment_is_fitted_as_by_its_jobs(sweeping):
    short = replace(sweeping, together=True, block=100)
    assert (short.is_short, replace(short, block=1).is_short) == (True, False)
    spec = through_json(short.evaluate_spec())
    arrays, cpu_seconds = runner.run_short(spec, None)
    expected, _ = runner.run_block(through_json(short.fit_spec("noisy", 0)), None)
    assert arrays.keys() == expected.keys()
    for name in arrays:
        np.testing.assert_array_equal(arrays[name], expected[name])
    assert set(cpu_seconds) == {"noisy", "deaf"}


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
            "error": rng.random(12),
        }
    )
    summary = tables.summary_table(trials, ["error"], ["d"])
    assert len(summary) == 2
    row = summary[summary["d"] == 2].iloc[0]
    values = trials[trials["d"] == 2]["error"].to_numpy()
    assert row["n"] == 6
    assert row["mean"] == pytest.approx(values.mean())
    assert row["std"] == pytest.approx(values.std(ddof=1))
    assert row["se"] == pytest.approx(values.std(ddof=1) / np.sqrt(6))
    assert (row["min"], row["max"]) == (values.min(), values.max())


def test_one_trial_has_no_spread():
    trials = pd.DataFrame({"method": ["a"], "label": ["A"], "error": [0.5]})
    row = tables.summary_table(trials, ["error"], []).iloc[0]
    assert row["mean"] == 0.5
    assert np.isnan(row["se"])


def test_only_trials_with_a_value_count():
    trials = pd.DataFrame({"method": ["a"] * 4, "label": ["A"] * 4})
    trials["error"], trials["other"] = [1.0, 3.0, np.nan, np.nan], np.nan
    row, none = (tables.summary_table(trials, [name], []).iloc[0] for name in ("error", "other"))
    assert (row["n"], row["mean"], row["se"]) == (2, 2.0, pytest.approx(1.0))
    assert none["n"] == 0
    assert np.isnan([none["mean"], none["se"]]).all()


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


class Noisy:
    def __init__(self, epsilon=1.0, gain=1.0):
        self.epsilon, self.gain = epsilon, gain


class Deaf:
    def __init__(self, gain=1.0):
        self.epsilon, self.gain = None, gain


CALLS = []


def whole_numbers(point, trial, streams, dataset):
    CALLS.append(("data", point["n"], trial))
    X = streams.get("data").integers(0, 100, size=(point["n"], 2))
    return runner.TrialData(X, None, "made")


def column_sums(point, trial, streams, dataset, shard, n_shards):
    rows = whole_numbers(point, trial, streams, dataset).X[shard::n_shards]
    return {"sums": rows.sum(axis=0), "count": np.int64(len(rows))}


def noisy_mean(estimator, params, data, streams):
    model = estimator(**params)
    CALLS.append(("fit", estimator.__name__, model.epsilon))
    if "shared" in data.extra:
        mean = data.extra["shared"]["sums"] / data.extra["shared"]["count"]
    else:
        mean = data.X.mean(axis=0)
    noise = streams.get("noise").standard_normal(2) + streams.get("init").random()
    return {"mean": model.gain * mean + noise / (model.epsilon or np.inf)}


def distance(data, outputs):
    """Distance to the data's mean, and to the reference where there is one."""
    CALLS.append(("evaluate", len(data.X)))
    found = {"error": np.abs(outputs["mean"] - data.X.mean(axis=0)).sum()}
    if "reference" in data.extra:
        found["relative"] = np.abs(outputs["mean"] - data.extra["reference"]["mean"]).sum()
    return found


@pytest.fixture
def sweeping():
    CALLS.clear()
    here = __name__
    return Experiment(
        paper="p",
        name="e",
        data=f"{here}.whole_numbers",
        fit=f"{here}.noisy_mean",
        evaluate=f"{here}.distance",
        dataset=None,
        methods={
            "noisy": Method("noisy", "N", f"{here}.Noisy", {"gain": 2.0}),
            "deaf": Method("deaf", "D", f"{here}.Deaf", {}),
        },
        points=expand_grid([{"n": [5, 8], "epsilon": [0.1, 1.0, 10.0], "devices": [1, 4]}]),
        trials=(0, 3),
        block=6,
        seed=7,
        swept=("epsilon", "devices"),
    )


def test_numbers_are_those_of_each_task_on_its_own(sweeping):
    columns = metrics(sweeping, "noisy")
    assert len(columns["trial"]) == 24
    for row, error in enumerate(columns["value/error"]):
        point = {"n": int(columns["point/n"][row])}
        trial = int(columns["trial"][row])
        epsilon = float(columns["point/epsilon"][row])

        def stream(name, method=None, point=point, trial=trial):
            return seeds.generator(7, "p", "e", point, trial, name, method)

        X = stream("data").integers(0, 100, size=(point["n"], 2))
        noisy = seeds.generator(7, "p", "e", {**point, "epsilon": epsilon}, trial, "noise", "noisy")
        noise = noisy.standard_normal(2) + stream("init").random()
        assert error == np.abs(2.0 * X.mean(axis=0) + noise / epsilon - X.mean(axis=0)).sum()


def test_rows_are_in_the_order_of_tasks(sweeping):
    columns = metrics(sweeping, "deaf")
    rows = zip(*(columns[k] for k in ("point/n", "trial")), strict=True)
    expected = [(n, trial) for n in (5, 8) for trial in (0, 3) for _ in range(6)]
    assert list(rows) == expected


def test_data_are_made_once_for_an_instance(sweeping):
    fits = {method: blocks(sweeping, method) for method in sweeping.methods}
    instances = [("data", n, trial) for n in (5, 8) for trial in (0, 3)]
    assert [call for call in CALLS if call[0] == "data"] == 2 * instances
    CALLS.clear()
    spec = through_json(sweeping.evaluate_spec())
    runner.evaluate_fits(spec, lambda b: {m: fits[m][b] for m in fits}, None)
    assert [call for call in CALLS if call[0] == "data"] == instances
    assert len(CALLS) == 4 + 2 * 24


def test_methods_are_fitted_once_for_what_they_accept(sweeping):
    noisy, deaf = (blocks(sweeping, method) for method in ("noisy", "deaf"))
    fits = [call[1:] for call in CALLS if call[0] == "fit"]
    assert fits == 4 * [("Noisy", 0.1), ("Noisy", 1.0), ("Noisy", 10.0)] + 4 * [("Deaf", None)]
    # tasks of an instance, in order: (devices, epsilon) = (1, .1), (1, 1), (1, 10), (4, .1), ...
    means = [noisy[0][f"{task:05d}/mean"] for task in range(6)]
    np.testing.assert_array_equal(means[:3], means[3:])
    assert len({tuple(mean) for mean in means}) == 3
    assert len({tuple(deaf[0][f"{task:05d}/mean"]) for task in range(6)}) == 1


@pytest.mark.parametrize("block", [1, 7, 12, 100])
def test_blocks_do_not_change_swept_results(sweeping, block):
    expected, found = all_metrics(sweeping), all_metrics(replace(sweeping, block=block))
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_array_equal(expected[name], found[name])


def test_evaluation_gets_the_outputs_of_the_reference(sweeping):
    plan = replace(sweeping, reference="deaf")
    assert not metrics(plan, "deaf")["value/relative"].any()
    noisy, deaf = blocks(plan, "noisy"), blocks(plan, "deaf")
    relative = metrics(plan, "noisy")["value/relative"]
    for row in range(24):
        block, task = divmod(row, 6)
        name = f"{task:05d}/mean"
        assert relative[row] == np.abs(noisy[block][name] - deaf[block][name]).sum()
    assert "value/relative" not in metrics(sweeping, "noisy")


def spread_about(X, mean, power=2):
    """How far rows are from a mean; the power is no business of the experiment."""
    return float((np.abs(X - mean) ** power).mean())


def of_truth(y, mean):
    """Whether there are true clusters."""
    return float(y is not None)


def test_metrics_are_called_with_arguments_by_name(sweeping):
    paths = {"spread": f"{__name__}.spread_about", "has_truth": f"{__name__}.of_truth"}
    columns = metrics(replace(sweeping, metrics=paths), "noisy")
    fits = blocks(sweeping, "noisy")
    for row in range(24):
        block, task = divmod(row, 6)
        point, trial = {"n": int(columns["point/n"][row])}, int(columns["trial"][row])
        X = seeds.generator(7, "p", "e", point, trial, "data").integers(0, 100, (point["n"], 2))
        mean = fits[block][f"{task:05d}/mean"]
        assert columns["value/spread"][row] == ((X - mean) ** 2).mean()
    assert not columns["value/has_truth"].any()
    plain = metrics(sweeping, "noisy")
    np.testing.assert_array_equal(columns["value/error"], plain["value/error"])
    assert set(columns) - set(plain) == {"value/spread", "value/has_truth"}


def of_labels(y, labels):
    """Needs what no fit here returns."""


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        ("wrong", "of_labels", r"e\.metrics\.wrong: .* argument 'labels'; allowed are X, mean, y"),
        ("error", "spread_about", r"e\.metrics\.error: .*distance returns a metric of this name"),
    ],
)
def test_metrics_that_cannot_be_are_named(sweeping, name, function, message):
    with pytest.raises(ConfigError, match=message):
        metrics(replace(sweeping, metrics={name: f"{__name__}.{function}"}), "noisy")


@pytest.mark.parametrize(("shards", "block"), [(1, 6), (2, 6), (3, 1), (7, 100)])
def test_shards_change_no_result(sweeping, shards, block):
    plan = replace(sweeping, share=f"{__name__}.column_sums", shards=shards, block=block)
    expected, found = all_metrics(sweeping), all_metrics(plan)
    for name in expected:
        np.testing.assert_array_equal(expected[name], found[name])


def test_shared_statistics_are_sums_over_shards(sweeping):
    plan = replace(sweeping, share=f"{__name__}.column_sums", shards=3, block=100)
    merged = shared(plan, 0)
    assert {name.partition("/")[0] for name in merged} == {f"{i:05d}" for i in range(4)}
    for number, (n, trial) in enumerate((n, trial) for n in (5, 8) for trial in (0, 3)):
        X = seeds.generator(7, "p", "e", {"n": n}, trial, "data").integers(0, 100, size=(n, 2))
        np.testing.assert_array_equal(merged[f"{number:05d}/sums"], X.sum(axis=0))
        assert merged[f"{number:05d}/count"] == n


def test_sums_of_large_whole_numbers_are_exact():
    large = 2**62 - 1  # no float64
    merged = runner.merge_shards([{"s": np.array([large])}, {"s": np.array([-large + 1])}])
    assert merged["s"].tolist() == [1]
    assert merged["s"].dtype == np.int64


@pytest.mark.parametrize(
    "other", [{"t": np.zeros(2)}, {"s": np.zeros(3)}, {"s": np.zeros(2, dtype=int)}, {}]
)
def test_shards_that_do_not_fit_are_refused(other):
    with pytest.raises(ValueError, match="shard 1: got arrays"):
        runner.merge_shards([{"s": np.zeros(2)}, other])


def noise_as_data(point, trial, streams, dataset, *shard):
    """Breaks the rule: what methods share may not depend on one."""
    streams.get("noise")


@pytest.mark.parametrize("role", ["data", "share"])
def test_data_and_shared_statistics_have_no_noise(sweeping, role):
    plan = replace(sweeping, share=f"{__name__}.column_sums")
    plan = replace(plan, **{role: f"{__name__}.noise_as_data"})
    with pytest.raises(ValueError, match="got 'noise'; without a method it must be one of data, i"):
        blocks(plan, "noisy")


class DrawnRows:
    """No array: it knows only how to draw its rows, the same at each pass."""

    def __init__(self, streams):
        self._streams = streams

    def mean(self, axis):
        return self._streams.get("data").standard_normal((4, 2)).mean(axis=axis)

    def __len__(self):
        return 4


def drawn_rows(point, trial, streams, dataset):
    return runner.TrialData(DrawnRows(streams), None, "made")


def test_samples_need_not_be_an_array(sweeping):
    rows = DrawnRows(None)
    assert runner.prepared(rows, ()) is rows
    columns = metrics(replace(sweeping, data=f"{__name__}.drawn_rows"), "deaf")
    assert columns["value/error"].tolist() == [0.0] * 24


HELD = []


def watched_rows(point, trial, streams, dataset):
    """Data that note how many of those made before are still held."""
    found = whole_numbers(point, trial, streams, dataset)
    CALLS.append(("held", sum(reference() is not None for reference in HELD)))
    HELD.append(weakref.ref(found.X))
    return found


def test_one_instance_and_one_block_are_held_at_a_time(sweeping):
    HELD.clear()
    plan = replace(sweeping, data=f"{__name__}.watched_rows", block=12, reference="deaf")
    fitted = {method: blocks(plan, method) for method in plan.methods}
    read = []

    def read_block(number):
        assert not any(reference() is not None for reference in read)
        copies = {m: {k: v.copy() for k, v in fitted[m][number].items()} for m in fitted}
        read.extend(weakref.ref(array) for found in copies.values() for array in found.values())
        return copies

    runner.evaluate_fits(through_json(plan.evaluate_spec()), read_block, None)
    assert len(read) == 2 * 24
    assert [call for call in CALLS if call[0] == "held"] == 3 * 4 * [("held", 0)]


def noisy_sum(data, streams, *, epsilon, gain=1.0):
    """A method that is a function, along one swept axis of two."""
    CALLS.append(("called", epsilon))
    return {"mean": gain * data.X.sum(axis=0) + streams.get("noise").random() / epsilon}


def test_a_function_is_a_method_and_fixes_parameters(sweeping):
    here = __name__
    methods = {
        "sum": Method("sum", "S", f"{here}.noisy_sum", {"gain": 2.0}),
        "fixed": Method("fixed", "F", f"{here}.noisy_sum", {"epsilon": 4.0}),
    }
    experiment = replace(sweeping, fit=None, methods=methods, trials=(0,))
    spec = experiment.fit_spec("sum", 0)
    arrays, _ = runner.run_block(spec | {"methods": [m.spec() for m in methods.values()]}, None)
    assert [call[1] for call in CALLS if call[0] == "called"] == [0.1, 1.0, 10.0, 4.0]
    X = seeds.generator(7, "p", "e", {"n": 5}, 0, "data").integers(0, 100, size=(5, 2))
    draw = seeds.generator(7, "p", "e", {"n": 5, "epsilon": 1.0}, 0, "noise", "sum").random()
    # tasks are epsilon 0.1, 1, 10 with one device, then with four
    keys = [key for key in arrays if key.startswith("sum/")]
    assert any(np.array_equal(arrays[key], 2.0 * X.sum(axis=0) + draw) for key in keys)
    assert len({arrays[key].tobytes() for key in arrays if key.startswith("fixed/")}) == 1
