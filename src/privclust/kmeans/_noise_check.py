r"""Which clusters are distinguishable from noise, computed from released values.

A noisy count may be positive without any rows (`privclust.privacy.hidden`), and a center that noise
moves by more than a quarter of the distance to the next cannot be distinguished from it. Such
clusters are not *detected*, and fits with such clusters warn.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from privclust.privacy.hidden import COUNT_DEVIATIONS

# a detected center is this many standard deviations of its noise from the next
CENTER_DEVIATIONS = 4.0


def detected_clusters(
    counts: np.ndarray,
    count_noise: float | np.ndarray,
    centers: np.ndarray,
    extent: float | np.ndarray,
) -> np.ndarray:
    """Return which clusters are distinguishable from noise, (n_clusters,), bool.

    Counts are noisy numbers of rows. Noise moves a center by about `extent` times the noise of its
    count divided by the count; `extent` is, for example, the radius of a ball times the root of
    n_features. It is also used as the distance if there is no other center.
    """
    is_heard = counts > COUNT_DEVIATIONS * count_noise
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    # a center that is mere noise is no neighbour
    distances[:, ~is_heard] = np.inf
    nearest = distances.min(axis=1)
    nearest = np.where(np.isinf(nearest), extent, nearest)
    moved = extent * count_noise / np.maximum(counts, 1.0)
    return is_heard & (CENTER_DEVIATIONS * moved < nearest)
