r"""Decoding of a sketch of harmonic moments: the union of subspaces that explains it best.

1. *Search*: many random starts are optimized together on moments of degree 2 and 4
   (`MomentObjective`); different optima among the best are optimized to convergence.
2. *Spread*: the best are tried with factors C in place of projections. These are kept if they lower
   the cost by more than :math:`\log(2 d^2)` for each added parameter: a penalty for the many
   subspaces that noise may favor.
3. *Likelihood*: if all features fit in memory, Gauss-Newton steps on all degrees, then with the
   covariance of means at the fitted union (`Likelihood`). Otherwise the fit is unchanged, and the
   uneven spread of rows enters only the errors (`sandwich`).

All results of a noisy sketch are as private as the sketch: starts use no budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privclust.core.batched_lbfgs import descend
from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer
from privclust.sketches._harmonics import n_moments
from privclust.sketches._moment_sketch import MomentSketch
from privclust.subspaces.moments._features import factor_features
from privclust.subspaces.moments._information import sandwich
from privclust.subspaces.moments._likelihood import Likelihood
from privclust.subspaces.moments._objective import MomentObjective
from privclust.subspaces.moments._selection import deviations_in_all
from privclust.subspaces.moments.union import Union, even_ratio

_N_STARTS, _N_STARTS_IF_LARGE, _LARGE = 40, 20, 30  # 20 starts beyond 30 features
_SEARCH, _DESCENT = 100, 400  # most evaluations of the cost: first search; final descent
_N_BEST, _N_WITH_SPREAD = 6, 3  # unions that are optimized to convergence; and with a spread
_SAME = 0.05  # largest difference in cost of the same optimum
MOST_FEATURES = 1000  # largest number of moments for which covariances are computed
_N_WHITENINGS = 2  # updates of the covariance of means at the fitted union
# misfit above which rows do not lie near a union; in benchmarks/moments.py at most 1.7 near unions,
# at least 14 elsewhere
_MOST_MISFIT = 5.0


@dataclass(frozen=True, eq=False)
class DecodedSubspaces:
    """Subspaces decoded from a sketch, with their errors.

    Attributes
    ----------
    union : Union
        Subspaces, with their amplitudes and spreads.
    complements : ndarray of shape (k, d, d - q)
        Orthonormal bases of the orthogonal complement of each subspace.
    by_noise, by_rows : ndarray of shape (k (d - q) q, k (d - q) q)
        Covariances of the error of tangents (k, d - q, q), raveled: the rotation of subspaces into
        their complements, by noise and by sampling of the rows.
    gap : float
        Difference in cost (minus the logarithm of the posterior of moments of degree 2 and 4) to
        the next optimum found; infinite if there was none. If it is small, noise may have put
        another optimum first.
    evidence : ndarray of shape (k,)
        Nats by which each subspace improves the fit, per number of it; at most those of all
        together. Rows without any subspaces reach 1.8.
    is_even : bool
        Whether the fit assumes rows spread evenly within their subspaces.
    misfit : float
        Squared residuals of the union, relative to those expected from noise and sampling: about 1
        if rows lie near such a union. NaN beyond 1,000 moments (about 10 features).
    """

    union: Union
    complements: np.ndarray
    by_noise: np.ndarray
    by_rows: np.ndarray
    gap: float
    evidence: np.ndarray
    is_even: bool
    misfit: float = math.nan

    @property
    def subspaces(self) -> np.ndarray:
        """Orthonormal bases, (k, d, q), the subspace of most rows first."""
        return self.union.bases

    @property
    def weights(self) -> np.ndarray:
        """Fractions of the rows, (k,)."""
        return self.union.weights

    @property
    def covariance(self) -> np.ndarray:
        """Total covariance of the error of tangents."""
        return self.by_noise + self.by_rows

    @property
    def errors(self) -> np.ndarray:
        r"""Expected distance :math:`\|U U' - V V'\|_F` of each subspace from the true one, (k,)."""
        variances = np.diag(self.covariance).reshape(len(self.weights), -1)
        return np.sqrt(2.0 * variances.sum(axis=1))


def decode(
    sketch: MomentSketch,
    n_clusters: int,
    dimension: int,
    *,
    random_state: RandomState = None,
) -> DecodedSubspaces:
    """Return the union of subspaces that explains a sketch best.

    Parameters
    ----------
    sketch : MomentSketch
    n_clusters : int
        k.
    dimension : int
        q, from 1 to n_features - 1.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        For random starts and draws, which are not used for privacy.

    Returns
    -------
    DecodedSubspaces

    Raises
    ------
    ValueError
        If an argument is out of its range, or the sketch has less than one row.

    Examples
    --------
    >>> from privclust.synthetic.subspaces import subspace_mixture
    >>> X, _, _ = subspace_mixture(2000, 2, 4, 2, np.random.default_rng(0))
    >>> decode(MomentSketch.of(X), 2, 2, random_state=0).subspaces.shape
    (2, 4, 2)
    """
    check_integer("n_clusters", n_clusters, minimum=1)
    check_integer("dimension", dimension, minimum=1)
    d = sketch.n_features
    if dimension >= d:
        raise ValueError(f"dimension must be less than n_features={d}, got {dimension}")
    rng = as_generator(random_state)
    unions, costs, is_even = _optima(sketch, n_clusters, dimension, rng)
    gap = float(costs[1] - costs[0]) if len(costs) > 1 else math.inf
    if sum(n_moments(d, degree) for degree in sketch.moments) > MOST_FEATURES:
        union, misfit = unions[0].ordered(), math.nan
        complements = union.complements
        errors = sandwich(union, complements, sketch.deviations(), sketch.n_samples, rng)
    else:
        likelihood = Likelihood(
            sketch.means(), sketch.deviations(), sketch.n_samples, is_even=is_even
        )
        union = _most_likely(likelihood, unions, rng).ordered()
        complements, misfit = union.complements, likelihood.misfit(union)
        errors = likelihood.errors(union, complements)
    evidence = _evidence(sketch, union)
    return DecodedSubspaces(union, complements, *errors, gap, evidence, is_even, misfit)


def _optima(sketch, n_clusters, dimension, rng):
    """Return different unions that explain a sketch, the best first, costs, and `is_even`."""
    d = sketch.n_features
    means, deviations = sketch.means(), sketch.deviations()
    shape = d, n_clusters, dimension
    objective = MomentObjective(means, deviations, *shape)
    n_starts = _N_STARTS_IF_LARGE if d > _LARGE else _N_STARTS
    # short descents of all starts find the basins; only the best are followed to the end
    starts, costs = descend(objective, objective.random_starts(n_starts, rng), _SEARCH)
    candidates, costs = _descended(objective, starts[np.argsort(costs, kind="stable")[:_N_BEST]])
    is_even, unions = True, [objective.union(one) for one in candidates]
    if dimension > 1:
        uneven = MomentObjective(means, deviations, *shape, is_even=False)
        again = np.stack([uneven.start_at(union) for union in unions[:_N_WITH_SPREAD]])
        spread, spread_costs = _descended(uneven, again)
        # a symmetric factor C of trace q has one free entry less than a symmetric matrix
        n_more = n_clusters * (dimension * (dimension + 1) // 2 - 1)
        if costs[0] - spread_costs[0] > math.log(2.0 * d**2) * n_more:
            is_even, costs, unions = False, spread_costs, [uneven.union(one) for one in spread]
    return unions, costs, is_even


def _most_likely(likelihood, unions, rng):
    """Return the most likely union, with the covariance of means at it."""
    q = unions[0].bases.shape[2]
    # the search uses degrees 2 and 4 only: ratios of higher degrees start at those of even rows
    more = {degree: math.log(even_ratio(q, degree)) for degree in likelihood.degrees if degree > 4}
    started = [replace(union, log_ratios={**union.log_ratios, **more}) for union in unions]
    union, _ = min((likelihood.fit(one) for one in started), key=lambda fitted: fitted[1])
    for _ in range(_N_WHITENINGS):
        likelihood.whiten(union, rng)
        union, _ = likelihood.fit(union)
    return union


def misfit_message(decoded: DecodedSubspaces) -> str:
    """Return a message that rows do not lie near such a union; empty if they may."""
    if not decoded.misfit > _MOST_MISFIT:  # also if it is NaN
        return ""
    k, _, q = decoded.subspaces.shape
    return (
        f"{k} subspaces of dimension {q} through the origin leave a part of the sketch unexplained "
        f"that is {decoded.misfit:.0f} times the noise: some rows lie elsewhere, or are unevenly "
        "spread within the subspaces, so errors may be larger than stated. More subspaces, another "
        "dimension, subtracting a public offset, or a public rule that leaves out rows may help"
    )


def _evidence(sketch, union):
    """Return nats per number of each subspace; errors of means are by noise and sampling."""
    means, deviations = sketch.means(), deviations_in_all(sketch)
    by_cluster, whole = np.zeros(len(union.amplitudes)), 0.0
    for degree, values in means.items():
        ratio = math.exp(union.log_ratios[degree]) if degree > 2 else 1.0
        parts = np.stack([factor_features(factor, degree) for factor in union.factors])
        parts *= ratio * union.amplitudes[:, None] / deviations[degree]
        scaled = values / deviations[degree]
        left = scaled - parts.sum(axis=0)
        # the cost without a part minus the cost with it: (|left + part|^2 - |left|^2) / 2
        by_cluster += parts @ left + 0.5 * (parts**2).sum(axis=1)
        whole += 0.5 * float(scaled @ scaled - left @ left)
    _, d, q = union.bases.shape
    # the numbers of a subspace are its q (d - q) tangents and its amplitude
    return np.minimum(by_cluster, whole / len(by_cluster)) / (q * (d - q) + 1)


def _descended(objective, starts):
    """Return different optima and their costs, the best first."""
    points, costs = descend(objective, starts, _DESCENT)
    order = np.argsort(costs, kind="stable")
    # the objective returns `scale` times the cost
    points, costs = points[order], costs[order] / objective.scale
    kept = [0]
    for i in range(1, len(costs)):
        if costs[i] - costs[kept[-1]] > _SAME:
            kept.append(i)
    return points[kept], costs[kept]
