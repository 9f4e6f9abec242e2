"""Multi-task subspace clustering and its single-task case, sparse Bayesian learning.

`mtsc_solver` describes the derivation, the updates and our additions to the paper.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from privclust.core.progress import logged
from privclust.core.validation import NOT_NEGATIVE, Integer, check_integer
from privclust.core.warn import warn_caller
from privclust.segmentation._projections import largest_magnitude, row_space
from privclust.segmentation._self_expressive import SelfExpressiveClusterer
from privclust.segmentation._ssc import SSC
from privclust.segmentation.mtsc_solver import Schedule, restart_variances, solve

_SSC_ALPHA, _SSC_TOL = 800.0, 5e-4  # of a start from SSC: its authors' weight for motions
# of samples without a common neighbour, relative to `prior_variance`: where their variances restart
_RESTART_FLOOR = 0.2
_COARSER = 10.0  # factor of `tol` to which all runs descend before the best one continues
_LEAST_NOISE_UNIT = 1e-12  # where the coordinates left out are zero


@dataclass(eq=False, repr=False)
class _EvidenceClusterer(SelfExpressiveClusterer):
    """The base class of SBL and MTSC: parameters, units, restarts, fitted attributes."""

    _: KW_ONLY
    noise_start: float = 3e-2
    noise_variance: float = 1e-6
    prior_variance: float = 1.0
    start: Literal["equal", "ssc", "both"] = "equal"
    n_restarts: int = 0
    components_per_cluster: int | None = None
    n_annealing: int = 100
    tol: float = 1e-4
    max_iter: int = 500

    _constraints: ClassVar = {"n_restarts": Integer(0), "tol": NOT_NEGATIVE}

    def _schedule(self, noise_unit, n_samples):
        """Return the schedule of a run; SBL's, with W = I."""
        noise = noise_unit * np.geomspace(self.noise_start, self.noise_variance, self.n_annealing)
        return Schedule(noise, None, self.max_iter, self.tol)

    def _coordinates(self, samples):
        """Return X in principal coordinates with mean squared norm 1, and the unit of nu."""
        n_samples = samples.shape[1]
        values, basis = row_space(samples / largest_magnitude(samples))
        noise_unit = 1.0
        if self.components_per_cluster is not None:
            n_kept = self.components_per_cluster * self.n_clusters
            # the unit of nu is the mean square of the coordinates left out, relative to those kept
            n_left_out = max(min(samples.shape) - n_kept, 1)
            residual = np.sum(values[n_kept:] ** 2) / n_left_out
            values, basis = values[:n_kept], basis[:, :n_kept]
            noise_unit = max(residual / (np.sum(values**2) or 1.0), _LEAST_NOISE_UNIT)
        X = values[:, None] * basis.T
        return X * np.sqrt(n_samples) / (np.linalg.norm(values) or 1.0), noise_unit

    def _coefficients(self, samples):
        check_integer("max_iter", self.max_iter, minimum=self.n_annealing)
        if self.components_per_cluster is not None and self.n_clusters is None:
            raise ValueError("components_per_cluster needs n_clusters")
        X, noise_unit = self._coordinates(samples)
        schedule = self._schedule(noise_unit, X.shape[1])
        runs = []
        is_one_of_many = self.start == "both" or self.n_restarts > 0
        first = replace(schedule, tol=_COARSER * self.tol) if is_one_of_many else schedule
        if self.start != "ssc":
            runs.append(solve(X, first, np.full((X.shape[1],) * 2, float(self.prior_variance))))
        if self.start != "equal":
            start = restart_variances(self._sparse_coefficients(samples), _RESTART_FLOOR)
            # without annealing: this start already has the structure that annealing would look for
            runs.append(solve(X, first.last(), self.prior_variance * start))
        for _ in logged(range(self.n_restarts), self.n_restarts, "MTSC: descents"):
            start = restart_variances(runs[-1].coefficients, _RESTART_FLOOR)
            runs.append(solve(X, first, self.prior_variance * start))
        self.restart_objectives_ = np.array([run.objective[-1] for run in runs])
        best = runs[int(np.argmin(self.restart_objectives_))]
        return self._keep(best.continued(X, schedule) if is_one_of_many else best)

    def _sparse_coefficients(self, samples):
        """Return Z of SSC: affine and with noise if X is projected, else its equality form."""
        noisy = self.components_per_cluster is not None
        alpha = _SSC_ALPHA if noisy else None
        # one cluster: only the coefficients are used
        return SSC(1, alpha=alpha, affine=noisy, tol=_SSC_TOL).fit(samples.T).coefficients_

    def _keep(self, run):
        """Set the fitted attributes from the run that was chosen and return its coefficients."""
        self.variances_, self.task_weights_ = run.variances, run.weights
        self.effective_tasks_ = run.weights.shape[0] / float(np.sum(run.weights**2))
        self.objective_history_ = run.objective
        self.noise_history_ = run.noise_variances
        self.n_iter_, self.converged_ = run.objective.size, run.converged
        if not run.converged:
            warn_caller(
                f"iterations still lowered the objective by more than tol={self.tol:g} per "
                f"coefficient after max_iter={self.max_iter}",
                ConvergenceWarning,
            )
        return run.coefficients


class SBL(_EvidenceClusterer):
    r"""Sparse Bayesian learning: every sample represented on its own (W = I, rho = 0).

    Minimises objective (16) of the MTSC paper with the weights fixed to the identity, which is the
    evidence of N separate sparse Bayesian regressions (Tipping 2001), by expectation-maximisation
    with an annealed noise variance.

    Variances are in units of the mean squared norm of the samples, so that X may have any scale.

    Parameters
    ----------
    n_clusters : int or None, default None
        Number of clusters; None estimates it by the eigengap.
    noise_start, noise_variance : float, default 3e-2, 1e-6
        First and last noise variance nu of the geometric annealing, positive. For noise-free data
        the last one is a tolerance; for noisy data it is the variance of the noise in a coordinate.
    prior_variance : float, default 1.0
        lambda_ni at the start, positive. Far below 1 the first coefficients follow the inner
        products ``x_n' x_j``, so that near neighbours win: for data with curved or nearly dependent
        subspaces, such as motions (1e-3 there).
    start : {"equal", "ssc", "both"}, default "equal"
        The start: equal variances, or the two-step affinity of SSC (`restart_variances`), which
        needs no annealing and has none. SSC is affine and allows for noise if
        `components_per_cluster` is given, else it is the equality form.
    n_restarts : int, default 0
        Number of repetitions of the annealing from the two-step affinity of the last answer. All
        runs go to ten times `tol`, and the one with the lowest objective continues to `tol`.
    components_per_cluster : int or None, default None
        None works in all coordinates of the row space of X. Otherwise X is projected on its first
        ``components_per_cluster * n_clusters`` principal directions (not centred), and
        `noise_start` and `noise_variance` are in units of the mean squared coordinate left out, an
        estimate of the noise. For noisy data of known rank, such as 4 for the trajectories of a
        rigid motion.
    n_annealing : int, default 100
        Iterations from `noise_start` to `noise_variance`.
    tol : float, default 1e-4
        After the annealing, stop when ten iterations lowered the objective by at most this per
        coefficient and iteration.
    max_iter : int, default 500
        Largest number of iterations of a run, at least `n_annealing`.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        For the k-means starts of the spectral clustering; the descent is deterministic.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_samples, n_samples)
        Z, the posterior means (13); column j represents sample j.
    affinity_matrix_, labels_, n_clusters_
        See `SelfExpressiveClusterer`.
    variances_ : ndarray of shape (n_samples, n_samples)
        Lambda; column i is the diagonal of Lambda_i, of the z_nj.
    task_weights_ : ndarray of shape (n_samples, n_samples)
        W; column j is on the simplex and mixes the precisions of task j, eq. (12).
    effective_tasks_ : float
        ``1 / mean_j ||w_j||^2``: 1 for separate tasks, n_samples for one common prior.
    objective_history_, noise_history_ : ndarray of shape (n_iter_,)
        Objective (16) at the start of each iteration of the run that was kept, and its nu. While nu
        is constant, the objective does not rise.
    restart_objectives_ : ndarray of shape (n_runs,)
        Objective at ten times `tol` of each run: from equal variances, from SSC, the restarts.
    n_iter_ : int
        Iterations of the run that was kept.
    converged_ : bool
        Whether its last iterations lowered the objective by at most `tol`.

    Warns
    -----
    ConvergenceWarning
        If the run that was kept had not converged at `max_iter`.

    References
    ----------
    M. Tipping, "Sparse Bayesian learning and the relevance vector machine", JMLR 1, 2001.
    Y. Wang, D. Wipf, Q. Ling, W. Chen and I. Wassell, "Multi-task learning for subspace
    segmentation", ICML 2015, eqs. (9)-(16).

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.segmentation import SBL
    >>> rng = np.random.default_rng(0)
    >>> planes = rng.standard_normal((2, 2, 6))
    >>> X = np.concatenate([rng.standard_normal((8, 2)) @ plane for plane in planes])
    >>> labels = SBL(n_clusters=2, random_state=0).fit_predict(X)
    >>> bool(np.ptp(labels[:8]) == 0 and np.ptp(labels[8:]) == 0 and labels[0] != labels[8])
    True
    """

    variances_: np.ndarray
    task_weights_: np.ndarray
    effective_tasks_: float
    objective_history_: np.ndarray
    noise_history_: np.ndarray
    restart_objectives_: np.ndarray
    converged_: bool


@dataclass(eq=False, repr=False)
class MTSC(_EvidenceClusterer):
    r"""Multi-task subspace clustering (Wang, Wipf, Ling, Chen and Wassell).

    Every sample is represented sparsely by the others, as in sparse Bayesian learning, but tasks
    share their prior variances: task j mixes the precisions of all tasks with weights w_j on the
    simplex, which are learnt. Tasks of one subspace end up using the same samples, so that the
    affinity is dense within clusters and empty between them. Objective (16) of the paper is
    minimised from our own starts by our own updates (the paper's are in a supplement that is not
    available).

    Variances are in units of the mean squared norm of the samples, so that X may have any scale.

    Parameters
    ----------
    n_clusters : int or None, default None
        Number of clusters; None estimates it by the eigengap. The coefficients do not depend on it.
    weight_penalty : float, default 0.3
        beta of rho(W) = beta ||W||_F^2 in units of n_samples, since the rest of the objective is a
        sum over the samples; positive. Small values leave the tasks separate, large ones make all
        tasks share one prior (see `effective_tasks_`).
    noise_start, noise_variance : float, default 3e-2, 1e-6
        See `SBL`.
    prior_variance : float, default 1.0
        See `SBL`.
    start : {"equal", "ssc", "both"}, default "equal"
        See `SBL`.
    n_restarts : int, default 5
        See `SBL`.
    components_per_cluster : int or None, default None
        See `SBL`.
    n_annealing, tol, max_iter : default 100, 1e-4, 500
        See `SBL`.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        For the k-means starts of the spectral clustering; the descent is deterministic.

    Attributes
    ----------
    coefficients_, affinity_matrix_, labels_, n_clusters_
        See `SelfExpressiveClusterer`.
    variances_, task_weights_, effective_tasks_
        Lambda, W and ``1 / mean_j ||w_j||^2``; see `SBL`.
    objective_history_, noise_history_, restart_objectives_, n_iter_, converged_
        See `SBL`.

    Warns
    -----
    ConvergenceWarning
        If the run that was kept had not converged at `max_iter`.

    References
    ----------
    Y. Wang, D. Wipf, Q. Ling, W. Chen and I. Wassell, "Multi-task learning for subspace
    segmentation", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.segmentation import MTSC
    >>> rng = np.random.default_rng(0)
    >>> planes = rng.standard_normal((2, 2, 6))
    >>> X = np.concatenate([rng.standard_normal((8, 2)) @ plane for plane in planes])
    >>> labels = MTSC(n_clusters=2, random_state=0).fit_predict(X)
    >>> bool(np.ptp(labels[:8]) == 0 and np.ptp(labels[8:]) == 0 and labels[0] != labels[8])
    True
    """

    _: KW_ONLY
    n_restarts: int = 5
    weight_penalty: float = 0.3

    def _schedule(self, noise_unit, n_samples):
        schedule = super()._schedule(noise_unit, n_samples)
        return replace(schedule, weight_penalty=self.weight_penalty * n_samples)
