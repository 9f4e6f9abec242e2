"""The compiled least squares of Gaussian atoms against complex NumPy and finite differences."""

import math

import numpy as np
import pytest

from privclust.core.compiled import kernel
from privclust.decoding import _atoms
from privclust.decoding._atoms import (
    correlation_and_gradient,
    in_single_precision,
    minimise,
    mixture_atoms,
    residual_and_gradient,
    unpacked,
)

BOUNDS = math.log(1e-4), math.log(5.0)


@kernel()
def packed_value(point, k, low, high, problem, gradient):
    """The part as a kernel, which later processes load from the cache."""
    return _atoms._value(point, k, low, high, problem, gradient)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_depend_on_where_arrays_are(dtype):
    """Slopes are written right after the features that are read, or far from them."""
    for size in range(3, 64):
        rng = np.random.default_rng(size)
        features, phases, squares = rng.normal(size=(2, size)), rng.normal(size=size), np.ones(size)
        outcomes = []
        for gap in (0, 512):
            memory = np.zeros(3 * size + 3 * gap, dtype)
            parts = [memory[i * (size + gap) :][:size] for i in range(3)]
            for part, values in zip(parts, (*features, phases), strict=True):
                part[:] = values
            real, imaginary, slopes = parts
            gradients = np.zeros((2, 1))
            mixture = np.ones(1), np.full(1, 0.3), False
            tile = squares.astype(dtype), real, imaginary
            value = _atoms._add_tile(mixture, slopes[None], 0, tile, *gradients)
            outcomes.append((value, gradients.tobytes(), slopes.tobytes()))
        assert outcomes[0] == outcomes[1]


def atoms(omega, centers, variances):
    """Characteristic functions of isotropic Gaussians, (K, m)."""
    squares = (omega**2).sum(axis=0)
    return np.exp(1j * (centers @ omega) - 0.5 * np.outer(variances, squares))


def example(k, d, m, seed=0):
    rng = np.random.default_rng(seed)
    omega = rng.standard_normal((d, m))
    z = 0.3 * (rng.standard_normal(m) + 1j * rng.standard_normal(m))
    weights, centers = rng.uniform(0.1, 1, k), 2 * rng.standard_normal((k, d))
    return omega, z, weights, centers, rng.uniform(0.05, 1.5, k)


def value_and_gradients(weights, centers, variances, shared, problem):
    gradients = np.empty(len(weights)), np.empty(centers.shape), np.empty(len(weights))
    value = residual_and_gradient(weights, centers, variances, shared, problem, gradients)
    return value, gradients


@pytest.mark.parametrize("m", [1, 127, 128, 129, 300])
@pytest.mark.parametrize(("k", "d"), [(1, 1), (1, 3), (4, 2)])
@pytest.mark.parametrize("shared", [True, False])
def test_residual_and_gradient_are_those_of_complex_numpy(k, d, m, shared, problem_of):
    """Features are made to 1e-12, so sums of m of them to about m 1e-12."""
    omega, z, weights, centers, variances = example(k, d, m)
    used = np.full(k, variances[0]) if shared else variances
    value, gradients = value_and_gradients(
        weights, centers, variances, shared, problem_of(omega, z)
    )
    made = atoms(omega, centers, used)
    e = z - weights @ made
    inner = e.conj() * made
    p, q = inner.real, inner.imag
    squares = (omega**2).sum(axis=0)
    expected = (-2 * p.sum(1), 2 * weights[:, None] * (q @ omega.T), weights * (p @ squares))
    assert value == pytest.approx(float((np.abs(e) ** 2).sum()), rel=1e-10)
    for found, right in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-10 * m)


@pytest.mark.parametrize("m", [1, 127, 129, 2_500])
@pytest.mark.parametrize(("k", "d"), [(1, 1), (4, 2), (40, 20)])
@pytest.mark.parametrize("shared", [True, False])
def test_single_precision_is_right_to_its_last_bits(k, d, m, shared, problem_of):
    """A phase of t turns is off by some 6e-8 t sqrt(d), and so are atoms; t is 5 here at most."""
    omega, z, weights, centers, variances = example(k, d, m, seed=6)
    problem = problem_of(omega / math.sqrt(d), z)
    mixture = weights / k, centers, variances, shared
    value, gradients = value_and_gradients(*mixture, problem)
    single = in_single_precision(problem)
    assert {part.dtype for part in single} == {np.dtype(np.float32)}
    rough, rough_gradients = value_and_gradients(*mixture, single)
    assert rough == pytest.approx(value, rel=1e-5)
    for found, right in zip(rough_gradients, gradients, strict=True):
        np.testing.assert_allclose(found, right, rtol=0, atol=2e-5 * np.abs(right).max())


@pytest.mark.parametrize("what", ["features", "frequencies"])
@pytest.mark.parametrize("size", [1e60, math.inf, math.nan])
def test_what_single_precision_cannot_hold_stays_as_it_is(what, size, problem_of):
    turns, squares, real, imaginary = problem_of(*example(2, 2, 9)[:2])
    (real if what == "features" else squares)[3] = size
    problem = turns, squares, real, imaginary
    assert in_single_precision(problem) is problem


@pytest.mark.parametrize("n_variances", [1, 3])
def test_the_packed_gradient_is_that_of_differences(n_variances, problem_of):
    """Central differences of step 1e-5: errors of 1e-10 by curvature, 1e-9 by rounding."""
    k, d, m = 3, 2, 150
    omega, z, weights, centers, _ = example(k, d, m, seed=1)
    problem = problem_of(omega, z)
    raw = np.random.default_rng(2).standard_normal(n_variances)
    point = np.concatenate([np.sqrt(weights), centers.ravel(), raw])
    gradient, unused = np.empty(point.size), np.empty(point.size)
    packed_value(point, k, *BOUNDS, problem, gradient)
    differences = np.empty(point.size)
    for i in range(point.size):
        step = np.zeros(point.size)
        step[i] = 1e-5
        above, below = (packed_value(point + s, k, *BOUNDS, problem, unused) for s in (step, -step))
        differences[i] = (above - below) / 2e-5
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-6)


def test_correlation_and_gradient(problem_of):
    omega, z, _, centers, _ = example(1, 3, 200, seed=3)
    turns, _, real, imaginary = problem_of(omega, z)
    gradient, unused = np.empty(3), np.empty(3)
    found = correlation_and_gradient(centers[0], turns, real, imaginary, gradient)
    made = np.exp(1j * (centers[0] @ omega))
    assert found == pytest.approx(float((made * z.conj()).real.sum()), rel=1e-9)
    for i, step in enumerate(1e-6 * np.eye(3)):
        above, below = (
            correlation_and_gradient(centers[0] + s, turns, real, imaginary, unused)
            for s in (step, -step)
        )
        assert gradient[i] == pytest.approx((above - below) / 2e-6, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
def test_atoms_far_away_keep_modulus_and_phase(scale, problem_of):
    """A phase of size s is off by a few units of rounding of s, an atom by 1e-12 beside that."""
    omega, _, _, centers, variances = example(4, 2, 77, seed=4)
    centers = centers * scale
    problem = problem_of(omega, np.zeros(77, dtype=complex))
    cosines, sines = mixture_atoms(problem[0], problem[1], centers, variances)
    error = np.abs(cosines + 1j * sines - atoms(omega, centers, variances)).max()
    assert error < 2e-12 + 1e-14 * scale


@pytest.mark.parametrize("n_variances", [1, 3])
def test_each_step_lowers_the_residual(n_variances, problem_of):
    k, d, m = 3, 2, 200
    omega, z, weights, centers, _ = example(k, d, m, seed=5)
    problem = problem_of(omega, z)
    start = np.concatenate([np.sqrt(weights), centers.ravel(), np.zeros(n_variances)])
    before = packed_value(start, k, *BOUNDS, problem, np.empty(start.size))
    for steps in range(1, 40):
        point = start.copy()
        value = minimise(point, k, *BOUNDS, problem, steps, 0.0)
        assert value <= before
        before = value
        found = unpacked(point, k, d, *BOUNDS)
        assert (found[0] >= 0).all()
        assert ((found[2] >= 0.999e-4) & (found[2] <= 5.001)).all()
        shared = n_variances == 1
        assert value_and_gradients(*found[:3], shared, problem)[0] == pytest.approx(value, rel=1e-9)


def test_a_convex_problem_is_solved(problem_of):
    """At frequency 0 all that counts is the weight: f = sum_j |z_j - a|^2, least at the mean."""
    z = np.array([0.2, 0.7, 0.9]) + 0.1j
    problem = problem_of(np.zeros((1, 3)), z)
    point = np.array([0.1, 0.0, 0.0])
    value = minimise(point, 1, *BOUNDS, problem, 100, 1e-14)
    assert point[0] ** 2 == pytest.approx(0.6, rel=1e-7)
    assert value == pytest.approx(0.26 + 0.03, rel=1e-12)


def test_converges_to_the_mixture_next_to_it(problem_of):
    k, d, m = 3, 2, 150
    omega, _, _, _, _ = example(k, d, m, seed=6)
    weights, variances = np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 0.3])
    centers = np.array([[-4.0, 0], [4, 1], [0, 3]])
    problem = problem_of(omega, weights @ atoms(omega, centers, variances))
    point = np.concatenate([np.sqrt(weights) + 0.05, (centers + 0.2).ravel(), np.full(k, 0.5)])
    value = minimise(point, k, *BOUNDS, problem, 500, 1e-9)
    found = unpacked(point, k, d, *BOUNDS)
    assert value < 1e-16
    for got, right in zip(found[:3], (weights, centers, variances), strict=True):
        np.testing.assert_allclose(got, right, atol=1e-7)


def test_starting_at_the_minimum_or_nowhere_stays_there(problem_of):
    omega, _, _, _, _ = example(1, 2, 50)
    problem = problem_of(omega, np.zeros(50, dtype=complex))
    point = np.zeros(4)  # no weight: all gradients vanish
    assert minimise(point, 1, *BOUNDS, problem, 50, 1e-9) == 0.0
    np.testing.assert_array_equal(point, 0.0)
