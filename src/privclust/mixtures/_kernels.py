"""Compiled passes over the points of a Gaussian mixture.

Points are processed in blocks that stay in cache. A block is transposed to (d, block), so that
every inner loop runs over neighbouring points and vectorises. No array of size n x k is allocated.
Features are processed in pairs, which halves the cache traffic. An odd number of features is padded
by one that is 0 in all points and means.

Points are a C-ordered array, (n, d) or, with ``is_transposed``, (d, n). Covariances of any type are
given by whitening factors ``W`` (see `MixtureParameters.whitening`). Second moments have the same
shape as W: (k, 1, 1), (k, d, 1) or (k, d, d).
"""

import numpy as np

from privclust.core.compiled import REORDER, kernel, part
from privclust.core.vectormath import exp_nonpositive

_BLOCK = 1024  # points of a block, fewer with many features or components
_LEAST_BLOCK = 64
_CACHE = 12288  # numbers of a block's points and terms: they stay in the second-level cache
_PRODUCT_LIMIT = 600.0  # largest natural logarithm of a product of normalisers
# Limit on squared distances in standard deviations: far points stay finite, with density 0.
_FAR = 1e300


@part()
def block_size(n_features, n_components):
    """Return the number of points in a block, a multiple of 32."""
    return min(_BLOCK, max(_LEAST_BLOCK, _CACHE // (2 * n_features + n_components) // 32 * 32))


@part()
def _even_means(means):
    """Return means padded to an even number of features."""
    n_components, d = means.shape
    centres = np.zeros((n_components, d + d % 2))
    for k in range(n_components):
        for j in range(d):
            centres[k, j] = means[k, j]
    return centres


@part()
def even_whitening(whitening):
    """Return whitening factors with a row and a column of zeros for the padded feature."""
    k, rows, columns = whitening.shape
    factors = np.zeros(
        (k, rows + (rows % 2 if rows > 1 else 0), columns + (columns % 2 if columns > 1 else 0))
    )
    for c in range(k):
        for i in range(rows):
            for j in range(columns):
                factors[c, i, j] = whitening[c, i, j]
    return factors


@part()
def load(X, is_transposed, start, m, block):
    """Copy points start ... start + m to the columns of the block."""
    if is_transposed:
        for j in range(X.shape[0]):
            row = X[j]
            for i in range(m):
                block[j, i] = row[start + i]
    elif X.shape[1] == 2:  # a constant stride vectorises
        flat = X.reshape(-1)
        first = block[0]
        second = block[1]
        part = flat[2 * start : 2 * (start + m)]
        for i in range(m):
            first[i] = part[2 * i]
            second[i] = part[2 * i + 1]
    else:
        for i in range(m):  # in memory order, for the hardware prefetcher
            for j in range(X.shape[1]):
                block[j, i] = X[start + i, j]


@part(fastmath=REORDER)
def _squared_distances(block, m, mean, whitening, work, out):
    """Set out = |W (x - mean)|^2 for the points of a block."""
    rows, columns = whitening.shape
    if columns > 1:
        _squared_lengths(block, m, mean, whitening, work, out)
        return
    for j in range(0, mean.size, 2):
        x, y = block[j], block[j + 1]
        a, b = mean[j], mean[j + 1]
        v, w = whitening[0, 0], whitening[0, 0]
        if rows > 1:
            v, w = whitening[j, 0], whitening[j + 1, 0]
        if j == 0:
            for i in range(m):
                s, t = v * (x[i] - a), w * (y[i] - b)
                out[i] = s * s + t * t
        else:
            for i in range(m):
                s, t = v * (x[i] - a), w * (y[i] - b)
                out[i] += s * s + t * t


@part(fastmath=REORDER)
def _squared_lengths(block, m, mean, whitening, work, out):
    """As `_squared_distances` with a lower triangular W, by pairs of its rows."""
    first, second = work[0], work[1]
    for j in range(0, mean.size, 2):
        x, y = block[j], block[j + 1]
        a, b = mean[j], mean[j + 1]
        w00, w10, w11 = whitening[j, j], whitening[j + 1, j], whitening[j + 1, j + 1]
        if j == 0:
            for i in range(m):
                u, v = x[i] - a, y[i] - b
                s, t = w00 * u, w10 * u + w11 * v
                out[i] = s * s + t * t
            continue
        for c in range(0, j, 2):
            p, q = block[c], block[c + 1]
            e, f = mean[c], mean[c + 1]
            v00, v01 = whitening[j, c], whitening[j, c + 1]
            v10, v11 = whitening[j + 1, c], whitening[j + 1, c + 1]
            if c == 0:
                for i in range(m):
                    u, v = p[i] - e, q[i] - f
                    first[i] = v00 * u + v01 * v
                    second[i] = v10 * u + v11 * v
            else:
                for i in range(m):
                    u, v = p[i] - e, q[i] - f
                    first[i] += v00 * u + v01 * v
                    second[i] += v10 * u + v11 * v
        for i in range(m):
            u, v = x[i] - a, y[i] - b
            s, t = first[i] + w00 * u, second[i] + w10 * u + w11 * v
            out[i] += s * s + t * t


@part(fastmath=REORDER)
def _log_terms(block, m, log_scales, means, whitening, work, terms, peak):
    """Set terms[k] = log(pi_k N(x | mu_k, Sigma_k)), and peak to the largest of each point."""
    for i in range(m):
        peak[i] = -np.inf
    for k in range(means.shape[0]):
        row = terms[k]
        if means.shape[1] == 2:
            _plane_log_terms(block, m, log_scales[k], means[k], whitening[k], row, peak)
            continue
        _squared_distances(block, m, means[k], whitening[k], work, row)
        scale = log_scales[k]
        for i in range(m):
            q = row[i]
            t = scale - 0.5 * (_FAR if q > _FAR else q)
            row[i] = t
            peak[i] = t if t > peak[i] else peak[i]


@part(fastmath=REORDER)
def _plane_log_terms(block, m, scale, mean, whitening, row, peak):
    """Set the log terms of one component for two features, in one pass."""
    rows, columns = whitening.shape
    w00 = w11 = whitening[0, 0]
    w10 = 0.0
    if rows > 1:
        w11 = whitening[1, columns - 1]
    if columns > 1:
        w10 = whitening[1, 0]
    x, y = block[0], block[1]
    a, b = mean[0], mean[1]
    for i in range(m):
        u, v = x[i] - a, y[i] - b
        s, t = w00 * u, w10 * u + w11 * v
        q = s * s + t * t
        term = scale - 0.5 * (_FAR if q > _FAR else q)
        row[i] = term
        peak[i] = term if term > peak[i] else peak[i]


@part()
def normalise(terms, m, peak, total, inverse):
    """Turn log terms into responsibilities; log density = peak + log(total)."""
    for i in range(m):
        total[i] = 0.0
    for k in range(terms.shape[0]):
        row = terms[k]
        for i in range(m):
            e = exp_nonpositive(row[i] - peak[i])
            row[i] = e
            total[i] += e
    for i in range(m):
        inverse[i] = 1.0 / total[i]
    for k in range(terms.shape[0]):
        row = terms[k]
        for i in range(m):
            row[i] *= inverse[i]


@part(fastmath=REORDER)
def _accumulate(block, m, gamma, mean, work, sums, moments):
    """Add the moments of one component about its mean, and return the sum of gamma."""
    rows, columns = moments.shape
    count = 0.0
    for j in range(0, mean.size, 2):
        x, y = block[j], block[j + 1]
        a, b = mean[j], mean[j + 1]
        first, second, square, product, other = 0.0, 0.0, 0.0, 0.0, 0.0
        count = 0.0  # the same for every pair of features
        for i in range(m):
            u, v, g = x[i] - a, y[i] - b, gamma[i]
            gu, gv = g * u, g * v
            count += g
            first += gu
            second += gv
            square += gu * u
            product += gu * v
            other += gv * v
        sums[j] += first
        sums[j + 1] += second
        if columns > 1:
            moments[j, j] += square
            moments[j + 1, j] += product
            moments[j + 1, j + 1] += other
        elif rows > 1:
            moments[j, 0] += square
            moments[j + 1, 0] += other
        else:
            moments[0, 0] += square + other
    if columns > 1 and mean.size > 2:
        _accumulate_products(block, m, gamma, mean, work, moments)
    return count


@part(fastmath=REORDER)
def _accumulate_products(block, m, gamma, mean, work, moments):
    """Add the second moments below the 2 x 2 blocks on the diagonal."""
    first, second = work[0], work[1]
    for j in range(2, mean.size, 2):
        x, y = block[j], block[j + 1]
        a, b = mean[j], mean[j + 1]
        for i in range(m):
            first[i] = gamma[i] * (x[i] - a)
            second[i] = gamma[i] * (y[i] - b)
        for c in range(0, j, 2):
            p, q = block[c], block[c + 1]
            e, f = mean[c], mean[c + 1]
            m00, m01, m10, m11 = 0.0, 0.0, 0.0, 0.0
            for i in range(m):
                u, v = p[i] - e, q[i] - f
                m00 += first[i] * u
                m01 += first[i] * v
                m10 += second[i] * u
                m11 += second[i] * v
            moments[j, c] += m00
            moments[j, c + 1] += m01
            moments[j + 1, c] += m10
            moments[j + 1, c + 1] += m11


@kernel()
def mixture_moments(X, is_transposed, log_scales, means, whitening):
    """Return counts (k,), sums (k, d), lower triangles of moments about means, log-likelihood."""
    n_components, d = means.shape
    n = X.shape[1] if is_transposed else X.shape[0]
    size = block_size(d, n_components)
    centres = _even_means(means)
    even = centres.shape[1]
    factors = even_whitening(whitening)
    block, work = np.zeros((even, size)), np.empty((2, size))
    terms = np.empty((n_components, size))
    peak, total, inverse = np.empty(size), np.empty(size), np.empty(size)
    counts, sums = np.zeros(n_components), np.zeros((n_components, even))
    moments = np.zeros(factors.shape)
    log_likelihood, product, n_factors = 0.0, np.ones(size), 0
    per_log = max(1, int(_PRODUCT_LIMIT / np.log(n_components + 1.0)))
    for start in range(0, n, size):
        m = min(size, n - start)
        load(X, is_transposed, start, m, block)
        _log_terms(block, m, log_scales, centres, factors, work, terms, peak)
        normalise(terms, m, peak, total, inverse)
        log_likelihood += _sum_and_multiply(peak, total, product, m)
        n_factors += 1  # one logarithm of a product replaces many logarithms
        if n_factors == per_log:
            log_likelihood += np.log(product).sum()
            product[:] = 1.0
            n_factors = 0
        for k in range(n_components):
            counts[k] += _accumulate(block, m, terms[k], centres[k], work, sums[k], moments[k])
    log_likelihood += np.log(product).sum()
    rows, columns = whitening.shape[1:]
    return counts, sums[:, :d].copy(), moments[:, :rows, :columns].copy(), log_likelihood


@part(fastmath=REORDER)
def _sum_and_multiply(peak, total, product, m):
    """Return the sum of the peaks, and multiply `product` by the totals."""
    partial = 0.0
    for i in range(m):
        partial += peak[i]
        product[i] *= total[i]
    return partial


@kernel()
def evaluate(X, is_transposed, log_scales, means, whitening, log_density, responsibilities):
    """Write log p(x) to (n,), and responsibilities to (n, k) unless that array is (0, k)."""
    n_components, d = means.shape
    n = X.shape[1] if is_transposed else X.shape[0]
    size = block_size(d, n_components)
    centres = _even_means(means)
    even = centres.shape[1]
    factors = even_whitening(whitening)
    block, work = np.zeros((even, size)), np.empty((2, size))
    terms = np.empty((n_components, size))
    peak, total, inverse = np.empty(size), np.empty(size), np.empty(size)
    for start in range(0, n, size):
        m = min(size, n - start)
        load(X, is_transposed, start, m, block)
        _log_terms(block, m, log_scales, centres, factors, work, terms, peak)
        normalise(terms, m, peak, total, inverse)
        for i in range(m):
            log_density[start + i] = peak[i] + np.log(total[i])
        if responsibilities.shape[0]:
            for i in range(m):
                for k in range(n_components):
                    responsibilities[start + i, k] = terms[k, i]
