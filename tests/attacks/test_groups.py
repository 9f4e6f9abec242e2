"""Attacks on fits and files of groups of rows, such as persons."""

from fractions import Fraction

import numpy as np
import pytest

from privclust.core.second_moments import second_moments, unit
from privclust.kmeans import DPLloyd, EUGkM, Grid
from privclust.privacy.bounds import Box
from privclust.privacy.groups import Groups, by_size, weighted_sums

SIZES = (1, 2, 3, 7, 100, 999, 1000)


def exactly(total):
    """Numbers of fixed point as fractions."""
    return [Fraction(int(i), 2**total.bits) for i in total.integers.ravel()]


def l1(first, second):
    return sum(abs(a - b) for a, b in zip(exactly(first), exactly(second), strict=True))


def others(rng, d):
    """Rows of 60 persons of 1 to 1000, and whose they are."""
    ids = np.repeat(np.arange(60), rng.choice(SIZES, 60))
    return rng.uniform(-1, 1, (len(ids), d)), ids


def with_person(X, ids, own):
    return np.concatenate([X, own]), np.append(ids, np.full(len(own), -1))


@pytest.mark.attack(
    claim="DPLloyd with groups: replacing a person with 1 to 1,000 rows by one with any other "
    "number changes counts and sums by at most 6 within bounds in 2 dimensions.",
    before="1,000 rows changed them by up to 6,000, because each row was protected separately.",
    now="Changed by at most 6, in whole numbers.",
)
def test_a_person_of_a_thousand_rows_in_the_sums():
    rng, worst = np.random.default_rng(0), 0
    model = DPLloyd(3, bounds=(-1, 1), max_iter=1, random_state=0)
    centers = rng.uniform(-0.5, 0.5, (3, 2))
    X, ids = others(rng, 2)
    for _ in range(150):
        corner, inwards = rng.choice([-1.0, 1.0], 2), rng.choice([0.0, 1e-9, 1.0], 2)
        first, second = (
            np.tile(sign * corner, (n, 1)) * (1.0 - part * rng.random((n, 1)))
            for sign, n, part in zip((1, -1), rng.choice(SIZES, 2), inwards, strict=True)
        )
        released = [
            model.one_round(rows, centers, whose)[0]
            for rows, whose in (with_person(X, ids, first), with_person(X, ids, second))
        ]
        worst = max(worst, l1(*released))
    assert 5.99 < worst <= 6


@pytest.mark.attack(
    claim="EUGkM with groups: a person with 1,000 rows in as many cells changes the counts by 2.",
    before="Changed by up to 2,000, because each row was protected separately.",
    now="Changed by at most 2, in whole numbers.",
)
def test_a_person_in_a_thousand_cells():
    rng = np.random.default_rng(0)
    model = EUGkM(2, bounds=(-1, 1), epsilon=1.0)
    assert model._noise(1.0)[0].sensitivity.value == 2.0
    grid, (X, ids) = Grid(Box(-np.ones(2), np.ones(2)), (40, 40)), others(rng, 2)

    def counts(own):
        rows, whose = with_person(X, ids, own)
        return grid.histogram(rows, Groups.of(whose, len(rows)))

    for n, m in [(1000, 1000), (1000, 1), (999, 7), (3, 700)]:
        moved = l1(counts(rng.uniform(-1, 0, (n, 2))), counts(rng.uniform(0, 1, (m, 2))))
        assert 1.9999 < moved <= 2


@pytest.mark.attack(
    claim="Second moments with groups: a person changes them by at most sqrt 2, including the "
    "rounding of each person's mean.",
    before="The promise held. Without a correction, rounding of a person's mean could change the "
    "sums by more than one row may; the means were therefore shrunk slightly from the first "
    "version on.",
    now="Changed by at most sqrt 2, in whole numbers.",
)
def test_quotients_that_are_rounded():
    """Rows of norm 1 nearly across each other; the rest of each sum is what rounds worst."""
    rng, worst = np.random.default_rng(0), Fraction(0)
    length, (X, ids) = unit(1.0, 2), others(rng, 2)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)

    def moments(own):
        rows, whose = with_person(X, ids, own)
        parts = by_size(Groups.of(whose, len(rows)), rows)
        return weighted_sums(((n, [second_moments(own, length)]) for n, own in parts), 2.0)[0]

    for _ in range(100):
        angle, sizes = rng.uniform(0, np.pi), rng.choice(SIZES, 2)
        first, second = (
            np.column_stack([np.cos(a), np.sin(a)])
            for a in (
                angle + 1e-6 * rng.standard_normal(sizes[0]),
                angle + np.pi / 2 + 1e-6 * rng.standard_normal(sizes[1]),
            )
        )
        pairs = zip(exactly(moments(first)), exactly(moments(second)), strict=True)
        worst = max(worst, sum((a - b) ** 2 for a, b in pairs))
    assert 1.99 < worst <= 2
