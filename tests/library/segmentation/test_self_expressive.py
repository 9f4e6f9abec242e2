"""What SSC, LRR, LSR and CASS have in common: the estimator interface and degenerate data."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from privclust.metrics import l2_error, segmentation_error
from privclust.segmentation import CASS, LRR, LSR, SSC

NOISE_FREE = [
    SSC(alpha=None),
    SSC(alpha=None, affine=True),
    LSR(lam=None),
    LSR(lam=None, zero_diagonal=False),
    LRR(lam=None),
    CASS(lam=None),
]
NOISY = [SSC(), SSC(affine=True), LSR(), LSR(zero_diagonal=False), LRR(lam=4.0), CASS()]
ALL = NOISE_FREE + NOISY


def union_of_subspaces(n_subspaces, dimension, n_each, ambient, seed, noise=0.0):
    rng = np.random.default_rng(seed)
    parts = [
        rng.standard_normal((n_each, dimension))
        @ np.linalg.qr(rng.standard_normal((ambient, dimension)))[0].T
        for _ in range(n_subspaces)
    ]
    X = np.vstack(parts) + noise * rng.standard_normal((n_subspaces * n_each, ambient))
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.repeat(np.arange(n_subspaces), n_each)


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_independent_subspaces_are_found(estimator):
    """Independent subspaces (3 x 3 dimensions in 12): every method's Z is block diagonal."""
    X, y = union_of_subspaces(3, 3, 20, 12, seed=0)
    fitted = clone(estimator).set_params(n_clusters=3, random_state=0).fit(X)
    Z = fitted.coefficients_
    assert segmentation_error(y, fitted.labels_) == 0.0
    # noisy forms shrink the representation by the regularisation but keep the blocks apart
    assert np.abs(X.T - X.T @ Z).max() < (5e-3 if estimator in NOISE_FREE else 0.1)
    assert l2_error(Z, y) < 1e-3
    np.testing.assert_array_equal(fitted.affinity_matrix_, np.abs(Z) + np.abs(Z).T)
    is_diagonal_free = not isinstance(estimator, LRR) and getattr(estimator, "zero_diagonal", True)
    assert not np.diag(Z).any() if is_diagonal_free else np.diag(Z).any()


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_number_of_clusters_is_estimated(estimator):
    X, y = union_of_subspaces(3, 4, 20, 15, seed=2)
    fitted = clone(estimator).set_params(random_state=0).fit(X)
    assert fitted.n_clusters_ == 3
    assert segmentation_error(y, fitted.labels_) == 0.0


@pytest.mark.parametrize("estimator", ALL, ids=repr)
@pytest.mark.filterwarnings("ignore")
def test_degenerate_data_gives_finite_results(estimator):
    rng = np.random.default_rng(0)
    generic = rng.standard_normal((8, 3))
    cases = {
        "zero row": np.vstack([generic, np.zeros((2, 3))]),
        "duplicates": np.repeat(generic, 2, axis=0),
        "all the same": np.ones((6, 4)),
        "all zero": np.zeros((5, 2)),
        "constant feature": np.column_stack([generic, np.ones(8)]),
        "fewer samples than features": rng.standard_normal((4, 30)),
        "two samples": rng.standard_normal((2, 3)),
        "one feature": rng.standard_normal((6, 1)),
        "orthogonal": np.eye(4),
        "large": 1e120 * generic,
        "small": 1e-120 * generic,
    }
    for name, X in cases.items():
        fitted = clone(estimator).set_params(n_clusters=2, random_state=0).fit(X)
        assert np.isfinite(fitted.coefficients_).all(), name
        assert set(fitted.labels_) <= {0, 1}, name
        clone(estimator).set_params(random_state=0).fit(X)  # also when clusters are estimated


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_orthogonal_transformations_change_nothing(estimator):
    X, _ = union_of_subspaces(3, 3, 12, 8, seed=1, noise=0.01)
    q = np.linalg.qr(np.random.default_rng(2).standard_normal((8, 8)))[0]
    Z = clone(estimator).set_params(n_clusters=3).fit(X).coefficients_
    rotated = clone(estimator).set_params(n_clusters=3).fit(X @ q.T).coefficients_
    # rounding may end an iteration one check earlier or later: within the solvers' tolerances
    assert np.linalg.norm(Z - rotated) < 1e-2 * np.linalg.norm(Z)


@pytest.mark.parametrize("estimator", NOISE_FREE[:-1], ids=repr)
def test_noise_free_forms_ignore_invertible_transformations(estimator):
    X, _ = union_of_subspaces(3, 3, 12, 8, seed=1)
    m = np.random.default_rng(2).standard_normal((8, 8))
    Z = clone(estimator).set_params(n_clusters=3).fit(X).coefficients_
    transformed = clone(estimator).set_params(n_clusters=3).fit(X @ m.T).coefficients_
    assert np.linalg.norm(Z - transformed) < 1e-2 * np.linalg.norm(Z)


def test_cass_does_not_ignore_invertible_transformations():
    """Section 2 of the paper: the trace lasso depends on X beyond its row space."""
    X, _ = union_of_subspaces(3, 3, 12, 8, seed=1)
    stretch = np.diag(np.logspace(0.0, 1.5, 8))
    Z = CASS(3, lam=None).fit(X).coefficients_
    stretched = CASS(3, lam=None).fit(X @ stretch).coefficients_
    assert np.linalg.norm(Z - stretched) > 0.1 * np.linalg.norm(Z)


@pytest.mark.parametrize("estimator", [SSC(alpha=None), LSR(lam=None), CASS(lam=None)], ids=repr)
def test_sample_outside_the_span_of_the_others(estimator):
    X, _ = union_of_subspaces(2, 2, 10, 8, seed=0)
    X = np.vstack([X, np.eye(8)[:1]])
    with pytest.warns(UserWarning, match="1 of 21 samples are not in the span"):
        Z = clone(estimator).set_params(n_clusters=2).fit(X).coefficients_
    assert not Z[:, 20].any()
    assert np.abs(Z[:, :20]).sum(axis=0).min() > 0.0


@pytest.mark.parametrize(
    "seed",
    [0, np.int64(3), np.random.default_rng(1), np.random.RandomState(1), None],
    ids=lambda seed: type(seed).__name__,
)
def test_kinds_of_random_state(seed):
    X, y = union_of_subspaces(2, 2, 10, 6, seed=0)
    assert segmentation_error(y, LSR(2, random_state=seed).fit_predict(X)) == 0.0


@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_fit_is_deterministic(estimator):
    X, _ = union_of_subspaces(3, 4, 12, 8, seed=4, noise=0.05)
    first = clone(estimator).set_params(n_clusters=3, random_state=5).fit(X)
    second = clone(estimator).set_params(n_clusters=3, random_state=5).fit(X)
    np.testing.assert_array_equal(first.coefficients_, second.coefficients_)
    np.testing.assert_array_equal(first.labels_, second.labels_)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SSC(9), "n_clusters=9 for n_samples=4"),
        (SSC(0), "n_clusters must be an integer of at least 1, got 0"),
        (SSC(2.0), "n_clusters must be an integer"),
        (SSC(2, random_state="x"), "random_state"),
        (SSC(2, alpha=-1.0), "alpha must be a finite number greater than 0, got -1.0"),
        (SSC(2, tol=0.0), "tol"),
        (SSC(2, max_iter=0), "max_iter"),
        (LSR(2, lam=0.0), "lam must be a finite number greater than 0, got 0.0"),
        (LRR(2, lam=np.inf), "lam"),
        (LRR(2, tol=np.nan), "tol"),
        (CASS(2, lam="a"), "lam"),
        (CASS(2, max_iter=1.5), "max_iter"),
    ],
    ids=repr,
)
def test_bad_parameters(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(np.random.default_rng(0).standard_normal((4, 2)))


@pytest.mark.parametrize("estimator", [SSC(max_iter=1), LRR(lam=1.0, max_iter=1), CASS(max_iter=1)])
def test_max_iter_warns(estimator):
    X, _ = union_of_subspaces(3, 3, 12, 8, seed=1, noise=0.05)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        fitted = clone(estimator).set_params(n_clusters=3).fit(X)
    assert fitted.n_iter_ == 1


def test_clean_data_does_not_warn():
    X, _ = union_of_subspaces(3, 3, 12, 8, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for estimator in ALL:
            clone(estimator).set_params(n_clusters=3).fit(X)
