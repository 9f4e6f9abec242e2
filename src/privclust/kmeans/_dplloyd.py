"""Lloyd's algorithm with noise on counts and sums."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import SUM_BITS, FixedPoint, side_by_side, unit_margin
from privclust.core.hints import Bounds, RandomState
from privclust.core.lloyd import nearest_center, nearest_center_sums
from privclust.core.progress import logged
from privclust.core.validation import DELTA, Unless
from privclust.kmeans._lloyd import CenterClusterer, checked_centers
from privclust.kmeans._noise_check import detected_clusters
from privclust.privacy import Neighbours
from privclust.privacy.accounting import cdp_share
from privclust.privacy.bounds import (
    Box,
    bounded_rows,
    bounds_of,
    declared_box,
    separated_points,
    uniform_in_ball,
    uniform_in_cube,
)
from privclust.privacy.estimator import PrivateEstimator
from privclust.privacy.groups import Groups, by_size, weighted_sums
from privclust.privacy.hidden import noise_message, warn_of_noise
from privclust.privacy.measurements import Gaussian, Laplace, Measurement, gaussian_share
from privclust.privacy.noise import noise_source, unprotected_generator
from privclust.privacy.sensitivity import Sensitivity, check_neighbours, root_above


@dataclass(frozen=True)
class _Ball:
    """The ball of a norm bound. In its units rows have norm at most 1, even after rounding."""

    n_features: int
    radius: float
    uniform = staticmethod(uniform_in_ball)

    @cached_property
    def offset(self):
        return np.zeros(self.n_features)

    @cached_property
    def units(self):
        """Unit of the rows along each axis."""
        return np.full(self.n_features, self.radius * self._margin)

    def clipped(self, centers):
        norms = np.sqrt((centers * centers).sum(axis=1, keepdims=True))
        return centers / np.maximum(norms * self._margin, 1.0)

    def l1(self):
        """Bound the norm of (1, x)."""
        return 1.0 + math.sqrt(self.n_features), "|(1, x)|_1 <= 1 + sqrt(d)"

    def l2(self, neighbours):
        """Bound the change by one (1, x) that is added or replaced."""
        if neighbours is Neighbours.ADD_REMOVE:
            return math.sqrt(2.0), "|(1, x)|^2 <= 2"
        return 2.0, "|(1, x)|^2 <= 2 and (1, x)'(1, x') >= 0"

    @cached_property
    def _margin(self):
        return unit_margin(self.n_features, SUM_BITS)


@dataclass(frozen=True)
class _Cube:
    """A box in units of its half widths about its center: the cube [-1, 1]^d."""

    box: Box
    uniform = staticmethod(uniform_in_cube)

    @cached_property
    def offset(self):
        """The point of the box that becomes the origin of the cube: its center."""
        return self.box.center

    @cached_property
    def units(self):
        """Half widths; 1 where the box, taken from the data, is flat."""
        return np.where(self.box.half_widths > 0, self.box.half_widths, 1.0)

    def clipped(self, centers):
        return np.clip(centers, -1.0, 1.0)

    def l1(self):
        """Bound the norm of (1, u)."""
        return 1.0 + len(self.box.low), "|(1, u)|_1 <= 1 + d in the cube"

    def l2(self, neighbours):
        """Bound the change by one (1, u) that is added or replaced."""
        d = len(self.box.low)
        if neighbours is Neighbours.ADD_REMOVE:
            return root_above(1.0 + d), "|(1, u)|^2 <= 1 + d in the cube"
        proof = "one cluster: |u - u'|^2 <= 4 d; two: |(1, u)|^2 + |(1, u')|^2 <= 2 + 2 d"
        return root_above(4.0 * d), proof


@dataclass(eq=False, repr=False)
class DPLloyd(PrivateEstimator, CenterClusterer):
    r"""k-means by noisy iterations of Lloyd's algorithm (DPLloyd).

    Each of `max_iter` iterations assigns rows to their nearest center. It releases, for all
    clusters at once, their noisy numbers :math:`n_k` and sums :math:`s_k`; the new center is
    :math:`s_k / \max(n_k, 1)`. Rows have norm at most R. In units of R, one row changes the pairs
    :math:`(n, s)` of all clusters by at most

    ==========  ============================  ===================  ===============================
    accounting  neighbours, norm              ball of radius R     box, in units of half widths
    ==========  ============================  ===================  ===============================
    ``pure``    add-remove, l1                1 + sqrt d           1 + d
    ``pure``    replace-one, l1               2 (1 + sqrt d)       2 (1 + d)
    others      add-remove, l2                sqrt 2               sqrt(1 + d)
    others      replace-one, l2               2                    2 sqrt d
    ==========  ============================  ===================  ===============================

    Rows are rounded one by one in these units, and their sums are exact. So the change by a row
    depends only on that row and the released centers, to the last bit, and is within the table.

    With groups, such as persons with several rows each, each of the n rows of a group has weight
    1 / n. All groups then weigh the same, and the change by one group is within the table as well
    (``privclust.privacy.groups``).

    Pure accounting adds Laplace noise of scale (sensitivity) J / epsilon. The others add Gaussian
    noise, which is smaller if d or J is large: with 10 features in the ball, epsilon 1 and a delta
    of 1e-6, ``"pld"`` has a third of the standard deviation of ``"pure"``. ``variant="paper"`` is
    add-remove with Laplace noise of scale (d + 1) J / epsilon, in the ball and in the box.

    Parameters
    ----------
    n_clusters : int
    epsilon : float
        Privacy parameter of the whole fit, in nats; with ``accounting="cdp"`` the mean loss of
        :math:`(\epsilon, \sqrt{2 \epsilon})`-CDP.
    delta : float
        Used by ``accounting="pld"``.
    accounting : {"pure", "pld", "cdp"}
        Pure epsilon-DP, (epsilon, delta)-DP or CDP.
    variant : {"corrected", "paper"}
        ``"paper"``: the noise of Su et al. (2016) as the DP-EM paper uses it, for add-remove;
        centers are not clipped. ``"corrected"``: noise by the table; centers are clipped to the
        ball or box, at no privacy loss.
    neighbours : {"replace_one", "add_remove"} or None
        Neighbouring relation. None: ``"replace_one"``, or ``"add_remove"`` with
        ``variant="paper"``, which has no other.
    max_iter : int
        J, fixed in advance.
    norm_bound : float or None
        Largest Euclidean norm of a row, known without the data. None computes it from the data,
        with a warning and without a guarantee, unless `bounds` are given.
    bounds : (low, high), mapping or None
        Lower and upper bound of the features, known without the data, in place of `norm_bound`:
        numbers or arrays of shape (n_features,); or (low, high) for each column of a frame, by its
        name.
    init : {"uniform", "separated"} or array-like of shape (n_clusters, n_features)
        ``"uniform"``: uniform in the ball or box. ``"separated"``: the start of Su et al.,
        away from each other and from the border
        (`privclust.privacy.bounds.separated_points`). An array must not depend on the data.
    missing : {"drop", "middle"}
        A row with an entry that is missing (NaN, None) or cannot be read as a number is left out,
        and counted by `left_out_`; or the entry is replaced by the middle of the bounds.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    labels_ : ndarray of shape (n_samples,)
        Index of the nearest center of each row of X; -1 for a row that is left out. Not private: do
        not publish it. Pickles do not contain it.
    is_detected_ : ndarray of shape (n_clusters,)
        Whether a cluster is distinguishable from noise: its noisy count is above 3 standard
        deviations, and noise moves its center by less than a quarter of the distance to the next.
    left_out_ : privclust.privacy.NoisyCount or None
        Noisy number of rows (of persons, with `groups`) that are left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    n_iter_ : int

    References
    ----------
    A. Blum, C. Dwork, F. McSherry and K. Nissim, "Practical privacy: the SuLQ framework", PODS
    2005; D. Su, J. Cao, N. Li, E. Bertino and H. Jin, "Differentially private k-means clustering",
    CODASPY 2016; DP-EM (arXiv:1605.06995), Section 6.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-0.5, 0.05, (500, 2)), rng.normal(0.5, 0.05, (500, 2))])
    >>> model = DPLloyd(2, epsilon=5.0, norm_bound=1.0, random_state=1,
    ...                 init=[[-0.1, 0.0], [0.1, 0.0]]).fit(X)
    >>> bool(np.abs(np.abs(model.cluster_centers_) - 0.5).max() < 0.1)
    True
    """

    is_detected_: np.ndarray = field(init=False)
    n_iter_: int = field(init=False)

    _TYPES: ClassVar = [np.float64, np.float32]
    _constraints: ClassVar = {
        "delta": Unless("accounting", ["pure", "cdp"], DELTA),
        "neighbours": check_neighbours,
    }

    n_clusters: int = 8
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    accounting: Literal["pure", "pld", "cdp"] = "pure"
    variant: Literal["corrected", "paper"] = "corrected"
    neighbours: Literal["replace_one", "add_remove"] | None = None
    max_iter: int = 5
    norm_bound: float | None = None
    bounds: Bounds | None = None
    init: Literal["uniform", "separated"] | ArrayLike = "uniform"
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups)
        X = records.rows
        self._check_choices()
        source = noise_source(self.random_state)
        rows, domain, leaks = self._domain(X)
        centers = self._start(domain, X.shape[1], unprotected_generator(source))
        noise = self._noise(domain, X.shape[1])
        definition = {"pure": "pure", "pld": "approximate", "cdp": "cdp"}[self.accounting]
        line = noise.statement("counts and sums")
        promise = self._promised([line], definition, source, leaks, records)
        self._charged(promise, records, source)
        parts = by_size(records.groups, rows)
        for _ in logged(range(self.max_iter), self.max_iter, "DPLloyd: iterations"):
            noisy = noise.release(_released(parts, domain, centers), source)
            centers = noisy[:, 1:] / np.maximum(noisy[:, :1], 1.0)
            if self.variant == "corrected":
                centers = domain.clipped(centers)
        self.cluster_centers_ = domain.offset + centers * domain.units
        self.labels_ = records.labels(nearest_center(X, self.cluster_centers_))
        self.n_iter_ = self.max_iter
        self._check_noise(noisy[:, 0], noise, domain)
        return self

    def one_round(
        self, X: np.ndarray, centers: np.ndarray, groups: ArrayLike | None = None
    ) -> tuple[FixedPoint, Measurement]:
        """Return the exact counts and sums of an iteration, and their noise, for all iterations.

        Centers (n_clusters, n_features), and counts and sums (n_clusters, 1 + n_features), are in
        units of the domain: the radius of the ball, or the half-widths of the box.
        """
        rows, domain, _ = self._domain(X)
        own = None if groups is None else Groups.of(groups, len(X))
        parts = by_size(own, rows)
        return _released(parts, domain, centers), self._noise(domain, X.shape[1])

    def _check_noise(self, counts, noise, domain):
        deviation = noise.deviation
        extent = float(np.linalg.norm(domain.units))
        self.is_detected_ = detected_clusters(counts, deviation, self.cluster_centers_, extent)
        warn_of_noise(noise_message(self.is_detected_))

    def _domain(self, X):
        """Return rows within the ball or box, that domain, and the leaks of choosing it."""
        if self.bounds is None:
            rows, radius, leaks = bounded_rows(X, self.norm_bound)
            return rows, _Ball(X.shape[1], radius), leaks
        box, is_outside, leaks = declared_box(X, bounds_of(self))
        rows = box.clipped(X) if is_outside else X
        return rows, _Cube(box), leaks

    def _noise(self, domain, n_features):
        """Return the noise of counts and sums, in units of the domain, in each iteration."""
        n_iter, neighbours = self.max_iter, self._relation()
        l2, l2_proof = domain.l2(neighbours)
        if self.accounting == "pure":
            share = self.epsilon / n_iter
            if self.variant == "paper":
                # in the ball |x|_1 <= sqrt(d) <= d makes the printed d + 1 an upper bound
                l1, l1_proof = n_features + 1.0, "Su et al. 2016, Section 3"
            else:
                l1, l1_proof = domain.l1()
                l1 *= 1.0 if neighbours is Neighbours.ADD_REMOVE else 2.0
            sensitivity = Sensitivity(l1, "l1", neighbours, l1_proof)
            # mu is the l2 sensitivity over the scale, l1 / share
            return Laplace(sensitivity, share, n_iter, mu=l2 * share / l1)
        if self.accounting == "cdp":
            share = cdp_share(self.epsilon, n_pure=n_iter)
        else:
            share = gaussian_share(self.epsilon, self.delta, n_iter)
        return Gaussian.of_share(Sensitivity(l2, "l2", neighbours, l2_proof), share, n_iter)

    def _relation(self):
        """Return the neighbouring relation: the printed noise has its own default."""
        if self.neighbours is not None:
            return Neighbours.of(self.neighbours)
        return Neighbours.ADD_REMOVE if self.variant == "paper" else Neighbours.REPLACE_ONE

    def _start(self, domain, n_features, rng):
        shape = (self.n_clusters, n_features)
        if isinstance(self.init, str):
            if self.init == "separated":
                return separated_points(*shape, rng, domain.uniform)
            return domain.uniform(*shape, rng)
        rows = checked_centers("init", self.init, shape)
        return (rows - domain.offset) / domain.units

    def _check_choices(self):
        if self.bounds is not None and self.norm_bound is not None:
            raise ValueError(
                f"bounds and norm_bound are two ways to bound rows: give one, got {self.bounds!r} "
                f"and {self.norm_bound!r}"
            )
        if self.variant == "paper" and self.accounting != "pure":
            raise ValueError(f"variant='paper' has only accounting 'pure', got {self.accounting!r}")
        if self.variant == "paper" and self._relation() is not Neighbours.ADD_REMOVE:
            raise ValueError(
                "variant='paper' has noise only for neighbours 'add_remove', got "
                f"{self.neighbours!r}"
            )


def _released(parts, domain, centers):
    """Return exact counts and sums of rows by nearest center, in units of the domain."""
    in_rows = domain.offset + centers * domain.units

    def of_rows(rows):
        counts, sums = nearest_center_sums(rows, in_rows, domain.offset, 1.0 / domain.units)
        return side_by_side([counts.reshape(-1, 1), sums])

    return weighted_sums((size, [of_rows(rows)]) for size, rows in parts)[0]
