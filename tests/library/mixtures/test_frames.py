import itertools
import math
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats

from privclust.mixtures import MixtureParameters, _frames
from privclust.mixtures._frames import (
    _least_product,
    chi_radius,
    clipping_factor,
    release_moments,
    statistic_weights,
)
from privclust.privacy import SystemEntropy

TYPES = ("spherical", "diag", "full")
ROUNDING = 1 + 1e-9


def clipped_moments(X, p, radius):
    """Counts, sums and second moments as numbers, of rows in units of the radius."""
    exact = _frames.clipped_moments(X, p, radius)
    counts, sums, seconds = map(np.asarray, (exact.counts, exact.sums, exact.second_moments))
    return counts, sums * exact.unit, seconds * exact.unit**2


@pytest.fixture
def released(monkeypatch):
    """Return a function that gives the vector a release adds its noise to, and the noise's sigma.

    It is caught at the mechanism: what is looked at is what a release protects.
    """
    caught = []

    def catch(value, sigma, source):
        caught.append((np.asarray(value), sigma))
        return np.asarray(value)

    monkeypatch.setattr("privclust.privacy.noise.add_gaussian", catch)

    def vector(X, frames, radius, weights, *, share=1.0):
        caught.clear()
        noise = weights.noise(share)
        moments = release_moments(X, frames, radius, weights, noise, None)
        ((value, sigmas),) = caught  # the same noise as sigma on the value times sigma / sigmas
        return (value * (noise.sigma / sigmas)).ravel(), noise.sigma, moments

    return vector


# --- moments ---------------------------------------------------------------------------------


def plain_moments(X, p, radius):
    """The moments by their definition."""
    full = p.full_covariances()
    white = np.stack(
        [
            np.linalg.solve(np.linalg.cholesky(S), (X - m).T).T
            for m, S in zip(p.means, full, strict=True)
        ]
    )
    squared = (white**2).sum(axis=2)
    terms = [
        np.log(w) + stats.multivariate_normal(m, S).logpdf(X)
        for w, m, S in zip(p.weights, p.means, full, strict=True)
    ]
    gamma = np.exp(np.array(terms) - np.logaddexp.reduce(terms, axis=0))
    v = white * np.minimum(1.0, radius / np.sqrt(squared))[..., None] / radius
    seconds = np.einsum("ki,kia,kib->kab", gamma, v, v)
    if p.covariance_type == "diag":
        seconds = np.einsum("kaa->ka", seconds)
    if p.covariance_type == "spherical":
        seconds = np.einsum("kaa->k", seconds)
    return gamma.sum(axis=1), np.einsum("ki,kia->ka", gamma, v), seconds


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_moments_are_those_of_the_definition(random_mixture, kind, d, k):
    p = random_mixture(kind, k, d, seed=d + k)
    # no multiple of a block: the last is filled in part
    X = 2.0 + 2.0 * np.random.default_rng(k).standard_normal((1501, d))
    for radius in (chi_radius(d, 0.3), chi_radius(d, 0.95)):
        found = clipped_moments(X, p, radius)
        for value, expected in zip(found, plain_moments(X, p, radius), strict=True):
            # rows and what they add are rounded to 2^-18 of the radius and better
            np.testing.assert_allclose(value, expected, rtol=0, atol=1501 * 2.0**-15)
            assert np.abs(value - expected).mean() < 12 * math.sqrt(1501) * 2.0**-16


@pytest.mark.parametrize("kind", TYPES)
def test_moments_add_up_over_rows(random_mixture, kind):
    p = random_mixture(kind, 3, 3, seed=0)
    X = 2.0 + np.random.default_rng(0).standard_normal((50, 3))
    whole = clipped_moments(X, p, 2.0)
    rows = [clipped_moments(row[None], p, 2.0) for row in X]
    for value, parts in zip(whole, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(value, np.sum(parts, axis=0), rtol=0, atol=1e-12)


def narrow_frame(ratio):
    """A frame in the plane with variances 1 and `ratio`, turned."""
    turn = np.array([[math.cos(0.7), -math.sin(0.7)], [math.sin(0.7), math.cos(0.7)]])
    covariance = turn @ np.diag([1.0, ratio]) @ turn.T
    covariance = 0.5 * (covariance + covariance.T)
    return MixtureParameters(np.ones(1), np.zeros((1, 2)), covariance[None], "full"), turn


def test_narrow_frames_do_not_let_rounding_through():
    """A row moves the sum over many by as much as alone, and by no more than the bound.

    Sums of (x - m)(x - m)' whitened afterwards lose digits by the ratio of the variances: an error
    of 1e-3 here, which a row at another place would change.
    """
    p, turn = narrow_frame(1e-9)
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((100_000, 2)) * [1.0, 10**-4.5]) @ turn.T
    one, other = np.array([[0.3, -0.2]]), np.array([[-0.1, 0.5]])
    radius = chi_radius(2, 0.95)
    with_one, with_other, alone, other_alone = (
        clipped_moments(rows, p, radius)
        for rows in (np.vstack([X, one]), np.vstack([X, other]), one, other)
    )
    for a, b, c, e in zip(with_one, with_other, alone, other_alone, strict=True):
        np.testing.assert_allclose(a - b, c - e, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6, 1e100])
def test_no_row_is_longer_than_one_however_far_or_narrow(random_mixture, scale):
    rng = np.random.default_rng(0)
    for p in (narrow_frame(1e-14)[0], random_mixture("full", 3, 2, 0)):
        for row in scale * rng.standard_normal((200, 2)):
            exact = _frames.clipped_moments(row[None], p, 2.0)
            parts = exact.counts, exact.sums, exact.second_moments
            counts, sums, seconds = map(np.asarray, parts)
            assert counts.sum() == pytest.approx(1.0, abs=1e-8)
            # responsibilities of several components are rounded to multiples of 2^-18
            k = p.n_components
            shared = 1.0 if k == 1 else 1.0 + math.sqrt(2 * k) * 2.0**-18
            assert np.linalg.norm(sums, axis=1).sum() <= shared
            assert np.linalg.norm(seconds, axis=(1, 2)).sum() <= shared


# --- sensitivity -----------------------------------------------------------------------------


def candidates(p, radius, rng):
    """Rows at random, on the axes, in opposite directions and at all distances of each frame."""
    roots = np.linalg.cholesky(p.full_covariances())
    d = p.n_features
    axes = np.vstack([np.eye(d), np.full((1, d), d**-0.5)])
    drawn = rng.standard_normal((3, d))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    directions = np.vstack([axes, -axes, drawn, -drawn])
    rows = [p.means]
    for reach in (0.3 * radius, radius, 30.0 * radius):
        rows.append(p.means[:, None] + np.einsum("kab,cb->kca", roots, reach * directions))
    return np.vstack([block.reshape(-1, d) for block in rows])


def largest_change(vector_of, rows, rng, steps):
    """Largest distance of two rows' vectors: over all pairs, then by small moves of the best."""
    found = np.array([vector_of(row) for row in rows])
    squares = (found**2).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * found @ found.T
    i, j = np.unravel_index(distances.argmax(), distances.shape)
    pair, vectors = [rows[i], rows[j]], [found[i], found[j]]
    best, reach = math.sqrt(max(distances[i, j], 0.0)), 0.5
    for step in range(steps):
        side = step % 2
        moved = pair[side] + reach * rng.standard_normal(rows.shape[1])
        vector = vector_of(moved)
        change = np.linalg.norm(vector - vectors[1 - side])
        if change > best:
            best, pair[side], vectors[side] = change, moved, vector
        else:
            reach *= 0.97
    return best


@pytest.mark.parametrize("kind", TYPES)
def test_one_row_moves_a_release_by_at_most_its_sensitivity(random_mixture, released, kind):
    """And by nearly as much somewhere: the bound is not loose."""
    rng = np.random.default_rng(0)
    attained = 0.0
    for seed, (d, radius, k) in enumerate(itertools.product([1, 2, 4], [0.5, 2.0, 5.0], [1, 3, 5])):
        p = random_mixture(kind, k, d, seed)
        if seed % 2:  # components that do not overlap
            p = MixtureParameters(p.weights, 100.0 * p.means, p.covariances, kind)
        weights = statistic_weights(kind, d, radius, n_components=k)

        def vector_of(row, p=p, radius=radius, weights=weights):
            return released(row[None], p, radius, weights)[0]

        found = largest_change(vector_of, candidates(p, radius, rng), rng, steps=60)
        assert found <= weights.sensitivity * ROUNDING, (d, radius, k)
        attained = max(attained, found / weights.sensitivity)
    assert attained >= 0.95


@pytest.mark.parametrize("kind", TYPES)
def test_weights_of_another_radius_keep_their_sensitivity(random_mixture, released, kind):
    """Weights for one radius, rows clipped to another."""
    d, rng = 3, np.random.default_rng(0)
    p = random_mixture(kind, 1, d, 0)
    for scale in (0.1, math.sqrt(d), 10.0):
        weights = statistic_weights(kind, d, scale)
        found = largest_change(
            lambda row, w=weights: released(row[None], p, 1.0, w)[0],
            candidates(p, 1.0, rng),
            rng,
            steps=100,
        )
        assert found <= weights.sensitivity * ROUNDING


def test_least_product_is_the_minimum():
    t = np.linspace(-1.0, 1.0, 200_001)
    for b2, c2 in ((1.0, 0.1), (1.0, 0.5), (1.0, 2.0), (0.01, 3.0), (5.0, 5.0)):
        grid = (b2 * t + c2 * t * t).min()
        assert _least_product(b2, c2) == pytest.approx(grid, abs=1e-8)


# --- noise -----------------------------------------------------------------------------------


def test_noise_is_sensitivity_over_share(random_mixture, released):
    p = random_mixture("full", 3, 2, 0)
    weights = statistic_weights("full", 2, 2.0)
    _, sigma, _ = released(np.ones((4, 2)), p, 2.0, weights, share=0.3)
    assert sigma == pytest.approx(weights.sensitivity / 0.3, rel=1e-12)
    expected = [sigma / weights.counts, sigma / weights.sums, sigma / weights.seconds]
    assert weights.deviations(weights.noise(0.3)) == pytest.approx(expected, rel=1e-12)


def test_without_noise_a_release_is_the_moments(random_mixture, released):
    X = 2.0 + np.random.default_rng(0).standard_normal((100, 3))
    for kind in TYPES:
        p = random_mixture(kind, 2, 3, 0)
        weights = statistic_weights(kind, 3, 2.0)
        moments = released(X, p, 2.0, weights)[2]
        counts, sums, seconds = clipped_moments(X, p, 2.0)
        np.testing.assert_allclose(moments.counts, counts, rtol=1e-12)
        np.testing.assert_allclose(moments.sums, sums, rtol=0, atol=1e-12)
        np.testing.assert_allclose(moments.second_moments, seconds, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", TYPES)
def test_noise_has_the_stated_deviation_and_is_normal(random_mixture, kind):
    """Squares of all entries by chi^2, their distribution by KS; false-alarm rate below 1e-5."""
    d, k, repeats = 3, 2, 1000
    p = random_mixture(kind, k, d, 0)
    X = 2.0 + np.random.default_rng(0).standard_normal((10, d))
    exact = clipped_moments(X, p, 2.0)
    weights, source = statistic_weights(kind, d, 2.0), np.random.default_rng(1)
    runs = [release_moments(X, p, 2.0, weights, weights.noise(0.5), source) for _ in range(repeats)]
    of_count, of_sum, of_second = weights.deviations(weights.noise(0.5))
    draws = {
        "counts": np.array([run.counts - exact[0] for run in runs]) / of_count,
        "sums": np.array([run.sums - exact[1] for run in runs]) / of_sum,
        "seconds": np.array([run.second_moments - exact[2] for run in runs]) / of_second,
    }
    if kind == "full":
        matrices = draws.pop("seconds")
        np.testing.assert_array_equal(matrices, matrices.transpose(0, 1, 3, 2))
        rows, columns = np.tril_indices(d, -1)
        draws["diagonal"] = np.einsum("rkaa->rka", matrices)
        draws["rest"] = math.sqrt(2.0) * matrices[:, :, rows, columns]
    every = np.column_stack([values.reshape(repeats, -1) for values in draws.values()])
    for name, values in draws.items():
        level = stats.chi2(values.size).cdf((values**2).sum())
        assert 1e-6 < level < 1 - 1e-6, name
        assert stats.kstest(values.ravel(), "norm").pvalue > 1e-6, name
    # entries are independent: correlations are normal with variance 1 / repeats
    correlations = np.corrcoef(every.T)[np.tril_indices(every.shape[1], -1)]
    assert np.abs(correlations).max() * math.sqrt(repeats) < 6.0


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
def test_noise_for_a_release_has_the_stated_deviation(random_mixture):
    """Squares of 40 x 6 draws, off the diagonal twice: false-alarm rate 2e-6."""
    p, source = random_mixture("full", 1, 2, 0), SystemEntropy()
    X = 2.0 + np.random.default_rng(0).standard_normal((10, 2))
    exact, weights = clipped_moments(X, p, 2.0), statistic_weights("full", 2, 2.0)
    total, noises = 0.0, weights.deviations(weights.noise(0.5))
    for _ in range(40):
        run = release_moments(X, p, 2.0, weights, weights.noise(0.5), source)
        found = run.counts, run.sums, run.second_moments
        for value, whole, noise in zip(found, exact, noises, strict=True):
            total += ((value - whole) ** 2).sum() / noise**2
    assert 1e-6 < stats.chi2(40 * 6).cdf(total) < 1 - 1e-6


# --- the normal distribution in a ball -------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5, 40])
@pytest.mark.parametrize("part", [0.3, 0.95])
def test_radius_and_factor_agree_with_draws(d, part):
    """Means of 50 000 draws within five standard errors: false-alarm rate 6e-7 each."""
    radius = chi_radius(d, part)
    squared = (np.random.default_rng(0).standard_normal((50_000, d)) ** 2).sum(axis=1)
    inside = (squared <= radius**2).mean()
    assert abs(inside - part) < 5 * math.sqrt(part * (1 - part) / 50_000)
    clipped = np.minimum(squared, radius**2) / d
    error = 5 * clipped.std() / math.sqrt(50_000)
    assert abs(clipped.mean() - clipping_factor(d, radius)) < error
