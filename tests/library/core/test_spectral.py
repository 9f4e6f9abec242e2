"""Spectral clustering and the eigengap."""

import time

import numpy as np
import pytest
from scipy.linalg import block_diag, eigh
from threadpoolctl import threadpool_limits

from privclust.core import spectral
from privclust.core.spectral import estimate_n_clusters, spectral_clustering
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


@pytest.mark.parametrize(
    ("noise", "is_sparse", "is_factorised"),
    [(0.0, False, False), (0.01, False, False), (0.0, True, False), (1e-4, True, False),
     (None, False, True)],
)  # fmt: skip
def test_many_vertices_give_what_a_factorisation_gives(
    monkeypatch, noise, is_sparse, is_factorised
):
    """Components of one eigenvalue, sparse or not, and no gap: the same span, the same labels."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(spectral, "_LEAST_KRYLOV", 600)
    sizes = [250, 200, 160]
    affinity = blocks(sizes, noise or 0.0)[0]
    if is_sparse:
        affinity *= rng.uniform(size=affinity.shape) < 0.04
        affinity = affinity + affinity.T
    if noise is None:  # a ring: eigenvalues next to the largest come in pairs near it
        affinity = np.roll(np.eye(610), 1, axis=0)
        affinity = affinity + affinity.T
    matrix = spectral._normalised_affinity(affinity)
    whole = eigh(matrix, subset_by_index=[607, 609])[1]
    calls = []
    monkeypatch.setattr(spectral, "eigh", lambda *a, **k: calls.append(1) or eigh(*a, **k))
    found = spectral._leading_vectors(matrix, 3)
    assert bool(calls) == is_factorised
    np.testing.assert_allclose(found @ found.T, whole @ whole.T, rtol=0, atol=1e-8)
    labels = spectral_clustering(affinity, 3, np.random.default_rng(1))
    monkeypatch.setattr(spectral, "_LEAST_KRYLOV", 10_000)
    same = spectral_clustering(affinity, 3, np.random.default_rng(1))
    assert segmentation_error(same, labels) == 0.0


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
