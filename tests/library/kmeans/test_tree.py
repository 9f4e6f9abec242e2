"""TreeKMeans: exact counts of cells, what noise left of them, fits and their guarantee."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.exceptions import NotFittedError

from privclust.core.lloyd import inertia, nearest_center
from privclust.kmeans import CompressiveKMeans, LloydKMeans, PrivateKMeans, TreeKMeans
from privclust.kmeans._cells import Cells, children, counts_behind
from privclust.privacy.bounds import Box
from privclust.privacy.groups import Groups
from privclust.sketches import Sketch, draw_frequencies

ROW = st.floats(-2.0, 2.0) | st.sampled_from([-1.0, 0.0, 1.0, math.nan, math.inf, -math.inf])


def box_of(d):
    return Box(np.full(d, -1.0), np.full(d, 1.0))


def places(X, level):
    """Where each row's cell lies along each axis, by arithmetic on the row alone."""
    inside = np.where(np.isnan(X), 0.0, np.clip(X, -1.0, 1.0))
    return np.minimum(np.floor((inside + 1.0) * 2.0 ** (level - 1)), 2**level - 1).astype(int)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_counts_of_every_level_are_those_of_the_rows(data):
    d = data.draw(st.integers(1, 3))
    rows = data.draw(st.lists(st.lists(ROW, min_size=d, max_size=d), max_size=20))
    X = np.array(rows, dtype=float).reshape(-1, d)
    cells = Cells(X, box_of(d), 4)
    for level in range(5):
        every = np.arange(2 ** (d * level))
        counts = cells.counts(every, level)
        middles = cells.middles(every, level)
        at = places(middles, level)
        expected = [(places(X, level) == place).all(axis=1).sum() for place in at]
        assert counts.tolist() == expected


def test_the_cells_inside_one_share_its_rows_and_its_middle():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (500, 3))
    cells = Cells(X, box_of(3), 5)
    some = np.arange(64)
    inside = children(some, 3)
    assert (cells.counts(inside, 3).reshape(64, 8).sum(axis=1) == cells.counts(some, 2)).all()
    middles = cells.middles(inside, 3).reshape(64, 8, 3).mean(axis=1)
    np.testing.assert_allclose(middles, cells.middles(some, 2), atol=1e-15)


def test_of_groups_each_counts_as_one():
    X = np.random.default_rng(1).uniform(-1.0, 1.0, (60, 2))
    groups = Groups.of(np.repeat(np.arange(20), 3), 60)
    counts = Cells(X, box_of(2), 6, groups).counts(np.arange(16), 2)
    per_cell = [np.zeros(16) for _ in range(20)]
    plain = Cells(X, box_of(2), 6)
    for row in range(60):
        one = Cells(X[row : row + 1], box_of(2), 6).counts(np.arange(16), 2)
        per_cell[row // 3] += one / 3.0
    np.testing.assert_allclose(np.asarray(counts), np.sum(per_cell, axis=0), atol=1e-8)
    assert plain.counts(np.arange(16), 2).sum() == 60


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 30), st.sampled_from([2, 4, 8]), st.floats(0.1, 1e3)
)
@settings(max_examples=60, deadline=None)
def test_estimates_are_not_negative_and_add_up_or_are_none(seed, n_blocks, size, sigma):
    rng = np.random.default_rng(seed)
    noisy = rng.exponential(50.0, (n_blocks, size)) * rng.integers(0, 2, (n_blocks, size))
    noisy = noisy + sigma * rng.standard_normal(noisy.shape)
    totals = np.maximum(rng.uniform(1.0, 200.0, n_blocks), 1e-3)
    found = counts_behind(noisy, totals, sigma)
    sums = found.sum(axis=1)
    assert (found >= 0.0).all()
    np.testing.assert_allclose(sums[sums > 0.0], totals[sums > 0.0], rtol=1e-9)


def test_without_noise_to_speak_of_counts_are_what_they_are():
    counts = np.array([[70.0, 0.0, 25.0, 5.0], [0.0, 0.0, 0.0, 40.0]])
    found = counts_behind(counts + 1e-3, counts.sum(axis=1), 0.01)
    np.testing.assert_allclose(found, counts, atol=0.01)


@pytest.fixture(scope="module")
def towns():
    """60 small clusters in the plane, and their rows."""
    rng = np.random.default_rng(2)
    centers = rng.uniform(-0.95, 0.95, (60, 2))
    return centers[rng.integers(60, size=30_000)] + 0.01 * rng.standard_normal((30_000, 2))


def fitted(X, k=60, **options):
    options = {"epsilon": 1.0, "bounds": (-1.0, 1.0), "random_state": 0, **options}
    return TreeKMeans(k, **options).fit(X)


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_many_clusters_in_the_plane_are_found(towns, neighbours):
    """Lloyd's loss is from five starts; ten seeds gave 0.79 to 0.92 of it."""
    best = LloydKMeans(60, n_init=5, random_state=0).fit(towns).inertia_
    model = fitted(towns, neighbours=neighbours)
    assert inertia(towns, model.cluster_centers_) < best
    assert model.is_detected_.mean() > 0.9
    assert abs(model.cluster_sizes_.sum() / len(towns) - 1.0) < 0.1


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_all_levels_and_rounds_together_cost_the_budget(neighbours, epsilon):
    model = fitted(np.zeros((50, 2)), 3, neighbours=neighbours, epsilon=epsilon)
    guarantee = model.guarantee_
    assert guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)
    names = [release.name for release in guarantee.releases]
    assert sum(name.startswith("counts of cells") for name in names) == 11 - 2 + 1
    assert sum(name.startswith("sums, counts and spreads") for name in names) == 1


def test_the_order_of_rows_does_not_matter(towns):
    rows = towns[:3000]
    shuffled = rows[np.random.default_rng(3).permutation(len(rows))]
    one, other = fitted(rows, 10), fitted(shuffled, 10)
    assert one.cluster_centers_.tobytes() == other.cluster_centers_.tobytes()


def test_groups_of_one_row_are_rows(towns):
    rows = towns[:2000]
    alone = fitted(rows, 10, neighbours="add_remove")
    grouped = TreeKMeans(
        10, epsilon=1.0, bounds=(-1.0, 1.0), neighbours="add_remove", random_state=0
    ).fit(rows, groups=np.arange(len(rows)))
    np.testing.assert_allclose(grouped.cluster_centers_, alone.cluster_centers_, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_any_number_of_any_rows(d):
    model = fitted(np.empty((0, d)), 3, neighbours="add_remove")
    assert model.cluster_centers_.shape == (3, d)
    odd = np.full((20, d), np.inf)
    odd[::2] = np.nan
    with pytest.warns(UserWarning, match="rows outside bounds"):
        model = fitted(odd, 3, missing="middle")
    assert np.abs(model.cluster_centers_).max() <= 1.0


def test_too_many_features_are_refused():
    with pytest.raises(ValueError, match="X: got 11 features; TreeKMeans takes 10 at most"):
        fitted(np.zeros((20, 11)), 2)


def four_places(d):
    """Four places that are far from each other, in one or two features."""
    if d == 1:
        return np.array([[-0.75], [-0.25], [0.25], [0.75]])
    return np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]])


def standardised_errors(d, n_fits, *, rows, epsilon, n=10_000, width=0.05):
    """Return errors of seeded fits divided by their standard errors.

    Every fit has its own rows, of four round clusters far from each other. Errors are those from
    the population with `rows`, from the clusters of the rows otherwise.
    """
    found = {"centers": [], "weights": [], "spreads": [], "mean_inertia": [], "unmarked": []}
    places = four_places(d)
    for seed in range(n_fits):
        rng = np.random.default_rng([d, seed])
        labels = rng.integers(4, size=n)
        X = places[labels] + width * rng.standard_normal((n, d))
        model = fitted(X, 4, epsilon=epsilon, random_state=seed)
        errors, own = (
            model.standard_errors(rows=rows),
            nearest_center(model.cluster_centers_, places),
        )
        assert sorted(own) == [0, 1, 2, 3]
        centers, weights, variances = places, np.full(4, 0.25), np.full(4, width**2)
        if not rows:
            parts = [X[labels == j] for j in range(4)]
            centers, weights = (
                np.array([part.mean(axis=0) for part in parts]),
                np.bincount(labels) / n,
            )
            variances = np.array([part.var(axis=0).mean() for part in parts])
        sizes = model.cluster_sizes_ / model.cluster_sizes_.sum()
        spreads = (model.cluster_spreads_ - np.sqrt(variances[own])[:, None]) / errors.spreads
        found["centers"].append(((model.cluster_centers_ - centers[own]) / errors.centers).ravel())
        found["weights"].append((sizes - weights[own]) / errors.weights)
        found["spreads"].append(spreads[:, 0])
        inertia_error = model.mean_inertia_ - d * weights @ variances
        found["mean_inertia"].append([inertia_error / errors.mean_inertia])
        found["unmarked"].append(errors.is_reliable)
        np.testing.assert_allclose(errors.covariances[:, 0, 0], errors.centers[:, 0] ** 2)
    return {name: np.concatenate(values) for name, values in found.items()}


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("d", [1, 2])
def test_intervals_cover_at_their_level_and_are_not_too_wide(d, rows):
    """Limits are those of as many independent intervals, exceeded by chance once in 1,000."""
    found = standardised_errors(d, 60, rows=rows, epsilon=1.0)
    assert found.pop("unmarked").mean() > 0.9  # a mark is seldom for nothing
    for name, ratios in found.items():
        for level, within in ((0.95, 1.96), (0.6827, 1.0)):
            least, most = binom.ppf([5e-4, 1.0 - 5e-4], len(ratios), level)
            covered = (np.abs(ratios) < within).sum()
            assert least <= covered <= most, (name, level, covered / len(ratios))


@pytest.mark.parametrize("d", [1, 2])
def test_errors_of_clusters_narrower_than_cells_are_marked(d):
    """Those marked reliable cover at their level, the others do not."""
    inside, outside, wide = [], [], []
    for seed in range(60):
        rng = np.random.default_rng([d, seed])
        places = four_places(d) + rng.uniform(-0.1, 0.1, (4, d))  # anywhere in their cells
        width = [2e-3, 1e-4, 1e-5][seed % 3]
        X = places[rng.integers(4, size=10_000)] + width * rng.standard_normal((10_000, d))
        model = fitted(X, 4, random_state=seed)
        errors = model.standard_errors()
        offsets = model.cluster_centers_ - places[nearest_center(model.cluster_centers_, places)]
        is_covered = np.abs(offsets) < 1.96 * errors.centers
        inside.append(is_covered[errors.is_reliable].ravel())
        outside.append(is_covered[~errors.is_reliable].ravel())
        wide += [*errors.is_reliable] if width > 1e-3 else []
    assert np.mean(wide) > 0.9  # a mark is seldom for nothing
    inside, outside = np.concatenate(inside), np.concatenate(outside)
    assert inside.sum() >= binom.ppf(5e-4, len(inside), 0.95)
    assert outside.sum() < binom.ppf(5e-4, len(outside), 0.95)


def gamma_line(n, rng):
    return rng.gamma(1.5, size=(n, 1)) * 0.1 - 0.9


def bell(n, rng):
    return rng.standard_normal((n, 2)) * [0.25, 0.12]


def square(n, rng):
    return rng.uniform(-1.0, 1.0, (n, 2))


def ring(n, rng):
    angles = rng.uniform(0.0, 2.0 * np.pi, n)
    return 0.7 * np.column_stack([np.cos(angles), np.sin(angles)]) + 0.02 * rng.normal(size=(n, 2))


def skewed_clusters(n, rng):
    places = np.array([[-0.5, 0.0], [0.3, 0.0], [0.0, 0.6]])
    return places[rng.integers(3, size=n)] + 0.05 * rng.gamma(1.5, size=(n, 2))


@pytest.mark.parametrize(
    ("law", "k"),
    [
        (gamma_line, 2),
        (gamma_line, 4),
        (bell, 2),
        (bell, 3),
        (square, 4),
        (ring, 6),
        (skewed_clusters, 3),
    ],
)
def test_pieces_of_one_cloud_and_skewed_clusters_are_marked(law, k):
    """Few of their 95 % intervals hold: the boundary and the clipping move centers."""
    unmarked = 0
    for seed in range(10):
        X = np.clip(law(20_000, np.random.default_rng(seed)), -1.0, 1.0)
        unmarked += fitted(X, k, random_state=seed, epsilon=1.0).standard_errors().is_reliable.sum()
    assert unmarked <= 0.05 * 10 * k


def test_errors_need_a_fit():
    with pytest.raises(NotFittedError):
        TreeKMeans(2).standard_errors()


def a_sketch():
    return Sketch.of(np.zeros((5, 2)), draw_frequencies(2, 10, variance=1.0, random_state=0))


@pytest.mark.parametrize("estimator", [TreeKMeans, CompressiveKMeans, PrivateKMeans])
@pytest.mark.parametrize(
    "source", [a_sketch, lambda: iter([np.zeros((5, 2))]), lambda: map(np.zeros, [(5, 2)])]
)
def test_what_holds_no_rows_is_refused_with_what_takes_it(estimator, source):
    X = source()
    model = estimator(2, epsilon=1.0, delta=1e-6, bounds=(-1.0, 1.0), random_state=0)
    with pytest.raises(TypeError, match=f"X must be .* got '{type(X).__name__}'; .*decode"):
        model.fit(X)
    if not isinstance(X, Sketch):
        assert len(list(X)) == 1  # nothing was read


def test_a_fit_takes_a_few_bytes_per_row_in_addition_to_them():
    """`privclust cluster` keeps the two columns in memory, and fits the tree to them."""
    n = 500_000
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (n, 2)).astype(np.float32)
    model = TreeKMeans(4, bounds=(-1.0, 1.0), random_state=0).fit(X[:1000])  # compiles loops
    tracemalloc.start()
    try:
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 * n
