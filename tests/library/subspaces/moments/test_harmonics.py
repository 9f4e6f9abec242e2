"""Harmonic coordinates, the kernel of the features, and exact sums of them."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.special import eval_gegenbauer

from privclust.privacy.bounds import directions
from privclust.sketches._harmonics import (
    kernel_of_squares,
    largest_move,
    n_moments,
    roots_of_counts,
    sorted_indices,
    squared_length,
    trace_free,
)
from privclust.sketches.moment_sums import MOMENT_BITS, HarmonicSums


def unit_rows(n, d, seed=0):
    return directions(np.random.default_rng(seed).standard_normal((n, d)))


def coordinates(row, degree):
    d = len(row)
    products = np.prod(row[sorted_indices(d, degree).astype(int)], axis=1)
    return products * roots_of_counts(d, degree)


@pytest.mark.parametrize(("d", "degree"), list(product([3, 5, 8], [2, 4, 6])))
def test_inner_products_are_gegenbauer_polynomials(d, degree):
    x, y = unit_rows(2, d)
    of_x, of_y = (trace_free(coordinates(row, degree), d, degree) for row in (x, y))
    order = d / 2 - 1
    zonal = eval_gegenbauer(degree, order, x @ y) / eval_gegenbauer(degree, order, 1.0)
    assert of_x @ of_y == pytest.approx(squared_length(d, degree) * zonal, abs=1e-12)


def dense(values, d):
    """A tensor of degree 4 from its coordinates."""
    tensor = np.zeros((d,) * 4)
    entries = values / roots_of_counts(d, 4)
    for index, entry in zip(sorted_indices(d, 4).astype(int), entries, strict=True):
        for place in set(permutations(index)):
            tensor[place] = entry
    return tensor


def test_the_trace_free_part_is_a_projection_without_traces():
    d = 3
    values = np.random.default_rng(1).standard_normal(n_moments(d, 4))
    part = trace_free(values, d, 4)
    assert np.abs(np.einsum("iijk->jk", dense(part, d))).max() < 1e-14
    assert trace_free(part, d, 4) == pytest.approx(part, abs=1e-14)
    assert part @ (values - part) == pytest.approx(0.0, abs=1e-13)
    assert np.linalg.norm(dense(values, d)) == pytest.approx(np.linalg.norm(values))


@pytest.mark.parametrize("weights", [{2: 0.2, 4: 0.8}, {2: 0.1, 4: 0.5, 6: 0.4}])
@pytest.mark.parametrize("d", [2, 5, 10])
def test_the_largest_move_is_attained_and_not_exceeded(d, weights):
    kernel = kernel_of_squares(d, weights)
    assert isinstance(kernel, Polynomial)
    s = np.linspace(0.0, 1.0, 200_001)
    moves = np.sqrt(np.maximum(2.0 * (1.0 - kernel(s)), 0.0))
    assert largest_move(d, weights) >= moves.max() - 1e-15
    assert largest_move(d, weights) == pytest.approx(moves.max(), abs=1e-8)
    assert largest_move(d, weights) >= 1.0  # a row of zeros is 1 away from any


def test_sums_are_those_of_fractions():
    X = np.random.default_rng(2).standard_normal((3, 2))
    sums = HarmonicSums(2, 4).add(X)
    for place, index in enumerate(sorted_indices(2, 4).astype(int)):
        total = Fraction(0)
        for row in directions(X):
            pairs = [
                Fraction(round(row[i] * row[j] * 2**18), 2**18) for i, j in index.reshape(2, 2)
            ]
            total += pairs[0] * pairs[1]
        assert Fraction(int(sums.integers[4][place]), 2**MOMENT_BITS) == total


@pytest.mark.parametrize(("d", "degree"), [(4, 6), (9, 4)])
def test_sums_do_not_depend_on_order_blocks_or_merging(d, degree):
    X = np.random.default_rng(3).standard_normal((700, d))
    X[5] = 0.0
    whole = HarmonicSums(d, degree).add(X)
    others = [
        HarmonicSums(d, degree).add(X[::-1].copy()),
        HarmonicSums(d, degree).add(X[:300]).add(X[300:]),
        HarmonicSums(d, degree).add(np.asfortranarray(X)),
    ]
    one_by_one = HarmonicSums(d, degree)
    for row in X:
        one_by_one.add(row[None])
    for other in [*others, one_by_one]:
        assert other.n_directions == whole.n_directions == 699
        for each, integers in whole.integers.items():
            assert (other.integers[each] == integers).all()


@pytest.mark.parametrize(("d", "degree"), [(2, 6), (5, 6), (12, 4)])
def test_harmonics_of_sums_are_those_of_rows(d, degree):
    X = np.random.default_rng(4).standard_normal((200, d))
    sums = HarmonicSums(d, degree).add(X)
    for each in range(2, degree + 1, 2):
        wanted = sum(trace_free(coordinates(row, each), d, each) for row in directions(X))
        got = np.asarray(sums.harmonics(each)) * roots_of_counts(d, each)
        assert np.abs(got - wanted).max() < 200 * 2.0**-17


def test_any_floats_have_a_direction():
    X = np.array([[np.nan, 1e300], [np.inf, 5.0], [-np.inf, np.inf], [5e-324, 0.0], [0.0, 0.0]])
    rows = directions(X)
    assert rows.tolist()[:2] == [[0.0, 1.0], [1.0, 0.0]]
    assert rows[2] == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])
    assert rows[3:].tolist() == [[1.0, 0.0], [0.0, 0.0]]
