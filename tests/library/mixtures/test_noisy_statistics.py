"""Noise by its law, and parameters from noisy statistics.

Each test of a law has a false-alarm rate of at most 1e-4; seeds are fixed.
"""

import math

import numpy as np
import pytest
from scipy import stats

from privclust.mixtures import (
    MixtureParameters,
    PlanSettings,
    PrivateGaussianMixture,
    perturbations,
    responsibilities,
)
from privclust.mixtures._noisy_statistics import (
    Estimate,
    NoisedStatistics,
    add_noise,
    parameters_from,
)

K = 20_000  # components: that many draws of a component's noise at once
SHARE = 0.8
SHAPES = {"zero": None, "spherical": (), "diag": (3,), "full": (3, 3)}
MLE = Estimate(1.0, 0.0, 0.0, 0.0, 1e-6, False)
MAP = Estimate(2.0, 1.0, 10.0, 0.1, 1e-6, False)  # d = 3: c = nu_0 + d + 2 = 2 (d + 2)


def follows(sample, law):
    """Say whether a sample is from a law, wrongly denied once in 10,000 times."""
    return stats.kstest(np.ravel(sample), law.cdf).pvalue > 1e-4


def release(kind, noise, variant, values=(100.0, 0.0, 0.0), seed=0, d=3):
    """Noise statistics that are the same for all components; return them as they come out."""
    # the scale of one component's noise, which is not larger for what many would round
    plan = perturbations(PlanSettings(d, 1, 10, kind, noise, variant, 1e-3), SHARE)
    count, total, second = values
    moments = None if kind == "zero" else np.full((K, *SHAPES[kind]), float(second))
    if kind == "full":
        moments = moments * np.eye(d)
    counts, sums = np.full(K, float(count)), np.full((K, d), float(total))
    return add_noise(plan, counts, sums, moments, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("variant", ["paper", "corrected"])
def test_separate_noise_on_counts_and_sums(kind, noise, variant):
    if (variant, kind) == ("paper", "diag"):
        pytest.skip("the paper has no diagonal covariances")
    found = release(kind, noise, variant, (100.0, 7.0, 3.0))
    assert follows(found.counts - 100.0, stats.laplace(scale=2.0 / SHARE))  # eq. (13) times N
    means = {
        "laplace": stats.laplace(scale=2.0 * math.sqrt(3.0) / SHARE),  # eq. (15) times N_k
        "gaussian": stats.norm(scale=2.0 * math.sqrt(2.0 * math.log(1250.0)) / SHARE),
    }
    assert follows(found.sums - 7.0, means[noise])
    assert (found.second_moments is None) == (kind == "zero")


@pytest.mark.parametrize("kind", ["spherical", "diag"])
def test_separate_noise_on_variances(kind):
    found = release(kind, "laplace", "corrected", (1.0, 0.0, 3.0))
    assert follows(found.second_moments - 3.0, stats.laplace(scale=1.0 / SHARE))


def test_separate_noise_on_covariances_is_symmetric():
    noise = release("full", "laplace", "corrected").second_moments
    np.testing.assert_array_equal(noise, noise.transpose(0, 2, 1))
    rows, columns = np.triu_indices(3)
    entries = noise[:, rows, columns]
    assert follows(entries, stats.laplace(scale=4.0 / (2.0 * SHARE)))  # (d + 1) / 2 eps'
    uncorrelated = np.corrcoef(entries.T) - np.eye(6)
    assert np.abs(uncorrelated).max() < 4.8 / math.sqrt(K)  # 15 pairs, 1e-4 / 15 each


@pytest.mark.parametrize("kind", SHAPES)
def test_joint_noise_has_one_deviation_everywhere(kind):
    found = release(kind, "joint", "corrected", (5.0, 6.0, 7.0))
    sigma = (2.0 if kind == "zero" else math.sqrt(6.0)) / SHARE
    assert follows(found.counts - 5.0, stats.norm(scale=sigma))
    assert follows(found.sums - 6.0, stats.norm(scale=sigma))
    if kind in ("spherical", "diag"):
        assert follows(found.second_moments - 7.0, stats.norm(scale=sigma))


def test_joint_noise_on_matrices_is_isotropic():
    """By Frobenius's inner product every direction has the same deviation, all independent."""
    sigma = math.sqrt(6.0) / SHARE
    noise = release("full", "joint", "corrected").second_moments
    np.testing.assert_array_equal(noise, noise.transpose(0, 2, 1))
    assert follows((noise**2).sum(axis=(1, 2)) / sigma**2, stats.chi2(6))
    rng = np.random.default_rng(1)
    for _ in range(5):
        direction = rng.standard_normal((3, 3))
        direction = direction + direction.T
        direction /= np.linalg.norm(direction)
        assert follows(np.einsum("kab,ab->k", noise, direction), stats.norm(scale=sigma))
    rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = np.einsum("ab,kbc,dc->kad", rotation, noise, rotation)
    assert follows(turned[:, 0, 0], stats.norm(scale=sigma))
    assert follows(turned[:, 0, 1], stats.norm(scale=sigma / math.sqrt(2.0)))


@pytest.mark.parametrize(("estimate", "kappa", "c"), [(MLE, 0.0, 0.0), (MAP, 1.0, 10.0)])
def test_noise_on_parameters_has_the_scales_of_the_paper(estimate, kappa, c):
    """Eqs. (15) to (18), and (23), (30) for MAP, with the noisy N_k in the scale."""
    n, s = 100.0, 1000.0  # the second moments are so large that no floor acts
    for kind in ("spherical", "full"):
        noisy = release(kind, "laplace", "paper", (n, 7.0, s), seed=2)
        weights, means, covariances, acted = parameters_from(noisy, int(n) * K, estimate)
        assert not acted[2].any()
        likelihood = parameters_from(noisy, int(n) * K, MLE)
        counts = n * K * likelihood[0]  # N pi~_k
        if estimate is MLE:
            np.testing.assert_array_equal(weights, likelihood[0])
        else:
            np.testing.assert_allclose(weights, (counts + 1.0) / (n * K + K), rtol=1e-12)
        unit = (means - (7.0 / (counts + kappa))[:, None]) * (counts + kappa)[:, None]
        assert follows(unit, stats.laplace(scale=2.0 * math.sqrt(3.0) / SHARE))
        plain = likelihood[1]  # the noisy maximum-likelihood means stand in the covariances
        pull = counts**2 / (counts + kappa)
        prior = 0.1 if kappa else 0.0
        if kind == "spherical":
            value = (prior + (s - pull * (plain**2).sum(axis=1)) / 3.0) / (counts + c)
            noise = (covariances - value) * 3.0 * (counts + c) * SHARE  # beta = eps' d N_k
            assert follows(noise, stats.expon())
            assert noise.mean() == pytest.approx(1.0, abs=4.0 / math.sqrt(K))
            continue
        outer = plain[:, :, None] * plain[:, None, :]
        value = (prior + s) * np.eye(3) - pull[:, None, None] * outer
        value /= (counts + c)[:, None, None]
        noise = (covariances - value) * (2.0 * SHARE * (counts + c))[:, None, None]  # / lambda
        # a Wishart matrix of d + 1 degrees of freedom: expectation (d + 1) I
        assert follows(np.diagonal(noise, axis1=1, axis2=2), stats.chi2(4))
        assert follows(np.trace(noise, axis1=1, axis2=2), stats.chi2(12))
        error = 5.0 * math.sqrt(8.0 / K)
        np.testing.assert_allclose(noise.mean(axis=0), 4.0 * np.eye(3), rtol=0, atol=error)


# --- parameters -----------------------------------------------------------------------------


def mixture(kind, k=3, d=2, seed=0):
    """Rows in the unit ball and a mixture whose responsibilities split them."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-0.5, 0.5, (k, d))
    X = np.vstack([c + 0.1 * rng.standard_normal((200, d)) for c in centers])
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    shape = {"spherical": (k,), "diag": (k, d), "full": (k, d, d)}[kind]
    covariances = np.full(shape, 0.02) * (np.eye(d) if kind == "full" else 1.0)
    return X, MixtureParameters(np.full(k, 1.0 / k), centers, covariances, kind)


def m_step(X, p, alpha, kappa, c, scale):
    """Weights, means and covariances of Section 4.1, written out; c is nu_0 + d + 2."""
    gamma = responsibilities(X, p)
    counts = gamma.sum(axis=0)
    mle = gamma.T @ X / counts[:, None]
    full = np.empty((len(counts), X.shape[1], X.shape[1]))
    for j, n in enumerate(counts):
        u = X - mle[j]
        scatter = (gamma[:, j, None] * u).T @ u + kappa * n / (kappa + n) * np.outer(mle[j], mle[j])
        full[j] = (scale * np.eye(X.shape[1]) + scatter) / (n + c)
    diagonals = np.diagonal(full, axis1=1, axis2=2)
    of_type = {"full": full, "diag": diagonals, "spherical": diagonals.mean(axis=1)}
    weights = (counts + alpha - 1.0) / (len(X) + len(counts) * (alpha - 1.0))
    return weights, mle * (counts / (counts + kappa))[:, None], of_type[p.covariance_type]


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
def test_without_noise_it_is_the_m_step(kind, project, d):
    X, parameters = mixture(kind, d=d)
    gamma = responsibilities(X, parameters)
    seconds = np.einsum("nk,ni,nj->kij", gamma, X, X)
    diagonals = np.diagonal(seconds, axis1=1, axis2=2)
    seconds = {"full": seconds, "diag": diagonals, "spherical": diagonals.sum(axis=1)}[kind]
    noisy = NoisedStatistics(gamma.sum(axis=0), gamma.T @ X, seconds)
    for prior in ((1.0, 0.0, 0.0, 0.0), (2.0, 1.0, 2.0 * (d + 2.0), 0.1)):
        estimate = Estimate(*prior, 1e-6, project)
        *found_parameters, acted = parameters_from(noisy, len(X), estimate)
        assert not acted.any()
        for value, expected in zip(found_parameters, m_step(X, parameters, *prior), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
@pytest.mark.parametrize("noise", ["joint", "laplace", "gaussian"])
def test_a_fit_of_map_almost_without_noise_repeats_the_m_step(noise, kind):
    X, found = mixture(kind)
    start = {f"{name}_init": getattr(found, name) for name in ("weights", "means", "covariances")}
    private = PrivateGaussianMixture(
        3,
        covariance_type=kind,
        mean_noise=noise,
        estimate="map",
        epsilon=1e12,
        accounting="cdp",
        norm_bound=1.0,
        max_iter=5,
        random_state=0,
        **start,
    ).fit(X)
    for _ in range(5):
        found = MixtureParameters(*m_step(X, found, 2.0, 1.0, 8.0, 0.1), kind)
    settings = PlanSettings(X.shape[1], 3, 5, kind, noise, "corrected", 1e-3)
    scales = [part.scale for part in perturbations(settings, private.share_).values()]
    # noise of ten deviations, five iterations, each at most doubling a difference
    error = 10 * 2**5 * max(scales) / (len(X) * found.weights.min())
    assert error < 1e-4
    for name in ("weights", "means", "covariances"):
        expected = getattr(found, name)
        np.testing.assert_allclose(getattr(private, f"{name}_"), expected, rtol=0, atol=error)


def test_without_second_moments_there_are_no_covariances():
    noisy = NoisedStatistics(np.array([30.0, 70.0]), np.array([[3.0, 0.0], [0.0, 7.0]]), None)
    weights, means, covariances, acted = parameters_from(noisy, 100, MLE)
    assert covariances is None
    np.testing.assert_allclose(weights, [0.3, 0.7])
    np.testing.assert_allclose(means, [[0.1, 0.0], [0.0, 0.1]])
    assert not acted.any()


def test_weights_are_cut_and_rescaled():
    """Footnote 4: negative is 0, above one is 1, the sum is 1; a count is at least one row."""
    noisy = NoisedStatistics(np.array([-5.0, 150.0, 100.0]), np.ones((3, 1)), None)
    weights, means, _, acted = parameters_from(noisy, 100, MLE)
    np.testing.assert_allclose(weights, [0.0, 0.5, 0.5])
    np.testing.assert_allclose(means, [[1.0], [0.02], [0.02]])
    assert acted[0].tolist() == [True, True, False]
    weights, _, _, _ = parameters_from(noisy, 100, MAP)
    np.testing.assert_allclose(weights, [1 / 103, 51 / 103, 51 / 103])

    small = NoisedStatistics(np.array([0.5, 99.5]), np.full((2, 1), 0.25), None)
    weights, means, _, acted = parameters_from(small, 100, MLE)
    np.testing.assert_allclose(weights, [0.005, 0.995])
    np.testing.assert_allclose(means, [[0.25], [0.25 / 99.5]])
    assert acted[0].tolist() == [True, False]

    none = NoisedStatistics(np.array([-1.0, -2.0]), np.zeros((2, 1)), None)
    weights, _, _, acted = parameters_from(none, 100, MLE)
    np.testing.assert_allclose(weights, [0.5, 0.5])
    assert acted[0].all()


@pytest.mark.parametrize("project", [True, False])
def test_means_are_drawn_in_for_the_sound_variant_alone(project):
    noisy = NoisedStatistics(np.full(2, 50.0), np.array([[150.0, 200.0], [30.0, 0.0]]), None)
    estimate = Estimate(1.0, 0.0, 0.0, 0.0, 1e-3, project)
    _, means, _, acted = parameters_from(noisy, 100, estimate)
    assert acted[1].tolist() == [True, False]
    np.testing.assert_allclose(means, [[0.6, 0.8] if project else [3.0, 4.0], [0.6, 0.0]])


@pytest.mark.parametrize("project", [True, False])
def test_variances_stay_between_the_floor_and_the_balls(project):
    estimate = Estimate(1.0, 0.0, 0.0, 0.0, 0.01, project)
    counts, sums = np.full(4, 25.0), np.zeros((4, 2))
    most = 1.0 if project else 3.0
    values = np.array([-1.0, 0.001, 0.5, 3.0])
    kept = np.array([0.01, 0.01, 0.5, most])
    changed = [True, True, False, project]

    spherical = NoisedStatistics(counts, sums, 50.0 * values)
    _, _, found, acted = parameters_from(spherical, 100, estimate)
    np.testing.assert_allclose(found, kept)
    assert acted[2].tolist() == changed

    diag = NoisedStatistics(counts, sums, 25.0 * np.stack([values, np.full(4, 0.5)], axis=1))
    _, _, found, acted = parameters_from(diag, 100, estimate)
    np.testing.assert_allclose(found, np.stack([kept, np.full(4, 0.5)], axis=1))
    assert acted[2].tolist() == changed

    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])

    def turned(a):
        return np.einsum(
            "ab,kb,cb->kac", rotation, np.stack([a, np.full(4, 0.5)], axis=1), rotation
        )

    full = NoisedStatistics(counts, sums, 25.0 * turned(values))
    _, _, found, acted = parameters_from(full, 100, estimate)
    np.testing.assert_allclose(found, turned(kept), atol=1e-15)
    assert acted[2][[0, 1]].all()
    assert acted[2][3] == project


@pytest.mark.parametrize("estimate", [MLE, MAP], ids=["mle", "map"])
@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
@pytest.mark.filterwarnings("error")
def test_no_noise_is_too_absurd(kind, project, estimate):
    """Whatever comes out of the noise gives a valid mixture (its class refuses others)."""
    rng = np.random.default_rng(0)
    d, k = 3, 4
    estimate = Estimate(*list(vars(estimate).values())[:5], project)
    for size in (0.0, 1e-300, 1e-30, 1.0, 1e3, 1e8, 1e12, 1e20, 1e50, 1e160, 1e300):
        for other in (1.0, size):
            shape = {"spherical": (k,), "diag": (k, d), "full": (k, d, d)}[kind]
            second = size * rng.standard_normal(shape)
            if kind == "full":
                second = 0.5 * second + 0.5 * second.transpose(0, 2, 1)
            counts, sums = rng.standard_normal(k) * other, size * rng.standard_normal((k, d))
            noisy = NoisedStatistics(counts, sums, second)
            weights, means, covariances, _ = parameters_from(noisy, 100, estimate)
            found = MixtureParameters(weights, means, covariances, kind)
            if project:
                assert (np.linalg.norm(found.means, axis=1) <= 1 + 1e-12).all()
                values = np.linalg.eigvalsh(found.full_covariances())
                assert values.min() >= 1e-6 * (1 - 1e-9)
                assert values.max() <= 1 + 1e-12
