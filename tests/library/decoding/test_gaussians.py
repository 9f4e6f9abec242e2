"""Densities of Gaussian mixtures: derivatives by their numbers, and drawn points."""

import math

import numpy as np
import pytest
from scipy import stats

from privclust.decoding._gaussians import GaussianMixture, boxed_points, drawn_points, log_parts
from privclust.decoding._mixture_errors import _jacobian, scores
from privclust.privacy.bounds import Box


@pytest.fixture(params=["one number", "covariances"])
def density(request):
    rng = np.random.default_rng(3)
    spreads = np.array([0.7, 1.2])
    if request.param == "covariances":
        spreads = np.linalg.cholesky(
            np.array([[[1.0, 0.3], [0.3, 0.5]], [[2.0, -0.4], [-0.4, 1.0]]])
        )
    return GaussianMixture(np.array([0.3, 0.7]), rng.standard_normal((2, 2)), spreads, 2)


def moved(density, place, step):
    """The weights (not adding up to 1), centers and factors after a step of one number."""
    d = 2
    factors = density.spreads
    if factors.ndim == 1:
        factors = factors[:, None, None] * np.eye(d)
    weights, centers, factors = density.weights.copy(), density.centers.copy(), factors.copy()
    n = d + 2 if density.spreads.ndim == 1 else 1 + d + 3
    k, i = divmod(place, n)
    if i == 0:
        weights[k] *= 1.0 + step
    elif i <= d:
        centers[k] += step * factors[k][:, i - 1]
    else:
        change = np.eye(d)
        if density.spreads.ndim != 1:
            a, b = [(0, 0), (1, 0), (1, 1)][i - 1 - d]
            change = np.zeros((d, d))
            change[a, b] = change[b, a] = 1.0
        factors[k] = np.linalg.cholesky(factors[k] @ (np.eye(d) + step * change) @ factors[k].T)
    return weights, centers, factors


def features_of(omega, weights, centers, factors):
    images = np.matmul(factors.transpose(0, 2, 1), omega)
    atoms = np.exp(1j * centers @ omega - 0.5 * (images**2).sum(axis=1))
    values = weights @ atoms
    return np.concatenate([values.real, values.imag])


def test_derivatives_are_those_of_differences(density):
    rng = np.random.default_rng(0)
    omega, points = rng.standard_normal((2, 7)), 2.0 * rng.standard_normal((9, 2))
    jacobian, score = _jacobian(omega, density), scores(points, density)
    step = 1e-5
    for place in range(len(jacobian)):
        up, down = (moved(density, place, side * step) for side in (1.0, -1.0))
        slope = (features_of(omega, *up) - features_of(omega, *down)) / (2.0 * step)
        np.testing.assert_allclose(jacobian[place], slope, atol=1e-8)
        logs = [np.logaddexp.reduce(log_parts(points, *law), axis=1) for law in (up, down)]
        np.testing.assert_allclose(score[:, place], (logs[0] - logs[1]) / (2.0 * step), atol=1e-6)


def test_drawn_points_have_the_density_s_moments(density):
    points = drawn_points(
        density.weights, density.centers, density.spreads, 200_000, np.random.default_rng(1)
    )
    factors = density.spreads
    if factors.ndim == 1:
        factors = factors[:, None, None] * np.eye(2)
    mean = density.weights @ density.centers
    within = np.einsum("k,kij,klj->il", density.weights, factors, factors)
    apart = density.centers - mean
    whole = within + np.einsum("k,ki,kj->ij", density.weights, apart, apart)
    np.testing.assert_allclose(points.mean(axis=0), mean, atol=0.015)
    np.testing.assert_allclose(np.cov(points.T), whole, atol=0.03)


def test_points_within_a_box_have_the_law_of_cut_off_gaussians():
    """Means and variances of each coordinate by closed form; five standard errors."""
    box = Box(np.array([-1.0, -0.5]), np.array([1.0, 2.0]))
    centers, spreads = np.array([[0.5, 0.0], [-3.0, 1.0]]), np.array([1.0, 2.0])
    n = 40_000
    points = boxed_points(np.full(2, 0.5), centers, spreads, n, box, np.random.default_rng(0))
    assert ((points >= box.low) & (points <= box.high)).all()
    for k, of_one in enumerate((np.r_[0:10_000, 20_000:30_000], np.r_[10_000:20_000, 30_000:n])):
        low, high = (box.low - centers[k]) / spreads[k], (box.high - centers[k]) / spreads[k]
        law = stats.truncnorm(low, high, loc=centers[k], scale=spreads[k])
        error = 5.0 * law.std() / math.sqrt(0.5 * n)
        assert (np.abs(points[of_one].mean(axis=0) - law.mean()) < error).all()
        assert (np.abs(points[of_one].std(axis=0) / law.std() - 1.0) < 0.05).all()


def test_points_far_from_a_box_come_to_lie_in_it():
    box = Box(np.full(2, -1.0), np.full(2, 1.0))
    centers, spreads = np.array([[1e6, 0.0], [0.0, -5.0]]), np.array([1e-3, 0.0])
    points = boxed_points(np.full(2, 0.5), centers, spreads, 100, box, np.random.default_rng(0))
    assert ((points >= -1.0) & (points <= 1.0)).all()
