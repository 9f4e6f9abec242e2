"""k-means on a noisy histogram over a uniform grid (EUGkM)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.hints import Bounds, RandomState
from privclust.core.lloyd import nearest_center
from privclust.core.progress import logged
from privclust.core.validation import Real
from privclust.kmeans._grid import Grid, grid_shape
from privclust.kmeans._lloyd import CenterClusterer
from privclust.kmeans._noise_check import detected_clusters
from privclust.privacy import Neighbours
from privclust.privacy.bounds import bounds_of, declared_box, separated_points
from privclust.privacy.estimator import PrivateEstimator
from privclust.privacy.groups import unit_of
from privclust.privacy.hidden import noise_message, warn_of_noise
from privclust.privacy.measurements import Gaussian, Laplace, analytic_gaussian_sigma
from privclust.privacy.noise import noise_source, unprotected_generator
from privclust.privacy.sensitivity import Sensitivity, check_neighbours

_SIZE_SHARE = 0.01  # share of the budget for the number of rows, if that is private


@dataclass(eq=False, repr=False)
class EUGkM(PrivateEstimator, CenterClusterer):
    r"""k-means on the noisy counts of a uniform grid (extended uniform grid k-means).

    The declared box is cut into about

    .. math:: M = (N \epsilon / 10)^{2 d / (2 + d)}

    equal cells. The rows in each are counted in one pass, and the noisy counts are released.
    Everything else is computed from them: k-means on the middles of the cells, weighted by their
    noisy counts, from `n_init` starts.

    The formula balances the noise of many cells against the coarseness of few. It is for Laplace
    noise of scale :math:`1 / \epsilon`. Other noise, of standard deviation :math:`\sigma`, has the
    epsilon of Laplace noise with the same deviation, :math:`\sqrt 2 / \sigma`.

    ===========  ==================  ==============================  ============================
    neighbours   `delta`             sensitivity of the counts       noise on each count
    ===========  ==================  ==============================  ============================
    add_remove   0                   l1, 1                           Laplace, scale 1 / epsilon
    replace_one  0                   l1, 2 (one less, one more)      Laplace, scale 2 / epsilon
    add_remove   above 0             l2, 1                           Gaussian, analytic
    replace_one  above 0             l2, sqrt 2                      Gaussian, analytic
    ===========  ==================  ==============================  ============================

    M depends on the number of rows N. With replace-one N is public. With add-remove it is private:
    without `n_samples`, 1 % of the budget is spent on a noisy count of the rows. (Its error is
    about :math:`100 / \epsilon`, small compared with any N that gives more than about 20 cells; the
    noise of the counts grows by 1 %.)

    With groups, such as persons with several rows each, each of the n rows of a group has weight
    1 / n, and N is the number of groups. A group adds to the counts the mean of its rows'
    contributions, so the table holds for groups (``privclust.privacy.groups``), and all groups
    weigh the same.

    One row changes at most two counts, however many there are, so Laplace noise is usually smaller
    here: at epsilon 1, Gaussian noise with a delta of 1e-6 has at least twice its deviation.

    Parameters
    ----------
    n_clusters : int
        k.
    epsilon : float
        Privacy parameter, in nats.
    delta : float
        0 for pure epsilon-DP with Laplace noise; in (0, 1) for (epsilon, delta)-DP with Gaussian.
    neighbours : {"replace_one", "add_remove"}
    bounds : (low, high), mapping or None
        Lower and upper bound of the features, known without the data: numbers or arrays of shape
        (n_features,); or (low, high) for each column of a frame, by its name. None computes them
        from the data, with a warning and without a guarantee.
    n_samples : int or None
        N, if it is roughly known without the data. None: the number of rows, see above.
    n_init : int
        Number of starts, random centers away from each other and from the border
        (`privclust.privacy.bounds.separated_points`); the one with the least sum of squared errors
        on the noisy counts is kept. Su et al. use 30.
    max_iter : int
        Most updates of the centers from one start.
    max_cells : int
        A grid with more cells is refused. Memory is about 24 bytes a cell.
    missing : {"drop", "middle"}
        A row with an entry that is missing (NaN, None) or cannot be read as a number is left out,
        and counted by `left_out_`; or the entry is replaced by the middle of the bounds.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction. Noise for
        release takes about 30 microseconds a cell: half a minute for 10^6 cells.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Within the box.
    labels_ : ndarray of shape (n_samples,)
        Index of the nearest center of each row of X; -1 for a row that is left out. Not private: do
        not publish it. Pickles do not contain it.
    is_detected_ : ndarray of shape (n_clusters,)
        Whether a cluster is distinguishable from noise: its total is above 3 standard deviations,
        and noise moves its center by less than about a quarter of the distance to the next.
    left_out_ : privclust.privacy.NoisyCount or None
        Noisy number of rows (of persons, with `groups`) that are left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    n_cells_ : int
        M, rounded to a grid.
    grid_shape_ : tuple of int
        Cells along each axis.
    noisy_counts_ : ndarray of shape (n_cells_,)
        The released counts, signed, in C order.
    n_iter_ : int
        Updates of the centers from the start that was kept.

    Notes
    -----
    Noisy counts stay signed, as in the authors' code: setting negative ones to 0 adds a bias to
    every empty cell, and most cells of a fine grid are empty. A weighted mean over signed counts
    needs two rules. A cluster stays where it was if its total is at most the standard deviation of
    its noise, :math:`\sigma` times the root of its number of cells: its mean would be noise. Other
    means are clipped to the box. Both rules use released counts only. The sum of squared errors may
    be negative and need not fall, so the iteration may end by `max_iter`.

    References
    ----------
    D. Su, J. Cao, N. Li, E. Bertino and H. Jin, "Differentially private k-means clustering",
    CODASPY 2016.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-0.5, 0.05, (500, 2)), rng.normal(0.5, 0.05, (500, 2))])
    >>> model = EUGkM(2, epsilon=1.0, bounds=(-1.0, 1.0), random_state=0).fit(X)
    >>> bool(np.abs(np.abs(model.cluster_centers_) - 0.5).max() < 0.1), model.n_cells_
    (True, 56)
    """

    is_detected_: np.ndarray = field(init=False)
    n_cells_: int = field(init=False)
    grid_shape_: tuple[int, ...] = field(init=False)
    noisy_counts_: np.ndarray = field(init=False)
    n_iter_: int = field(init=False)

    _TYPES: ClassVar = [np.float64, np.float32]
    _constraints: ClassVar = {
        "delta": Real(inclusive=True, below=1.0),
        "neighbours": check_neighbours,
    }

    n_clusters: int = 8
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 0.0
    neighbours: Literal["replace_one", "add_remove"] = "replace_one"
    bounds: Bounds | None = None
    n_samples: int | None = None
    n_init: int = 30
    max_iter: int = 100
    max_cells: int = 10_000_000
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups, any_number=self.bounds is not None)
        X, relation = records.rows, self._relation()
        source = noise_source(self.random_state)
        box, _, leaks = declared_box(X, bounds_of(self))
        asks = self.n_samples is None and relation is Neighbours.ADD_REMOVE
        size_noise = self._noise(_SIZE_SHARE)[0] if asks else None
        noise, epsilon_like = self._noise(1.0 - _SIZE_SHARE if asks else 1.0)
        lines = [size_noise.statement(f"number of {unit_of(records.groups)}s")] if asks else []
        lines.append(noise.statement("cell counts"))
        definition = "approximate" if self.delta > 0 else "pure"
        promise = self._promised(lines, definition, source, leaks, records)
        left_out = self._charged(promise, records, source)
        n_samples = self.n_samples
        if n_samples is None:
            n_samples = left_out.n_counted(self.left_out_, relation)
        n_samples = float(n_samples)
        if asks:
            n_samples = max(float(size_noise.release(n_samples, source)), 1.0)
        shape = grid_shape(n_samples, epsilon_like, X.shape[1], self.max_cells)
        grid = Grid(box, shape)
        counts = noise.release(grid.histogram(X, records.groups), source)
        # of Laplace noise with scale 1 / epsilon_like
        deviation = math.sqrt(2.0) / epsilon_like
        rng = unprotected_generator(source)
        self._cluster(grid, counts, deviation, rng)
        self.labels_ = records.labels(nearest_center(X, self.cluster_centers_))
        self.n_cells_, self.grid_shape_, self.noisy_counts_ = len(counts), shape, counts
        self._check_noise(grid, deviation)
        return self

    def _check_noise(self, grid, deviation):
        totals, n_cells, _, _ = grid.statistics(self.noisy_counts_, self.cluster_centers_)
        error = grid.statistics(np.ones(self.n_cells_), self.cluster_centers_)[3]
        spread = math.sqrt(error / self.n_cells_)  # of cells about their center
        noise = deviation * np.sqrt(n_cells)
        self.is_detected_ = detected_clusters(totals, noise, self.cluster_centers_, spread)
        warn_of_noise(noise_message(self.is_detected_))

    def _noise(self, part):
        """Return the noise of counts at a share of the budget.

        Also the epsilon of Laplace noise with this deviation on counts that change by 1. Shares are
        those of epsilon or of rho, which add up over releases.
        """
        relation = self._relation()
        is_replaced = relation is Neighbours.REPLACE_ONE
        proof = "one cell loses a row, another gains it" if is_replaced else "one cell, one row"
        n_changed = 2.0 if is_replaced else 1.0
        if self.delta == 0:
            epsilon = part * self.epsilon
            sensitivity = Sensitivity(n_changed, "l1", relation, proof)
            share = epsilon / n_changed  # privacy loss of each count that changes
            return Laplace(sensitivity, epsilon, entries=n_changed), share
        sensitivity = Sensitivity(math.sqrt(n_changed), "l2", relation, proof)
        whole = analytic_gaussian_sigma(sensitivity, self.epsilon, self.delta)
        # rho is proportional to 1 / sigma^2
        sigma = whole / math.sqrt(part)
        return Gaussian(sensitivity, sigma), math.sqrt(2.0) / sigma

    def _cluster(self, grid, counts, deviation, rng):
        shape = (self.n_clusters, len(grid.shape))
        least = math.inf
        for _ in logged(range(self.n_init), self.n_init, "EUGkM: starts"):
            start = grid.box.center + separated_points(*shape, rng) * grid.box.half_widths
            centers, error, n_iter = _run(grid, counts, start, deviation, self.max_iter)
            if error < least:
                self.cluster_centers_, self.n_iter_, least = centers, n_iter, error


def _run(grid, counts, centers, deviation, max_iter):
    """Iterate weighted k-means from one start; return centers, their error and the updates."""
    totals, n_cells, sums, error = grid.statistics(counts, centers)
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        # a sum of n noisy counts has sqrt(n) times the noise of one; a center below it stays
        is_heard = totals > deviation * np.sqrt(n_cells)
        moved = centers.copy()
        moved[is_heard] = grid.box.clipped(sums[is_heard] / totals[is_heard, None])
        if np.array_equal(moved, centers):
            break
        centers = moved
        totals, n_cells, sums, error = grid.statistics(counts, centers)
    return centers, error, n_iter
