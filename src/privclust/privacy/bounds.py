"""Bounds on rows, which sensitivities assume, and random starts that do not depend on the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust.core.compiled import kernel
from privclust.core.hints import Bounds
from privclust.core.validation import check_real
from privclust.core.warn import warn_caller
from privclust.privacy.guarantee import PrivacyLeakWarning

_NORM_TOLERANCE = 1e-12  # relative excess of a norm over the bound that is ignored
_SMALLEST, _LARGEST = 1e-100, 1e100  # squares and fourth powers of norms are finite
_ATTEMPTS = 100  # failed draws of a point after which a separation is too large
_HALVINGS = 12  # bisection steps for the separation
_SIDE_BY_SIDE = 64  # rows that are compared at once


def bounded_rows(
    X: np.ndarray, norm_bound: float | None
) -> tuple[np.ndarray, float, tuple[str, ...]]:
    """Return rows clipped to a ball about the origin, its radius, and leaks into the radius.

    Longer rows are clipped with a warning, which is outside every guarantee, each row independently
    of all others, bit for bit. In rows with infinite entries only those count, and NaN counts as 0.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Any numbers, in C order.
    norm_bound : float or None
        Largest Euclidean norm, from 1e-100 to 1e100; None takes the largest of the data, which
        leaks.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The same array if no row was longer.
    radius : float
        Positive.
    leaks : tuple of str
        Empty, or the values taken from the data without noise.

    Raises
    ------
    ValueError
        If the bound is out of range, or the norms of the rows that it is taken from are.

    Warns
    -----
    PrivacyLeakWarning
        If the bound is taken from the data.
    """
    if norm_bound is None:
        norms = row_norms(X)
        largest = float(norms.max(initial=0.0))
        if not largest <= _LARGEST:
            raise ValueError(
                f"X: row {int(np.argmin(norms <= _LARGEST))} has a norm above {_LARGEST:g}: "
                "rescale X"
            )
        if largest < _SMALLEST and X.any():
            raise ValueError(f"X has no norm above {_SMALLEST:g}: rescale X")
        return X, largest or 1.0, leaks_of("norm_bound was not given and is", "a bound that is")
    radius = checked_radius(norm_bound)
    outside = longer_rows(X, radius)
    if not outside.any():
        return X, radius, ()
    warn_caller(f"rows with a norm above norm_bound={radius:g} are clipped to it")
    rows = X.astype(np.float64)
    rows[outside] = _clipped(rows[outside], radius)
    return rows, radius, ()


def checked_radius(norm_bound: float) -> float:
    """Return a declared norm bound, or raise a ValueError if it is out of range."""
    check_real("norm_bound", norm_bound)
    radius = float(norm_bound)
    if not _SMALLEST <= radius <= _LARGEST:
        raise ValueError(
            f"norm_bound must lie between {_SMALLEST:g} and {_LARGEST:g}, got {radius:g}: rescale X"
        )
    return radius


def longer_rows(X: np.ndarray, radius: float) -> np.ndarray:
    """Return which rows are longer than a radius, or not finite, (n_samples,)."""
    # `~(... <=)` in place of `>`, which is false for NaN
    return ~(row_norms(X) <= radius * (1.0 + _NORM_TOLERANCE))


def row_norms(X: np.ndarray) -> np.ndarray:
    """Return the Euclidean norm of each row, (n_samples,); entries are added up in their order.

    On any processor, a norm then depends only on its row; NumPy's sums do not guarantee this.
    """
    norms = np.empty(len(X))
    _norms(X, norms)
    return norms


@kernel()
def _norms(X: np.ndarray, norms: np.ndarray) -> None:
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += np.float64(X[i, j]) * np.float64(X[i, j])
        norms[i] = np.sqrt(total)


def _clipped(rows: np.ndarray, radius: float) -> np.ndarray:
    """Return rows of any floats, clipped to the sphere; changes `rows`."""
    endless = _only_infinite(rows)
    largest = np.abs(rows).max(axis=1)
    huge = endless | (largest > _LARGEST)  # longer than any radius, and squares may overflow
    # entries of rows with infinite ones are -1, 0 and 1 here: they need no division
    rows[huge] *= (_LARGEST / np.where(huge & ~endless, largest, 1.0))[huge, None]
    norms = row_norms(rows)
    return rows * np.minimum(1.0, radius / np.maximum(norms, radius))[:, None]


def _only_infinite(rows: np.ndarray) -> np.ndarray:
    """Put 0 for NaN and, in rows with infinite entries, signs for these and 0 for all others.

    Returns in which rows there were any.
    """
    rows[np.isnan(rows)] = 0.0
    is_infinite = np.isinf(rows)
    endless = is_infinite.any(axis=1)
    rows[endless] = np.sign(rows[endless]) * is_infinite[endless]
    return endless


def directions(X: np.ndarray) -> np.ndarray:
    """Return rows scaled to norm 1, each independently, bit for bit; rows of zeros stay.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Any numbers, in C order. NaN counts as 0; in rows with infinite entries only those count.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64
        Norms are 1 to within a few roundings, or 0.

    Examples
    --------
    >>> directions(np.array([[3.0, 4.0], [0.0, 0.0], [-np.inf, 1.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0], [-1.0, 0.0]]
    """
    rows = np.array(X, dtype=np.float64, order="C")
    if not rows.size:
        return rows
    _only_infinite(rows)
    largest = np.abs(rows).max(axis=1)
    rows /= np.where(largest > 0, largest, 1.0)[:, None]  # squares neither overflow nor vanish
    norms = row_norms(rows)
    rows /= np.where(norms > 0, norms, 1.0)[:, None]
    return rows


def leaks_of(
    what: str = "bounds were not given and are", instead: str = "bounds that are"
) -> tuple[str]:
    """Warn the user that bounds come from the data, and return that as a leak."""
    leak = f"{what} taken from the data"
    warn_caller(
        f"{leak}: the fit has no guarantee. Give {instead} known without the data.",
        PrivacyLeakWarning,
    )
    return (leak,)


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
    # the ball of radius r has a share r^d of the volume
    return directions * rng.random((n_points, 1)) ** (1.0 / n_features)


@dataclass(frozen=True)
class Box:
    """An axis-parallel box of declared bounds.

    Attributes
    ----------
    low, high : ndarray of shape (n_features,), float64
        Its corners, ``low <= high``.
    """

    low: np.ndarray
    high: np.ndarray

    @property
    def center(self) -> np.ndarray:
        """Center of the box, shape (n_features,)."""
        # halves are added, because the sum of two bounds may overflow
        return 0.5 * self.low + 0.5 * self.high

    @property
    def half_widths(self) -> np.ndarray:
        """Half of the width along each axis, shape (n_features,)."""
        return 0.5 * self.high - 0.5 * self.low

    def clipped(self, X: np.ndarray) -> np.ndarray:
        """Return the nearest points of the box, in the precision of X; NaN becomes its middle.

        Corners that X's precision cannot represent are rounded inwards, because sensitivities
        assume the bounds. If it can represent no number of the box, the points are float64.
        """
        low, high = self._corners(X.dtype)
        if not (low <= high).all():
            X, low, high = X.astype(np.float64), self.low, self.high
        clipped, is_missing = np.clip(X, low, high), np.isnan(X)
        if not is_missing.any():  # saves a pass and a copy
            return clipped
        middle = np.clip(self.center, low, high).astype(X.dtype)
        return np.where(is_missing, middle, clipped)

    def _corners(self, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and the largest finite numbers of a type within the box, if any."""
        most = np.finfo(dtype).max
        # clipped before the conversion, which would make larger bounds infinite
        low, high = (np.clip(end, -most, most).astype(dtype) for end in (self.low, self.high))
        with np.errstate(over="ignore"):  # no number above the largest
            low = np.where(low < self.low, np.nextafter(low, dtype.type(np.inf)), low)
            high = np.where(high > self.high, np.nextafter(high, dtype.type(-np.inf)), high)
        return low, high


def extremes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of each feature, in float64; NaN for any with NaN.

    NumPy takes 30 times as long for 10^7 rows of two columns, unless rows are put side by side.
    """
    n_samples, n_features = X.shape
    beside = min(n_samples, _SIDE_BY_SIDE)
    n_folded = n_samples // beside * beside
    folded, rest = X[:n_folded].reshape(-1, beside * n_features), X[n_folded:]

    def extreme(function: Callable[..., Any]) -> np.ndarray:
        of_folded = function(folded, axis=0).reshape(beside, n_features)
        return function(np.vstack([of_folded, rest]), axis=0).astype(np.float64)

    return extreme(np.min), extreme(np.max)


def declared_box(X: np.ndarray, bounds: Bounds | None) -> tuple[Box, bool, tuple[str, ...]]:
    """Return the declared box, whether rows lie outside, and leaks into the box.

    The caller clips rows outside by `Box.clipped`; the warning is outside every guarantee.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Any numbers; finite and of at least one row if no bounds are given.
    bounds : (low, high) or None
        Each a number or an array of shape (n_features,), ``low < high``, of magnitude up to
        1e100. None takes the smallest box that contains the rows, which leaks.

    Returns
    -------
    box : Box
    is_outside : bool
        Whether some row lies outside.
    leaks : tuple of str
        Empty, or the values taken from the data without noise.

    Raises
    ------
    ValueError
        If bounds are out of range.

    Warns
    -----
    PrivacyLeakWarning
        If the box is taken from the data.
    """
    if bounds is None:
        least, largest = extremes(X)
        check_magnitude("X", least, largest)
        return Box(least, largest), False, leaks_of()
    box = checked_box(bounds, X.shape[1])
    if len(X) == 0:
        return box, False, ()
    least, largest = extremes(X)
    is_outside = not bool((least >= box.low).all() and (largest <= box.high).all())
    if is_outside:
        warn_caller("rows outside bounds are clipped to them")
    return box, is_outside, ()


def bounds_of(estimator: Any) -> Bounds | None:
    """Return an estimator's bounds; bounds by column name are put in the order of its columns.

    Raises
    ------
    ValueError
        If bounds are by name and the rows have no names or other names.
    """
    bounds = estimator.bounds
    if not isinstance(bounds, Mapping):
        return bounds
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise ValueError("bounds by names of columns need rows with names, as frames of pandas are")
    for name in [*names, *bounds]:
        if name not in bounds or name not in names:
            place = "the columns of X" if name in bounds else "bounds"
            raise ValueError(f"bounds must name each column of X once: {name!r} is not in {place}")
    try:
        low, high = zip(*(bounds[name] for name in names), strict=True)
    except (TypeError, ValueError):
        raise ValueError(f"bounds must be (low, high) of each column, got {bounds!r}") from None
    return list(low), list(high)


def checked_box(bounds: Bounds, n_features: int) -> Box:
    """Return the box of bounds that a user gave, or raise a ValueError.

    Bounds are (low, high), or a list of pairs, one for each feature.

    Examples
    --------
    >>> checked_box((-1, [1.0, 2.0]), 2).half_widths
    array([1. , 1.5])
    >>> checked_box([(0, 100), (50, 200)], 2).high
    array([100., 200.])
    """
    corners = _corners(bounds, n_features)
    try:
        low, high = (np.array(bound, dtype=np.float64) for bound in corners)
        low, high = (np.broadcast_to(bound, (n_features,)).copy() for bound in (low, high))
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be (low, high), numbers or arrays of shape ({n_features},), or a list of "
            f"{n_features} pairs, got {bounds!r}"
        ) from None
    wrong = ~(np.isfinite(low) & np.isfinite(high) & (low < high))
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ValueError(
            "bounds must be finite with low < high on every axis, "
            f"got {low[j]:g} and {high[j]:g} for feature {j}"
        )
    check_magnitude("bounds", low, high)
    return Box(low, high)


def _corners(bounds: Any, n_features: int) -> Any:
    """Return (low, high), also of a list of pairs.

    For two features the types decide: ``[(0, 100), (50, 200)]`` are pairs, and
    ``([0, 50], [100, 200])`` is (low, high); a ValueError is raised for ambiguous bounds.
    """
    try:
        parts = list(bounds)
        if len(parts) != n_features or any(np.shape(part) != (2,) for part in parts):
            return bounds
    except (TypeError, ValueError):  # no sequence, or ragged
        return bounds
    if n_features == 2:
        of_tuples = [isinstance(part, tuple) for part in parts]
        if isinstance(bounds, tuple) and not any(of_tuples):
            return bounds
        if not (isinstance(bounds, list) and all(of_tuples)):
            raise ValueError(
                "bounds of two features may be pairs or (low, high): give pairs as a list of "
                "tuples, [(0, 100), (50, 200)], or (low, high) as a tuple of lists, "
                f"([0, 50], [100, 200]); got {bounds!r}"
            )
    return tuple(zip(*parts, strict=True))


def check_magnitude(
    name: str,
    low: np.ndarray,
    high: np.ndarray,
    most: float = _LARGEST,
    narrowest: float = _SMALLEST,
) -> None:
    """Raise a ValueError if squares of numbers in the box, or one over them, may overflow."""
    largest = max(-float(low.min()), float(high.max()))
    width = float((0.5 * high - 0.5 * low).max())
    if largest > most or 0 < width < narrowest:
        raise ValueError(
            f"{name} must have a magnitude of at most {most:g} and a width of at least "
            f"{2 * narrowest:g}: rescale X"
        )


def uniform_in_cube(n_points: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Return points drawn uniformly from [-1, 1]^d, shape (n_points, n_features)."""
    return rng.uniform(-1.0, 1.0, size=(n_points, n_features))


def separated_points(
    n_points: int,
    n_features: int,
    rng: np.random.Generator,
    uniform: Callable[[int, int, np.random.Generator], np.ndarray] = uniform_in_cube,
) -> np.ndarray:
    """Return random points that keep away from each other and from the border.

    Points are drawn one after the other, at a distance of at least a from the border and 2a from
    earlier points. If 100 successive draws fail, a was too large; the largest a that succeeds is
    found by bisection. Su et al. start k-means in this way, in the cube.

    Parameters
    ----------
    n_points, n_features : int
    rng : numpy.random.Generator
    uniform : callable
        `uniform_in_cube` for [-1, 1]^d or `uniform_in_ball` for the unit ball.

    Returns
    -------
    ndarray of shape (n_points, n_features)

    References
    ----------
    D. Su, J. Cao, N. Li, E. Bertino and H. Jin, "Differentially private k-means clustering",
    CODASPY 2016.

    Examples
    --------
    >>> points = separated_points(4, 2, np.random.default_rng(0))
    >>> distances = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(4, 1)]
    >>> bool(distances.min() > 0.6), bool(np.abs(points).max() < 0.7)
    (True, True)
    """
    lowest, highest = 0.0, 1.0
    separated = None
    halvings = 0
    # more halvings if all failed: some points must be returned, however close
    while halvings < _HALVINGS or separated is None:
        separation = 0.5 * (lowest + highest)
        points = _packed(n_points, n_features, rng, uniform, separation)
        if points is None:
            highest = separation
        else:
            separated, lowest = points, separation
        halvings += 1
    return separated


def _packed(
    n_points: int,
    n_features: int,
    rng: np.random.Generator,
    uniform: Callable[..., np.ndarray],
    separation: float,
) -> np.ndarray | None:
    """Return points at least 2 `separation` apart, and `separation` from the border, or None."""
    points = np.empty((n_points, n_features))
    for k in range(n_points):
        # uniform at this distance from the border: the same domain, scaled
        drawn = (1.0 - separation) * uniform(_ATTEMPTS, n_features, rng)
        squared = ((drawn[:, None] - points[:k]) ** 2).sum(axis=2)
        is_apart = (squared >= (2.0 * separation) ** 2).all(axis=1)
        if not is_apart.any():
            return None
        # the first that is far enough, as if points were drawn one by one until one is
        points[k] = drawn[np.argmax(is_apart)]
    return points
