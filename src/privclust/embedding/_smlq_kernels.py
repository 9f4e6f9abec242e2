"""Compiled loops of supervised manifold learning queries: products with graph Laplacians.

Embeddings have few columns, so that inner loops run over samples, along rows of the transposed
embedding. They add to vectors rather than reduce them, so that they vectorise without reordering
sums.
"""

import math

import numpy as np

from privclust.core.compiled import REORDER, kernel, part
from privclust.core.vectormath import exp_nonpositive

_UNIT_ROUNDOFF = 2.0**-53
_MAX_DEGREES = 24


@kernel(fastmath={"contract"})
def label_product(columns, classes, matrix, is_centred, out):
    """Write the label Laplacian times an embedding (k, n) to `out`, in O(n k + C^2 k).

    `classes` (n,) is -1 for a sample without label: its row and column of the Laplacian are zero.
    `matrix` (C, C) holds weights between classes. If `is_centred` it holds distances D between
    labels, and the Laplacian is ``J D J / 2``.
    """
    _label_product(columns, classes, matrix, is_centred, out)


@part(fastmath={"contract"})
def _label_product(columns, classes, matrix, is_centred, out):
    n_classes = matrix.shape[0]
    counts = np.zeros(n_classes)
    n_labelled = 0
    for i in range(classes.size):
        if classes[i] >= 0:
            counts[classes[i]] += 1.0
            n_labelled += 1
    sums, products = np.zeros(n_classes), np.zeros(n_classes)
    degrees = np.zeros(n_classes)
    for a in range(n_classes):
        for b in range(n_classes):
            degrees[b] += matrix[a, b] * counts[a]
    for c in range(columns.shape[0]):
        column = columns[c]
        sums[:] = 0.0
        total = 0.0
        for i in range(classes.size):
            if classes[i] >= 0:
                sums[classes[i]] += column[i]
                total += column[i]
        # J D J z / 2 by classes: centre z, multiply by D, and subtract the mean below
        if is_centred and n_labelled > 0:
            for a in range(n_classes):
                sums[a] -= counts[a] * total / n_labelled
        products[:] = 0.0
        for a in range(n_classes):
            for b in range(n_classes):
                products[b] += matrix[a, b] * sums[a]
        mean = 0.0
        if is_centred and n_labelled > 0:
            for a in range(n_classes):
                mean += counts[a] * products[a] / n_labelled
        for i in range(classes.size):
            label = classes[i]
            if label < 0:
                out[c, i] = 0.0
            elif is_centred:
                out[c, i] = 0.5 * (products[label] - mean)
            else:
                out[c, i] = degrees[label] * column[i] - products[label]


@part(fastmath={"contract"})
def _fill_kernel(columns, width, kernel):
    """Write the kernel ``exp(-|z_i - z_j|^2 / width)`` with zero diagonal; return its row sums."""
    k, n = columns.shape
    degrees = np.zeros(n)
    for i in range(n):
        row = kernel[i]
        row[:] = 0.0
        for c in range(k):
            column, value = columns[c], columns[c, i]
            for j in range(n):
                row[j] += (column[j] - value) * (column[j] - value)
        for j in range(n):
            row[j] = exp_nonpositive(-row[j] / width)
        row[i] = 0.0
        for j in range(n):
            degrees[j] += row[j]
    return degrees


@part(fastmath={"contract"})
def _centred(columns):
    """Return columns (k, n) minus their means."""
    k, n = columns.shape
    centred = np.empty((k, n))
    for c in range(k):
        mean = 0.0
        for i in range(n):
            mean += columns[c, i] / n
        for i in range(n):
            centred[c, i] = columns[c, i] - mean
    return centred


@part(fastmath={"contract"})
def series_degree(columns, width, counts):
    """Return the degree at which `fill_factors` gives the kernel to full precision, or -1.

    ``exp(-|z - y|^2 / w) = exp(-|z|^2 / w) exp(-|y|^2 / w) exp(2 z'y / w)``. Truncating the series
    of the last factor after degree m has a relative error of at most
    ``s^(m + 1) / (m + 1)! exp(2 s)``, where s is the largest ``2 |z'y| / w``.
    """
    k, n = columns.shape
    largest = 0.0
    for i in range(n):
        square = 0.0
        for c in range(k):
            square += columns[c, i] * columns[c, i]
        largest = max(largest, square)
    spread = 2.0 * largest / width
    # from 8 on no degree below _MAX_DEGREES suffices; `not <` also refuses NaN
    if not spread < 8.0:
        return -1
    error = np.exp(2.0 * spread)
    for m in range(counts.size):
        error *= spread / (m + 1)
        if error <= _UNIT_ROUNDOFF:
            return m
    return -1


@part(fastmath={"contract"})
def fill_factors(columns, width, monomials, factors):
    """Write F (p, n) with ``F'F`` the kernel of a centred embedding; see `series_degree`.

    Row a is ``exp(-|z|^2 / w) sqrt((2 / w)^|a| / a!) z^a``. Row a of `monomials` holds the row that
    a is computed from, the component that multiplies that row, and the exponent of the component.
    """
    k, n = columns.shape
    for i in range(n):
        square = 0.0
        for c in range(k):
            square += columns[c, i] * columns[c, i]
        factors[0, i] = exp_nonpositive(-square / width)
    for a in range(1, factors.shape[0]):
        before, column = factors[monomials[a, 0]], columns[monomials[a, 1]]
        scale = np.sqrt(2.0 / (width * monomials[a, 2]))
        for i in range(n):
            factors[a, i] = before[i] * column[i] * scale


@part(fastmath=REORDER)
def _factor_product(factors, column, product):
    """Write ``F'F`` times a column to `product`."""
    p, n = factors.shape
    product[:] = 0.0
    for a in range(p):
        row, total = factors[a], 0.0
        for i in range(n):
            total += row[i] * column[i]
        for i in range(n):
            product[i] += row[i] * total


@part(fastmath={"contract"})
def _kernel_product(kernel, column, product):
    product[:] = 0.0
    for j in range(column.size):
        row, value = kernel[j], column[j]
        for i in range(column.size):
            product[i] += row[i] * value


@kernel(fastmath={"contract"})
def later_iterates(
    columns, n_iter, width, classes, matrix, is_centred, alpha, floor, is_scaled, series, space
):
    """Iterate an embedding (k, n) by the Laplacian of its own kernel, in place.

    The kernel of width `width` is computed once, from the released embedding. If distances are
    small compared with the width, the kernel is evaluated as a short series, a product of thin
    matrices, in O(n) instead of O(n^2) per iterate; see `series_terms`. With `is_scaled` the
    released embedding and each iterate are scaled to Frobenius norm sqrt(n). `floor` replaces a
    degree of 0; with 0 such a sample does not move. `space` is (n, n); for other arguments see
    `label_product`.
    """
    k, n = columns.shape
    if is_scaled:
        _rescale(columns)
    counts, monomials = series
    centred = _centred(columns)
    degree = series_degree(centred, width, counts)
    ones, degrees = np.ones(n), np.empty(n)
    if degree >= 0:
        space = space[: counts[degree]]
        fill_factors(centred, width, monomials, space)
        _factor_product(space, ones, degrees)
        for i in range(n):
            # F'F has ones on its diagonal, the Laplacian's kernel zeros
            degrees[i] -= 1.0
    else:
        degrees = _fill_kernel(columns, width, space)
    labels, inside = np.empty((k, n)), np.empty((k, n))
    for _ in range(n_iter):
        _label_product(columns, classes, matrix, is_centred, labels)
        for c in range(k):
            if degree >= 0:
                _factor_product(space, columns[c], inside[c])
                for i in range(n):
                    # the diagonal of F'F again
                    inside[c, i] -= columns[c, i]
            else:
                _kernel_product(space, columns[c], inside[c])
        for c in range(k):
            for i in range(n):
                divisor = degrees[i] if degrees[i] > 0.0 else floor
                step = alpha * labels[c, i] - (degrees[i] * columns[c, i] - inside[c, i])
                if divisor > 0.0:
                    columns[c, i] += 0.5 * step / divisor
        if is_scaled:
            _rescale(columns)


def series_terms(n_components, n_samples):
    """Return the numbers of monomials up to each degree, and the monomials (n, 3) by degree.

    For the series in `later_iterates`, with at most a quarter as many monomials as samples. A row
    holds the parent monomial, the component that multiplies it, and the component's exponent.
    """
    monomials, counts, last = [(0, 0, 0)], [1], {(0,) * n_components: 0}
    for degree in range(1, _MAX_DEGREES):
        # comb(k + m, m) monomials have degree up to m
        if 4 * math.comb(n_components + degree, degree) > n_samples:
            break
        numbers = {}
        for powers, number in last.items():
            # multiplied by the highest component present or a higher one, each monomial occurs once
            highest = max((c for c in range(n_components) if powers[c]), default=0)
            for c in range(highest, n_components):
                raised = (*powers[:c], powers[c] + 1, *powers[c + 1 :])
                numbers[raised] = len(monomials)
                monomials.append((number, c, raised[c]))
        counts.append(len(monomials))
        last = numbers
    return np.array(counts), np.array(monomials)


@part()
def _rescale(columns):
    """Scale an embedding to Frobenius norm sqrt(n), unless it is zero."""
    total = 0.0
    for c in range(columns.shape[0]):
        for i in range(columns.shape[1]):
            total += columns[c, i] * columns[c, i]
    if total > 0.0:
        columns *= np.sqrt(columns.shape[1] / total)
