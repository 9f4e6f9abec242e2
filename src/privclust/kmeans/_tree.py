"""k-means by an adaptive tree of noisy counts, for few features and many clusters."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from privclust.core.hints import Bounds, RandomState
from privclust.core.lloyd import nearest_center
from privclust.core.validation import DELTA
from privclust.decoding import StandardErrors
from privclust.decoding._standard_errors import if_enough
from privclust.kmeans._cells import Cells, children, counts_behind
from privclust.kmeans._lloyd import CenterClusterer
from privclust.kmeans._noise_check import detected_clusters
from privclust.kmeans._round_errors import errors_of_rounds, mean_inertia_of, widths_of_rounds
from privclust.kmeans._weighted import weighted_kmeans
from privclust.kmeans.last_rounds import one_round, round_noise
from privclust.privacy import Neighbours
from privclust.privacy.bounds import bounds_of, declared_box
from privclust.privacy.estimator import PrivateEstimator
from privclust.privacy.hidden import noise_message, warn_of_noise
from privclust.privacy.measurements import Gaussian, analytic_gaussian_sigma
from privclust.privacy.noise import NoiseSource, noise_source, unprotected_generator
from privclust.privacy.sensitivity import Sensitivity, check_neighbours

# Chosen in pilot fits. benchmarks/tree.py checked them, and chose _DECAY, on the half "choose" of
# benchmarks/collection.py.
_TREE_SHARE = 0.84  # share of the budget for the levels; the rest is for the round
_DECAY = 0.6  # share of a level divided by that of the level before
_DEEPEST, _BITS = 11, 62  # deepest level, with 2,048 cells along an axis; bits of a cell's number
_CELLS_A_CLUSTER = 4.0  # approximate number of cells of the first level per cluster
_OPENS = 1.5  # a cell is divided above this count, in sigmas of the next level
_N_INIT = 10  # starts of k-means on the cells
_WITHIN = 0.9  # fraction of a cluster's weight within the radius of the round
_SHORT = 0.25  # move of the round, in radii, up to which standard errors are reliable
# Distance of two clusters, in sums of their spreads, from which both count as separate. Two halves
# of a uniform density are sqrt(3) apart, those of a normal one 1.33. 0.5 is for noise, chosen by
# benchmarks/tree.py --intervals.
_APART = math.sqrt(3.0) + 0.5
_MAX_FEATURES = 10  # a cell has 2^d cells inside


@dataclass(frozen=True)
class _Leaves:
    """The cells that were not divided, as weighted points."""

    points: np.ndarray
    weights: np.ndarray
    widths: np.ndarray  # half of the longest side of the point's cell
    noise: np.ndarray  # standard deviation of the noise on the count of the point's cell


@dataclass(eq=False, repr=False)
class TreeKMeans(PrivateEstimator, CenterClusterer):
    r"""k-means on an adaptive tree of noisy counts.

    For data of one to three features and many clusters, such as places on a map. Up to 10 features
    are accepted; above 3 prefer `CompressiveKMeans`. The rows are read several times, so X must
    be an array or a frame. For streams use a `privclust.sketches.Sketch`.

    1. The declared box is cut into about four equal cells per cluster, and noisy counts of their
       rows are released.
    2. Cells judged to hold rows (`privclust.kmeans._cells.counts_behind`) are halved along every
       axis, level by level, to at most :math:`2^{11}` intervals per axis. Level i (the first is the
       coarsest) has a share of the tree's budget proportional to :math:`0.6^i`.
    3. Weighted k-means is run on the cells that were not divided. Each is represented by
       :math:`2^d` points with the variance of a uniform density, which share its estimated count.
    4. One noisy iteration of Lloyd's algorithm over the rows moves the centers. The offset of a row
       from its center is clipped to a radius, which is computed from the released counts.

    **Sensitivity.** A row is in at most one cell of each level. *Add-remove*: the l2 sensitivity of
    the counts of a level is 1. *Replace-one*: :math:`\sqrt 2`. With groups, each of the n rows of a
    group has weight 1 / n. A group then adds a nonnegative vector of l1 norm 1 to a level, and the
    same bounds hold. The cells of a level depend only on earlier releases, and all shares are
    fixed in advance, so that adaptive composition of Gaussian mechanisms applies to the levels and
    the iteration. The share of a level without cells is not reallocated. For the iteration see
    `privclust.kmeans.last_rounds`, for `left_out_` `privclust.privacy.left_out`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters k, at least 1.
    epsilon : float
        Privacy parameter, above 0, in nats.
    delta : float
        Privacy parameter, in (0, 1).
    neighbours : {"replace_one", "add_remove"}
        Neighbouring relation: one row (or person) is replaced, or one is added or removed.
    bounds : (low, high), mapping or None
        Lower and upper bound of the features, known without the data: numbers or arrays of shape
        (n_features,); or (low, high) for each column of a frame, by its name. None computes them
        from the data, with a warning, and there is no guarantee.
    missing : {"drop", "middle"}
        A row with an entry that is missing (NaN, None) or cannot be read as a number is left out,
        and counted by `left_out_`; or the entry is replaced by the middle of the bounds.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None draws noise that may be released (needs ``privclust[secure]``). Anything else gives
        reproducible noise, for experiments only.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Within the box.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Noisy numbers of rows, or of persons with `groups`.
    weights_ : ndarray of shape (n_clusters,)
        Sizes of at least 1, divided by their sum.
    n_records_ : int or float
        Number of rows (of persons, with `groups`) that count: of ``"replace_one"`` as far as it is
        public, otherwise noisy.
    labels_ : ndarray of shape (n_samples,)
        Index of the nearest center of each row of X; -1 for a row that is left out. Not private: do
        not publish it. Pickles do not contain it.
    is_detected_ : ndarray of shape (n_clusters,)
        Whether a cluster is distinguishable from noise: its size exceeds 3 standard deviations of
        the noise of sizes, and the error of its center by noise is estimated below a quarter of
        the distance to the nearest other center.
    left_out_ : privclust.privacy.NoisyCount or None
        Noisy number of rows (of persons, with `groups`) that are left out. None if
        ``missing="middle"``, or if there is no guarantee.
    guarantee_ : privclust.privacy.Guarantee
    cluster_spreads_ : ndarray of shape (n_clusters, n_features)
        Noisy root mean square of a feature's offsets from the center in each cluster, over all
        features and so the same for each; 0 if noise makes the square negative.
    mean_inertia_ : float
        Noisy mean squared distance of a row to its center, in squared units of the features; 0 if
        noise makes it negative. `standard_errors` has its error. Rows farther from their center
        than twice the radius of the iteration count as if they were there.
    n_cells_ : int
        Number of undivided cells, which were clustered.
    n_levels_ : int
        Number of levels with cells.

    Notes
    -----
    Memory in addition to X is about 18 bytes per row: sorted numbers of cells, then labels.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> places = rng.uniform(-0.9, 0.9, (30, 2))
    >>> X = places[rng.integers(30, size=20_000)] + 0.01 * rng.standard_normal((20_000, 2))
    >>> model = TreeKMeans(30, epsilon=1.0, bounds=(-1.0, 1.0), random_state=0).fit(X)
    >>> distances = np.linalg.norm(places[:, None] - model.cluster_centers_, axis=2).min(axis=1)
    >>> bool(np.median(distances) < 0.01)
    True
    """

    cluster_sizes_: np.ndarray = field(init=False)
    weights_: np.ndarray = field(init=False)
    n_records_: float = field(init=False)
    is_detected_: np.ndarray = field(init=False)
    cluster_spreads_: np.ndarray = field(init=False)
    mean_inertia_: float = field(init=False)
    n_cells_: int = field(init=False)
    n_levels_: int = field(init=False)

    _TYPES: ClassVar = [np.float64, np.float32]
    _constraints: ClassVar[dict[str, Any]] = {"delta": DELTA, "neighbours": check_neighbours}

    n_clusters: int = 8
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    neighbours: Literal["replace_one", "add_remove"] = "replace_one"
    bounds: Bounds | None = None
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups, any_number=self.bounds is not None)
        X = records.rows
        if X.shape[1] > _MAX_FEATURES:
            raise ValueError(
                f"X: got {X.shape[1]} features; TreeKMeans takes {_MAX_FEATURES} at most: "
                "use CompressiveKMeans"
            )
        source = noise_source(self.random_state)
        box, is_outside, leaks = declared_box(X, bounds_of(self))
        X = box.clipped(X) if is_outside else X
        first, noises, of_round = self._noises(X.shape[1])
        lines = [
            noise.statement(f"counts of cells, level {level}")
            for level, noise in enumerate(noises, first)
        ]
        lines.append(of_round.statement("sums, counts and spreads by cluster", units="radii"))
        promise = self._promised(lines, "approximate", source, leaks, records)
        left_out = self._charged(promise, records, source)
        n_samples = None
        if (relation := self._relation()) is Neighbours.REPLACE_ONE:
            n_samples = left_out.n_counted(self.left_out_, relation)
        # neither the cells nor labels are kept: each has 8 bytes per row
        deepest = first + len(noises) - 1
        leaves, self.n_levels_ = _grow(
            Cells(X, box, deepest, records.groups), noises, n_samples, source
        )
        # each cell has 2^d points
        self.n_cells_ = len(leaves.weights) >> X.shape[1]
        rng = unprotected_generator(source)
        centers = weighted_kmeans(leaves.points, leaves.weights, self.n_clusters, _N_INIT, rng)
        radii, how = _radii(leaves, centers), (of_round, source, records.groups)
        made = one_round(X, nearest_center(X, centers), centers, radii, *how)
        # after a longer move many offsets were clipped, so that the move was still too short
        self._is_short = np.linalg.norm(made.centers - centers, axis=1) <= _SHORT * radii
        self._clipped_moves = _clipped_moves(leaves, centers, radii)
        self._shapes = _shapes(leaves, centers)
        centers = box.clipped(made.centers)
        self.cluster_centers_, self.cluster_sizes_ = centers, made.counts
        self.weights_ = made.weights
        self.n_records_ = n_samples or max(float(made.counts.sum()), 1.0)
        self.labels_ = records.labels(nearest_center(X, centers))
        self._round, self.mean_inertia_ = made, mean_inertia_of(made)
        self.cluster_spreads_ = widths_of_rounds([made])
        extent = made.extent * math.sqrt(X.shape[1])
        self.is_detected_ = detected_clusters(made.counts, made.count_noise, centers, extent)
        warn_of_noise(noise_message(self.is_detected_))
        return self

    def standard_errors(self, *, rows: bool = True) -> StandardErrors:
        """Return how far noise and sampling may have moved centers, weights and mean inertia.

        They are computed from released numbers, at no privacy loss. The sampling error is that of
        normal clusters with the measured spread. Weights are sizes divided by their sum.

        Parameters
        ----------
        rows : bool
            Whether the rows are taken as drawn from a population. False: errors by noise only.

        Returns
        -------
        privclust.decoding.StandardErrors
            `is_reliable` marks detected clusters whose errors hold as far as the released numbers
            tell. Such a cluster is separate: any other is at least 2.23 times the sum of both
            spreads, in its direction, away, which pieces of one cloud hardly ever are. And it is
            hardly clipped: the iteration moves its center by at most a quarter of the radius, and
            clipping by at most the standard error, as far as the noisy cells show. If fewer than
            three eighths of all clusters are like this, it is False for all.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        """
        check_is_fitted(self)
        whole = errors_of_rounds([self._round], self.is_detected_)
        is_known = self.is_detected_ & self._is_short & self._are_apart()
        moves, noise = self._clipped_moves
        # what noise explains, at its 95 % level, is no sign of a skewed cluster
        is_known &= np.all(np.abs(moves) <= np.maximum(whole.centers, 2.0 * noise), axis=1)
        return errors_of_rounds([self._round], if_enough(is_known), rows=rows)

    def _are_apart(self) -> np.ndarray:
        """Return for each cluster whether it is separate from all others, (n_clusters,).

        Its spread towards another cluster is the measured spread, of which the cells show the part
        in that direction: pieces of a line are long towards each other.
        """
        centers, found = self.cluster_centers_, np.empty(self.n_clusters, dtype=bool)
        squares = centers.shape[1] * self.cluster_spreads_[:, 0] ** 2
        for j, center in enumerate(centers):  # one by one: all pairs of 10^4 clusters are large
            ways = centers - center
            distances = np.linalg.norm(ways, axis=1)
            ways /= np.maximum(distances, np.finfo(float).tiny)[:, None]
            own = np.einsum("id,de,ie->i", ways, self._shapes[j], ways)
            others = np.einsum("id,ide,ie->i", ways, self._shapes, ways)
            sums = np.sqrt(squares[j] * own) + np.sqrt(squares * others)
            distances[j] = np.inf
            found[j] = np.all(distances >= _APART * sums)
        return found

    def _noises(self, n_features: int) -> tuple[int, list[Gaussian], Gaussian]:
        """Return the first level, the noise of each from there on, and that of the round."""
        relation = self._relation()
        is_replaced = relation is Neighbours.REPLACE_ONE
        proof = "one cell loses a row, another gains it" if is_replaced else "one cell, one row"
        sensitivity = Sensitivity(math.sqrt(2.0) if is_replaced else 1.0, "l2", relation, proof)
        whole = analytic_gaussian_sigma(sensitivity, self.epsilon, self.delta)
        level = round(math.log2(_CELLS_A_CLUSTER * self.n_clusters) / n_features)
        deepest = min(_DEEPEST, _BITS // n_features)
        first = min(max(level, 1), deepest)
        shares = _DECAY ** np.arange(deepest - first + 1)
        shares *= _TREE_SHARE / shares.sum()
        noises = [Gaussian(sensitivity, whole / math.sqrt(share)) for share in shares]
        how = self.neighbours, self.epsilon, self.delta
        return first, noises, round_noise(*how, 1.0 - _TREE_SHARE)


def _grow(
    cells: Cells, noises: list[Gaussian], n_samples: float | None, source: NoiseSource
) -> tuple[_Leaves, int]:
    """Count level by level; return the undivided cells and the number of levels with cells.

    The noises are those of the last levels, to the deepest. If `n_samples` is None, the sum of the
    noisy counts of the first of these levels is used in its place.
    """
    d, first = len(cells.box.low), cells.depth + 1 - len(noises)
    inside = np.arange(2 ** (d * first), dtype=np.int64)
    around, totals = np.zeros(1, dtype=np.int64), np.array([n_samples or 0.0])
    found, n_levels = [], 0
    for number, noise in enumerate(noises):
        level = first + number
        noisy = noise.release(cells.counts(inside, level), source).reshape(
            len(around), len(inside) // max(len(around), 1)
        )
        if n_samples is None and number == 0:
            totals = np.maximum(noisy.sum(axis=1), 1.0)
        counts = counts_behind(noisy, totals, noise.sigma)
        if number:  # a cell is kept whole if all cells inside are estimated as empty
            is_whole = counts.sum(axis=1) == 0.0
            found.append((around[is_whole], totals[is_whole], level - 1))
        is_last = level == cells.depth
        opens = math.inf if is_last else _OPENS * noises[number + 1].sigma
        counts = counts.ravel()
        is_leaf, is_open = (counts > 0.0) & (counts <= opens), counts > opens
        found.append((inside[is_leaf], counts[is_leaf], level))
        around, totals = inside[is_open], counts[is_open]
        n_levels += bool(len(inside))
        inside = children(around, d)  # possibly none: the level's release is then empty
    numbers, counts = (np.concatenate(parts) for parts in list(zip(*found, strict=True))[:2])
    at = np.concatenate([np.full(len(some), level) for some, _, level in found])
    if not len(numbers):  # all cells are estimated as empty: use the whole box
        numbers, counts, at = np.zeros(1, dtype=np.int64), np.ones(1), np.zeros(1, dtype=np.int64)
    order = np.argsort(numbers << d * (cells.depth - at))  # neighbours follow one another
    # the whole box, of level 0, has no noise of its own
    sigmas = np.array([noise.sigma for noise in noises])[np.maximum(at - first, 0)]
    return _points(cells, *(part[order] for part in (numbers, counts, at, sigmas))), n_levels


def _points(
    cells: Cells, numbers: np.ndarray, counts: np.ndarray, at: np.ndarray, sigmas: np.ndarray
) -> _Leaves:
    """Return 2^d points for each cell of a level, with the variance of a uniform density."""
    d = len(cells.box.low)
    halves = cells.box.half_widths / 2.0 ** at[:, None]
    signs = 1.0 - 2.0 * ((np.arange(2**d)[:, None] >> np.arange(d)) & 1)
    points = cells.middles(numbers, at)[:, None] + signs * halves[:, None] / math.sqrt(3.0)
    parts = counts / 2**d, halves.max(axis=1), sigmas
    return _Leaves(points.reshape(-1, d), *(np.repeat(part, 2**d) for part in parts))


def _shapes(leaves: _Leaves, centers: np.ndarray) -> np.ndarray:
    """Return the covariance of each center's cells, of trace 1, (k, d, d)."""
    d = centers.shape[1]
    labels = nearest_center(leaves.points, centers)
    offsets = leaves.points - centers[labels]
    found = np.empty((len(centers), d, d))
    for a, b in np.ndindex(d, d):
        terms = leaves.weights * offsets[:, a] * offsets[:, b]
        found[:, a, b] = np.bincount(labels, terms, minlength=len(centers))
    traces = np.trace(found, axis1=1, axis2=2)
    found[traces == 0.0] = np.eye(d)
    return found / np.trace(found, axis1=1, axis2=2)[:, None, None]


def _clipped_moves(
    leaves: _Leaves, centers: np.ndarray, radii: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much clipping alone moves centers in a round, and its noise, each (k, d).

    The centers are the means of the cells. So the mean offset of the cells is 0, and it is not 0
    after clipping if a cluster is skewed. A row more in a cell moves the mean by its offset, and
    the rows within the radius, the part `_WITHIN`, by as much the other way.
    """
    labels = nearest_center(leaves.points, centers)
    offsets = leaves.points - centers[labels]
    lengths = np.linalg.norm(offsets, axis=1)
    parts = np.minimum(1.0, radii[labels] / np.maximum(lengths, np.finfo(float).tiny))[:, None]
    totals, variances = np.zeros_like(centers), np.zeros_like(centers)
    np.add.at(totals, labels, leaves.weights[:, None] * parts * offsets)
    of_cells = leaves.noise[:, None] ** 2 / 2 ** centers.shape[1]
    np.add.at(variances, labels, of_cells * ((parts - _WITHIN) * offsets) ** 2)
    weights = np.bincount(labels, leaves.weights, minlength=len(centers))[:, None]
    weights = np.maximum(weights, np.finfo(float).tiny)
    return totals / weights, np.sqrt(variances) / weights


def _radii(leaves: _Leaves, centers: np.ndarray) -> np.ndarray:
    """Return for each center the distance that contains most of its weight."""
    labels = nearest_center(leaves.points, centers)
    distances = np.linalg.norm(leaves.points - centers[labels], axis=1)
    radii = np.zeros(len(centers))
    least = np.full(len(centers), np.median(leaves.widths))
    order = np.lexsort((distances, labels))
    # the points of one cluster after another, by distance
    for own in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        j, below = labels[own[0]], np.cumsum(leaves.weights[own])
        radii[j] = distances[own[np.searchsorted(below, _WITHIN * below[-1])]]
        least[j] = np.median(leaves.widths[own])
    # nothing is known about places of rows within a cell
    return np.maximum(radii, 0.5 * least)
