"""Compiled loops of t-SNE for new points among fixed points."""

import numpy as np

from privclust.core.compiled import REORDER, kernel, part
from privclust.core.vectormath import exp_nonpositive

_MAX_BISECTIONS = 60  # for a bandwidth: enough to reach rounding errors
_ENTROPY_TOLERANCE = 1e-6  # of the entropy, in nats


@part(fastmath=REORDER)
def _weigh(distances, least, beta, weights):
    """Write weights e^(-beta (d - least)); return their sum and the weighted mean of d - least."""
    for j in range(distances.shape[0]):
        weights[j] = exp_nonpositive(-beta * (distances[j] - least))
    total, moment = 0.0, 0.0
    for j in range(distances.shape[0]):
        total += weights[j]
        moment += weights[j] * (distances[j] - least)
    # total is at least 1, the weight of the least distance
    return total, moment / total


@kernel()
def affinities(distances, entropy):
    """Turn rows of squared distances (n, m) into probabilities of the given entropy, in place.

    p_j is proportional to e^(-beta d_j), with beta such that the entropy of p is `entropy`, the
    logarithm of the perplexity. If ties at the least distance, or points at infinity, make this
    impossible, the entropy is the nearest possible one. Points at distance inf are ignored.
    """
    n, m = distances.shape
    weights = np.empty(m)
    for i in range(n):
        row = distances[i]
        least, spread, counted = np.inf, 0.0, 0
        for j in range(m):
            least = min(least, row[j])
        for j in range(m):
            if row[j] < np.inf:
                spread += row[j] - least
                counted += 1
            else:
                row[j] = least + 1e300  # weight 0, without NaN from inf - inf or 0 * inf
        # a start for the bisection: one over the mean distance above the least
        beta = counted / spread if spread > 0.0 else 1.0
        low, high = 0.0, np.inf
        for _ in range(_MAX_BISECTIONS):
            total, mean = _weigh(row, least, beta, weights)
            excess = np.log(total) + beta * mean - entropy
            if abs(excess) < _ENTROPY_TOLERANCE:
                break
            if excess > 0.0:
                low = beta
                beta = 2.0 * beta if high == np.inf else 0.5 * (beta + high)
            else:
                high = beta
                beta = 0.5 * (low + beta)
        for j in range(m):
            row[j] = weights[j] / total


@kernel(fastmath=REORDER)
def forces(P, Y, points, own_column, attraction, repulsion, spread):
    r"""Write both parts of the t-SNE gradient for each new point, and a bound on their change.

    With :math:`w_j = 1 / (1 + \|y - z_j\|^2)` and :math:`h_j = 2 w_j (y - z_j)`, attraction (n, k)
    is :math:`\sum_j p_j h_j / \sum_j p_j` and repulsion (n, k) :math:`\sum_j w_j h_j / \sum_j w_j`,
    for weights P (n, m) of at least 0, new points Y (n, k) and points z in columns (k, m).
    `own_column` is the column of the first new point if the new points are among the points, in
    order, else -1: a point does not repel itself. `spread` (n,) is an upper bound of
    :math:`\max_{jl} \|h_j - h_l\|`, at most 2: the diagonal of the bounding box of all h, or twice
    the longest h if smaller.
    """
    n, m = P.shape
    k = Y.shape[1]
    squares, weights = np.empty(m), np.empty(m)
    for i in range(n):
        p = P[i]
        squares[:] = 0.0
        for c in range(k):
            y, row = Y[i, c], points[c]
            for j in range(m):
                squares[j] += (y - row[j]) * (y - row[j])
        for j in range(m):
            weights[j] = 1.0 / (1.0 + squares[j])
        attracted, repelled, longest = 0.0, 0.0, 0.0
        for j in range(m):
            attracted += p[j]
            repelled += weights[j]
            longest = max(longest, weights[j] * weights[j] * squares[j])  # |h|^2 / 4
        if own_column >= 0:
            # the point's own weight, at distance 0; its h is 0
            repelled -= 1.0
        diagonal = 0.0
        for c in range(k):
            y, row = Y[i, c], points[c]
            towards, away, low, high = 0.0, 0.0, np.inf, -np.inf
            for j in range(m):
                h = 2.0 * weights[j] * (y - row[j])
                towards += p[j] * h
                away += weights[j] * h
                low, high = min(low, h), max(high, h)
            attraction[i, c] = towards / attracted
            repulsion[i, c] = away / max(repelled, 1e-300)
            diagonal += (high - low) * (high - low)
        spread[i] = min(np.sqrt(diagonal), 4.0 * np.sqrt(longest))
