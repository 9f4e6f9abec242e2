"""Whether components are more than what noise makes up by itself, told from what was released."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping

import numpy as np

from privclust.mixtures._perturbations import Noise
from privclust.privacy import NoiseWarning

_COUNT_DEVIATIONS = 3.0  # a component of no rows has so large a count once in 740 (Laplace: 140)
_MEAN_PART = 0.25  # of the ball's radius


def deviation(plan: Mapping[str, Noise], part: str) -> float:
    """Return the standard deviation of the noise on a part of the statistics."""
    noise = plan.get("joint") or plan[part]
    return noise.scale * (1.0 if noise.mechanism == "gaussian" else math.sqrt(2.0))


def clear_components(
    counts: np.ndarray, count_noise: float, sum_noise: float | np.ndarray, n_features: int
) -> np.ndarray:
    """Return which components noise cannot have made, (n_components,), bool.

    Parameters
    ----------
    counts : ndarray of shape (n_components,)
        Noised.
    count_noise, sum_noise : float
        Standard deviations; of sums, of an entry in units of the ball's radius.
    n_features : int

    Examples
    --------
    >>> clear_components(np.array([900.0, 20.0, 35.0]), 10.0, 10.0, 2)
    array([ True, False, False])
    """
    moved = math.sqrt(n_features) * sum_noise / np.maximum(counts, 1.0)
    return (counts > _COUNT_DEVIATIONS * count_noise) & (moved < _MEAN_PART)


def warn_of_hidden(is_clear: np.ndarray) -> None:
    """Warn the caller of the fit that calls the caller of components that are not clear."""
    if not is_clear.all():
        warnings.warn(
            f"{np.sum(~is_clear)} of {len(is_clear)} components cannot be told from noise: more "
            "rows, a larger epsilon or delta, a smaller norm_bound or fewer components help",
            NoiseWarning,
            stacklevel=4,
        )
