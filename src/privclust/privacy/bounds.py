"""Bounds on rows, which sensitivities rest on, and starts that owe nothing to the data."""

from __future__ import annotations

import warnings

import numpy as np

from privclust.privacy.guarantee import PrivacyLeakWarning
from privclust.validation import check_option, check_real

OUT_OF_BOUNDS = ("clip", "error")
_ROUNDING = 1e-12  # a norm may exceed the bound by this part of it
_LEAST, _LARGEST = 1e-100, 1e100  # norms whose squares and fourth powers are ordinary numbers


def bounded_rows(
    X: np.ndarray, norm_bound: float | None, out_of_bounds: str
) -> tuple[np.ndarray, float, tuple[str, ...]]:
    """Return rows within a ball about the origin, its radius, and what the data told of it.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    norm_bound : float or None
        Largest Euclidean norm, from 1e-100 to 1e100; None takes the largest of the data, which
        leaks.
    out_of_bounds : {"clip", "error"}
        Whether longer rows are drawn in to the ball, with a warning, or refused. Warning and error
        tell whoever holds the data; that there was one is outside every guarantee.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The same array where no row was longer.
    radius : float
        Positive.
    leaks : tuple of str
        Empty, or what was taken from the data without noise.

    Raises
    ------
    ValueError
        If a parameter is out of range, or a row too long and refused.

    Warns
    -----
    PrivacyLeakWarning
        If the bound is taken from the data.
    """
    check_option("out_of_bounds", out_of_bounds, OUT_OF_BOUNDS)
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    largest = float(norms.max())
    if largest > _LARGEST:
        raise ValueError(
            f"X: row {int(np.argmax(norms))} has a norm above {_LARGEST:g}, got {largest:g}: "
            "rescale X"
        )
    if norm_bound is None:
        if largest < _LEAST and X.any():
            raise ValueError(f"X has no norm above {_LEAST:g}, got {largest:g}: rescale X")
        leak = "norm_bound was not given and is taken from the data"
        warnings.warn(
            f"{leak}: the fit has no guarantee. Give a bound that is known without the data.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
        return X, largest or 1.0, (leak,)
    check_real("norm_bound", norm_bound)
    radius = float(norm_bound)
    if not _LEAST <= radius <= _LARGEST:
        raise ValueError(
            f"norm_bound must lie between {_LEAST:g} and {_LARGEST:g}, got {radius:g}: rescale X"
        )
    outside = norms > radius * (1.0 + _ROUNDING)
    if not outside.any():
        return X, radius, ()
    if out_of_bounds == "error":
        raise ValueError(
            f"X: row {int(np.argmax(outside))} has a norm above norm_bound={radius:g}, and others "
            "may; raise the bound or pass out_of_bounds='clip'"
        )
    warnings.warn(
        f"rows with a norm above norm_bound={radius:g} are drawn in to it",
        UserWarning,
        stacklevel=3,
    )
    return X * np.minimum(1.0, radius / np.maximum(norms, radius))[:, None], radius, ()


def uniform_in_ball(n_points: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Return points drawn uniformly from the unit ball, shape (n_points, n_features).

    Examples
    --------
    >>> points = uniform_in_ball(5, 3, np.random.default_rng(0))
    >>> bool((np.linalg.norm(points, axis=1) <= 1).all())
    True
    """
    directions = rng.normal(size=(n_points, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * rng.random((n_points, 1)) ** (1.0 / n_features)
