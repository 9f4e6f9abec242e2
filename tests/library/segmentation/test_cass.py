"""CASS: optimality by an independent solver and by its duality gap, and what it must do."""

import numpy as np
import pytest

from privclust.segmentation import CASS


@pytest.fixture
def X():
    rng = np.random.default_rng(5)
    parts = [rng.standard_normal((7, 2)) @ rng.standard_normal((2, 5)) for _ in range(2)]
    return np.vstack(parts) + 0.05 * rng.standard_normal((14, 5))


def trace_lasso(X, z):
    return np.linalg.norm(X.T * z, "nuc")


def objective(X, Z, j, lam):
    loss = 0.5 * np.sum((X[j] - X.T @ Z[:, j]) ** 2)
    return loss + lam * trace_lasso(X, Z[:, j])


def plain_admm(X, j, lam, n_iter=4000, penalty=1.0):
    """J = A diag(z) by ADMM at a fixed penalty, A = X' without column j; returns the objective."""
    A, b = np.delete(X, j, axis=0).T, X[j]
    system = np.linalg.inv(A.T @ A + penalty * np.diag((A**2).sum(axis=0)))
    J, y = np.zeros_like(A), np.zeros_like(A)
    for _ in range(n_iter):
        z = system @ (A.T @ b + penalty * (A * (J + y)).sum(axis=0))
        u, s, vt = np.linalg.svd(A * z - y, full_matrices=False)
        J = (u * np.maximum(s - lam / penalty, 0.0)) @ vt
        y += J - A * z
    return 0.5 * np.sum((b - A @ z) ** 2) + lam * np.linalg.norm(A * z, "nuc")


@pytest.mark.parametrize("lam", [1e-2, 0.3])
def test_objective_against_an_independent_solver(X, lam):
    fitted = CASS(2, lam=lam, tol=1e-5, max_iter=5000).fit(X)
    assert fitted.duality_gap_ <= 1e-5
    for j in (0, 4, 9):
        ours, other = objective(X, fitted.coefficients_, j, lam), plain_admm(X, j, lam, penalty=lam)
        assert ours * (1.0 - 1e-5) <= other * (1.0 + 1e-12)  # the lower bound is one
        assert ours == pytest.approx(other, rel=1e-4)


def test_noise_free_is_feasible_and_the_limit(X):
    fitted = CASS(2, lam=None, tol=1e-5, max_iter=5000).fit(X)
    Z = fitted.coefficients_
    np.testing.assert_allclose(X.T @ Z, X.T, atol=1e-10)
    # for small lam the minimiser is nearly feasible and its norm nearly the least, from below
    near = CASS(2, lam=1e-8, tol=1e-5, max_iter=5000).fit(X).coefficients_
    for j in range(len(X)):
        least = trace_lasso(X, Z[:, j])
        assert trace_lasso(X, near[:, j]) == pytest.approx(least, rel=1e-4)


def test_no_feasible_perturbation_is_better(X):
    """Along directions of the null space of X' (with z_jj = 0) the norm does not fall."""
    Z = CASS(2, lam=None, tol=1e-6, max_iter=5000).fit(X).coefficients_
    rng = np.random.default_rng(0)
    others = np.arange(1, len(X))
    _, _, vt = np.linalg.svd(X[others].T)
    null = vt[5:].T
    least = trace_lasso(X, Z[:, 0])
    for size in (1e-3, 1e-1):
        for _ in range(20):
            z = Z[:, 0].copy()
            z[others] += size * null @ rng.standard_normal(null.shape[1])
            assert trace_lasso(X, z) >= least * (1.0 - 2e-6)


def test_orthogonal_candidates_give_the_l1_norm():
    """With orthonormal others the trace lasso is the l1 norm: soft-thresholded coefficients."""
    X = np.vstack([[1.0, 0.5, 0.01], np.eye(3)])
    Z = CASS(2, lam=0.1, tol=1e-7, max_iter=5000).fit(X).coefficients_
    np.testing.assert_allclose(Z[1:, 0], [0.9, 0.4, 0.0], atol=1e-3)


def test_equal_candidates_share_the_coefficient():
    """The grouping effect: with equal others it is the l2 norm, and equal samples get the same."""
    X = np.vstack([[2.0, 1.0], [2.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    Z = CASS(2, lam=0.1, tol=1e-6).fit(X).coefficients_
    np.testing.assert_allclose(Z[1, 0], Z[2, 0], rtol=1e-8)
    assert Z[1, 0] > 0.3


def test_scaling_the_data_scales_lam(X):
    Z = CASS(2, lam=0.01).fit(X).coefficients_
    scaled = CASS(2, lam=0.64).fit(64.0 * X).coefficients_
    np.testing.assert_allclose(scaled, Z, atol=1e-9)
