"""k-means of spectral embeddings: scikit-learn's labels, from the same random numbers."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from privclust.core.spectral_kmeans import best_of_starts


def by_sklearn(X, n_clusters, seed):
    return KMeans(n_clusters, n_init=20, random_state=seed).fit_predict(X)


def embedding(rng, n_samples, n_clusters, spread):
    """Rows of unit length around some directions, some of them equal."""
    centers = rng.standard_normal((n_clusters, n_clusters))
    rows = centers[rng.integers(n_clusters, size=n_samples)]
    rows = rows + spread * rng.standard_normal(rows.shape)
    rows[rng.integers(n_samples, size=n_samples // 4)] = rows[0]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("n_clusters", [2, 3, 8])
@pytest.mark.parametrize("spread", [1e-3, 0.3, 3.0])
@pytest.mark.parametrize("n_samples", [12, 60, 400])
def test_labels_are_scikit_learns(n_samples, spread, n_clusters):
    rng = np.random.default_rng([n_samples, n_clusters, int(1000 * spread)])
    X = embedding(rng, n_samples, n_clusters, spread)
    for seed in range(3):
        labels = best_of_starts(X, n_clusters, seed)
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(labels, by_sklearn(X, n_clusters, seed))


def test_rows_in_any_order_in_memory_and_of_any_type():
    X = embedding(np.random.default_rng(0), 50, 3, 1.0)
    expected = best_of_starts(X, 3, 7)
    np.testing.assert_array_equal(best_of_starts(np.asfortranarray(X), 3, 7), expected)
    rounded = X.astype(np.float32)
    np.testing.assert_array_equal(
        best_of_starts(rounded, 3, 7), best_of_starts(rounded.astype(np.float64), 3, 7)
    )


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
