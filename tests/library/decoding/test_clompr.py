"""CL-OMPR on data that are points."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from privclust.decoding import Moments, decode
from privclust.sketches import Sketch, draw_frequencies, release

CENTERS = np.array([[-4.0, 0.0], [4.0, 1.0], [0.0, 5.0]])
WEIGHTS = np.array([0.5, 0.3, 0.2])
ROWS = np.repeat(CENTERS, [5, 3, 2], axis=0)
BOX = np.full(2, -6.0), np.full(2, 6.0)


def decoded(X, omega, k, box, seed=0):
    """One start on rows, which are points."""
    sketch = Sketch.of(X, omega)
    return decode(sketch, k, method="clompr", n_init=1, bounds=box, random_state=seed)


def matched(found, centers):
    """Order in which each true center's nearest one comes."""
    return cdist(centers, found).argmin(axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_points_are_found_exactly(seed):
    """At low frequencies: where the box is many waves wide, single ascents end in wrong places."""
    omega = draw_frequencies(2, 100, variance=16.0, random_state=seed)
    found = decoded(ROWS, omega, 3, BOX, seed)
    order = matched(found.centers, CENTERS)
    np.testing.assert_allclose(found.centers[order], CENTERS, atol=1e-3)
    np.testing.assert_allclose(found.weights[order], WEIGHTS, atol=1e-3)
    assert found.residual < 1e-5
    assert (found.weights >= 0).all()


def test_points_of_the_papers_kind_are_found_exactly():
    n_found = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        truth = 1.5 * 10**0.1 * rng.standard_normal((10, 10))
        omega = draw_frequencies(10, 1000, variance=4.0, random_state=seed)
        box = truth.min(axis=0) - 1, truth.max(axis=0) + 1
        found = decoded(truth, omega, 10, box, seed)
        order = matched(found.centers, truth)
        is_exact = np.allclose(found.centers[order], truth, atol=1e-2)
        n_found += is_exact and np.allclose(found.weights[order], 0.1, atol=1e-3)
    # a random start ends in another optimum about once in 15 times: more than 3 of 8 once in 900
    assert n_found >= 5


def test_one_point_in_one_dimension():
    omega = draw_frequencies(1, 20, variance=1.0, random_state=0)
    found = decoded(np.array([[1.25]]), omega, 1, (-3.0, 3.0))
    np.testing.assert_allclose(found.centers, [[1.25]], atol=1e-6)
    np.testing.assert_allclose(found.weights, [1.0], atol=1e-6)


@pytest.mark.parametrize(("a", "b"), [(1e-6, 3.0), (1e5, -2e7)])
def test_moves_and_scales_with_the_data(a, b):
    omega = draw_frequencies(2, 100, variance=16.0, random_state=1)
    plain = decoded(ROWS, omega, 3, BOX)
    moved = decoded(a * ROWS + b, omega / a, 3, (a * BOX[0] + b, a * BOX[1] + b))
    # phases of b / a radians are off by some 1e-16 of that; the optimiser stops at 1e-4
    np.testing.assert_allclose((moved.centers - b) / a, plain.centers, atol=1e-3)
    np.testing.assert_allclose(moved.weights, plain.weights, atol=1e-3)


@pytest.mark.parametrize("height", [0.0, 1e-8, 1e8])
def test_what_is_no_sketch_of_anything_gives_points_in_the_box(height):
    """Without bounds the box has four deviations on each side, and results are not clipped."""
    rng = np.random.default_rng(0)
    omega = draw_frequencies(2, 30, random_state=0)
    noise = height * (rng.standard_normal(30) + 1j * rng.standard_normal(30))
    low, high = np.array([-1.0, 100.0]), np.array([-0.5, 400.0])
    sketch = replace(release(Sketch.of(np.zeros((1, 2)), omega), 1.0, random_state=0), sums=noise)
    known = Moments((low + high) / 2.0, ((high - low) / 8.0) ** 2)
    found = decode(sketch, 4, method="clompr", n_init=1, moments=known, random_state=0)
    assert found.centers.shape == (4, 2)
    slack = 1e-9 * (high - low)  # of going to the decoder's units and back
    assert ((found.centers >= low - slack) & (found.centers <= high + slack)).all()
    assert np.isfinite(found.weights).all()
    assert (found.weights >= 0).all()
    assert 0 <= found.residual < np.inf
