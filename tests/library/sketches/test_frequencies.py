"""Laws of frequencies, and the estimate of their scale."""

import numpy as np
import pytest
from scipy import integrate, stats

from privclust.sketches import Sketch, draw_frequencies, estimate_variance

FALSE_ALARM = 1e-4  # of each statistical test here


def adapted_radius_cdf(radius):
    """The distribution function of the adapted radius, by quadrature."""

    def density(r):
        return np.sqrt(r**2 + r**4 / 4.0) * np.exp(-(r**2) / 2.0)

    total = integrate.quad(density, 0.0, np.inf)[0]
    return np.vectorize(lambda r: integrate.quad(density, 0.0, r)[0] / total)(radius)


@pytest.mark.parametrize(
    ("law", "cdf"),
    [
        ("adapted_radius", adapted_radius_cdf),
        ("folded_gaussian", stats.halfnorm.cdf),
        ("log_uniform", stats.loguniform(0.1, 7.0).cdf),
    ],
)
def test_radii_and_directions(law, cdf):
    frequencies = draw_frequencies(3, 4000, variance=4.0, law=law, random_state=1)
    radii = 2.0 * np.linalg.norm(frequencies, axis=0)
    assert stats.kstest(radii, cdf).pvalue > FALSE_ALARM
    # on the sphere of three dimensions every coordinate is uniform in [-1, 1]
    for coordinates in 2.0 * frequencies / radii:
        assert stats.kstest(coordinates, stats.uniform(-1.0, 2.0).cdf).pvalue > FALSE_ALARM


def test_moments_of_the_adapted_radius():
    """Where an error of the law is smaller than what a test of 4000 radii sees."""
    squares = draw_frequencies(1, 400_000, random_state=2)[0] ** 2
    for power in (0.5, 1.0, 2.0):
        moment, total = (
            integrate.quad(
                lambda r, e=e: r ** (2 * e) * np.sqrt(r**2 + r**4 / 4) * np.exp(-(r**2) / 2),
                0.0,
                np.inf,
            )[0]
            for e in (power, 0.0)
        )
        values = squares**power
        z = (values.mean() - moment / total) / (values.std() / np.sqrt(values.size))
        assert abs(z) < stats.norm.isf(FALSE_ALARM / 2)


def mixture(k, d, n, seed):
    """The mixtures of Section 5 of the paper."""
    rng = np.random.default_rng(seed)
    means = 1.5 * k ** (1.0 / d) * rng.standard_normal((k, d))
    return means[rng.integers(k, size=n)] + rng.standard_normal((n, d))


@pytest.mark.parametrize(
    ("law", "variance", "expected"),
    [("adapted_radius", 4.0, 0.31), ("adapted_radius", 5.0, 0.36), ("folded_gaussian", 1.0, 0.35)],
)
def test_energy_of_the_papers_sketches(law, variance, expected):
    """Section 5 of the paper: ||z||^2 is about 0.35 on its mixtures."""
    energies = []
    for seed in range(8):
        frequencies = draw_frequencies(10, 1000, variance=variance, law=law, random_state=seed)
        of_rows = Sketch.of(mixture(10, 10, 5000, seed), frequencies)
        energies.append((np.abs(of_rows.values) ** 2).sum())
    error = np.std(energies, ddof=1) / np.sqrt(8) + 0.005  # the rounding of the printed number
    assert abs(np.mean(energies) - expected) < 4.0 * error


@pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 5), (2, 2), (2, 20), (5, 10)])
def test_estimated_variance_is_near_that_of_a_cluster(k, d):
    """From above where phases of the means seldom agree: within the total variance."""
    X = mixture(k, d, 6000, seed=3)
    estimate = estimate_variance(X, random_state=0)
    assert 0.85 < estimate < max(1.15, 0.5 * X.var(axis=0).mean())


def test_estimated_variance_scales_and_ignores_shifts():
    X = mixture(5, 3, 2000, seed=0)
    estimate = estimate_variance(X, random_state=0)
    for scale in (1e-100, 1e-3, 8.0, 1e100):
        scaled = estimate_variance(scale * X + 3.0 * scale, random_state=0)
        assert scaled / scale**2 == pytest.approx(estimate, rel=1e-4)


def test_estimated_variance_of_degenerate_records():
    assert estimate_variance(np.full((5, 2), 7.0)) == 1.0
    assert estimate_variance([[1.0, 2.0]]) == 1.0
    for X in ([[0.0], [1.0]], np.eye(3), np.repeat([[0.0, 1.0], [5.0, 1.0]], 50, axis=0)):
        assert 0.0 < estimate_variance(X, random_state=0) < 1e6


def test_random_state_decides():
    X = mixture(3, 2, 6000, seed=0)
    assert estimate_variance(X, random_state=1) == estimate_variance(X, random_state=1)
    first = draw_frequencies(2, 9, random_state=4)
    np.testing.assert_array_equal(first, draw_frequencies(2, 9, random_state=4))
    assert (first != draw_frequencies(2, 9, random_state=5)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_features": 0}, "n_features must be an integer of at least 1, got 0"),
        ({"n_frequencies": 2.5}, "n_frequencies must be an integer"),
        ({"variance": 0.0}, "variance must be a finite number greater than 0"),
        ({"variance": np.nan}, "variance"),
        ({"law": "cauchy"}, "law must be one of adapted_radius, folded_gaussian, log_uniform"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        draw_frequencies(**{"n_features": 2, "n_frequencies": 3, **parameters})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"shape \(n_samples, n_features\).*got float64 of shape \(3,\)"),
        (np.ones((0, 2)), "neither of them 0"),
        ([[1.0], [np.nan]], "X must be finite"),
        ([["a"], ["b"]], "real numbers"),
        ([[1e308], [-1e308]], "records must differ by .* got a largest difference of inf"),
    ],
)
def test_bad_records(X, message):
    with pytest.raises(ValueError, match=message):
        estimate_variance(X)
