"""How many clusters a sketch tells of: how often it is right, and what noise hides."""

import warnings

import numpy as np
import pytest

from privclust.decoding import count_clusters, decode
from privclust.kmeans import CompressiveKMeans
from privclust.privacy import NoiseWarning
from privclust.sketches import Sketch, draw_frequencies, release


def mixture(k, d, n, seed, apart=8.0):
    """Equal normal clusters on the axes, in random order, at least `apart` from one another."""
    rng = np.random.default_rng(seed)
    centers = np.eye(d)[rng.permutation(d)[np.arange(k) % d]]
    centers = centers * apart * (1 + np.arange(k) // d)[:, None]
    centers *= np.where(np.arange(k) % 2, -1.0, 1.0)[:, None]
    return centers[rng.integers(k, size=n)] + rng.standard_normal((n, d))


def fitted(X, **params):
    how = {"delta": 1e-6, "bounds": (-40, 40), "random_state": 0, **params}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseWarning)
        return CompressiveKMeans("auto", **how).fit(X)


@pytest.mark.parametrize(
    ("k", "d", "n"),
    [(1, 4, 5000), (3, 4, 5000), pytest.param(8, 8, 20_000, marks=pytest.mark.system)],
)
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_the_number_is_right_of_clusters_that_are_apart(k, d, n, epsilon):
    """Five mixtures each, of which one may be wrong, but not that with the default range."""
    ranges = [{}, *[{"max_clusters": k + 4}] * 4]
    chosen = [
        fitted(mixture(k, d, n, seed), epsilon=epsilon, random_state=seed, **searched)
        for seed, searched in enumerate(ranges)
    ]
    assert chosen[0].n_clusters_ == k
    assert sum(fit.n_clusters_ == k for fit in chosen) >= 4
    for fit in chosen:
        assert fit.cluster_centers_.shape == (fit.n_clusters_, d)
        assert fit.guarantee_.epsilon <= epsilon


@pytest.mark.parametrize("seed", range(5))
def test_without_noise_and_of_one_point(seed):
    X = mixture(4, 3, 4000, seed)
    assert CompressiveKMeans("auto", epsilon=None, random_state=seed).fit(X).n_clusters_ == 4
    fit = CompressiveKMeans("auto", epsilon=None, max_clusters=3, random_state=seed)
    assert fit.fit(np.ones((30, 2))).n_clusters_ == 1


def test_it_costs_nothing():
    X = mixture(3, 4, 5000, 0)
    auto = fitted(X, epsilon=1.0, max_clusters=6)
    given = CompressiveKMeans(6, delta=1e-6, bounds=(-40, 40), random_state=0).fit(X)
    assert auto.guarantee_ == given.guarantee_
    assert auto.sketch_.sums.tobytes() == given.sketch_.sums.tobytes()
    assert given.n_clusters_ == 6
    assert given.cluster_count_ is None


def test_scores_are_least_at_the_number():
    X = mixture(3, 4, 5000, 0)
    sketch = Sketch.of(X, draw_frequencies(4, 600, variance=4.0, random_state=0))
    private = release(sketch, 1.0, 1e-6, random_state=0)
    count = count_clusters(private, 6, bounds=(-40, 40), random_state=0)
    assert count.n_clusters == 3
    assert count.scores.shape == (6,)
    assert count.scores.argmin() == 2
    assert count.scores.min() == 0.0
    again = count_clusters(private, 6, bounds=(-40, 40), random_state=0)
    assert again.scores.tobytes() == count.scores.tobytes()


def test_clusters_below_the_least_weight_are_not_seen_and_those_well_above_are():
    """A cluster of 3,000 rows, and one of half or of twice the least weight."""
    rng = np.random.default_rng(0)
    frequencies = draw_frequencies(2, 500, variance=20.0, random_state=0)
    large = rng.standard_normal((3000, 2))
    alone = release(Sketch.of(large, frequencies), 0.3, 1e-6, random_state=0)
    least = count_clusters(alone, 5, bounds=(-20, 20), random_state=0).least_weight
    for part, expected in ((0.5, 1), (2.0, 2)):
        n_small = int(3000 * part * least / (1.0 - part * least))
        X = np.vstack([large, rng.standard_normal((n_small, 2)) + 10.0])
        right = 0
        for seed in range(5):
            private = release(Sketch.of(X, frequencies), 0.3, 1e-6, random_state=seed)
            count = count_clusters(private, 5, bounds=(-20, 20), random_state=seed)
            right += count.n_clusters == expected
        assert right >= 4


def test_what_noise_hides_is_said():
    X = mixture(2, 3, 500, 0)
    with pytest.warns(NoiseWarning, match="noise hides more than"):
        CompressiveKMeans("auto", epsilon=0.3, delta=1e-6, bounds=(-40, 40), random_state=0).fit(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_clusters": "all"}, "n_clusters must be"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"max_clusters": 0}, "max_clusters must be"),
    ],
)
def test_bad_parameters(params, message):
    model = CompressiveKMeans("auto", bounds=(-40, 40), random_state=0).set_params(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(mixture(2, 3, 100, 0))


def test_bad_arguments():
    with pytest.raises(ValueError, match="sketch must be a Sketch"):
        count_clusters(np.ones(3))
    sketch = Sketch.of(np.ones((4, 2)), draw_frequencies(2, 10, random_state=0))
    with pytest.raises(ValueError, match="max_clusters"):
        count_clusters(sketch, 0)
    assert decode(sketch, count_clusters(sketch, 2).n_clusters).centers.shape == (1, 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("grouped", [False, True])
def test_long_and_flat_clusters_are_not_taken_for_several(seed, grouped):
    """As of columns that are scaled by their bounds, and of categories, in which clusters are flat.

    Round Gaussians alone took several for each; so did a search about the pilot's moments alone.
    """
    rng = np.random.default_rng(seed)
    person = rng.integers(0, 6000, 12_000)
    is_second = (rng.random(6000) < 0.4)[person]
    middles = np.array([[0.3, 0.45, 0.11, 0.0, 0.7], [0.62, 0.15, 0.66, 0.7, 0.0]])
    widths = [0.045, 0.03, 0.02, 0.0, 0.0]
    X = middles[is_second.astype(int)] + rng.standard_normal((12_000, 5)) * widths
    params = {"epsilon": 2.0, "delta": 1e-6, "bounds": (0, 1), "random_state": seed}
    if seed != 1:  # with the default range once each
        params["max_clusters"] = 6
    fit = CompressiveKMeans("auto", **params).fit(X, groups=person if grouped else None)
    assert fit.n_clusters_ == 2
    centers = fit.cluster_centers_[np.argsort(fit.cluster_centers_[:, 0])]
    assert np.abs(centers - middles).max() < 0.02
