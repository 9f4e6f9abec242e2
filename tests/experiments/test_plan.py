import pytest

from privclust.experiments.plan import Experiment, Method, expand_grid, expand_trials


@pytest.fixture
def experiment():
    return Experiment(
        paper="p",
        name="e",
        data="m.data",
        fit="m.fit",
        evaluate="m.evaluate",
        dataset=None,
        methods={"a": Method("a", "A", "m.A", {"x": 1})},
        points=expand_grid([{"d": [1, 2]}]),
        trials=(0, 1, 2),
        block=4,
        groups=(),
        seed=0,
    )


def test_blocks_hold_every_task_once_and_in_order(experiment):
    tasks = [
        task
        for block in range(experiment.n_blocks)
        for task in experiment.fit_spec("a", block)["tasks"]
    ]
    assert tasks == [[{"d": d}, trial] for d in (1, 2) for trial in (0, 1, 2)]
    assert experiment.n_blocks == 2


def test_grid_is_a_union_without_repeats():
    points = expand_grid([{"d": 13, "n": [15, 16]}, {"d": [12, 13], "n": 16}])
    assert points == ({"d": 13, "n": 15}, {"d": 13, "n": 16}, {"d": 12, "n": 16})


def test_trials_from_a_count_or_a_range():
    assert expand_trials(2) == (0, 1)
    assert expand_trials({"start": 3, "stop": 10, "step": 3}) == (3, 6, 9)
