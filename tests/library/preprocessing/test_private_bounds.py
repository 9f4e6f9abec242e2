import numpy as np
import pytest

from privclust.preprocessing import private_bounds
from privclust.preprocessing.private_bounds import _narrowed
from privclust.privacy import Budget, BudgetError, NoiseWarning
from privclust.privacy.measurements import Gaussian, Laplace

CELLS, ROUNDS = 64, 3


def columns(n, rng):
    return np.column_stack(
        [rng.uniform(18, 90, n), rng.lognormal(10, 0.5, n), rng.normal(-5, 1, n), np.zeros(n)]
    )


@pytest.fixture
def released(monkeypatch):
    """What measurements are given, in turn, and how they answer: without noise."""
    values = []
    for kind in (Gaussian, Laplace):
        monkeypatch.setattr(
            kind, "release", lambda self, value, source: values.append(value) or np.asarray(value)
        )
    return values


@pytest.mark.parametrize("delta", [0.0, 1e-7])
@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_bounds_hold_nearly_all_rows_and_are_not_much_wider(delta, neighbours):
    rng = np.random.default_rng(0)
    X = columns(100_000, rng)
    bounds = private_bounds(X, 0.5, delta, neighbours=neighbours, random_state=1)
    assert bounds.is_detected.all()
    outside = ((bounds.low > X) | (bounds.high < X)).mean(axis=0)
    # at either end a thousandth and what is within two deviations of noise in the cells below, give
    # or take as much noise again; Laplace noise is the larger
    noise = np.sqrt(2) * 2 * X.shape[1] * ROUNDS / 0.5
    assert (outside < 2 * (1e-3 + 4 * noise * np.sqrt(CELLS) / len(X))).all()
    ends = np.quantile(X[:, :3], [0.001, 0.999], axis=0)
    width = bounds.high[:3] - bounds.low[:3]
    assert (width < (1.5 + 4 / CELLS) * (ends[1] - ends[0])).all()  # a quarter, and cells, each
    assert bounds.low[3] <= 0.0 < bounds.high[3]
    assert bounds.guarantee.epsilon == pytest.approx(0.5, rel=1e-6)


def test_bounds_that_would_meet_stay_as_they_were():
    """Each end needs the rows of both cells in the middle: nothing would be left between them."""
    counts = np.zeros((2, CELLS))
    counts[:, CELLS // 2 - 1 : CELLS // 2 + 1] = [[80.0, 80.0], [800.0, 800.0]]
    low, high = _narrowed(np.zeros(2), np.full(2, 64.0), counts, deviation=10.0)
    assert (low[0], high[0]) == (0.0, 64.0)  # 2 deviations in 32 cells are 113
    assert 30.0 < low[1] <= 31.0 < 33.0 <= high[1] < 34.0


def test_outliers_move_nothing():
    X = columns(50_000, np.random.default_rng(0))
    far = X.copy()
    far[:40] = [1e12, np.inf, -np.inf, np.nan]
    calm, moved = (private_bounds(Y, 1.0, 1e-7, random_state=2) for Y in (X, far))
    np.testing.assert_allclose(moved.low, calm.low, rtol=0.1)
    np.testing.assert_allclose(moved.high, calm.high, rtol=0.1)


def test_what_noise_hides_is_said():
    X = columns(50, np.random.default_rng(0))
    with pytest.warns(NoiseWarning, match="columns 0, 1, 2, 3"):
        bounds = private_bounds(X, 0.1, 1e-7, random_state=0)
    assert not bounds.is_detected.any()
    assert np.isnan(bounds.low).all()


def test_bounds_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    X = columns(20_000, rng)
    shuffled = X[rng.permutation(len(X))]
    first, second = (private_bounds(Y, 1.0, 1e-7, random_state=3) for Y in (X, shuffled))
    np.testing.assert_array_equal(first.low, second.low)
    np.testing.assert_array_equal(first.high, second.high)


def neighbour(X, groups, rng):
    """Return rows of which those of one group, or one row, are others."""
    Y = X.copy()
    rows = slice(0, 1) if groups is None else groups == groups[0]
    kinds = [0.0, 1e300, -1e-300, np.nan, np.inf, -np.inf, 55.0, 1e4, -5.0]
    Y[rows] = rng.choice(kinds, size=Y[rows].shape)
    return Y


@pytest.mark.attack(
    claim="what a row or a group adds to private bounds' histograms is within the sensitivity",
    before="new",
    now="exact sums in integers, searched over odd rows and groups of up to 1,000 rows",
)
@pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")
@pytest.mark.parametrize("size", [None, 1, 3, 7, 1000])
@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_a_neighbour_moves_sums_by_no_more_than_is_stated(size, delta, released):
    rng = np.random.default_rng(0)
    X = columns(3000, rng)
    groups = None if size is None else np.arange(3000) // size
    for _ in range(10):
        released.clear()
        bounds = [
            private_bounds(Y, 1.0, delta, groups=groups, random_state=0)
            for Y in (X, neighbour(X, groups, rng))
        ]
        assert len(released) == 2 * ROUNDS
        for mine, others in zip(released[:ROUNDS], released[ROUNDS:], strict=True):
            if mine is not released[0] and not np.array_equal(
                *(b.low for b in bounds), equal_nan=True
            ):
                break  # later rounds are about what was released before
            moved = (mine.integers - others.integers).ravel()
            d = X.shape[1]
            if delta:
                assert sum(int(v) ** 2 for v in moved) <= 2 * d * 2**60
            else:
                assert sum(abs(int(v)) for v in moved) <= 2 * d * 2**30
        assert released[0].shape == (X.shape[1], 2 * 128 + 1)
        assert released[1].shape == (X.shape[1], CELLS)


@pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")
def test_a_group_counts_as_one_record(released):
    X = np.repeat(np.array([[1.5], [100.0]]), [1, 999], axis=0)
    groups = np.repeat([0, 1], [1, 999])
    bounds = private_bounds(X, 1.0, groups=groups, random_state=0)
    sums = np.asarray(released[0])
    assert sums.sum() == pytest.approx(2.0, abs=1e-6)
    assert sums.sum() <= 2.0
    assert bounds.guarantee.unit == "group"


def test_a_ledger_is_drawn_on_before_anything_is_released(released):
    with Budget(epsilon=0.5), pytest.raises(BudgetError):
        private_bounds(np.ones((10, 1)), 1.0, random_state=0)
    assert not released


@pytest.mark.parametrize(
    ("X", "how", "message"),
    [
        (np.array([["a"]]), {}, "X holds text, not numbers"),
        ([1.0], {}, "X must hold numbers"),
        ([[1.0]], {"epsilon": 0.0}, "epsilon"),
        ([[1.0]], {"delta": 1.0}, "delta"),
        ([[1.0]], {"neighbours": "some"}, "neighbours"),
        ([[1.0]], {"groups": [1, 2]}, "groups"),
    ],
)
def test_bad_arguments(X, how, message):
    with pytest.raises(ValueError, match=message):
        private_bounds(X, **{"epsilon": 1.0, "random_state": 0, **how})
