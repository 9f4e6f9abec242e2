"""How far noise reaches, and what is said of matrices and subspaces under it."""

import numpy as np
import pytest

from privclust.privacy.measurements import second_moment_noise
from privclust.privacy.spectra import estimated_moments, onto_nuclear_ball, spectral_bound


@pytest.mark.parametrize("d", [1, 2, 5, 60])
@pytest.mark.parametrize("mod_sulq", [False, True])
def test_noise_seldom_passes_the_bound_and_comes_near_it(d, mod_sulq):
    """Of 2,000 matrices at most 1.3 are expected to; 8 have probability 2e-4."""
    noise = second_moment_noise(d, "add_remove", 1.0, 1e-6, mod_sulq=mod_sulq)
    n = 2000 if d < 60 else 100
    values = np.linalg.eigvalsh(noise.release(np.zeros((n, d, d)), np.random.default_rng(d)))
    norms, bound = np.abs(values).max(axis=1), spectral_bound(noise, d)
    assert (norms > bound).sum() < 8
    assert norms.max() > 0.4 * bound
    gaps = np.diff(np.column_stack([values, np.zeros(n)]) if d == 1 else values, axis=1)
    assert (np.abs(gaps) > bound).sum() < 8


def turned(values, seed=0):
    """A symmetric matrix with these eigenvalues."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return V * values @ V.T


@pytest.mark.parametrize("mod_sulq", [False, True])
def test_estimated_eigenvalues_are_unbiased_when_apart(mod_sulq):
    """For what the noisy eigenvectors capture of the matrix; z below 5 for each, 6e-7 by chance.

    Uncorrected ones are off by more than 10 of these errors. On an axis noise of MOD-SuLQ is less
    than beside it, so that the matrices are diagonal once.
    """
    noise = second_moment_noise(3, "add_remove", 1.0, 1e-6, mod_sulq=mod_sulq)
    values = noise.sigma * np.array([100.0, 94.0, 88.0])
    for M in (turned(values), np.diag(values)):
        noisy = noise.release(np.repeat(M[None], 6000, axis=0), np.random.default_rng(1))
        raw, vectors = np.linalg.eigh(noisy)
        true = np.einsum("nai,ab,nbi->ni", vectors, M, vectors)
        estimates = np.array([np.linalg.eigvalsh(estimated_moments(Y, noise)) for Y in noisy])
        errors = estimates - true
        deviations = errors.std(axis=0) / np.sqrt(len(noisy))
        assert (np.abs(errors.mean(axis=0)) < 5 * deviations).all()
        assert (np.abs((raw - true).mean(axis=0)) > 10 * deviations)[[0, 2]].all()


@pytest.mark.parametrize("values", [[5.0, -1.0, -3.0], [2.0, 2.0, 2.0], [0.0, 0.0], [3.0], [-3.0]])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_an_estimate_keeps_eigenvectors_and_the_trace(values, scale):
    noise = second_moment_noise(len(values), "add_remove", 1.0, 1e-6)
    Y = scale * turned(values)
    found = estimated_moments(Y, noise)
    rounding = 1e-9 * noise.sigma + 1e-12 * scale
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found @ Y, Y @ found, atol=rounding * max(scale, noise.sigma))
    vectors = np.linalg.eigh(Y)[1]
    kept = np.einsum("ai,ab,bi->i", vectors, found, vectors)
    assert kept.min() > -rounding
    assert np.diff(kept).min(initial=0.0) > -rounding
    assert np.trace(found) == pytest.approx(max(np.trace(Y), 0.0), rel=1e-9, abs=rounding)


def test_an_estimate_turns_with_the_matrix():
    noise = second_moment_noise(5, "add_remove", 1.0, 1e-6)
    Y, V = turned([40.0, 31.0, 3.0, -5.0, -9.0]), np.linalg.qr(turned(np.arange(5.0), 1))[0]
    expected = V @ estimated_moments(Y, noise) @ V.T
    np.testing.assert_allclose(estimated_moments(V @ Y @ V.T, noise), expected, atol=1e-9)


@pytest.mark.parametrize("values", [[60.0, 50.0, 40.0], np.full(30, 20.0), 90.0 / np.arange(1, 31)])
def test_an_estimate_is_nearer_than_the_projection_alone(values):
    """Mean squares over 40 draws, in Frobenius norm; the projection is nearer than the noisy."""
    M = turned(np.pad(values, (0, 30 - len(values))) * 10.0)
    noise = second_moment_noise(30, "replace_one", 1.0, 1e-6)
    errors = np.zeros(3)
    for Y in noise.release(np.repeat(M[None], 40, axis=0), np.random.default_rng(3)):
        raw, vectors = np.linalg.eigh(Y)
        projected = vectors * onto_nuclear_ball(raw, np.trace(Y)) @ vectors.T
        for i, estimate in enumerate((estimated_moments(Y, noise), projected, Y)):
            errors[i] += np.square(estimate - M).sum()
    assert errors[0] < 0.9 * errors[1]
    assert errors[1] < errors[2] * (1.0 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_projection_is_the_nearest_point(seed):
    """No vertex of the simplex lies beyond the plane through it, which proves it."""
    rng = np.random.default_rng(seed)
    values, radius = rng.normal(0.0, 3.0, rng.integers(1, 9)), rng.exponential(5.0)
    values[-1:] = values[:1]  # equal ones too
    nearest = onto_nuclear_ball(values, radius)
    assert nearest.min() >= 0.0
    assert nearest.sum() <= radius * (1 + 1e-12)
    vertices = np.vstack([np.zeros_like(values), radius * np.eye(len(values))])
    assert ((vertices - nearest) @ (values - nearest)).max() < 1e-9
    np.testing.assert_array_equal(onto_nuclear_ball(values, -radius), 0.0)
