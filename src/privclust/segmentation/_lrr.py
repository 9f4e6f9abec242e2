"""Low-rank representation."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from privclust.core.warn import warn_caller
from privclust.segmentation._projections import largest_magnitude, row_space
from privclust.segmentation._self_expressive import SelfExpressiveClusterer

_CHECK_EVERY = 5  # iterations between two computations of the duality gap
_SMOOTHING_DECAY = 0.98  # factor of the smoothing per iteration, until it is small for `tol`


@dataclass(eq=False, repr=False)
class LRR(SelfExpressiveClusterer):
    r"""Low-rank representation (Liu et al.).

    With samples in the columns of X, Z is the minimiser of

    .. math:: \|Z\|_* + \lambda \|E\|_{2,1} \quad\text{subject to}\quad X = X Z + E,

    where the l2,1 norm is the sum of the column norms, or, with ``lam=None``, of the nuclear norm
    subject to ``X = X Z``: then ``Z = V V'`` with ``X = U S V'`` the thin SVD (the shape
    interaction matrix; section 2 of the MTSC paper).

    The noisy form is solved in the coordinates ``Z = V W``, ``E = U F`` (matrices r x n, r the rank
    of X). The nuclear norm is the least over positive definite P of ``1/2 tr(W' P^-1 W) + 1/2 tr
    P`` and each ``||f_j||`` the least over ``h > 0`` of ``(||f_j||^2 / h + h) / 2``, so P, h and W
    are found in turn. W follows from weighted ridge regressions that share one eigendecomposition,
    under a smoothing that falls slowly. At every W the matrix ``Y = lam F / h`` meets the
    stationarity ``S Y = P^-1 W``, so that ``<Y, S V'> / max(||S Y||_2, max_j ||y_j|| / lam)`` is a
    lower bound (the dual is to maximise ``<Y, S V'>`` subject to ``||S Y||_2 <= 1``, ``||y_j|| <=
    lam``). The result comes with a duality gap, which the inexact ALM of Liu et al. does not give.
    It does not change under orthogonal matrices applied to X; scaling X by c scales `lam` by 1/c.

    Parameters
    ----------
    n_clusters : int or None, default None
        Number of clusters; None estimates it by the eigengap.
    lam : float or None, default None
        Weight lambda of the error, positive, in units of one over data. None: no error.
    tol : float, default 1e-3
        Largest duality gap relative to the objective.
    max_iter : int, default 2000
        Largest number of iterations.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        For the k-means starts of the spectral clustering.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_samples, n_samples)
        Z; column j represents sample j.
    affinity_matrix_, labels_, n_clusters_
        See `SelfExpressiveClusterer`.
    n_iter_ : int
        Iterations done; 1 for the closed form.
    duality_gap_ : float
        Relative duality gap of the result; 0 for the closed form.

    Warns
    -----
    ConvergenceWarning
        If the duality gap exceeds `tol` at `max_iter`.

    References
    ----------
    G. Liu, Z. Lin, S. Yan, J. Sun, Y. Yu and Y. Ma, "Robust recovery of subspace structures by
    low-rank representation", TPAMI 35(1), 2013, eqs. (4), (7) and Theorem 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.segmentation import LRR
    >>> X = np.kron(np.eye(2), np.array([[1.0], [2.0], [-1.0]]))
    >>> Z = LRR(n_clusters=2, random_state=0).fit(X).coefficients_
    >>> bool(np.allclose(Z @ Z, Z) and np.allclose(Z[:3, 3:], 0.0))
    True
    """

    duality_gap_: float = field(init=False)

    _: KW_ONLY
    lam: float | None = None
    tol: float = 1e-3
    max_iter: int = 2000

    def _coefficients(self, samples):
        scale = largest_magnitude(samples)
        values, basis = row_space(samples / scale)
        if self.lam is None or values.size == 0:
            self.n_iter_, self.duality_gap_ = 1, 0.0
            return basis @ basis.T
        # only the l2,1 norm depends on the scale of X
        reduced, self.duality_gap_, self.n_iter_ = _solve(
            values, basis, self.lam * scale, self.tol, self.max_iter
        )
        if self.duality_gap_ > self.tol:
            warn_caller(
                f"LRR did not reach tol={self.tol:g} in max_iter={self.max_iter} iterations: "
                f"relative duality gap {self.duality_gap_:.2g}",
                ConvergenceWarning,
            )
        return basis @ reduced


def _solve(values, basis, lam, tol, max_iter):
    """Minimise ``||W||_* + lam ||F||_2,1`` with ``S V' = S W + F``; all (r, n).

    Return W, the relative duality gap and the number of iterations.
    """
    s = values[:, None]
    data = s * basis.T
    rank, n_samples = data.shape
    p = np.eye(rank)
    h = np.linalg.norm(data, axis=0)
    # the problem is convex: any positive start leads to the same result
    h = np.maximum(0.1 * h, 1e-3 * h.max())  # also for samples that are zero
    bound = 0.0
    for iteration in range(1, max_iter + 1):
        # Y = (S P S + diag(h) / lam)^-1 S V'; then W = P S Y and F = (h / lam) Y
        y = _ridge(s * p * values, h / lam, data)
        w = (p * values) @ y
        errors = np.linalg.norm(y, axis=0) * (h / lam)
        squares, vectors = np.linalg.eigh(w @ w.T)  # squared singular values of W
        squares = np.maximum(squares, 0.0)
        norm = np.sqrt(squares).sum()
        objective = norm + lam * errors.sum()
        if iteration % _CHECK_EVERY == 0 or iteration == max_iter:
            bound = max(bound, _dual_bound(y, s, data, lam))
            gap = (objective - bound) / objective
            if gap <= tol:
                break
        decay = _SMOOTHING_DECAY**iteration
        smooth_p = max(tol * objective / (4.0 * rank), norm / rank * decay)
        smooth_h = max(tol * objective / (4.0 * n_samples * lam), errors.mean() * decay)
        p = (vectors * np.sqrt(squares + smooth_p**2)) @ vectors.T
        h = np.hypot(errors, smooth_h)
    return w, float(gap), iteration


def _ridge(system, noise, data):
    """Return the columns ``(system + noise_j I)^-1 data_j``, (r, n), for a semidefinite system."""
    # one eigendecomposition serves all ridges
    values, vectors = np.linalg.eigh(system)
    return vectors @ ((vectors.T @ data) / (np.maximum(values, 0.0)[:, None] + noise))


def _dual_bound(y, s, data, lam):
    """Return the dual objective at the largest feasible multiple of Y."""
    scaled = s * y
    largest = np.sqrt(np.linalg.eigvalsh(scaled @ scaled.T)[-1])
    return (y * data).sum() / max(largest, np.linalg.norm(y, axis=0).max() / lam)
