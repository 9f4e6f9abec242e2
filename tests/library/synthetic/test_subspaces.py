"""Random subspaces: shapes, ranks, orientation, noise."""

import numpy as np
import pytest

from privclust.synthetic.subspaces import random_subspaces, subspace_mixture


def _draw(seed=0, **changes):
    sizes = {"n_per_subspace": 30, "dimension": 5, "n_subspaces": 4, "ambient_dimension": 26}
    return random_subspaces(**{**sizes, **changes}, rng=np.random.default_rng(seed))


def test_shapes_labels_and_norms():
    X, labels = _draw()
    assert X.shape == (120, 26)
    assert labels.tolist() == sorted([0, 1, 2, 3] * 30)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)


def test_subspaces_are_independent_and_have_their_dimension():
    X, labels = _draw()
    assert [np.linalg.matrix_rank(X[labels == k]) for k in range(4)] == [5] * 4
    assert np.linalg.matrix_rank(X) == 20


def test_disjoint_subspaces_meet_only_in_zero():
    X, labels = _draw(dimension=13)
    for i in range(4):
        for j in range(i):
            assert np.linalg.matrix_rank(X[(labels == i) | (labels == j)]) == 26
    assert np.linalg.matrix_rank(X) == 26


def test_coefficients_are_standard_gaussian():
    X, _ = _draw(n_per_subspace=4000, n_subspaces=1, unit_norm=False)
    energy = (X**2).sum(axis=1)  # chi-squared with 5 degrees of freedom
    assert energy.mean() == pytest.approx(5, abs=0.2)
    assert energy.var() == pytest.approx(10, abs=1.5)
    directions = np.linalg.svd(X, full_matrices=False)[2][:5]
    np.testing.assert_allclose((X @ directions.T).std(axis=0), 1.0, atol=0.06)


def test_orientation_is_uniform():
    """The mean projector of random d-dimensional subspaces is (d / D) I."""
    X, labels = _draw(n_per_subspace=2, dimension=2, n_subspaces=3000, ambient_dimension=4)
    bases = np.linalg.qr(X.reshape(3000, 2, 4).transpose(0, 2, 1))[0]
    mean = (bases @ bases.transpose(0, 2, 1)).mean(axis=0)
    np.testing.assert_allclose(mean, 0.5 * np.eye(4), atol=0.03)
    assert labels.max() == 2999


def test_noise_has_the_given_size_in_each_coordinate():
    clean, _ = _draw(unit_norm=False, n_per_subspace=500)
    noisy, _ = _draw(unit_norm=False, n_per_subspace=500, noise=0.1)
    assert (noisy - clean).std() == pytest.approx(0.1, rel=0.02)
    scaled, _ = _draw(noise=0.1)
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1.0)
    assert np.linalg.matrix_rank(scaled) == 26


def test_a_stream_decides_everything():
    np.testing.assert_array_equal(_draw(seed=1)[0], _draw(seed=1)[0])
    assert not np.array_equal(_draw(seed=1)[0], _draw(seed=2)[0])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n_per_subspace": 0}, "n_per_subspace must be an integer of at least 1, got 0"),
        ({"n_subspaces": 0}, "n_subspaces must be an integer of at least 1"),
        ({"dimension": 27}, "dimension must be at most ambient_dimension = 26, got 27"),
        ({"noise": -1.0}, "noise must be a finite number at least 0"),
        ({"noise": np.nan}, "noise must be a finite number at least 0"),
    ],
)
def test_wrong_numbers(changes, expected):
    with pytest.raises(ValueError, match=expected):
        _draw(**changes)


def _mix(seed=0, **changes):
    sizes = {"n_samples": 4000, "n_clusters": 3, "n_features": 10, "dimension": 3}
    return subspace_mixture(**{**sizes, **changes}, rng=np.random.default_rng(seed))


def test_points_of_a_mixture_lie_on_unit_spheres():
    X, labels, bases = _mix()
    assert X.shape == (4000, 10)
    np.testing.assert_allclose(bases.transpose(0, 2, 1) @ bases, [np.eye(3)] * 3, atol=1e-12)
    within = np.einsum("idq,id->iq", bases[labels], X)
    np.testing.assert_allclose(np.linalg.norm(within, axis=1), 1.0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    # uniform on the sphere: by Archimedes each coordinate is uniform on [-1, 1]; the standard
    # error of a decile's share is 0.0047, five of which have a false-alarm rate below 2e-5
    for coordinate in within.T:
        shares = np.histogram(coordinate, bins=10, range=(-1, 1))[0] / len(X)
        np.testing.assert_allclose(shares, 0.1, atol=5 * 0.0047)


def test_a_mixture_is_assigned_uniformly_and_in_random_order():
    _, labels, _ = _mix()
    # five standard errors of a share, and of the share of neighbours with the same label
    np.testing.assert_allclose(np.bincount(labels) / 4000, 1 / 3, atol=5 * 0.0075)
    assert np.mean(labels[1:] == labels[:-1]) == pytest.approx(1 / 3, abs=5 * 0.0075)


def test_noise_of_a_mixture_has_the_given_size():
    clean, _, _ = _mix()
    noisy, labels, bases = _mix(noise=0.1)
    outside = noisy - np.einsum("idq,ieq,ie->id", bases[labels], bases[labels], noisy)
    # seven of ten coordinates are outside: 28,000 squares, five standard errors are 4 %
    assert (outside**2).sum() / (4000 * 7) == pytest.approx(0.01, rel=0.05)
    assert (np.linalg.norm(noisy, axis=1) > 1).mean() > 0.5
    assert (np.linalg.norm(clean, axis=1) > 1 + 1e-9).mean() == 0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n_samples": 0}, "n_samples must be an integer of at least 1, got 0"),
        ({"n_clusters": 1.5}, "n_clusters must be an integer"),
        ({"dimension": 11}, "dimension must be at most n_features = 10, got 11"),
        ({"noise": -1.0}, "noise must be a finite number at least 0"),
    ],
)
def test_wrong_numbers_of_a_mixture(changes, expected):
    with pytest.raises(ValueError, match=expected):
        _mix(**changes)
