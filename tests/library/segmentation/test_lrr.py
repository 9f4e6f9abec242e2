"""LRR: the closed form, its limit, and the noisy form against an independent solver."""

import numpy as np
import pytest

from privclust.segmentation import LRR


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    low = np.vstack([rng.standard_normal((9, 2)) @ rng.standard_normal((2, 6)) for _ in range(2)])
    return low + 0.1 * rng.standard_normal((18, 6))


def objective(X, Z, lam):
    return np.linalg.norm(Z, "nuc") + lam * np.linalg.norm(X.T - X.T @ Z, axis=0).sum()


def plain_admm(X, lam, n_iter=4000):
    """Two-block ADMM at unit penalty in full coordinates: J = Z and E = A - A Z with A = X'."""
    A = X.T
    n = len(X)
    Z, y, t = np.zeros((n, n)), np.zeros((n, n)), np.zeros_like(A)
    system = np.linalg.inv(np.eye(n) + A.T @ A)
    for _ in range(n_iter):
        u, s, vt = np.linalg.svd(Z - y)
        J = (u * np.maximum(s - 1.0, 0.0)) @ vt
        R = A - A @ Z + t
        E = R * np.maximum(1.0 - lam / np.linalg.norm(R, axis=0), 0.0)
        Z = system @ (J + y + A.T @ (A - E + t))
        y += J - Z
        t += A - A @ Z - E
    return J


def test_closed_form(X):
    fitted = LRR(2).fit(X)
    _, _, vt = np.linalg.svd(X.T, full_matrices=False)
    np.testing.assert_allclose(fitted.coefficients_, vt.T @ vt, atol=1e-13)
    assert fitted.n_iter_ == 1
    assert fitted.duality_gap_ == 0.0


@pytest.mark.parametrize("lam", [0.1, 0.4, 2.0])
def test_objective_against_an_independent_solver(X, lam):
    fitted = LRR(2, lam=lam, tol=1e-4).fit(X)
    ours = objective(X, fitted.coefficients_, lam)
    other = objective(X, plain_admm(X, lam), lam)
    assert fitted.duality_gap_ <= 1e-4
    assert ours <= other * (1.0 + 1e-4)  # ours is within the gap of the optimum
    assert ours * (1.0 - fitted.duality_gap_) <= other * (1.0 + 1e-12)  # and its bound is one
    assert other <= ours * (1.0 + 1e-4)  # and the other solver had converged: the test has teeth


def test_large_lam_is_the_closed_form(X):
    Z = LRR(2, lam=1e3, tol=1e-6).fit(X).coefficients_
    np.testing.assert_allclose(Z, LRR(2).fit(X).coefficients_, atol=2e-3)


def test_small_lam_is_zero(X):
    """Z = 0 is optimal iff ||X' Y||_2 <= 1 for y_j = lam x_j / ||x_j||; else it is not."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    largest = 1.0 / np.linalg.norm(X @ unit.T, 2)
    below = LRR(2, lam=0.9 * largest, tol=1e-5).fit(X).coefficients_
    above = LRR(2, lam=1.3 * largest, tol=1e-5).fit(X).coefficients_
    assert np.linalg.norm(below, "nuc") < 1e-2
    assert np.linalg.norm(above, "nuc") > 0.1


def test_scaling_the_data_scales_lam(X):
    Z = LRR(2, lam=0.5).fit(X).coefficients_
    scaled = LRR(2, lam=0.5 / 64.0).fit(64.0 * X).coefficients_
    np.testing.assert_allclose(scaled, Z, atol=1e-10)
