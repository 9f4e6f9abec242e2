"""Descents in a box are SciPy's, bit for bit."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from privclust.core import box_descent
from privclust.core.box_descent import minimise_in_box


def objective(point, gradient):
    gradient[:] = rosen_der(point)
    return float(rosen(point))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n_steps", [1, 5, 1000])
@pytest.mark.parametrize("is_known", [True, False])
def test_it_is_scipys(monkeypatch, seed, n_steps, is_known):
    """With a start outside, sides that bind, open sides, and too few steps to arrive."""
    if is_known and not box_descent._IS_KNOWN:
        pytest.skip("SciPy's routine has other arguments in this version")
    monkeypatch.setattr(box_descent, "_IS_KNOWN", is_known)
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 30))
    low = rng.uniform(-2.0, 0.5, size)
    high = np.where(rng.random(size) < 0.5, np.inf, low + rng.uniform(0.1, 2.0, size))
    start = 3.0 * rng.standard_normal(size)
    before = start.copy(), low.copy(), high.copy()
    point, value = minimise_in_box(objective, start, low, high, n_steps)
    expected = minimize(
        *(rosen, start),
        jac=rosen_der,
        method="L-BFGS-B",
        bounds=np.stack([low, high], axis=1),
        options={"maxiter": n_steps},
    )
    assert point.tobytes() == expected.x.tobytes()
    assert value == expected.fun
    assert all(np.array_equal(a, b) for a, b in zip(before, (start, low, high), strict=True))
