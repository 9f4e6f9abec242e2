"""People on a map, and the unit ball."""

import numpy as np
import pytest

from privclust_papers.dpem.people import (
    CATEGORIES,
    MAP_CENTER,
    MAP_RADIUS,
    from_unit_ball,
    map_points,
    to_unit_ball,
)


def test_a_stream_decides_everything():
    first, again, other = (map_points(2, np.random.default_rng(seed))[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("n_copies", [1, 50])
def test_one_in_104_is_married_and_from_far_away(n_copies):
    points, labels, far = map_points(n_copies, np.random.default_rng(4))
    assert points.shape == (104 * n_copies, 2)
    assert set(labels.tolist()) == {0, 1, 2}
    assert far.shape == (n_copies,)
    np.testing.assert_array_equal(far, np.flatnonzero(labels == CATEGORIES.index("married")))
    home = np.delete(points, far, axis=0)
    assert (home > [7, 47]).all()  # Baden-Wuerttemberg and a little around it
    assert (home < [11, 50.2]).all()
    assert (points[far][:, 1] > home[:, 1].max()).all()  # to the north
    assert (points[far].mean(axis=0)[0] < home.mean(axis=0)[0]).all()  # and to the west
    assert len(np.unique(points, axis=0)) == len(points)
    norms = np.linalg.norm(to_unit_ball(points, MAP_CENTER, MAP_RADIUS), axis=1)
    assert norms.max() <= 1


def test_lone_person_is_what_em_reveals():
    """A component that starts anywhere near the lone person ends with its mean on that person."""
    from sklearn.mixture import GaussianMixture

    points, labels, far = map_points(1, np.random.default_rng(5))
    X = to_unit_ball(points, MAP_CENTER, MAP_RADIUS)
    starts = [X[labels == k].mean(axis=0) for k in range(3)]
    starts[1] = starts[1] + 0.1
    model = GaussianMixture(3, covariance_type="spherical", means_init=starts, random_state=0)
    means = from_unit_ball(model.fit(X).means_, MAP_CENTER, MAP_RADIUS)
    np.testing.assert_allclose(means[1], points[far[0]], atol=1e-6)


def test_rows_are_in_random_order():
    positions = [int(map_points(1, np.random.default_rng(seed))[2][0]) for seed in range(40)]
    assert len(set(positions)) > 25  # about 33 different ones are expected, 3 standard deviations 7


def test_unit_ball_there_and_back():
    box = np.array([[x, y] for x in (5.5, 15.5) for y in (47.0, 55.5)])
    scaled = to_unit_ball(box, MAP_CENTER, MAP_RADIUS)
    assert np.linalg.norm(scaled, axis=1).max() <= 1
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1)
    np.testing.assert_allclose(from_unit_ball(scaled, MAP_CENTER, MAP_RADIUS), box)


@pytest.mark.parametrize(
    ("points", "center", "radius", "expected"),
    [
        ([[0.0, 0.0], [3.0, 0.0]], (0, 0), 2, r"within radius 2 of the center .* in row 1"),
        ([[np.nan, 0.0]], (0, 0), 2, "within radius 2 .* in row 0"),
    ],
)
def test_points_that_do_not_fit_a_ball(points, center, radius, expected):
    with pytest.raises(ValueError, match=expected):
        to_unit_ball(points, center, radius)
