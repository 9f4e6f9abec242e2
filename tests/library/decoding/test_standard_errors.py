"""Standard errors of a sketch's clusters: their sizes, laws and flags."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from privclust.core.lloyd import lloyd
from privclust.decoding import decode, standard_errors
from privclust.kmeans import CompressiveKMeans
from privclust.sketches import Sketch, draw_frequencies, release

CENTERS = np.array([[-4.0, 0.0], [4.0, 1.0], [0.0, 6.0]])


def clusters(n, rng, centers=CENTERS):
    labels = rng.integers(len(centers), size=n)
    return centers[labels] + rng.standard_normal((n, centers.shape[1]))


def sketch_of(X, seed=0, m=150, variance=4.0):
    return Sketch.of(X, draw_frequencies(X.shape[1], m, variance=variance, random_state=seed))


def test_errors_by_noise_are_those_of_repeated_releases():
    rng = np.random.default_rng(0)
    exact = sketch_of(clusters(20_000, rng))
    told, centers, weights, inertias = [], [], [], []
    for seed in range(40):
        private = release(exact, 0.5, 1e-6, random_state=seed)
        decoded = decode(private, 3, random_state=seed)
        order = np.argmin(((CENTERS[:, None] - decoded.centers) ** 2).sum(axis=2), axis=1)
        centers.append(decoded.centers[order])
        weights.append(decoded.weights[order])
        inertias.append(decoded.inertia)
        if seed < 3:
            errors = standard_errors(private, decoded, rows=False, random_state=0)
            assert errors.is_reliable.all()
            told.append([np.mean(errors.centers), np.mean(errors.weights), errors.mean_inertia])
    seen = [np.std(part, axis=0, ddof=1) for part in (centers, weights, inertias)]
    seen = [np.sqrt(np.mean(part**2)) for part in seen]
    # 40 releases tell a standard deviation to 11 %, those of 6 coordinates together to 5 %; the
    # draws of three errors to 3 %
    ratios = np.mean(told, axis=0) / seen
    np.testing.assert_allclose(ratios[0], 1.0, atol=0.25)
    np.testing.assert_allclose(ratios[1:], 1.0, atol=0.4)


def test_errors_by_rows_are_those_of_repeated_samples():
    rng = np.random.default_rng(0)
    centers, told = [], []
    for seed in range(40):
        sketch = sketch_of(clusters(2_000, rng))
        decoded = decode(sketch, 3, random_state=0)
        order = np.argmin(((CENTERS[:, None] - decoded.centers) ** 2).sum(axis=2), axis=1)
        centers.append(decoded.centers[order])
        if seed < 3:
            told.append(np.mean(standard_errors(sketch, decoded, random_state=0).centers))
    seen = np.sqrt(np.mean(np.var(centers, axis=0, ddof=1)))
    assert np.mean(told) / seen == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize(("d", "n_rounds", "n_fits"), [(2, 8, 12), (20, 9, 4)])
def test_errors_after_last_rounds_are_those_seen(d, n_rounds, n_fits):
    rng = np.random.default_rng(5)
    ratios, means = [], 3.0 * rng.standard_normal((3, d))
    # the optimum of k-means, which is not the mixture's means where clusters overlap
    centers = lloyd(clusters(400_000, rng, means), means, 200, 1e-9)[0]
    for seed in range(n_fits):
        X = clusters(20_000, rng, means)
        model = CompressiveKMeans(
            3, epsilon=1.0, delta=1e-6, bounds=(-15.0, 15.0), random_state=seed
        ).fit(X)
        assert model.n_rounds_ == n_rounds
        errors = model.standard_errors(random_state=0)
        order = np.argmin(((centers[:, None] - model.cluster_centers_) ** 2).sum(axis=2), axis=1)
        away = model.cluster_centers_[order] - centers
        ratios.append(away / errors.centers[order])
        assert errors.covariances.shape == (3, d, d)
        np.testing.assert_allclose(
            np.einsum("kii->ki", errors.covariances), errors.centers**2, rtol=1e-12
        )
        assert errors.mean_inertia > 0.0
    # 36 and 240 coordinates that move on their own tell a standard deviation to 12 % and 5 %
    assert np.sqrt(np.mean(np.square(ratios))) == pytest.approx(1.0, abs=0.36)
    assert (np.abs(ratios) > 1.96).mean() < 0.15  # 5 % are expected


def test_errors_have_the_units_of_the_data():
    X = clusters(5_000, np.random.default_rng(0))
    sketch = sketch_of(X)
    private = release(sketch, 1.0, 1e-6, random_state=0)
    decoded = decode(private, 3, random_state=0)
    of_one = standard_errors(private, decoded, random_state=0)
    wide = Sketch.of(10.0 * X, sketch.frequencies / 10.0)
    wide = release(wide, 1.0, 1e-6, random_state=0)
    of_ten = standard_errors(wide, decode(wide, 3, random_state=0), random_state=0)
    np.testing.assert_allclose(of_ten.centers, 10.0 * of_one.centers, rtol=1e-2)
    np.testing.assert_allclose(of_ten.weights, of_one.weights, rtol=1e-2)
    assert of_ten.mean_inertia == pytest.approx(100.0 * of_one.mean_inertia, rel=1e-2)
    again = standard_errors(private, decoded, random_state=0)
    np.testing.assert_array_equal(again.centers, of_one.centers)
    by_noise = standard_errors(private, decoded, rows=False, random_state=0)
    assert (by_noise.centers < of_one.centers).all()


def test_other_centers_that_are_as_good_are_no_reliable_ones():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 2))  # three centers may lie at any angle
    sketch = release(sketch_of(X), 1.0, 1e-6, random_state=0)
    decoded = decode(sketch, 3, random_state=0)
    assert not standard_errors(sketch, decoded, random_state=0).is_reliable.any()


def test_clusters_hidden_by_noise_are_no_reliable_ones():
    X = clusters(300, np.random.default_rng(0))
    sketch = release(sketch_of(X), 0.02, 1e-6, random_state=0)
    decoded = decode(sketch, 3, random_state=0)
    errors = standard_errors(sketch, decoded, random_state=0)
    assert not errors.is_reliable.any()
    assert np.isfinite(errors.centers).all()


def test_points_have_no_standard_errors():
    sketch = sketch_of(clusters(2_000, np.random.default_rng(0)))
    decoded = decode(sketch, 3, method="clompr", n_init=1, random_state=0)
    with pytest.raises(ValueError, match="of Gaussian clusters"):
        standard_errors(sketch, decoded)
    with pytest.raises(NotFittedError):
        CompressiveKMeans().standard_errors()


@pytest.mark.parametrize("with_normal", [False, True])
def test_errors_of_rows_in_few_places_are_large_enough(with_normal):
    """Of places without width, alone or beside a normal column, as a table's categories are."""
    rng = np.random.default_rng(2)
    places = np.array([-1.0, 1.0])
    distances = []
    for seed in range(6):
        labels = rng.integers(2, size=30_000)
        X = places[labels][:, None]
        if with_normal:
            X = np.column_stack([X, 4.0 * X[:, 0] + rng.standard_normal(len(X))])
        private = release(sketch_of(X, seed, m=80, variance=1.0), 1.0, 1e-6, random_state=seed)
        decoded = decode(private, 2, random_state=seed)
        errors = standard_errors(private, decoded, random_state=seed)
        center = decoded.centers[:, 0]
        nearest = places[np.abs(center[:, None] - places).argmin(axis=1)]
        distances += list((np.abs(center - nearest) / errors.centers[:, 0])[errors.is_reliable])
    assert len(distances) >= 6
    assert max(distances) < 4.0  # of 12 normal ones one is larger in 1,300 runs


@pytest.mark.parametrize(("noise", "delta"), [("gaussian", 1e-6), ("laplace", 0.0)])
def test_gaussian_clusters_explain_the_sketch(noise, delta):
    """Each of 60 releases is above three standard deviations with about .13 %: one may be."""
    rng = np.random.default_rng(3)
    sketch = sketch_of(clusters(6000, rng), m=300)
    missed = 0
    for seed in range(60):
        private = release(sketch, 1.0, delta, noise=noise, random_state=seed)
        missed += not decode(private, len(CENTERS), random_state=seed).is_explained
    assert missed <= 1
    assert decode(sketch, len(CENTERS), random_state=0).is_explained


def test_clusters_far_from_gaussian_have_no_reliable_errors():
    rng = np.random.default_rng(4)
    labels, turns = rng.integers(10, size=20_000), rng.uniform(0.0, 2.0, 20_000)
    middles, first = rng.uniform(-0.7, 0.7, (10, 2)), rng.uniform(0.0, 6.0, 10)
    angles = first[labels] + turns
    X = middles[labels] + 0.2 * np.column_stack([np.cos(angles), np.sin(angles)])
    X += 0.01 * rng.standard_normal(X.shape)
    model = CompressiveKMeans(10, epsilon=4.0, delta=1e-6, bounds=(-1, 1), random_state=0).fit(X)
    decoded = model._decoded
    assert not decoded.is_explained
    assert not model.standard_errors(random_state=0).is_reliable.any()
