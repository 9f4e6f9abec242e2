"""TSC: the graph by definition, its components, and what happens at its edges."""

import numpy as np
import pytest
from scipy import sparse

from privclust.metrics import segmentation_error
from privclust.segmentation import TSC
from privclust.synthetic.subspaces import random_subspaces


def graph_by_definition(X, s):
    """Algorithm 2, step 2: the other s rows with the largest absolute inner products, both ways."""
    edges = np.zeros((len(X), len(X)), dtype=bool)
    for i, x in enumerate(X):
        products = {j: abs(x @ X[j]) for j in range(len(X)) if j != i}
        for j in sorted(products, key=products.get)[-s:]:
            edges[i, j] = edges[j, i] = True
    return edges


@pytest.mark.parametrize("s", [1, 3, 39])
def test_graph_is_that_of_algorithm_2(monkeypatch, s):
    """Rows as they are, not scaled; several blocks."""
    monkeypatch.setattr("privclust.segmentation._tsc._BLOCK_ENTRIES", 40 * 7)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5)) * rng.uniform(0.1, 3.0, (40, 1))
    found = TSC(n_neighbors=s).fit(X)
    assert found.n_neighbors_ == s
    edges = graph_by_definition(X, s)
    graph = found.graph_.toarray()
    np.testing.assert_array_equal(graph > 0, edges)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    weights = np.exp(-2 * np.arccos(np.clip(np.abs(unit @ unit.T), 0, 1)))
    np.testing.assert_allclose(graph[edges], weights[edges], rtol=1e-7)
    scaled = TSC(n_neighbors=s).fit(X / np.linalg.norm(X, axis=1, keepdims=True))
    if s == 3:
        assert (scaled.graph_.toarray() > 0).sum() != edges.sum()


def test_components_are_the_clusters_of_subspaces_without_noise():
    X, y = random_subspaces(80, 3, 3, 30, np.random.default_rng(1))
    for n_clusters in (None, 3):
        found = TSC(n_clusters, n_neighbors=8).fit(X)
        assert found.n_components_ == found.n_clusters_ == 3
        assert segmentation_error(y, found.labels_) == 0.0


def test_too_few_components_are_cut(monkeypatch):
    """Subspaces that overlap, by full and by sparse eigenvectors alike."""
    X, y = random_subspaces(150, 3, 3, 10, np.random.default_rng(2), noise=0.1)
    found = TSC(3, random_state=0).fit(X)
    assert found.n_components_ == 1
    assert found.n_neighbors_ == 8  # ceil(450 / 60)
    assert segmentation_error(y, found.labels_) < 0.05
    monkeypatch.setattr("privclust.segmentation._tsc._MOST_DENSE_VERTICES", 0)
    sparse_labels = TSC(3, random_state=0).fit(X).labels_
    assert segmentation_error(sparse_labels, found.labels_) < 0.01


def test_too_many_components_widen_the_graph():
    """Groups of copies are components of their own for s up to the size of a group."""
    lines = np.repeat([0.0, 0.1, 1.4, 1.5], 10)
    X = np.stack([np.cos(lines), np.sin(lines)], axis=1)
    found = TSC(2, n_neighbors=3, random_state=0).fit(X)
    assert found.n_neighbors_ > 9
    assert found.n_components_ <= 2
    assert segmentation_error(lines > 1, found.labels_) == 0.0
    assert TSC(n_neighbors=3).fit(X).n_clusters_ >= 4


def test_rows_of_zeros_have_no_edges():
    X, _ = random_subspaces(40, 2, 2, 20, np.random.default_rng(3))
    with_zeros = np.insert(X, [0, 50], 0.0, axis=0)
    found = TSC(2, random_state=0).fit(with_zeros)
    zeros = np.flatnonzero(~with_zeros.any(axis=1))
    assert found.graph_[zeros].nnz == found.graph_[:, zeros].nnz == 0
    assert (found.labels_[zeros] == 0).all()
    np.testing.assert_array_equal(
        np.delete(found.labels_, zeros), TSC(2, n_neighbors=found.n_neighbors_).fit(X).labels_
    )
    assert found.n_components_ == 2


@pytest.mark.parametrize("n_clusters", [None, 1, 3])
def test_nothing_but_zeros(n_clusters):
    found = TSC(n_clusters).fit(np.zeros((5, 2)))
    np.testing.assert_array_equal(found.labels_, np.zeros(5))
    assert found.n_components_ == 0
    assert found.n_clusters_ == (n_clusters or 1)


def test_rows_at_right_angles_are_never_joined():
    found = TSC(None).fit(np.eye(6))
    assert found.n_clusters_ == 6
    found = TSC(4).fit(np.vstack([np.eye(6), np.eye(6)[:2]]))
    assert found.n_neighbors_ == 7
    # pairs first, then singletons; what is left over shares the last label
    assert found.labels_.tolist() == [0, 1, 2, 3, 3, 3, 0, 1]


def test_a_row_alone_is_a_cluster_when_the_rest_is_cut():
    """Two components, three clusters: the vertex without edges must do no harm."""
    rng = np.random.default_rng(4)
    X = np.zeros((41, 21))
    X[:40, :20], y = random_subspaces(20, 2, 2, 20, rng)
    X[:40, :20] += 0.02 * rng.standard_normal((40, 20))
    X[40, 20] = 1.0
    found = TSC(3, n_neighbors=30, random_state=0).fit(X)
    assert found.n_components_ == 2
    assert segmentation_error(np.append(y, 2), found.labels_) == 0.0


def test_fewer_rows_than_clusters_but_for_zeros():
    X = np.vstack([np.eye(3)[:2], np.ones((1, 3)), np.zeros((3, 3))])
    labels = TSC(4, random_state=0).fit(X).labels_
    assert len(set(labels[:3])) == 3


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(scale):
    X, _ = random_subspaces(30, 2, 2, 6, np.random.default_rng(5), noise=0.05)
    expected, found = (TSC(2, random_state=0).fit(rows).labels_ for rows in (X, scale * X))
    np.testing.assert_array_equal(expected, found)


@pytest.mark.parametrize(
    ("n", "n_clusters", "s"),
    [(2, 1, 1), (10, 2, 3), (400, 2, 10), (401, 2, 11), (1000, None, 7)],
)
def test_default_number_of_neighbours(n, n_clusters, s):
    X = np.random.default_rng(6).standard_normal((n, 3))
    assert TSC(n_clusters, random_state=0).fit(X).n_neighbors_ == s


@pytest.mark.slow
def test_many_rows():
    """10,000 rows: the graph is sparse, 30 MB where a matrix of all pairs takes 0.8 GB."""
    X, y = random_subspaces(3334, 3, 3, 10, np.random.default_rng(7), noise=0.1)
    found = TSC(3, random_state=0).fit(X)
    assert sparse.issparse(found.graph_)
    assert found.graph_.nnz < 2 * found.n_neighbors_ * len(X)
    assert segmentation_error(y, found.labels_) < 0.1


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_clusters": 11}, "n_clusters must be at most the number of samples"),
        ({"n_clusters": 0}, "n_clusters must be an integer"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer"),
        ({"n_neighbors": 10}, "n_neighbors must be less than the number of samples"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        TSC(**params).fit(np.random.default_rng(0).standard_normal((10, 3)))
