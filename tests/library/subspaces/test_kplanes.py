"""k-plane against what it must not do worse than."""

from itertools import product

import numpy as np
import pytest

from privclust.core.grassmann import bases_of_labels, random_bases, residuals
from privclust.metrics import segmentation_error, subspace_cost, wasserstein_distance
from privclust.subspaces import KPlanes


def rows_near_subspaces(n, d, k, q, noise, seed):
    """The paper's data, Section 5: rows of norm 1 on random subspaces, and noise."""
    rng = np.random.default_rng([seed, n])
    bases, labels = random_bases(k, d, q, rng), rng.integers(k, size=n)
    y = rng.standard_normal((n, q))
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    X = np.einsum("idq,iq->id", bases[labels], y) + noise * rng.standard_normal((n, d))
    return X, bases, labels


@pytest.mark.parametrize("seed", range(5))
def test_cost_never_rises(seed):
    """More turns from one start, by seeds that leave clusters empty too (8 clusters)."""
    X, _, _ = rows_near_subspaces(150, 6, 3, 2, 0.1, seed)
    start = random_bases(8, 6, 2, np.random.default_rng(seed + 100))
    costs = [subspace_cost(X, start)]
    for turns in range(1, 30):
        found = KPlanes(8, 2, init=start, max_iter=turns, random_state=0).fit(X)
        costs.append(found.inertia_ / len(X))
        assert found.inertia_ == pytest.approx(len(X) * subspace_cost(X, found.subspaces_))
        assert found.n_iter_ <= turns
    assert (np.diff(costs) <= 1e-15).all()
    assert costs[-1] < 0.5 * costs[0]


def test_result_is_a_fixed_point():
    """Subspaces are the best for the labels, and labels the best for the subspaces."""
    X, _, _ = rows_near_subspaces(300, 5, 3, 2, 0.1, 0)
    found = KPlanes(3, 2, random_state=1).fit(X)
    again = bases_of_labels(X, found.labels_, 3, 2, np.random.default_rng(0))
    assert wasserstein_distance(found.subspaces_, again) < 1e-6
    np.testing.assert_array_equal(found.predict(X), found.labels_)
    np.testing.assert_allclose(found.transform(X) ** 2, residuals(X, found.subspaces_), atol=1e-14)


def test_optimum_of_few_rows_against_all_partitions():
    X = np.random.default_rng(3).standard_normal((9, 3))
    least = np.inf
    for labels in product(range(2), repeat=9):
        parts = (X[np.array(labels) == k] for k in range(2))
        values = (np.linalg.svd(rows, compute_uv=False) if len(rows) else [0.0] for rows in parts)
        least = min(least, sum((np.array(s[1:]) ** 2).sum() for s in values))
    found = KPlanes(2, 1, n_init=50, random_state=0).fit(X)
    assert found.inertia_ == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize(
    ("shape", "noise", "seed"), [((2000, 5, 3, 3), 0.01, 1), ((1000, 10, 3, 3), 0.1, 2)]
)
def test_the_papers_synthetic_data(shape, noise, seed):
    X, bases, labels = rows_near_subspaces(*shape, noise, seed)
    found = KPlanes(3, 3, random_state=5).fit(X)
    assert found.inertia_ / len(X) < subspace_cost(X, bases)
    assert wasserstein_distance(found.subspaces_, bases) < 20 * noise / np.sqrt(len(X) / 30)
    assert segmentation_error(labels, found.labels_) < 0.1


def test_lines_in_the_plane_without_noise():
    angles = np.repeat([0.1, 1.2, 2.0], 10)
    X = np.linspace(-1, 1, 30)[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = KPlanes(3, 1, n_init=30, random_state=0).fit(X)
    assert found.inertia_ < 1e-14
    assert segmentation_error(np.repeat([0, 1, 2], 10), found.labels_) == 0.0


def test_more_starts_are_not_worse():
    X, _, _ = rows_near_subspaces(200, 4, 4, 2, 0.05, 0)
    one, many = (KPlanes(4, 2, n_init=n, random_state=0).fit(X).inertia_ for n in (1, 20))
    assert many <= one
    assert many < 0.99 * max(
        KPlanes(4, 2, n_init=1, random_state=s).fit(X).inertia_ for s in range(9)
    )


def test_starts_are_used():
    X, bases, labels = rows_near_subspaces(400, 6, 3, 2, 0.05, 0)
    expected = bases_of_labels(X, labels, 3, 2, np.random.default_rng(0))
    for init in (labels, bases, KPlanes(3, 2, n_init=20, random_state=4)):
        found = KPlanes(3, 2, init=init, random_state=0).fit(X)
        assert wasserstein_distance(found.subspaces_, expected) < 0.05


def test_same_seed_same_bytes():
    X, _, _ = rows_near_subspaces(200, 4, 3, 2, 0.1, 0)
    first, second = (KPlanes(3, 2, random_state=0).fit(X).subspaces_ for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("X", [np.zeros((6, 3)), np.ones((6, 3)), np.eye(6)[:, :3] * 1e-200])
def test_degenerate_rows(X):
    found = KPlanes(2, 2, random_state=0).fit(X)
    assert np.isfinite(found.subspaces_).all()
    assert found.inertia_ == pytest.approx(0.0, abs=1e-14)
    np.testing.assert_allclose(
        found.subspaces_.transpose(0, 2, 1) @ found.subspaces_,
        np.broadcast_to(np.eye(2), (2, 2, 2)),
        atol=1e-14,
    )


def test_it_ends_where_only_rounding_is_left():
    """Rows on a plane, in more subspaces of more dimensions: all but one are empty for ever."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 6))
    for seed in range(10):
        found = KPlanes(4, 3, n_init=1, random_state=seed).fit(X)
        assert found.n_iter_ < 10
        assert found.inertia_ < 1e-12


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1"),
        ({"n_clusters": 11}, "n_clusters must be at most the number of samples"),
        ({"dimension": 0}, "dimension must be an integer of at least 1"),
        ({"dimension": 3}, "dimension must be less than the number of features"),
        ({"n_init": 0}, "n_init must be an integer of at least 1"),
        ({"max_iter": 2.5}, "max_iter must be an integer of at least 1"),
        ({"init": "pca"}, "init must be one of random"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        KPlanes(**params).fit(np.random.default_rng(0).standard_normal((10, 3)))


def test_rows_too_large():
    with pytest.raises(ValueError, match="rescale X"):
        KPlanes(1, 1).fit(np.full((4, 2), 1e200))
