r"""The best two lines in the plane, exactly, and their change by one point (Figure 1 of the paper).

With doubled angles a line is one point of a circle. For rows
:math:`x_j = \rho_j (\cos t_j, \sin t_j)` with :math:`h = |\sum_j \rho_j^2 e^{2 i t_j}|` the largest
eigenvalue of :math:`\sum x_j x_j'` is :math:`(\sum \rho_j^2 + h) / 2`, so that the cost of the best
line is :math:`(\sum \rho_j^2 - h) / 2`. The nearer of two lines changes at their two bisectors.
Both clusters of an optimum are therefore arcs in doubled angles. There are :math:`O(n^2)` arcs,
each with a cost from prefix sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privclust.metrics.subspaces import wasserstein_distance


def circle_optimum(X: ArrayLike) -> tuple[np.ndarray, float]:
    r"""Return the best two lines through the origin for rows in the plane, and their cost.

    The result is the global minimum of eq. (3) of Y. Wang, Y.-X. Wang and A. Singh, "Differentially
    private subspace clustering", NIPS 2015, with d = 2, k = 2, q = 1, over all partitions into two
    arcs. Time and memory are O(n^2). Lines are unit vectors (2, 2, 1); of several optima the first
    is returned. The cost is the mean squared distance to the nearer line.
    """
    X = np.asarray(X, dtype=np.float64)
    largest = np.abs(X).max() or 1.0
    # Squares of very small or large rows would leave the range of floats.
    unit = X / largest
    squares = (unit**2).sum(axis=1)
    # rho^2 e^(2it), without the angle
    doubled = (unit[:, 0] + 1j * unit[:, 1]) ** 2
    doubled = doubled[np.argsort(np.angle(doubled), kind="stable")]
    sums = np.concatenate([[0.0], np.cumsum(doubled)])
    first, last = _best_arc(sums)
    arc = sums[last] - sums[first]
    lines = np.stack([_line(arc), _line(sums[-1] - arc)])
    # The cost from the lines, not from h: a difference of two large sums would lose its digits.
    lost = np.maximum(squares - ((unit @ lines.T) ** 2).max(axis=1), 0.0)
    return lines[:, :, None], float(lost.mean() * largest**2)


def circle_instability(n_points: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    r"""Return evenly spaced points, and the change of the optimum by one more row (Figure 1).

    The points lie on N evenly spaced lines (N = n_points, or half of an even n_points). Turning
    two perpendicular lines by :math:`\pi / N` does not change their cost, so that one more row
    decides. This row is placed on a line of the optimum, and then at the angle :math:`\phi` from
    there, the multiple of :math:`\pi / N` nearest to 45 degrees, which turns both lines. The
    Wasserstein distance is :math:`2 \sin \min(\phi, \pi / 2 - \phi)`: :math:`\sqrt 2` if n_points
    is a multiple of 8, and in the limit of many points. The diameter of the space is 2. The local
    sensitivity to a replaced row is thus of order 1 for every n.

    The paper does not state its number of points; there must be 5 or more. Returns the points
    (n_points, 2); and of the two data sets ``added`` (2, 2), the differing row, ``subspaces``
    (2, 2, 2, 1), the best two lines, ``costs`` (2,), their costs by eq. (3), and ``distance``, the
    Wasserstein distance of the two optima, eq. (2).
    """
    angles = 2.0 * np.pi * np.arange(n_points) / n_points
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    n_lines = n_points // 2 if n_points % 2 == 0 else n_points
    # the middle of half of the lines (or of one more): between two lines, or on one
    start = 0.5 * np.pi / n_lines if n_lines % 4 == 0 else 0.0
    turn = np.pi / n_lines * round(n_lines / 4)
    where = start + np.array([0.0, turn])
    added = np.column_stack([np.cos(where), np.sin(where)])
    optima = [circle_optimum(np.vstack([points, row])) for row in added]
    lines = np.stack([bases for bases, _ in optima])
    return points, {
        "added": added,
        "subspaces": lines,
        "costs": np.array([cost for _, cost in optima]),
        "distance": np.asarray(wasserstein_distance(*lines)),
    }


def _best_arc(sums):
    """Return begin and end of the arc that maximises the total h of arc and complement."""
    # Entry (i, j) is the sum over points i to j - 1 in order of their angles.
    arcs = sums[None, :] - sums[:-1, None]
    masses = np.abs(arcs) + np.abs(sums[-1] - arcs)
    masses[np.tri(*masses.shape, -1, dtype=bool)] = -np.inf  # ends before its begin
    return np.unravel_index(masses.argmax(), masses.shape)


def _line(doubled):
    # The best line has the direction of the sum of doubled angles.
    half = np.angle(doubled) / 2.0
    return np.array([np.cos(half), np.sin(half)])
