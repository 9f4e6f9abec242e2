"""k-means on weighted points: boxes change the time of a pass and of a start, not the result."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privclust.kmeans import _weighted
from privclust.kmeans._weighted import weighted_kmeans


def drawn_points(seed, n, d):
    """Points and weights whose sums are exact: whole numbers, with many ties."""
    rng = np.random.default_rng(seed)
    points = rng.integers(-8, 9, (n, d)).astype(float)
    return points[np.lexsort(points.T)], rng.integers(1, 5, n).astype(float)


SIZES = st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 4), st.integers(1, 20)


@given(*SIZES)
@settings(max_examples=60, deadline=None)
def test_a_pass_is_that_with_all_distances(seed, n, d, k):
    points, weights = drawn_points(seed, n, d)
    centers = np.random.default_rng(seed).integers(-8, 9, (k, d)).astype(float)
    sums, masses = np.zeros((k, d)), np.zeros(k)
    loss = _weighted._assign(*_weighted._blocks(points, weights), centers, sums, masses)
    distances = ((points[:, None] - centers) ** 2).sum(axis=2)
    labels = distances.argmin(axis=1)
    assert loss == weights @ distances.min(axis=1)
    assert masses.tolist() == np.bincount(labels, weights, k).tolist()
    expected = np.zeros((k, d))
    np.add.at(expected, labels, weights[:, None] * points)
    assert (sums == expected).all()


def greedy_start(points, weights, uniform):
    """k-means++ with candidates, by all distances."""
    costs, centers = weights, []
    for number, row in enumerate(uniform):
        trials = []
        for u in row[: 1 if number == 0 else None]:
            if costs.sum() > 0.0:
                at = int(np.searchsorted(np.cumsum(costs), u * costs.sum(), side="right"))
            else:
                at = int(u * len(points))
            new = weights * ((points - points[at]) ** 2).sum(axis=1)
            trials.append((points[at], new if number == 0 else np.minimum(costs, new)))
        center, costs = min(trials, key=lambda trial: trial[1].sum())
        centers.append(center)
    return np.array(centers)


@given(*SIZES)
@settings(max_examples=60, deadline=None)
def test_a_start_is_that_with_all_distances(seed, n, d, k):
    points, weights = drawn_points(seed, n, d)
    # multiples of 2^-20 keep the products with whole sums exact
    uniform = np.random.default_rng(seed).integers(0, 2**20, (k, 4)) / 2.0**20
    centers = np.empty((k, d))
    _weighted._start(*_weighted._blocks(points, weights), uniform, centers)
    np.testing.assert_array_equal(centers, greedy_start(points, weights, uniform))


def test_more_starts_do_not_raise_the_loss():
    points, weights = drawn_points(3, 200, 2)
    losses = []
    for n_init in (1, 3, 10):
        centers = weighted_kmeans(points, weights, 12, n_init, np.random.default_rng(0))
        losses.append(weights @ ((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_more_centers_than_points():
    centers = weighted_kmeans(np.ones((2, 3)), np.ones(2), 5, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(centers, np.ones((5, 3)))
