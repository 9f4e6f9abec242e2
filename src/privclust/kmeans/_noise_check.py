r"""Whether clusters are more than what noise makes up by itself, told from what was released.

A cluster's noisy count may be of no rows at all (`privclust.privacy.hidden`), and a center that
noise moves by more than a quarter of its distance to the next may be the next. Such clusters are
not *detected*, and fits that have some warn.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from privclust.privacy.hidden import COUNT_DEVIATIONS

CENTER_DEVIATIONS = 4.0


def detected_clusters(
    counts: np.ndarray,
    count_noise: float | np.ndarray,
    centers: np.ndarray,
    extent: float | np.ndarray,
) -> np.ndarray:
    """Return which clusters noise cannot have made, (n_clusters,), bool.

    Counts are noisy numbers of rows. Noise of one standard deviation of the count moves a center of
    one row by `extent`, as a root mean square over directions: such as the radius of a ball times
    the root of n_features. It also stands for the distance to the next center where there is none.
    """
    is_heard = counts > COUNT_DEVIATIONS * count_noise
    distances = cdist(centers, centers)
    np.fill_diagonal(distances, np.inf)
    distances[:, ~is_heard] = np.inf
    nearest = distances.min(axis=1)
    nearest = np.where(np.isinf(nearest), extent, nearest)
    moved = extent * count_noise / np.maximum(counts, 1.0)
    return is_heard & (CENTER_DEVIATIONS * moved < nearest)
