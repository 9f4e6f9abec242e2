"""The exponential mechanism for subspace clustering, by Gibbs sampling."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from privclust.bingham import IN_FLOATING_POINT, LARGEST_CONCENTRATION, full_basis
from privclust.core.grassmann import residuals
from privclust.core.hints import RandomState
from privclust.core.progress import logged
from privclust.core.validation import GROUPS, Integer
from privclust.privacy import Guarantee, Neighbours, Sensitivity
from privclust.privacy.bounds import bounded_rows
from privclust.privacy.estimator import PrivateEstimator, caveats_of_bounds
from privclust.privacy.measurements import Exponential
from privclust.privacy.noise import is_seeded, noise_source, unprotected_generator
from privclust.subspaces._gibbs_kernels import in_blocks, sweeps
from privclust.subspaces._subspace_clusterer import (
    DIMENSION,
    SubspaceClusterer,
    start_guarantee,
    starting_bases,
)

_IN_THE_LIMIT = (
    "a Gibbs sampler reaches its distribution only in the limit of many sweeps; within a total "
    "variation distance g of it, the guarantee is (epsilon, delta + (1 + e^epsilon) g)"
)
_ONE_STATE = (
    "labels_ and subspaces_ are one sample and the release; diagnostics_ are not part of it"
)
_ADDED_EPSILONS = ("pure", "approximate")
_BOUND = Sensitivity(
    1.0,
    "range",
    Neighbours.REPLACE_ONE,
    "Proposition 4.1: replacing a row of the unit ball changes the sum by at most 1",
)


@dataclass(eq=False, repr=False)
class GibbsSubspaceClustering(PrivateEstimator, SubspaceClusterer):
    r"""Subspace clustering by Gibbs sampling from the exponential mechanism.

    The target is eq. (10): labels z and subspaces S together, of density proportional to

    .. math:: \exp\Big(-\frac{\epsilon}{2} \sum_i d^2(x_i, S_{z_i})\Big)

    with rows in units of `norm_bound`, so that they lie in the unit ball. Replacing a row changes
    the sum by at most 1, so that one exact sample is epsilon-differentially private
    (Proposition 4.1) with its labels. The chain alternates between all labels given the subspaces,
    eq. (11), and all subspaces given the labels, eq. (12). These have a matrix Bingham distribution
    with the matrix :math:`\epsilon / 2 \sum_{z_i = l} x_i x_i'`, drawn by one sweep of the sampler
    of `sample_matrix_bingham`; a subspace without rows is uniform.

    A sweep costs O(n_samples n_clusters n_features min(dimension, n_features - dimension) +
    n_samples n_features^2 + n_clusters n_features^3).

    Parameters
    ----------
    n_clusters : int
        k.
    dimension : int
        q, of each subspace; from 1 to n_features - 1.
    epsilon : float
        Budget of one sample in nats; that of a private start is added. `epsilon` n_samples / 2 is
        at most 1e12.
    n_sweeps : int
        Length of the chain, fixed in advance.
    init : "random", array-like or estimator
        ``"random"``: uniform subspaces. Bases of shape (n_clusters, n_features, dimension),
        orthonormal, as columns, which must not depend on the data. An estimator that has a
        `guarantee_`, such as `SuLQKPlanes`, is cloned and fitted to X; guarantees are composed.
        Labels of shape (n_samples,), or an estimator without a guarantee: no guarantee.
    n_kept : int
        Number of last sweeps with subspaces kept in `kept_subspaces_`. Publishing R of them, or
        results computed from them, has a privacy loss of at least R epsilon; the guarantee covers
        only the last state. The data holder can average a metric over them.
    record_every : int
        Sweeps between two entries of `diagnostics_`.
    record_first : int
        Number of first sweeps that also have an entry each.
    norm_bound : float or None
        Largest Euclidean norm of a row, known without the data. None computes it from the data,
        with a warning and without a guarantee.
    missing : {"drop", "middle"}
        Treatment of a row with an entry that is missing (NaN, None) or is not a number. ``"drop"``:
        the row contributes nothing, and `left_out_` is the number of such rows. ``"middle"``: the
        entry counts as the middle of the bounds, and all rows count.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``, seeded by the operating system), anything
        else for reproduction.

    Attributes
    ----------
    subspaces_ : ndarray of shape (n_clusters, n_features, dimension)
        Subspaces of the last state; orthonormal bases, as columns, uniformly rotated in their span.
    labels_ : ndarray of shape (n_samples,)
        Labels of the last state: sampled, not the nearest, and as private as the subspaces.
    left_out_ : privclust.privacy.NoisyCount or None
        The noisy number of rows left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
        ``"asymptotic"``, or ``"none"``.
    diagnostics_ : dict of ndarray
        Entries for the first `record_first` sweeps, every `record_every`-th and the last. Not
        private: `released()` and pickles leave out these and `kept_subspaces_`; ``"sweep"``;
        ``"cost"``, eq. (3) in squared units of X on rows within the ball; ``"statistic"``, with
        the basis U of each subspace after sweeps t = 1 .. T so far,
        :math:`(kq)^{-1/2} (\sum_l \|T^{-1} \sum_t U_l^{(t)}\|_F^2)^{1/2}`, Section 5, which falls
        as :math:`T^{-1/2}` for any subspaces, since bases may rotate; ``"aligned_statistic"``, the
        same with the projections U U', which rotations and signs do not change: 1 if nothing moves,
        :math:`\sqrt{q / d}` if subspaces move everywhere; ``"subspaces"``, float32 of shape
        (n_records, n_clusters, n_features, dimension).
    kept_subspaces_ : ndarray of shape (n_kept, n_clusters, n_features, dimension)
    n_features_in_ : int

    References
    ----------
    Y. Wang, Y.-X. Wang and A. Singh, "Differentially private subspace clustering", NIPS 2015,
    eqs. (10) to (12), Proposition 4.1, Section 5.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(3), 100, axis=0) * rng.uniform(0.5, 1.0, (300, 1))
    >>> model = GibbsSubspaceClustering(3, 1, epsilon=20.0, n_sweeps=500, norm_bound=1.0,
    ...                                 random_state=0).fit(X)
    >>> bool(model.diagnostics_["cost"][-1] < 0.02), model.guarantee_.definition
    (True, 'asymptotic')
    """

    diagnostics_: dict[str, np.ndarray] = field(init=False)
    kept_subspaces_: np.ndarray = field(init=False)

    _constraints: ClassVar = {
        "n_clusters": GROUPS,
        "dimension": DIMENSION,
        "n_kept": Integer(0),
        "record_first": Integer(0),
    }
    _NOT_RELEASED = ("diagnostics_", "kept_subspaces_")

    n_clusters: int = 2
    dimension: int = 1
    _: KW_ONLY
    epsilon: float = 1.0
    n_sweeps: int = 10000
    init: Literal["random"] | ArrayLike | BaseEstimator = "random"
    n_kept: int = 0
    record_every: int = 100
    record_first: int = 0
    norm_bound: float | None = None
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Run the chain; its last state is the result.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points near linear subspaces; they are divided by `norm_bound`. Finite, unless they are
            clipped to one.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of its range, X has fewer rows than clusters or no more features
            than dimensions, or is not finite where it must be.
        """
        records = self._checked_records(X)
        X = records.rows
        self._check_parameters(records)
        source = noise_source(self.random_state)
        rng = unprotected_generator(source)
        rows, radius, leaks = bounded_rows(X, self.norm_bound)
        draw, seeded = Exponential(_BOUND, float(self.epsilon)), is_seeded(source)
        bases, start = starting_bases(self, records.every_row, rng, seeded=seeded)
        start, doubts = start_guarantee(start)
        doubts = (*leaks, *doubts)
        own = self._promise(draw, None, doubts, seeded)
        whole = self._promise(draw, start, doubts, seeded)
        self._charged(own, records, source, whole)  # a private start has been charged
        self._run(rows, radius, bases, draw.factor, rng)
        self.labels_ = records.labels(self.labels_)
        return self

    def _run(self, rows, radius, frames, factor, rng):
        """Run the chain from a start and set the fitted attributes."""
        k, d, q = frames.shape
        units = rows / radius
        blocks = in_blocks(units)
        bases = np.stack([full_basis(frame) for frame in frames])
        # -inf: no guesses yet; each sweep leaves its values as guesses for the next
        kappas = np.full((k, d), -np.inf)
        labels = np.zeros(len(rows), dtype=np.int64)
        frames = np.empty((k, d, q))
        sums, projectors = np.zeros((k, d, q)), np.zeros((k, d, d))
        kept = np.empty((self.n_kept, k, d, q))
        # the chain pauses for a record after each of the first sweeps, then regularly
        first = range(1, min(self.record_first, self.n_sweeps) + 1)
        regular = range(self.record_every, self.n_sweeps, self.record_every)
        ends = sorted({*first, *regular, self.n_sweeps})
        cost, statistic, aligned = (np.empty(len(ends)) for _ in range(3))
        # single precision: for diagnostics only, and the largest array of a long chain
        subspaces = np.empty((len(ends), k, d, q), dtype=np.float32)
        done, first_kept = 0, self.n_sweeps - self.n_kept
        for i, end in enumerate(logged(ends, len(ends), "Gibbs: records of sweeps")):
            sweeps(
                units, blocks, factor, rng, q, end - done, done, first_kept,
                bases, kappas, labels, frames, sums, projectors, kept,
            )  # fmt: skip
            done = end
            cost[i] = residuals(rows, frames).min(axis=1).mean()
            statistic[i] = _root_mean_square(sums / done, q)
            # `sweeps` adds lower triangles only
            symmetric = np.tril(projectors) + np.tril(projectors, -1).swapaxes(1, 2)
            aligned[i] = _root_mean_square(symmetric / done, q)
            subspaces[i] = frames
        self.subspaces_, self.labels_, self.kept_subspaces_ = frames, labels, kept
        self.diagnostics_ = {
            "sweep": np.array(ends),
            "cost": cost,
            "statistic": statistic,
            "aligned_statistic": aligned,
            "subspaces": subspaces,
        }

    def _promise(self, draw, start, doubts, seeded):
        release = draw.statement(
            "labels and subspaces",
            noise="density exp(-{epsilon:.4g} / 2 sum of squared distances)",
            units="in units of norm_bound",
        )
        caveats = [_IN_THE_LIMIT, IN_FLOATING_POINT, _ONE_STATE, *caveats_of_bounds(self)]
        if self.n_kept:
            caveats.append(
                f"holds for the last state only: releasing the {self.n_kept} states of "
                f"kept_subspaces_, or results made from them, costs {self.n_kept} epsilon"
            )
        start = start and start.to_replace_one()
        if start is not None and start.definition not in _ADDED_EPSILONS:
            doubts += (f"the start's guarantee is {start.definition}, without an epsilon to add",)
            start = None
        releases = (*(start.releases if start else ()), release)
        if doubts:
            return Guarantee(
                "none", _BOUND.relation, releases, seeded=seeded, caveats=(*doubts, *caveats)
            )
        return Guarantee(
            "asymptotic",
            _BOUND.relation,
            releases,
            epsilon=draw.epsilon + (start.epsilon if start else 0.0),
            delta=start.delta if start else 0.0,
            seeded=seeded or (start is not None and start.seeded),
            caveats=(*(start.caveats if start else ()), *caveats),
        )

    def _check_parameters(self, records):
        if 0.5 * self.epsilon * records.n_records > LARGEST_CONCENTRATION:
            raise ValueError(
                f"epsilon * n_samples / 2 must be at most {LARGEST_CONCENTRATION:g}, got "
                f"epsilon={self.epsilon!r} for n_samples={records.n_records}; KPlanes is the limit"
            )
        if self.n_kept > self.n_sweeps:
            raise ValueError(f"n_kept must be at most n_sweeps={self.n_sweeps}, got {self.n_kept}")


def _root_mean_square(means: np.ndarray, dimension: int) -> float:
    return math.sqrt(float((means**2).sum()) / (len(means) * dimension))
