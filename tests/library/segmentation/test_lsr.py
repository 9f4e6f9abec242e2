"""LSR against the formulas of Lu et al. and against least-norm solutions."""

import numpy as np
import pytest

from privclust.segmentation import LRR, LSR


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((15, 4)) @ rng.standard_normal((4, 9))


@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_formulas_of_the_paper(X, lam):
    gram = X @ X.T
    inverse = np.linalg.inv(gram + lam * np.eye(15))
    lsr1 = -inverse / np.diag(inverse)
    np.fill_diagonal(lsr1, 0.0)
    # the explicit inverse loses cond(gram + lam I) * eps, at most 1e5 * 2e-16 here
    np.testing.assert_allclose(LSR(2, lam=lam).fit(X).coefficients_, lsr1, atol=1e-9)
    lsr2 = LSR(2, lam=lam, zero_diagonal=False).fit(X).coefficients_
    np.testing.assert_allclose(lsr2, inverse @ gram, atol=1e-9)


def test_noise_free_columns_have_the_least_norm(X):
    Z = LSR(2, lam=None).fit(X).coefficients_
    for j in range(15):
        others = np.delete(np.arange(15), j)
        least = np.linalg.lstsq(X[others].T, X[j])[0]
        np.testing.assert_allclose(Z[others, j], least, atol=1e-11)


def test_noise_free_is_the_limit(X):
    for zero_diagonal in (True, False):
        limit = LSR(2, lam=None, zero_diagonal=zero_diagonal).fit(X).coefficients_
        near = LSR(2, lam=1e-10, zero_diagonal=zero_diagonal).fit(X).coefficients_
        np.testing.assert_allclose(near, limit, atol=1e-8)


def test_without_noise_and_with_a_diagonal_it_is_lrr(X):
    """Section 2 of the MTSC paper: both are V V'."""
    lsr = LSR(2, lam=None, zero_diagonal=False).fit(X).coefficients_
    np.testing.assert_allclose(lsr, LRR(2).fit(X).coefficients_, atol=1e-12)


def test_more_features_than_samples_leaves_no_cancellation():
    """Leverages of 1: I - G is of the size of lam / s^2, about 1e-13, and must keep its digits."""
    X = np.diag([1.0, 2.0, 3.0]) + 0.1
    gram = X @ X.T
    Z = LSR(2, lam=1e-13).fit(X).coefficients_
    for j in range(3):
        others = np.delete(np.arange(3), j)
        exact = np.linalg.solve(gram[np.ix_(others, others)], gram[others, j])
        np.testing.assert_allclose(Z[others, j], exact, rtol=1e-10)
