import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privclust.privacy import PrivacyLeakWarning
from privclust.privacy.bounds import (
    Box,
    bounded_rows,
    declared_box,
    extremes,
    separated_points,
    uniform_in_ball,
    uniform_in_cube,
)


def test_rows_within_the_bound_are_not_touched():
    X = np.random.default_rng(0).standard_normal((50, 3))
    X *= 2.0 / np.linalg.norm(X, axis=1).max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, radius, leaks = bounded_rows(X, 2.0)
    assert found is X
    assert (radius, leaks) == (2.0, ())


def test_longer_rows_are_drawn_in_along_their_direction():
    X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-30.0, 40.0]])
    with pytest.warns(UserWarning, match="norm above norm_bound=2.5 are clipped"):
        found, radius, leaks = bounded_rows(X, 2.5)
    np.testing.assert_allclose(found, [[1.5, 2.0], [0.3, 0.4], [0.0, 0.0], [-1.5, 2.0]], rtol=1e-15)
    assert (radius, leaks) == (2.5, ())
    assert X[0].tolist() == [3.0, 4.0]  # the caller's array is left alone


def test_norms_after_clipping_are_within_the_bound_at_any_scale():
    rng = np.random.default_rng(1)
    for radius in (1e-100, 1e-3, 1.0, 7.3, 1e90):
        X = rng.standard_normal((500, 4)) * radius * 10.0 ** rng.uniform(-2, 8, (500, 1))
        with pytest.warns(UserWarning, match="clipped"):
            found, _, _ = bounded_rows(X, radius)
        assert (np.linalg.norm(found / radius, axis=1) <= 1 + 1e-12).all()


def test_any_row_is_drawn_in_by_a_rule_of_its_own():
    inf, nan = np.inf, np.nan
    X = np.array(
        [[1e200, 0.0], [3e307, -4e307], [inf, -1e300], [inf, -inf], [nan, 3.0], [nan, 0.1]]
    )
    drawn = [[2.0, 0.0], [1.2, -1.6], [2.0, 0.0], [2**0.5, -(2**0.5)], [0.0, 2.0], [0.0, 0.1]]
    with pytest.warns(UserWarning, match="clipped"):
        rows, _, leaks = bounded_rows(X, 2.0)
    np.testing.assert_allclose(rows, drawn, rtol=1e-15, atol=1e-15)
    assert leaks == ()
    for row, alone in zip(rows, X, strict=True):
        with pytest.warns(UserWarning, match="clipped"):
            np.testing.assert_array_equal(bounded_rows(alone[None], 2.0)[0][0], row)


def test_no_rows_at_all_are_within_any_bound():
    assert bounded_rows(np.empty((0, 3)), 2.0)[0].shape == (0, 3)
    box, is_outside, _ = declared_box(np.empty((0, 3)), (-1.0, 1.0))
    assert not is_outside
    assert box.clipped(np.empty((0, 3))).shape == (0, 3)


def test_a_box_takes_infinite_entries_and_nan():
    X = np.array([[np.inf, np.nan], [0.5, -np.inf]])
    with pytest.warns(UserWarning, match="clipped"):
        box, is_outside, _ = declared_box(X, (0.0, [1.0, 3.0]))
    assert is_outside
    assert box.clipped(X).tolist() == [[1.0, 1.5], [0.5, 0.0]]


def test_bounds_have_squares_that_are_ordinary_numbers():
    """Also of a box about 0; one feature may be narrow where another is wide."""
    row = np.zeros((1, 2))
    for bounds in ((-1e-101, 1e-101), (0.0, 1e-100), (-1.1e100, 0.0), (0.0, 1.1e100)):
        with pytest.raises(ValueError, match="bounds must have a magnitude of at most"):
            declared_box(row, bounds)
    for low, high in ((-1e-100, 1e-100), (-1e100, 1e100), (0.0, [1e-150, 1.0])):
        box, is_outside, _ = declared_box(row, (low, high))
        assert not is_outside
        np.testing.assert_array_equal(box.high, np.broadcast_to(high, 2))


def test_bound_from_the_data_warns_and_is_named_as_a_leak():
    X = np.array([[3.0, 4.0], [1.0, 0.0]])
    with pytest.warns(PrivacyLeakWarning, match="no guarantee"):
        found, radius, leaks = bounded_rows(X, None)
    assert found is X
    assert radius == 5.0
    assert len(leaks) == 1
    assert "norm_bound" in leaks[0]


@pytest.mark.filterwarnings("ignore::privclust.privacy.PrivacyLeakWarning")
def test_zero_rows_have_a_positive_radius():
    assert bounded_rows(np.zeros((3, 2)), None)[1] == 1.0


@pytest.mark.parametrize(
    ("X", "bound", "message"),
    [
        (np.ones((2, 2)), 0.0, "norm_bound must be a finite number greater than 0"),
        (np.ones((2, 2)), -1.0, "norm_bound"),
        (np.ones((2, 2)), np.inf, "norm_bound"),
        (np.ones((2, 2)), np.nan, "norm_bound"),
        (np.ones((2, 2)), "1", "norm_bound"),
        (np.ones((2, 2)), 1e-101, "norm_bound must lie between 1e-100 and 1e.100"),
        (np.ones((2, 2)), 1e101, "norm_bound must lie between"),
        (np.array([[1.0], [1e200]]), None, "row 1 has a norm above 1e.100: rescale"),
        (np.array([[1.0], [np.nan]]), None, "row 1 has a norm above 1e.100: rescale"),
        (np.array([[1.0], [1e101]]), None, "row 1 has a norm above 1e.100"),
        (np.array([[1e-170], [0.0]]), None, "X has no norm above 1e-100"),
    ],
)
def test_bad_input(X, bound, message):
    with pytest.raises(ValueError, match=message):
        bounded_rows(X, bound)


@pytest.mark.parametrize("d", [1, 2, 10])
def test_uniform_in_ball_is_uniform(d):
    """P(|x| <= r) = r^d, directions are symmetric; each test has false-alarm rate 1e-4."""
    points = uniform_in_ball(20_000, d, np.random.default_rng(3))
    norms = np.linalg.norm(points, axis=1)
    assert points.shape == (20_000, d)
    assert norms.max() <= 1.0
    assert stats.kstest(norms**d, "uniform").pvalue > 1e-4
    # a coordinate of the uniform law on the ball has the law 1 - 2 Beta((d + 1) / 2, (d + 1) / 2)
    law = stats.beta((d + 1) / 2, (d + 1) / 2, loc=-1, scale=2)
    assert stats.kstest(points[:, 0], law.cdf).pvalue > 1e-4
    assert stats.kstest(points[:, -1], law.cdf).pvalue > 1e-4


# --- boxes and starts ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extremes_are_those_of_the_columns(dtype):
    X = np.random.default_rng(0).normal(size=(70, 3)).astype(dtype)
    for rows in (X, np.asfortranarray(X), X[::-1]):
        least, largest = extremes(rows)
        assert least.dtype == largest.dtype == np.float64
        assert (least == X.min(axis=0)).all()
        assert (largest == X.max(axis=0)).all()


def test_declared_box():
    X = np.array([[0.0, 2.0], [1.0, 3.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bounds in ((0, 3), ([0, 2], [1, 3]), (np.zeros(2), 3.0)):
            box, is_outside, leaks = declared_box(X, bounds)
            assert (is_outside, leaks) == (False, ())
            np.testing.assert_array_equal(box.low, np.broadcast_to(bounds[0], 2))
            np.testing.assert_array_equal(box.high, np.broadcast_to(bounds[1], 2))
            np.testing.assert_array_equal(box.center + box.half_widths, box.high)
    with pytest.warns(UserWarning, match="outside bounds are clipped"):
        assert declared_box(X, (0, 2.5))[1]
    with pytest.warns(PrivacyLeakWarning, match="bounds were not given"):
        box, is_outside, leaks = declared_box(X, None)
    assert (box.low.tolist(), box.high.tolist(), is_outside) == ([0.0, 2.0], [1.0, 3.0], False)
    assert len(leaks) == 1


EDGE = st.sampled_from([0.0, 0.1, -0.1, 1.0, 5e-324, 1e-40, 3.4e38, 3.5e38, -1e39, 1e50, 1e100])
ENTRY = EDGE | st.floats(allow_nan=True, allow_infinity=True)


@given(
    st.tuples(EDGE, EDGE | st.floats(1e-45, 1e-3)),
    st.lists(ENTRY, min_size=1, max_size=8),
    st.sampled_from([np.float32, np.float64]),
)
@settings(max_examples=300, deadline=None)
def test_clipped_rows_are_finite_and_within_any_box(ends, entries, dtype):
    low = ends[0]
    high = max(low + abs(ends[1]), np.nextafter(low, np.inf))
    box = Box(np.array([low]), np.array([high]))
    with np.errstate(over="ignore"):
        X = np.array(entries)[:, None].astype(dtype)
    found = box.clipped(X)
    assert np.isfinite(found).all()
    assert ((box.low <= found) & (found <= box.high)).all()
    alone = [box.clipped(X[i : i + 1])[0, 0] for i in range(len(X))]
    assert found[:, 0].tolist() == alone


@pytest.mark.filterwarnings("ignore:rows outside")
def test_points_are_drawn_in_to_the_box_in_their_own_precision():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for bounds in ((-0.1, 0.1), ([-1 / 3, 0.7], [1 / 7, 0.9]), (1e-30, 1e30)):
            box, _, _ = declared_box(np.full((1, 2), 0.8), bounds)
            X = (10 * rng.standard_normal((500, 2))).astype(dtype)
            found = box.clipped(X)
            assert found.dtype == dtype
            assert ((box.low <= found) & (found <= box.high)).all()
            expected = np.clip(X, box.low, box.high)
            np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "bounds",
    [(1, 0), (0, 0), (0, np.nan), (0, np.inf), 3, (1,), (0, 1, 2), ("a", "b"), ([0] * 3, 1)],
)
def test_bad_bounds(bounds):
    with pytest.raises(ValueError, match=r"bounds must be"):
        declared_box(np.zeros((2, 2)), bounds)


def test_extents_whose_squares_overflow_or_vanish_are_refused():
    X = np.zeros((2, 2))
    for bounds in ((-1e101, 0), (0, 1e101), (0, 1e-101)):
        with pytest.raises(ValueError, match=r"bounds must have a magnitude .* rescale X"):
            declared_box(X, bounds)
    with pytest.raises(ValueError, match="X must have a magnitude"):
        declared_box(X + 1e101, None)


@pytest.mark.parametrize(
    ("uniform", "norm"), [(uniform_in_cube, np.inf), (uniform_in_ball, 2)], ids=["cube", "ball"]
)
@pytest.mark.parametrize(("n_points", "d"), [(8, 1), (15, 2), (10, 10), (60, 3)])
def test_separated_points_keep_away_from_the_border(uniform, norm, n_points, d):
    rng = np.random.default_rng(0)

    def separation(points):
        distances = np.linalg.norm(points[:, None] - points, axis=2)
        border = 1 - np.linalg.norm(points, norm, axis=1).max()
        return min(distances[np.triu_indices(n_points, 1)].min() / 2, border)

    found = [separation(separated_points(n_points, d, rng, uniform)) for _ in range(5)]
    at_random = [separation(uniform(n_points, d, rng)) for _ in range(200)]
    assert min(found) > max(at_random)


def test_separated_points_are_random_and_a_lone_one_is_inside():
    rng = np.random.default_rng(0)
    first, second = (separated_points(5, 2, rng) for _ in range(2))
    assert not np.isclose(first, second).any()
    assert np.abs(separated_points(1, 3, rng)).max() < 1
    assert separated_points(400, 1, rng).shape == (400, 1)
