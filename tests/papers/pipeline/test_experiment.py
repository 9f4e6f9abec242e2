from dataclasses import replace

import pytest

from privclust_papers.pipeline.experiment import (
    Experiment,
    Method,
    expand_grid,
    expand_trials,
    experiments_of,
)
from privclust_papers.settings.config import ConfigError


@pytest.fixture
def experiment():
    return Experiment(
        paper="p",
        name="e",
        data="m.data",
        fit="m.fit",
        evaluate="m.evaluate",
        dataset=None,
        methods={"a": Method("a", "A", "m.A", {"x": 1}), "b": Method("b", "B", "m.B", {})},
        points=expand_grid([{"d": [1, 2]}]),
        trials=(0, 1, 2),
        block=4,
        seed=0,
    )


@pytest.fixture
def sweeping(experiment):
    """Two shared points, of two and of three swept values, given in another order."""
    grid = [{"d": 1, "eps": [0.1, 1.0]}, {"d": 2, "eps": [0.1, 1.0]}, {"d": 1, "eps": 9.0}]
    return replace(experiment, points=expand_grid(grid), trials=(0, 1), swept=("eps",))


def test_blocks_hold_every_task_once_and_in_order(experiment):
    sizes = [len(experiment.fit_spec("a", b)["instances"]) for b in range(experiment.n_blocks)]
    assert sizes == [4, 2]
    instances = [i for b in range(experiment.n_blocks) for i in experiment.blocks[b]]
    assert instances == [({"d": d}, trial, [{}]) for d in (1, 2) for trial in (0, 1, 2)]


def test_swept_values_stand_together_trial_by_trial(sweeping):
    whole = replace(sweeping, block=100)
    first, second = [{"eps": 0.1}, {"eps": 1.0}, {"eps": 9.0}], [{"eps": 0.1}, {"eps": 1.0}]
    assert whole.blocks == [
        [({"d": 1}, 0, first), ({"d": 1}, 1, first), ({"d": 2}, 0, second), ({"d": 2}, 1, second)]
    ]


@pytest.mark.parametrize(
    ("block", "sizes"), [(1, [3, 3, 2, 2]), (3, [3, 3, 4]), (4, [6, 4]), (7, [8, 2]), (10, [10])]
)
def test_blocks_end_with_the_instance_that_fills_them(sweeping, block, sizes):
    cut = replace(sweeping, block=block)
    assert [sum(len(sweep) for *_, sweep in instances) for instances in cut.blocks] == sizes
    assert cut.n_blocks == len(sizes)
    assert [i for instances in cut.blocks for i in instances] == replace(
        sweeping, block=100
    ).blocks[0]


def test_methods_and_swept_values_leave_shards_as_they_are(sweeping):
    spec = replace(sweeping, block=100, share="m.share", shards=2)
    fewer = replace(
        spec,
        points=tuple(point for point in spec.points if point["eps"] < 1.0),
        methods={"b": spec.methods["b"]},
    )
    assert spec.share_spec(0, 1) == fewer.share_spec(0, 1)
    assert spec.share_spec(0, 1) != spec.share_spec(0, 0)
    assert spec.share_spec(0, 1) != replace(spec, shards=3).share_spec(0, 1)
    assert spec.share_spec(0, 1)["instances"] == [[{"d": d}, t] for d in (1, 2) for t in (0, 1)]


def test_number_of_shards_decides_no_fit(sweeping):
    one, two = (replace(sweeping, share="m.share", shards=n) for n in (1, 2))
    assert one.fit_spec("a", 0) == two.fit_spec("a", 0)
    assert one.fit_spec("a", 0) != sweeping.fit_spec("a", 0)


def test_grid_is_a_union_without_repeats():
    points = expand_grid([{"d": 13, "n": [15, 16]}, {"d": [12, 13], "n": 16}])
    assert points == ({"d": 13, "n": 15}, {"d": 13, "n": 16}, {"d": 12, "n": 16})


def test_trials_from_a_count_or_a_range():
    assert expand_trials(2) == (0, 1)
    assert expand_trials({"start": 3, "stop": 10, "step": 3}) == (3, 6, 9)
    assert expand_trials({"start": 3, "stop": 6}) == (3, 4, 5)


def document(**changes):
    entry = {
        "data": "m.data",
        "fit": "m.fit",
        "evaluate": "m.evaluate",
        "methods": {"a": {}},
        "grid": [{"d": [1, 2], "eps": [0.1]}],
        "swept": ["eps"],
        "effort": {"paper": {"trials": 2, "block": 1} | changes.pop("effort", {})},
    }
    return {
        "paper": "p",
        "methods": {name: {"label": name, "class": "m.A"} for name in ("a", "other")},
        "experiments": {"e": entry | changes},
    }


def test_metrics_decide_the_evaluation_but_not_the_fits():
    plain, found = (
        experiments_of(document(**more), "paper", 0, "f")["e"]
        for more in ({}, {"metrics": {"purity": "m.purity"}})
    )
    assert found.evaluate_spec()["metrics"] == {"purity": "m.purity"}
    assert "metrics" not in plain.evaluate_spec()  # what was evaluated before stays as it is
    assert found.fit_spec("a", 0) == plain.fit_spec("a", 0)


def test_keys_of_sharing_reach_the_experiment():
    effort = {"shards": 3, "memory_mb": 4000}
    given = document(share="m.share", reference="a", effort=effort)
    found = experiments_of(given, "paper", 0, "f")["e"]
    assert (found.share, found.shards, found.reference, found.memory_mb) == (
        "m.share",
        3,
        "a",
        4000,
    )
    plain = experiments_of(document(), "paper", 0, "f")["e"]
    assert (plain.share, plain.shards, plain.reference, plain.memory_mb) == (None, 1, None, 1500)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reference": "other"}, "f: experiments.e.reference: got 'other'; it must be one of a"),
        ({"swept": ["delta"]}, "f: experiments.e.swept: got 'delta'; it must be one of d, eps"),
        ({"effort": {"shards": 2}}, "f: experiments.e: shards: got 2; it must be 1 where there is"),
        ({"grid": [{"eps": []}]}, "f: experiments.e: got 0 grid points and 2 trials"),
        (
            {"effort": {"trials": {"start": 2, "stop": 2}}},
            "f: experiments.e: got 2 grid points and 0 trials",
        ),
    ],
)
def test_keys_that_do_not_fit_one_another_are_named(changes, message):
    with pytest.raises(ConfigError) as caught:
        experiments_of(document(**changes), "paper", 0, "f")
    assert str(caught.value).startswith(message)


def test_functions_need_no_fit_and_classes_do():
    given = document()
    del given["experiments"]["e"]["fit"]
    with pytest.raises(ConfigError, match=r"f: experiments\.e\.fit: missing; .* such as a"):
        experiments_of(given, "paper", 0, "f")
    given["methods"]["a"] = {"label": "a", "function": "m.measure"}
    found = experiments_of(given, "paper", 0, "f")["e"]
    assert found.fit is None
    assert found.methods["a"].dotted_paths() == ["m.measure"]
    assert found.fit_spec("a", 0)["fit"] is None
