import itertools
import re

import numpy as np
import pytest

from privclust.kmeans import EUGkM, Grid
from privclust.privacy.bounds import Box

noisy = pytest.mark.filterwarnings(
    "ignore::privclust.privacy.NoiseWarning", "ignore::privclust.privacy.WeakGuaranteeWarning"
)


def box(low, high, d):
    return Box(np.broadcast_to(np.asarray(low, float), d), np.broadcast_to(high, d).astype(float))


def fitted(n_samples, epsilon, d, max_cells=10**6):
    """A fit to one row with a given N; counts get the whole epsilon."""
    return EUGkM(
        1,
        epsilon=epsilon,
        neighbours="add_remove",
        bounds=(-1.0, 1.0),
        n_samples=n_samples,
        n_init=1,
        max_cells=max_cells,
        random_state=0,
    ).fit(np.zeros((1, d)))


@pytest.mark.parametrize(
    ("n_epsilon", "d"),
    # in ten dimensions the largest has millions of cells, see below
    list(itertools.product([1e-6, 1.0, 9.0, 100.0, 5e3, 1e5], [1, 2, 3, 10]))[:-1],
)
@noisy
def test_number_of_cells_is_the_printed_one(n_epsilon, d):
    """M = (N eps / 10)^(2d/(2+d)), up to one more cell along an axis."""
    M = (n_epsilon / 10) ** (2 * d / (2 + d))
    fit = fitted(10**6, n_epsilon / 10**6, d)
    shape, n_cells = fit.grid_shape_, fit.n_cells_
    assert n_cells == np.prod(shape)
    assert len(shape) == d
    assert max(shape) - min(shape) <= 1
    assert list(shape) == sorted(shape, reverse=True)
    if M < 1:
        assert n_cells == 1
    else:
        before = n_cells // max(shape) * (max(shape) - 1) if max(shape) > 1 else 0
        assert before <= M * (1 + 1e-9)
        assert n_cells >= M * (1 - 1e-9)


@noisy
def test_grid_of_the_authors():
    assert fitted(5000, 1.0, 2).grid_shape_ == (23, 22)


def test_too_many_cells_are_refused():
    """At N eps = 1e5 in ten dimensions: (1e4)^(20/12) = 4.6e6 cells."""
    with pytest.raises(ValueError, match=r"needs 4.*e\+06 cells \(.*e\+08 bytes\).*1000000"):
        fitted(10**7, 0.01, 10)
    with pytest.raises(ValueError, match="max_cells is 10"):
        fitted(10**300, 1e300, 10, max_cells=10)


@pytest.mark.parametrize(
    ("epsilon", "n_cells"), [(0.01, 5e6), (0.03, 2.916e7), (0.1, 2.42e8), (1.0, 1e10)]
)
def test_the_grid_at_the_size_of_the_compressive_paper(epsilon, n_cells):
    """For 10^7 rows in ten dimensions, as in docs/results/ckm_details.md.

    A grid just too large is refused with its number of cells.
    """
    with pytest.raises(ValueError, match="the grid needs") as error:
        fitted(10**7, epsilon, 10, max_cells=int(0.99 * n_cells))
    found = float(re.search(r"needs (\S+) cells", str(error.value))[1])
    assert found == pytest.approx(n_cells, rel=1e-3)


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 2), (1, 4, 1), (2, 3, 2, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_histogram_agrees_with_numpy(shape, dtype):
    d = len(shape)
    X = np.random.default_rng(0).uniform(-2, 5, (4000, d)).astype(dtype)
    low, high = np.linspace(-2, -1, d), np.linspace(4, 5, d)
    found = Grid(Box(low, high), shape).histogram(X)
    inside = np.clip(X.astype(np.float64), low, high)
    expected, _ = np.histogramdd(inside, bins=shape, range=list(zip(low, high, strict=True)))
    np.testing.assert_array_equal(found, expected.ravel())
    assert found.sum() == 4000


def test_corners_and_rows_outside():
    grid = Grid(box(-1.0, 1.0, 2), (2, 3))
    X = np.array([[-1, -1], [1, 1], [0, 0], [-9, 9], [1e300, -1e300]], dtype=float)
    assert grid.histogram(X).tolist() == [1, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(("shape", "k"), [((1,), 1), ((40,), 3), ((5, 4), 4), ((4, 3, 2, 15), 6)])
def test_statistics_agree_with_plain_numpy(shape, k):
    rng = np.random.default_rng(1)
    d = len(shape)
    low, high = -rng.uniform(0.5, 2, d), rng.uniform(0.5, 2, d)
    axes = [
        a + (np.arange(m) + 0.5) * (b - a) / m for a, b, m in zip(low, high, shape, strict=True)
    ]
    middles = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    counts, centers = rng.normal(size=len(middles)), rng.uniform(-1, 1, (k, d))
    squared = ((middles[:, None] - centers) ** 2).sum(axis=2)
    belongs = squared.argmin(axis=1)[:, None] == np.arange(k)
    totals, n_cells, sums, error = Grid(Box(low, high), shape).statistics(counts, centers)
    np.testing.assert_allclose(totals, counts @ belongs, atol=1e-12)
    np.testing.assert_array_equal(n_cells, belongs.sum(axis=0))
    np.testing.assert_allclose(sums, (belongs * counts[:, None]).T @ middles, atol=1e-11)
    assert error == pytest.approx(counts @ squared.min(axis=1), abs=1e-11)


def test_flat_axis_has_all_rows_in_its_first_cell():
    grid = Grid(Box(np.array([0.3, 0.0]), np.array([0.3, 1.0])), (2, 2))
    X = np.array([[0.3, 0.1], [0.3, 0.9]])
    assert grid.histogram(X).tolist() == [1, 1, 0, 0]
    _, _, sums, _ = grid.statistics(np.array([1.0, 1.0, 0.0, 0.0]), np.zeros((1, 2)))
    np.testing.assert_allclose(sums, [[0.6, 1.0]])
