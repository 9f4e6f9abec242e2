import copy
import math
import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

from privclust.kmeans import EUGkM, Grid, LloydKMeans
from privclust.kmeans._eugkm import _run
from privclust.privacy import NoiseWarning, PrivacyLeakWarning
from privclust.privacy.bounds import Box
from privclust.privacy.measurements import analytic_gaussian_sigma
from privclust.privacy.sensitivity import Sensitivity

MEANS = np.array([[0.5, 0.5], [-0.5, 0.2], [0.1, -0.6]])


def three_groups(n=2000, seed=0):
    """Rows in the square."""
    rng = np.random.default_rng(seed)
    return np.clip(MEANS[rng.integers(3, size=n)] + 0.08 * rng.standard_normal((n, 2)), -1, 1)


def model(k=3, **params):
    known = {"bounds": (-1.0, 1.0), "random_state": 0, "n_init": 10}
    return EUGkM(k, **(known | params))


# --- the noise -------------------------------------------------------------------------------

CASES = [
    ("add_remove", 0.0, lambda e: stats.laplace(scale=1 / e)),
    ("replace_one", 0.0, lambda e: stats.laplace(scale=2 / e)),
    ("add_remove", 1e-5, lambda e: stats.norm(scale=_sigma(1.0, e))),
    ("replace_one", 1e-5, lambda e: stats.norm(scale=_sigma(math.sqrt(2), e))),
]


def _sigma(value, epsilon):
    return analytic_gaussian_sigma(Sensitivity(value, "l2", "add-remove", "test"), epsilon, 1e-5)


@pytest.mark.parametrize(("neighbours", "delta", "law"), CASES)
def test_counts_have_the_stated_noise(neighbours, delta, law):
    """Kolmogorov-Smirnov test on all cells; false-alarm rate 1e-4 each."""
    X = three_groups()
    found = model(
        neighbours=neighbours, delta=delta, epsilon=0.5, n_samples=50_000, n_init=1, max_iter=1
    ).fit(X)
    counts, _, _ = np.histogram2d(*X.T, bins=found.grid_shape_, range=[(-1, 1)] * 2)
    noise = found.noisy_counts_ - counts.ravel()
    assert len(noise) == found.n_cells_ > 500
    assert stats.kstest(noise, law(0.5).cdf).pvalue > 1e-4


@pytest.mark.parametrize(("neighbours", "delta", "law"), CASES)
def test_losses_follow_from_the_changes_of_counts(neighbours, delta, law):
    """A row moves one count by 1, a replaced one two: l1 over b, l2^2 / (2 sigma^2)."""
    grid = Grid(Box(-np.ones(2), np.ones(2)), (4, 4))
    X = three_groups(50)
    other = np.vstack([X[1:], [[0.9, -0.9]]])
    change = grid.histogram(X) - grid.histogram(other if neighbours == "replace_one" else X[1:])
    l1, l2 = np.abs(change).sum(), np.linalg.norm(change)
    found = model(neighbours=neighbours, delta=delta, epsilon=0.5, n_samples=50).fit(X)
    release, _ = found.guarantee_.releases
    scale = law(0.5).kwds["scale"]
    assert float(release.noise.removeprefix("scale ")) == pytest.approx(scale, rel=1e-3)
    if delta:
        assert release.loss.rho == pytest.approx((l2 / scale) ** 2 / 2)
    else:
        assert release.loss.epsilon == pytest.approx(l1 / scale)
        expected = l1 * (1 / scale + math.exp(-1 / scale) - 1)  # counts change by 1 each
        assert release.loss.rho == pytest.approx(expected)


def test_number_of_cells_follows_the_noise():
    """(N eps / 10)^(2d/(2+d)) is N eps / 10 in the plane; eps is sqrt(2) / deviation."""
    for neighbours, delta, law in CASES:
        found = model(
            neighbours=neighbours, delta=delta, epsilon=0.8, n_samples=20_000, n_init=1, max_iter=1
        ).fit(three_groups(50))
        expected = 20_000 * math.sqrt(2) / law(0.8).std() / 10
        assert expected * (1 - 1e-9) <= found.n_cells_ <= expected + math.sqrt(expected) + 1


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_private_number_of_rows_costs_a_hundredth(delta):
    X = three_groups(5000)
    found = model(neighbours="add_remove", delta=delta, epsilon=0.5).fit(X)
    size, counts, _ = found.guarantee_.releases
    assert size.name == "number of rows"
    if delta:
        assert size.loss.rho == pytest.approx(0.01 * (size.loss.rho + counts.loss.rho))
    else:
        assert size.loss.epsilon == pytest.approx(0.005)
        assert counts.loss.epsilon == pytest.approx(0.495)
    cells = {
        model(neighbours="add_remove", delta=delta, epsilon=0.5, n_init=1, random_state=r)
        .fit(X)
        .n_cells_
        for r in range(8)
    }
    assert len(cells) > 1  # the grid depends on the noisy number, not on the number
    for params in ({"n_samples": 5000}, {"neighbours": "replace_one"}):
        known = {"neighbours": "add_remove", "delta": delta} | params
        counts, left_out = model(**known).fit(X).guarantee_.releases
        assert (counts.name, left_out.name) == ("cell counts", "number of records left out")


# --- what is promised ------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize("n_samples", [None, 2000])
def test_guarantees(neighbours, n_samples):
    params = {"neighbours": neighbours, "n_samples": n_samples, "epsilon": 0.7}
    pure = model(**params).fit(three_groups()).guarantee_
    assert (pure.definition, pure.relation) == ("pure", neighbours.replace("_", "-"))
    assert pure.epsilon == pytest.approx(0.7)
    assert pure.seeded
    assert len(pure.caveats) == 1
    assert "rows count as clipped to the bounds" in pure.caveats[0]
    approximate = model(delta=1e-6, **params).fit(three_groups()).guarantee_
    assert (approximate.definition, approximate.delta) == ("approximate", 1e-6)
    assert approximate.epsilon == pytest.approx(0.7, rel=1e-6)


def test_box_from_the_data_leaves_no_guarantee():
    with pytest.warns(PrivacyLeakWarning, match="bounds"):
        found = model(bounds=None).fit(three_groups())
    assert found.guarantee_.definition == "none"
    assert any("bounds" in caveat for caveat in found.guarantee_.caveats)


@pytest.mark.skipif(find_spec("opendp") is None, reason="needs opendp (privclust[secure])")
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_noise_of_a_release_cannot_be_repeated(delta):
    first, second = (
        model(random_state=None, delta=delta, n_init=2).fit(three_groups(500)) for _ in range(2)
    )
    assert not first.guarantee_.seeded
    assert (first.noisy_counts_ != second.noisy_counts_).all()


def test_centers_are_made_of_the_release_alone():
    """Data with the same noisy counts give the same centers, wherever rows lie in their cells."""
    X = three_groups(300)
    first = model(epsilon=2.0).fit(X)
    shape = np.array(first.grid_shape_)
    cells = np.minimum((X + 1) / 2 * shape // 1, shape - 1)
    moved = (cells + np.random.default_rng(5).uniform(0.01, 0.99, X.shape)) / shape * 2 - 1
    second = model(epsilon=2.0).fit(moved)
    assert not np.isclose(X, moved).all()
    assert first.noisy_counts_.tobytes() == second.noisy_counts_.tobytes()
    assert first.cluster_centers_.tobytes() == second.cluster_centers_.tobytes()


# --- what is computed ------------------------------------------------------------------------


def test_without_noise_to_speak_of_it_is_k_means_of_the_cells():
    """At a large epsilon centers are within a cell's half width of those of k-means."""
    X = three_groups()
    found = model(epsilon=1000.0).fit(X)
    best = LloydKMeans(3, init=MEANS).fit(X)
    nearest = cdist(best.cluster_centers_, found.cluster_centers_)
    assert nearest.min(axis=1).max() < 1 / min(found.grid_shape_)
    squared = cdist(X, found.cluster_centers_, "sqeuclidean")
    np.testing.assert_array_equal(found.labels_, squared.argmin(axis=1))
    np.testing.assert_array_equal(found.predict(X), found.labels_)


def test_signed_counts_two_rules():
    """A total within its noise stays, a mean outside is clipped, else the weighted mean."""
    grid = Grid(Box(np.zeros(1), np.full(1, 4.0)), (4,))  # middles 0.5, 1.5, 2.5, 3.5
    start = np.array([[1.0], [3.0]])
    heard, _, _ = _run(grid, np.array([6.0, 2.0, 0.4, 0.4]), start, 1.0, 1)
    np.testing.assert_allclose(heard, [[0.75], [3.0]])  # 0.8 <= 1.0 * sqrt(2) stays
    quiet, _, _ = _run(grid, np.array([6.0, 2.0, 0.4, 0.4]), start, 0.5, 1)
    np.testing.assert_allclose(quiet, [[0.75], [3.0]])  # 0.8 > 0.71: (1.0 + 1.4) / 0.8
    outside, _, _ = _run(grid, np.array([6.0, -4.0, -3.0, 9.0]), start, 0.1, 1)
    # (3 - 6) / 2 = -1.5 and (-7.5 + 31.5) / 6 = 4
    np.testing.assert_allclose(outside, [[0.0], [4.0]])
    negative, _, _ = _run(grid, np.array([1.0, -3.0, 1.0, 1.0]), start, 0.1, 1)
    np.testing.assert_allclose(negative, [[1.0], [3.0]])


def test_run_agrees_with_lloyd_on_repeated_cells():
    """With whole, positive counts and no noise it is k-means of cells that many times."""
    rng = np.random.default_rng(3)
    grid = Grid(Box(-np.ones(2), np.ones(2)), (6, 5))
    counts = rng.integers(1, 9, 30).astype(float)
    x, y = (-1 + (2 * np.arange(m) + 1) / m for m in (6, 5))
    middles = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    start = rng.uniform(-1, 1, (4, 2))
    centers, error, _ = _run(grid, counts, start, 0.0, 100)
    expected = LloydKMeans(4, init=start).fit(np.repeat(middles, counts.astype(int), axis=0))
    np.testing.assert_allclose(centers, expected.cluster_centers_, atol=1e-12)
    assert error == pytest.approx(expected.inertia_)


def test_start_of_least_noisy_error_is_kept():
    X = three_groups()
    grid = Grid(Box(-np.ones(2), np.ones(2)), model().fit(X).grid_shape_)

    def error(fit):
        return grid.statistics(fit.noisy_counts_, fit.cluster_centers_)[3]

    found = model(6, n_init=12).fit(X)
    one = model(6, n_init=1).fit(X)
    np.testing.assert_array_equal(found.noisy_counts_, one.noisy_counts_)
    assert error(found) <= error(one)
    errors = [_run(grid, found.noisy_counts_, X[6 * i : 6 * i + 6], 0.0, 100)[1] for i in range(5)]
    assert len(set(errors)) > 1  # so starts matter here


def test_scaling_data_and_bounds_scales_the_centers():
    X = three_groups()
    plain = model(bounds=([-1, -1.5], [1, 1])).fit(X)
    for c in (2.0**-20, 2.0**30):
        scaled = model(bounds=([-c, -1.5 * c], [c, c])).fit(c * X)
        np.testing.assert_allclose(scaled.cluster_centers_, c * plain.cluster_centers_, rtol=1e-12)


def test_rows_outside_are_drawn_in():
    X = three_groups(300)
    far = X.copy()
    far[7] = [3.0, -0.2]
    near = X.copy()
    near[7] = [1.0, -0.2]
    with pytest.warns(UserWarning, match="outside bounds are clipped"):
        found = model().fit(far)
    np.testing.assert_array_equal(found.noisy_counts_, model().fit(near).noisy_counts_)


def test_single_precision_gives_the_same_bytes():
    X = three_groups().astype(np.float32)
    first, second = model().fit(X), model().fit(X.astype(np.float64))
    assert first.noisy_counts_.tobytes() == second.noisy_counts_.tobytes()
    np.testing.assert_array_equal(first.labels_, second.labels_)


# --- bad and degenerate input ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number greater than 0, got 0.0"),
        ({"delta": -0.1}, "delta must be a finite number at least 0, got -0.1"),
        ({"delta": 1.0}, "delta must be less than 1, got 1.0"),
        ({"neighbours": "replace one"}, "neighbours must be one of replace_one, add_remove, got"),
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": 21}, "n_clusters=21 for n_samples=20"),
        ({"n_samples": 0}, "n_samples must be an integer of at least 1, got 0"),
        ({"n_samples": 10**9}, r"the grid needs 5e\+07 cells \(1.2e\+09 bytes\).*max_cells"),
        ({"n_init": 0}, "n_init"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_cells": 0}, "max_cells"),
        ({"bounds": (1.0, -1.0)}, "bounds must be finite with low < high on every axis"),
        ({"bounds": (-1.0, np.inf)}, "bounds must be finite"),
        ({"bounds": ([-1.0] * 3, 1.0)}, r"bounds must be .low, high., .* shape \(2,\)"),
        ({"bounds": 1.0}, "bounds must be"),
        ({"bounds": (-1e200, 1e200)}, "bounds must have a magnitude of at most 1e.100"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        model().set_params(**params).fit(three_groups(20))


@pytest.mark.parametrize("epsilon", [1e-30, 1e-3, 1.0])
@pytest.mark.filterwarnings("error", "ignore::privclust.privacy.NoiseWarning")
def test_degenerate_data_gives_centers_in_the_box(epsilon):
    rng = np.random.default_rng(0)
    for X in (
        rng.uniform(-1, 1, (12, 1)),
        np.full((9, 2), 0.4),
        np.ones((5, 2)),
        rng.uniform(-0.1, 0.1, (4, 10)),
        rng.uniform(-0.1, 0.1, (2, 40)),
    ):
        for neighbours in ("replace_one", "add_remove"):
            found = model(2, epsilon=epsilon, neighbours=neighbours, n_init=2).fit(X)
            assert np.abs(found.cluster_centers_).max() <= 1.0
            assert set(found.labels_) <= {0, 1}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_row_counts_in_the_nearest_cell(dtype):
    """NaN is the middle of the box, where an upper cell begins."""
    X = three_groups(20).astype(dtype)
    largest = np.finfo(dtype).max
    for row, as_if in (
        ([np.nan, 0.5], [0.0, 0.5]),
        ([np.inf, -np.inf], [1.0, -1.0]),
        ([-largest, largest], [-1.0, 1.0]),
    ):
        far, near = X.copy(), X.copy()
        far[7], near[7] = row, as_if
        with pytest.warns(UserWarning, match="clipped"):
            found = model(epsilon=3.0, missing="middle").fit(far)
        expected = model(epsilon=3.0, missing="middle").fit(near)
        np.testing.assert_array_equal(found.noisy_counts_, expected.noisy_counts_)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model(bounds=None).fit(np.full((20, 2), np.nan))


@pytest.mark.parametrize("n_samples", [None, 1000])
def test_any_number_of_rows_is_taken_where_it_is_private(n_samples):
    for n in range(4):
        found = model(neighbours="add_remove", n_samples=n_samples).fit(three_groups(20)[:n])
        assert found.cluster_centers_.shape == (3, 2)
        assert found.labels_.shape == (n,)
        assert not found.is_detected_.all()
    with pytest.raises(ValueError, match="n_clusters=3 for n_samples=2"):
        model().fit(three_groups(2))
    with pytest.raises(ValueError, match="0 sample"):
        model(neighbours="add_remove", bounds=None).fit(np.empty((0, 2)))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 3), (1001, 2), (4096, 9)])
def test_one_more_row_changes_the_counts_by_one_in_its_own_cell(n, d):
    rng = np.random.default_rng(n)
    X = rng.uniform(-1.1, 1.1, (n, d))
    grid = Grid(Box(-np.ones(d), np.ones(d)), tuple(range(2, 2 + d)))
    whole = grid.histogram(X)
    alone = grid.histogram(X[-1:])
    assert sorted(alone)[-2:] == [0.0, 1.0]
    np.testing.assert_array_equal(whole, grid.histogram(X[:-1]) + alone)
    np.testing.assert_array_equal(whole, grid.histogram(np.asfortranarray(rng.permutation(X))))


# --- what noise hides ------------------------------------------------------------------------


def test_good_fits_do_not_warn():
    X = three_groups(100_000)
    for seed in range(10):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = model(random_state=seed).fit(X)
        assert found.is_detected_.all()


@pytest.mark.parametrize(("n", "epsilon"), [(1, 1.0), (10_000, 1e-9), (40, 0.2)])
def test_fits_that_are_noise_warn(n, epsilon):
    for seed in range(8):
        fit = model(epsilon=epsilon, random_state=seed, neighbours="add_remove")
        with pytest.warns(NoiseWarning, match="of 3 clusters cannot be distinguished from noise"):
            found = fit.fit(three_groups(n))
        assert not found.is_detected_.all()


def test_labels_stay_with_the_data():
    found = model().fit(three_groups(200))
    for other in (pickle.loads(pickle.dumps(found)), copy.copy(found)):
        assert not hasattr(other, "labels_")
        np.testing.assert_array_equal(other.predict(three_groups(200)), found.labels_)


@pytest.mark.filterwarnings("ignore::privclust.privacy.PrivacyLeakWarning")
def test_constant_features_without_bounds():
    X = np.column_stack([np.full(50, 7.0), np.linspace(0, 1, 50)])
    found = model(2, bounds=None, epsilon=5.0).fit(X)
    np.testing.assert_allclose(found.cluster_centers_[:, 0], 7.0)
