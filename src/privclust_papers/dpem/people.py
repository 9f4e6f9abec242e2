"""People on a map, and the unit ball: the data of Figure 1.

After M. Park, J. Foulds, K. Chaudhuri and M. Welling, "Practical Privacy for Expectation
Maximization", Section 6 and Figure 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

CATEGORIES = ("single", "married", "divorced or widowed")
"""Marital status by the label that `map_points` gives."""

MAP_CENTER = (10.5, 51.25)
"""Longitude and latitude of the middle of Germany's public bounding box, in degrees.

The box spans longitudes 5.5 .. 15.5 and latitudes 47 .. 55.5.
"""

MAP_RADIUS = float(np.hypot(5.0, 4.25))
"""Half the diagonal of that box in degrees: its corners have norm 1 after `to_unit_ball`."""

_NORM_TOLERANCE = 1e-12
_REGION_SPREAD = 0.3  # in degrees, of the far people
_FAR_REGION = (7.0, 51.4)  # North Rhine-Westphalia


# longitude and latitude of a town, its spread in degrees, number and category of its people
_TOWNS = (
    ((8.47, 49.49), 0.12, 20, 0),  # Mannheim
    ((8.40, 49.01), 0.12, 16, 0),  # Karlsruhe
    ((7.85, 48.00), 0.12, 17, 0),  # Freiburg
    ((9.18, 48.78), 0.15, 28, 2),  # Stuttgart
    ((9.99, 48.40), 0.12, 14, 2),  # Ulm
    ((9.22, 49.14), 0.10, 8, 2),  # Heilbronn
)


def map_points(
    n_copies: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points and labels of people on a map, and the rows of the far people.

    A substitute for the data of Figure 1 of the paper: 104 people simulated from published rates by
    marital status and place of origin. Neither the rates nor the points are available. Here 103
    people live in six towns of Baden-Wuerttemberg, single people in the west, divorced or widowed
    people in the east. The only married person lives in North Rhine-Westphalia: EM finds this
    position as the mean of a component.

    Parameters
    ----------
    n_copies : int
        Factor of the number of people in the paper's panel A, >= 1; 50 for panel C.
    rng : numpy.random.Generator

    Returns
    -------
    points : ndarray of shape (104 * n_copies, 2), float64
        Longitude and latitude in degrees.
    labels : ndarray of shape (104 * n_copies,), int64
        Index into `CATEGORIES`.
    far : ndarray of shape (n_copies,), int64
    """
    places = (*_TOWNS, (_FAR_REGION, _REGION_SPREAD, 1, CATEGORIES.index("married")))
    towns, extents, numbers, categories = zip(*places, strict=True)
    counts = n_copies * np.array(numbers)
    centers = np.repeat(towns, counts, axis=0)
    spreads, labels = np.repeat(extents, counts), np.repeat(categories, counts)
    points = centers + spreads[:, None] * rng.standard_normal(centers.shape)
    order = rng.permutation(len(points))
    # The far people are the last of `places`, before the permutation.
    return points[order], labels[order], np.flatnonzero(order >= len(points) - n_copies)


def to_unit_ball(points: ArrayLike, center: ArrayLike, radius: float) -> np.ndarray:
    """Return points, shifted and scaled so that a public ball becomes the unit ball.

    Center and radius must not depend on the points. Raises a ValueError if a point is not in the
    ball.
    """
    points, center = np.asarray(points, dtype=float), np.asarray(center, dtype=float)
    scaled = (points - center) / radius
    norms = np.linalg.norm(scaled, axis=1)
    # Negated, so that NaN counts as outside.
    outside = np.flatnonzero(~(norms <= 1 + _NORM_TOLERANCE))
    if len(outside):
        raise ValueError(
            f"all points must be within radius {radius:g} of the center {center.tolist()}, got "
            f"{points[outside[0]].tolist()} in row {outside[0]}"
        )
    # Norms above 1 by rounding would be clipped, or refused, by the methods.
    return scaled / np.maximum(norms, 1.0)[:, None]


def from_unit_ball(points: ArrayLike, center: ArrayLike, radius: float) -> np.ndarray:
    """Undo `to_unit_ball`; the points, such as private means, need not be in the unit ball."""
    return np.asarray(center, dtype=float) + radius * np.asarray(points, dtype=float)
