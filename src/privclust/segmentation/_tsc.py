"""Thresholding-based subspace clustering."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from privclust.core.spectral import best_of_starts, spectral_clustering
from privclust.core.validation import Integer
from privclust.segmentation._self_expressive import SubspaceSegmenter

_BLOCK_ENTRIES = 1 << 21  # inner products at a time: 16 MiB
_MOST_DENSE_VERTICES = 1000  # vertices up to which eigenvectors are found from a full matrix
_ROWS_A_NEIGHBOUR = 20  # rows of a balanced cluster per neighbour: s is a twentieth of a cluster


@dataclass(eq=False, repr=False)
class TSC(SubspaceSegmenter):
    r"""Thresholding-based subspace clustering (Heckel and Boelcskei).

    Each row is joined to the s others with the largest absolute inner products; edges are
    undirected. The clusters are the connected components of this graph (Algorithm 2 of the private
    subspace clustering paper, a simplified form). Where `n_clusters` is given and the graph has
    another number of components:

    - with fewer, it is cut by normalised spectral clustering, as in the original algorithm, with
      the edge weights :math:`\exp(-2 \arccos |\langle x, x' \rangle| / (\|x\| \|x'\|))`;
    - with more, s was too small: it is doubled until there are no more than `n_clusters`.

    Like Algorithm 2, this class uses inner products of the unscaled rows: longer rows are more
    often neighbours. The original algorithm scales rows to norm 1 first, which is left to the
    caller. Its last step, the span of q random rows of a cluster, is not done here:
    `privclust.subspaces` finds the subspace nearest to all rows of a cluster.

    Costs O(n_samples^2 n_features) in matrix products; memory is O(n_samples s).

    Parameters
    ----------
    n_clusters : int or None, default None
        None: as many as the graph has components.
    n_neighbors : int or None, default None
        s, less than the number of samples. None: a twentieth of a cluster,
        ``max(3, ceil(n_samples / (20 n_clusters)))``, which for clusters of one size is within the
        range of Lemma 3.5, from 0.04 to 1/6 of a cluster; without `n_clusters`, ``max(3,
        ceil(log(n_samples)))``.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        For the starts of spectral clustering; nothing else is random.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int
    n_components_ : int
        Connected components of the graph, rows of zeros not counted.
    n_neighbors_ : int
        s, as used.
    graph_ : scipy.sparse.csr_array of shape (n_samples, n_samples)
        Symmetric edge weights, see above; zero on the diagonal.
    n_features_in_ : int

    Notes
    -----
    Orthogonal rows, up to rounding, are never joined. A row of zeros, which lies in every subspace,
    has no edges and gets label 0. Among equal inner products the choice is arbitrary. If even s =
    n_samples - 1 leaves more components than `n_clusters`, because many rows are orthogonal, the
    smallest ones share the last label.

    References
    ----------
    R. Heckel and H. Boelcskei, "Robust subspace clustering via thresholding", IEEE Trans.
    Information Theory 61(11), 2015; Y. Wang, Y.-X. Wang and A. Singh, "Differentially private
    subspace clustering", NIPS 2015, Algorithm 2 and Lemma 3.5.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.zeros((40, 4))
    >>> X[:20, :2], X[20:, 2:] = rng.normal(size=(2, 20, 2))
    >>> model = TSC(2).fit(X)
    >>> model.n_components_, model.labels_[[0, 19, 20, 39]].tolist()
    (2, [0, 0, 1, 1])
    """

    labels_: np.ndarray = field(init=False)
    n_clusters_: int = field(init=False)
    n_components_: int = field(init=False)
    n_neighbors_: int = field(init=False)
    graph_: sparse.csr_array = field(init=False)
    n_features_in_: int = field(init=False)

    _constraints: ClassVar = {"n_neighbors": Integer(below="n_samples")}

    _: KW_ONLY
    n_neighbors: int | None = None

    def _segment(self, X, rng):
        n_samples = len(X)
        n_neighbors = self._n_neighbors(n_samples)
        rows = X / (np.abs(X).max() or 1.0)
        is_zero = ~rows.any(axis=1)
        max_components = n_samples if self.n_clusters is None else self.n_clusters
        while True:
            graph = _neighbour_graph(rows, n_neighbors)
            n_components, components = _components(graph, is_zero)
            if n_components <= max_components or n_neighbors == n_samples - 1:
                break
            n_neighbors = min(2 * n_neighbors, n_samples - 1)
        self.graph_, self.n_neighbors_, self.n_components_ = graph, n_neighbors, n_components
        if self.n_clusters is None:
            self.n_clusters_ = max(n_components, 1)
        else:
            self.n_clusters_ = int(self.n_clusters)
        self.labels_ = np.zeros(n_samples, dtype=np.int64)
        if n_components < self.n_clusters_:
            labels = _spectral_labels(graph[~is_zero][:, ~is_zero], self.n_clusters_, rng)
        else:
            # components beyond n_clusters are orthogonal to all others: they join the last
            labels = np.minimum(components, self.n_clusters_ - 1)
        self.labels_[~is_zero] = labels

    def _n_neighbors(self, n_samples):
        if self.n_neighbors is not None:
            return int(self.n_neighbors)
        if self.n_clusters is None:
            n_neighbors = math.ceil(math.log(n_samples))
        else:
            n_neighbors = math.ceil(n_samples / (_ROWS_A_NEIGHBOUR * self.n_clusters))
        return min(max(3, n_neighbors), n_samples - 1)


def _neighbour_graph(rows, n_neighbors):
    """Join each row to those with the largest absolute inner products; weights by angle."""
    n_samples, n_features = rows.shape
    norms = np.linalg.norm(rows, axis=1)
    neighbours = np.empty((n_samples, n_neighbors), dtype=np.int32)
    weights = np.empty((n_samples, n_neighbors))
    size = max(1, _BLOCK_ENTRIES // n_samples)
    for start in range(0, n_samples, size):
        block = np.arange(start, min(start + size, n_samples))
        products = np.abs(rows[block] @ rows.T)
        # below every absolute value: a row is not its own neighbour
        products[np.arange(len(block)), block] = -1.0
        nearest = np.argpartition(products, n_samples - n_neighbors, axis=1)[:, -n_neighbors:]
        largest = np.take_along_axis(products, nearest, axis=1)
        lengths = norms[block, None] * norms[nearest]
        cosines = np.divide(largest, lengths, out=np.zeros_like(largest), where=lengths > 0)
        # smaller cosines of orthogonal rows are rounding errors
        is_edge = cosines > n_features * np.finfo(np.float64).eps
        angles = np.arccos(np.minimum(cosines, 1.0))
        weights[block] = np.where(is_edge, np.exp(-2.0 * angles), 0.0)
        neighbours[block] = nearest
    starts = np.arange(0, n_samples * n_neighbors + 1, n_neighbors)
    shape = (n_samples, n_samples)
    graph = sparse.csr_array((weights.ravel(), neighbours.ravel(), starts), shape=shape)
    graph.eliminate_zeros()
    return graph.maximum(graph.T).tocsr()


def _components(graph, is_zero):
    """Return the number of components of nonzero rows, and the component of each row.

    The largest component is the first; in a tie, the one with the first row.
    """
    components = connected_components(graph, directed=False)[1][~is_zero]
    labels = np.unique(components, return_inverse=True)[1]  # components are in the order of rows
    order = np.argsort(-np.bincount(labels), kind="stable")
    return len(order), np.argsort(order)[labels]


def _spectral_labels(graph, n_clusters, rng):
    """Cut a graph by normalised spectral clustering; a vertex without edges is a component."""
    n_vertices = graph.shape[0]
    if n_vertices <= n_clusters:
        return np.arange(n_vertices)
    is_alone = graph.sum(axis=1) == 0
    # a loop, so that its degree is not 0
    graph = graph + sparse.diags_array(is_alone.astype(np.float64))
    if n_vertices <= _MOST_DENSE_VERTICES:
        return spectral_clustering(graph.toarray(), n_clusters, rng)
    from scipy.sparse.linalg import eigsh

    scale = 1.0 / np.sqrt(graph.sum(axis=1))
    normalised = sparse.diags_array(scale) @ graph @ sparse.diags_array(scale)
    # eigsh would draw its start from NumPy's global state
    start = rng.standard_normal(n_vertices)
    _, vectors = eigsh(normalised, n_clusters, which="LA", v0=start, tol=1e-6)
    # a vertex may have no part in the leading vectors
    embedding = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    seed = int(rng.integers(2**31 - 1))
    return best_of_starts(embedding, n_clusters, seed)
