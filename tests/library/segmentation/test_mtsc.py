"""MTSC and SBL: the updates against a plain statement, descent, lemmas, invariances."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from privclust.metrics import l2_error, segmentation_error
from privclust.segmentation import MTSC, SBL, SSC
from privclust.segmentation.mtsc_solver import (
    Schedule,
    restart_variances,
    simplex_projections,
    solve,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def subspaces(rng, n_features=26, dim=11, n_clusters=4, n_each=16):
    """Unit-norm samples (D, N) of random subspaces, and their labels."""
    blocks = []
    for _ in range(n_clusters):
        basis = np.linalg.qr(rng.standard_normal((n_features, dim)))[0]
        blocks.append(basis @ rng.standard_normal((dim, n_each)))
    X = np.concatenate(blocks, axis=1)
    return X / np.linalg.norm(X, axis=0), np.repeat(np.arange(n_clusters), n_each)


def constant(n_iter, noise_variance, weight_penalty):
    return Schedule(np.full(n_iter, noise_variance), weight_penalty, n_iter)


def plain_objective(X, variances, weights, noise_variance, weight_penalty):
    """Objective (16) as printed, entry n = j of task j left out."""
    n = X.shape[1]
    total = weight_penalty * np.sum(weights**2)
    for j in range(n):
        others = np.arange(n) != j
        Xj, precisions = X[:, others], (1.0 / variances @ weights[:, j])[others]
        sigma = noise_variance * np.eye(X.shape[0]) + (Xj / precisions) @ Xj.T
        total += X[:, j] @ np.linalg.solve(sigma, X[:, j])
        total += np.linalg.slogdet(np.diag(precisions) + Xj.T @ Xj / noise_variance)[1]
        total += np.log(variances[others]).sum(axis=0) @ weights[:, j]
    return total


def plain_projection(v):
    u = np.sort(v)[::-1]
    sums = np.cumsum(u) - 1.0
    last = np.flatnonzero(u * np.arange(1, v.size + 1) > sums)[-1]
    return np.maximum(v - sums[last] / (last + 1), 0.0)


def plain_moments(X, variances, weights, noise_variance):
    """Z and E from the N x N posterior of every task, without the determinant lemma."""
    n = X.shape[1]
    Z, E = np.zeros((n, n)), np.zeros((n, n))
    for j in range(n):
        others = np.arange(n) != j
        Xj, precisions = X[:, others], (1.0 / variances @ weights[:, j])[others]
        covariance = np.linalg.inv(np.diag(precisions) + Xj.T @ Xj / noise_variance)
        Z[others, j] = covariance @ Xj.T @ X[:, j] / noise_variance
        E[others, j] = Z[others, j] ** 2 + np.diag(covariance)
    return Z, E


def plain_updates(E, variances, weights, weight_penalty):
    n = E.shape[0]
    new = variances.copy()
    for row in range(n):
        for i in range(n):
            users = np.arange(n) != row
            if weights[i, users].sum() > 1e-10:
                new[row, i] = weights[i, users] @ E[row, users] / weights[i, users].sum()
    if weight_penalty is None:
        return new, weights
    updated = np.empty_like(weights)
    for j in range(n):
        others = np.arange(n) != j
        costs = (E[others, j, None] / new[others] + np.log(new[others])).sum(axis=0)
        updated[:, j] = plain_projection(-costs / (2.0 * weight_penalty))
    return new, updated


CASES = {
    "more samples than features": lambda rng: rng.standard_normal((5, 14)),
    "fewer samples than features": lambda rng: rng.standard_normal((12, 8)),
    "rank deficient": lambda rng: rng.standard_normal((9, 3)) @ rng.standard_normal((3, 12)),
    "duplicates": lambda rng: np.tile(rng.standard_normal((4, 5)), 3),
    "a zero sample": lambda rng: rng.standard_normal((4, 10)) * (np.arange(10) > 0),
    "subspaces": lambda rng: subspaces(rng, 8, 3, 3, 7)[0],
    "more samples than are eliminated together": lambda rng: rng.standard_normal((7, 40)),
}


@pytest.fixture(params=CASES)
def X(request):
    return CASES[request.param](np.random.default_rng(list(CASES).index(request.param)))


@pytest.mark.parametrize("weight_penalty", [None, 0.5, 20.0])
def test_solver_does_the_plain_updates(X, weight_penalty):
    n = X.shape[1]
    start = np.random.default_rng(1).uniform(0.5, 2.0, (n, n))
    variances, weights, n_iter, nu = start, np.eye(n), 12, 1e-2
    for iteration in range(n_iter):
        Z, E = plain_moments(X, variances, weights, nu)
        objective = plain_objective(X, variances, weights, nu, weight_penalty or 0.0)
        if iteration + 1 < n_iter:
            variances, weights = plain_updates(E, variances, weights, weight_penalty)
    run = solve(X, constant(n_iter, nu, weight_penalty), start)
    np.testing.assert_allclose(run.coefficients, Z, atol=1e-9)
    np.testing.assert_allclose(run.variances, variances, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(run.weights, weights, atol=1e-8)
    # at W = I the objective leaves lambda_jj of task j out altogether
    assert run.objective[-1] == pytest.approx(objective, rel=1e-10)


@pytest.mark.parametrize("weight_penalty", [None, 0.3, 5.0, 100.0])
@pytest.mark.parametrize("noise_variance", [1e-1, 1e-5])
def test_objective_never_rises(X, weight_penalty, noise_variance):
    n = X.shape[1]
    start = np.random.default_rng(2).uniform(0.1, 3.0, (n, n))
    run = solve(X, constant(80, noise_variance, weight_penalty), start)
    assert np.diff(run.objective).max() <= 1e-9 * np.abs(run.objective).max()
    assert run.objective[-1] < run.objective[0]


@pytest.mark.parametrize("weight_penalty", [None, 5.0])
def test_stretched_steps_never_raise_the_objective(weight_penalty):
    X, _ = subspaces(np.random.default_rng(21), 10, 4, 3, 8)
    stretched = Schedule(np.full(1, 1e-3), weight_penalty, max_iter=400, tol=1e-5)
    run = solve(X, stretched, np.ones((24, 24)))
    assert run.converged
    assert np.diff(run.objective).max() <= 1e-9 * np.abs(run.objective).max()
    if weight_penalty is not None:
        return  # W has many minima, and other steps end in others
    plain = solve(X, constant(1500, 1e-3, None), np.ones((24, 24)))
    assert run.objective[-1] < plain.objective[run.objective.size]
    assert run.objective[-1] == pytest.approx(plain.objective[-1], abs=1e-2 * 24 * 23)


@pytest.mark.parametrize("estimator", [MTSC(3), SBL(3)], ids=["MTSC", "SBL"])
def test_little_is_left_of_the_descent_where_it_stops(estimator):
    """A tolerance that any decrease meets stops at the first iteration it may: that is convicted.

    At 1e-5, as for motions, whose noise is like this.
    """
    rng = np.random.default_rng(22)
    X = (subspaces(rng, 30, 4, 3, 20)[0] + 0.02 * rng.standard_normal((30, 60))).T
    noisy = {"components_per_cluster": 4, "noise_start": 100.0, "noise_variance": 10.0}
    estimator.set_params(**noisy, prior_variance=1e-3, n_restarts=0, random_state=0)
    on, stopped, hasty = (
        estimator.set_params(tol=tol, max_iter=1500).fit(X).objective_history_
        for tol in (0.0, 1e-5, 1e-2)
    )
    assert stopped.size > estimator.n_annealing + 10
    first = on[estimator.n_annealing]
    assert first - stopped[-1] > 0.8 * (first - on[-1])
    assert first - hasty[-1] < 0.8 * (first - on[-1])


def test_starts_and_the_lowest_objective():
    rng = np.random.default_rng(23)
    X = (subspaces(rng, 30, 4, 3, 12)[0] + 0.01 * rng.standard_normal((30, 36))).T
    noisy = {"components_per_cluster": 4, "noise_start": 30.0, "noise_variance": 3.0}
    run = {s: MTSC(3, start=s, n_restarts=0, **noisy).fit(X) for s in ("equal", "ssc", "both")}
    assert run["both"].restart_objectives_.shape == (2,)
    best = run[("equal", "ssc")[int(np.argmin(run["both"].restart_objectives_))]]
    np.testing.assert_allclose(run["both"].coefficients_, best.coefficients_, atol=0.1)
    assert run["both"].noise_history_[-1] == best.noise_history_[-1]
    assert run["ssc"].noise_history_[0] == run["ssc"].noise_history_[-1]  # no annealing


def test_the_penalty_is_in_units_of_the_number_of_samples():
    X, _ = subspaces(np.random.default_rng(24), 8, 3, 2, 6)
    model = MTSC(weight_penalty=0.5, n_restarts=0, max_iter=100).fit(X.T)
    unit = X * np.sqrt(12) / np.linalg.norm(X)
    run = solve(unit, Schedule(model.noise_history_, 6.0, max_iter=100), np.ones((12, 12)))
    np.testing.assert_allclose(model.task_weights_, run.weights, atol=1e-6)


def test_the_bound_has_the_gradient_of_the_objective():
    rng = np.random.default_rng(3)
    X, n, nu, beta = rng.standard_normal((4, 7)), 7, 0.1, 0.7
    variances, weights = rng.uniform(0.3, 2.0, (n, n)), rng.dirichlet(np.ones(n), n).T
    _, E = plain_moments(X, variances, weights, nu)
    users = weights.sum(axis=1) - weights.T  # entry (n, i)
    gradient = users / variances - E @ weights.T / variances**2
    costs = (1.0 / variances).T @ E + np.log(variances).sum(axis=0)[:, None] - np.log(variances).T
    weight_gradient = costs + 2.0 * beta * weights
    for _ in range(12):
        n_, i = rng.integers(n, size=2)
        step = np.zeros((n, n))
        step[n_, i] = 1e-5
        rise = plain_objective(X, variances + step, weights, nu, beta)
        rise -= plain_objective(X, variances - step, weights, nu, beta)
        assert rise / 2e-5 == pytest.approx(gradient[n_, i], rel=1e-5, abs=1e-6)
        rise = plain_objective(X, variances, weights + step, nu, beta)
        rise -= plain_objective(X, variances, weights - step, nu, beta)
        assert rise / 2e-5 == pytest.approx(weight_gradient[n_, i], rel=1e-5, abs=1e-6)


def test_where_it_stops_is_stationary():
    X, _ = subspaces(np.random.default_rng(4), 6, 2, 2, 6)
    nu, beta, n = 1e-1, 2.0, 12
    run = solve(X, constant(4000, nu, beta), np.ones((n, n)))
    here = plain_objective(X, run.variances, run.weights, nu, beta)
    rng = np.random.default_rng(5)
    for _ in range(20):
        variances = run.variances * np.exp(1e-4 * rng.standard_normal((n, n)))
        weights = 1e-4 * rng.dirichlet(np.ones(n), n).T + (1 - 1e-4) * run.weights
        assert plain_objective(X, variances, weights, nu, beta) > here - 1e-4


def test_simplex_projection():
    rng = np.random.default_rng(7)
    for scale in (1e-3, 1.0, 1e6):
        V = scale * rng.standard_normal((30, 17))
        V[3] = 1.0
        expected = np.stack([plain_projection(v) for v in V])
        found = simplex_projections(V)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)


def test_lemma_1_gives_block_sparse_coefficients():
    X, y = subspaces(np.random.default_rng(8), 20, 4, 4, 9)
    X = np.random.default_rng(9).standard_normal((20, 20)) @ X  # far from orthogonal
    errors = []
    for noise_variance in (1e-3, 1e-5, 1e-7):
        schedule = Schedule(np.geomspace(1e-1, noise_variance, 150), 5.0, 150)
        Z = solve(X / np.linalg.norm(X, axis=0), schedule, np.ones((36, 36))).coefficients
        errors.append(l2_error(Z, y))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-6


def test_lemma_2_as_noise_falls_the_objective_counts_dimensions():
    """As nu falls, (16) grows by log(1 / nu) for each dimension of the points that a point uses.

    In general position a point of a d-dimensional subspace needs d, and only its own subspace has
    so few; a solution that uses all subspaces needs D, the dimension of the space.
    """
    d, n_subspaces, D = 4, 3, 10
    X, y = subspaces(np.random.default_rng(0), D, d, n_subspaces, 8)
    starts = {d: np.where(y[:, None] == y, 1.0, 1e-14), D: np.ones((len(y), len(y)))}
    for dimension, start in starts.items():
        found = [
            solve(X, Schedule(np.array([nu]), 3.0 * len(y), max_iter=100), start)
            for nu in (1e-8, 1e-10)
        ]
        slope = (found[1].objective[-1] - found[0].objective[-1]) / np.log(100.0) / len(y)
        assert slope == pytest.approx(dimension, abs=0.05)
        assert (l2_error(found[1].coefficients, y) < 1e-5) == (dimension == d)


@pytest.mark.parametrize("estimator", [SBL(), MTSC(n_restarts=1)], ids=["SBL", "MTSC"])
def test_rotations_scale_and_added_features_change_nothing(estimator):
    X, _ = subspaces(np.random.default_rng(10), 8, 3, 3, 8)
    Q = np.linalg.qr(np.random.default_rng(11).standard_normal((15, 8)))[0]
    expected = estimator.fit(X.T).coefficients_
    objective = estimator.objective_history_
    np.testing.assert_allclose(estimator.fit((37.0 * Q @ X).T).coefficients_, expected, atol=1e-6)
    # stretched steps enlarge rounding tenfold, where they are the longest before one is taken back
    np.testing.assert_allclose(estimator.objective_history_, objective, rtol=1e-6)


def test_invertible_maps_change_nothing_without_noise():
    X, y = subspaces(np.random.default_rng(12), 12, 5, 3, 12)
    Q = np.random.default_rng(13).standard_normal((12, 12))
    for data in (X, Q @ X):
        model = MTSC(3, noise_variance=1e-8, random_state=0).fit(data.T)
        assert segmentation_error(y, model.labels_) == 0.0
        assert l2_error(model.coefficients_, y) < 0.01


def test_column_scaling_hurts_ssc_and_not_sbl_or_mtsc():
    """Eqs. (17)-(18) without the translation: Y = X Phi."""
    rng = np.random.default_rng(14)
    X, y = subspaces(rng, 16, 6, 4, 14)
    scaled = X * np.exp(rng.uniform(-1.5, 1.5, X.shape[1]))
    errors = {}
    for name, model in {"ssc": SSC(4, alpha=None), "sbl": SBL(4), "mtsc": MTSC(4)}.items():
        for data_name, data in {"unit": X, "scaled": scaled}.items():
            errors[name, data_name] = l2_error(model.fit(data.T).coefficients_, y)
    assert errors["ssc", "scaled"] > errors["ssc", "unit"] + 0.1
    assert errors["sbl", "scaled"] < errors["sbl", "unit"] + 0.05
    assert errors["mtsc", "scaled"] < 0.02
    assert errors["mtsc", "scaled"] < errors["sbl", "scaled"] < errors["ssc", "scaled"]


def test_weights_of_sbl_never_move():
    X, _ = subspaces(np.random.default_rng(15), 10, 4, 3, 8)
    shared = {"n_restarts": 1, "max_iter": 120, "tol": 0.0}
    sbl = SBL(**shared).fit(X.T)
    np.testing.assert_array_equal(sbl.task_weights_, np.eye(24))
    assert sbl.effective_tasks_ == 1.0


def test_tasks_share_their_prior_and_restarts_help():
    X, y = subspaces(np.random.default_rng(16))
    model = MTSC(4, random_state=0).fit(X.T)
    np.testing.assert_allclose(model.task_weights_.sum(axis=0), 1.0)
    assert model.task_weights_[y[:, None] != y].sum() < 0.05 * y.size
    assert 2.0 < model.effective_tasks_ < 17.0
    assert model.restart_objectives_.min() < model.restart_objectives_[0]
    assert model.objective_history_[-1] <= model.restart_objectives_.min()
    assert segmentation_error(y, model.labels_) == 0.0
    sbl = SBL(4, random_state=0).fit(X.T)
    assert l2_error(model.coefficients_, y) < 0.2 * l2_error(sbl.coefficients_, y)


def test_restart_variances():
    two_blocks = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
    start = restart_variances(two_blocks, 0.25)
    np.testing.assert_allclose(start, np.kron(np.eye(2), np.ones((3, 3))) * 0.75 + 0.25)
    np.testing.assert_array_equal(restart_variances(np.zeros((3, 3)), 0.5), 0.5 + np.eye(3) / 2)


def test_same_bytes_twice():
    X, _ = subspaces(np.random.default_rng(17), 8, 3, 3, 8)
    first, second = (MTSC(3, random_state=0).fit(X.T) for _ in range(2))
    for name in ("coefficients_", "task_weights_", "objective_history_", "labels_"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {"noise_start": 0.0},
        {"noise_variance": -1.0},
        {"prior_variance": np.nan},
        {"start": "lsr"},
        {"tol": -1e-3},
        {"n_restarts": -1},
        {"n_annealing": 0},
        {"max_iter": 10},
        {"weight_penalty": 0.0},
        {"components_per_cluster": 2},
        {"components_per_cluster": 0, "n_clusters": 2},
    ],
)
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MTSC(**parameters).fit(np.eye(4))


@pytest.mark.parametrize("X", [np.ones((1, 3)), np.ones(4), [[1.0, np.nan], [0.0, 1.0]]])
def test_bad_data(X):
    with pytest.raises(ValueError, match=r"sample|array|NaN"):
        MTSC().fit(X)


def test_warns_when_not_converged():
    X, _ = subspaces(np.random.default_rng(18), 8, 3, 3, 8)
    with pytest.warns(ConvergenceWarning, match="max_iter=100"):
        SBL(max_iter=100).fit(X.T)


def test_components_per_cluster_projects_and_measures_the_noise():
    rng = np.random.default_rng(20)
    X, y = subspaces(rng, 30, 3, 3, 15)
    sigma = 1e-3
    noisy = X + sigma * rng.standard_normal(X.shape)
    model = MTSC(3, components_per_cluster=3, noise_start=1e3, noise_variance=1.0, random_state=0)
    model.fit(noisy.T)
    assert model.noise_history_[-1] == pytest.approx(sigma**2, rel=0.3)
    assert segmentation_error(y, model.labels_) == 0.0
    U = np.linalg.svd(noisy)[0][:, :9]
    np.testing.assert_allclose(U.T @ noisy @ model.coefficients_, U.T @ noisy, atol=100 * sigma)
    assert np.isfinite(model.fit(X.T).coefficients_).all()  # nothing left out


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1e150])
def test_any_scale_is_finite(scale):
    X, _ = subspaces(np.random.default_rng(19), 6, 2, 2, 6)
    assert np.isfinite(MTSC(2, n_restarts=1).fit(scale * X.T).coefficients_).all()
