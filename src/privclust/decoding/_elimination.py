r"""Backward elimination of atoms: the one that is missed least goes, and the rest are refitted.

Weights :math:`\alpha` of atoms with the Gram matrix G and the inner products c with the features
are the nonnegative ones of least :math:`\alpha' G \alpha - 2 c' \alpha`. They are found by the
active-set method of Lawson and Hanson on the normal equations: each deletion starts from the
weights before it, most of which stay positive, and an atom of no weight goes at no cost.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.core.compiled import kernel, part

_RIDGE, _LEAST_RIDGE = 1e-10, 1e-200  # of the mean squared norm of the atoms; where all vanish
_ROUNDING = 1e-12  # of a gradient, in parts of the largest inner product


def eliminated(products, correlations, n_left, least):
    """Delete atoms until `n_left` are there, or all would be missed by more than `least`.

    Takes G (K, K) and c (K,); returns the weights of the atoms that are left, and which these are.
    """
    kept = np.ones(len(correlations), dtype=np.bool_)
    weights = _eliminate(products, correlations, n_left, least, kept)
    return weights[kept], np.flatnonzero(kept)


@kernel()
def _eliminate(products, correlations, n_left, least, kept):
    """Write which atoms are `kept`; return the weights of all."""
    size = len(correlations)
    weights, positive, places = np.zeros(size), kept.copy(), np.empty(size, dtype=np.int64)
    lower, inverse = np.zeros((size, size)), np.zeros((size, size))
    n_kept, loss = size, np.inf
    while n_kept > 0:
        if loss > 0.0:
            _refit(products, correlations, kept, positive, places, lower, weights)
        if n_kept == n_left:
            break
        loss, worst = _least_missed(kept, positive, places, lower, inverse, weights)
        if loss > least:
            break
        kept[worst], positive[worst], weights[worst] = False, False, 0.0
        n_kept -= 1
    return weights


@part()
def _refit(products, correlations, kept, positive, places, lower, weights):
    """Lower the residual by weights to its least; write the Cholesky factor of those above 0."""
    size = len(weights)
    aims, trace, n_kept, rounding = np.empty(size), 0.0, 0, 0.0
    for i in range(size):
        if kept[i]:
            trace, n_kept = trace + products[i, i], n_kept + 1
            rounding = max(rounding, _ROUNDING * abs(correlations[i]))
    ridge = max(_RIDGE * trace / n_kept, _LEAST_RIDGE)
    for _ in range(3 * size):
        n = _solve(products, correlations, ridge, positive, places, lower, aims)
        portion = 1.0
        for a in range(n):
            if not aims[a] > 0.0:
                portion = min(portion, _way(weights[places[a]], aims[a]))
        is_inside = True
        for a in range(n):
            i = places[a]
            if not aims[a] > 0.0 and _way(weights[i], aims[a]) <= portion:
                is_inside, positive[i], weights[i] = False, False, 0.0
            else:
                weights[i] += portion * (aims[a] - weights[i])
        if not is_inside:
            continue
        steepest, best = rounding, -1
        for i in range(size):
            if kept[i] and not positive[i]:
                slope = correlations[i]
                for j in range(size):
                    slope -= products[i, j] * weights[j]
                if slope > steepest:
                    steepest, best = slope, i
        if best < 0:
            break
        positive[best] = True


@part()
def _solve(products, correlations, ridge, chosen, places, lower, solution):
    """Solve for the weights of chosen atoms alone; return how many, and write places and factor."""
    n = 0
    for i in range(len(chosen)):
        if chosen[i]:
            places[n] = i
            n += 1
    for a in range(n):
        for b in range(a + 1):
            total = products[places[a], places[b]]
            for c in range(b):
                total -= lower[a, c] * lower[b, c]
            lower[a, b] = math.sqrt(total + ridge) if a == b else total / lower[b, b]
        total = correlations[places[a]]
        for b in range(a):
            total -= lower[a, b] * solution[b]
        solution[a] = total / lower[a, a]
    for a in range(n - 1, -1, -1):
        solution[a] /= lower[a, a]
        for b in range(a):
            solution[b] -= lower[a, b] * solution[a]
    return n


@part()
def _way(weight, aim):
    """Return the part of the way from a weight to an aim that is not positive up to 0."""
    return weight / (weight - aim) if weight > 0.0 else 0.0


@part()
def _least_missed(kept, positive, places, lower, inverse, weights):
    """Return by how much the residual rises at least without an atom, and without which one."""
    n = 0
    for i in range(len(kept)):
        if kept[i]:
            if not positive[i]:
                return 0.0, i
            n += 1
    least, worst = np.inf, 0
    norms = np.zeros(n)  # of the columns of the inverse factor: the diagonal of the inverse
    for a in range(n):
        for b in range(a):
            inverse[a, b] = 0.0
        for c in range(a):
            for b in range(c + 1):
                inverse[a, b] -= lower[a, c] * inverse[c, b]
        inverse[a, a] = 1.0
        for b in range(a + 1):
            inverse[a, b] /= lower[a, a]
            norms[b] += inverse[a, b] ** 2
    for a in range(n):
        weight = weights[places[a]]
        loss = weight * (weight / norms[a])  # squares may overflow
        if loss < least:
            least, worst = loss, places[a]
    return least, worst
