import warnings

import numpy as np
import pytest
from scipy import stats

from privclust.privacy import PrivacyLeakWarning
from privclust.privacy.bounds import bounded_rows, uniform_in_ball


def test_rows_within_the_bound_are_not_touched():
    X = np.random.default_rng(0).standard_normal((50, 3))
    X *= 2.0 / np.linalg.norm(X, axis=1).max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for what in ("clip", "error"):
            found, radius, leaks = bounded_rows(X, 2.0, what)
            assert found is X
            assert (radius, leaks) == (2.0, ())


def test_longer_rows_are_drawn_in_along_their_direction():
    X = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-30.0, 40.0]])
    with pytest.warns(UserWarning, match="norm above norm_bound=2.5 are drawn in"):
        found, radius, leaks = bounded_rows(X, 2.5, "clip")
    np.testing.assert_allclose(found, [[1.5, 2.0], [0.3, 0.4], [0.0, 0.0], [-1.5, 2.0]], rtol=1e-15)
    assert (radius, leaks) == (2.5, ())
    assert X[0].tolist() == [3.0, 4.0]  # the caller's array is left alone


def test_norms_after_clipping_are_within_the_bound_at_any_scale():
    rng = np.random.default_rng(1)
    for radius in (1e-100, 1e-3, 1.0, 7.3, 1e90):
        X = rng.standard_normal((500, 4)) * radius * 10.0 ** rng.uniform(-2, 8, (500, 1))
        with pytest.warns(UserWarning, match="drawn in"):
            found, _, _ = bounded_rows(X, radius, "clip")
        assert (np.linalg.norm(found / radius, axis=1) <= 1 + 1e-12).all()


def test_longer_rows_are_refused():
    X = np.array([[1.0, 0.0], [0.0, 1.1], [5.0, 0.0]])
    with pytest.raises(ValueError, match="row 1 has a norm above norm_bound=1"):
        bounded_rows(X, 1.0, "error")


def test_bound_from_the_data_warns_and_is_named_as_a_leak():
    X = np.array([[3.0, 4.0], [1.0, 0.0]])
    with pytest.warns(PrivacyLeakWarning, match="no guarantee"):
        found, radius, leaks = bounded_rows(X, None, "error")
    assert found is X
    assert radius == 5.0
    assert len(leaks) == 1
    assert "norm_bound" in leaks[0]


@pytest.mark.filterwarnings("ignore::privclust.privacy.PrivacyLeakWarning")
def test_zero_rows_have_a_positive_radius():
    assert bounded_rows(np.zeros((3, 2)), None, "clip")[1] == 1.0


@pytest.mark.parametrize(
    ("X", "bound", "what", "message"),
    [
        (np.ones((2, 2)), 1.0, "drop", "out_of_bounds must be one of clip, error, got 'drop'"),
        (np.ones((2, 2)), 0.0, "clip", "norm_bound must be a finite number greater than 0"),
        (np.ones((2, 2)), -1.0, "clip", "norm_bound"),
        (np.ones((2, 2)), np.inf, "clip", "norm_bound"),
        (np.ones((2, 2)), np.nan, "clip", "norm_bound"),
        (np.ones((2, 2)), "1", "clip", "norm_bound"),
        (np.ones((2, 2)), 1e-101, "clip", "norm_bound must lie between 1e-100 and 1e.100"),
        (np.ones((2, 2)), 1e101, "clip", "norm_bound must lie between"),
        (np.array([[1.0], [1e200]]), 1.0, "clip", "row 1 has a norm above 1e.100"),
        (np.array([[1.0], [1e101]]), None, "clip", "row 1 has a norm above 1e.100"),
        (np.array([[1e-170], [0.0]]), None, "clip", "X has no norm above 1e-100"),
    ],
)
def test_bad_input(X, bound, what, message):
    with pytest.raises(ValueError, match=message):
        bounded_rows(X, bound, what)


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
