"""The exact law of two lines: against the exact chain on labels, and closed forms."""

import math

import numpy as np
import pytest

from privclust_papers.audit.exact_lines import ExactLines, least_delta, worst_ratio
from privclust_papers.dpsc.exact_chain import exact_chain, labels_of_states

ANGLES, COUNTS = (0.1, 1.0, 2.2), (2, 3, 1)
GIVEN = (0.3, 1.9)


def rows():
    directions = np.repeat(ANGLES, COUNTS)
    return np.column_stack([np.cos(directions), np.sin(directions)])


def of_counts(law):
    """Add a law of labels up over labels with the same counts, in any order of the lines."""
    held = np.zeros(np.array(COUNTS) + 1)
    groups = np.repeat(range(len(COUNTS)), COUNTS)
    for labels, chance in zip(labels_of_states(sum(COUNTS)), law, strict=True):
        held[tuple(np.bincount(groups, labels, minlength=len(COUNTS)).astype(int))] += chance
    return 0.5 * (held + held[::-1, ::-1, ::-1]).ravel()


def first_labels(epsilon, lines):
    gains = 0.5 * epsilon * np.cos(np.subtract.outer(lines, np.repeat(ANGLES, COUNTS))) ** 2
    second = 1.0 / (1.0 + np.exp(gains[0] - gains[1]))
    labels = labels_of_states(sum(COUNTS))
    return np.where(labels == 1, second, 1.0 - second).prod(axis=1)


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 20.0])
@pytest.mark.parametrize("start", ["random", GIVEN])
def test_counts_follow_the_chain_on_labels(epsilon, start):
    transition, stationary = exact_chain(rows(), epsilon)
    lines = ExactLines(ANGLES, COUNTS, epsilon, start)
    if start == "random":
        grid = np.pi * np.arange(64) / 64
        law = np.mean([first_labels(epsilon, (a, b)) for a in grid for b in grid], axis=0)
    else:
        law = first_labels(epsilon, start)
    for t in range(1, 5):
        lines.after(t)
        np.testing.assert_allclose(lines._law, of_counts(law), rtol=1e-9)
        law = law @ transition
    np.testing.assert_allclose(lines.limit(), lines._lines_given(of_counts(stationary)), rtol=1e-9)


@pytest.mark.parametrize("start", ["random", GIVEN])
def test_laws_do_not_depend_on_the_grid_or_the_order(start):
    lines, finer = (ExactLines(ANGLES, COUNTS, 4.0, start, n) for n in (None, 192))
    third, first = lines.after(3), lines.after(1)
    assert third.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(third, third.T, rtol=1e-10)
    at_zero = [law[0, 0] * len(law) ** 2 for law in (third, finer.after(3))]
    assert at_zero[0] == pytest.approx(at_zero[1], rel=1e-9)
    np.testing.assert_array_equal(first, ExactLines(ANGLES, COUNTS, 4.0, start).after(1))
    assert np.abs(first - third).sum() > 1e-3


def test_lines_without_rows_are_anywhere():
    lines = ExactLines([0.0], [0], 1.0, n_angles=12)
    np.testing.assert_allclose(lines.after(2), 1.0 / 144, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_sweeps_from_a_random_start_cost_no_more_than_their_sum(epsilon):
    here, there = (ExactLines([0.0, 1.5, 0.4], n, epsilon) for n in ((4, 1, 3), (3, 2, 3)))
    for t in (1, 2, 5):
        assert 0.1 < worst_ratio(here.after(t), there.after(t)) < 1.5 * t * epsilon
    assert worst_ratio(here.limit(), there.limit()) < epsilon


def test_losses_of_randomised_response():
    chance = math.e / (1.0 + math.e)
    first, second = np.array([chance, 1.0 - chance]), np.array([1.0 - chance, chance])
    assert worst_ratio(first, second) == pytest.approx(1.0)
    assert least_delta(first, second, 1.0) == pytest.approx(0.0, abs=1e-15)
    assert least_delta(first, second, 0.0) == pytest.approx(2.0 * chance - 1.0)


def test_delta_is_of_the_worse_direction():
    first, second = np.array([0.5, 0.5, 0.0]), np.array([0.4, 0.4, 0.2])
    assert least_delta(first, second, 1.0) == least_delta(second, first, 1.0) == pytest.approx(0.2)


def test_too_many_counts_are_refused():
    """They would take the memory of the machine."""
    with pytest.raises(ValueError, match="counts must take at most 200,000 values, got 1,002,001"):
        ExactLines([0.0, 1.0], [1000, 1000], 1.0)
    with pytest.raises(ValueError, match="1020 angles and 9,999 rows in a direction take"):
        ExactLines([0.0, 1.0], [9_999, 9], 1.0)
    with pytest.raises(ValueError, match="100000 angles"):
        ExactLines([0.0, 1.0], [1, 1], 1.0, n_angles=100_000)
