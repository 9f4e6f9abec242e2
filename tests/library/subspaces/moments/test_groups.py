"""Moment sketches whose records are groups of rows, such as persons."""

import numpy as np
import pytest

from privclust.privacy import Neighbours
from privclust.sketches import MomentSketch
from privclust.sketches.moment_release import sensitivity, weighted_features

RELATIONS = tuple(Neighbours)


def visits(n_groups=200, d=4, seed=0):
    """Rows of groups of 1 to 12, in any order, and whose they are."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n_groups), rng.integers(1, 13, n_groups))
    order = rng.permutation(len(ids))
    return rng.standard_normal((n_groups, d))[ids][order] + 0.1, ids[order]


def integers(sketch):
    return np.concatenate(list(sketch.exact.integers.values()))


@pytest.mark.parametrize(("d", "degree"), [(2, 6), (4, 4), (4, 6), (9, 4)])
def test_moments_are_of_the_means_of_groups(d, degree):
    X, ids = visits(d=d)
    sketch = MomentSketch.of(X, degree=degree, groups=ids)
    of_rows = [MomentSketch.of(X[ids == g], degree=degree) for g in range(200)]
    for each in sketch.moments:
        expected = sum(one.moments[each] / one.n_samples for one in of_rows)
        np.testing.assert_allclose(sketch.moments[each], expected, atol=200 * 1e-4, rtol=0)
    assert (sketch.n_samples, sketch.unit) == (200, "group")


def test_streams_give_the_same_bytes_for_any_order_of_groups(tmp_path):
    X, ids = visits()
    whole = integers(MomentSketch.of(X, groups=ids))
    np.save(tmp_path / "x.npy", X)
    parts = [X[i : i + 77] for i in range(0, len(X), 77)]
    for source in (iter(parts), tmp_path / "x.npy", X[::-1]):
        own = ids[::-1] if isinstance(source, np.ndarray) else ids
        again = MomentSketch.of(source, groups=own)
        assert (integers(again) == whole).all()
    for wrong in (ids[:-1], np.append(ids, 0)):
        with pytest.raises(ValueError, match="groups must be one a row"):
            MomentSketch.of(iter(parts), groups=wrong)
    alone = MomentSketch.of(X, groups=np.arange(len(X)))
    assert (integers(alone) == integers(MomentSketch.of(X))).all()


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
        return weighted_features(MomentSketch.of(X, degree=degree, groups=whose).exact, relation)

    for sizes in [(1, 1), (1, 1000), (7, 7), (3, 700), (1000, 64), (12, 11)]:
        for spread in (0.0, 1e-3, 1.0):
            pair = [rng.standard_normal(d) + spread * rng.standard_normal((n, d)) for n in sizes]
            if relation is Neighbours.ADD_REMOVE:
                pair[1] = pair[1][:0]
            worst = max(worst, np.linalg.norm(features(pair[0]) - features(pair[1])))
    assert 0.9 * min(stated, np.sqrt(2.0)) < worst <= stated


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_releases_name_the_unit_and_keep_it_in_files(tmp_path, relation):
    X, ids = visits()
    exact = MomentSketch.of(X, groups=ids)
    private = exact.release(1.0, 1e-6, neighbours=relation, random_state=0)
    of_rows = MomentSketch.of(X).release(1.0, 1e-6, neighbours=relation, random_state=0)
    assert private.noise == of_rows.noise
    assert private.guarantee.unit == "group"
    assert "all rows of one group" in str(private.guarantee)
    for sketch in (exact, private):
        sketch.save(tmp_path / "s.h5")
        again = MomentSketch.load(tmp_path / "s.h5")
        assert again.unit == "group"
        assert again.key == sketch.key
    if relation == "add_remove":
        assert abs(private.n_samples - 200) < 100


def test_kinds_of_records_do_not_mix():
    X, ids = visits()
    groups, rows = MomentSketch.of(X, groups=ids), MomentSketch.of(X)
    with pytest.raises(ValueError, match="kinds of records differ"):
        groups + rows
    with pytest.raises(ValueError, match="kinds of records differ"):
        groups.release(1.0, 1e-6, random_state=0) + rows.release(1.0, 1e-6, random_state=0)
    both = groups + groups
    assert (both.unit, both.n_samples) == ("group", 400)
    with pytest.raises(ValueError, match="a sketch of one row has a guarantee for all rows of one"):
        MomentSketch(
            4, 6, rows.moments, 5,
            noise=groups.release(1.0, 1e-6, random_state=0).noise,
            guarantee=groups.release(1.0, 1e-6, random_state=0).guarantee,
        )  # fmt: skip
