import numpy as np
import pytest

from privclust.core.fixed_point import EXACT_ROWS, SUM_BITS, unit_margin
from privclust.core.lloyd import (
    BLOCK,
    inertia,
    nearest_center,
    nearest_center_statistics,
    nearest_center_sums,
)


def plain(X, centers):
    """The same by NumPy, with all distances at once."""
    squared = ((X[:, None] - centers[None]) ** 2).sum(axis=2)
    labels = squared.argmin(axis=1)
    belongs = labels[:, None] == np.arange(len(centers))
    return labels, belongs.sum(axis=0), belongs.T @ X, squared.min(axis=1).sum()


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, 5 * BLOCK + 3])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 5), (10, 3), (7, 40)])
def test_agrees_with_plain_numpy(n, d, k):
    rng = np.random.default_rng(n + d)
    X, centers = rng.standard_normal((n, d)), rng.standard_normal((k, d))
    labels, counts, sums, least = plain(X, centers)
    found = nearest_center_statistics(X, centers)
    np.testing.assert_array_equal(nearest_center(X, centers), labels)
    np.testing.assert_array_equal(found[0], counts)
    np.testing.assert_allclose(found[1], sums, rtol=0, atol=1e-12 * n)
    assert found[2] == pytest.approx(least, rel=1e-12)
    assert inertia(X, centers) == found[2]


def test_ties_go_to_the_first_center():
    X = np.zeros((3 * BLOCK, 2))
    centers = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, -1.0]])
    assert set(nearest_center(X, centers)) == {1}
    assert nearest_center_statistics(X, centers)[0].tolist() == [0.0, 3.0 * BLOCK, 0.0, 0.0]


def test_samples_are_summed_up_in_their_order():
    """Sums are those of a plain loop to the last bit, so no vectorisation reorders them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 2)) * 10.0 ** rng.integers(-8, 8, (1000, 1))
    center = np.zeros((1, 2))
    total, least = np.zeros(2), 0.0
    for row in X:
        total += row
        least += row[0] ** 2 + row[1] ** 2
    _, sums, found = nearest_center_statistics(X, center)
    np.testing.assert_array_equal(sums[0], total)
    assert found == pytest.approx(least, rel=1e-15)  # squares may be fused with additions


def test_far_samples_belong_to_the_nearest_center():
    X = np.array([[1e100, 0.0], [-1e100, 0.0], [0.0, 1e100]])
    centers = np.array([[-1e99, 0.0], [1e99, 0.0], [0.0, 1e99]])
    assert nearest_center(X, centers).tolist() == [1, 0, 2]
    counts, sums, least = nearest_center_statistics(X, centers)
    assert counts.tolist() == [1.0, 1.0, 1.0]
    assert np.isfinite(sums).all()
    assert least == pytest.approx(3 * 0.81e200)


def test_order_in_memory_changes_nothing():
    rng = np.random.default_rng(1)
    X, centers = rng.standard_normal((300, 4)), rng.standard_normal((3, 4))
    expected = nearest_center_statistics(X, centers)
    found = nearest_center_statistics(np.asfortranarray(X), np.asfortranarray(centers))
    strided = nearest_center_statistics(np.repeat(X, 2, axis=0)[::2], centers)
    for a, b, c in zip(expected, found, strided, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_single_precision_is_computed_in_double():
    """As if the samples had been converted, to the last bit."""
    rng = np.random.default_rng(2)
    X, centers = rng.standard_normal((500, 4)).astype(np.float32), rng.standard_normal((3, 4))
    expected = nearest_center_statistics(X.astype(np.float64), centers)
    for a, b in zip(expected, nearest_center_statistics(X, centers), strict=True):
        np.testing.assert_array_equal(a, b)
    wide = nearest_center(X.astype(np.float64), centers)
    np.testing.assert_array_equal(nearest_center(X, centers), wide)


@pytest.mark.parametrize("function", [nearest_center, nearest_center_statistics])
def test_numbers_of_features_must_agree(function):
    with pytest.raises(ValueError, match=r"centers must have 3 features.*got shape \(2, 2\)"):
        function(np.zeros((4, 3)), np.zeros((2, 2)))


# --- exact sums ----------------------------------------------------------------------------------


def integers(X, centers, offset, scale):
    """Counts and sums side by side, in units of 2^-30."""
    counts, sums = nearest_center_sums(X, centers, offset, scale)
    assert counts.bits == sums.bits == SUM_BITS
    return np.hstack([counts.integers[:, None], sums.integers])


def some_rows(n, d=3, k=4, dtype=np.float64):
    """Rows of many magnitudes, some outside the units' range, with centers, offset and scale."""
    rng = np.random.default_rng(n + d)
    X = 5.0 + rng.standard_normal((n, d)) * 2.0 ** rng.integers(-20, 3, (n, 1))
    return X.astype(dtype), 5.0 + rng.standard_normal((k, d)), np.full(d, 5.0), np.full(d, 0.3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exact_sums_are_those_of_whole_numbers(dtype):
    X, centers, offset, scale = some_rows(1000, dtype=dtype)
    units = np.clip((X.astype(np.float64) - offset) * scale, -1.0, 1.0)
    expected = np.zeros((4, 4), dtype=object)
    for label, row in zip(nearest_center(X, centers), units, strict=True):
        expected[label] += [2**30, *(int(np.rint(u * 2**30)) for u in row)]
    assert integers(X, centers, offset, scale).tolist() == expected.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77])
@pytest.mark.parametrize("d", [1, 2, 7, 16])
def test_one_more_row_changes_exact_sums_by_that_row_alone(n, d):
    X, centers, offset, scale = some_rows(n, d)
    whole = integers(X, centers, offset, scale)
    for row in {0, n // 2, n - 1}:
        alone = integers(X[row : row + 1], centers, offset, scale)
        others = integers(np.delete(X, row, axis=0), centers, offset, scale)
        np.testing.assert_array_equal(whole, others + alone)


def test_order_layout_and_chunks_change_no_bit_of_exact_sums():
    X, centers, offset, scale = some_rows(3001)
    whole = integers(X, centers, offset, scale)
    shuffled = np.random.default_rng(0).permutation(X)
    np.testing.assert_array_equal(integers(shuffled, centers, offset, scale), whole)
    np.testing.assert_array_equal(integers(np.asfortranarray(X), centers, offset, scale), whole)
    parts = [integers(chunk, centers, offset, scale) for chunk in np.array_split(X, 7)]
    np.testing.assert_array_equal(sum(parts), whole)


def test_exact_sums_of_more_rows_than_doubles_add_up():
    """Blocks of so many rows, one of them full of equal entries, come to one whole number."""
    n = EXACT_ROWS + 3
    X = np.full((n, 1), np.float32(1.0) - np.float32(2.0**-24))
    found = integers(X, np.zeros((1, 1)), np.zeros(1), np.ones(1))
    term = round((1.0 - 2.0**-24) * 2**30)
    assert found.tolist() == [[n * 2**30, n * term]]


def test_no_rows_and_rows_that_are_no_numbers():
    centers, offset, scale = np.zeros((2, 2)), np.zeros(2), np.ones(2)
    assert not integers(np.empty((0, 2)), centers, offset, scale).any()
    X = np.array([[np.nan, 0.5], [np.inf, -np.inf], [1e300, -1e300]])
    found = integers(X, centers, offset, scale)
    assert found[0].tolist() == [3 * 2**30, 2 * 2**30, 2**29 - 2 * 2**30]


@pytest.mark.parametrize("d", [1, 2, 3, 10, 100])
def test_rows_at_the_border_of_the_ball_have_at_most_norm_1(d):
    """In whole numbers, for directions in which rounding adds most."""
    rng = np.random.default_rng(d)
    directions = rng.standard_normal((2000, d))
    directions[:500] = rng.choice([-1.0, 1.0], (500, d))
    directions[500:700] = np.eye(d)[rng.integers(d, size=200)]
    X = directions / np.sqrt((directions**2).sum(axis=1))[:, None] * (0.7 * (1.0 + 1e-12))
    scale = np.full(d, 1.0 / (0.7 * unit_margin(d, SUM_BITS)))
    for row in X:
        found = integers(row[None], np.zeros((1, d)), np.zeros(d), scale)[0]
        assert sum(int(entry) ** 2 for entry in found[1:]) <= 2**60
