"""Frequencies and random directions of a fit's sketches: their numbers and distributions."""

from __future__ import annotations

import math

import numpy as np

from privclust.core.hints import Bounds
from privclust.decoding._mixture_fit import cell_variance
from privclust.decoding._moments import Moments
from privclust.privacy.bounds import Box, check_magnitude, checked_box, extremes, leaks_of
from privclust.sketches._frequencies import draw_frequencies

PILOT_SHARE = 0.1
"""Share of the budget for the pilot, which estimates mean and variances of the data."""
# benchmarks/ablation.py measures the effect of these constants on the loss
_PER_UNKNOWN, _LEAST_FREQUENCIES = 10, 500  # m = 10 k d, as the paper recommends; at least 500
_LARGE_SKETCH, _PER_UNKNOWN_IF_LARGE = 5000, 3  # above m = 5000 only 3 k d
_PER_UNKNOWN_LAPLACE, _LEAST_FREQUENCIES_LAPLACE = 5, 100  # smaller: Laplace noise grows with m
_VARIANCE_OF_CLUSTER = 4.0  # scale of the frequencies, in variances of a cluster
# largest fraction of frequencies on all scales, which is 1 / d; most features with some
_MOST_BROAD, _FEW_FEATURES = 0.5, 3
# rows with more than 16 features are projected to 2 log k directions, at least 8
_MANY_FEATURES, _FEWEST_DIRECTIONS, _DIRECTIONS_PER_LOG = 16, 8, 2.0
_PILOT_FREQUENCIES, _PILOT_PER_FEATURE = 64, 4  # frequencies of a pilot: 64 + 4 d
_RANGE = 1e99, 1e-20  # coordinates and widths with frequencies that do not overflow
_PILOT_DECADES = -0.7, 2.3  # log10 of radii of pilot frequencies times the half-width of the box


def number_of_frequencies(n_unknowns: int) -> int:
    m = min(_PER_UNKNOWN * n_unknowns, _LARGE_SKETCH)
    return max(m, _PER_UNKNOWN_IF_LARGE * n_unknowns, _LEAST_FREQUENCIES)


def number_under_laplace_noise(n_unknowns: int) -> int:
    """Return m for a number of center coordinates if noise grows with m."""
    return max(_PER_UNKNOWN_LAPLACE * n_unknowns, _LEAST_FREQUENCIES_LAPLACE)


def number_of_directions(n_clusters: int, n_features: int) -> int:
    """Return the number of random directions that resolve the clusters; all if d is small."""
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
    """Draw frequencies on the scale of clusters, guessed from the moments of the data."""
    d = len(moments.mean)
    variance = _VARIANCE_OF_CLUSTER * moments.variance * cell_variance(n_clusters, d)
    return sketch_frequencies(d, n_frequencies, variance, rng)


def sketch_frequencies(n_features: int, n_frequencies: int, variance: float, rng) -> np.ndarray:
    """Draw frequencies around one scale, with few features a fraction of them on all scales.

    A narrow cluster next to a wide one has its own scale. This fraction is only affordable with one
    to three features; with more, too few frequencies are left on the scale of most clusters.
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
    """Return the declared box, or for a private fit that of the data, and its leaks."""
    if bounds is not None:
        box = checked_box(bounds, X.shape[1])
        check_magnitude("bounds", box.low, box.high, *_RANGE)
        return box, ()
    low, high = extremes(X)
    check_magnitude("X", low, high, *_RANGE)
    if epsilon is None:
        return None, ()
    leaks = leaks_of()
    # a box without width along an axis has no scale for frequencies
    margin = 1e-3 * max(float((high - low).max()), 1e-6 * float(np.abs(X).max()), 1e-12)
    return Box(low - margin, high + margin), leaks
