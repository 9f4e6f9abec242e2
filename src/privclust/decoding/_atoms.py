r"""Least squares between a sketch and a sum of Gaussian atoms: the compiled part of the decoder.

An isotropic Gaussian cluster with center c and variance v has the characteristic function

.. math:: a_j(c, v) = e^{i \omega_j' c - v |\omega_j|^2 / 2}

at frequency :math:`\omega_j`; v = 0 is a Dirac mass. The mean features z of data are approximated
by :math:`\sum_k \alpha_k a(c_k, v_k)`, with the loss

.. math:: f = \sum_j |e_j|^2, \quad e_j = z_j - \sum_k \alpha_k a_j(c_k, v_k),

With P and Q the real and imaginary part of :math:`\bar e_j a_j(c_k, v_k)`, the gradient is

.. math::
    \partial f / \partial \alpha_k = -2 \sum_j P, \quad
    \partial f / \partial c_k = 2 \alpha_k \sum_j Q \omega_j, \quad
    \partial f / \partial v_k = \alpha_k \sum_j P |\omega_j|^2 .

No array of size K x m is stored. Phases of all atoms at a chunk of frequencies are one matrix
product, and so is the gradient by centers: BLAS keeps sums in registers that a loop would store
once per feature. Between the two, a pass over each tile of the chunk computes atoms, residual and
slopes; its inner loops run along the tile, so that they vectorise.

`minimise` is unconstrained: weights are squares, the logarithm of a variance is a logistic function
between two bounds, and center coordinates are free. It is the limited-memory BFGS method with a
line search for the weak Wolfe conditions by bisection.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.core import singlemath
from privclust.core.compiled import kernel, part
from privclust.core.vectormath import exp_nonpositive
from privclust.sketches._kernels import half_turn

LOGISTIC_EDGE = 1e-3  # least distance of initial logistic values from 0 and 1
_TILE = 128  # frequencies whose atoms stay in the first-level cache
_CHUNK = 1024  # frequencies whose phases stay in the second-level cache
_PHASES_AT_ONCE = 1 << 16  # phases that fit there without chunks, which need a copy
_QUASI_NEWTON_PAIRS = 12  # memory of BFGS: pairs of steps and gradient changes
_TURNS_PER_RADIAN = 1.0 / (2.0 * math.pi)
_ARMIJO, _CURVATURE = 1e-4, 0.9  # constants of the weak Wolfe conditions
_LINE_SEARCH_STEPS = 20  # most evaluations of a line search
_MOST_IN_SINGLE = 1e30  # largest sums of squares; float32 ends at 3.4e38
_SLOW_STEPS = 3  # number of slow steps in a row that ends the search


@part(fastmath=True)
def fill_atoms(phases, damping, cosines, sines):
    """Write the real and imaginary part of a damped atom at each frequency of a tile.

    `phases` are c'omega in turns. In the same array as cosines or sines, they would prevent
    vectorisation. `damping` is exp(-v |omega|^2 / 2).
    """
    for j in range(damping.size):
        t = phases[j]
        # s and c are of half the angle: cos = 1 - 2 s^2 and sin = 2 s c
        s, c = half_turn(t - np.rint(t))
        double_sine = damping[j] * (s + s)
        cosines[j] = damping[j] - double_sine * s
        sines[j] = double_sine * c


@part(fastmath=True)
def subtract_atom(weight, cosines, sines, real, imaginary):
    """Subtract a weighted atom from the features of a tile, in place."""
    for j in range(real.size):
        real[j] -= weight * cosines[j]
        imaginary[j] -= weight * sines[j]


@part(fastmath=True)
def squared_norm(real, imaginary):
    total = real.dtype.type(0.0)
    for j in range(real.size):
        total += real[j] * real[j] + imaginary[j] * imaginary[j]
    return total


@part(fastmath=True)
def fill_phases(center, turns, phases):
    """Write the phases of one atom, in turns: a loop, which is as fast as BLAS for one."""
    phases[:] = 0.0
    for i in range(center.size):
        x, row = center[i], turns[i]
        for j in range(phases.size):
            phases[j] += x * row[j]


@part(fastmath=True)
def fill_damping(variance, squares, damping):
    if damping.itemsize == 4:
        factor = np.float32(-0.5 * variance)
        for j in range(damping.size):
            damping[j] = singlemath.exp_nonpositive(factor * np.float32(squares[j]))
    else:
        for j in range(damping.size):
            damping[j] = exp_nonpositive(-0.5 * variance * squares[j])


def least_squares_problem(features, frequencies):
    """Return omega / (2 pi) (d, m), |omega|^2 (m,), real and imaginary parts of features (m,)."""
    return (
        np.ascontiguousarray(frequencies / (2.0 * math.pi)),
        np.einsum("ij,ij->j", frequencies, frequencies),
        np.ascontiguousarray(features.real),
        np.ascontiguousarray(features.imag),
    )


def in_single_precision(problem):
    """Return a problem in single precision, or unchanged if its squares might overflow.

    Single precision takes half the time. Values and gradients have errors of about 1e-7 of the
    features, far below noise; final fits use double precision.
    """
    _, squares, real, imaginary = problem
    power = np.vdot(real, real) + np.vdot(imaginary, imaginary)
    if not squares.max(initial=power) < _MOST_IN_SINGLE:  # also true for NaN
        return problem
    return tuple(part.astype(np.float32) for part in problem)


@kernel()
def residual_and_gradient(weights, centers, variances, shared, problem, gradients):
    """Return f and write its `gradients` by weights (K,), centers (K, d) and variances (K,).

    `shared`: all variances equal the first, which saves exponentials. `problem` comes from
    `least_squares_problem`.
    """
    return _residual_and_gradient(weights, centers, variances, shared, problem, gradients)


@part(fastmath=True)
def _residual_and_gradient(weights, centers, variances, shared, problem, gradients):
    """Do the work of `residual_and_gradient`, as a part of other kernels."""
    turns, squares, real, imaginary = problem
    by_weight, by_center, by_variance = gradients
    n_features, size = turns.shape
    by_weight[:], by_center[:], by_variance[:] = 0.0, 0.0, 0.0
    total, places, omega = 0.0, centers.astype(turns.dtype), turns
    chunk = size if weights.size * size <= _PHASES_AT_ONCE else _CHUNK
    for first in range(0, size, chunk):
        last = min(first + chunk, size)
        if chunk < size:
            omega = np.empty((n_features, last - first), turns.dtype)
            for i in range(n_features):
                for j in range(last - first):
                    omega[i, j] = turns[i, first + j]
        phases = np.dot(places, omega)
        for start in range(first, last, _TILE):
            tile = slice(start, min(start + _TILE, last))
            parts = squares[tile], real[tile].copy(), imaginary[tile].copy()
            mixture = weights, variances, shared
            total += _add_tile(mixture, phases, start - first, parts, by_weight, by_variance)
        slopes = np.dot(phases, omega.T)  # `_add_tile` has replaced the phases by slopes
        for k in range(weights.size):
            for i in range(n_features):
                by_center[k, i] += 2.0 * weights[k] / _TURNS_PER_RADIAN * slopes[k, i]
    return total


@part(fastmath=True)
def _add_tile(mixture, phases, start, parts, by_weight, by_variance):
    """Return the contribution of a tile to f; add to gradients, and overwrite phases by slopes.

    The tile begins at `start` of phases (K, chunk). `parts` are its |omega|^2 and features, which
    are overwritten by the residual.
    """
    (weights, variances, shared), (square, e, h) = mixture, parts
    n_atoms, size = weights.size, square.size
    cosines = np.empty((n_atoms, _TILE), e.dtype)
    sines, damping = np.empty((n_atoms, _TILE), e.dtype), np.empty(size, e.dtype)
    zero = e.dtype.type(0.0)
    for k in range(n_atoms):
        if k == 0 or not shared:
            fill_damping(variances[k], square, damping)
        # a weight in float64 would turn the loops to double precision
        x, c, s = e.dtype.type(weights[k]), cosines[k], sines[k]
        fill_atoms(phases[k][start : start + size], damping, c, s)
        subtract_atom(x, c, s, e, h)
    total = squared_norm(e, h)
    for k in range(n_atoms):
        c, s, slope = cosines[k], sines[k], phases[k][start : start + size]
        for j in range(size):
            slope[j] = s[j] * e[j] - c[j] * h[j]
        p_sum, p_square = zero, zero  # a loop of their own: see `privclust.core.compiled`
        for j in range(size):
            p = c[j] * e[j] + s[j] * h[j]
            p_sum += p
            p_square += p * square[j]
        by_weight[k] -= 2.0 * p_sum
        by_variance[k] += weights[k] * p_square
    return total


@kernel()
def unpacked(point, n_atoms, n_features, log_low, log_high):
    """Return weights, centers, variances, and the logistic values of the variances."""
    return _unpacked(point, n_atoms, n_features, log_low, log_high)


@part()
def _unpacked(point, n_atoms, n_features, log_low, log_high):
    """Do the work of `unpacked`, as a part of other kernels."""
    weights, centers = np.empty(n_atoms), np.empty((n_atoms, n_features))
    variances, logistic = np.empty(n_atoms), np.empty(n_atoms)
    first = n_atoms * (1 + n_features)  # place of the first variance
    for k in range(n_atoms):
        weights[k] = point[k] * point[k]
        for i in range(n_features):
            centers[k, i] = point[n_atoms + k * n_features + i]
        # `min` reads a shared variance, the last number, for all atoms
        logistic[k] = 1.0 / (1.0 + math.exp(-point[min(first + k, point.size - 1)]))
        variances[k] = math.exp(log_low + (log_high - log_low) * logistic[k])
    return weights, centers, variances, logistic


@part()
def _value(point, n_atoms, log_low, log_high, problem, gradient):
    """Return f at a packed point and write its gradient."""
    n_features = problem[0].shape[0]
    n_variances = point.size - n_atoms * (1 + n_features)
    weights, centers, variances, logistic = _unpacked(point, n_atoms, n_features, log_low, log_high)
    by_weight, by_center = np.empty(n_atoms), np.empty((n_atoms, n_features))
    by_variance = np.empty(n_atoms)
    gradients = by_weight, by_center, by_variance
    value = _residual_and_gradient(
        weights, centers, variances, n_variances == 1, problem, gradients
    )
    # chain rule: weights are squares, logarithms of variances logistic functions
    for k in range(n_atoms):
        gradient[k] = 2.0 * point[k] * by_weight[k]
        for i in range(n_features):
            gradient[n_atoms + k * n_features + i] = by_center[k, i]
    tail = gradient[n_atoms * (1 + n_features) :]
    tail[:] = 0.0
    for k in range(n_atoms):
        inner = variances[k] * (log_high - log_low) * logistic[k] * (1.0 - logistic[k])
        tail[min(k, n_variances - 1)] += inner * by_variance[k]
    return value


@kernel()
def minimise(point, n_atoms, log_low, log_high, problem, max_iter, tolerance):
    """Minimise f from a packed point, in place; return the least f.

    The point has the roots of the weights (K,), the centers (K d,) and one variance for all or one
    for each (K,), as arguments of the logistic function between the bounds. Three successive steps
    with a relative decrease of f below `tolerance` end the search.
    """
    size = point.size
    steps, changes = np.empty((_QUASI_NEWTON_PAIRS, size)), np.empty((_QUASI_NEWTON_PAIRS, size))
    rho = np.empty(_QUASI_NEWTON_PAIRS)
    gradient, new_gradient = np.zeros(size), np.empty(size)
    new_point = np.empty(size)
    value, n_pairs, n_slow = np.inf, np.int64(0), 0  # np.int64: a literal would be compiled twice
    direction, slope = np.zeros(size), 0.0
    for iteration in range(max_iter + 1):
        if iteration > 0:  # step 0 does not move, it evaluates f: one call compiles faster
            direction = _direction(gradient, steps, changes, rho, n_pairs)
            slope = np.dot(gradient, direction)
            # no way down, or NaN: forget the pairs, as below
            if not slope < 0.0:
                if n_pairs == 0:
                    break
                n_pairs = 0
                continue
        new_value, is_lower = value, False
        step, low, high = 1.0, 0.0, -1.0  # high < 0: not bracketed from above yet
        for _ in range(_LINE_SEARCH_STEPS):
            for i in range(size):
                new_point[i] = point[i] + step * direction[i]
            new_value = _value(new_point, n_atoms, log_low, log_high, problem, new_gradient)
            # `not <=`: NaN makes the step shorter, too
            if not new_value <= value + _ARMIJO * step * slope:
                high = step
            elif np.dot(new_gradient, direction) < _CURVATURE * slope:
                is_lower, low = True, step
            else:
                is_lower = True
                break
            step = 2.0 * low if high < 0.0 else 0.5 * (low + high)
        if not (is_lower and new_value <= value):  # forget the pairs: restart by steepest descent
            if n_pairs == 0:
                break
            n_pairs = 0
            continue
        slot = n_pairs % _QUASI_NEWTON_PAIRS
        for i in range(size):
            steps[slot, i] = new_point[i] - point[i]
            changes[slot, i] = new_gradient[i] - gradient[i]
        curvature = np.dot(steps[slot], changes[slot])
        # a pair without positive curvature would make the inverse Hessian indefinite
        if curvature > 1e-14 * np.dot(changes[slot], changes[slot]):
            rho[slot] = 1.0 / curvature
            n_pairs += 1
        n_slow = n_slow + 1 if value - new_value <= tolerance * new_value else 0
        value = new_value
        for i in range(size):
            point[i], gradient[i] = new_point[i], new_gradient[i]
        if n_slow >= _SLOW_STEPS:
            break
    return value


@part()
def _direction(gradient, steps, changes, rho, n_pairs):
    """Return minus the gradient times the approximate inverse Hessian (two-loop recursion)."""
    direction, size = np.empty(gradient.size), gradient.size
    kept = min(n_pairs, _QUASI_NEWTON_PAIRS)
    scale = 1.0
    if kept == 0:  # the first step has length 0.1
        scale = 0.1 / max(math.sqrt(np.dot(gradient, gradient)), 1e-300)
    for j in range(size):
        direction[j] = -gradient[j] * scale
    factors = np.empty(_QUASI_NEWTON_PAIRS)
    for age in range(1, kept + 1):
        i = (n_pairs - age) % _QUASI_NEWTON_PAIRS
        factors[i] = rho[i] * np.dot(steps[i], direction)
        for j in range(size):
            direction[j] -= factors[i] * changes[i, j]
    if kept > 0:
        last = (n_pairs - 1) % _QUASI_NEWTON_PAIRS
        scale = rho[last] * np.dot(changes[last], changes[last])
        for j in range(size):
            direction[j] /= scale
    for age in range(kept, 0, -1):
        i = (n_pairs - age) % _QUASI_NEWTON_PAIRS
        factor = factors[i] - rho[i] * np.dot(changes[i], direction)
        for j in range(size):
            direction[j] += factor * steps[i, j]
    return direction


@kernel()
def mixture_atoms(omega, squares, centers, variances):
    """Return real and imaginary parts of atoms, each (K, tile); `omega` in turns."""
    phases = np.dot(centers, omega)
    cosines, sines = np.empty(phases.shape), np.empty(phases.shape)
    damping = np.empty(squares.size)
    for k in range(len(centers)):
        fill_damping(variances[k], squares, damping)
        fill_atoms(phases[k], damping, cosines[k], sines[k])
    return cosines, sines


@kernel(fastmath=True)
def correlation_and_gradient(center, turns, real, imaginary, gradient):
    """Return the real inner product of a Dirac mass with features; write its gradient."""
    size = real.size
    cosines, sines, flat, phases = np.empty(size), np.empty(size), np.ones(size), np.empty(size)
    fill_phases(center, turns, phases)
    fill_atoms(phases, flat, cosines, sines)
    total = 0.0  # a loop of its own: see `privclust.core.compiled`
    for j in range(size):
        total += cosines[j] * real[j] + sines[j] * imaginary[j]
    for j in range(size):
        flat[j] = cosines[j] * imaginary[j] - sines[j] * real[j]
    for i in range(center.size):
        slope = 0.0
        for j in range(size):
            slope += turns[i, j] * flat[j]
        gradient[i] = slope / _TURNS_PER_RADIAN
    return total
