"""Linear preparations of samples, as scikit-learn transformers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from privclust.core.validation import check_parameters
from privclust.privacy.estimator import validated


@dataclass(eq=False, repr=False)
class PrincipalCoordinates(TransformerMixin, BaseEstimator):
    """Coordinates of samples in the leading right singular vectors of X, without centring.

    Unlike principal component analysis it keeps linear subspaces through the origin linear, since
    nothing is subtracted.

    Parameters
    ----------
    n_components : int, default 12
        Number of coordinates, at least 1; fewer if X has fewer.

    Attributes
    ----------
    components_ : ndarray of shape (n_kept, n_features)
        Orthonormal rows, each with its largest entry positive.

    Raises
    ------
    ValueError
        In `fit`, if `n_components` is not a positive integer or X is not a finite matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.preprocessing import PrincipalCoordinates
    >>> X = np.outer([1.0, 2.0, 3.0], [3.0, 4.0])
    >>> PrincipalCoordinates(n_components=1).fit_transform(X).ravel()
    array([ 5., 10., 15.])
    """

    components_: np.ndarray = field(init=False)

    n_components: int = 12

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the leading right singular vectors of X (n_samples, n_features)."""
        X = validated(self, X, dtype=np.float64)
        check_parameters(self)
        components = np.linalg.svd(X, full_matrices=False)[2][: self.n_components]
        largest = np.abs(components).argmax(axis=1)
        # signs of singular vectors depend on the LAPACK library
        signs = np.sign(components[np.arange(len(components)), largest])
        self.components_: np.ndarray = components * signs[:, None]
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the coordinates (n_samples, n_kept) of samples (n_samples, n_features)."""
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, reset=False)
        return X @ self.components_.T


def _not_zero(name: str, value: Any, others: Mapping[str, Any]) -> None:
    """Raise a ValueError if a number is 0; either sign is accepted."""
    if not isinstance(value, Real) or not math.isfinite(value) or value == 0:
        raise ValueError(f"{name}: got {value!r}; it must be a finite number other than 0")


@dataclass(eq=False, repr=False)
class AppendOne(TransformerMixin, BaseEstimator):
    """Append a constant to every sample, so that affine subspaces become linear ones.

    A coefficient vector that represents such samples exactly sums to one, which is the constraint
    of eq. (18) of the MTSC paper; with noise, the constant's size is the weight of the constraint.

    Parameters
    ----------
    value : float, default 1.0
        The constant, in the units of X; not 0.

    Raises
    ------
    ValueError
        In `fit`, if `value` is 0 or not finite, or X is not a table. Any entries are accepted (no
        numbers count as NaN), and X may be empty.

    Examples
    --------
    >>> from privclust.preprocessing import AppendOne
    >>> AppendOne().fit_transform([[2.0, 3.0]])
    array([[2., 3., 1.]])
    """

    _constraints: ClassVar = {"value": _not_zero}

    value: float = 1.0

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check X (n_samples, n_features) and the constant."""
        self._rows(X, reset=True)
        check_parameters(self)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return X with an additional constant column."""
        X = self._rows(X, reset=False)
        return np.column_stack([X, np.full(len(X), float(self.value))])

    def _rows(self, X: ArrayLike, reset: bool) -> np.ndarray:
        """Return any number of rows with any cells, which later steps clip."""
        options = {"ensure_all_finite": False, "ensure_min_samples": 0, "reset": reset}
        return validated(self, X, dtype=np.float64, **options)

    def __sklearn_tags__(self) -> Any:
        """Declare that fitting learns nothing, and that any cell is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.requires_fit = False
        return tags
