"""SSC against linear programming and against its optimality conditions."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from privclust.metrics import segmentation_error
from privclust.segmentation import SSC
from privclust.synthetic.subspaces import random_subspaces

TIGHT = {"n_clusters": 2, "tol": 1e-9, "max_iter": 200_000, "random_state": 0}


def two_subspaces(seed, noise=0.0, shift=0.0, n_each=14, ambient=7, dimension=3):
    rng = np.random.default_rng(seed)
    parts = [
        rng.standard_normal((n_each, dimension)) @ rng.standard_normal((dimension, ambient))
        + shift * rng.standard_normal(ambient)
        for _ in range(2)
    ]
    return np.vstack(parts) + noise * rng.standard_normal((2 * n_each, ambient))


def linear_program(X, j, affine):
    """Least l1 norm of coefficients of the other samples that give sample j, and those."""
    others = np.delete(np.arange(len(X)), j)
    A, b = X[others].T, X[j]
    if affine:
        A, b = np.vstack([A, np.ones(len(others))]), np.append(b, 1.0)
    signed = np.hstack([A, -A])
    result = linprog(np.ones(signed.shape[1]), A_eq=signed, b_eq=b, method="highs")
    z = np.zeros(len(X))
    z[others] = result.x[: len(others)] - result.x[len(others) :]
    return result.fun, z


@pytest.mark.parametrize("affine", [False, True])
def test_noise_free_solution_is_that_of_the_linear_program(affine):
    X = two_subspaces(seed=0, shift=2.0 * affine)
    Z = SSC(alpha=None, affine=affine, **TIGHT).fit(X).coefficients_
    np.testing.assert_allclose(X.T @ Z, X.T, atol=1e-7)
    for j in range(len(X)):
        objective, z = linear_program(X, j, affine)
        assert np.abs(Z[:, j]).sum() == pytest.approx(objective, rel=1e-6)
        # generic data have one solution, but any convex combination has l1 norm 1
        if not (affine and objective < 1.0 + 1e-6):
            np.testing.assert_array_equal(np.abs(Z[:, j]) > 1e-6, np.abs(z) > 1e-6)


@pytest.mark.parametrize("affine", [False, True])
def test_noisy_solution_meets_the_optimality_conditions(affine):
    """0 in sign(z) - lambda_z X'(x_j - X z) + multiplier, with lambda_z from its definition."""
    X = two_subspaces(seed=1, noise=0.05)
    Z = SSC(alpha=30.0, affine=affine, **TIGHT).fit(X).coefficients_
    gram = np.abs(X @ X.T)
    np.fill_diagonal(gram, 0.0)
    gradient = 30.0 / gram.max(axis=1).min() * (X @ (X.T - X.T @ Z))
    if affine:
        np.testing.assert_allclose(Z.sum(axis=0), 1.0, atol=1e-7)
    for j in range(len(X)):
        z, g = np.delete(Z[:, j], j), np.delete(gradient[:, j], j)
        support = np.abs(z) > 1e-7
        if affine:
            g = g + np.mean(np.sign(z[support]) - g[support])
        np.testing.assert_allclose(g[support], np.sign(z[support]), atol=1e-5)
        assert np.abs(g).max() <= 1.0 + 1e-5


def test_alpha_one_is_the_least_that_represents_all():
    X = two_subspaces(seed=2, noise=0.1)
    below = SSC(2, alpha=0.999, tol=1e-6).fit(X).coefficients_
    above = SSC(2, alpha=1.01, tol=1e-6).fit(X).coefficients_
    assert np.abs(below).sum(axis=0).min() == 0.0
    assert np.abs(above).sum(axis=0).min() > 0.0


def test_scaling_the_data_changes_nothing():
    X = two_subspaces(seed=3, noise=0.02)
    for alpha in (None, 100.0):
        Z = SSC(2, alpha=alpha).fit(X).coefficients_
        scaled = SSC(2, alpha=alpha).fit(1024.0 * X).coefficients_
        np.testing.assert_allclose(scaled, Z, atol=1e-10)


def test_affine_form_is_free_of_translations():
    X = two_subspaces(seed=4, shift=1.0)
    Z = SSC(2, alpha=None, affine=True, tol=1e-6).fit(X).coefficients_
    moved = SSC(2, alpha=None, affine=True, tol=1e-6).fit(X + 5.0).coefficients_
    assert np.linalg.norm(Z - moved) < 1e-3 * np.linalg.norm(Z)


def test_default_tolerance_segments_and_is_near_the_optimum():
    """At the default tolerance: accuracy 1 and the objective within 1e-3 of the optimum."""
    rng = np.random.default_rng(0)
    bases = [np.linalg.qr(rng.standard_normal((50, 6)))[0] for _ in range(5)]
    X = np.vstack([rng.standard_normal((64, 6)) @ b.T for b in bases])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    fitted = SSC(5, alpha=None, random_state=0).fit(X)
    assert segmentation_error(np.repeat(np.arange(5), 64), fitted.labels_) == 0.0
    for j in (0, 100, 319):
        objective, _ = linear_program(X, j, affine=False)
        assert np.abs(fitted.coefficients_[:, j]).sum() == pytest.approx(objective, rel=1e-3)


@pytest.mark.parametrize("alpha", [None, 100.0])
def test_columns_do_not_depend_on_those_iterated_with_them(monkeypatch, alpha):
    X = two_subspaces(seed=5, noise=0.02 * (alpha is not None))
    together = SSC(2, alpha=alpha).fit(X)
    monkeypatch.setattr("privclust.segmentation._ssc._BLOCK_ENTRIES", 5 * len(X))
    monkeypatch.setattr("privclust.segmentation._ssc._LEAST_BLOCK", 1)
    parts = SSC(2, alpha=alpha).fit(X)  # 28 columns by fives: the last part has three
    assert parts.n_iter_ == together.n_iter_
    np.testing.assert_allclose(parts.coefficients_, together.coefficients_, atol=1e-12)
    with pytest.warns(ConvergenceWarning, match="^28 of 28 columns did not reach"):
        SSC(2, alpha=alpha, max_iter=1).fit(X)


def test_subspaces_without_noise_are_told_apart():
    """The graph has a component for each."""
    X, y = random_subspaces(14, 2, 30, 60, np.random.default_rng(0))
    assert segmentation_error(y, SSC(30, random_state=0).fit(X).labels_) == 0.0
