"""Test whether components can be distinguished from noise, as post-processing."""

from __future__ import annotations

import math

import numpy as np

from privclust.privacy.hidden import COUNT_DEVIATIONS

_MEAN_PART = 0.25  # relative to the radius of the ball, or of a component's frame


def detected_components(
    counts: np.ndarray, count_noise: float, sum_noise: float | np.ndarray, n_features: int
) -> np.ndarray:
    """Return which components can be distinguished from noise, (n_components,), bool.

    `count_noise` and `sum_noise` are standard deviations of noisy counts and of an entry of sums,
    the latter in units of the radius of the ball, or of the component's frame.

    Examples
    --------
    >>> detected_components(np.array([900.0, 20.0, 35.0]), 10.0, 10.0, 2)
    array([ True, False, False])
    """
    moved = math.sqrt(n_features) * sum_noise / np.maximum(counts, 1.0)
    return (counts > COUNT_DEVIATIONS * count_noise) & (moved < _MEAN_PART)
