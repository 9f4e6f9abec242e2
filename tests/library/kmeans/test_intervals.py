"""Standard errors of centers: of tight clusters, of few reliable ones, at any scale."""

import numpy as np
import pytest

from privclust.core.lloyd import nearest_center
from privclust.decoding import decode, standard_errors
from privclust.kmeans import CompressiveKMeans, TreeKMeans
from privclust.sketches import Sketch, draw_frequencies, release

FEWEST = 3 / 8


def arcs(rng, n, k):
    labels, angles = rng.integers(k, size=n), rng.uniform(0.0, np.pi, n)
    bent = 0.2 * np.column_stack([np.cos(angles), np.sin(angles)])
    return rng.uniform(-0.7, 0.7, (k, 2))[labels] + bent + 0.01 * rng.standard_normal((n, 2))


def blobs(rng, n, k):
    return rng.uniform(-0.8, 0.8, (k, 2))[rng.integers(k, size=n)] + rng.normal(0, 0.05, (n, 2))


def of_rounds(X, k, seed):
    model = CompressiveKMeans(k, epsilon=2.0, delta=1e-6, bounds=(-1, 1), random_state=seed).fit(X)
    return model.standard_errors(random_state=seed)


def of_tree(X, k, seed):
    model = TreeKMeans(k, epsilon=2.0, delta=1e-6, bounds=(-1, 1), random_state=seed).fit(X)
    return model.standard_errors()


def of_sketch(X, k, seed):
    drawn = draw_frequencies(2, 100, variance=0.02, random_state=seed)
    sketch = release(Sketch.of(X, drawn), 2.0, 1e-6, random_state=seed)
    return standard_errors(sketch, decode(sketch, k, random_state=seed), random_state=seed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("errors_of", [of_rounds, of_tree, of_sketch])
def test_errors_of_no_cluster_are_reliable_if_those_of_few_are(errors_of):
    shares = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.clip((arcs, blobs)[seed % 2](rng, 5_000, 10), -1.0, 1.0)
        shares.append(errors_of(X, 10, seed).is_reliable.mean())
    assert not [share for share in shares if 0.0 < share < FEWEST]
    assert max(shares) >= FEWEST


def test_errors_of_tight_clusters_are_not_those_of_wide_ones():
    """The root mean square of 400 ratios is 1 for right errors, and hardly leaves the limits."""
    places = np.random.default_rng(0).uniform(-0.7, 0.7, (8, 5))
    widths, ratios = 0.05 * np.geomspace(0.3, 3.0, 8), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        labels = rng.integers(8, size=20_000)
        X = places[labels] + widths[labels, None] * rng.standard_normal((20_000, 5))
        model = CompressiveKMeans(8, epsilon=4.0, delta=1e-6, bounds=(-1, 1), random_state=seed)
        errors = model.fit(np.clip(X, -1.0, 1.0)).standard_errors(random_state=seed)
        assert errors.is_reliable.all()
        offsets = model.cluster_centers_ - places[nearest_center(model.cluster_centers_, places)]
        ratios.append(offsets / errors.centers)
    assert 0.75 < np.sqrt(np.mean(np.square(ratios))) < 1.25


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("c", [1e-15, 1e-3, 1e3, 1e90])
def test_errors_scale_with_data_and_bounds(c):
    X = np.clip(blobs(np.random.default_rng(0), 5_000, 3), -1.0, 1.0)
    plain, scaled = (
        CompressiveKMeans(3, epsilon=2.0, delta=1e-6, bounds=(-b, b), random_state=0)
        .fit(b * X)
        .standard_errors(random_state=0)
        for b in (1.0, c)
    )
    np.testing.assert_allclose(scaled.centers / c, plain.centers, rtol=1e-3)
    np.testing.assert_array_equal(scaled.is_reliable, plain.is_reliable)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epsilon", [0.05, 1e6])
@pytest.mark.parametrize("k", [1, 3])
def test_errors_of_clusters_without_extent_are_numbers(k, epsilon):
    X = np.zeros((2_000, 2))
    model = CompressiveKMeans(k, epsilon=epsilon, delta=1e-6, bounds=(-1, 1), random_state=0).fit(X)
    assert np.isfinite(model.standard_errors(random_state=0).covariances).all()
