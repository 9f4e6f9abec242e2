"""Distances between subspaces, and of rows to them."""

from itertools import permutations

import numpy as np
import pytest
from scipy.linalg import orth, subspace_angles

from privclust.metrics import subspace_cost, wasserstein_distance

ONE = np.eye(3)[None, :, :1]


def frames(rng, k, d, q):
    return np.stack([orth(rng.standard_normal((d, q))) for _ in range(k)])


def projection(basis):
    return basis @ basis.T


@pytest.mark.parametrize(("d", "q"), [(2, 1), (5, 3), (10, 3), (6, 2), (4, 4)])
def test_distance_of_two_is_that_of_projections_and_angles(d, q):
    rng = np.random.default_rng(d)
    for _ in range(20):
        U, V = frames(rng, 1, d, q), frames(rng, 1, d, q)
        direct = np.linalg.norm(projection(U[0]) - projection(V[0]))
        assert wasserstein_distance(U, V) == pytest.approx(direct, abs=1e-12)
        by_angles = 2 * (np.sin(subspace_angles(U[0], V[0])) ** 2).sum()
        assert wasserstein_distance(U, V) ** 2 == pytest.approx(by_angles, abs=1e-12)


@pytest.mark.parametrize("angle", [1e-12, 1e-7, 0.3, np.pi / 2 - 1e-12])
def test_small_and_right_angles_keep_their_digits(angle):
    U = np.eye(3)[None, :, :1]
    V = np.array([[[np.cos(angle)], [np.sin(angle)], [0.0]]])
    assert wasserstein_distance(U, V) == pytest.approx(np.sqrt(2) * np.sin(angle), rel=1e-9)


@pytest.mark.parametrize(("d", "q"), [(5, 3), (10, 3), (50, 9)])
def test_random_subspaces(d, q):
    """E||P - P'||^2 = 2 q (1 - q/d), since E P = (q/d) I; a 4-sigma band, false alarms 1e-4."""
    rng = np.random.default_rng(0)
    squared = [
        wasserstein_distance(frames(rng, 1, d, q), frames(rng, 1, d, q)) ** 2 for _ in range(400)
    ]
    error = np.std(squared) / np.sqrt(len(squared))
    assert abs(np.mean(squared) - 2 * q * (1 - q / d)) < 4 * error


def test_wasserstein_against_all_permutations():
    rng = np.random.default_rng(1)
    for _ in range(10):
        A, B = frames(rng, 4, 6, 2), frames(rng, 4, 6, 2)
        direct = min(
            sum(np.linalg.norm(projection(A[i]) - projection(B[j])) ** 2 for i, j in enumerate(p))
            for p in permutations(range(4))
        )
        assert wasserstein_distance(A, B) == pytest.approx(np.sqrt(direct), rel=1e-12)
        assert wasserstein_distance(B, A) == pytest.approx(np.sqrt(direct), rel=1e-12)


def test_orders_and_bases_do_not_matter():
    rng = np.random.default_rng(2)
    A, B, X = frames(rng, 3, 7, 3), frames(rng, 3, 7, 3), rng.standard_normal((30, 7))
    other = A[[2, 0, 1]] @ frames(rng, 3, 3, 3)
    assert wasserstein_distance(A, other) < 1e-13
    assert wasserstein_distance(other, B) == pytest.approx(wasserstein_distance(A, B), rel=1e-12)
    assert subspace_cost(X, other) == pytest.approx(subspace_cost(X, A), rel=1e-12)
    Q = frames(rng, 1, 7, 7)[0]
    assert wasserstein_distance(Q @ A, Q @ B) == pytest.approx(wasserstein_distance(A, B), rel=1e-9)
    assert subspace_cost(X @ Q.T, Q @ A) == pytest.approx(subspace_cost(X, A), rel=1e-12)


def test_cost_is_the_mean_squared_distance_to_the_nearest():
    rng = np.random.default_rng(3)
    A, X = frames(rng, 3, 7, 3), rng.standard_normal((500, 7))
    direct = np.array([[np.sum((x - U @ (U.T @ x)) ** 2) for U in A] for x in X])
    assert subspace_cost(X, A) == pytest.approx(direct.min(axis=1).mean(), rel=1e-12)
    assert subspace_cost(3 * X, A) == pytest.approx(9 * direct.min(axis=1).mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: wasserstein_distance(2 * ONE, ONE), "orthonormal"),
        (lambda: wasserstein_distance(ONE, np.full((1, 3, 1), np.nan)), "orthonormal"),
        (lambda: wasserstein_distance(np.eye(3)[None, :2], ONE), "no more dimensions"),
        (lambda: wasserstein_distance(np.eye(3)[None], np.eye(3)[None, :, :1]), "one shape"),
        (lambda: wasserstein_distance(np.eye(3), np.eye(3)), "must have shape"),
        (lambda: subspace_cost(np.ones((2, 4)), np.eye(3)[None]), "X must have shape"),
        (lambda: subspace_cost(np.empty((0, 3)), np.eye(3)[None]), "X must have shape"),
        (lambda: subspace_cost(np.full((2, 3), np.inf), np.eye(3)[None]), "finite"),
    ],
)
def test_bad_input(call, match):
    with pytest.raises(ValueError, match=match):
        call()
