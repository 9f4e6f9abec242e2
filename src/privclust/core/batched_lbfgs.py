"""L-BFGS from many starts of one smooth problem at once, as rows of a matrix.

Every evaluation covers all starts that have not converged, by a few large matrix products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Objective = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
_MEMORY = 10
# backtracking until Armijo's condition holds (Nocedal and Wright, Algorithm 3.1)
_SUFFICIENT, _SHRINK, _MOST_SHRINKING = 1e-4, 0.5, 20
_FLAT = 1e-8  # relative decrease of a step below which it counts as none
_FIRST_STEP = 0.1  # length of the first step, in the units of the variables


def descend(
    objective: Objective, starts: np.ndarray, n_evaluations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise from several starts at once, with a decrease at every step.

    A start stops after two successive accepted steps that lower its value by less than 1e-8 of it.

    Parameters
    ----------
    objective : callable
        Takes points (n, p), returns values (n,) and gradients (n, p), for each row separately.
    starts : ndarray of shape (n_starts, p)
    n_evaluations : int
        Largest number of evaluations of all starts, including the first.

    Returns
    -------
    points : ndarray of shape (n_starts, p)
    values : ndarray of shape (n_starts,)

    Examples
    --------
    >>> bowl = lambda x: (((x - 1.0) ** 2).sum(axis=1), 2.0 * (x - 1.0))
    >>> points, values = descend(bowl, np.array([[3.0, 0.0], [-5.0, 2.0]]), 30)
    >>> bool(np.abs(points - 1.0).max() < 1e-6)
    True
    """
    state = _State(starts, *objective(starts))
    for _ in range(n_evaluations - 1):
        moving = np.flatnonzero(state.is_moving)
        if not len(moving):
            break
        trial = state.points[moving] + state.steps[moving, None] * state.directions[moving]
        state.take(moving, trial, *objective(trial))
    return state.points, state.values


class _State:
    def __init__(self, starts: np.ndarray, values: np.ndarray, gradients: np.ndarray) -> None:
        n, p = starts.shape
        self.points, self.values, self.gradients = starts.copy(), values, gradients
        self._moves, self._turns = np.zeros((2, n, _MEMORY, p))
        self._curvatures = np.zeros((n, _MEMORY))  # 1 / s'y; 0 for empty memory
        self.is_moving = np.isfinite(values)
        self._n_flat = np.zeros(n, dtype=int)
        self._n_shrunk = np.zeros(n, dtype=int)
        self.directions, self.steps = np.zeros((n, p)), np.ones(n)
        self._slopes = np.zeros(n)
        self._turn(np.arange(n))

    def take(
        self, moving: np.ndarray, trial: np.ndarray, values: np.ndarray, gradients: np.ndarray
    ) -> None:
        """Accept trials with a sufficient decrease; shorten the steps of the others."""
        enough = self.values[moving] + _SUFFICIENT * self.steps[moving] * self._slopes[moving]
        accepted = values <= enough  # false for NaN
        refused = moving[~accepted]
        self.steps[refused] *= _SHRINK
        self._n_shrunk[refused] += 1
        self.is_moving[refused[self._n_shrunk[refused] > _MOST_SHRINKING]] = False
        rows = moving[accepted]
        gains = self.values[rows] - values[accepted]
        is_flat = gains <= _FLAT * np.abs(values[accepted])
        self._n_flat[rows] = np.where(is_flat, self._n_flat[rows] + 1, 0)
        self.is_moving[rows[self._n_flat[rows] >= 2]] = False
        # before the points change: moves are differences from the old ones
        self._remember(rows, trial[accepted], gradients[accepted])
        self.points[rows], self.values[rows] = trial[accepted], values[accepted]
        self.gradients[rows] = gradients[accepted]
        self._turn(rows)

    def _remember(self, rows: np.ndarray, points: np.ndarray, gradients: np.ndarray) -> None:
        """Keep the last moves and changes of the gradient, the newest last."""
        move, turn = points - self.points[rows], gradients - self.gradients[rows]
        product = np.einsum("ij,ij->i", move, turn)
        # without the norms, rounding errors of a long move would count as curvature
        floor = 1e-10 * np.linalg.norm(move, axis=1) * np.linalg.norm(turn, axis=1)
        kept = product > floor  # only pairs with positive curvature
        here = rows[kept]
        # indexing by an array copies first, so the shift by one place may overlap
        for memory, new in (self._moves, move), (self._turns, turn):
            memory[here, :-1] = memory[here, 1:]
            memory[here, -1] = new[kept]
        self._curvatures[here, :-1] = self._curvatures[here, 1:]
        self._curvatures[here, -1] = 1.0 / product[kept]

    def _turn(self, rows: np.ndarray) -> None:
        """Set the next directions by the two-loop recursion of L-BFGS, and full steps."""
        # empty places of the memory have curvature 0, and their terms vanish
        q, factors = self.gradients[rows].copy(), np.zeros((_MEMORY, len(rows)))
        for i in range(_MEMORY - 1, -1, -1):
            dot = np.einsum("ij,ij->i", self._moves[rows, i], q)
            factors[i] = self._curvatures[rows, i] * dot
            q -= factors[i][:, None] * self._turns[rows, i]
        last = self._turns[rows, -1]
        squares = np.einsum("ij,ij->i", last, last)
        is_new = squares == 0
        lengths = np.linalg.norm(self.gradients[rows], axis=1)
        curvature = self._curvatures[rows, -1]
        # the first inverse Hessian is s'y / y'y (Nocedal and Wright, equation 7.20); a start with a
        # gradient of 0 has no direction and stops below
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(is_new, _FIRST_STEP / lengths, 1.0 / (curvature * squares))
        q *= np.where(np.isfinite(scale), scale, 0.0)[:, None]
        for i in range(_MEMORY):
            dot = np.einsum("ij,ij->i", self._turns[rows, i], q)
            step = factors[i] - self._curvatures[rows, i] * dot
            q += step[:, None] * self._moves[rows, i]
        self.directions[rows], self.steps[rows] = -q, 1.0
        self._slopes[rows] = -np.einsum("ij,ij->i", q, self.gradients[rows])
        self._n_shrunk[rows] = 0
        # a start without a descent direction stops, also at NaN
        self.is_moving[rows[~(self._slopes[rows] < 0)]] = False
