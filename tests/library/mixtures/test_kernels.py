import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from privclust.mixtures import (
    MixtureParameters,
    centred_statistics,
    log_density,
    responsibilities,
    sample,
)

TYPES = ["spherical", "diag", "full"]
SIZES = [1, 63, 256, 2100]  # less than a block, and no multiple of one


def reference(X, p):
    """Log densities and responsibilities (eq. 11) by SciPy."""
    with np.errstate(divide="ignore"):
        terms = np.stack(
            [
                np.log(w) + multivariate_normal(m, c).logpdf(X).reshape(len(X))
                for w, m, c in zip(p.weights, p.means, p.full_covariances(), strict=True)
            ],
            axis=1,
        )
    density = logsumexp(terms, axis=1)
    return density, np.exp(terms - density[:, None])


def moments_about(X, gamma, centres, covariance_type):
    """Counts, sums and second moments of weighted points, component by component."""
    sums, seconds = [], []
    for k, centre in enumerate(centres):
        u = X - centre
        sums.append(gamma[:, k] @ u)
        seconds.append((gamma[:, k, None] * u).T @ u)
    seconds = np.array(seconds)
    if covariance_type != "full":
        seconds = np.diagonal(seconds, axis1=1, axis2=2)
    if covariance_type == "spherical":
        seconds = seconds.sum(axis=1)
    return gamma.sum(axis=0), np.array(sums), seconds


def assert_close(found, expected, scale):
    """Equal up to rounding errors of sums whose terms are of the given size."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13 * scale)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("n_features", [1, 2, 3, 10, 40])
@pytest.mark.parametrize("n_components", [1, 3, 8])
def test_statistics_against_plain_numpy(random_mixture, covariance_type, n_features, n_components):
    p = random_mixture(covariance_type, n_components, n_features, seed=n_features)
    for n in SIZES:
        X, _ = sample(p, n, np.random.default_rng(n))
        density, gamma = reference(X, p)
        np.testing.assert_allclose(log_density(X, p), density, rtol=1e-12)
        np.testing.assert_allclose(responsibilities(X, p), gamma, rtol=1e-10, atol=1e-13)
        found = centred_statistics(X, p)
        counts, sums, seconds = moments_about(X, gamma, p.means, covariance_type)
        size = 10.0 * n * n_features
        assert_close(found.counts, counts, size)
        assert_close(found.sums, sums, 10.0 * size)
        assert_close(found.second_moments, seconds, 100.0 * size)
        np.testing.assert_allclose(found.log_likelihood, density.sum(), rtol=1e-12)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("n_features", [2, 3])
def test_memory_orders_and_types_give_the_same_bytes(random_mixture, covariance_type, n_features):
    p = random_mixture(covariance_type, 3, n_features, seed=0)
    X = sample(p, 700, np.random.default_rng(0))[0].round(3).astype(np.float32)
    X = X.astype(np.float64)
    wide = np.zeros((700, 2 * n_features))
    wide[:, ::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    expected = centred_statistics(X, p)
    for other in (np.asfortranarray(X), wide[:, ::2], frozen, X.astype(np.float32), X.tolist()):
        found = centred_statistics(other, p)
        for name in ("counts", "sums", "second_moments", "log_likelihood"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        np.testing.assert_array_equal(responsibilities(other, p), responsibilities(X, p))


@pytest.mark.parametrize("covariance_type", TYPES)
def test_points_far_from_the_origin_keep_their_digits(random_mixture, covariance_type):
    """Moments about the means do not change when points and means move by 2^20."""
    p = random_mixture(covariance_type, 3, 2, seed=3)
    means = np.round(p.means * 64.0) / 64.0  # the shift is exact
    X = np.round(sample(p, 2000, np.random.default_rng(0))[0] * 64.0) / 64.0
    near = MixtureParameters(p.weights, means, p.covariances, covariance_type)
    far = MixtureParameters(p.weights, means + 2.0**20, p.covariances, covariance_type)
    a, b = centred_statistics(X, near), centred_statistics(X + 2.0**20, far)
    for name in ("counts", "sums", "second_moments", "log_likelihood"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize("covariance_type", TYPES)
def test_extremely_distant_points(random_mixture, covariance_type):
    p = random_mixture(covariance_type, 3, 2, seed=0)
    X = np.array([[1e3, 0.0], [-1e8, 1e8], [1e140, 1e140], [0.0, 1e200], [1e308, -1e308]])
    density, gamma = log_density(X, p), responsibilities(X, p)
    assert np.isfinite(density).all()
    assert (density[2:] < -1e270).all()
    np.testing.assert_allclose(gamma.sum(axis=1), 1.0, rtol=1e-14)
    assert np.isfinite(centred_statistics(X[:3], p).second_moments).all()
    with pytest.raises(ValueError, match="squares do not overflow"):
        centred_statistics(X, p)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_component_of_weight_zero(random_mixture, covariance_type):
    p = random_mixture(covariance_type, 3, 2, seed=0)
    with_empty = MixtureParameters([0.3, 0.0, 0.7], p.means, p.covariances, covariance_type)
    without = MixtureParameters([0.3, 0.7], p.means[[0, 2]], p.covariances[[0, 2]], covariance_type)
    X, _ = sample(p, 500, np.random.default_rng(0))
    found, expected = centred_statistics(X, with_empty), centred_statistics(X, without)
    assert found.counts[1] == 0.0
    assert not found.sums[1].any()
    assert not np.any(found.second_moments[1])
    np.testing.assert_array_equal(found.counts[[0, 2]], expected.counts)
    assert found.log_likelihood == expected.log_likelihood
    np.testing.assert_array_equal(log_density(X, with_empty), log_density(X, without))


def test_log_likelihood_of_many_equal_components():
    """The normaliser of every point is as large as it can be: k."""
    k, n = 50, 100_000
    p = MixtureParameters(np.full(k, 1.0 / k), np.zeros((k, 1)), np.ones(k), "spherical")
    one = MixtureParameters([1.0], [[0.0]], [1.0], "spherical")
    X = np.random.default_rng(0).standard_normal((n, 1))
    expected = -0.5 * np.sum(X**2) - 0.5 * n * np.log(2.0 * np.pi)
    np.testing.assert_allclose(centred_statistics(X, one).log_likelihood, expected, rtol=1e-13)
    np.testing.assert_allclose(centred_statistics(X, p).log_likelihood, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((3, 3)), r"X must have shape \(n, 2\) with n >= 1, got \(3, 3\)"),
        (np.zeros(2), r"got \(2,\)"),
        (np.zeros((0, 2)), r"got \(0, 2\)"),
        ([[0.0, np.nan]], "X must be finite"),
        ([[0.0, np.inf]], "X must be finite"),
        ([[0.0, 1e200]], "squares do not overflow"),
    ],
)
def test_bad_points(X, message):
    p = MixtureParameters([0.5, 0.5], np.eye(2), [1.0, 1.0], "spherical")
    with pytest.raises(ValueError, match=message):
        centred_statistics(X, p)


def test_densities_of_points_that_are_not_numbers_are_refused():
    p = MixtureParameters([0.5, 0.5], np.eye(2), [1.0, 1.0], "spherical")
    for function in (log_density, responsibilities):
        with pytest.raises(ValueError, match="X must be finite"):
            function([[0.0, np.nan]], p)
