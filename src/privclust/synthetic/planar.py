"""Generated points for private EM: three Gaussians in the plane.

After M. Park, J. Foulds, K. Chaudhuri and M. Welling, "Practical Privacy for Expectation
Maximization", Section 6.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privclust.core.validation import check_integer, check_option

MEANS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "apart": ((0.4, 0.35), (-0.45, 0.15), (0.05, -0.45)),
    "close": ((0.2, 0.175), (-0.225, 0.075), (0.025, -0.225)),
}
"""Means before truncation to the disc, by geometry. The paper gives no numbers: ``"apart"`` is this
project's choice; ``"close"`` has them at half the distance, to show the effect of this choice."""
STANDARD_DEVIATIONS = (0.1, 0.12, 0.08)
"""Standard deviation of each coordinate of a Gaussian."""
WEIGHTS = (1 / 3,) * 3
"""Shares of the Gaussians."""


def three_gaussians(
    n: int, rng: np.random.Generator, *, geometry: str = "apart"
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points from three isotropic Gaussians in the plane, truncated to the unit disc.

    The synthetic data of Section 6 of the paper, which does not give their parameters. A point
    outside the unit disc is drawn again from the same Gaussian.

    Parameters
    ----------
    n : int
        Number of points, >= 1.
    rng : numpy.random.Generator
        Source of all draws.
    geometry : {"apart", "close"}, default="apart"
        Which of `MEANS`.

    Returns
    -------
    X : ndarray of shape (n, 2), float64
        Points of norm at most 1.
    labels : ndarray of shape (n,), int64
        Gaussian of each point, 0 .. 2, drawn by the weights.

    Raises
    ------
    ValueError
        If `n` is out of range or there is no such geometry.

    Examples
    --------
    >>> X, labels = three_gaussians(8000, np.random.default_rng(0))
    >>> X.shape, bool((np.linalg.norm(X, axis=1) <= 1).all())
    ((8000, 2), True)
    """
    check_integer("n", n, minimum=1)
    check_option("geometry", geometry, MEANS)
    means, spreads = np.array(MEANS[geometry]), np.array(STANDARD_DEVIATIONS)
    labels = rng.choice(len(means), size=n, p=WEIGHTS)
    X = np.empty((n, 2))
    # at first all points are to be drawn
    outside = np.arange(n)
    while len(outside):
        which = labels[outside]
        X[outside] = means[which] + spreads[which, None] * rng.standard_normal((len(outside), 2))
        outside = outside[np.linalg.norm(X[outside], axis=1) > 1]
    return X, labels
