"""Subspaces, where they start from, and what `privclust.subspaces` offers."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import subspace_angles

from privclust.core.grassmann import (
    bases_of_labels,
    nearest_subspaces,
    orthonormal,
    principal_bases,
    random_bases,
    residuals,
)
from privclust.kmeans import DPLloyd
from privclust.metrics import wasserstein_distance
from privclust.privacy import PrivacyLeakWarning
from privclust.segmentation import LSR, TSC
from privclust.subspaces import KPlanes, SuLQKPlanes, _subspace_clusterer


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def starting_bases(init, X, n_clusters, dimension, rng, seeded=False):
    estimator = KPlanes(n_clusters, dimension, init=init)
    return _subspace_clusterer.starting_bases(estimator, X, rng, seeded=seeded)


def guarantee_from(init, X):
    """The guarantee of a private fit from a start."""
    params = {"norm_bound": 1.0, "max_iter": 1, "n_averaged": 1, "random_state": 0}
    return SuLQKPlanes(2, 2, init=init, **params).fit(X).guarantee_


def test_metrics_do_not_wait_for_scikit_learn():
    code = "import sys; import privclust.metrics; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- geometry --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7, 50000])
def test_residuals_and_moments_row_by_row(rng, n):
    """50,000 rows are several blocks."""
    X, bases = rng.standard_normal((n, 6)), random_bases(4, 6, 2, rng)
    projections = bases @ bases.transpose(0, 2, 1)
    direct = np.stack([((X - X @ P) ** 2).sum(axis=1) for P in projections], axis=1)
    np.testing.assert_allclose(residuals(X, bases), direct, atol=1e-12)
    labels, least, moments = nearest_subspaces(X, bases)
    np.testing.assert_array_equal(labels, direct.argmin(axis=1))
    np.testing.assert_allclose(least, direct.min(axis=1), atol=1e-12)
    for k in range(4):
        rows = X[labels == k]
        np.testing.assert_allclose(moments[k], rows.T @ rows, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(moments[k], moments[k].T)


def test_residuals_are_never_negative(rng):
    bases = random_bases(1, 5, 3, rng)
    X = rng.standard_normal((1000, 3)) @ bases[0].T
    found = residuals(X, bases)
    assert found.min() >= 0.0
    assert found.max() < 1e-14 * (X**2).sum(axis=1).max()


def test_random_bases_are_haar(rng):
    """An entry of a Haar frame has a squared value of law Beta(1/2, (d-1)/2), and both signs.

    Kolmogorov-Smirnov on independent frames, false alarms 1e-4 each.
    """
    d, q = 4, 3
    bases = random_bases(3000, d, q, rng)
    np.testing.assert_allclose(
        bases.transpose(0, 2, 1) @ bases, np.broadcast_to(np.eye(q), (3000, q, q)), atol=1e-13
    )
    law = stats.beta(0.5, (d - 1) / 2)
    for i, j in ((0, 0), (3, 2), (1, 1)):
        assert stats.kstest(bases[:, i, j] ** 2, law.cdf).pvalue > 1e-4
        assert stats.binomtest(int((bases[:, i, j] > 0).sum()), 3000).pvalue > 1e-4


def test_orthonormal_frames_stay(rng):
    bases = random_bases(3, 6, 4, rng) * np.array([1, -1, 1, -1])
    np.testing.assert_allclose(orthonormal(bases), bases, atol=1e-14)


def test_principal_bases_are_largest_first():
    found = principal_bases(np.diag([1.0, 3.0, -5.0, 2.0])[None], 2)
    np.testing.assert_array_equal(np.abs(found[0]), np.eye(4)[:, [1, 3]])


@pytest.mark.parametrize("n", [4, 40, 400])
def test_bases_of_labels_have_the_least_cost(rng, n):
    """Against the eigenvectors of the moments, for more and for fewer rows than features."""
    X, labels = rng.standard_normal((n, 8)) * 1e-30, np.arange(n) % 2
    found = bases_of_labels(X, labels, 2, 2, rng)
    for k in range(2):
        rows = X[labels == k] * 1e30
        expected = np.linalg.eigh(rows.T @ rows)[1][:, -2:]
        assert wasserstein_distance(found[k][None], expected[None]) < 1e-7


def test_what_rows_do_not_span_is_random(rng):
    """Rank 1 of 2: one principal angle is 0; an empty cluster and zero rows: all random."""
    line = np.outer([1.0, -2.0, 5.0], [0.0, 0.6, 0.8, 0.0])
    X, labels = np.vstack([line, np.zeros((2, 4))]), np.array([0, 0, 0, 2, 2])
    first, second = (bases_of_labels(X, labels, 3, 2, rng) for _ in range(2))
    for found in (first, second):
        np.testing.assert_allclose(
            found.transpose(0, 2, 1) @ found, np.broadcast_to(np.eye(2), (3, 2, 2)), atol=1e-14
        )
        assert residuals(line, found[:1]).max() < 1e-14
    angles = subspace_angles(first[0], second[0])
    assert angles[1] < 1e-7
    assert angles[0] > 1e-3
    for k in (1, 2):
        assert subspace_angles(first[k], second[k]).min() > 1e-4


@pytest.mark.parametrize("dimension", [0, 3, 4, 1.5, True, None])
def test_dimensions_out_of_range(dimension):
    with pytest.raises(ValueError, match="dimension must be"):
        KPlanes(2, dimension).fit(np.eye(3))


# --- starts ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:rows with a norm above")
def test_starts(rng):
    X = rng.standard_normal((30, 5))
    given = random_bases(2, 5, 2, rng)
    labels = np.arange(30) % 2
    bases, start = starting_bases("random", X, 2, 2, rng)
    assert bases.shape == (2, 5, 2)
    assert start is None
    guarantee = guarantee_from("random", X)
    assert guarantee.definition == "approximate"
    assert guarantee_from(given, X) == guarantee
    bases, start = starting_bases(given.astype(np.float32), X, 2, 2, rng)
    np.testing.assert_allclose(bases, given, atol=1e-6)
    assert np.abs(bases.transpose(0, 2, 1) @ bases - np.eye(2)).max() < 1e-14
    assert start is None
    bases, start = starting_bases(labels, X, 2, 2, rng)
    np.testing.assert_allclose(bases, bases_of_labels(X, labels, 2, 2, rng), atol=1e-14)
    np.testing.assert_array_equal(start, labels)
    promised = guarantee_from(labels, X)
    assert promised.definition == "none"
    assert "is made of labels" in promised.caveats[0]


@pytest.mark.filterwarnings("ignore:rows with a norm above")
def test_starts_by_estimators(rng):
    X = rng.standard_normal((60, 5))
    unfitted = LSR(2, random_state=0)
    bases, start = starting_bases(unfitted, X, 2, 2, rng)
    assert not hasattr(unfitted, "labels_")
    expected = bases_of_labels(X, unfitted.fit(X).labels_, 2, 2, rng)
    np.testing.assert_allclose(bases, expected, atol=1e-14)
    assert isinstance(start, LSR)
    promised = guarantee_from(LSR(2, random_state=0), X)
    assert promised.definition == "none"
    assert "without noise, by LSR" in promised.caveats[0]
    planes = KPlanes(2, 2, random_state=3)
    bases, _ = starting_bases(planes, X, 2, 2, rng)
    np.testing.assert_allclose(bases, planes.fit(X).subspaces_, atol=1e-14)


@pytest.mark.filterwarnings("ignore:rows with a norm above")
def test_only_private_subspaces_pass_on_a_guarantee(rng):
    X = rng.standard_normal((60, 5))
    params = {"norm_bound": 1.0, "random_state": 0}
    start = SuLQKPlanes(2, 2, **params)
    guarantee, promised = start.fit(X).guarantee_, guarantee_from(start, X)
    names = [release.name for release in guarantee.releases]
    found = [release for release in promised.releases if release.name.startswith("start: ")]
    assert [release.name for release in found] == [f"start: {name}" for name in names]
    assert [release.loss for release in found] == [each.loss for each in guarantee.releases]
    assert len(promised.releases) == 2 * len(names)
    assert promised.definition == "approximate"
    assert promised.epsilon > guarantee.epsilon
    # centers are private, but their labels are not, nor what is made of them and the rows
    promised = guarantee_from(DPLloyd(2, **params), X)
    assert promised.definition == "none"
    assert "by labels of DPLloyd" in promised.caveats[0]
    with pytest.warns(PrivacyLeakWarning):
        promised = guarantee_from(SuLQKPlanes(2, 2, random_state=0), X)
    assert promised.definition == "none"
    assert not any(release.name.startswith("start: ") for release in promised.releases)
    assert "norm_bound was not given" in promised.caveats[0]


def test_a_seed_is_passed_on_where_asked_for(rng):
    X = rng.standard_normal((60, 5))
    first, second = (
        starting_bases(TSC(2), X, 2, 2, np.random.default_rng(4), seeded=True)[1] for _ in range(2)
    )
    assert first.random_state == second.random_state
    assert first.random_state is not None
    assert starting_bases(TSC(2), X, 2, 2, rng)[1].random_state is None
    own = starting_bases(TSC(2, random_state=9), X, 2, 2, rng, seeded=True)[1]
    assert own.random_state == 9


@pytest.mark.parametrize(
    ("init", "match"),
    [
        ("k-means++", "init must be one of random"),
        (None, "init must be 'random'"),
        (KPlanes, "init must be 'random'"),
        (np.zeros((2, 5)), "init must be 'random'"),
        ([0, 1, "a"], "init must be 'random'"),
        (np.zeros((2, 5, 3)), "init: bases must be finite of shape"),
        (np.zeros((2, 5, 2)), "init: bases must have orthonormal columns"),
        (np.full((2, 5, 2), np.nan), "init: bases must be finite"),
        (np.arange(30), "init: labels must be integers 0 .. 1"),
        (np.zeros(29), "init: labels must be integers 0 .. 1"),
        (np.full(30, 0.5), "init: labels must be integers 0 .. 1"),
        (KPlanes(3, 2), "init must find n_clusters=2 clusters"),
        (KPlanes(2, 3), "init: bases must be finite of shape"),
    ],
)
def test_bad_starts(rng, init, match):
    with pytest.raises(ValueError, match=match):
        starting_bases(init, rng.standard_normal((30, 5)), 2, 2, rng)
