"""Spectral clustering and the eigengap."""

import time

import numpy as np
import pytest
from scipy.linalg import block_diag
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from privclust.core.spectral import best_of_starts, estimate_n_clusters, spectral_clustering
from privclust.metrics import segmentation_error


def blocks(sizes, noise, seed=0):
    rng = np.random.default_rng(seed)
    affinity = block_diag(*(rng.uniform(0.5, 1.0, (n, n)) for n in sizes))
    affinity = affinity + noise * rng.uniform(size=affinity.shape)
    return affinity + affinity.T, np.repeat(np.arange(len(sizes)), sizes)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_blocks_are_found(noise):
    affinity, y = blocks([20, 35, 15], noise)
    labels = spectral_clustering(affinity, 3, np.random.default_rng(1))
    assert labels.dtype == np.int64
    assert segmentation_error(y, labels) == 0.0
    assert estimate_n_clusters(affinity, 10) == 3


def test_same_seed_same_labels():
    affinity = blocks([30, 30], 1.0)[0]  # no clear structure: k-means starts matter
    first = spectral_clustering(affinity, 4, np.random.default_rng(3))
    second = spectral_clustering(affinity, 4, np.random.default_rng(3))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("weight", [0.0, 1e-14])
def test_many_components_are_all_found(weight):
    """Without edges between them, or one from each to the next: equal eigenvalues, to rounding."""
    n_blocks, size = 20, 20
    affinity, y = blocks([size] * n_blocks, 0.0)
    kept = np.random.default_rng(1).uniform(size=affinity.shape) < 0.3
    affinity *= kept | kept.T
    firsts = size * np.arange(1, n_blocks)
    affinity[firsts, firsts - 1] = affinity[firsts - 1, firsts] = weight
    labels = spectral_clustering(affinity, n_blocks, np.random.default_rng(0))
    assert segmentation_error(y, labels) == 0.0


def embedding(rng, n_samples, n_clusters, spread):
    """Rows of unit length around some directions, some of them equal."""
    centers = rng.standard_normal((n_clusters, n_clusters))
    rows = centers[rng.integers(n_clusters, size=n_samples)]
    rows = rows + spread * rng.standard_normal(rows.shape)
    rows[rng.integers(n_samples, size=n_samples // 4)] = rows[0]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def inertia_of(X, labels):
    return sum(((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum() for k in set(labels))


@pytest.mark.parametrize("n_clusters", [2, 3, 8])
@pytest.mark.parametrize("spread", [1e-3, 0.3, 3.0])
def test_k_means_is_as_good_as_scikit_learns(spread, n_clusters):
    """The best of 20 starts exceeds the median start with a probability of at most 2^-20."""
    for n_samples in (12, 60, 400):
        rng = np.random.default_rng([n_samples, n_clusters, int(1000 * spread)])
        X = embedding(rng, n_samples, n_clusters, spread)
        labels = best_of_starts(X, n_clusters, 0)
        assert labels.dtype == np.int64
        theirs = [KMeans(n_clusters, n_init=1, random_state=seed).fit(X) for seed in range(20)]
        median = np.median([model.inertia_ for model in theirs])
        assert inertia_of(X, labels) <= (1.0 + 1e-9) * median
        np.testing.assert_array_equal(best_of_starts(np.asfortranarray(X), n_clusters, 0), labels)


def test_each_sample_its_own_cluster_and_one_cluster_for_all():
    X = np.random.default_rng(1).standard_normal((6, 2))
    assert sorted(best_of_starts(X, 6, 0)) == list(range(6))
    assert best_of_starts(X, 1, 0).tolist() == [0] * 6


def test_too_few_different_rows_are_said():
    X = np.repeat(np.eye(2), 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="2 clusters were found, not 3"):
        labels = best_of_starts(X, 3, 0)
    assert len(set(labels[:4])) == len(set(labels[4:])) == 1
    assert labels[0] != labels[4]


def test_degrees_are_normalised():
    """Blocks whose weights differ by 1e4 are found: without D^-1/2 the weak one would be lost."""
    affinity, y = blocks([20, 20], 0.0)
    affinity[20:, 20:] *= 1e-4
    affinity += 1e-7
    labels = spectral_clustering(affinity, 2, np.random.default_rng(0))
    assert segmentation_error(y, labels) == 0.0
    scaled = spectral_clustering(1e-200 * affinity, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(labels, scaled)


def test_isolated_vertices_get_a_label_and_are_no_component():
    affinity, y = blocks([15, 15], 0.0)
    padded = np.zeros((32, 32))
    padded[:30, :30] = affinity
    labels = spectral_clustering(padded, 2, np.random.default_rng(0))
    assert set(labels) == {0, 1}
    assert segmentation_error(y, labels[:30]) == 0.0
    assert estimate_n_clusters(padded, 6) == 2


def test_no_edges():
    labels = spectral_clustering(np.zeros((5, 5)), 2, np.random.default_rng(0))
    assert labels.shape == (5,)
    assert estimate_n_clusters(np.zeros((5, 5)), 3) == 1
    assert estimate_n_clusters(np.ones((1, 1)), 3) == 1
    assert spectral_clustering(np.ones((3, 3)), 1, np.random.default_rng(0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("affinity", "n_clusters", "message"),
    [
        (np.ones((2, 3)), 1, "square"),
        (np.ones((2, 2)), 3, "between 1 and the number of samples 2, got 3"),
        (np.ones((2, 2)), 0, "got 0"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), 1, "non-negative"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), 1, "NaN"),
        (np.array([[0.0, np.inf], [np.inf, 0.0]]), 1, "inf"),
        (np.array([[0.0, 1.0], [0.5, 0.0]]), 1, "symmetric"),
    ],
)
def test_bad_input(affinity, n_clusters, message):
    with pytest.raises(ValueError, match=message):
        spectral_clustering(affinity, n_clusters, np.random.default_rng(0))


def test_bad_max_clusters():
    with pytest.raises(ValueError, match="max_clusters"):
        estimate_n_clusters(np.ones((3, 3)), 0)


def test_is_fast():
    """Under 50 ms at 300 vertices on an idle core; ten times that allows for a busy machine."""
    affinity = blocks([100, 100, 100], 0.1)[0]
    spectral_clustering(affinity, 3, np.random.default_rng(0))
    with threadpool_limits(1):  # threads that wait for one another count as busy
        start = time.process_time()
        spectral_clustering(affinity, 3, np.random.default_rng(0))
        assert time.process_time() - start < 0.5
