"""Sizes of a fit's sketches: how many frequencies and random directions, and where they lie."""

from __future__ import annotations

import math

import numpy as np

from privclust.core.hints import Bounds
from privclust.core.warn import warn_caller
from privclust.decoding._mixture_fit import cell_variance
from privclust.decoding._moments import Moments
from privclust.privacy import PrivacyLeakWarning
from privclust.privacy.bounds import Box, checked_box, extremes
from privclust.sketches._frequencies import draw_frequencies

PILOT_SHARE = 0.1
"""Of the budget, to learn where the data are."""
_PER_UNKNOWN, _LEAST_FREQUENCIES = 10, 500  # m = 10 k d, as the paper recommends, while it is
_LARGE_SKETCH, _PER_UNKNOWN_IF_LARGE = 5000, 3  # below this; Gaussian noise grows with sqrt(m) only
_PER_UNKNOWN_LAPLACE, _LEAST_FREQUENCIES_LAPLACE = 5, 100  # as Laplace noise grows with m
_VARIANCE_OF_CLUSTER = 4.0  # the adapted law's variance is this times that of a cluster
_MOST_BROAD, _FEW_FEATURES = 0.5, 3  # part of the frequencies on all scales; where 1 / d are
_MANY_FEATURES, _FEWEST_DIRECTIONS, _DIRECTIONS_PER_LOG = 16, 8, 2.0
_PILOT_FREQUENCIES, _PILOT_PER_FEATURE = 64, 4
_LARGEST, _NARROWEST = 1e99, 1e-20  # coordinates and widths whose frequencies are ordinary numbers
_PILOT_DECADES = -0.7, 2.3  # radii of pilot frequencies times half the box's width


def number_of_frequencies(n_unknowns: int) -> int:
    m = min(_PER_UNKNOWN * n_unknowns, _LARGE_SKETCH)
    return max(m, _PER_UNKNOWN_IF_LARGE * n_unknowns, _LEAST_FREQUENCIES)


def number_under_laplace_noise(n_unknowns: int) -> int:
    """Return m for so many center coordinates where noise grows with m."""
    return max(_PER_UNKNOWN_LAPLACE * n_unknowns, _LEAST_FREQUENCIES_LAPLACE)


def number_of_directions(n_clusters: int, n_features: int) -> int:
    """Return how many random directions tell so many clusters apart; all of few features."""
    if n_features <= _MANY_FEATURES:
        return n_features
    several = math.ceil(_DIRECTIONS_PER_LOG * math.log(n_clusters))
    return min(n_features, max(_FEWEST_DIRECTIONS, several))


def pilot_size(n_features: int) -> int:
    return _PILOT_FREQUENCIES + _PILOT_PER_FEATURE * n_features


def pilot_frequencies(box: Box, rng: np.random.Generator) -> np.ndarray:
    """Draw frequencies of all scales of a box, (n_features, m)."""
    d = len(box.low)
    size = pilot_size(d)
    directions = rng.standard_normal((d, size))
    directions /= np.linalg.norm(directions, axis=0)
    half = math.sqrt(float((box.half_widths**2).mean()))
    return directions * (np.logspace(*_PILOT_DECADES, size) / half)


def cluster_frequencies(
    n_clusters: int, n_frequencies: int, moments: Moments, rng: np.random.Generator
) -> np.ndarray:
    """Draw frequencies on the scale of clusters that share out data of such moments."""
    d = len(moments.mean)
    variance = _VARIANCE_OF_CLUSTER * moments.variance * cell_variance(n_clusters, d)
    return sketch_frequencies(d, n_frequencies, variance, rng)


def sketch_frequencies(n_features: int, n_frequencies: int, variance: float, rng) -> np.ndarray:
    """Draw frequencies around one scale, and where features are few a part of them on all scales.

    A narrow cluster beside a wide one has its own scale. With one to three features both can be
    afforded; with more, too much is taken from the scale that most clusters have.
    """
    part = min(_MOST_BROAD, 1.0 / n_features) if n_features <= _FEW_FEATURES else 0.0
    n_broad = int(part * n_frequencies)
    n_near = n_frequencies - n_broad
    parts = [draw_frequencies(n_features, n_near, variance=variance, random_state=rng)]
    if n_broad:
        broad = {"variance": variance, "law": "log_uniform", "random_state": rng}
        parts.append(draw_frequencies(n_features, n_broad, **broad))
    return np.hstack(parts)


def box_of_fit(
    X: np.ndarray, bounds: Bounds | None, epsilon: float | None
) -> tuple[Box | None, tuple[str, ...]]:
    """Return the box that bounds declare, or for a private fit the data's, and what that leaks."""
    if bounds is not None:
        box = checked_box(bounds, X.shape[1])
        _check_scale("bounds", box.low, box.high)
        return box, ()
    low, high = extremes(X)
    _check_scale("X", low, high)
    if epsilon is None:
        return None, ()
    leak = "bounds were not given and are taken from the data"
    warn_caller(
        f"{leak}: the fit has no guarantee. Give bounds that are known without the data.",
        PrivacyLeakWarning,
    )
    margin = 1e-3 * max(float((high - low).max()), 1e-6 * float(np.abs(X).max()), 1e-12)
    return Box(low - margin, high + margin), (leak,)


def _check_scale(name: str, low: np.ndarray, high: np.ndarray) -> None:
    """Raise a ValueError unless squares and frequencies of what lies in a box are no trouble."""
    largest = max(-float(low.min()), float(high.max()))
    width = float((0.5 * high - 0.5 * low).max())
    if largest > _LARGEST or 0.0 < width < _NARROWEST:
        raise ValueError(
            f"{name} must have a magnitude of at most {_LARGEST:g} and a width of at least "
            f"{2 * _NARROWEST:g}: rescale X"
        )
