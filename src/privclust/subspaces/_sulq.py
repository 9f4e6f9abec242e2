"""k-plane clustering with noise on second moments (SuLQ)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from privclust.core.grassmann import principal_bases, random_bases, residuals
from privclust.core.hints import RandomState
from privclust.core.progress import logged
from privclust.core.second_moments import in_units, unit
from privclust.core.validation import DELTA, GROUPS, check_integer
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.bounds import bounded_rows
from privclust.privacy.estimator import PrivateEstimator, caveats_of_bounds
from privclust.privacy.groups import by_size, unit_of, weighted_sums
from privclust.privacy.measurements import SymmetricGaussian, second_moment_noise
from privclust.privacy.noise import is_seeded, noise_source, unprotected_generator
from privclust.privacy.sensitivity import check_neighbours
from privclust.privacy.spectra import detected_subspaces
from privclust.subspaces._exact_moments import moments_by_subspace
from privclust.subspaces._subspace_clusterer import (
    DIMENSION,
    SubspaceClusterer,
    start_guarantee,
    starting_bases,
)


def _check_averaged(name, value, others):
    """Raise a ValueError if there are fewer rounds."""
    check_integer(name, value, minimum=1)
    if value > others["max_iter"]:
        raise ValueError(f"{name} must be at most max_iter={others['max_iter']}, got {value!r}")


@dataclass(eq=False, repr=False)
class SuLQKPlanes(PrivateEstimator, SubspaceClusterer):
    r"""k-plane clustering by noisy second moments (SuLQ).

    Each of `max_iter` rounds assigns rows to their nearest subspace and releases, with Gaussian
    noise, the matrices :math:`M_l = \sum x x'` of the rows of all clusters at once. The rest is
    post-processing: each subspace becomes the eigenvectors of its noisy matrix of the `dimension`
    largest eigenvalues. Rows are divided by `norm_bound` first, which changes no subspace.

    **Sensitivity.** Given the subspaces of the round, which follow from earlier releases, a row's
    cluster depends only on that row. A row x adds :math:`x x'` to one matrix and changes no other
    term. This holds exactly for the computed values: rows are rounded to multiples of 2^-16 of
    `norm_bound`, slightly enlarged, and sums of their products are integers, to which noise is
    added (``privclust.core.second_moments``). With :math:`\|x\| \le 1` and Frobenius norms over all
    k matrices together:

    - *add-remove*: the change has norm :math:`\|x x'\|_F = \|x\|^2 \le 1`.
    - *replace-one*, x by y: in one cluster :math:`\|x x' - y y'\|_F^2 = \|x\|^4 + \|y\|^4 -
      2 (x'y)^2 \le 2`, in two clusters :math:`\|x\|^4 + \|y\|^4 \le 2`: at most :math:`\sqrt 2`,
      which orthogonal unit rows attain.

    With groups, such as persons with several rows each, each of the n rows of a group has weight
    1 / n. All groups then weigh the same, and the change by one group is bounded like that by a row
    (``privclust.privacy.groups``). An `init` that takes groups is fitted with them.

    **Noise.** A symmetric matrix has the coordinates :math:`M_{ii}` and :math:`\sqrt 2 M_{ij}`,
    i < j, in which the Frobenius norm is the Euclidean one.

    - ``calibration="zcdp"``: :math:`N(0, \sigma^2)` on each of these, with the least :math:`\sigma`
      for which all rounds together are (epsilon, delta)-private. Their zCDP losses add up, and the
      composition of T Gaussian releases is converted exactly.
    - ``calibration="mod_sulq"``: :math:`N(0, s^2)` on every entry of the upper triangle of the sum,
      with :math:`s = n \beta` of MOD-SuLQ,

      .. math:: s = \frac{d+1}{\epsilon'} \sqrt{2 \log \frac{d^2+d}{2 \sqrt{2 \pi} \delta'}}
                    + \frac{1}{\sqrt{\epsilon'}},

      and :math:`\epsilon' = \epsilon/T`, :math:`\delta' = \delta/T` by basic composition. In units
      of this noise the square of a change :math:`\Delta` is :math:`(\|\Delta\|_F^2 +
      \sum_i \Delta_{ii}^2) / (2 s^2)` for all k matrices together. It is at most the squared
      sensitivity above over :math:`s^2`, attained by unit vectors of the axes. The guarantee
      states the resulting epsilon, usually much smaller than the requested one.
    - ``calibration="classical"``: coordinates as with ``"zcdp"``. Every round is the classical
      Gaussian mechanism for :math:`\epsilon'` and :math:`\delta'`:
      :math:`\sigma = \Delta \sqrt{2 \log (1.25 / \delta')} / \epsilon'`, proved for
      :math:`\epsilon' \le 1`; if it is too small, the least sufficient noise. As above, the
      guarantee states a smaller epsilon than requested.

    A cluster with moments below the noise gets a nearly uniformly random subspace.

    **Restarts.** Bad starts end in bad optima, and measuring the cost of a run would use budget.
    But the sum of the `dimension` largest eigenvalues of the last k released matrices is
    post-processing. It estimates the rows' sum of squares within the subspaces: the run with the
    largest sum is kept. All rounds of `n_init` runs share the budget, so that the noise of each
    grows with the root of `n_init`. This is useful if bad optima do more harm than noise. For
    example, take 5,000 rows near three random 3-dimensional subspaces of 5 dimensions, and 10
    rounds a run. The mean cost of 5 runs was half of that of one at epsilon 1, a tenth at 3, but
    three times as large at 0.3.

    **Averaging.** Once clusters are stable, all rounds release the same matrices with independent
    noise. With `n_averaged` above 1, the subspaces and the choice of a run are computed from the
    mean of the matrices of the last `n_averaged` rounds, which is post-processing too. Average half
    of the rounds, and use enough rounds to converge before, or several starts: a mean over rounds
    before convergence is worse than the last round (``benchmarks/averaged_rounds.py``).

    Parameters
    ----------
    n_clusters : int
        k.
    dimension : int
        q, of each subspace; from 1 to n_features - 1.
    epsilon, delta : float
        Budget of all rounds; epsilon in nats, positive, delta in (0, 1).
    calibration : {"zcdp", "classical", "mod_sulq"}
    max_iter : int
        T, the number of rounds of a run, fixed in advance.
    init : "random", array-like or estimator
        ``"random"``: subspaces of uniformly random orientation. Bases of shape (n_clusters,
        n_features, dimension), orthonormal, as columns, must not depend on the data. Labels of
        shape (n_samples,) leave no guarantee. An estimator is cloned and fitted to X; its
        `guarantee_` is composed with that of the rounds. Without one there is no guarantee.
    n_init : int
        Number of random starts; a given start is run once.
    n_averaged : int
        Number of last rounds of a run with averaged matrices, at most `max_iter`.
    norm_bound : float or None
        Largest Euclidean norm of a row, known without the data. None computes it from the data,
        with a warning and without a guarantee.
    neighbours : {"replace_one", "add_remove"}
        Neighbouring relation. With ``"add_remove"`` any number of rows is accepted, even none, or
        fewer than clusters.
    missing : {"drop", "middle"}
        Treatment of a row with an entry that is missing (NaN, None) or is not a number. ``"drop"``:
        the row contributes nothing, and `left_out_` is the number of such rows. ``"middle"``: the
        entry counts as the middle of the bounds, and all rows count.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    subspaces_ : ndarray of shape (n_clusters, n_features, dimension)
        Orthonormal bases, as columns.
    labels_ : ndarray of shape (n_samples,)
        Nearest subspace of each row of X. Not released: `released()` and pickles leave them out.
    is_detected_ : ndarray of shape (n_clusters,)
        Which subspaces are distinguishable from noise, judged only by the released matrices.
    left_out_ : privclust.privacy.NoisyCount or None
        The noisy number of rows (with `groups`, of persons) left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    n_iter_ : int
        Rounds of each run.
    n_features_in_ : int

    Warns
    -----
    NoiseWarning
        If the released matrices show that a subspace is indistinguishable from noise
        (``privclust.privacy.spectra``).

    References
    ----------
    A. Blum, C. Dwork, F. McSherry and K. Nissim, "Practical privacy: the SuLQ framework", PODS
    2005; K. Chaudhuri, A. Sarwate and K. Sinha, "A near-optimal algorithm for differentially
    private principal components", JMLR 14, 2013 (MOD-SuLQ); C. Dwork and A. Roth, "The algorithmic
    foundations of differential privacy", 2014, Theorems A.1 and 3.16 (classical); Y. Wang, Y.-X.
    Wang and A. Singh, "Differentially private subspace clustering", NIPS 2015, Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.zeros((4000, 3))
    >>> X[:2000, 0], X[2000:, 1] = rng.uniform(-1, 1, (2, 2000))
    >>> start = np.array([[[0.8], [0.0], [0.6]], [[0.0], [0.8], [0.6]]])
    >>> model = SuLQKPlanes(2, 1, init=start, norm_bound=1.0, random_state=1).fit(X)
    >>> bool(np.abs(model.subspaces_[[0, 1], [0, 1]]).min() > 0.99)
    True
    >>> model.guarantee_.definition, round(model.guarantee_.epsilon, 3)
    ('approximate', 1.0)
    """

    is_detected_: np.ndarray = field(init=False)
    n_iter_: int = field(init=False)

    _constraints: ClassVar = {
        "n_clusters": GROUPS,
        "dimension": DIMENSION,
        "delta": DELTA,
        "n_averaged": _check_averaged,
        "neighbours": check_neighbours,
    }

    n_clusters: int = 2
    dimension: int = 1
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    calibration: Literal["zcdp", "classical", "mod_sulq"] = "zcdp"
    max_iter: int = 10
    init: Literal["random"] | ArrayLike | BaseEstimator = "random"
    n_init: int = 1
    n_averaged: int = 1
    norm_bound: float | None = None
    neighbours: Literal["replace_one", "add_remove"] = "replace_one"
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups)
        X = records.rows
        source = noise_source(self.random_state)
        rng = unprotected_generator(source)
        bounded, radius, leaks = bounded_rows(X, self.norm_bound)
        parts = by_size(records.groups, in_units(bounded, unit(radius, X.shape[1])))
        n_runs = self.n_init if isinstance(self.init, str) else 1
        noise = self.round_noise(X.shape[1], n_runs * self.max_iter)
        largest_inside = -math.inf
        seeded = is_seeded(source)
        bases, start = starting_bases(self, records.every_row, rng, seeded=seeded, groups=groups)
        rounds, promise = self._promise(noise, start, seeded, leaks, unit_of(records.groups))
        self._charged(rounds, records, source, whole=promise)  # a given start has been charged
        for run in range(n_runs):
            if run > 0:
                bases = random_bases(self.n_clusters, X.shape[1], self.dimension, rng)
            noisy, bases = self._run(parts, bases, noise, source)
            # the leading eigenvalues estimate the rows' squares within the subspaces
            inside = float((bases * (noisy @ bases)).sum())
            if inside > largest_inside:
                largest_inside, released, self.subspaces_ = inside, noisy, bases
        # subspaces are judged by the mean of n_averaged matrices, with less noise than each
        noise_left = replace(noise, sigma=noise.sigma / math.sqrt(self.n_averaged), rho=None)
        self.is_detected_ = detected_subspaces(released, self.dimension, noise_left, of="subspaces")
        self.labels_ = records.labels(residuals(bounded, self.subspaces_).argmin(axis=1))
        self.n_iter_ = self.max_iter
        return self

    def _run(self, parts, bases, noise, source):
        last: deque[np.ndarray] = deque(maxlen=self.n_averaged)
        for _ in logged(range(self.max_iter), self.max_iter, "SuLQ: rounds"):
            last.append(noise.release(_moments(parts, bases), source))
            bases = principal_bases(last[-1], self.dimension)
        mean = sum(last) / len(last)
        return mean, principal_bases(mean, self.dimension)

    def round_noise(self, n_features: int, n_rounds: int) -> SymmetricGaussian:
        """Return the noise of each round, on second moments of rows of norm 1."""
        noise_for = partial(
            second_moment_noise, n_features, self.neighbours, parts=", one or two clusters"
        )
        if self.calibration == "classical":
            # basic composition: the classical proof is for one round
            share = self.epsilon / n_rounds, self.delta / n_rounds
            least = noise_for(*share)
            classical = SymmetricGaussian.classical(least.sensitivity, *share)
            # above epsilon 1 the classical formula may be too small
            return replace(max(least, classical, key=attrgetter("sigma")), count=n_rounds)
        mod_sulq = self.calibration == "mod_sulq"
        return noise_for(self.epsilon, self.delta, n_rounds, mod_sulq=mod_sulq)

    def _promise(self, noise, start, seeded, leaks, unit):
        """Return the guarantee of the rounds, to be charged, and that of the fit with its start."""
        promise, caveats = start_guarantee(start)
        relation = noise.sensitivity.relation
        rounds = Guarantee.of(
            [noise.statement("second moments", units="rows of norm 1")],
            "none" if leaks or caveats else "approximate",
            relation,
            delta=self.delta,
            seeded=seeded,
            caveats=(*leaks, *caveats, *caveats_of_bounds(self)),
            unit=unit,
        )
        if promise is None:
            return rounds, rounds
        if relation is Neighbours.REPLACE_ONE:
            promise = promise.to_replace_one()
        if promise.relation != relation:
            raise ValueError(
                f"init: the guarantee of {type(start).__name__} is for replace-one neighbours and "
                f"says nothing for neighbours={self.neighbours!r}"
            )
        if promise.unit != unit:
            raise ValueError(
                f"init: the guarantee of {type(start).__name__} is for rows and says nothing for "
                "groups"
            )
        return rounds, rounds.compose(promise)


def _moments(parts, bases):
    """Return second moments by subspace of rows in parts by the sizes of their groups."""
    terms = ((size, [moments_by_subspace(rows, bases)]) for size, rows in parts)
    # `weighted_sums` rounds each entry: the root of their number bounds this in l2
    spread = bases.shape[1] * math.sqrt(len(bases))
    return weighted_sums(terms, spread)[0]
