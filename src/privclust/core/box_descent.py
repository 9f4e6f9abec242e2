"""L-BFGS-B for many short descents: SciPy's own iteration, called without its wrapper.

The overhead of `scipy.optimize.minimize` is larger than one evaluation of a sketch of a few hundred
features. SciPy's compiled routine is called here, so that points are the same bit for bit. It is
not public: in a version with unknown arguments, `minimize` is called.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from scipy.optimize import _lbfgsb, minimize

Objective = Callable[[np.ndarray, np.ndarray], float]
_IS_KNOWN = scipy.__version__.startswith("1.17.")
_PAIRS, _LINE_SEARCH_STEPS = 10, 20  # these and the next are SciPy's defaults
_PROGRESS, _SLOPE = 2.2204460492503131e-09, 1e-5
_WANTS_VALUE, _NEW_POINT, _STOP = 3, 1, (5, 504)  # task codes of the routine


def minimise_in_box(
    objective: Objective, start: np.ndarray, low: np.ndarray, high: np.ndarray, n_steps: int
) -> tuple[np.ndarray, float]:
    """Minimise a smooth function in a box.

    Parameters
    ----------
    objective : callable
        Takes a point (n,) and an array (n,), writes the gradient into it and returns the value.
    start, low, high : ndarray of shape (n,), float64
        `low` is finite; `high` may be inf. The start is clipped to the box.
    n_steps : int
        Maximum number of iterations, each with one or more evaluations.

    Returns
    -------
    point : ndarray of shape (n,)
    value : float

    Examples
    --------
    >>> def bowl(x, gradient):
    ...     gradient[:] = 2.0 * (x - 3.0)
    ...     return float(((x - 3.0) ** 2).sum())
    >>> low, high = np.zeros(2), np.array([1.0, np.inf])
    >>> minimise_in_box(bowl, np.zeros(2), low, high, 20)[0].round(6)
    array([1., 3.])
    """
    return (_by_routine if _IS_KNOWN else _by_wrapper)(objective, start, low, high, n_steps)


def _by_routine(
    objective: Objective, start: np.ndarray, low: np.ndarray, high: np.ndarray, n_steps: int
) -> tuple[np.ndarray, float]:
    """As `minimise_in_box`, by SciPy's compiled routine."""
    size, is_open = start.size, np.isinf(high)
    kinds = np.where(is_open, 1, 2).astype(np.int32)
    ends = np.where(is_open, 0.0, high)
    point, gradient, value = np.clip(start, low, high), np.zeros(size), 0.0
    reals = np.zeros(2 * _PAIRS * size + 5 * size + 11 * _PAIRS**2 + 8 * _PAIRS)
    integers = np.zeros(3 * size, dtype=np.int32)
    task, search_task, flags, counts = (np.zeros(n, dtype=np.int32) for n in (2, 2, 4, 44))
    kept = np.zeros(29)
    factor = _PROGRESS / np.finfo(float).eps
    step = 0
    while True:
        _lbfgsb.setulb(
            *(_PAIRS, point, low, ends, kinds, value, gradient, factor, _SLOPE, reals, integers),
            *(task, flags, counts, kept, _LINE_SEARCH_STEPS, search_task),
        )
        if task[0] == _WANTS_VALUE:
            value = objective(point, gradient)
        elif task[0] == _NEW_POINT:
            step += 1
            if step >= n_steps:
                task[:] = _STOP
        else:
            return point, float(value)


def _by_wrapper(
    objective: Objective, start: np.ndarray, low: np.ndarray, high: np.ndarray, n_steps: int
) -> tuple[np.ndarray, float]:
    """As `minimise_in_box`, by SciPy's public function."""

    def value_and_gradient(point: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.empty(point.size)
        return objective(point, gradient), gradient

    bounds, options = np.stack([low, high], axis=1), {"maxiter": n_steps}
    fit = minimize(
        value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return fit.x, float(fit.fun)
