"""Compiled passes with exact sums, for statistics of private mixtures.

Blocks are as in `privclust.mixtures._kernels`. Values of a row (coordinates, distances and
responsibilities) are computed by strict code with fused multiply-adds: they are bitwise the same
wherever the row is in X. They are then rounded:

- coordinates u, of norm up to 1, to multiples of 2^-16;
- coordinates weighted by a responsibility, g = gamma u, to multiples of 2^-18;
- responsibilities to multiples of 2^-30.

Products g u are then multiples of 2^-34, and their sums over `EXACT_ROWS` rows are exact in
float64: loops that add them may be reordered. A pass has at most this number of rows; the results
of passes are added as integers.
"""

import numpy as np

from privclust.core.compiled import REORDER, kernel, part
from privclust.core.fixed_point import FACTOR_BITS, rounded_factor, rounded_term
from privclust.core.vectormath import fused
from privclust.mixtures._kernels import block_size, even_whitening, load, normalise

WEIGHTED_BITS = 18
BITS = FACTOR_BITS + WEIGHTED_BITS
"""All statistics are multiples of 2^-34."""
EXACT_ROWS = 2 ** (52 - BITS)
LARGEST_ROWS = 2 ** (63 - BITS) - 1
_ROUNDER = 1.5 * 2.0 ** (52 - WEIGHTED_BITS)
# Limit on squared distances in standard deviations: far points stay finite, with density 0.
_FAR = 1e300


@part()
def _weighted(gamma, u):
    """Return gamma u, rounded once to a multiple of 2^-18."""
    return fused(gamma, u, _ROUNDER) - _ROUNDER


@part()
def _scale_block(block, n_features, m, factor, is_rounded):
    """Scale the points of a block to units of the ball, in place."""
    for j in range(n_features):
        row = block[j]
        if is_rounded:
            for i in range(m):
                row[i] = rounded_factor(row[i] * factor)
        else:
            for i in range(m):
                row[i] *= factor


@part()
def _whiten(block, m, offset, whitening, out, squared):
    """Set out = W u - offset for the points of a block, and squared = |out|^2, maybe NaN."""
    if whitening.shape[1] == 1:  # diagonal
        _whiten_apart(block, m, offset, whitening, out, squared)
    else:
        _whiten_together(block, m, offset, whitening, out, squared)


@part()
def _whiten_apart(block, m, offset, whitening, out, squared):
    """As `_whiten` with a diagonal W, (rows, 1)."""
    is_kept = out.shape[0] > 2
    last = whitening.shape[0] - 1
    for j in range(0, block.shape[0], 2):
        x, y = block[j], block[j + 1]
        v, w = whitening[min(j, last), 0], whitening[min(j + 1, last), 0]
        a, b = -offset[j], -offset[j + 1]
        if j == 0:
            first, second = out[0], out[1]
            for i in range(m):
                s, t = fused(v, x[i], a), fused(w, y[i], b)
                first[i], second[i] = s, t
                squared[i] = fused(s, s, t * t)
        elif is_kept:
            first, second = out[j], out[j + 1]
            for i in range(m):
                s, t = fused(v, x[i], a), fused(w, y[i], b)
                first[i], second[i] = s, t
                squared[i] = fused(s, s, fused(t, t, squared[i]))
        else:
            for i in range(m):
                s, t = fused(v, x[i], a), fused(w, y[i], b)
                squared[i] = fused(s, s, fused(t, t, squared[i]))


@part()
def _whiten_together(block, m, offset, whitening, out, squared):
    """As `_whiten` with a lower triangular W."""
    kept = out.shape[0]
    for j in range(0, block.shape[0], 2):
        x, y = block[j], block[j + 1]
        first, second = out[j % kept], out[(j + 1) % kept]
        w00, w10, w11 = whitening[j, j], whitening[j + 1, j], whitening[j + 1, j + 1]
        a, b = -offset[j], -offset[j + 1]
        if j == 0:
            for i in range(m):
                s, t = fused(w00, x[i], a), fused(w11, y[i], fused(w10, x[i], b))
                first[i], second[i] = s, t
                squared[i] = fused(s, s, t * t)
            continue
        _whiten_pair(block, m, j, whitening, a, b, first, second)
        for i in range(m):
            s = fused(w00, x[i], first[i])
            t = fused(w11, y[i], fused(w10, x[i], second[i]))
            first[i], second[i] = s, t
            squared[i] = fused(s, s, fused(t, t, squared[i]))


@part()
def _whiten_pair(block, m, j, whitening, a, b, first, second):
    """Set rows j and j + 1 of W u + (a, b), without the 2 x 2 block on the diagonal."""
    for c in range(0, j, 2):
        p, q = block[c], block[c + 1]
        v00, v01 = whitening[j, c], whitening[j, c + 1]
        v10, v11 = whitening[j + 1, c], whitening[j + 1, c + 1]
        if c == 0:
            for i in range(m):
                first[i] = fused(v01, q[i], fused(v00, p[i], a))
                second[i] = fused(v11, q[i], fused(v10, p[i], b))
        else:
            for i in range(m):
                first[i] = fused(v01, q[i], fused(v00, p[i], first[i]))
                second[i] = fused(v11, q[i], fused(v10, p[i], second[i]))


@part()
def _responsibilities(block, m, log_scales, offsets, whitening, work, terms, peak, total):
    """Write the responsibilities of the points of the block to terms (k, points)."""
    for i in range(m):
        peak[i] = -np.inf
    for k in range(terms.shape[0]):
        row, scale = terms[k], log_scales[k]
        _whiten(block, m, offsets[k], whitening[k], work, row)
        for i in range(m):
            q = row[i]
            t = fused(-0.5, q if q < _FAR else _FAR, scale)  # NaN is far, too
            row[i] = t
            peak[i] = t if t > peak[i] else peak[i]
    normalise(terms, m, peak, total, work[0])


@part()
def _draw_in(white, n_features, m, squared, radius, unit):
    """Clip whitened points to a radius, and scale them so that their norm is at most 1."""
    most, least = 1.0 / (radius * unit), 1.0 / unit
    n_far = 0
    for i in range(m):
        n_far += 0 if squared[i] < _FAR else 1
    for i in range(m if n_far else 0):
        if not squared[i] < _FAR:  # infinitely far, in no direction
            for j in range(n_features):
                white[j, i] = 0.0
    for i in range(m):
        q = squared[i]
        squared[i] = min(most, least / np.sqrt(max(q, 1e-300))) if q < _FAR else 0.0
    for j in range(n_features):
        row = white[j]
        for i in range(m):
            row[i] = rounded_factor(row[i] * squared[i])


@part(fastmath=REORDER)
def _add_component(block, m, gamma, weighted, totals, moments):
    """Add one component's count and sums to totals (1 + d,), and its moments."""
    count = 0.0
    for i in range(m):
        count += rounded_term(gamma[i])
    totals[0] += count
    if moments.shape[1] > 1:
        _add_matrix(block, m, gamma, weighted, totals, moments)
    else:
        _add_diagonal(block, m, gamma, totals, moments)


@part(fastmath=REORDER)
def _add_diagonal(block, m, gamma, totals, moments):
    """Add sums, and squares of features: one per feature, or their total."""
    last = moments.shape[0] - 1
    for j in range(0, block.shape[0], 2):
        x, y = block[j], block[j + 1]
        first, second, square, other = 0.0, 0.0, 0.0, 0.0
        for i in range(m):
            g, u, v = gamma[i], x[i], y[i]
            gu, gv = _weighted(g, u), _weighted(g, v)
            first += gu
            second += gv
            square += gu * u
            other += gv * v
        totals[1 + j] += first
        totals[2 + j] += second
        moments[min(j, last), 0] += square
        moments[min(j + 1, last), 0] += other


@part(fastmath=REORDER)
def _add_matrix(block, m, gamma, weighted, totals, moments):
    """Add sums and the lower triangle of second moments."""
    for j in range(0, block.shape[0], 2):
        x, y = block[j], block[j + 1]
        v, w = weighted[j], weighted[j + 1]
        first, second, square, product, other = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(m):
            gu, gv = _weighted(gamma[i], x[i]), _weighted(gamma[i], y[i])
            v[i], w[i] = gu, gv
            first += gu
            second += gv
            square += gu * x[i]
            product += gv * x[i]
            other += gv * y[i]
        totals[1 + j] += first
        totals[2 + j] += second
        moments[j, j] += square
        moments[j + 1, j] += product
        moments[j + 1, j + 1] += other
    if block.shape[0] > 2:
        _add_products(block, m, weighted, moments)


@part(fastmath=REORDER)
def _add_products(block, m, weighted, moments):
    """Add the second moments below the 2 x 2 blocks on the diagonal."""
    for j in range(2, block.shape[0], 2):
        first, second = weighted[j], weighted[j + 1]
        for c in range(0, j, 2):
            p, q = block[c], block[c + 1]
            m00, m01, m10, m11 = 0.0, 0.0, 0.0, 0.0
            for i in range(m):
                m00 += first[i] * p[i]
                m01 += first[i] * q[i]
                m10 += second[i] * p[i]
                m11 += second[i] * q[i]
            moments[j, c] += m00
            moments[j, c + 1] += m01
            moments[j + 1, c] += m10
            moments[j + 1, c + 1] += m11


@part()
def _offsets(means, whitening):
    """Return W m of each component, (k, d + d % 2)."""
    n_components, d = means.shape
    offsets = np.zeros((n_components, d + d % 2))
    for k in range(n_components):
        for j in range(d):
            if whitening.shape[2] == 1:
                offsets[k, j] = whitening[k, min(j, whitening.shape[1] - 1), 0] * means[k, j]
            else:
                for c in range(j + 1):
                    offsets[k, j] += whitening[k, j, c] * means[k, c]
    return offsets


@kernel()
def exact_moments(X, scale, log_scales, means, whitening):
    """Return exact counts and sums (k, 1 + d) and moments (shape of W) of points times a scale.

    There are at most `EXACT_ROWS` points, of norm at most 1 after scaling and rounding. The mixture
    is in the same units. Only the lower triangle of full second moments is filled.
    """
    n, d = X.shape
    n_components = means.shape[0]
    size = block_size(d, n_components)
    offsets, factors = _offsets(means, whitening), even_whitening(whitening)
    even = offsets.shape[1]
    block, weighted = np.zeros((even, size)), np.empty((even, size))
    terms = np.empty((n_components, size))
    work, peak, total = np.empty((2, size)), np.empty(size), np.empty(size)
    totals = np.zeros((n_components, 1 + even))
    moments = np.zeros(factors.shape)
    for start in range(0, n, size):
        m = min(size, n - start)
        load(X, False, start, m, block)
        _scale_block(block, d, m, scale, True)
        _responsibilities(block, m, log_scales, offsets, factors, work, terms, peak, total)
        for k in range(n_components):
            _add_component(block, m, terms[k], weighted, totals[k], moments[k])
    rows, columns = whitening.shape[1:]
    return totals[:, : 1 + d].copy(), moments[:, :rows, :columns].copy()


@kernel()
def clipped_moments(X, scale, log_scales, means, whitening, radius, unit):
    """Return moments as `exact_moments`, of v = W (x - mean) clipped, in units of radius * unit.

    x is a point times the scale. The computed v is clipped, so that the bound on the contribution
    of a row holds for any conditioning of W.
    """
    n, d = X.shape
    n_components = means.shape[0]
    size = block_size(d, 2 * n_components)
    offsets, factors = _offsets(means, whitening), even_whitening(whitening)
    even = offsets.shape[1]
    block, weighted = np.zeros((even, size)), np.empty((even, size))
    white, terms = np.empty((even, size)), np.empty((n_components, size))
    work, squared, peak, total = np.empty((2, size)), np.empty(size), np.empty(size), np.empty(size)
    totals = np.zeros((n_components, 1 + even))
    moments = np.zeros(factors.shape)
    for start in range(0, n, size):
        m = min(size, n - start)
        load(X, False, start, m, block)
        _scale_block(block, d, m, scale, False)
        _responsibilities(block, m, log_scales, offsets, factors, work, terms, peak, total)
        for k in range(n_components):
            _whiten(block, m, offsets[k], factors[k], white, squared)
            _draw_in(white, d, m, squared, radius, unit)
            _add_component(white, m, terms[k], weighted, totals[k], moments[k])
    rows, columns = whitening.shape[1:]
    return totals[:, : 1 + d].copy(), moments[:, :rows, :columns].copy()
