"""Rounds of compressive k-means: what they release, what it costs, and what it finds."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_blobs

from privclust.core.lloyd import lloyd, nearest_center, nearest_center_statistics, plus_plus
from privclust.kmeans import CompressiveKMeans
from privclust.kmeans._projection import Projection
from privclust.kmeans.last_rounds import (
    one_round,
    pays,
    round_noise,
    round_sums,
    sensitivity,
    weights,
)
from privclust.privacy import Neighbours, NoiseWarning
from privclust.privacy.measurements import Gaussian

RELATIONS = ["replace_one", "add_remove"]
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-12, 12), "random_state": 0}


def blobs(k, d, n=6000, seed=1):
    X, labels = make_blobs(n, d, centers=k, random_state=seed)
    return X - X.mean(axis=0), labels


def fitted(X, k, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseWarning)
        return CompressiveKMeans(k, **(BUDGET | params)).fit(X)


def inertia(X, centers):
    return nearest_center_statistics(X, centers)[2] / len(X)


# --- what is released ------------------------------------------------------------------------


def test_sums_are_of_each_row_by_itself():
    """To the bit, also beside rows of 1e6: float sums would swallow the last bits of small ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 7)) * np.where(rng.random(5000) < 0.1, 1e6, 1e-3)[:, None]
    centers = rng.standard_normal((3, 7))
    labels = nearest_center(X, centers)
    whole = round_sums(X, labels, centers, 0.7).integers
    order = rng.permutation(5000)
    np.testing.assert_array_equal(round_sums(X[order], labels[order], centers, 0.7).integers, whole)
    parts = [
        round_sums(X[part], labels[part], centers, 0.7)
        for part in (slice(0, 1), slice(1, 2000), slice(2000, None))
    ]
    bits = max(part.bits for part in parts)
    np.testing.assert_array_equal(sum(part.in_bits(bits).integers for part in parts), whole)


def test_sums_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((200, 4)), rng.standard_normal((3, 4))
    labels = nearest_center(X, centers)
    u = (X - centers[labels]) / 0.8
    norms = np.linalg.norm(u, axis=1)
    u /= np.maximum(norms, 1.0)[:, None]
    told = np.column_stack([u, np.ones(200), np.minimum(norms**2 / 4.0, 1.0)])
    expected = [told[labels == c].sum(axis=0) for c in range(3)]
    np.testing.assert_allclose(round_sums(X, labels, centers, 0.8), expected, atol=1e-6)


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_has_the_deviation_that_the_price_is_for(relation):
    """Of sums, and of counts over their weight; false-alarm rate 1e-4 each."""
    X, centers = np.zeros((50, 6)), np.zeros((2, 6))
    noise = round_noise(relation, 1.0, 1e-6, 0.3)
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], 25)
    radius = np.ones(2)
    counts = [one_round(X, labels, centers, radius, noise, rng).counts - 25.0 for _ in range(500)]
    scaled = np.ravel(counts) * weights(6)[-1] / noise.sigma
    assert stats.kstest(scaled, stats.norm.cdf).pvalue > 1e-4
    assert noise.sensitivity.value == sensitivity(Neighbours.of(relation)).value


def test_where_noise_is_all_there_is_centers_stay():
    """A move of sigma r / n in each of many coordinates is what noise makes."""
    rng = np.random.default_rng(0)
    X = 0.01 * rng.standard_normal((100, 50))
    loud = Gaussian(sensitivity(Neighbours.REPLACE_ONE), 1000.0)
    quiet = Gaussian(sensitivity(Neighbours.REPLACE_ONE), 1e-6)
    labels, centers = np.zeros(100, dtype=np.int64), np.full((1, 50), 0.1)
    stayed = one_round(X, labels, centers, np.ones(1), loud, rng).centers
    assert np.abs(stayed - centers).max() < 0.2 * loud.sigma / (4 * loud.sigma)
    np.testing.assert_allclose(
        one_round(X, labels, centers, np.full(1, 10.0), quiet, rng).centers[0],
        X.mean(axis=0),
        atol=1e-6,
    )


def test_projected_rows_are_of_each_row_by_itself():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1001, 40))
    projection = Projection.drawn(np.full(40, 0.3), 8, rng)
    whole = projection.rows(X)
    np.testing.assert_allclose(whole, (X - 0.3) @ projection.basis, atol=1e-12)
    for i in (0, 7, 1000):
        assert projection.rows(X[i : i + 1]).tobytes() == whole[i].tobytes()
    np.testing.assert_allclose(projection.basis.T @ projection.basis, np.eye(8), atol=1e-12)


# --- what it costs, and what the result may depend on ----------------------------------------


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize(("d", "n_rounds"), [(3, {8}), (40, {9})])
@pytest.mark.parametrize("epsilon", [0.3, 5.0])
def test_rounds_are_within_the_budget(neighbours, d, n_rounds, epsilon):
    X, _ = blobs(4, d)
    fit = fitted(X, 4, neighbours=neighbours, epsilon=epsilon)
    assert fit.n_rounds_ in n_rounds
    assert fit.guarantee_.epsilon <= epsilon
    assert fit.guarantee_.epsilon > 0.999 * epsilon
    assert len(fit.guarantee_.releases) == 3 + fit.n_rounds_
    without = fitted(X, 4, neighbours=neighbours, epsilon=epsilon, last_round=False)
    assert without.n_rounds_ == 0
    assert without.sketch_.n_features == d
    assert without.guarantee_.epsilon == pytest.approx(fit.guarantee_.epsilon, rel=1e-6)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("d", [3, 40])
def test_output_follows_from_the_releases_alone(monkeypatch, neighbours, d):
    """Fitted to other rows, with what was released of the first: the same centers to the byte."""
    X, _ = blobs(4, d, 2000)
    other = 3.0 * blobs(3, d, 1500 if neighbours == "add_remove" else 2000, seed=5)[0]
    real, released = Gaussian.release, []

    def record(self, value, source, weight=1.0):
        released.append(real(self, value, source, weight))
        return released[-1]

    with monkeypatch.context() as patch:
        patch.setattr(Gaussian, "release", record)
        first = fitted(X, 4, neighbours=neighbours)
    left = iter(released)

    def replay(self, value, source, weight=1.0):
        real(self, value, source, weight)  # draws its noise all the same
        return next(left)

    with monkeypatch.context() as patch:
        patch.setattr(Gaussian, "release", replay)
        again = fitted(other, 4, neighbours=neighbours)
    assert next(left, None) is None
    assert first.n_rounds_ > 0
    for name in ("cluster_centers_", "weights_", "is_detected_"):
        assert getattr(again, name).tobytes() == getattr(first, name).tobytes()
    assert again.guarantee_ == first.guarantee_


@pytest.mark.parametrize("d", [3, 40])
def test_any_rows_in_any_number_give_a_result(d):
    """Where the number of rows is private and bounds are declared."""
    rng = np.random.default_rng(0)
    odd = rng.standard_normal((50, d))
    odd[0], odd[1], odd[2], odd[3] = np.nan, np.inf, -1e300, 0.0
    for X in (odd, odd[:1], odd[:0], np.zeros((30, d)), np.full((30, d), np.inf)):
        fit = fitted(X, 3, neighbours="add_remove", last_round=True)
        assert fit.n_rounds_ > 0
        assert np.isfinite(fit.cluster_centers_).all()
        assert np.abs(fit.cluster_centers_).max() <= 12.0


def test_same_seed_same_bytes():
    X, _ = blobs(5, 30)
    first, again = fitted(X, 5), fitted(X, 5)
    assert first.cluster_centers_.tobytes() == again.cluster_centers_.tobytes()
    again = fitted(np.asfortranarray(X)[::-1], 5)
    assert first.cluster_centers_.tobytes() == again.cluster_centers_.tobytes()


# --- what is found ---------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "d", "most"), [(16, 64, 1.03), (4, 128, 1.05), (10, 5, 1.02)])
def test_centers_are_near_what_no_privacy_costs(k, d, most):
    """At epsilon 1 and 20,000 rows; a sketch of all of 64 features has two to three times that."""
    X, labels = blobs(k, d, 20_000)
    best = inertia(X, np.array([X[labels == c].mean(axis=0) for c in range(k)]))
    assert inertia(X, fitted(X, k, neighbours="add_remove").cluster_centers_) < most * best


def test_data_off_the_middle_of_wide_bounds():
    X, labels = blobs(4, 40, 20_000)
    X = X + 60.0
    best = inertia(X, np.array([X[labels == c].mean(axis=0) for c in range(4)]))
    assert inertia(X, fitted(X, 4, bounds=(-100, 100)).cluster_centers_) < 1.3 * best


def test_a_round_pays_where_noise_is_small_beside_clusters():
    assert pays(10, 10, 100_000, 20.0, 0.2)
    assert not pays(10, 10, 1_000, 20.0, 0.2)


def test_rounds_of_few_rows_of_private_number_add_no_loss():
    # 150 rows: the noisy number says up to twice as many, with which rounds would seem to pay
    X, _ = blobs(3, 4, 150)
    budget = {"delta": 0.004, "neighbours": "add_remove"}
    for epsilon in (0.5, 1.0):
        losses = {}
        for last_round in ("auto", False):
            seeds = range(30)
            how = budget | {"epsilon": epsilon, "last_round": last_round}
            fits = [fitted(X, 3, **how | {"random_state": seed}) for seed in seeds]
            losses[last_round] = np.array([inertia(X, fit.cluster_centers_) for fit in fits])
        more = losses["auto"] - losses[False]
        # few fits have rounds, and what they add is within three standard errors of nothing
        assert more.mean() <= 3.0 * more.std() / math.sqrt(len(more)) + 1e-12
        assert losses["auto"].max() <= 1.1 * losses[False].max()


def test_clusters_that_only_noise_made_are_said_to_be():
    rng = np.random.default_rng(0)
    with pytest.warns(NoiseWarning):
        fit = CompressiveKMeans(5, **(BUDGET | {"epsilon": 0.01})).fit(
            rng.standard_normal((200, 40))
        )
    assert not fit.is_detected_.any()


# --- parameters ------------------------------------------------------------------------------


def test_no_round_without_normal_noise_or_a_pilot():
    X, _ = blobs(3, 20, 500)
    for params in (
        {"delta": 0.0},
        {"noise": "laplace"},
        {"variance": 5.0},
        {"decoder": "clompr"},
        {"epsilon": None},
    ):
        fit = fitted(X, 3, **params)
        assert fit.n_rounds_ == 0
        assert fit.sketch_.n_features == 20


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"last_round": "always"}, "last_round must be"),
        ({"last_round": None}, "last_round must be"),
        ({"n_directions": 6}, "n_directions must be at most the number of features"),
        ({"n_directions": 0}, "n_directions"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        fitted(blobs(3, 5, 100)[0], 3, **params)


def test_directions_can_be_chosen():
    X, _ = blobs(3, 10, 5000)
    fit = fitted(X, 3, n_directions=4)
    assert fit.sketch_.n_features == 4
    assert fit.n_rounds_ >= 2
    assert fit.cluster_centers_.shape == (3, 10)


def test_long_clusters_are_found_beside_a_round():
    """Four that cross one another: isotropic atoms cost more than 0.3 % in half of such data."""
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        places = rng.uniform(-3.0, 3.0, (4, 2))
        turns = [np.linalg.qr(rng.standard_normal((2, 2)))[0] for _ in range(4)]
        factors = np.array([turn @ np.diag([3.0, 0.3]) for turn in turns])
        labels = rng.integers(4, size=20_000)
        normal = rng.standard_normal((20_000, 2))
        X = places[labels] + np.einsum("nij,nj->ni", factors[labels], normal)
        starts = [plus_plus(X, 4, rng) for _ in range(10)]
        least = min(lloyd(X, start, 100, 1e-6)[1] for start in starts)
        model = CompressiveKMeans(4, delta=1e-6, bounds=(-20, 20), random_state=seed).fit(X)
        assert model.n_rounds_ == 8
        error = nearest_center_statistics(X, np.ascontiguousarray(model.cluster_centers_))[2]
        errors.append(error / least)
    assert np.median(errors) < 1.002
