import math

import numpy as np
import pytest

from privclust.metrics.subspaces import subspace_cost, wasserstein_distance
from privclust.subspaces import KPlanes
from privclust_papers.dpsc.circle import circle_instability, circle_optimum


def lines_at(*angles):
    return np.array([[[math.cos(t)], [math.sin(t)]] for t in angles])


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) * rng.uniform(0.1, 2, (n, 1))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [1, 2, 3, 7, 30])
def test_optimum_is_below_a_grid_and_close_to_it(n, seed):
    """The grid's cost is above by the lines' distance from it: |x|^2 times the angle at most."""
    X = rows(n, seed)
    lines, cost = circle_optimum(X)
    assert cost == pytest.approx(subspace_cost(X, lines), abs=1e-14)
    angles = np.pi * np.arange(120) / 120
    inside = (X[:, :1] * np.cos(angles) + X[:, 1:] * np.sin(angles)) ** 2
    square = (X**2).sum(axis=1)
    nearest = np.maximum(inside[:, :, None], inside[:, None, :])
    grid = (square[:, None, None] - nearest).mean(axis=0).min()
    assert cost <= grid + 1e-14
    assert grid <= cost + square.mean() * np.pi / 240


@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_below_all_partitions(seed):
    """Every split of nine rows in two, contiguous or not."""
    X = rows(9, seed)
    best = np.inf
    for mask in range(2**8):
        left = np.array([mask >> i & 1 for i in range(9)], dtype=bool)
        lost = 0.0
        for part in (X[left], X[~left]):
            lost += (part**2).sum() - np.linalg.eigvalsh(part.T @ part)[-1]
        best = min(best, lost / 9)
    assert circle_optimum(X)[1] == pytest.approx(best, abs=1e-14)


def test_optimum_is_not_above_k_planes():
    X = rows(200, 1)
    found = KPlanes(2, 1, n_init=30, random_state=0).fit(X)
    assert circle_optimum(X)[1] <= found.inertia_ / 200 + 1e-13


def test_optimum_turns_and_scales_with_the_rows():
    X = rows(25, 2)
    lines, cost = circle_optimum(X)
    turn = np.array([[math.cos(1.0), -math.sin(1.0)], [math.sin(1.0), math.cos(1.0)]])
    turned, same = circle_optimum(-X[::-1] @ turn.T)
    assert same == pytest.approx(cost)
    assert wasserstein_distance(turn @ lines, turned) < 1e-7
    for scale in (1e-90, 1e90):
        assert circle_optimum(scale * X)[1] == pytest.approx(scale**2 * cost)


def test_degenerate_rows():
    for X in ([[0.0, 0.0]], [[1.0, 1.0]] * 5, [[3.0, 0.0], [0.0, -2.0]]):
        lines, cost = circle_optimum(X)
        np.testing.assert_allclose(np.linalg.norm(lines, axis=1), 1.0)
        assert cost == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("n", [5, 6, 7, 8, 9, 12, 16, 17, 24, 31, 40, 64, 100])
def test_one_row_turns_both_lines(n):
    """Each optimum has a line through its own row; the distance has a closed form."""
    points, found = circle_instability(n)
    n_lines = n // 2 if n % 2 == 0 else n
    turn = math.pi * round(n_lines / 4) / n_lines
    expected = 2 * math.sin(min(turn, math.pi / 2 - turn))
    assert found["distance"] == pytest.approx(expected)
    assert found["distance"] >= 1 - 1e-12
    if n % 8 == 0:
        assert found["distance"] == pytest.approx(math.sqrt(2))
    assert found["costs"][0] == pytest.approx(found["costs"][1])
    for row, lines, cost in zip(found["added"], found["subspaces"], found["costs"], strict=True):
        X = np.vstack([points, row])
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
        angle = math.atan2(row[1], row[0])
        assert wasserstein_distance(lines, lines_at(angle, angle + math.pi / 2)) < 1e-7
        assert subspace_cost(X, lines) == pytest.approx(cost)
    # each is worse on the other's rows: the optimum does flip
    for i in (0, 1):
        X = np.vstack([points, found["added"][i]])
        assert subspace_cost(X, found["subspaces"][1 - i]) > found["costs"][i] + 1e-5


def test_without_the_added_row_both_are_optimal():
    points, found = circle_instability(16)
    cost = circle_optimum(points)[1]
    for lines in found["subspaces"]:
        assert subspace_cost(points, lines) == pytest.approx(cost)
