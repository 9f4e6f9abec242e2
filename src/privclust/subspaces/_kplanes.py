"""k-plane clustering: Lloyd's algorithm for linear subspaces."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from privclust.core.grassmann import nearest_subspaces, principal_bases
from privclust.core.hints import RandomState
from privclust.core.progress import logged
from privclust.core.validation import GROUPS, as_generator, check_parameters
from privclust.subspaces._subspace_clusterer import (
    DIMENSION,
    SubspaceClusterer,
    check_magnitude,
    starting_bases,
)


@dataclass(eq=False, repr=False)
class KPlanes(SubspaceClusterer):
    r"""k-means for linear subspaces (k-plane). Not private.

    Lowers :math:`\sum_i \min_j d^2(x_i, S_j)`, n times eq. (3), by alternately assigning rows to
    their nearest subspace and moving each subspace to minimize the squared distances of its rows:
    the eigenvectors of :math:`\sum x x'` of the `dimension` largest eigenvalues. Subspaces go
    through the origin, so rows are not centered. The cost never rises; a run ends when labels no
    longer change. A cluster that loses all its rows gets an arbitrary subspace.

    A turn costs O(n_samples n_features (n_clusters dimension + n_features)) in matrix products;
    beyond X, memory is some numbers a row and n_clusters n_features^2.

    Parameters
    ----------
    n_clusters : int
        k.
    dimension : int
        q, of each subspace; from 1 to n_features - 1.
    init : "random", array-like or estimator
        ``"random"``: subspaces of uniformly random orientation. Or bases of shape (n_clusters,
        n_features, dimension), orthonormal, as columns; or labels of shape (n_samples,); or an
        estimator that is cloned and fitted, and gives its `subspaces_` or else its `labels_`.
    n_init : int
        Number of random starts; the first result of least cost is kept. A given start is run once.
    max_iter : int
        Maximum number of turns from one start.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState

    Attributes
    ----------
    subspaces_ : ndarray of shape (n_clusters, n_features, dimension)
        Orthonormal bases, as columns.
    labels_ : ndarray of shape (n_samples,)
    inertia_ : float
        Sum of the squared distances to the nearest subspace, correct up to rounding of the sum of
        squares of X.
    n_iter_ : int
        Turns of the run that was kept.
    n_features_in_ : int

    References
    ----------
    P. Bradley and O. Mangasarian, "k-plane clustering", Journal of Global Optimization 16, 2000;
    Y. Wang, Y.-X. Wang and A. Singh, "Differentially private subspace clustering", NIPS 2015,
    eq. (3).

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 3.0, 4.0], [0.0, 6.0, 8.0]])
    >>> model = KPlanes(2, 1, random_state=0).fit(X)
    >>> np.abs(model.subspaces_[model.labels_[[0, 2]], :, 0]).round(3)
    array([[1. , 0. , 0. ],
           [0. , 0.6, 0.8]])
    """

    inertia_: float = field(init=False)
    n_iter_: int = field(init=False)

    _constraints: ClassVar = {"n_clusters": GROUPS, "dimension": DIMENSION}

    n_clusters: int = 2
    dimension: int = 1
    _: KW_ONLY
    init: Literal["random"] | ArrayLike | BaseEstimator = "random"
    n_init: int = 10
    max_iter: int = 100
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find subspaces.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers of magnitude up to 1e100.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is not finite, is too large, has fewer rows than clusters or no more features than
            dimensions, or a parameter is out of its range.
        """
        X = validate_data(self, X, dtype=np.float64, order="C")
        check_magnitude(X)
        check_parameters(self, X)
        rng = as_generator(self.random_state)
        best = None
        n_starts = self.n_init if isinstance(self.init, str) else 1
        for _ in logged(range(n_starts), n_starts, "k-planes: starts"):
            bases, _ = starting_bases(self, X, rng, seeded=True)
            run = _alternate(X, bases, self.max_iter)
            if best is None or run[2] < best[2]:
                best = run
        self.subspaces_, self.labels_, self.inertia_, self.n_iter_ = best
        return self


def _alternate(X, bases, max_iter):
    """Take turns from one start; return bases, labels, the sum of squared distances and turns."""
    labels, least, moments = nearest_subspaces(X, bases)
    inertia, n_iter = least.sum(), 0
    while n_iter < max_iter:
        n_iter += 1
        moved = principal_bases(moments, bases.shape[2])
        new_labels, least, moments = nearest_subspaces(X, moved)
        if least.sum() >= inertia:  # converged, up to rounding
            break
        is_settled = np.array_equal(labels, new_labels)
        bases, labels, inertia = moved, new_labels, least.sum()
        if is_settled:
            break
    return bases, labels, float(inertia), n_iter
