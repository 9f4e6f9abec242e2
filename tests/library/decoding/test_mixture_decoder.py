"""The Gaussian decoder against mixtures whose features are known in closed form."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from privclust.core.lloyd import lloyd, nearest_center_statistics, plus_plus
from privclust.decoding import Decoded, Moments
from privclust.decoding._mixture_decoder import (
    decode_mixture,
    expected_residual,
    fit_density,
    kmeans_of_mixture,
)
from privclust.decoding._mixture_fit import MixtureFit
from privclust.kmeans import CompressiveKMeans
from privclust.privacy import NoiseWarning
from privclust.privacy.bounds import Box
from privclust.sketches import FeatureSums, draw_frequencies

CENTERS = np.array([[-7.0, 0.0], [7.0, 2.0], [0.0, 9.0]])
WEIGHTS = np.array([0.5, 0.3, 0.2])
VARIANCES = np.array([1.0, 1.0, 1.0])
TINY = 1e-12  # expected residual of features without error


def features(omega, centers=CENTERS, weights=WEIGHTS, variances=VARIANCES):
    """Mean of exp(i omega'x) over a mixture of isotropic Gaussians."""
    squares = (omega**2).sum(axis=0)
    return weights @ np.exp(1j * (centers @ omega) - 0.5 * np.outer(variances, squares))


def moments(centers=CENTERS, weights=WEIGHTS, variances=VARIANCES):
    mean = weights @ centers
    return Moments(mean, weights @ ((centers - mean) ** 2 + variances[:, None]))


def decoded(
    z, omega, k=3, about=None, spread="per_cluster", expected=TINY, n_init=5, seed=0, noisy=False
):
    return decode_mixture(
        z,
        omega,
        k,
        moments() if about is None else about,
        expected,
        spread=spread,
        n_init=n_init,
        rng=np.random.default_rng(seed),
        noisy=noisy,
    )


def matched(found, truth):
    order = cdist(truth, found).argmin(axis=1)
    assert len(set(order)) == len(truth)
    return order


# --- exact mixtures --------------------------------------------------------------------------


@pytest.mark.parametrize("spread", ["per_cluster", "shared"])
@pytest.mark.parametrize("seed", range(3))
def test_exact_mixture_is_found_exactly(spread, seed):
    """Clusters lie ten deviations apart: their k-means centers are their means."""
    omega = draw_frequencies(2, 120, variance=4.0, random_state=seed)
    found = decoded(features(omega), omega, spread=spread, seed=seed)
    order = matched(found.centers, CENTERS)
    np.testing.assert_allclose(found.centers[order], CENTERS, atol=1e-4)
    np.testing.assert_allclose(found.weights[order], WEIGHTS, atol=1e-3)
    np.testing.assert_allclose(found.variances, 1.0, atol=1e-3)
    assert found.residual < 1e-7
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_each_cluster_has_its_spread():
    variances = np.array([0.25, 1.0, 2.0])
    omega = draw_frequencies(2, 150, variance=4.0, random_state=0)
    z = features(omega, variances=variances)
    found = decoded(z, omega, about=moments(variances=variances))
    assert sorted(found.variances) == pytest.approx(variances, rel=1e-2)
    shared = decoded(z, omega, about=moments(variances=variances), spread="shared")
    assert len(set(shared.variances)) == 1
    assert shared.residual > 100 * found.residual


@pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 4), (4, 1)])
def test_small_problems(k, d):
    centers = 12.0 * np.arange(k)[:, None] * np.ones(d)
    truth = centers, np.full(k, 1.0 / k), np.ones(k)
    omega = draw_frequencies(d, 100, variance=4.0, random_state=0)
    found = decoded(features(omega, *truth), omega, k, moments(*truth))
    order = matched(found.centers, centers)
    np.testing.assert_allclose(found.centers[order], centers, atol=1e-3)


@pytest.mark.parametrize(("a", "b"), [(1e-7, 0.3), (1e6, -4e8), (1.0, 1e6)])
def test_moves_and_scales_with_the_data(a, b):
    """The decoder works in units of the data, so only rounding of phases of size b / a differs."""
    omega = draw_frequencies(2, 120, variance=4.0, random_state=0)
    plain = decoded(features(omega), omega)
    truth = a * CENTERS + b, WEIGHTS, a**2 * VARIANCES
    moved = decoded(features(omega / a, *truth), omega / a, about=moments(*truth))
    order = matched((moved.centers - b) / a, plain.centers)
    np.testing.assert_allclose((moved.centers[order] - b) / a, plain.centers, atol=1e-4)
    np.testing.assert_allclose(moved.weights[order], plain.weights, atol=1e-3)


def test_order_of_frequencies_and_conjugates_do_not_matter():
    """A feature and its conjugate at the opposite frequency tell the same."""
    omega = draw_frequencies(2, 120, variance=4.0, random_state=0)
    z, rng = features(omega), np.random.default_rng(1)
    order, signs = rng.permutation(120), rng.choice([-1, 1], 120)
    turned = np.where(signs > 0, z, z.conj())[order]
    found = decoded(turned, (omega * signs)[:, order])
    np.testing.assert_allclose(found.centers[matched(found.centers, CENTERS)], CENTERS, atol=1e-4)


def test_same_seed_same_bytes():
    omega = draw_frequencies(2, 60, variance=4.0, random_state=0)
    first, second = (decoded(features(omega), omega, seed=5) for _ in range(2))
    assert first.centers.tobytes() == second.centers.tobytes()
    assert first.variances.tobytes() == second.variances.tobytes()


def test_moments_that_are_far_off_cost_no_accuracy():
    """They say where to start: a mean off by a deviation, variances off by a factor of two."""
    omega = draw_frequencies(2, 120, variance=4.0, random_state=0)
    known = moments()
    for about in (
        Moments(known.mean + np.sqrt(known.variances), known.variances),
        Moments(known.mean, 2.0 * known.variances),
        Moments(known.mean, 0.5 * known.variances),
    ):
        found = decoded(features(omega), omega, about=about)
        order = matched(found.centers, CENTERS)
        np.testing.assert_allclose(found.centers[order], CENTERS, atol=1e-3)


@pytest.mark.parametrize("height", [0.0, 1e-6, 1e6, 1e60])
@pytest.mark.parametrize("spread", ["per_cluster", "shared"])
def test_what_is_no_sketch_of_anything_gives_numbers(height, spread):
    rng = np.random.default_rng(0)
    omega = draw_frequencies(2, 40, random_state=0)
    noise = height * (rng.standard_normal(40) + 1j * rng.standard_normal(40))
    found = decoded(noise, omega, spread=spread, expected=80 * height**2)
    for array in (found.centers, found.weights, found.variances, found.residual):
        assert np.isfinite(array).all()
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found.weights >= 0).all()


@pytest.mark.filterwarnings("error")
def test_frequencies_at_which_all_atoms_vanish():
    omega = draw_frequencies(2, 40, variance=1e-12, random_state=0)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(40) + 1j * rng.standard_normal(40)
    assert np.isfinite(decoded(noise, omega).centers).all()


# --- pieces ----------------------------------------------------------------------------------


def test_pruning_keeps_what_is_needed():
    """Of five atoms two carry no weight, or next to none: they go, and weights are refitted."""
    omega = draw_frequencies(2, 150, variance=4.0, random_state=0)
    fit = MixtureFit(features(omega), omega, moments(), "per_cluster")
    extra = np.array([[-7.0, 12.0], [6.0, -9.0]])
    centers = (np.vstack([CENTERS, extra])[[3, 0, 4, 1, 2]] - fit.origin) / fit.unit
    variances = np.ones(5) / fit.unit**2
    weights, kept, _ = fit.prune((np.full(5, 0.2), centers, variances), 3)
    np.testing.assert_allclose(kept, centers[[1, 3, 4]])
    np.testing.assert_allclose(weights, WEIGHTS, atol=1e-6)


@pytest.mark.parametrize("has_covariances", [False, True])
def test_residuals_are_those_of_the_mixture_s_features(has_covariances):
    rng = np.random.default_rng(5)
    omega = rng.normal(0.0, 0.7, (2, 80))
    left = np.exp(1j * rng.uniform(0.0, 6.0, 80)) * rng.random(80)
    weights, centers, spreads = np.array([0.3, 0.7]), rng.standard_normal((2, 2)), [0.7, 1.2]
    covariances = np.square(spreads)[:, None, None] * np.eye(2)
    if has_covariances:
        covariances = np.array([[[1.0, 0.3], [0.3, 0.5]], [[2.0, -0.4], [-0.4, 1.0]]])
        spreads = np.linalg.cholesky(covariances)
    problem = MixtureFit(left, omega, Moments(np.zeros(2), np.ones(2)), "per_cluster")
    squares = np.einsum("im,kij,jm->km", omega, covariances, omega)
    own = weights @ np.exp(1j * centers @ omega - 0.5 * squares)
    found = problem.residual_of(weights, centers, np.array(spreads))
    assert found == pytest.approx((np.abs(left - own) ** 2).sum(), rel=1e-10)


def test_loss_of_an_atom_is_what_refitting_without_it_adds():
    """alpha^2 / (G^-1)_kk, against least squares without the atom."""
    omega = draw_frequencies(2, 150, variance=4.0, random_state=0)
    fit = MixtureFit(features(omega), omega, moments(), "per_cluster")
    rng = np.random.default_rng(1)
    centers = rng.standard_normal((4, 2))
    gram, correlations = fit.gram(centers, np.full(4, 0.1))

    def residual(kept):
        weights = np.linalg.solve(gram[np.ix_(kept, kept)], correlations[kept])
        return -weights @ correlations[kept], weights

    least, weights = residual(np.arange(4))
    losses = weights**2 / np.diag(np.linalg.inv(gram))
    for k in range(4):
        without = residual(np.delete(np.arange(4), k))[0]
        assert without - least == pytest.approx(losses[k], rel=1e-8)


def test_an_atom_over_two_clusters_is_split_along_their_line():
    """Wherever the origin of the units is."""
    line = np.array([0.6, 0.0, 0.0, -0.8, 0.0])
    centers = 2.0 + np.outer([-3.0, 3.0], line)
    truth = centers, np.full(2, 0.5), np.ones(2)
    about = moments(*truth)
    omega = draw_frequencies(5, 400, variance=4.0, random_state=0)
    for off in (0.0, 5.0):
        at = Moments(about.mean + off, about.variances)
        fit = MixtureFit(features(omega, *truth), omega, at, "per_cluster")
        middle = (about.mean - fit.origin) / fit.unit
        ways = fit._halves((np.ones(1), middle[None], np.ones(1))) - middle
        cosines = ways @ line / np.linalg.norm(ways, axis=1)
        np.testing.assert_allclose(np.abs(cosines), 1.0, atol=0.05)
        assert set(np.sign(cosines)) == {-1.0, 1.0}


@pytest.mark.parametrize(("spread", "n_numbers"), [("per_cluster", 4), ("shared", 3)])
@pytest.mark.parametrize(("more", "n_atoms"), [(0.01, 3), (-0.01, 6)])
def test_more_atoms_must_explain_a_penalty_each(monkeypatch, spread, n_numbers, more, n_atoms):
    """BIC: log(2 m) half-variances for each number of an atom, whatever the search has found."""
    omega = draw_frequencies(2, 120, variance=4.0, random_state=0)
    unit = math.sqrt(moments().variance)
    three = WEIGHTS, (CENTERS - moments().mean) / unit, VARIANCES / unit**2
    six = three[0].repeat(2) / 2, three[1].repeat(2, axis=0), three[2].repeat(2)
    expected, residual = 1.0, 0.5
    penalty = n_numbers * math.log(2 * 120) * 0.5 * expected / 120
    score = residual + (3 + more) * penalty
    monkeypatch.setattr(MixtureFit, "search", lambda *_: (three, residual, six, score))
    monkeypatch.setattr(MixtureFit, "repaired", lambda *_: (three, residual))
    how = {"spread": spread, "n_init": 1, "rng": np.random.default_rng(0), "noisy": False}
    fit = fit_density(features(omega), omega, 3, moments(), expected, **how, covariances=False)
    assert len(fit.atoms[0]) == n_atoms


def test_a_density_gives_way_by_what_noise_may_explain():
    """Each atom but one to the Gaussian of the data's moments; less than 2 % of it is none."""
    omega = draw_frequencies(2, 150, variance=4.0, random_state=0)
    fit = MixtureFit(features(omega), omega, moments(), "per_cluster")
    density = 2.0 * WEIGHTS, (CENTERS - fit.origin) / fit.unit, np.full(3, 1.0 / fit.unit)
    z = features(omega) * np.exp(-1j * fit.origin @ omega)
    wide = np.exp(-0.5 * fit.unit**2 * (omega**2).sum(axis=0))
    alone = (np.abs(z - wide * (wide @ z.real) / (wide @ wide)) ** 2).sum()
    residual = 0.25 * alone
    for part, share in ((0.019, None), (0.021, 0.021), (0.4, 0.4), (3.0, 1.0)):
        of_each = part * (alone - residual) / 2
        weights, centers, spreads = fit.shrunk(density, residual, of_each)
        if share is None:
            assert len(weights) == 3
            continue
        np.testing.assert_allclose(weights, [*(1.0 - share) * WEIGHTS, share], atol=1e-6)
        np.testing.assert_array_equal(centers[-1], 0.0)
        assert spreads[-1] == 1.0


@pytest.mark.parametrize(("r", "sigma"), [(80, 0.0), (20, 0.0), (80, 2.0), (20, 2.0)])
def test_expected_residual_is_that_of_the_true_mixture(r, sigma):
    """Mean of f over 1500 data sets; false-alarm rate about 1e-6 (five standard errors).

    The bound is attained where |z| is known; it is estimated with a relative error of order 1 / n.
    """
    m, n, trials = 80, 200, 1500
    omega = draw_frequencies(2, m, variance=4.0, random_state=0)
    truth, rng = features(omega), np.random.default_rng(1)
    excess, bounds = np.empty(trials), np.empty(trials)
    for t in range(trials):
        X = CENTERS[rng.choice(3, n, p=WEIGHTS)] + rng.standard_normal((n, 2))
        sums = FeatureSums(omega, n_measurements=r, mask_seed=t).add(X).values
        sums = sums + sigma * (rng.standard_normal(m) + 1j * rng.standard_normal(m))
        scale = r / m * n
        z = sums / scale
        bounds[t] = expected_residual(z, n, r / m, (sigma / scale) ** 2)
        excess[t] = (np.abs(z - truth) ** 2).sum() - bounds[t]
    error = 5 * excess.std() / math.sqrt(trials)
    assert abs(excess.mean()) < error + 2 * bounds.mean() / n
    assert error < 0.1 * bounds.mean()


def test_kmeans_of_clusters_that_do_not_overlap_are_their_means():
    rng = np.random.default_rng(0)
    for start in (CENTERS + 1.0, np.full((3, 2), [[0.0], [0.1], [0.2]])):
        centers, weights, _ = kmeans_of_mixture(WEIGHTS, CENTERS, VARIANCES, start, rng)
        order = matched(centers, CENTERS)
        np.testing.assert_allclose(centers[order], CENTERS, atol=1e-9)
        np.testing.assert_allclose(weights[order], WEIGHTS, atol=1e-3)


def test_kmeans_of_clusters_that_overlap():
    """Two halves of N(+-a, 1) in one dimension: centers at +-E|x|; five standard errors."""
    a = 0.7
    right = a * (1 - 2 * stats.norm.cdf(-a)) + 2 * stats.norm.pdf(a)
    start = np.array([[-a], [a]])
    found = [
        kmeans_of_mixture(np.full(2, 0.5), start, np.ones(2), start, np.random.default_rng(seed))[0]
        for seed in range(20)
    ]
    centers = np.sort(np.array(found)[:, :, 0], axis=1)
    error = 5 * centers.std(axis=0) / math.sqrt(20)
    assert (np.abs(centers.mean(axis=0) - [-right, right]) < error).all()
    assert (error < 0.05).all()


def test_kmeans_of_more_atoms_than_clusters():
    """Three atoms, two centers: the two that are close share one."""
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [40.0, 0.0]])
    weights = np.array([0.25, 0.25, 0.5])
    found, parts, _ = kmeans_of_mixture(
        weights,
        centers,
        np.full(3, 0.01),
        np.array([[0.0, 0.0], [4.0, 0.0]]),
        np.random.default_rng(0),
    )
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], [[2.0, 0.0], [40.0, 0.0]], atol=1e-9)
    np.testing.assert_allclose(parts, 0.5, atol=1e-3)


def test_kmeans_of_nothing_stays_at_the_start():
    start = np.arange(6.0).reshape(3, 2)
    centers, weights, _ = kmeans_of_mixture(
        np.zeros(3), CENTERS, VARIANCES, start, np.random.default_rng(0)
    )
    np.testing.assert_array_equal(centers, start)
    np.testing.assert_array_equal(weights, 1 / 3)


@pytest.mark.parametrize("epsilon", [0.003, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_centers_of_noise_share_out_the_box(epsilon, seed):
    """Rows spread evenly over the box, of which noise hides all but that they lie in it."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (5000, 2))
    least = min(lloyd(X, plus_plus(X, 12, rng), 100, 1e-6)[1] for _ in range(5))
    model = CompressiveKMeans(12, epsilon=epsilon, delta=1e-6, bounds=(-1, 1), random_state=seed)
    with pytest.warns(NoiseWarning):
        centers = model.fit(X).cluster_centers_
    assert nearest_center_statistics(X, np.ascontiguousarray(centers))[2] < 1.25 * least


def test_drawn_in():
    found = Decoded(CENTERS, WEIGHTS, VARIANCES, 0, 0, np.ones(3, dtype=bool), 0, 1)
    box = Box(np.array([-5.0, 1.0]), np.array([5.0, 4.0]))
    np.testing.assert_array_equal(found.clipped(box).centers, [[-5, 1], [5, 2], [0, 4]])


# --- what noise explains ---------------------------------------------------------------------


def noisy_features(sigma, seed):
    """Features of the three clusters at 100 frequencies with noise, and these."""
    rng = np.random.default_rng(seed)
    omega = rng.standard_normal((2, 100)) / 2.0
    z = features(omega)
    return z + sigma * (rng.standard_normal(100) + 1j * rng.standard_normal(100)), omega


def far_points(centers):
    """Mean squared distance of points of the mixture to the nearest center, 2000 points."""
    rng = np.random.default_rng(5)
    labels = rng.choice(3, p=WEIGHTS, size=2000)
    X = CENTERS[labels] + np.sqrt(VARIANCES[labels])[:, None] * rng.standard_normal((2000, 2))
    return float((cdist(X, centers).min(axis=1) ** 2).mean())


def test_atoms_that_noise_explains_are_drawn_back():
    """Noise of 3 on features of modulus 1: following it must not beat the data's extent."""
    with_noise, without = [], []
    for seed in range(10):
        z, omega = noisy_features(3.0, seed)
        expected = 2.0 * 100 * 9.0
        for noisy, errors in ((True, with_noise), (False, without)):
            found = decoded(z, omega, expected=expected, seed=seed, noisy=noisy)
            errors.append(far_points(found.centers))
    assert np.median(with_noise) < 0.8 * np.median(without)


def test_faint_noise_changes_no_bit():
    """What noise may explain of a clear mixture is too little to matter."""
    z, omega = noisy_features(1e-3, 0)
    runs = [decoded(z, omega, expected=2.0 * 100 * 1e-6, noisy=noisy) for noisy in (True, False)]
    np.testing.assert_array_equal(runs[0].centers, runs[1].centers)


# --- which atoms are more than noise -------------------------------------------------------------


def test_noise_alone_has_no_clear_center():
    """60 fits to no rows at all."""
    for seed in range(20):
        for d in (1, 2, 5):
            fit = CompressiveKMeans(
                2, bounds=(-1, 1), neighbours="add_remove", n_frequencies=60, random_state=seed
            )
            with pytest.warns(NoiseWarning):
                fit.fit(np.empty((0, d)))
            assert not fit.is_detected_.any()


def test_of_atoms_on_one_cluster_one_is_left_and_noise_has_none():
    """Loss in closed form: an atom of weight a that is alone is missed by a^2 |atom|^2."""
    rng = np.random.default_rng(0)
    frequencies = 0.7 * rng.standard_normal((2, 400))
    atom = np.exp(1j * np.array([3.0, 1.0]) @ frequencies)
    features = 0.8 * atom + 0.02 * (rng.standard_normal(400) + 1j * rng.standard_normal(400))
    problem = MixtureFit(features, frequencies, Moments(np.zeros(2), np.ones(2)), "shared")
    centers = np.array([[3.0, 1.0], [3.0, 1.001], [-4.0, 2.0]])
    spreads = np.full(3, 1e-3)
    weights, kept = problem.detected_atoms(centers, spreads, 0.02**2)
    assert len(kept) == 1
    assert kept[0] < 2
    assert weights[0] == pytest.approx(0.8, rel=0.01)
    loss = 0.8**2 * 400
    assert len(problem.detected_atoms(centers, spreads, 1.01 * loss / 40)[1]) == 0
    assert len(problem.detected_atoms(centers, spreads, 0.97 * loss / 40)[1]) == 1
