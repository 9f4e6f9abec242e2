"""Generated points for private EM: three Gaussians in the plane, and people on a map.

After M. Park, J. Foulds, K. Chaudhuri and M. Welling, "Practical Privacy for Expectation
Maximization", Section 6 and Figure 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.validation import check_integer, check_option, check_real

CATEGORIES = ("single", "married", "divorced or widowed")
"""Marital status by the label that `map_points` gives."""

MAP_CENTER = (10.5, 51.25)
"""Longitude and latitude of the middle of Germany's public bounding box, in degrees.

The box spans longitudes 5.5 .. 15.5 and latitudes 47 .. 55.5.
"""

MAP_RADIUS = float(np.hypot(5.0, 4.25))
"""Half the diagonal of that box in degrees: its corners have norm 1 after `to_unit_ball`."""

N_PEOPLE = 104
"""Number of people on the map: one of them from far away."""

_NORM_TOLERANCE = 1e-12
_REGION_SPREAD = 0.3  # in degrees, of the people who are from far away
_FAR_REGION = (7.0, 51.4)  # North Rhine-Westphalia


@dataclass(frozen=True)
class Geometry:
    """Three isotropic Gaussians in the unit disc.

    Attributes
    ----------
    means : tuple of three (float, float)
        Their means before truncation to the disc.
    standard_deviations : tuple of three floats
        Of each coordinate, > 0.
    weights : tuple of three floats
        Their shares, which sum to 1.
    """

    means: tuple[tuple[float, float], ...]
    standard_deviations: tuple[float, ...]
    weights: tuple[float, ...]


GEOMETRIES: Mapping[str, Geometry] = MappingProxyType(
    {
        name: Geometry(means, standard_deviations=(0.1, 0.12, 0.08), weights=(1 / 3,) * 3)
        for name, means in (
            ("apart", ((0.4, 0.35), (-0.45, 0.15), (0.05, -0.45))),
            ("close", ((0.2, 0.175), (-0.225, 0.075), (0.025, -0.225))),
        )
    }
)
"""The paper gives no numbers: ``"apart"`` is this project's choice; ``"close"``, with the means at
half the distance, is to show how much depends on it."""


@dataclass(frozen=True)
class _Town:
    """A town: longitude and latitude, spread of its people in degrees, their number, category."""

    center: tuple[float, float]
    spread: float
    n_people: int
    category: int


_TOWNS = (
    _Town((8.47, 49.49), 0.12, 20, 0),  # Mannheim
    _Town((8.40, 49.01), 0.12, 16, 0),  # Karlsruhe
    _Town((7.85, 48.00), 0.12, 17, 0),  # Freiburg
    _Town((9.18, 48.78), 0.15, 28, 2),  # Stuttgart
    _Town((9.99, 48.40), 0.12, 14, 2),  # Ulm
    _Town((9.22, 49.14), 0.10, 8, 2),  # Heilbronn
)


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
        Which of `GEOMETRIES`.

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
    check_option("geometry", geometry, GEOMETRIES)
    law = GEOMETRIES[geometry]
    means, spreads = np.array(law.means), np.array(law.standard_deviations)
    labels = rng.choice(len(means), size=n, p=law.weights)
    X = np.empty((n, 2))
    outside = np.arange(n)
    while len(outside):
        which = labels[outside]
        X[outside] = means[which] + spreads[which, None] * rng.standard_normal((len(outside), 2))
        outside = outside[np.linalg.norm(X[outside], axis=1) > 1]
    return X, labels


def map_points(
    n_copies: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Place people in towns of a German state, and one in `N_PEOPLE` far to the north-west.

    Stands for the data of Figure 1 of the paper, 104 people simulated from published rates of a
    statistics office by marital status and place of origin; neither the rates nor the points are
    available. Here everything is generated: 103 people in six towns of Baden-Wuerttemberg (single
    in the west, divorced or widowed in the east), and one married person in North Rhine-Westphalia.
    EM finds the position of this person as the mean of a component. With more copies the far region
    has several people.

    Parameters
    ----------
    n_copies : int
        Multiple of the number of people in the paper's panel A, >= 1; panel C has 50.
    rng : numpy.random.Generator
        Source of all draws.

    Returns
    -------
    points : ndarray of shape (104 * n_copies, 2), float64
        Longitude and latitude in degrees.
    labels : ndarray of shape (104 * n_copies,), int64
        Index into `CATEGORIES`.
    far : ndarray of shape (n_copies,), int64
        Rows of the people from far away; for ``n_copies=1`` that of the lone person.

    Raises
    ------
    ValueError
        If `n_copies` is no integer >= 1.

    Examples
    --------
    >>> points, labels, far = map_points(1, np.random.default_rng(0))
    >>> points.shape, CATEGORIES[labels[far[0]]], len(far)
    ((104, 2), 'married', 1)
    """
    check_integer("n_copies", n_copies, minimum=1)
    places = (*_TOWNS, _Town(_FAR_REGION, _REGION_SPREAD, 1, CATEGORIES.index("married")))
    counts = [n_copies * place.n_people for place in places]
    centers = np.repeat([place.center for place in places], counts, axis=0)
    spreads = np.repeat([place.spread for place in places], counts)
    labels = np.repeat([place.category for place in places], counts)
    points = centers + spreads[:, None] * rng.standard_normal(centers.shape)
    order = rng.permutation(len(points))
    return points[order], labels[order], np.flatnonzero(order >= len(points) - n_copies)


def to_unit_ball(points: ArrayLike, center: ArrayLike, radius: float) -> np.ndarray:
    """Shift and scale points so that a public ball around `center` becomes the unit ball.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Points within `radius` of `center`.
    center : array-like of shape (d,)
        Such as `MAP_CENTER`; must not be computed from the points, or it would leak.
    radius : float
        Such as `MAP_RADIUS`, > 0; must not be computed from the points either.

    Returns
    -------
    ndarray of shape (n, d), float64
        Points of norm at most 1.

    Raises
    ------
    ValueError
        If the shapes do not fit, `radius` is out of range, or a point is not in the ball.

    Examples
    --------
    >>> to_unit_ball([[15.5, 55.5], [10.5, 51.25]], MAP_CENTER, MAP_RADIUS).round(2).tolist()
    [[0.76, 0.65], [0.0, 0.0]]
    """
    points, center = _fitting(points, center, radius)
    scaled = (points - center) / radius
    norms = np.linalg.norm(scaled, axis=1)
    outside = np.flatnonzero(~(norms <= 1 + _NORM_TOLERANCE))
    if len(outside):
        raise ValueError(
            f"all points must be within radius {radius:g} of the center {center.tolist()}, got "
            f"{points[outside[0]].tolist()} in row {outside[0]}"
        )
    return scaled / np.maximum(norms, 1.0)[:, None]


def from_unit_ball(points: ArrayLike, center: ArrayLike, radius: float) -> np.ndarray:
    """Undo `to_unit_ball`; the points, such as private means, need not be in the unit ball.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Points in units of `radius` around `center`.
    center : array-like of shape (d,)
    radius : float
        As given to `to_unit_ball`.

    Returns
    -------
    ndarray of shape (n, d), float64

    Raises
    ------
    ValueError
        If the shapes do not fit or `radius` is out of range.

    Examples
    --------
    >>> from_unit_ball([[0.0, 0.0]], MAP_CENTER, MAP_RADIUS).tolist()
    [[10.5, 51.25]]
    """
    points, center = _fitting(points, center, radius)
    return center + radius * points


def _fitting(points: ArrayLike, center: ArrayLike, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points and center as arrays of matching shapes."""
    check_real("radius", radius)
    points, center = np.asarray(points, dtype=float), np.asarray(center, dtype=float)
    if points.ndim != 2 or center.shape != points.shape[1:]:
        raise ValueError(
            "points must have shape (n, d) and center shape (d,), got "
            f"{points.shape} and {center.shape}"
        )
    return points, center
