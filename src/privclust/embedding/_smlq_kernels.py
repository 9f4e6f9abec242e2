"""Compiled loops of supervised manifold learning queries: products with graph Laplacians.

Embeddings have few columns, so that inner loops run over samples, along rows of the transposed
embedding. They add to vectors rather than reduce them, so that they vectorise without reordering
sums.
"""

import numpy as np

from privclust.core.compiled import kernel, part
from privclust.core.vectormath import exp_nonpositive


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
def _kernel_product(kernel, column, product):
    product[:] = 0.0
    for j in range(column.size):
        row, value = kernel[j], column[j]
        for i in range(column.size):
            product[i] += row[i] * value


@kernel(fastmath={"contract"})
def later_iterates(
    columns, n_iter, width, classes, matrix, is_centred, alpha, floor, is_scaled, space
):
    """Iterate an embedding (k, n) by the Laplacian of its own kernel, in place.

    The kernel of width `width` is computed once, from the released embedding. With `is_scaled` the
    released embedding and each iterate are scaled to Frobenius norm sqrt(n). `floor` replaces a
    degree of 0; with 0 such a sample does not move. `space` is (n, n); for other arguments see
    `label_product`.
    """
    k, n = columns.shape
    if is_scaled:
        _rescale(columns)
    degrees = _fill_kernel(columns, width, space)
    labels, inside = np.empty((k, n)), np.empty((k, n))
    for _ in range(n_iter):
        _label_product(columns, classes, matrix, is_centred, labels)
        for c in range(k):
            _kernel_product(space, columns[c], inside[c])
        for c in range(k):
            for i in range(n):
                divisor = degrees[i] if degrees[i] > 0.0 else floor
                step = alpha * labels[c, i] - (degrees[i] * columns[c, i] - inside[c, i])
                if divisor > 0.0:
                    columns[c, i] += 0.5 * step / divisor
        if is_scaled:
            _rescale(columns)


@part()
def _rescale(columns):
    """Scale an embedding to Frobenius norm sqrt(n), unless it is zero."""
    total = 0.0
    for c in range(columns.shape[0]):
        for i in range(columns.shape[1]):
            total += columns[c, i] * columns[c, i]
    if total > 0.0:
        columns *= np.sqrt(columns.shape[1] / total)
