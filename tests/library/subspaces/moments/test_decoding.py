"""What explains moments: objective, likelihood, information, decoder, last round, estimator."""

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.pipeline import make_pipeline

from privclust.core.grassmann import random_bases
from privclust.metrics import wasserstein_distance
from privclust.preprocessing import AppendOne
from privclust.privacy import Budget, NoiseWarning, PrivacyLeakWarning
from privclust.privacy.bounds import directions
from privclust.sketches import MomentSketch
from privclust.subspaces import MomentSubspaceClustering, choose_sizes, decode
from privclust.subspaces.moments._features import (
    factor_features,
    feature_derivatives,
    row_features,
)
from privclust.subspaces.moments._information import tangent_information
from privclust.subspaces.moments._likelihood import Likelihood
from privclust.subspaces.moments._objective import MomentObjective
from privclust.subspaces.moments.union import Union, even_ratio
from privclust.synthetic.subspaces import subspace_mixture

hidden = pytest.mark.filterwarnings("ignore::privclust.privacy.NoiseWarning")
SHAPE = D, K, Q = 6, 3, 2


def random_union(is_even, seed=0):
    rng = np.random.default_rng(seed)
    spreads = np.ones((K, Q)) if is_even else np.array([[1.3, 0.7], [1.0, 1.0], [1.6, 0.4]])
    return Union(random_bases(K, D, Q, rng), spreads, np.array([0.2, 0.15, 0.1]), {4: -0.6})


def random_means(seed=0):
    """Means of the features of few rows, which no union explains."""
    rows = directions(np.random.default_rng(seed).standard_normal((5, D)))
    return {degree: row_features(rows, degree).mean(axis=1) for degree in (2, 4)}


@pytest.mark.parametrize("is_even", [True, False])
def test_gradients_of_the_objective_are_differences(is_even):
    objective = MomentObjective(random_means(), {2: 0.5, 4: 0.7}, *SHAPE, is_even=is_even)
    points = objective.random_starts(3, np.random.default_rng(1))
    _, gradients = objective(points)
    for i in range(points.shape[1]):
        step = np.zeros(points.shape[1])
        step[i] = 1e-6
        difference = (objective(points + step)[0] - objective(points - step)[0]) / 2e-6
        assert difference == pytest.approx(gradients[:, i], abs=1e-7)


@pytest.mark.parametrize("is_even", [True, False])
def test_the_objective_is_that_of_whole_features(is_even):
    means, deviations = random_means(), {2: 0.5, 4: 0.7}
    objective = MomentObjective(means, deviations, *SHAPE, is_even=is_even)
    likelihood = Likelihood(means, deviations, 1.0)
    points = objective.random_starts(4, np.random.default_rng(1))
    costs = objective(points)[0] / objective.scale
    wanted = [likelihood.cost(objective.union(point)) for point in points]
    assert costs == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("degree", [2, 4, 6])
def test_features_of_a_line_are_those_of_its_rows(degree):
    rows = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))[0]
    of_lines = [factor_features(np.outer(row, row), degree) for row in rows]
    assert pytest.approx(row_features(rows, degree), abs=1e-14) == np.array(of_lines).T
    factor, move = rows[:, :2] @ rows[:, :2].T, np.diag([1.0, -2.0, 0.5, 0.0])
    steps = [factor_features(factor + t * move, degree) for t in (1e-5, -1e-5)]
    wanted = (steps[0] - steps[1]) / 2e-5
    assert feature_derivatives(factor, move[None], degree)[:, 0] == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("is_even", [True, False])
def test_information_in_closed_form_is_that_of_derivatives(is_even):
    union, deviations = random_union(is_even), {2: 0.01, 4: 0.02}
    likelihood = Likelihood(random_means(), deviations, 1000.0)
    complements = union.complements
    wanted = np.linalg.inv(likelihood.errors(union, complements)[0])
    got = tangent_information(union, complements, deviations)
    assert got == pytest.approx(wanted, abs=1e-9 * np.abs(wanted).max())


def test_the_covariance_of_features_is_that_of_drawn_rows():
    union, rng = random_union(is_even=True), np.random.default_rng(3)
    likelihood = Likelihood(random_means(), {2: 1e-6, 4: 1e-6}, 1000.0)
    likelihood.whiten(union, np.random.default_rng(3))
    rows = union.draw(4000, rng)
    features = np.concatenate([row_features(rows, degree) for degree in (2, 4)])
    wanted = np.cov(features, bias=True) / 1000.0 + 1e-12 * np.eye(len(features))
    got = likelihood._triangle @ likelihood._triangle.T
    assert got == pytest.approx(wanted, abs=1e-12 * np.abs(wanted).max())


def test_rows_of_a_line_hardly_without_noise(noisy):
    """Their features vary along few directions, so nothing may be lost by cancellation."""
    rng = np.random.default_rng(0)
    line = np.array([0.1, 0.7, -0.5, 0.5])
    rows = rng.choice([-1.0, 1.0], size=(20_000, 1)) * line
    found = decode(noisy(MomentSketch.of(rows), 1e11), 1, 1)
    assert abs(found.subspaces[0, :, 0] @ line) > 1.0 - 1e-6


def test_spreads_within_subspaces_are_refined():
    """From even spreads to those that the features are of, as if there were hardly any noise."""
    union = random_union(is_even=False)
    ratios = {2: 1.0, 4: math.exp(union.log_ratios[4])}
    means = {
        degree: sum(
            amplitude * ratio * factor_features(factor, degree)
            for amplitude, factor in zip(union.amplitudes, union.factors, strict=True)
        )
        for degree, ratio in ratios.items()
    }
    likelihood = Likelihood(means, {2: 1e-4, 4: 1e-4}, 1000.0, is_even=False)
    even = replace(union, spreads=np.ones((K, Q)))
    found, cost = likelihood.fit(even)
    assert cost < 1e-3 * likelihood.cost(even)
    assert np.sort(found.spreads) == pytest.approx(np.sort(union.spreads), abs=0.01)
    assert found.factors == pytest.approx(union.factors, abs=0.01)


@pytest.mark.parametrize("part", [0.0, 0.05, 0.2])
def test_the_part_beside_a_subspace_is_told_by_fourth_moments(part):
    """The amplitudes of such rows do not vary; the part is looked for in steps of 0.003."""
    rng = np.random.default_rng(4)
    frame = np.linalg.qr(rng.standard_normal((D, D)))[0]
    within, off = (directions(rng.standard_normal((40_000, size))) for size in (Q, D - Q))
    rows = np.hstack([math.sqrt(1.0 - part) * within, math.sqrt(part) * off]) @ frame.T
    plane = frame[:, :Q]
    amplitudes = []
    for degree in (2, 4):
        unit = factor_features(plane @ plane.T, degree)
        amplitudes.append(unit @ row_features(rows, degree).mean(axis=1) / (unit @ unit))
    ratio = {4: math.log(amplitudes[1] / amplitudes[0])}
    union = Union(plane[None], np.ones((1, Q)), np.array(amplitudes[:1]), ratio)
    assert union.outside == pytest.approx(part, abs=0.01)


@pytest.mark.parametrize(("d", "q"), [(5, 2), (100, 1)])
def test_the_part_outside_grows_as_the_ratio_falls(d, q):
    """Noise may make the ratio lower than that of rows of any direction."""
    plane = np.eye(d)[None, :, :q]
    parts = [
        Union(plane, np.ones((1, q)), np.ones(1), {4: ratio}).outside
        for ratio in (0.1, 0.0, -0.1, -0.5, -1.0, -2.0, -3.0, -10.0)
    ]
    assert parts == sorted(parts)
    assert parts[0] == 0.0 < parts[-1] < 1.0


def test_even_rows_have_the_moments_of_projections():
    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((D, D)))[0]
    plane = rows[:, :Q]
    angles = 2 * np.pi * np.arange(16) / 16  # a design of degree 15 on the circle
    circle = np.column_stack([np.cos(angles), np.sin(angles)]) @ plane.T
    for degree in (2, 4, 6):
        amplitude = even_ratio(Q, degree) / Q
        mean = row_features(circle, degree).mean(axis=1)
        assert mean == pytest.approx(
            amplitude * factor_features(plane @ plane.T, degree), abs=1e-14
        )


def test_the_decoder_finds_the_truth_and_turns_with_the_rows(noisy):
    X, _, truth = subspace_mixture(4000, 3, 6, 2, np.random.default_rng(0))
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    for rows, wanted in (X, truth), (X @ turn.T, turn @ truth):
        found = decode(noisy(MomentSketch.of(rows), 100.0), 3, 2, random_state=0)
        assert wasserstein_distance(found.subspaces, wanted) < 0.01


@pytest.mark.slow
@hidden
@pytest.mark.parametrize(
    ("n_features", "last_round"),
    [
        (7, True),  # moments of degree 2 and 4
        pytest.param(5, False, marks=pytest.mark.system),
        pytest.param(5, True, marks=pytest.mark.system),
    ],
)
def test_errors_cover_what_they_state(n_features, last_round):
    """Squares of errors of tangents in units of their covariance are chi-square.

    Of 24 fits the mean of their probabilities lies within 0.5 +- 0.2 for exact errors with
    probability 0.9993 (its deviation is 0.059).
    """
    parts = []
    for seed in range(24):
        X, _, truth = subspace_mixture(
            2000, 2, n_features, 2, np.random.default_rng(seed), noise=0.05
        )
        model = MomentSubspaceClustering(2, 2, last_round=last_round, delta=1e-5, random_state=seed)
        decoded = model.fit(X).decoded_
        best = min(
            ([0, 1], [1, 0]), key=lambda o: wasserstein_distance(model.subspaces_[:1], truth[o[:1]])
        )
        tangents = [
            V.T @ T @ np.linalg.inv(U.T @ T)
            for U, V, T in zip(decoded.subspaces, decoded.complements, truth[best], strict=True)
        ]
        off = np.array(tangents).ravel()
        parts.append(chi2.cdf(off @ np.linalg.solve(decoded.covariance, off), len(off)))
    assert abs(np.mean(parts) - 0.5) < 0.2


def test_noise_has_the_deviation_that_is_stated(noisy):
    """Means of 4 m squares are within 5 deviations: a false alarm in 10^6 runs."""
    X = np.random.default_rng(0).standard_normal((50, 5))
    exact = MomentSketch.of(X)
    for neighbours in ("replace_one", "add_remove"):
        squares = {degree: [] for degree in exact.moments}
        for seed in range(20):
            private = noisy(exact, 1.0, neighbours=neighbours, seed=seed)
            for degree, values in private.moments.items():
                off = (values - exact.moments[degree]) / private.n_samples
                squares[degree].append(float(off @ off) / private.deviations()[degree] ** 2)
        for degree, found in squares.items():
            size = math.comb(4 + degree, 4) - math.comb(2 + degree, 4)  # harmonics
            assert abs(np.mean(found) - size) < 5 * math.sqrt(2 * size / 20)


def test_two_parts_of_a_budget_are_as_good_as_the_whole(noisy):
    exact = MomentSketch.of(np.random.default_rng(0).standard_normal((50, 4)))
    whole = noisy(exact, 1.0)
    parts = [noisy(exact, 1.0, share=s, seed=i) for i, s in enumerate((0.7, 0.3))]
    assert parts[0].averaged(parts[1], 0.3).sigma == pytest.approx(whole.sigma)
    with pytest.raises(ValueError, match="noise already"):
        noisy(whole, 1.0)


def test_sizes_are_chosen_from_the_sketch(noisy):
    for seed, (k, d) in enumerate([(3, 4), (2, 3)]):
        X, _, _ = subspace_mixture(5000, k, d, 2, np.random.default_rng(seed), noise=0.02)
        sketch = noisy(MomentSketch.of(X), 2.0, seed=seed)
        assert choose_sizes(sketch, random_state=0) == (k, 2)
    assert choose_sizes(sketch, 4, 1) == (4, 1)


# --- the estimator -----------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace_one", "add_remove"])
def test_a_fit_spends_its_budget_and_no_more(neighbours):
    X, _, truth = subspace_mixture(3000, 2, 4, 2, np.random.default_rng(0), noise=0.01)
    for last_round in ("auto", True, False):
        model = MomentSubspaceClustering(
            2, 2, delta=1e-5, neighbours=neighbours, last_round=last_round, random_state=0
        )
        with Budget(1.0, 1e-5, neighbours=neighbours) as budget:
            model.fit(X)
        assert model.guarantee_.epsilon == pytest.approx(1.0, rel=1e-6)
        assert model.has_last_round_ is (last_round is not False)
        assert len(model.guarantee_.releases) == (2 if last_round is False else 3)
        assert budget.spent == pytest.approx(1.0, rel=1e-6)
        assert wasserstein_distance(model.subspaces_, truth) < 0.1


@hidden
@pytest.mark.parametrize(("n", "d", "k", "q"), [(300, 4, 2, 2), (3000, 5, 3, 2), (3000, 5, 2, 1)])
def test_rows_of_any_direction_have_no_clear_subspaces(n, d, k, q):
    for seed in (0, 3):  # one of these has the most evidence of five, of each shape
        X = np.random.default_rng(seed).standard_normal((n, d))
        model = MomentSubspaceClustering(k, q, delta=1e-5, random_state=seed).fit(X)
        assert not model.is_detected_.any()
        assert not model.has_last_round_


@hidden
@pytest.mark.parametrize("given", [False, np.False_, 0])
def test_no_last_round_is_none_however_it_is_written(given):
    X = np.random.default_rng(0).standard_normal((300, 4))
    model = MomentSubspaceClustering(2, 2, last_round=given, random_state=0).fit(X)
    assert len(model.guarantee_.releases) == 2


@hidden
def test_rows_scaled_by_their_own_statistics_are_noticed():
    X = np.random.default_rng(0).standard_normal((300, 4))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with pytest.warns(PrivacyLeakWarning, match="statistics"):
        MomentSubspaceClustering(2, 2, random_state=0).fit(X)


def test_fits_repeat_and_leave_labels_at_home():
    X, y, _ = subspace_mixture(3000, 2, 4, 2, np.random.default_rng(0), noise=0.01)
    models = [MomentSubspaceClustering(2, 2, random_state=3).fit(X) for _ in range(2)]
    assert (models[0].subspaces_ == models[1].subspaces_).all()
    assert (models[0].predict(X) == models[0].labels_).all()
    assert not hasattr(pickle.loads(pickle.dumps(models[0])), "labels_")
    assert not hasattr(copy.copy(models[0]), "labels_")
    lengths = np.random.default_rng(1).uniform(0.1, 10.0, (len(X), 1))
    scaled = MomentSubspaceClustering(2, 2, random_state=3).fit(X * lengths)
    assert wasserstein_distance(scaled.subspaces_, models[0].subspaces_) < 1e-4
    assert np.mean(models[0].labels_ == y) in (
        pytest.approx(1.0, abs=0.05),
        pytest.approx(0.0, abs=0.05),
    )


@pytest.mark.parametrize("n", [0, 1, 3])
def test_any_number_of_any_rows_gives_a_result(n):
    X = np.array([[np.nan, 1.0, 0.0], [np.inf, 0.0, 1.0], [0.0, 0.0, 0.0]])[:n].reshape(n, 3)
    model = MomentSubspaceClustering(2, 1, neighbours="add_remove", random_state=0)
    with pytest.warns(NoiseWarning):
        model.fit(X)
    assert model.subspaces_.shape == (2, 3, 1)
    assert not model.is_detected_.any()


@hidden
@pytest.mark.parametrize(("d", "k", "q"), [(2, 1, 1), (2, 5, 1), (3, 2, 2), (4, 1, 3), (12, 2, 1)])
def test_sizes_at_the_border(d, k, q):
    X = np.random.default_rng(0).standard_normal((40, d)).astype(np.float32)
    model = MomentSubspaceClustering(k, q, last_round=True, random_state=0).fit(X)
    assert model.subspaces_.shape == (k, d, q)
    assert np.isfinite(model.errors_).all()


def test_what_cannot_be_is_refused():
    X = np.random.default_rng(0).standard_normal((40, 4))
    for parameters, match in (
        ({"subspace_dimension": 4}, "less than the number of features"),
        ({"last_round": "sometimes"}, "last_round"),
        ({"n_clusters": "many"}, "n_clusters"),
    ):
        with pytest.raises(ValueError, match=match):
            MomentSubspaceClustering(random_state=0, **parameters).fit(X)
    for dimension in (4, 5):
        with pytest.raises(ValueError, match=f"less than n_features=4, got {dimension}"):
            decode(MomentSketch.of(X), 2, dimension)
    with pytest.raises(ValueError, match="at most 64 features"):
        MomentSubspaceClustering(random_state=0).fit(np.ones((5, 65)))


def rows_of(kind, rng, n=8000):
    X, _, truth = subspace_mixture(n, 3, 8, 2, rng, 0.05)
    if kind == "beside":
        X[: n // 10] = rng.standard_normal(8)
    elif kind == "offset":
        X += 0.15
    elif kind == "any":
        X[: n // 3] = rng.standard_normal((n // 3, 8))
    elif kind == "uneven":
        X, _, truth = subspace_mixture(n, 3, 8, 2, rng)
        X = np.einsum(
            "ndq,nq->nd", truth[rng.integers(3, size=n)], rng.normal(size=(n, 2)) * [1, 0.3]
        )
        X += 0.02 * rng.standard_normal(X.shape)
    return X


@pytest.mark.parametrize(
    ("kind", "fits"), [("near", 1), ("any", 1), ("uneven", 1), ("beside", 0), ("offset", 0)]
)
def test_rows_that_lie_otherwise_are_told(kind, fits, recwarn):
    X = rows_of(kind, np.random.default_rng(0))

    def told(k):
        recwarn.clear()
        model = MomentSubspaceClustering(k, 2, epsilon=3.0, delta=1e-6, random_state=0)
        model.set_params(last_round=False).fit(X)
        messages = [str(each.message) for each in recwarn if "unexplained" in str(each.message)]
        assert all(message.startswith(f"{k} subspaces of dimension 2 ") for message in messages)
        return len(messages)

    assert told(3) == (not fits)
    if fits:
        assert told(2) == 1


@pytest.mark.parametrize("d", [5, 8])
def test_errors_of_uneven_rows_cover_what_they_state(d, noisy):
    """Five data sets, 3 planes in each: the ratio's square is a mean of some 100 terms and more."""
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        bases, within = random_bases(3, d, 2, rng), rng.standard_normal((8000, 2)) * [1.0, 0.4]
        within /= np.linalg.norm(within, axis=1, keepdims=True)
        X = np.einsum("ndq,nq->nd", bases[rng.integers(3, size=8000)], within)
        X += 0.1 * rng.standard_normal(X.shape)
        sketch = noisy(MomentSketch.of(X), 10.0, 1e-6, seed=seed)
        found = decode(sketch, 3, 2, random_state=seed)
        assert not found.is_even
        distance = wasserstein_distance(found.subspaces, bases)
        ratios.append(distance / np.linalg.norm(found.errors))
    assert 0.4 < np.sqrt(np.mean(np.square(ratios))) < 1.4


@pytest.mark.filterwarnings("ignore:2 subspaces of dimension 2:UserWarning")  # rows fill an arc
def test_affine_lines_are_planes_of_rows_with_a_constant():
    """Two lines beside the origin, 3 D: with a column of ones they are planes in 4."""
    rng = np.random.default_rng(0)
    offsets = np.array([[0.5, 0.0, 0.2], [-0.3, 0.6, 0.0]])
    along = np.array([[0.0, 1.0, 0.0], [0.6, 0.0, 0.8]])
    labels, places = rng.integers(2, size=6000), rng.uniform(-2.0, 2.0, (6000, 1))
    X = offsets[labels] + places * along[labels] + 0.01 * rng.standard_normal((6000, 3))
    model = make_pipeline(
        AppendOne(1.0), MomentSubspaceClustering(2, 2, epsilon=1.0, random_state=0)
    ).fit(X)
    truth = [
        np.linalg.qr(np.c_[np.append(a, 1.0), np.append(b, 0.0)])[0]
        for a, b in zip(offsets, along, strict=True)
    ]
    found = model[-1]
    assert found.is_detected_.all()
    assert wasserstein_distance(found.subspaces_, np.array(truth)) < 0.1
    assert max(np.mean(found.labels_ == labels), np.mean(found.labels_ != labels)) > 0.95
