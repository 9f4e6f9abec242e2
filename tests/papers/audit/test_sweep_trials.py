"""The Gibbs sampler against sweeps: sampled lines follow their exact law, and what it shows."""

import numpy as np
import pytest

from privclust_papers.audit import data as audits
from privclust_papers.audit.cases.sweeps import PAIRS, LinesAfterSweeps
from privclust_papers.audit.exact_lines import worst_ratio
from privclust_papers.audit.sweep_trials import evaluate_sweeps, fit_sweeps
from privclust_papers.pipeline.runner import TrialStreams
from privclust_papers.settings.config import load_yaml

EXPERIMENT = load_yaml("config/papers/audit/paper.yaml")["experiments"]["audit_sweeps"]


def streams(seed):
    spec = {"seed": seed, "paper": "audit", "experiment": "e", "swept": []}
    return TrialStreams({**spec, "method": {"name": "m"}}, {"cost": 0.1}, 0)


def found_by(seed=5, **params):
    data = audits.audit_trial({"cost": 0.1}, 0, streams(seed), None)
    outputs = fit_sweeps(LinesAfterSweeps, params, data, streams(seed))
    return outputs, evaluate_sweeps(data, outputs)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("start", ["random", "data"])
def test_sampled_lines_follow_their_exact_law(pair, start):
    case = LinesAfterSweeps(start, pair, n_sweeps=2, n_rows=8)
    size, n = len(case._exact[0].angles), 600
    for rows, law in zip((case.data, case.neighbour), case.laws(2), strict=True):
        rng = np.random.default_rng(11)
        lines = np.array([case(rows, rng) for _ in range(n)])
        grid = np.pi * np.arange(size) / size
        for exact, sampled in (
            (np.cos(2 * grid)[:, None] + np.cos(2 * grid), np.cos(2 * lines).sum(axis=1)),
            (np.sin(2 * grid)[:, None] + np.sin(2 * grid), np.sin(2 * lines).sum(axis=1)),
            (np.cos(2 * (grid[:, None] - grid)), np.cos(2 * (lines[:, 0] - lines[:, 1]))),
        ):
            mean = (law * exact).sum()
            spread = np.sqrt((law * (exact - mean) ** 2).sum() / n)
            assert abs(sampled.mean() - mean) < 4.5 * spread


@pytest.mark.parametrize("pair", PAIRS)
def test_pairs_are_neighbours(pair):
    directions, here, there = PAIRS[pair](8)
    case = LinesAfterSweeps("random", pair, n_rows=8)
    assert len(directions) == len(here) == len(there)
    assert sorted(np.subtract(here, there)) == [-1, *[0] * (len(here) - 2), 1]
    assert case.data.shape == case.neighbour.shape
    assert (np.linalg.norm(case.data, axis=1) <= 1.0).all()


def test_the_record_moves_the_best_lines_of_one_pair_only():
    degrees = {"best": [{(0,), (60, 120)}, {(60,), (0, 120)}], "stray": [{(0,), (90,)}] * 2}
    for pair, expected in degrees.items():
        case = LinesAfterSweeps("data", pair, n_rows=8)
        found = []
        for rows in (case.data, case.neighbour):
            labels = case._starts[rows.tobytes()]
            at = np.degrees(np.arctan2(rows[:, 1], rows[:, 0])).round().astype(int)
            found.append({tuple(sorted({*at[labels == k].tolist()})) for k in (0, 1)})
        assert found == expected


def test_the_statistic_is_the_logarithm_of_the_ratio():
    case = LinesAfterSweeps("random", "best", 3, 6)
    first, second = case.laws(3)
    grid = case._exact[0].angles
    exact = np.log(first[2, 7] / second[2, 7])
    assert case.statistic(np.array([grid[2], grid[7]])) == pytest.approx(exact)
    assert case.statistic(np.array([grid[7], grid[2]])) == pytest.approx(exact)
    last = np.array([0.5 * (grid[-1] + np.pi), grid[7]])  # half-way to the angle 0 = pi
    between = 0.5 * sum(np.log(first[i, 7] / second[i, 7]) for i in (-1, 0))
    assert case.statistic(last) == pytest.approx(between)


def test_a_start_from_the_data_is_forgotten_later():
    outputs, found = found_by(start="data", pair="best", n_sweeps=1, n_rows=24)
    assert found["is_convicted"] == 1.0
    assert found["is_missed"] == 0.0
    assert found["exact_excess"] > 5.0
    assert found["exact_epsilon"] == outputs["loss_path"][-1] > found["epsilon_bound"]
    assert found["exact_delta"] > found["delta_bound"] > 0.0
    case = LinesAfterSweeps("data", "best", n_rows=16)
    losses = [worst_ratio(*case.laws(t)) for t in (1, 2, 4, 8, 16)]
    assert (np.diff(losses) < 0).all()
    assert losses[-1] < case.epsilon


def test_a_random_start_leaks_more_for_some_sweeps_only():
    case = LinesAfterSweeps("random", "stray", n_rows=24)
    losses = [worst_ratio(*case.laws(t)) for t in range(1, 33)]
    assert max(losses) > 1.2 * case.epsilon
    assert losses[0] < case.epsilon
    assert losses[-1] == pytest.approx(worst_ratio(*case.laws()), abs=1e-3)
    assert losses[-1] == pytest.approx(case.epsilon / 2.0, abs=0.01)
    _, found = found_by(start="random", pair="stray", n_sweeps=8, n_rows=24)
    assert found["exact_excess"] > 0.0
    assert (found["is_convicted"], found["is_missed"]) == (0.0, 1.0)  # such lines are too rare


def test_numbers_that_follow():
    outputs = {
        "claimed_epsilon": np.float64(4.0),
        "epsilon_bound": np.float64(2.5),
        "delta_bound": np.float64(0.2),
        "exact_delta": np.float64(0.1),
        "limit_loss": np.float64(3.0),
        "verdict": np.float64(1.0),
        "is_private": np.float64(0.0),
        "loss_path": np.array([13.0, 2.0]),
    }
    found = evaluate_sweeps(None, outputs)
    assert found["exact_epsilon"] == 2.0
    assert found["exact_excess"] == found["beyond_sum"] == 0.0
    assert found["beyond_exact"] == 0.5
    assert found["to_limit"] == 1.0
    assert (found["is_convicted"], found["is_missed"]) == (1.0, 0.0)
    first = evaluate_sweeps(None, outputs | {"loss_path": np.array([13.0]), "verdict": 2.0})
    assert (first["exact_excess"], first["beyond_sum"]) == (9.0, 7.0)
    assert first["beyond_exact"] == pytest.approx(0.1)
    assert (first["is_convicted"], first["is_missed"]) == (0.0, 1.0)
    right = evaluate_sweeps(None, outputs | {"verdict": 2.0})
    assert (right["is_convicted"], right["is_missed"]) == (0.0, 0.0)


def test_the_configured_points_can_be_made():
    for effort in EXPERIMENT["effort"].values():
        (point,) = effort["grid"]
        assert set(point["pair"]) == set(PAIRS)
        assert {"pair", "n_rows", "n_sweeps"} == set(EXPERIMENT["swept"])
        assert 1 in point["n_sweeps"]  # what claims are about
        assert max(point["n_sweeps"]) >= 8


def test_starts_have_names():
    with pytest.raises(ValueError, match="start must be one of random, data"):
        LinesAfterSweeps(start="best")
