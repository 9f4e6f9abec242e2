r"""Backward elimination of atoms: the least important is deleted, and the weights are refitted.

With the Gram matrix G of the atoms and their inner products c with the features, the nonnegative
weights :math:`\alpha` minimise :math:`\alpha' G \alpha - 2 c' \alpha`. They are found by the
active-set method of Lawson and Hanson on the normal equations. After a deletion it starts from the
previous weights, most of which stay positive. An atom of weight 0 is deleted first.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.core.compiled import kernel, part

# ridge of the normal equations relative to the mean squared norm of atoms, and its least value
_RIDGE, _LEAST_RIDGE = 1e-10, 1e-200
_ROUNDING = 1e-12  # gradients are 0 below this fraction of the largest inner product


def eliminated(products, correlations, n_left, least):
    """Delete atoms until `n_left` are left, or each deletion raises the residual by over `least`.

    Takes G (K, K) and c (K,); returns the weights and the indices of the atoms that are left.
    """
    kept = np.ones(len(correlations), dtype=np.bool_)
    weights = _eliminate(products, correlations, n_left, least, kept)
    return weights[kept], np.flatnonzero(kept)


@kernel()
def _eliminate(products, correlations, n_left, least, kept):
    """Update which atoms are `kept`; return the weights of all."""
    size = len(correlations)
    weights, positive, places = np.zeros(size), kept.copy(), np.empty(size, dtype=np.int64)
    lower, inverse = np.zeros((size, size)), np.zeros((size, size))
    n_kept, loss = size, np.inf
    while n_kept > 0:
        if loss > 0.0:  # the weights stay optimal if the deleted one was 0
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
    """Find the weights of least residual; write the Cholesky factor of the positive ones."""
    size = len(weights)
    aims, trace, n_kept, rounding = np.empty(size), 0.0, 0, 0.0
    for i in range(size):
        if kept[i]:
            trace, n_kept = trace + products[i, i], n_kept + 1
            rounding = max(rounding, _ROUNDING * abs(correlations[i]))
    ridge = max(_RIDGE * trace / n_kept, _LEAST_RIDGE)
    # a limit for weights that rounding makes enter and leave again and again
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
        if not is_inside:  # a weight reached 0: solve again without it
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
    """Solve for the weights of chosen atoms; return their number, write places and factor."""
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
    """Return the fraction of the step from a weight to a nonpositive aim at which it is 0."""
    return weight / (weight - aim) if weight > 0.0 else 0.0


@part()
def _least_missed(kept, positive, places, lower, inverse, weights):
    """Return the least increase of the residual by deleting an atom, and this atom."""
    n = 0
    for i in range(len(kept)):
        if kept[i]:
            if not positive[i]:
                return 0.0, i
            n += 1
    least, worst = np.inf, 0
    norms = np.zeros(n)  # squared norms of columns of the inverse factor: diagonal of the inverse
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
