import numpy as np
import pytest

from privclust.core.lloyd import BLOCK, nearest_center, nearest_center_statistics


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
    labels, counts, sums, inertia = plain(X, centers)
    found = nearest_center_statistics(X, centers)
    np.testing.assert_array_equal(nearest_center(X, centers), labels)
    np.testing.assert_array_equal(found[0], counts)
    np.testing.assert_allclose(found[1], sums, rtol=0, atol=1e-12 * n)
    assert found[2] == pytest.approx(inertia, rel=1e-12)


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
    total, inertia = np.zeros(2), 0.0
    for row in X:
        total += row
        inertia += row[0] ** 2 + row[1] ** 2
    _, sums, found = nearest_center_statistics(X, center)
    np.testing.assert_array_equal(sums[0], total)
    assert found == pytest.approx(inertia, rel=1e-15)  # squares may be fused with additions


def test_far_samples_belong_to_the_nearest_center():
    X = np.array([[1e100, 0.0], [-1e100, 0.0], [0.0, 1e100]])
    centers = np.array([[-1e99, 0.0], [1e99, 0.0], [0.0, 1e99]])
    assert nearest_center(X, centers).tolist() == [1, 0, 2]
    counts, sums, inertia = nearest_center_statistics(X, centers)
    assert counts.tolist() == [1.0, 1.0, 1.0]
    assert np.isfinite(sums).all()
    assert inertia == pytest.approx(3 * 0.81e200)


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
