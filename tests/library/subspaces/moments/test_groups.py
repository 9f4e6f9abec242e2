"""Sums of moments whose records are groups of rows, such as persons."""

import numpy as np
import pytest

from privclust.privacy import Neighbours
from privclust.privacy.groups import Groups
from privclust.sketches import MomentSketch
from privclust.sketches.moment_release import sensitivity, weighted_features
from privclust.sketches.moment_sums import HarmonicSums, group_sums

RELATIONS = tuple(Neighbours)


def visits(n_groups=200, d=4, seed=0):
    """Rows of groups of 1 to 12, in any order, and whose they are."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_groups), rng.integers(1, 13, n_groups))
    order = rng.permutation(len(ids))
    return rng.standard_normal((n_groups, d))[ids][order] + 0.1, ids[order]


def sums_of(X, ids, degree):
    return group_sums(X, Groups.of(ids, len(X)), degree)


@pytest.mark.parametrize(("d", "degree"), [(2, 6), (4, 4), (4, 6), (9, 4)])
def test_moments_are_of_the_means_of_groups(d, degree):
    X, ids = visits(d=d)
    sketch = MomentSketch.from_sums(sums_of(X, ids, degree))
    sums = (HarmonicSums(d, degree).add(X[ids == g]) for g in range(200))
    of_rows = [MomentSketch.from_sums(own) for own in sums]
    for each in sketch.moments:
        expected = sum(one.moments[each] / one.n_samples for one in of_rows)
        np.testing.assert_allclose(sketch.moments[each], expected, atol=200 * 1e-4, rtol=0)
    assert sketch.n_samples == 200


def test_the_order_of_rows_changes_no_bit():
    X, ids = visits()
    again = sums_of(X[::-1], ids[::-1], 6)
    for degree, integers in sums_of(X, ids, 6).integers.items():
        assert (again.integers[degree] == integers).all()
    alone = sums_of(X, np.arange(len(X)), 6)
    for degree, integers in MomentSketch.of(X).exact.integers.items():
        assert (alone.integers[degree] == integers).all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("d", "degree"), [(2, 6), (5, 4), (10, 6)])
def test_no_group_moves_the_features_further_than_a_row(d, degree, relation):
    """Of 1 to 1000 rows, beside others of any sizes: at, across and anywhere."""
    rng, worst = np.random.default_rng(d), 0.0
    others, ids = visits(40, d)
    stated = sensitivity(d, degree, relation).value

    def features(own):
        X = np.concatenate([others, own])
        whose = np.append(ids, np.full(len(own), -1))
        return weighted_features(sums_of(X, whose, degree), relation)

    for sizes in [(1, 1), (1, 1000), (7, 7), (3, 700), (1000, 64), (12, 11)]:
        for spread in (0.0, 1e-3, 1.0):
            pair = [rng.standard_normal(d) + spread * rng.standard_normal((n, d)) for n in sizes]
            if relation is Neighbours.ADD_REMOVE:
                pair[1] = pair[1][:0]
            worst = max(worst, np.linalg.norm(features(pair[0]) - features(pair[1])))
    assert 0.9 * min(stated, np.sqrt(2.0)) < worst <= stated
