"""The base classes of estimators that segment subspaces."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from privclust.core.hints import RandomState
from privclust.core.spectral import estimate_n_clusters, spectral_clustering
from privclust.core.validation import GROUPS, Constraint, as_generator, check_parameters
from privclust.core.warn import warn_caller

_MAX_ESTIMATED_CLUSTERS = 20


@dataclass(eq=False, repr=False)
class SubspaceSegmenter(ClusterMixin, BaseEstimator):
    """Segment checked samples; a subclass supplies `_segment`, which sets the fitted attributes."""

    _constraints: ClassVar[dict[str, Constraint]] = {"n_clusters": GROUPS}

    n_clusters: int | None = None
    _: KW_ONLY
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the affinity and the labels of the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, at least two samples.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is not a finite matrix with at least two samples, `n_clusters` exceeds the number
            of samples or another parameter is out of its range.
        """
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        check_parameters(self, X)
        self._segment(X, as_generator(self.random_state))
        return self

    def _segment(self, X: np.ndarray, rng: np.random.Generator) -> None:
        """Set `labels_`, `n_clusters_` and their sources; X is (n, d), float64."""
        raise NotImplementedError


class SelfExpressiveClusterer(SubspaceSegmenter):
    """Cluster by writing each sample as a combination of the others.

    A subclass supplies `_coefficients`, which finds Z with ``X.T ~ X.T @ Z``; the affinity
    ``|Z| + |Z|.T`` (eq. 3 of the MTSC paper) is then segmented by spectral clustering.
    """

    coefficients_: np.ndarray
    affinity_matrix_: np.ndarray
    labels_: np.ndarray
    n_clusters_: int
    n_iter_: int

    def _segment(self, X, rng):
        coefficients = self._coefficients(np.ascontiguousarray(X.T))
        if not np.isfinite(coefficients).all():
            raise ValueError(
                "the coefficients overflowed: rescale X to a largest magnitude of about 1, got "
                f"{np.abs(X).max():g}"
            )
        self.coefficients_ = coefficients
        magnitudes = np.abs(coefficients)
        self.affinity_matrix_ = magnitudes + magnitudes.T
        if self.n_clusters is None:
            n_most = min(_MAX_ESTIMATED_CLUSTERS, len(X) // 2)
            self.n_clusters_ = estimate_n_clusters(self.affinity_matrix_, n_most)
        else:
            self.n_clusters_ = int(self.n_clusters)
        self.labels_ = spectral_clustering(self.affinity_matrix_, self.n_clusters_, rng)

    def _coefficients(self, samples: np.ndarray) -> np.ndarray:
        """Return Z (n, n) for `samples` X.T (d, n): finite, float64, C order, one column a sample.

        Sets `n_iter_` if the solver is iterative, and warns with
        `sklearn.exceptions.ConvergenceWarning` if it stops at `max_iter`.
        """
        raise NotImplementedError

    def _warn_unconverged(self, n_open: int, n_columns: int) -> None:
        """Warn with the number of columns for which the solver stopped at `max_iter`, if any."""
        if n_open:
            warn_caller(
                f"{n_open} of {n_columns} columns did not reach tol={self.tol:g} in "
                f"max_iter={self.max_iter} iterations",
                ConvergenceWarning,
            )
