"""k-means by Lloyd's algorithm, without privacy: the reference for the private methods."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from privclust.core.hints import RandomState
from privclust.core.lloyd import inertia, lloyd, nearest_center, plus_plus
from privclust.core.validation import GROUPS, NOT_NEGATIVE, as_generator, check_parameters
from privclust.privacy.estimator import takes_any_row, validated, warn_of_score

_LARGEST = 1e100  # largest coordinate: the squares can be summed without overflow


class CenterClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base of clusterers that assign a row to the nearest of `cluster_centers_`."""

    cluster_centers_: np.ndarray
    labels_: np.ndarray
    n_features_in_: int

    _constraints: ClassVar[dict[str, Any]] = {"n_clusters": GROUPS}

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the index of the nearest center of each row, shape (n_samples,)."""
        return nearest_center(self._validated(X), self.cluster_centers_)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the distance of each row to each center, shape (n_samples, n_clusters)."""
        return cdist(self._validated(X), self.cluster_centers_)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return minus the sum of squared distances of rows to their nearest center.

        It is computed from these rows without noise: it is not private, nor is a choice by it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : None
            Not used.

        Warns
        -----
        PrivacyLeakWarning
            If the centers are private: a search over parameters by scores of private rows has a
            larger privacy loss than the fits, which no guarantee covers.
        """
        check_is_fitted(self)
        warn_of_score(self)
        X = validated(self, X, dtype=[np.float64, np.float32], order="C", reset=False)
        return -inertia(X, self.cluster_centers_)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _validated(self, X):
        """Check that the estimator is fitted, and return X; accept the rows that `fit` accepts."""
        check_is_fitted(self)
        finite: bool | str = not takes_any_row(self)
        if not finite and getattr(self, "missing", "middle") == "drop":
            finite = "no NaN"
        how = {"dtype": [np.float64, np.float32], "order": "C", "reset": False}
        return validated(self, X, **how, ensure_all_finite=finite)


@dataclass(eq=False, repr=False)
class LloydKMeans(CenterClusterer):
    r"""k-means by Lloyd's algorithm, the best of several starts. Not private.

    Minimises eq. (1), :math:`\sum_i \min_j \|x_i - c_j\|^2`: assigns rows to their nearest center
    and moves centers to the mean of their rows, in turns. The defaults are those of the reference
    of the compressive k-means paper, "Lloyd's k-means" with 3 replicates in Matlab, which starts
    from k-means++.

    A pass over 10^7 rows with n_features = n_clusters = 10 takes about 0.2 s on one core. float32
    rows are not copied. Beyond X, memory is 8 bytes a row for labels, and another 8 while k-means++
    draws a start.

    Parameters
    ----------
    n_clusters : int
        k.
    n_init : int
        Number of starts (replicates); the one of least inertia is kept, the first if several are
        equal. A given start is run once.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
        ``"k-means++"``: the first center is a row drawn uniformly, each further one a row drawn
        with probability proportional to its squared distance to the nearest center so far.
    max_iter : int
        Most updates of the centers from one start.
    tol : float
        Relative decrease of the inertia at or below which a run ends. 0: a run ends when the
        inertia no longer falls, or no center moves.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    inertia_ : float
        The sum of squared errors (SSE) of eq. (1).
    labels_ : ndarray of shape (n_samples,)
    n_iter_ : int
        Updates of the run that was kept.

    Notes
    -----
    The new center of an empty cluster is the row farthest from its own center (several such
    clusters: the farthest, the next, ...; the first of equal rows).

    References
    ----------
    S. Lloyd, "Least squares quantization in PCM", IEEE Trans. Information Theory 28(2), 1982;
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007;
    V. Schellekens et al., "Differentially private compressive k-means", ICASSP 2019, eq. (1).

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = LloydKMeans(2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([0.5, 10.5], 1.0)
    """

    inertia_: float = field(init=False)
    n_iter_: int = field(init=False)

    _constraints: ClassVar = {"tol": NOT_NEGATIVE}

    n_clusters: int = 8
    _: KW_ONLY
    n_init: int = 3
    init: Literal["k-means++"] | ArrayLike = "k-means++"
    max_iter: int = 300
    tol: float = 0.0
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers of magnitude up to 1e100; float32 stays float32.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is not finite, is too large, has fewer rows than clusters, or a parameter is out
            of its range.
        """
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
        check_parameters(self, X)
        largest = max(-float(X.min()), float(X.max()))
        if largest > _LARGEST:
            raise ValueError(f"X has a magnitude above {_LARGEST:g}: rescale X")
        rng = as_generator(self.random_state)
        best = None
        for _ in range(self.n_init if isinstance(self.init, str) else 1):
            run = lloyd(X, self._start(X, rng), self.max_iter, self.tol)
            if best is None or run[1] < best[1]:
                best = run
        self.cluster_centers_, self.inertia_, self.n_iter_ = best
        self.labels_ = nearest_center(X, self.cluster_centers_)
        return self

    def _start(self, X, rng):
        if not isinstance(self.init, str):
            return checked_centers("init", self.init, (self.n_clusters, X.shape[1]))
        return plus_plus(X, self.n_clusters, rng)


def checked_centers(name: str, centers, shape: tuple[int, int]) -> np.ndarray:
    """Return given centers as a new float64 array; raise a ValueError if they are not valid."""
    try:
        array = np.array(centers, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers of shape {shape}, got {centers!r}") from None
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite of shape {shape}, got shape {array.shape}")
    return array
