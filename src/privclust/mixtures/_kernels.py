"""Compiled passes over the points of a Gaussian mixture, for statistics and densities.

Points are processed in blocks that stay in cache. A block is transposed to (d, block), so that
every inner loop runs over neighbouring points and vectorises. No array of size n x k is allocated.
Covariances of any type are given by whitening factors W (see `MixtureParameters.whitening`). Second
moments have the same shape as W: (k, 1, 1), (k, d, 1) or (k, d, d), of which only the lower
triangle is filled.

Private mixtures need exact sums (`exact_moments`). Values of a row (coordinates, distances and
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
from privclust.core.vectormath import exp_nonpositive, fused

WEIGHTED_BITS = 18
BITS = FACTOR_BITS + WEIGHTED_BITS
"""All statistics are multiples of 2^-34."""
EXACT_ROWS = 2 ** (52 - BITS)
LARGEST_ROWS = 2 ** (63 - BITS) - 1
# next to this number doubles are 2^-18 apart: adding and subtracting it rounds to multiples
_ROUNDER = 1.5 * 2.0 ** (52 - WEIGHTED_BITS)
_BLOCK = 1024  # points of a block, fewer with many features or components
_LEAST_BLOCK = 64
_CACHE = 12288  # numbers of a block's points and terms: they stay in the second-level cache
# Limit on squared distances in standard deviations: far points stay finite, with density 0.
_FAR = 1e300


@part()
def _block_size(n_features, n_components):
    """Return the number of points in a block, a multiple of 32."""
    return min(_BLOCK, max(_LEAST_BLOCK, _CACHE // (2 * n_features + n_components) // 32 * 32))


@part()
def _load(X, start, m, scale, block):
    """Copy points start ... start + m, times a scale, to the columns of the block."""
    for i in range(m):  # in memory order, for the hardware prefetcher
        for j in range(X.shape[1]):
            block[j, i] = X[start + i, j] * scale


@part()
def _round(block, m):
    for j in range(block.shape[0]):
        row = block[j]
        for i in range(m):
            row[i] = rounded_factor(row[i])


@part()
def _centre(block, m, mean, centred):
    """Write the points of a block minus a mean."""
    for j in range(block.shape[0]):
        row, out, shift = block[j], centred[j], mean[j]
        for i in range(m):
            out[i] = row[i] - shift


@part()
def _whiten(centred, m, whitening, squared):
    """Multiply centred points by W, in place; write their squared length, maybe NaN."""
    rows, columns = whitening.shape
    for i in range(m):
        squared[i] = 0.0
    for j in range(centred.shape[0] - 1, -1, -1):  # row j of a triangular W needs rows up to j
        row = centred[j]
        # min() picks the only row or column of a W that is spherical or diagonal
        scale = whitening[min(j, rows - 1), min(j, columns - 1)]
        for i in range(m):
            row[i] *= scale
        for c in range(j if columns > 1 else 0):
            other, factor = centred[c], whitening[j, c]
            for i in range(m):
                row[i] = fused(factor, other[i], row[i])
        for i in range(m):
            squared[i] = fused(row[i], row[i], squared[i])


@part()
def _responsibilities(block, m, log_scales, means, whitening, work, terms, peak, total):
    """Write responsibilities of the points to terms (k, m); log density = peak + log(total)."""
    for i in range(m):
        peak[i] = -np.inf
        total[i] = 0.0
    for k in range(terms.shape[0]):
        row, scale = terms[k], log_scales[k]
        _centre(block, m, means[k], work)
        _whiten(work, m, whitening[k], row)
        for i in range(m):
            q = row[i]
            t = fused(-0.5, q if q < _FAR else _FAR, scale)  # NaN is far, too
            row[i] = t
            peak[i] = t if t > peak[i] else peak[i]
    for k in range(terms.shape[0]):
        row = terms[k]
        for i in range(m):
            e = exp_nonpositive(row[i] - peak[i])
            row[i] = e
            total[i] += e
    # `work` is free again
    inverse = work[0]
    for i in range(m):
        inverse[i] = 1.0 / total[i]
    for k in range(terms.shape[0]):
        row = terms[k]
        for i in range(m):
            row[i] *= inverse[i]


@part()
def _clip(white, m, squared, radius, unit):
    """Clip whitened points to a radius, and scale them so that their norm is at most 1."""
    most, least = 1.0 / (radius * unit), 1.0 / unit
    for i in range(m):
        q = squared[i]
        # from here on the factor: 1 / radius, or 1 / |v| for longer v, both over the unit
        squared[i] = min(most, least / np.sqrt(max(q, 1e-300))) if q < _FAR else 0.0
    for j in range(white.shape[0]):
        row = white[j]
        for i in range(m):  # points infinitely far are in no direction
            row[i] = rounded_factor(row[i] * squared[i]) if squared[i] > 0.0 else 0.0


@part()
def _weighted(gamma, u):
    """Return gamma u, rounded once to a multiple of 2^-18."""
    return fused(gamma, u, _ROUNDER) - _ROUNDER


@part(fastmath=REORDER)
def _add(block, m, gamma, is_exact, weighted, totals, moments):
    """Add one component's count and sums to totals (1 + d,), and its moments."""
    rows, columns = moments.shape
    count = 0.0
    for i in range(m):
        count += rounded_term(gamma[i]) if is_exact else gamma[i]
    totals[0] += count
    for j in range(block.shape[0]):
        row, total = block[j], 0.0
        if is_exact:
            for i in range(m):
                weighted[i] = _weighted(gamma[i], row[i])
        else:
            for i in range(m):
                weighted[i] = gamma[i] * row[i]
        for i in range(m):
            total += weighted[i]
        totals[1 + j] += total
        for c in range(0 if columns > 1 else j, j + 1):
            other, moment = block[c], 0.0
            for i in range(m):
                moment += weighted[i] * other[i]
            moments[min(j, rows - 1), min(c, columns - 1)] += moment


@kernel()
def mixture_moments(X, log_scales, means, whitening):
    """Return counts and sums (k, 1 + d) and moments about the means, and the log-likelihood."""
    n, d = X.shape
    n_components = means.shape[0]
    size = _block_size(2 * d, n_components)
    block, work, weighted = np.empty((d, size)), np.empty((d, size)), np.empty(size)
    terms, peak, total = np.empty((n_components, size)), np.empty(size), np.empty(size)
    totals, moments = np.zeros((n_components, 1 + d)), np.zeros(whitening.shape)
    log_likelihood = 0.0
    for start in range(0, n, size):
        m = min(size, n - start)
        _load(X, start, m, 1.0, block)
        _responsibilities(block, m, log_scales, means, whitening, work, terms, peak, total)
        for i in range(m):
            log_likelihood += peak[i] + np.log(total[i])
        for k in range(n_components):
            _centre(block, m, means[k], work)
            _add(work, m, terms[k], False, weighted, totals[k], moments[k])
    return totals, moments, log_likelihood


@kernel()
def evaluate(X, log_scales, means, whitening, log_density, responsibilities):
    """Write log p(x) to (n,), and responsibilities to (n, k)."""
    n, d = X.shape
    n_components = means.shape[0]
    size = _block_size(d, n_components)
    block, work = np.empty((d, size)), np.empty((d, size))
    terms, peak, total = np.empty((n_components, size)), np.empty(size), np.empty(size)
    for start in range(0, n, size):
        m = min(size, n - start)
        _load(X, start, m, 1.0, block)
        _responsibilities(block, m, log_scales, means, whitening, work, terms, peak, total)
        for i in range(m):
            log_density[start + i] = peak[i] + np.log(total[i])
            for k in range(n_components):
                responsibilities[start + i, k] = terms[k, i]


@kernel()
def exact_moments(X, scale, log_scales, means, whitening, radius, unit):
    """Return exact counts and sums (k, 1 + d) and moments (shape of W) of points times a scale.

    There are at most `EXACT_ROWS` points, of norm at most 1 after scaling and rounding, and the
    mixture is in the same units. With a positive radius, points are not rounded, and the moments
    are those of v = W (x - mean), clipped to the radius, in units of radius * unit. The computed v
    is clipped, so that the bound on the contribution of a row holds for any conditioning of W.
    """
    n, d = X.shape
    n_components = means.shape[0]
    size = _block_size(2 * d, n_components)
    block, work, weighted = np.empty((d, size)), np.empty((d, size)), np.empty(size)
    terms, peak, total = np.empty((n_components, size)), np.empty(size), np.empty(size)
    totals, moments = np.zeros((n_components, 1 + d)), np.zeros(whitening.shape)
    for start in range(0, n, size):
        m = min(size, n - start)
        _load(X, start, m, scale, block)
        if radius == 0.0:
            _round(block, m)
        _responsibilities(block, m, log_scales, means, whitening, work, terms, peak, total)
        for k in range(n_components):
            points = block
            if radius > 0.0:
                _centre(block, m, means[k], work)
                _whiten(work, m, whitening[k], total)
                _clip(work, m, total, radius, unit)
                points = work
            _add(points, m, terms[k], True, weighted, totals[k], moments[k])
    return totals, moments
