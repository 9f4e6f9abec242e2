"""How far one row moves what is released, as it is computed, against what is stated."""

import math

import numpy as np
import pytest

from privclust.privacy import Neighbours
from privclust.sketches import MomentSketch
from privclust.sketches.moment_release import (
    coordinate_weights,
    feature_weights,
    sensitivity,
    weighted_features,
)
from privclust.sketches.moment_sums import (
    MOMENT_BITS,
    HarmonicSums,
    last_rounding,
    rounding_margin,
)
from privclust.subspaces import decode
from privclust.subspaces.moments import last_round

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


def features(X, degree, relation):
    """What noise is added to, weighed as it is then."""
    return weighted_features(HarmonicSums(X.shape[1], degree).add(X), relation)


def hard_rows(d, rng):
    """Rows whose products lie at the border of rounding, and some that are extreme."""
    rows = [rng.standard_normal(d) for _ in range(60)]
    rows += [np.eye(d)[0], np.eye(d)[-1], np.ones(d), -np.ones(d), np.zeros(d)]
    rows += [np.full(d, math.sqrt(2.0**-19)) + np.eye(d)[0], np.r_[1.0, np.full(d - 1, 2.0**-19)]]
    rows += [np.r_[np.inf, np.zeros(d - 1)], np.r_[np.nan, np.ones(d - 1)], np.full(d, 1e-310)]
    return np.array(rows)


@pytest.mark.parametrize(("d", "degree"), [(2, 6), (5, 4), (5, 6), (11, 4)])
def test_no_pair_of_rows_is_further_apart_than_stated(d, degree):
    rows = hard_rows(d, np.random.default_rng(d))
    others = np.random.default_rng(0).standard_normal((5, d))
    base = {relation: features(others, degree, relation) for relation in (REPLACE, ADD)}
    of_rows = {
        relation: [features(np.vstack([others, row]), degree, relation) for row in rows]
        for relation in (REPLACE, ADD)
    }
    replaced = of_rows[REPLACE]
    largest = max(np.linalg.norm(a - b) for a in replaced for b in replaced)
    added = max(np.linalg.norm(one - base[ADD]) for one in of_rows[ADD])
    assert largest <= sensitivity(d, degree, REPLACE).value
    assert 0.999 <= added <= sensitivity(d, degree, ADD).value


@pytest.mark.parametrize(("d", "degree"), [(2, 4), (10, 4), (10, 6), (50, 4)])
def test_the_margin_holds_what_the_last_rounding_moves(d, degree):
    """Less than one unit in each entry, in the coordinates in which noise is added."""
    weights = feature_weights(degree, REPLACE)
    units = np.concatenate([coordinate_weights(d, each, w) for each, w in weights.items()])
    of_all = 2.0**-MOMENT_BITS * np.linalg.norm(units)
    assert last_rounding(d, weights) == pytest.approx(of_all, rel=1e-12)
    assert rounding_margin(d, weights) > last_rounding(d, weights)


def test_the_margin_is_what_rounding_attains():
    """In the plane some rows have four products that are each off by nearly half a unit."""
    angles = np.random.default_rng(0).uniform(0.0, np.pi, 4000)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    worst = 0.0
    for row in rows:
        x, y = row
        exact = np.array([x * x, x * y, y * y])
        off = np.asarray(HarmonicSums(2, 2).add(row[None]).moments(2)) - exact
        worst = max(worst, math.sqrt(off @ (off * [1.0, 2.0, 1.0])))
    of_pairs = 2 * 2.0**-19  # d times half of the unit 2^-18
    assert 0.9 * of_pairs < worst <= of_pairs * (1.0 + 1e-6)
    unit = {2: 0.5}  # squared length of x x' - I / 2, of rows of norm 1
    margin = rounding_margin(2, unit) - last_rounding(2, unit)
    assert margin == pytest.approx(of_pairs, rel=1e-5)


@pytest.mark.parametrize("degree", [4, 6])
def test_the_worst_pair_attains_the_bound(degree):
    angles = np.linspace(0.0, np.pi / 2, 721)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    of_rows = [features(row[None], degree, REPLACE) for row in rows]
    largest = max(np.linalg.norm(one - of_rows[0]) for one in of_rows)
    stated = sensitivity(2, degree, REPLACE).value
    assert 0.999 * stated <= largest <= stated


def decoded(noisy, d=5, k=2, q=2):
    X = np.random.default_rng(0).standard_normal((300, d))
    return decode(noisy(MomentSketch.of(X), 1.0), k, q, random_state=0)


@pytest.mark.parametrize("radius", [0.01, 0.1, 0.5])
def test_no_row_moves_the_last_round_further_than_stated(radius, noisy):
    union = decoded(noisy)
    rows = np.vstack([hard_rows(5, np.random.default_rng(1)), *union.subspaces.transpose(0, 2, 1)])
    beside = union.complements[0][:, 0]
    rows = np.vstack([rows, *(union.subspaces[0][:, 0] + s * beside for s in (-1, 1, -0.02, 0.02))])
    others = np.random.default_rng(2).standard_normal((20, 5))
    weights = np.ones(2 + 3 * 2)
    weights[-2:] = radius / 2

    def sums(X):
        return (np.asarray(last_round.round_sums(X, union, radius)) * weights).ravel()

    base, moved = sums(others), [sums(np.vstack([others, row])) for row in rows]
    added = max(np.linalg.norm(one - base) for one in moved)
    replaced = max(np.linalg.norm(a - b) for a in moved for b in moved)
    assert added <= last_round.sensitivity(radius, ADD).value
    assert replaced <= last_round.sensitivity(radius, REPLACE).value
    assert replaced > 1.9 * radius  # opposite rows outside one subspace


def test_a_row_s_share_of_the_last_round_is_its_own(noisy):
    union = decoded(noisy)
    X = np.random.default_rng(3).standard_normal((500, 5))
    whole = last_round.round_sums(X, union, 0.1).integers
    apart = sum(last_round.round_sums(row[None], union, 0.1).integers for row in X)
    assert (whole == apart).all()
    assert (last_round.round_sums(X[::-1].copy(), union, 0.1).integers == whole).all()
