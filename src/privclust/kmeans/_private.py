"""Private k-means by a method chosen from public parameters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.hints import Bounds, RandomState
from privclust.kmeans._compressive import CompressiveKMeans
from privclust.kmeans._lloyd import CenterClusterer
from privclust.kmeans._tree import TreeKMeans
from privclust.privacy.estimator import PrivateEstimator
from privclust.privacy.sensitivity import check_neighbours
from privclust.records.matrix import numbers_of_table

_MOST_FEATURES_OF_TREE = 2
_FROM_METHOD = (
    *("cluster_centers_", "weights_", "labels_", "guarantee_", "left_out_", "is_detected_"),
    *("is_stable_", "cluster_spreads_", "mean_inertia_"),
    *("n_features_in_", "feature_names_in_", "_n_public", "_reads_list"),
)


def method_for(n_features: int, delta: float) -> str:
    """Return the method of `PrivateKMeans`: "tree" or "sketch".

    Examples
    --------
    >>> method_for(2, 1e-6), method_for(2, 0.0), method_for(3, 1e-6)
    ('tree', 'sketch', 'sketch')
    """
    return "tree" if n_features <= _MOST_FEATURES_OF_TREE and delta else "sketch"


@dataclass(eq=False, repr=False)
class PrivateKMeans(PrivateEstimator, CenterClusterer):
    """Private k-means, by the method that suits the number of features.

    With one or two features and a positive delta centers are found by `TreeKMeans`, elsewhere by
    `CompressiveKMeans`. The number of features and delta are public, so that the choice costs no
    privacy. In the plane the tree has about the same loss and takes a tenth of the time; with many
    clusters its loss is far smaller. Use the two classes themselves for their own parameters.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k, at least 1.
    epsilon : float
        Privacy parameter, above 0, in nats.
    delta : float
        Privacy parameter, from 0 to less than 1. With 0 the method is ``"sketch"``, with Laplace
        noise, which hides far more.
    neighbours : {"replace_one", "add_remove"}
        Neighbouring relation: one row (or person) is replaced, or one is added or removed.
    bounds : (low, high), mapping or None
        Lower and upper bound of the features, known without the data: numbers or arrays of shape
        (n_features,); or (low, high) for each column of a frame, by its name. None computes them
        from the data, with a warning, and there is no guarantee.
    missing : {"drop", "middle"}
        A row with an entry that is missing (NaN, None) or cannot be read as a number is left out,
        and counted by `left_out_`; or the entry is replaced by the middle of the bounds.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None draws noise that may be released (needs ``privclust[secure]``). Anything else gives
        reproducible noise, for experiments only.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Within the bounds.
    weights_ : ndarray of shape (n_clusters,)
        Noisy fractions of the rows (of persons, with `groups`) in the clusters, which add up to 1.
    labels_ : ndarray of shape (n_samples,)
        Index of the nearest center of each row of X; -1 for a row that is left out. Not private: do
        not publish it. Pickles do not contain it.
    is_detected_ : ndarray of shape (n_clusters,)
        Whether a cluster is distinguishable from noise.
    is_stable_ : bool
        Whether starts of the decoder agree; only with ``"sketch"`` (see `CompressiveKMeans`).
    cluster_spreads_ : ndarray of shape (n_clusters, n_features)
        Standard deviation of each feature in each cluster, in units of the feature. With
        ``"tree"``, the root mean square over features, the same for each.
    mean_inertia_ : float
        Noisy mean squared distance of a row to its center, in squared units of the features.
        ``estimator_.standard_errors()`` has its standard error, and those of centers and spreads.
    left_out_ : privclust.privacy.NoisyCount or None
        Noisy number of rows (of persons, with `groups`) that are left out, if released.
    guarantee_ : privclust.privacy.Guarantee
    method_ : {"tree", "sketch"}
        The method that was chosen.
    estimator_ : TreeKMeans or CompressiveKMeans
        The fitted estimator, with all its attributes.

    See Also
    --------
    TreeKMeans : a tree of noisy counts.
    CompressiveKMeans : a noisy sketch and rounds; streams, files and many devices.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 0.1, (5000, 2)) for c in (-0.5, 0.0, 0.5)])
    >>> model = PrivateKMeans(3, epsilon=1.0, bounds=(-1.0, 1.0), random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1) + 0.0
    array([-0.5,  0. ,  0.5])
    >>> model.method_, round(model.guarantee_.epsilon, 3)
    ('tree', 1.0)
    """

    weights_: np.ndarray = field(init=False)
    is_detected_: np.ndarray = field(init=False)
    is_stable_: bool = field(init=False)
    cluster_spreads_: np.ndarray | None = field(init=False)
    mean_inertia_: float = field(init=False)
    method_: str = field(init=False)
    estimator_: TreeKMeans | CompressiveKMeans = field(init=False)

    _constraints: ClassVar[dict[str, Any]] = {"neighbours": check_neighbours}

    n_clusters: int = 8
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    neighbours: Literal["replace_one", "add_remove"] = "replace_one"
    bounds: Bounds | None = None
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        if self.epsilon is None:
            raise ValueError("epsilon must be a positive number, got None: use LloydKMeans")
        shape = getattr(X, "shape", None) or np.shape(numbers_of_table(X))
        method = method_for(shape[1], self.delta) if len(shape) == 2 else "sketch"
        parameters = self.get_params(deep=False)
        model = (TreeKMeans if method == "tree" else CompressiveKMeans)(**parameters)
        model.fit(X, groups=groups)
        for name in _FROM_METHOD:
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self.method_, self.estimator_ = method, model
        return self
