"""Scaling by declared bounds, not by the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from privclust.core.hints import Bounds
from privclust.core.validation import check_parameters, check_real
from privclust.privacy.bounds import Box, bounds_of, checked_box
from privclust.privacy.estimator import private_records

_FLOATS = [np.float64, np.float32]


def _check_range(name: str, value: Any, others: Mapping[str, Any]) -> None:
    try:
        least, largest = value
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers (least, largest), got {value!r}") from None
    for end in (least, largest):
        check_real(name, end, above=-np.inf)
    if not least < largest:
        raise ValueError(f"{name} must be (least, largest) with least < largest, got {value!r}")


@dataclass(eq=False, repr=False)
class BoundsScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map declared bounds to [-1, 1]^d, each axis separately.

    For features with different units before a private estimator: `fit` uses only the number of
    features, and a scaled row depends only on that row. So neighbours stay neighbours, and the
    guarantee of a following estimator holds for the rows before the scaler. Scaling by means,
    deviations or extremes of the data has no such property.

    Parameters
    ----------
    bounds : (low, high) or mapping
        The box, in the units of X: each a number or an array of shape (n_features,), ``low < high``
        on every axis, of magnitude up to 1e100; or (low, high) for each column of a frame, by its
        name. They must not come from private data.
    feature_range : (least, largest), default (-1, 1)
        The images of `low` and `high`: two numbers. The box lies in the unit ball for ``(-1 /
        sqrt(d), 1 / sqrt(d))``, which suits ``norm_bound=1``.
    clip : bool, default False
        Whether entries outside are clipped to the box, and NaN to its middle. Otherwise they are
        mapped like others, beyond `feature_range`, and left to the following estimator.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        If X has names.

    Raises
    ------
    ValueError
        If a parameter is out of range, the bounds are for another number of features, or X is not a
        table. Any entries are accepted (no numbers count as NaN), and X may be empty: no row
        decides between a result and an error.

    Warns
    -----
    PrivacyLeakWarning
        In `fit`, if X seems to be scaled by its own statistics already
        (`privclust.privacy.scaling`).

    See Also
    --------
    privclust.privacy.scaling.is_standardised : detects a scaler fitted to the data.

    Examples
    --------
    >>> from privclust.preprocessing import BoundsScaler
    >>> scaler = BoundsScaler(([0, 0], [120, 500_000]))  # age in years, income a year
    >>> scaler.fit_transform([[30, 125_000], [60, 500_000]])
    array([[-0.5, -0.5],
           [ 0. ,  1. ]])
    >>> scaler.inverse_transform([[0.5, 0.0]])  # a center
    array([[9.0e+01, 2.5e+05]])
    """

    n_features_in_: int = field(init=False)
    feature_names_in_: np.ndarray = field(init=False)

    _constraints: ClassVar = {"feature_range": _check_range}

    bounds: Bounds
    _: KW_ONLY
    feature_range: tuple[float, float] = (-1.0, 1.0)
    clip: bool = False

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the parameters, and count the features of X (n_samples, n_features)."""
        X = self._validated(X, reset=True)
        self._boxes(X.shape[1])
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return X, of shape (n_samples, n_features), with the box mapped to `feature_range`.

        Rows in the box stay within `feature_range`, to the last bit. float32 stays float32.
        """
        X = self._validated(X)
        box, target = self._boxes(X.shape[1])
        return _mapped(X, box, target, self.clip)

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Return points (n_points, n_features), such as centers, in the units of the data.

        Nothing is clipped.
        """
        X = self._validated(X)
        box, target = self._boxes(X.shape[1])
        return _mapped(X, target, box, False)

    def _validated(self, X: ArrayLike, reset: bool = False) -> np.ndarray:
        """Return any number of rows, with the number of features of `fit`."""
        return private_records(self, X, dtype=_FLOATS, neighbours="add_remove", reset=reset).rows

    def _boxes(self, n_features: int) -> tuple[Box, Box]:
        check_parameters(self)
        return checked_box(bounds_of(self), n_features), checked_box(self.feature_range, n_features)

    def __sklearn_tags__(self) -> Any:
        """Declare that fitting learns nothing, and that any number is accepted."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _mapped(X: np.ndarray, source: Box, target: Box, clip: bool) -> np.ndarray:
    """Map one box to the other, corners exactly; return rows in the precision of X.

    Entries inside and outside are mapped separately, so that rounding keeps the former inside.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        part = (X - source.low) / (source.high - source.low)
        inside = np.clip(part, 0.0, 1.0)
        rows = target.clipped((target.low * (1.0 - inside) + target.high * inside).astype(X.dtype))
        if clip:
            return rows
        return rows + ((part - inside) * (target.high - target.low)).astype(X.dtype)
