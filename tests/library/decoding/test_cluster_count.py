"""How many clusters a sketch tells of: how often it is right, and what noise hides."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privclust.decoding import count_clusters, decode
from privclust.decoding._cluster_count import deepest_valley
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


def test_clusters_are_seen_from_the_least_weight_on():
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
    with pytest.warns(NoiseWarning, match="can be distinguished at this budget"):
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


NULLS = {
    "uniform": lambda rng: rng.uniform(-20, 20, (10_000, 2)),
    "uniform in 5 dimensions": lambda rng: rng.uniform(-20, 20, (10_000, 5)),
    "round": lambda rng: rng.normal(0, 5, (10_000, 2)),
    "two scales": lambda rng: rng.normal(0, 1, (10_000, 2)) * [8.0, 0.5],
    "long tails": lambda rng: rng.exponential(4.0, (10_000, 2)),
    "two scales and a long tail": lambda rng: np.column_stack(
        [rng.normal(0, 0.05, 10_000), rng.lognormal(1.0, 0.6, 10_000)]
    ),
    "heavy tails": lambda rng: 3.0 * rng.standard_t(3, (10_000, 2)),
}


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("law", NULLS)
def test_no_clusters_where_there_are_none(law, epsilon):
    fit = fitted(NULLS[law](np.random.default_rng(7)), epsilon=epsilon)
    assert fit.n_clusters_ == 1
    assert fit.cluster_count_.none_separate()


@pytest.mark.parametrize(("apart", "expected"), [(3.0, 1), (4.2, 2)])
def test_a_valley_decides_between_one_and_two(apart, expected):
    rng = np.random.default_rng(3)
    X = apart * rng.integers(2, size=(20_000, 1)) + rng.standard_normal((20_000, 1))
    fit = fitted(X, epsilon=2.0)
    assert fit.cluster_count_.scores.argmin() == 1
    assert fit.n_clusters_ == expected


def of_two(apart, ratio=1.0, d=3):
    """Weights, centers and covariances of two components `apart` along the first axis."""
    centers = np.zeros((2, d))
    centers[1, 0] = apart
    return np.array([1.0, ratio]) / (1.0 + ratio), centers, np.broadcast_to(np.eye(d), (2, d, d))


@pytest.mark.parametrize("apart", [0.5, 2.0, 4.0, 8.0])
def test_the_valley_of_two_equal_components_is_known(apart):
    middle = 2.0 * np.exp(-(apart**2) / 8.0) / (1.0 + np.exp(-(apart**2) / 2.0))
    found = deepest_valley(*of_two(apart))
    assert found == pytest.approx(min(middle, 1.0), rel=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_atoms=st.integers(2, 6),
    d=st.integers(1, 4),
    scale=st.floats(1e-6, 1e6),
)
def test_valleys_do_not_depend_on_units_order_or_axes(seed, n_atoms, d, scale):
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_atoms, d, d)) + 2.0 * np.eye(d)
    covariances = factors @ factors.transpose(0, 2, 1)
    weights, centers = rng.dirichlet(np.ones(n_atoms)), 3.0 * rng.standard_normal((n_atoms, d))
    valley = deepest_valley(weights, centers, covariances)
    assert 0.0 <= valley <= 1.0
    turn, order = np.linalg.qr(rng.standard_normal((d, d)))[0] * scale, rng.permutation(n_atoms)
    moved = centers[order] @ turn.T + scale, turn @ covariances[order] @ turn.T
    assert deepest_valley(weights[order], *moved) == pytest.approx(valley, rel=1e-6, abs=1e-12)


def test_a_chain_of_components_connects_its_ends():
    steps = np.arange(9.0)[:, None]
    chain = np.full(9, 1 / 9), 1.5 * steps, np.ones((9, 1, 1))
    assert deepest_valley(*chain) > 0.9
    broken = np.full(8, 1 / 8), 1.5 * np.delete(steps, [4], axis=0) * [1.5], np.ones((8, 1, 1))
    assert deepest_valley(*broken) < 0.5


def test_thin_components_count_as_wide_as_is_resolved():
    weights, centers, covariances = of_two(1.0)
    thin = covariances * [[1e-12, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert deepest_valley(weights, centers, thin) == pytest.approx(0.0, abs=1e-12)
    assert deepest_valley(weights, centers, thin, least=1.0) == 1.0


def test_nothing_is_said_of_clusters_that_noise_hides():
    """Two clusters of 30 rows: their valley is not seen, and so is not denied."""
    X = np.random.default_rng(0).standard_normal((60, 1)) + np.repeat([[-9.0], [9.0]], 30, axis=0)
    count = fitted(X, epsilon=0.5).cluster_count_
    assert count.n_clusters == 1
    assert count.hidden()
    assert not count.none_separate()
    one = fitted(X, epsilon=5.0, max_clusters=1).cluster_count_
    assert not one.none_separate()


@pytest.mark.parametrize("width", [0.0, 1e-200])
def test_valleys_of_components_without_width(width):
    apart = np.full(2, 0.5), np.array([[0.0], [1e100]]), np.full((2, 1, 1), width)
    assert deepest_valley(*apart) == 0.0
    assert deepest_valley(np.full(2, 0.5), np.zeros((2, 1)), apart[2]) == 1.0
    assert deepest_valley(np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2, 2))) == 1.0
