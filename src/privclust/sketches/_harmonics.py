r"""Even moments of directions in harmonic coordinates, and their sensitivity to one row.

A symmetric tensor T of degree l over :math:`R^d` is stored by its entries at sorted indices
:math:`i_1 \le \dots \le i_l`. Each stands for :math:`c(I) = l! / \prod m_j!` equal entries, so that
the coordinates :math:`\sqrt{c(I)}\, T_I` preserve the Frobenius norm. Let `E` insert an identity,
:math:`E S = sym(I \otimes S)`; its adjoint is the trace. The trace-free part is

.. math:: H T = \sum_j (-1)^j h_j E^j E'^j T, \qquad
          h_j = \frac{l!}{2^j j! (l-2j)!} \prod_{i=1}^j \frac{1}{d + 2l - 2 - 2i},

an orthogonal projection. For unit vectors :math:`x, y`, :math:`\langle H x^{\otimes l},
y^{\otimes l} \rangle = \sum_j (-1)^j h_j (x'y)^{l-2j}`, which is :math:`c_l` times the Gegenbauer
polynomial :math:`P_l(x'y)`, :math:`P_l(1) = 1`. So with weights :math:`a_l` that add up to 1

.. math:: \phi(x) = (\sqrt{a_l / c_l}\; H x^{\otimes l})_l \quad \text{has} \quad
          \phi(x)'\phi(y) = K(x'y) = \sum_l a_l P_l(x'y), \qquad K(1) = 1.

**Sensitivity** of the sum of :math:`\phi` over rows, each of norm 1 or 0, in the Euclidean norm:

- *replace-one*, x by y: :math:`\|\phi(x) - \phi(y)\|^2 = 2 (K(1) - K(x'y)) \le S^2 = 2 (1 -
  \min_t K(t))`, attained by some pair of unit vectors. If y is 0 the distance is 1, which is less:
  K has no term of degree 0, so that its mean over the sphere is 0 and its minimum negative.
- *add-remove*: :math:`\|\phi(x)\| = 1`.

K is a polynomial in :math:`t^2` of degree at most 3. Its minimum over [0, 1] is at an end or at one
of at most two roots of its derivative.

References
----------
C. Müller, "Spherical harmonics", Lecture Notes in Mathematics 17, 1966, for harmonics and their
zonal polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import scipy.sparse as sp


def n_moments(n_features: int, degree: int) -> int:
    """Return the number of distinct entries of a symmetric tensor."""
    return math.comb(n_features + degree - 1, degree)


@lru_cache(maxsize=32)
def sorted_indices(n_features: int, degree: int) -> np.ndarray:
    """Return the sorted indices of a symmetric tensor, shape (n_moments, degree), int16.

    The order is that of `HarmonicSums`: grouped by the third-last index j; in each group, every
    head that ends with j is combined with every pair (k, l), j <= k <= l.
    """
    if degree == 2:
        return np.stack(np.triu_indices(n_features), axis=1).astype(np.int16)
    pairs, heads = sorted_indices(n_features, 2), sorted_indices(n_features, degree - 2)
    groups = []
    for j in range(n_features):
        ending, tail = heads[heads[:, -1] == j], pairs[pairs[:, 0] >= j]
        left, right = np.repeat(ending, len(tail), axis=0), np.tile(tail, (len(ending), 1))
        groups.append(np.hstack([left, right]))
    indices = np.concatenate(groups)
    indices.setflags(write=False)
    return indices


@lru_cache(maxsize=32)
def roots_of_counts(n_features: int, degree: int) -> np.ndarray:
    """Return the square roots of the multiplicities c(I) of the sorted indices, (n_moments,)."""
    indices = sorted_indices(n_features, degree)
    factorials = np.ones(len(indices))
    run = np.ones(len(indices))
    for place in range(1, degree):
        run = np.where(indices[:, place] == indices[:, place - 1], run + 1.0, 1.0)
        factorials *= run  # the product of the factorials of all runs of equals
    roots = np.sqrt(math.factorial(degree) / factorials)
    roots.setflags(write=False)
    return roots


@lru_cache(maxsize=32)
def insertions(n_features: int, degree: int) -> sp.csr_array:
    """Return the integer matrix of :math:`l (l-1) / 2` times E between entries, for degree l.

    Row I, column J: the number of ways to remove two equal indices from I such that J is left.

    Examples
    --------
    >>> insertions(2, 2).toarray().tolist()
    [[1], [0], [1]]
    """
    indices = sorted_indices(n_features, degree)
    rows, columns = [], []
    for first in range(degree):
        for second in range(first + 1, degree):
            equal = np.flatnonzero(indices[:, first] == indices[:, second])
            rest = np.delete(indices[equal], (first, second), axis=1)
            rows.append(equal)
            columns.append(positions(rest, n_features))
    ones = np.ones(sum(map(len, rows)), dtype=np.int64)
    shape = len(indices), n_moments(n_features, degree - 2)
    return sp.csr_array((ones, (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def positions(indices: np.ndarray, n_features: int) -> np.ndarray:
    """Return the positions of sorted indices in `sorted_indices`."""
    degree = indices.shape[1]
    if degree == 0:
        return np.zeros(len(indices), dtype=np.int64)
    codes, order = _codes(n_features, degree)
    return order[np.searchsorted(codes, _encoded(indices, n_features))]


def places(indices: np.ndarray, among: np.ndarray, n_features: int) -> np.ndarray:
    """Return the positions of indices in `among`, which must contain them."""
    codes, order = _in_order(among, n_features)
    return order[np.searchsorted(codes, _encoded(indices, n_features))]


@lru_cache(maxsize=32)
def _codes(n_features, degree):
    return _in_order(sorted_indices(n_features, degree), n_features)


def _in_order(indices, n_features):
    codes = _encoded(indices, n_features)
    order = np.argsort(codes)
    return codes[order], order


def _encoded(indices, n_features):
    return np.ravel_multi_index(tuple(indices.T), (n_features,) * indices.shape[1])


@lru_cache(maxsize=64)
def trace_coefficients(n_features: int, degree: int) -> tuple[float, ...]:
    r"""Return :math:`(-1)^j h_j` for j = 0 .. degree / 2.

    Examples
    --------
    >>> [round(c, 4) for c in trace_coefficients(5, 4)]
    [1.0, -0.6667, 0.0476]
    """
    coefficients = []
    for j in range(degree // 2 + 1):
        ways = math.factorial(degree) // (2**j * math.factorial(j) * math.factorial(degree - 2 * j))
        divisor = math.prod(n_features + 2 * degree - 2 - 2 * i for i in range(1, j + 1))
        coefficients.append((-1) ** j * ways / divisor)
    return tuple(coefficients)


def squared_length(n_features: int, degree: int) -> float:
    r"""Return :math:`c_l = \|H x^{\otimes l}\|^2` of a unit vector."""
    return math.fsum(trace_coefficients(n_features, degree))


def trace_free(coordinates: np.ndarray, n_features: int, degree: int) -> np.ndarray:
    """Return the trace-free part of a tensor, in norm-preserving coordinates."""
    parts = [coordinates]
    for lower in range(degree, 0, -2):
        parts.append(trace(parts[-1], n_features, lower))
    coefficients = trace_coefficients(n_features, degree)
    total = coefficients[-1] * parts[-1]
    for j in range(degree // 2 - 1, -1, -1):
        # Horner's rule in E: coefficient j belongs to E^j E'^j
        insert, _ = _scaled_insertions(n_features, degree - 2 * j)
        total = insert @ total + coefficients[j] * parts[j]
    return total


def trace(coordinates: np.ndarray, n_features: int, degree: int) -> np.ndarray:
    """Return the trace E' of tensors in coordinates of shape (m,) or (m, n)."""
    return _scaled_insertions(n_features, degree)[1] @ coordinates


@lru_cache(maxsize=32)
def _scaled_insertions(n_features, degree):
    """Return E and E' as matrices between coordinates."""
    outer, inner = roots_of_counts(n_features, degree), np.ones(1)
    if degree > 2:
        inner = roots_of_counts(n_features, degree - 2)
    ways = degree * (degree - 1) // 2
    scaled = insertions(n_features, degree).astype(np.float64) / ways
    inserts = sp.csr_array(sp.diags_array(outer) @ scaled @ sp.diags_array(1.0 / inner))
    return inserts, inserts.T


def kernel_of_squares(n_features: int, weights: Mapping[int, float]) -> np.polynomial.Polynomial:
    """Return K as a polynomial in :math:`s = t^2`, for weights by degree."""
    total = np.polynomial.Polynomial([0.0])
    for degree, weight in weights.items():
        coefficients = trace_coefficients(n_features, degree)[::-1]
        total = total + np.polynomial.Polynomial(coefficients) * (
            weight / squared_length(n_features, degree)
        )
    return total


def largest_move(n_features: int, weights: Mapping[int, float]) -> float:
    """Return S, the largest distance between the features of two unit vectors."""
    kernel = kernel_of_squares(n_features, weights)
    roots = np.asarray(kernel.deriv().roots(), dtype=np.complex128)
    inner = [float(root.real) for root in roots if abs(root.imag) < 1e-9]
    inner = [s for s in inner if 0.0 < s < 1.0]
    least = min(float(kernel(s)) for s in (0.0, 1.0, *inner))
    return math.sqrt(2.0 * (1.0 - least))
