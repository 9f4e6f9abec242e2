"""What is computed without sampling: Figure 1, and small chains."""

import numpy as np
import pytest

from privclust.metrics.subspaces import subspace_cost
from privclust.subspaces import KPlanes
from privclust_papers.dpsc import checks as subspaces_checks
from privclust_papers.dpsc.circle import circle_optimum
from privclust_papers.dpsc.exact_chain import total_variation_curve
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.settings.config import ConfigError


def streams(point):
    spec = {"seed": 1, "paper": "dpsc", "experiment": "e", "swept": []}
    return TrialStreams({**spec, "method": {"name": "m"}}, point, 0)


@pytest.mark.parametrize("n_points", [8, 9])
def test_one_point_turns_the_best_lines(n_points):
    point = {"n_points": n_points}
    data = subspaces_checks.circle_trial(point, 0, streams(point), None)
    assert data.X.shape == (n_points, 2)
    outputs = subspaces_checks.fit_circle(KPlanes, {"n_init": 100}, data, streams(point))
    values = subspaces_checks.evaluate_circle(data, outputs)
    assert values["distance"] >= 1.0
    # k-plane with 100 starts finds the optimum, and nothing is below it
    assert values["gap"] == pytest.approx(0.0, abs=1e-12)
    for row, lines, cost in zip(values["added"], values["lines"], data.extra["costs"], strict=True):
        X = np.vstack([data.X, row])
        assert subspace_cost(X, lines[..., None]) == pytest.approx(cost)


def test_the_gap_is_the_larger_excess_over_the_optimum():
    point = {"n_points": 8}
    data = subspaces_checks.circle_trial(point, 0, streams(point), None)
    values = subspaces_checks.evaluate_circle(data, {"costs": data.extra["costs"] + [0.0, 0.1]})
    assert values["gap"] == pytest.approx(0.1)


# --- chains ----------------------------------------------------------------------------------

CHAIN = {"n_samples": 5, "shape": "lines", "n_sweeps": 300}


def chain(shape, init, epsilon):
    point = {**CHAIN, "shape": shape}
    data = subspaces_checks.chain_trial(point, 0, streams(point), None)
    outputs = subspaces_checks.follow_exact_chain(data, streams(point), epsilon=epsilon, init=init)
    return data, outputs


@pytest.mark.parametrize("n", [0, 8])
def test_chains_of_too_many_rows_are_refused(n):
    point = {**CHAIN, "shape": "circle", "n_samples": n}
    with pytest.raises(ConfigError, match=f"n_samples: got {n}; it must be from 1 to 7"):
        subspaces_checks.chain_trial(point, 0, streams(point), None)


@pytest.mark.parametrize("shape", ["lines", "circle"])
def test_rows_of_chains(shape):
    data, _ = chain(shape, "random", 1.0)
    np.testing.assert_allclose(np.linalg.norm(data.X, axis=1), 1.0)
    _, cost = circle_optimum(data.X)
    # rows about two lines, at most four deviations from them; evenly spaced ones are not
    assert (cost < (4 * 0.1) ** 2) == (shape == "lines")


def test_an_unknown_shape_is_named():
    with pytest.raises(ConfigError, match="shape: got 'star'; it must be one of lines, circle"):
        chain("star", "random", 1.0)


@pytest.mark.parametrize("init", ["random", "optimum"])
@pytest.mark.parametrize("shape", ["lines", "circle"])
def test_chains_come_to_their_target(shape, init):
    data, outputs = chain(shape, init, 3.0)
    assert outputs["sweep"][[0, -1]].tolist() == [1, 300]
    distances = outputs["total_variation"]
    assert (np.diff(distances) < 1e-12).all()  # rounding
    assert distances[0] > 1e-3
    assert distances[-1] < 1e-10
    evaluated = subspaces_checks.evaluate_exact_chain(data, outputs)
    assert evaluated["final_distance"] == distances[-1]


def test_a_start_is_followed_with_its_names_forgotten():
    """The same by the curve that knows names, where a start and its reverse are one."""
    data, _ = chain("circle", "optimum", 2.0)
    lines = circle_optimum(data.X)[0]
    same = np.stack([lines[0], lines[0]])
    np.testing.assert_allclose(
        total_variation_curve(data.X, 2.0, 5, init=same, is_ordered=False),
        total_variation_curve(data.X, 2.0, 5, init=same),
        atol=1e-12,
    )
    # the distance is no larger than when names count, for each order of the start alike
    named = total_variation_curve(data.X, 2.0, 5, init=lines)
    nameless, reverse = (
        total_variation_curve(data.X, 2.0, 5, init=bases, is_ordered=False)
        for bases in (lines, lines[::-1])
    )
    assert (nameless <= named + 1e-12).all()
    np.testing.assert_allclose(reverse, nameless, atol=1e-12)


def test_a_start_is_not_left_where_many_are_as_good():
    """With a large epsilon the chain stays by the optimum that it began at."""
    _, outputs = chain("circle", "optimum", 300.0)
    assert outputs["total_variation"][-1] > 0.5
    _, outputs = chain("lines", "optimum", 300.0)
    assert outputs["total_variation"][-1] < 1e-9
