"""Sparse subspace clustering."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from privclust.core.compiled import REORDER, kernel
from privclust.segmentation._projections import largest_magnitude, row_space, spanned_by_others
from privclust.segmentation._self_expressive import SelfExpressiveClusterer

_RELAXATION = 1.6  # over-relaxation of a step, between 1 (none) and 2
_CHECK_EVERY = 10  # iterations between two computations of the residuals
_ADAPT_UNTIL = 200  # iterations after which the penalties are constant
_BALANCE = 2.0  # squared ratio of relative residuals from which a penalty changes
_MAX_CHANGE = 5.0  # largest factor of such a change
_BLOCK_ENTRIES = 2**17  # coefficients iterated together: three arrays of 1 MB stay in the cache
_LEAST_BLOCK = 16  # least number of columns, for any number of samples


@dataclass(eq=False, repr=False)
class SSC(SelfExpressiveClusterer):
    r"""Sparse subspace clustering (Elhamifar and Vidal).

    With samples ``x_j`` in the columns of X and ``z_jj = 0``, solves for every sample j

    .. math::
        \min_z \|z\|_1 + \frac{\lambda_z}{2} \|x_j - X z\|_2^2,
        \qquad \lambda_z = \alpha / \min_i \max_{k \neq i} |x_i^T x_k|,

    or, with ``alpha=None``, ``min ||z||_1`` subject to ``x_j = X z`` (the convex form of eq. 4 of
    the MTSC paper). With ``affine=True`` also ``sum(z) = 1``, for subspaces off the origin.

    Columns are solved by over-relaxed ADMM (Douglas-Rachford form) in the r coordinates of the row
    space of X, as many together as fit the processor's cache. An iteration for b of them takes two
    matrix products of size (b, n, r) and one fused pass. Every column has its own penalty and
    leaves when it has converged. In these coordinates the noise-free problem depends on the row
    space only, so the result does not change when X is multiplied by an invertible matrix; the
    noisy one does not change under orthogonal matrices and scaling.

    Parameters
    ----------
    n_clusters : int or None, default None
        Number of clusters; None estimates it by the eigengap.
    alpha : float or None, default 800
        Weight of the data term, positive; in the noisy form 1 is the least for which no
        coefficient vector of a linear problem vanishes. None asks for equality (noise-free data).
    affine : bool, default False
        Whether coefficients sum to one.
    tol : float, default 2e-3
        A column has converged when its primal residual relative to the norm of its coefficients
        and its dual residual relative to the norm of its dual are both at most `tol`.
    max_iter : int, default 5000
        Largest number of iterations.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        For the k-means starts of the spectral clustering.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_samples, n_samples)
        Z, with exact zeros; column j represents sample j.
    affinity_matrix_, labels_, n_clusters_
        See `SelfExpressiveClusterer`.
    n_iter_ : int
        Iterations until the last column converged.

    Warns
    -----
    ConvergenceWarning
        If columns are left unconverged at `max_iter`.
    UserWarning
        If ``alpha=None`` and samples are not in the span of the others: their coefficients are 0.

    References
    ----------
    E. Elhamifar and R. Vidal, "Sparse subspace clustering: algorithm, theory, and applications",
    TPAMI 35(11), 2013, eqs. (5), (13), (14), (24).

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.segmentation import SSC
    >>> rng = np.random.default_rng(0)
    >>> lines = np.repeat(rng.standard_normal((2, 5)), 6, axis=0)
    >>> X = lines * rng.standard_normal((12, 1))
    >>> labels = SSC(n_clusters=2, alpha=None, random_state=0).fit_predict(X)
    >>> bool(np.ptp(labels[:6]) == 0 and np.ptp(labels[6:]) == 0 and labels[0] != labels[6])
    True
    """

    _: KW_ONLY
    alpha: float | None = 800.0
    affine: bool = False
    tol: float = 2e-3
    max_iter: int = 5000

    def _coefficients(self, samples):
        basis, weights = _data_term(samples, self.alpha, self.affine)
        n_samples = samples.shape[1]
        # only equalities can be impossible to meet
        tasks = np.flatnonzero(spanned_by_others(basis[:, np.isinf(weights)]))
        coefficients = np.zeros((n_samples, n_samples))
        self.n_iter_, n_open = 0, 0
        size = max(_BLOCK_ENTRIES // n_samples, _LEAST_BLOCK)
        for start in range(0, tasks.size, size):
            block = tasks[start : start + size]
            columns = _Columns(basis, weights, block)
            n_iter, n_left = columns.solve(self.tol, self.max_iter)
            self.n_iter_, n_open = max(self.n_iter_, n_iter), n_open + n_left
            coefficients[:, block] = columns.solution.T
        self._warn_unconverged(n_open, n_samples)
        return coefficients


def _data_term(samples, alpha, affine):
    """Return Q (n, q) with orthonormal columns and weights w (q,), inf for equalities.

    The problem of column j is ``min ||z||_1 + 1/2 sum_k w_k (q_k' (z - e_j))^2`` with ``z_j = 0``:
    with X = U S V' the data term is that of Q = V, w = lambda S^2. For the affine constraint X is
    centred (which changes nothing on ``1'z = 1``), and Q has the further column 1/sqrt(n).
    """
    samples = samples / largest_magnitude(samples)  # the problem does not depend on scale
    n_samples = samples.shape[1]
    values, basis = row_space(samples, centre=affine)
    if alpha is None:
        weights = np.full(values.size, np.inf)
    else:
        gram = np.abs(samples.T @ samples)
        np.fill_diagonal(gram, 0.0)
        largest = gram.max(axis=1)
        related = largest[largest > 0.0]  # a sample orthogonal to all others sets no scale
        weights = alpha / (related.min() if related.size else 1.0) * values**2
    if affine:
        basis = np.column_stack([basis, np.full(n_samples, n_samples**-0.5)])
        weights = np.append(weights, np.inf)
    return np.ascontiguousarray(basis), weights


class _Columns:
    """The columns that have not converged yet; row i of each array belongs to sample tasks[i].

    One array y carries the iteration (scaled dual u = clip(y, -t, t) with t = 1/penalty, sparse
    coefficients c = y - u; at the sample's own entry c = 0 and u = y); v = c - u is kept as well.
    """

    def __init__(self, basis, weights, tasks):
        self.basis, self.weights, self.tasks = basis, weights, tasks
        self.solution = np.zeros((tasks.size, basis.shape[0]))
        self.rows = np.arange(tasks.size)  # of the solution
        self.targets = basis[tasks]
        self.y = self.targets @ basis.T  # the least-norm solution with z_jj left free ...
        size = np.abs(self.y).mean(axis=1)  # ... has the size of the coefficients
        self.threshold = np.maximum(size, 1e-12) / 3.0
        self.y[self.rows, tasks] = 0.0
        self.v = self.y - 2.0 * self._dual()
        self._set_shrinkage()

    def solve(self, tol, max_iter):
        """Iterate; return the number of iterations and of columns still open."""
        if not self.tasks.size:
            return 0, 0
        for iteration in range(1, max_iter + 1):
            step = ((self.v @ self.basis - self.targets) * self.shrinkage) @ self.basis.T
            sizes = np.empty((self.tasks.size, 4))
            _advance(self.y, self.v, step, self.tasks, self.threshold, sizes)
            if iteration % _CHECK_EVERY and iteration < max_iter:
                continue
            primal, dual = self._residuals(*np.sqrt(sizes.T))
            is_open = (primal > tol) | (dual > tol)
            if not is_open.all():
                self._retire(is_open)
                if not self.tasks.size:
                    return iteration, 0
            if iteration <= _ADAPT_UNTIL:
                self._adapt(primal[is_open], dual[is_open])
        # columns that have not converged are stored as they are
        n_open = self.tasks.size
        self._retire(np.zeros(n_open, dtype=bool))
        return max_iter, n_open

    def _dual(self):
        """Return the dual variables: y clipped to the threshold, except each row's own entry."""
        limit = self.threshold[:, None]
        u = np.clip(self.y, -limit, limit)
        own = np.arange(self.tasks.size), self.tasks
        u[own] = self.y[own]
        return u

    def _residuals(self, primal, dual, coefficients, multipliers):
        """Return the relative primal and dual residuals of each column."""
        least_norm = np.linalg.norm(self.targets, axis=1)
        tiny = np.finfo(np.float64).tiny
        primal = primal / np.maximum(np.maximum(coefficients, least_norm), tiny)
        return primal, dual / np.maximum(multipliers, tiny)

    def _retire(self, is_open):
        """Store the sparse coefficients of the columns that are not open and drop them."""
        self.solution[self.rows[~is_open]] = (self.y - self._dual())[~is_open]
        for name in ("y", "v", "tasks", "rows", "targets", "threshold"):
            setattr(self, name, getattr(self, name)[is_open])
        self._set_shrinkage()

    def _adapt(self, primal, dual):
        """Move the penalties so that primal and dual residuals fall together."""
        # a residual may be exactly 0
        ratio = np.sqrt(np.maximum(primal, 1e-300) / np.maximum(dual, 1e-300))
        change = np.clip(ratio, 1.0 / _MAX_CHANGE, _MAX_CHANGE)
        change[(ratio < _BALANCE) & (ratio > 1.0 / _BALANCE)] = 1.0
        u = self._dual()
        self.y += u / change[:, None] - u  # scaled duals are in units of the penalty
        self.v = self.y - 2.0 * u / change[:, None]
        self.threshold = self.threshold / change
        self._set_shrinkage()

    def _set_shrinkage(self):
        """Set w / (w + penalty), 1 for equalities, (columns, q)."""
        is_equality = np.isinf(self.weights)
        # 1 stands in for inf, which would give inf / inf
        w = np.where(is_equality, 1.0, self.weights)
        self.shrinkage = np.where(is_equality, 1.0, w / (w + 1.0 / self.threshold[:, None]))


@kernel(fastmath=REORDER, error_model="python")
def _advance(y, v, step, tasks, threshold, sizes):
    """One step: a = v - step (the projection), y += relaxation * (a - c), then v = c - u.

    sizes[i] are the squared norms of a - c, of the change of c, of c and of u.
    """
    gaps, changes = np.empty(y.shape[1]), np.empty(y.shape[1])
    for i in range(y.shape[0]):
        t = threshold[i]
        j = tasks[i]
        own = v[i, j] - step[i, j]
        primal, dual, coefficients, multipliers = own * own, 0.0, 0.0, 0.0
        own = y[i, j] + _RELAXATION * own
        y[i, j], v[i, j], step[i, j] = 0.0, 0.0, 0.0  # the loop passes over the own entry
        for k in range(y.shape[1]):
            value = y[i, k]
            c = value - min(max(value, -t), t)
            gap = v[i, k] - step[i, k] - c
            value += _RELAXATION * gap
            u = min(max(value, -t), t)
            gaps[k], changes[k] = gap, value - u - c
            y[i, k] = value
            v[i, k] = value - 2.0 * u
        # a loop of its own, so that the sums vectorise
        for k in range(y.shape[1]):
            u = min(max(y[i, k], -t), t)
            primal += gaps[k] * gaps[k]
            dual += changes[k] * changes[k]
            coefficients += (y[i, k] - u) * (y[i, k] - u)
            multipliers += u * u
        y[i, j] = own
        v[i, j] = -own
        sizes[i, 0], sizes[i, 1] = primal, dual
        sizes[i, 2], sizes[i, 3] = coefficients, multipliers
