"""The base class of estimators that find linear subspaces, and their starts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from privclust.core.grassmann import bases_of_labels, orthonormal, random_bases, residuals
from privclust.core.validation import Integer, check_option
from privclust.privacy.estimator import validated
from privclust.privacy.guarantee import Guarantee

DIMENSION = Integer(below="n_features")
_LARGEST_ENTRY = 1e100  # largest coordinate: the squares can be summed without overflow
_ORTHONORMALITY_TOLERANCE = 1e-5  # largest entry of U'U - I by rounding, also of float32


class SubspaceClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base of clusterers that assign a row to the nearest linear subspace.

    A subclass supplies `fit`, which sets the attributes.
    """

    subspaces_: np.ndarray
    labels_: np.ndarray
    n_features_in_: int

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the index of the nearest subspace of each row; the first in a tie.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers of magnitude up to 1e100.

        Returns
        -------
        ndarray of shape (n_samples,), int64

        Raises
        ------
        ValueError
            If X is not finite, too large, or has another number of features.
        """
        return residuals(self._checked(X), self.subspaces_).argmin(axis=1)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the distance of each row to each subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            In the units of X.

        Raises
        ------
        ValueError
            If X is not finite, too large, or has another number of features.
        """
        return np.sqrt(residuals(self._checked(X), self.subspaces_))

    @property
    def _n_features_out(self):
        return len(self.subspaces_)

    def _checked(self, X):
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, order="C", reset=False)
        check_magnitude(X)
        return X


def check_magnitude(X: np.ndarray) -> None:
    """Raise a ValueError if squares of entries could overflow."""
    # without an array of absolute values as large as X
    largest = max(-float(X.min()), float(X.max()))
    if largest > _LARGEST_ENTRY:
        raise ValueError(f"X has a magnitude above {_LARGEST_ENTRY:g}: rescale X")


def starting_bases(
    estimator: Any,
    X: np.ndarray,
    rng: np.random.Generator,
    *,
    seeded: bool,
    groups: ArrayLike | None = None,
):
    """Return starting bases (n_clusters, n_features, dimension), and their source in the data.

    The source is None, labels or a fitted estimator. The parameter `init` of the estimator is
    ``"random"``, for uniform subspaces; bases of that shape; labels 0 .. n_clusters - 1 of shape
    (n_samples,), see `bases_of_labels`; or an estimator: its clone is fitted to X, as given by the
    user, and to `groups` if it takes them. It gives its `subspaces_`, or else the bases of its
    `labels_`.

    With `seeded`, an estimator with `random_state=None` gets a seed drawn from `rng`, so that the
    caller's seed repeats everything; otherwise it draws its own noise. Raises a ValueError if
    `init` is none of these, or its number of clusters, features or dimensions differs.
    """
    init, n_clusters, dimension = estimator.init, estimator.n_clusters, estimator.dimension
    shape = (n_clusters, X.shape[1], dimension)
    if isinstance(init, str):
        check_option("init", init, ["random"])
        return random_bases(*shape, rng), None
    fitted = None
    if hasattr(init, "fit") and not isinstance(init, type):
        fitted = _fitted(init, X, n_clusters, rng, seeded, groups)
        if hasattr(fitted, "subspaces_"):
            return _checked_bases(fitted.subspaces_, shape), fitted
        init = getattr(fitted, "labels_", None)
    try:
        array = np.array(init, dtype=np.float64)
    except (TypeError, ValueError):
        # no dimensions: neither bases nor labels, so that the message below is raised
        array = np.empty(())
    if array.ndim == 3:
        return _checked_bases(array, shape), None
    if array.ndim == 1:
        labels = _checked_labels(array, len(X), n_clusters)
        # private estimators accept any row, also with NaN or inf
        bases = bases_of_labels(np.nan_to_num(X), labels, n_clusters, dimension, rng)
        return bases, labels if fitted is None else fitted
    got = f"an array of shape {array.shape}" if array.ndim else type(init).__name__
    raise ValueError(
        "init must be 'random', an array of bases of shape (n_clusters, n_features, dimension) = "
        f"{shape}, an array of labels, one for each row of X, or an estimator, got {got}"
    )


def start_guarantee(start) -> tuple[Guarantee | None, tuple[str, ...]]:
    """Return the guarantee of a start, and the reasons if it has none.

    `start` is the second result of `starting_bases`. The guarantee names releases as the start's
    and must be composed with later ones; None if nothing is spent or nothing is guaranteed. The
    caveats are empty, or say why nothing computed from this start has a guarantee.
    """
    if start is None:
        return None, ()
    if isinstance(start, np.ndarray):
        return None, ("the start is made of labels, which were taken from the data without noise",)
    name = type(start).__name__
    guarantee = getattr(start, "guarantee_", None)
    if guarantee is None:
        return None, (f"the start was taken from the data without noise, by {name}",)
    if not hasattr(start, "subspaces_"):
        return None, (f"the start's bases are of the data, by labels of {name}, without noise",)
    if guarantee.definition in ("none", "asymptotic"):
        reasons = "; ".join(guarantee.caveats) or "private in a limit only"
        return None, (f"the start, by {name}, has no guarantee: {reasons}",)
    return guarantee.part("start"), ()


def _fitted(estimator, X, n_clusters, rng, seeded, groups):
    """Return a fitted clone of an estimator with the same number of clusters."""
    estimator = clone(estimator)
    params = estimator.get_params(deep=False)
    if "n_clusters" in params and params["n_clusters"] != n_clusters:
        raise ValueError(
            f"init must find n_clusters={n_clusters} clusters, got {type(estimator).__name__} with "
            f"n_clusters={params['n_clusters']!r}"
        )
    if seeded and "random_state" in params and params["random_state"] is None:
        estimator.set_params(random_state=int(rng.integers(2**31 - 1)))
    if groups is not None and has_fit_parameter(estimator, "groups"):
        return estimator.fit(X, groups=groups)
    return estimator.fit(X)


def _checked_bases(bases, shape):
    """Return orthonormal bases of the same subspaces, after checks."""
    bases = np.asarray(bases, dtype=np.float64)
    if bases.shape != shape or not np.isfinite(bases).all():
        raise ValueError(
            f"init: bases must be finite of shape (n_clusters, n_features, dimension) = {shape}, "
            f"got shape {bases.shape}"
        )
    error = np.abs(bases.transpose(0, 2, 1) @ bases - np.eye(shape[2])).max()
    if error > _ORTHONORMALITY_TOLERANCE:
        raise ValueError(
            f"init: bases must have orthonormal columns, got U'U - I up to {error:.2g}"
        )
    return orthonormal(bases)


def _checked_labels(labels, n_samples, n_clusters):
    """Return labels as int64, after checks."""
    if labels.shape != (n_samples,) or not np.isin(labels, np.arange(n_clusters)).all():
        raise ValueError(
            f"init: labels must be integers 0 .. {n_clusters - 1}, one for each row of X, got an "
            f"array of shape {labels.shape}"
        )
    return labels.astype(np.int64)
