import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

from privclust.mixtures import MixtureParameters, sample

TYPES = ["spherical", "diag", "full"]


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("n_features", [1, 2, 5])
def test_derived_quantities(random_mixture, covariance_type, n_features):
    p = random_mixture(covariance_type, 3, n_features, seed=0)
    full = p.full_covariances()
    assert full.shape == (3, n_features, n_features)
    for k in range(3):
        w = p.whitening[k]
        w = w if covariance_type == "full" else np.eye(n_features) * w
        np.testing.assert_allclose(w.T @ w, np.linalg.inv(full[k]), rtol=1e-12, atol=1e-13)
        at_mean = multivariate_normal(p.means[k], full[k]).logpdf(p.means[k])
        np.testing.assert_allclose(p.log_scales[k], np.log(p.weights[k]) + at_mean, rtol=1e-13)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_samples_have_the_moments_of_the_mixture(random_mixture, covariance_type):
    """Whitened samples of a component are standard normal: chi-square tests at 1e-6 each."""
    p = random_mixture(covariance_type, 3, 2, seed=1)
    n = 60_000
    X, components = sample(p, n, np.random.default_rng(2))
    expected = n * p.weights
    counts = np.bincount(components, minlength=3)
    assert np.sum((counts - expected) ** 2 / expected) < chi2.isf(1e-6, 2)
    for k in range(3):
        z = np.linalg.solve(
            np.linalg.cholesky(p.full_covariances()[k]), (X[components == k] - p.means[k]).T
        )
        m = counts[k]
        assert m * np.sum(z.mean(axis=1) ** 2) < chi2.isf(1e-6, 2)
        moments = np.array([z[0] ** 2 - 1.0, z[1] ** 2 - 1.0, z[0] * z[1]]).mean(axis=1)
        assert m * np.sum(moments**2 / [2.0, 2.0, 1.0]) < chi2.isf(1e-6, 3)


def test_components_of_weight_zero_are_not_drawn():
    p = MixtureParameters([0.0, 1.0], [[0.0], [9.0]], [1.0, 1.0], "spherical")
    X, components = sample(p, 100, np.random.default_rng(0))
    assert (components == 1).all()
    assert X.min() > 0.0
    assert p.log_scales[0] == -np.inf


def test_sampling_is_deterministic(random_mixture):
    p = random_mixture("full", 3, 2, seed=0)
    first = sample(p, 50, np.random.default_rng(7))
    second = sample(p, 50, np.random.default_rng(7))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_later_changes_of_an_array_do_not_reach_the_mixture():
    means = np.zeros((1, 2))
    p = MixtureParameters([1.0], means, [1.0], "spherical")
    means += 1.0
    np.testing.assert_array_equal(p.means, 0.0)


def test_number_of_samples_is_checked(random_mixture):
    with pytest.raises(ValueError, match="n must be an integer of at least 1, got 0"):
        sample(random_mixture("full", 2, 2, seed=0), 0, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"covariance_type": "tied"}, "covariance_type must be one of .*'full', got 'tied'"),
        ({"weights": [0.5, 0.6]}, "weights must sum to 1, got 1.1"),
        ({"weights": [-0.5, 1.5]}, "weights must not be negative, got -0.5"),
        ({"weights": [1.0]}, r"weights must have shape \(2,\), got \(1,\)"),
        ({"weights": [np.nan, 1.0]}, "weights must be finite, got nan"),
        ({"means": [0.0, 1.0]}, r"means must have shape .* got \(2,\)"),
        ({"means": [[0.0, np.inf], [0.0, 0.0]]}, "means must be finite, got inf"),
        ({"means": "x"}, "means must be an array of numbers"),
        ({"covariances": np.ones(3)}, r"must have shape \(2,\) for 2 components and 2 features"),
        ({"covariances": [1.0, 0.0]}, "must be positive, got 0 for component 1"),
        (
            {"covariance_type": "diag", "covariances": [[1.0, 1.0], [1.0, -2.0]]},
            "must be positive, got -2 for component 1",
        ),
        (
            {"covariance_type": "full", "covariances": [np.eye(2), [[1.0, 2.0], [2.0, 1.0]]]},
            "positive definite, the least eigenvalue of component 1 is -1",
        ),
        (
            {"covariance_type": "full", "covariances": [np.eye(2), [[1.0, 0.5], [0.0, 1.0]]]},
            "symmetric, that of component 1 is not",
        ),
    ],
)
def test_bad_parameters(changes, message):
    arguments = {
        "weights": [0.5, 0.5],
        "means": np.zeros((2, 2)),
        "covariances": np.ones(2),
        "covariance_type": "spherical",
    }
    with pytest.raises(ValueError, match=message):
        MixtureParameters(**(arguments | changes))
