r"""Descent on the objective of multi-task subspace clustering and sparse Bayesian learning.

The model (Wang, Wipf, Ling, Chen and Wassell, ICML 2015). Samples are the columns x_j of X (D x N)
and X_j is X with column j set to zero. Task j represents x_j by the other samples:

- eq. (9): x_j = X_j z_j + noise of variance nu in each of the D coordinates;
- eqs. (10)-(12): z_j is Gaussian with mean zero and covariance Gamma_j, and
  Gamma_j^-1 = sum_i w_ij Lambda_i^-1, with Lambda_i the diagonal of column i of the variances
  lambda_ni, and w_j on the probability simplex;
- eq. (13): the estimate is the posterior mean z_j = Gamma_j X_j' Sigma_j^-1 x_j with
  Sigma_j = nu I + X_j Gamma_j X_j';
- eqs. (14)-(16): Lambda and W minimise, with rho(W) = beta ||W||_F^2,

  L = sum_j [ x_j' Sigma_j^-1 x_j + log|Gamma_j^-1 + X_j' X_j / nu|
              + sum_i w_ij log|Lambda_i| ] + rho(W).

x_j does not depend on z_jj. Entry n = j of task j is therefore left out of every sum below (with
it, L would be larger by log sum_i w_ij / lambda_ji + sum_i w_ij log lambda_ji >= 0, a looser bound
on (15)). By the determinant lemma, gamma_nj being the diagonal of Gamma_j,

  L = sum_j [ x_j' Sigma_j^-1 x_j + log|Sigma_j| - D log nu
              + sum_{n != j} (sum_i w_ij log lambda_ni - log gamma_nj) ] + beta ||W||_F^2.     (16')

Updates. The paper's are in a supplement that is not available; these follow from (16). Two bounds
hold for all Lambda and W, with equality at the current ones if z_j is (13) and S_nj the posterior
variance of z_nj, i.e. entry n of the diagonal of (Gamma_j^-1 + X_j' X_j / nu)^-1:

  x_j' Sigma_j^-1 x_j <= ||x_j - X_j z_j||^2 / nu + sum_n z_nj^2 sum_i w_ij / lambda_ni,
  log|Gamma_j^-1 + X_j' X_j / nu| <= sum_n S_nj sum_i w_ij / lambda_ni + const,

the second because log|diag(a) + M| is concave in a with gradient S. With E_nj = z_nj^2 + S_nj the
sum of the bounds depends on the parameters through

  sum_j sum_i w_ij sum_{n != j} (E_nj / lambda_ni + log lambda_ni) + beta ||W||_F^2

and is minimised exactly in Lambda, then exactly in W (Lambda fixed), so that L does not increase:

  E step:  z_nj = gamma_nj x_n' Sigma_j^-1 x_j,  S_nj = gamma_nj - gamma_nj^2 x_n' Sigma_j^-1 x_n;
  Lambda:  lambda_ni = sum_{j != n} w_ij E_nj / sum_{j != n} w_ij   (kept where no task uses it);
  W:       w_j = projection of -c_j / (2 beta) on the simplex,
           c_ij = sum_{n != j} (E_nj / lambda_ni + log lambda_ni).

W = I decouples the tasks: lambda_nj = E_nj, sparse Bayesian learning (Tipping 2001).

After the annealing of nu the steps in log Lambda are stretched by a factor that grows from 1 while
L falls (adaptive over-relaxation, Salakhutdinov and Roweis 2003); a step that would raise L is
replaced by the plain one, so that L never rises and its stationary points are the same. The plain
updates need three to four times as many iterations for the same L on filmed motions.

Additions to the paper: nu is annealed, since L is rough for small nu; the first iterations keep W =
I; and among several starts, such as the two-step affinity of SSC or of the last result, the run
with the lowest L is completed. From the ideal block-sparse solution, L ends far lower than from
equal variances: local minima limit the plain descent, not L.

Cost. One iteration is two products of M N^2 multiplications, M = D (D + 1) / 2, three of N^3, one
of D N^2, and N symmetric inverses of order D; memory is O(N^2 + D^2 N). L does not change when X is
multiplied by an orthogonal matrix, nor (up to a constant) when rows of zeros are left out: the
estimators replace X by its principal coordinates, so that D is its rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privclust.segmentation._mtsc_kernels import invert_and_solve

__all__ = ["WINDOW", "Schedule", "Solution", "restart_variances", "solve"]

WINDOW = 10  # iterations over which a decrease is measured: after an undone step, steps are short
_GROWTH, _LONGEST = 1.3, 10.0  # growth of the factor that stretches steps; its largest value
_LEAST_VARIANCE = 1e-300


@dataclass(frozen=True)
class Schedule:
    """The parameters of one descent on (16) at each iteration.

    `noise_variances` (n_annealing,) are nu, positive; the last one applies afterwards.
    `weight_penalty` is beta; if it is None, W = I and rho(W) is left out (sparse Bayesian
    learning). `max_iter` is at least n_annealing. After the annealing the descent stops
    once the last `WINDOW` iterations lowered L by at most `tol` per coefficient each, in their
    mean.
    """

    noise_variances: np.ndarray
    weight_penalty: float | None
    max_iter: int = 100
    tol: float = 0.0

    def noise_variance(self, iteration: int) -> float:
        """Return nu of an iteration."""
        return float(self.noise_variances[min(iteration, self.noise_variances.size - 1)])

    def last(self) -> Schedule:
        """Return the schedule without its annealing."""
        return replace(self, noise_variances=self.noise_variances[-1:])


@dataclass(frozen=True)
class Solution:
    """The result of a descent on (16); matrices are (N, N), the histories (n_iter,).

    `coefficients` is Z, eq. (13), at the last Lambda and W with a computed objective; column i of
    `variances` is the diagonal of Lambda_i, column j of `weights` mixes the variances of task j.
    `objective` is L at the start of each iteration, for the nu of that iteration;
    `converged` says whether its last decreases were at most the tolerance.
    """

    coefficients: np.ndarray
    variances: np.ndarray
    weights: np.ndarray
    objective: np.ndarray
    noise_variances: np.ndarray
    converged: bool

    def continued(self, X: np.ndarray, schedule: Schedule) -> Solution:
        """Continue the descent, without annealing, for the rest of `max_iter` iterations."""
        # the first objective of the rest repeats the last one here
        n_left = schedule.max_iter - self.objective.size + 1
        if n_left < 2:
            return self
        rest = replace(schedule.last(), max_iter=n_left)
        weights = None if schedule.weight_penalty is None else self.weights
        run = solve(X, rest, self.variances, weights)
        return replace(
            run,
            objective=np.append(self.objective, run.objective[1:]),
            noise_variances=np.append(self.noise_variances, run.noise_variances[1:]),
        )


class _EStep:
    """Posterior moments of all tasks; owns the work arrays of one descent."""

    def __init__(self, X: np.ndarray) -> None:
        rank, n_tasks = X.shape
        self.X = X
        a, b = np.tril_indices(rank)
        self.products = X[a] * X[b]  # packed lower triangles of x_n x_n'
        self.inverses = np.empty_like(self.products)
        self.solved = np.empty((rank, n_tasks))
        self.log_determinants = np.empty(n_tasks)
        self.squared_norms = np.einsum("dn,dn->n", X, X)
        self.cross = np.empty((n_tasks, n_tasks))
        self.leverage = np.empty((n_tasks, n_tasks))

    def __call__(self, gamma: np.ndarray, noise_variance: float) -> float:
        """Fill `moments` with E and return the part of (16') that depends on Sigma.

        Entry (j, j) of `gamma` must be zero.
        """
        np.matmul(self.products, gamma, out=self.inverses)
        invert_and_solve(self.inverses, noise_variance, self.X, self.solved, self.log_determinants)
        np.matmul(self.products.T, self.inverses, out=self.leverage)
        np.matmul(self.X.T, self.solved, out=self.cross)
        # Sigma_j >= nu I + g x_n x_n' bounds the posterior variance from below
        floor = gamma * noise_variance / (noise_variance + gamma * self.squared_norms[:, None])
        variances = np.maximum(gamma - gamma**2 * self.leverage, floor)
        # a new array at each call: `stretched_step` keeps the one before
        self.moments = (gamma * self.cross) ** 2 + variances
        data_term = np.trace(self.cross) + self.log_determinants.sum()
        return data_term - self.X.size * np.log(noise_variance)


def _prior_variances(variances: np.ndarray, task_weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return gamma with a zero diagonal and the prior part of (16') without rho.

    `task_weights` has w_j in row j; None stands for the identity.
    """
    if task_weights is None:
        gamma, prior_term = variances.copy(), 0.0
    else:
        precisions = (1.0 / variances) @ task_weights.T
        logs = np.log(variances)
        # the terms n = j, which (16') leaves out
        own = np.einsum("ji,ji->", task_weights, logs)
        log_precisions = np.log(precisions)
        prior_term = task_weights.sum(axis=0) @ logs.sum(axis=0) - own
        prior_term += log_precisions.sum() - np.trace(log_precisions)
        gamma = np.reciprocal(precisions, out=precisions)
    np.fill_diagonal(gamma, 0.0)
    return gamma, prior_term


def _update_variances(
    moments: np.ndarray, variances: np.ndarray, task_weights: np.ndarray
) -> np.ndarray:
    """Return the minimiser of the bound in Lambda."""
    if task_weights is None:
        updated = moments.copy()
        np.fill_diagonal(updated, np.diagonal(variances))
        return updated
    users = task_weights.sum(axis=0) - task_weights  # entry (n, i): sum of w_ij over j != n
    # no task but n uses lambda_ni: the moments over the users are rounding errors
    used = users > 1e-10
    return np.divide(moments @ task_weights, users, out=variances.copy(), where=used)


def _update_weights(
    moments: np.ndarray, variances: np.ndarray, weight_penalty: float
) -> np.ndarray:
    """Return the minimiser of the bound in W, w_j in row j."""
    logs = np.log(variances)
    costs = moments.T @ (1.0 / variances)  # row j is c_j
    costs += logs.sum(axis=0)
    costs -= logs
    return simplex_projections(costs / (-2.0 * weight_penalty))


def simplex_projections(rows: np.ndarray) -> np.ndarray:
    """Return the Euclidean projections of rows (n, m) on the probability simplex."""
    rows = rows - rows.max(axis=1, keepdims=True)  # against cancellation
    largest = -np.sort(-rows, axis=1)
    thresholds = (np.cumsum(largest, axis=1) - 1.0) / np.arange(1, rows.shape[1] + 1)
    last = np.count_nonzero(largest > thresholds, axis=1) - 1  # of the positive entries
    return np.maximum(rows - np.take_along_axis(thresholds, last[:, None], axis=1), 0.0)


class _Descent:
    """Lambda, W and L at one nu and beta; steps that would raise L are undone."""

    def __init__(
        self, X: np.ndarray, schedule: Schedule, variances: np.ndarray, weights: np.ndarray | None
    ) -> None:
        self.e_step = _EStep(np.ascontiguousarray(X))
        self.schedule, self.variances, self.weights = schedule, variances, weights
        self.stretch = 1.0

    def evaluate(self, iteration: int) -> float:
        self.gamma, objective = _prior_variances(self.variances, self.weights)
        objective += self.e_step(self.gamma, self.schedule.noise_variance(iteration))
        squared = len(self.variances) if self.weights is None else np.sum(self.weights**2)
        return objective + (self.schedule.weight_penalty or 0.0) * squared

    def step(self, stretch: float = 1.0) -> None:
        """Update Lambda, by a stretched step in its logarithm, and W."""
        updated = _update_variances(self.e_step.moments, self.variances, self.weights)
        if stretch > 1.0:
            updated = self.variances * (updated / self.variances) ** stretch
            updated = np.maximum(updated, _LEAST_VARIANCE)
        self.variances = updated
        if self.schedule.weight_penalty is not None:
            self.weights = _update_weights(
                self.e_step.moments, updated, self.schedule.weight_penalty
            )

    def stretched_step(self, iteration: int, objective: float) -> float:
        """Do a stretched step, or the plain one if L would rise, and return L."""
        before = self.variances, self.weights
        moments = self.e_step.moments
        self.step(self.stretch)
        after = self.evaluate(iteration + 1)
        # `not <=` is also true of NaN
        if not after <= objective and self.stretch > 1.0:
            self.variances, self.weights = before
            self.e_step.moments, self.stretch = moments, 1.0
            self.step()
            after = self.evaluate(iteration + 1)
        self.stretch = min(self.stretch * _GROWTH, _LONGEST)
        return after


def solve(
    X: np.ndarray, schedule: Schedule, variances: np.ndarray, weights: np.ndarray | None = None
) -> Solution:
    """Descend on objective (16) from positive variances (N, N); X (D, N) has N >= 2.

    `weights` (N, N) are W at the start, None for W = I.

    Examples
    --------
    >>> X = np.kron(np.eye(2), np.array([[1.0, 2.0, 3.0]]))
    >>> schedule = Schedule(np.geomspace(1e-1, 1e-6, 50), 1.0, max_iter=50)
    >>> Z = solve(X, schedule, np.ones((6, 6))).coefficients
    >>> bool(np.abs(Z[:3, 3:]).max() < 1e-3), bool(np.allclose(X @ Z, X, atol=1e-3))
    (True, True)
    """
    n_samples, n_annealing = X.shape[1], schedule.noise_variances.size
    # `Solution` has w_j in column j, the descent in row j
    rows = None if weights is None else np.ascontiguousarray(weights.T)
    descent, converged = _Descent(X, schedule, variances, rows), False
    # Z has n (n - 1) coefficients off its diagonal
    limit = WINDOW * schedule.tol * n_samples * (n_samples - 1)
    objectives = [descent.evaluate(0)]
    for iteration in range(schedule.max_iter - 1):
        if iteration < n_annealing - 1:
            descent.step()
            objectives.append(descent.evaluate(iteration + 1))
            continue
        objectives.append(descent.stretched_step(iteration, objectives[-1]))
        # L depends on nu: only objectives after the annealing are compared
        if len(objectives) >= n_annealing + WINDOW:
            converged = objectives[-1 - WINDOW] - objectives[-1] <= limit
        if converged:
            break
    nu = np.array([schedule.noise_variance(i) for i in range(len(objectives))])
    weights = descent.weights
    weights = np.eye(n_samples) if weights is None else weights.T.copy()
    Z = descent.gamma * descent.e_step.cross
    return Solution(Z, descent.variances, weights, np.array(objectives), nu, bool(converged))


def restart_variances(coefficients: np.ndarray, floor: float) -> np.ndarray:
    """Start for Lambda from coefficients (N, N): the two-step affinity, with the largest entry 1.

    Samples of one subspace that are not linked have common neighbours; linked samples of different
    subspaces have few. With A = |Z| + |Z|' and P = diag(A 1)^-1/2 A diag(A 1)^-1/2, entry (n, j) is
    that of P^2 relative to the largest of its column off the diagonal, at least `floor` in (0, 1],
    the start of an unlinked sample; the diagonal is 1.
    """
    affinity = np.abs(coefficients)
    affinity = affinity + affinity.T
    degrees = affinity.sum(axis=0)
    degrees[degrees == 0.0] = 1.0
    affinity /= np.sqrt(degrees)[:, None] * np.sqrt(degrees)
    two_steps = affinity @ affinity
    np.fill_diagonal(two_steps, 0.0)
    largest = two_steps.max(axis=0)
    two_steps /= np.where(largest > 0.0, largest, 1.0)
    np.fill_diagonal(two_steps, 1.0)
    return np.maximum(two_steps, floor)
