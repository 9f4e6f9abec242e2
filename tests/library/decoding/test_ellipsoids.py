"""Atoms with covariances."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_iris

from privclust.core.lloyd import inertia
from privclust.decoding import _ellipsoids as module
from privclust.decoding import decode
from privclust.decoding._ellipsoids import fit_ellipsoids, n_numbers
from privclust.kmeans import CompressiveKMeans, LloydKMeans
from privclust.sketches import Sketch, draw_frequencies, scrambled


def exact_features(frequencies, weights, centers, covariances):
    """Characteristic function of a Gaussian mixture."""
    total = np.zeros(frequencies.shape[1], dtype=complex)
    for weight, center, covariance in zip(weights, centers, covariances, strict=True):
        quadratic = np.einsum("im,ij,jm->m", frequencies, covariance, frequencies)
        total += weight * np.exp(1j * (center @ frequencies) - 0.5 * quadratic)
    return total


def elongated(n, rng):
    """Two long clusters side by side, whose isotropic atoms would lie across."""
    X = rng.standard_normal((2 * n, 2)) * [4.0, 0.5]
    X[n:, 1] += 4.0
    return X


def test_finds_the_mixture_that_the_features_are_of(problem_of):
    rng = np.random.default_rng(0)
    frequencies = draw_frequencies(3, 200, variance=4.0, random_state=1)
    weights, centers = np.array([0.3, 0.7]), np.array([[-3.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
    roots = rng.standard_normal((2, 3, 3)) * 0.5 + np.eye(3)
    covariances = roots @ roots.transpose(0, 2, 1)
    features = exact_features(frequencies, weights, centers, covariances)
    start = np.array([0.5, 0.5]), centers + 0.2, np.ones(2)
    problem = problem_of(frequencies, features)
    found_weights, found, factors, residual = fit_ellipsoids(problem, *start, math.inf)
    # features are of order 1: a residual so small leaves parameters wrong by at most its root
    assert residual < 1e-4
    np.testing.assert_allclose(found_weights, weights, atol=0.02)
    np.testing.assert_allclose(found, centers, atol=0.05)
    np.testing.assert_allclose(factors @ factors.transpose(0, 2, 1), covariances, atol=0.1)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("d", "m"), [(1, 1), (2, 40), (4, 700)])  # up to three chunks
def test_value_and_gradient(monkeypatch, d, m, diagonal, problem_of):
    """The sum over frequencies and central differences, at a point that is no optimum."""
    kept = {}

    def keep(function, point, **_):
        kept.update(function=function, point=point)
        raise StopIteration

    monkeypatch.setattr(module, "minimize", keep)
    rng = np.random.default_rng(2)
    frequencies = rng.standard_normal((d, m))
    features = rng.standard_normal(m) + 1j * rng.standard_normal(m)
    start = rng.random(3), rng.standard_normal((3, d)), 0.5 + rng.random(3)
    problem = problem_of(frequencies, features)
    with pytest.raises(StopIteration):
        fit_ellipsoids(problem, *start, math.inf, diagonal=diagonal)
    point = kept["point"] + 0.1 * rng.standard_normal(kept["point"].size)
    assert point.size == n_numbers(3, d, diagonal=diagonal)
    weights, centers = point[:3] ** 2, point[3 : 3 + 3 * d].reshape(3, d)
    entries = (np.arange(d), np.arange(d)) if diagonal else np.tril_indices(d)
    factors = np.zeros((3, d, d))
    factors[:, *entries] = point[3 + 3 * d :].reshape(3, -1)
    covariances = factors @ factors.transpose(0, 2, 1)
    left = features - exact_features(frequencies, weights, centers, covariances)
    value = kept["function"]
    assert value(point)[0] == pytest.approx(np.vdot(left, left).real, rel=1e-12)
    numeric = [
        (value(point + step)[0] - value(point - step)[0]) / 2e-6
        for step in 1e-6 * np.eye(point.size)
    ]
    largest = np.abs(numeric).max()
    np.testing.assert_allclose(value(point)[1], numeric, rtol=1e-5, atol=1e-6 * max(largest, 1))


def test_never_worse_than_where_it_started(problem_of):
    rng = np.random.default_rng(3)
    frequencies = rng.standard_normal((4, 60))
    for _ in range(10):
        features = rng.standard_normal(60) + 1j * rng.standard_normal(60)
        weights, centers, variances = rng.random(2), rng.standard_normal((2, 4)), rng.random(2)
        covariances = variances[:, None, None] * np.eye(4)
        before = features - exact_features(frequencies, weights, centers, covariances)
        problem = problem_of(frequencies, features)
        *_, residual = fit_ellipsoids(problem, weights, centers, variances, math.inf)
        assert residual <= np.vdot(before, before).real


def test_no_covariance_is_wider_than_asked_for(problem_of):
    rng = np.random.default_rng(7)
    frequencies = rng.standard_normal((3, 80))
    for widest in (0.7, 2.0):
        features = rng.standard_normal(80) + 1j * rng.standard_normal(80)  # all of it is noise
        problem = problem_of(frequencies, features)
        start = rng.random(4), rng.standard_normal((4, 3)), np.full(4, 0.25)
        *_, factors, _ = fit_ellipsoids(problem, *start, widest)
        assert np.abs(factors).max() == pytest.approx(widest)


@pytest.mark.parametrize(("seed", "epsilon"), [(5037, 1.0), (5037, 2.0), (5045, 1.0)])
def test_no_atom_far_wider_than_the_data_explains_noise(seed, epsilon):
    """With such an atom all centers but one lay at the border of the box."""
    X = load_iris().data
    X = X - X.mean(axis=0)
    X /= np.linalg.norm(X, axis=1).max()
    how = {
        "epsilon": epsilon,
        "delta": len(X) ** -1.1,
        "bounds": (-1, 1),
        "neighbours": "add_remove",
    }
    model = CompressiveKMeans(3, random_state=seed, **how).fit(X)
    assert inertia(X, model.cluster_centers_) < 0.3 * (X**2).sum()


@pytest.mark.parametrize("epsilon", [None, 3.0])
def test_long_clusters_are_split_lengthwise_as_k_means_does(epsilon):
    """Four clusters for two long ones: the optimum cuts each across its length."""
    X = elongated(20_000, np.random.default_rng(4))
    best = LloydKMeans(4, n_init=10, random_state=0).fit(X).inertia_
    private = {} if epsilon is None else {"delta": 1e-6, "bounds": (-20, 20)}
    model = CompressiveKMeans(4, epsilon=epsilon, random_state=0, **private).fit(X)
    assert model.is_detected_.all()
    found = LloydKMeans(4, init=model.cluster_centers_, max_iter=1).fit(X)
    assert found.inertia_ < 1.02 * best


def test_a_shared_spread_stays_isotropic(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("covariances were not asked for")

    monkeypatch.setattr("privclust.decoding._mixture_fit.fit_ellipsoids", refuse)
    X = elongated(2_000, np.random.default_rng(5))
    sketch = Sketch.of(X, draw_frequencies(2, 100, variance=4.0, random_state=0))
    assert decode(sketch, 2, spread="shared", random_state=0).centers.shape == (2, 2)
    with pytest.raises(AssertionError, match="not asked for"):
        decode(sketch, 2, spread="per_cluster", random_state=0)


def test_covariances_that_cannot_pay_are_not_fitted(monkeypatch):
    fitted = []

    def counted(*arguments, **how):
        fitted.append(True)
        return fit_ellipsoids(*arguments, **how)

    monkeypatch.setattr("privclust.decoding._mixture_fit.fit_ellipsoids", counted)
    frequencies = draw_frequencies(8, 600, variance=4.0, random_state=0)
    rng = np.random.default_rng(6)
    found, counts = {}, {}
    sketches = []
    for _ in range(6):
        X = rng.normal(3.0 * rng.standard_normal((5, 8))[rng.integers(5, size=5000)], 1.0)
        sketches.append(scrambled(Sketch.of(X, frequencies), 3.0, random_state=rng))
    for sure in (3.0, np.inf):  # with inf they are fitted wherever the residual is above its mean
        monkeypatch.setattr("privclust.decoding._mixture_decoder._RESIDUAL_DEVIATIONS", sure)
        fitted.clear()
        found[sure] = [decode(sketch, 5, random_state=0).centers for sketch in sketches]
        counts[sure] = len(fitted)
    np.testing.assert_array_equal(found[3.0], found[np.inf])
    assert counts[3.0] < counts[np.inf]
