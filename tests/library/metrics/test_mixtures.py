import itertools

import numpy as np
import pytest

from privclust.metrics.mixtures import mean_error, normalised_intracluster_variance


def test_mean_error_is_the_least_over_orders():
    rng = np.random.default_rng(0)
    for _ in range(20):
        means, truth = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
        least = min(
            np.sqrt(((means[list(order)] - truth) ** 2).sum(axis=1).mean())
            for order in itertools.permutations(range(4))
        )
        assert mean_error(means, truth) == pytest.approx(least, rel=1e-12)


def test_mean_error_of_shifted_means_is_the_length_of_the_shift():
    truth = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    assert mean_error(truth[[2, 0, 1]] + [0.3, 0.4], truth) == pytest.approx(0.5, rel=1e-12)
    assert mean_error(truth[[2, 0, 1]], truth) == 0.0


def test_nicv_of_rows_about_known_centers():
    """Rows at distance r_k of center k: the mean of r^2, whatever the order of the centers."""
    centers = np.array([[10.0, 0.0], [-10.0, 0.0], [0.0, 99.0]])
    angles = np.linspace(0.0, 6.0, 30)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    X = np.vstack([centers[0] + 2.0 * ring, centers[1] + 0.5 * ring[:10]])
    expected = (30 * 4.0 + 10 * 0.25) / 40
    assert normalised_intracluster_variance(X, centers) == pytest.approx(expected, rel=1e-12)
    assert normalised_intracluster_variance(X, centers[::-1]) == pytest.approx(expected, rel=1e-12)


def test_nicv_about_the_mean_is_the_variance():
    X = np.random.default_rng(1).standard_normal((100, 3))
    found = normalised_intracluster_variance(X, X.mean(axis=0, keepdims=True))
    assert found == pytest.approx(X.var(axis=0).sum(), rel=1e-12)


def test_nicv_falls_with_more_centers():
    rng = np.random.default_rng(2)
    X, centers = rng.standard_normal((200, 2)), rng.standard_normal((9, 2))
    values = [normalised_intracluster_variance(X, centers[:k]) for k in range(1, 10)]
    assert all(b <= a for a, b in itertools.pairwise(values))
    assert normalised_intracluster_variance(X, X) == 0.0
