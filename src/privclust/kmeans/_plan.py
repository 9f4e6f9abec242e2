r"""Error and intervals of private k-means, predicted from simulated fits before budget is spent.

Rows are drawn from k clusters of unit variance. The centers are Gaussian with a variance of
:math:`(s k^{1/d})^2`; s = 1.5 is that of the compressive k-means paper. Clusters weigh the same,
except for one that may be declared smaller. They are round (Gaussian), or skewed: the offsets of a
feature then follow a gamma distribution of shape 1.5, with a long tail on the right. No real data
are used.

A large number of rows is replaced by a smaller one. The effect of noise on sums over rows depends
only on its standard deviation divided by their number. So noise is reduced by the same factor:
:math:`\epsilon' = \epsilon n / n'` for Laplace noise; for Gaussian noise
:math:`\sigma(\epsilon', \delta) / n' = \sigma(\epsilon, \delta) / n`. The sampling error is then
overstated in the error, which matters little where noise dominates. In the widths of intervals the
sampling variance is multiplied by n' / n.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from sklearn.base import clone

from privclust.core.hints import RandomState
from privclust.core.lloyd import inertia, lloyd, plus_plus
from privclust.core.validation import (
    UNUSED_DELTA,
    Real,
    as_generator,
    check_integer,
    check_option,
    check_real,
)
from privclust.kmeans._compressive import CompressiveKMeans
from privclust.kmeans._lloyd import CenterClusterer
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.budget import is_open
from privclust.privacy.measurements import analytic_gaussian_sigma
from privclust.privacy.sensitivity import Sensitivity

SHAPES = ("round", "skewed")
"""The shapes of simulated clusters."""
USUAL_SEPARATION = 1.5  # distance of clusters in the compressive k-means paper: s
# largest number of simulated rows, in all or per cluster; the larger of both
_MOST_ROWS, _MOST_PER_CLUSTER = 50_000, 1_000
_BOX = 4.0  # half-width of the bounds, in standard deviations of a feature
_LARGEST_EPSILON = 1e6  # of a simulated fit
_STARTS = 3  # k-means++ starts of Lloyd's algorithm, in addition to the true means
_MIDDLE = 0.1, 0.5, 0.9  # quantiles of the errors: 80 % interval and median
_FEWEST = 5  # fewest fits for which the interval is printed
_TAIL = 1.5  # shape of the gamma distribution of skewed clusters, as in benchmarks/collection.py
_WIDTH_95 = 1.959964  # half-width of a 95 % interval, in standard errors
# clusters with intervals, in the first fits: intervals of 20 take ten times as long as their fit
_FEW_CLUSTERS = 30
_LEVEL = re.compile(r", level \d+$")  # of a release that is named with its level
_CLEAR_PART = 0.9  # detected fraction of clusters below which a plan says that noise hides some


@dataclass(frozen=True)
class Plan:
    """Errors and intervals of simulated private fits.

    Attributes
    ----------
    errors : ndarray of shape (n_trials,)
        Sums of squared errors, divided by those of Lloyd's algorithm without privacy.
    detected : ndarray of shape (n_trials,)
        Fractions of the clusters that are distinguishable from noise (`is_detected_`).
    n_simulated : int
        Rows of each fit.
    widths : ndarray of shape (n_trials,)
        Median half-widths of the 95 % intervals of coordinates of unmarked clusters, in standard
        deviations of a feature over all rows. NaN if all clusters are marked, if the estimator has
        no standard errors, and after the first fits with 30 clusters, since intervals take long.
    marked : ndarray of shape (n_trials,)
        Fractions of the clusters that are hidden by noise, or have unreliable standard errors. NaN
        if the estimator has none, and after the first fits with 30 clusters.
    shares : dict of str to float
        Fraction of the budget that each release of the last fit spends, of rho (of epsilon for
        pure differential privacy). Releases that spend nothing are not listed.
    """

    errors: np.ndarray
    detected: np.ndarray
    n_simulated: int
    widths: np.ndarray = field(default_factory=lambda: np.full(1, np.nan))
    marked: np.ndarray = field(default_factory=lambda: np.full(1, np.nan))
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The median of `errors`: half of the simulated fits were better."""
        return float(np.median(self.errors))

    @property
    def interval(self) -> tuple[float, float]:
        """The 10 % and the 90 % quantile of the errors."""
        low, high = np.quantile(self.errors, (_MIDDLE[0], _MIDDLE[2]))
        return float(low), float(high)

    @property
    def width(self) -> float:
        """The median of `widths` over fits with unmarked clusters; NaN if there are none."""
        known = self.widths[np.isfinite(self.widths)]
        return float(np.median(known)) if len(known) else math.nan

    def budget(self) -> str:
        """Return `shares` in words.

        Examples
        --------
        >>> Plan(np.ones(1), np.ones(1), 1000, shares={"counts": 0.6, "sums": 0.4}).budget()
        '60 % for counts, 40 % for sums'
        """
        parts = (f"{share:.0%} for {name}" for name, share in self.shares.items())
        return ", ".join(parts).replace("%", " %")

    def __str__(self) -> str:
        """Return the outcome in words.

        Examples
        --------
        >>> print(Plan(np.array([1.01, 1.02, 1.04]), np.ones(3), 1000))
        error 1.020 times that without privacy (of 3, too few to tell how fits differ)
        >>> str(Plan(np.full(2, 3.0), np.full(2, 0.1), 1000)).partition("; ")[2]
        'noise hides 90 % of the clusters'
        >>> known = {"widths": np.array([0.021, np.nan]), "marked": np.array([0.5, 1.0])}
        >>> str(Plan(np.full(2, 1.1), np.ones(2), 1000, **known)).partition("; ")[2]
        "95 % intervals of ± 2.1 % of a column's standard deviation; 75 % of clusters marked"
        """
        low, high = self.interval
        text = f"error {_rounded(self.median)} times that without privacy "
        if len(self.errors) < _FEWEST:
            text += f"(of {len(self.errors)}, too few to tell how fits differ)"
        else:
            text += f"(80 % of fits: {_rounded(low)} to {_rounded(high)})"
        hidden = 1.0 - float(self.detected.mean())
        if hidden > 1.0 - _CLEAR_PART:
            text += f"; noise hides {hidden:.0%} of the clusters".replace("%", " %")
        if np.isnan(self.marked).all():
            return text
        if math.isfinite(self.width):
            width = f"{100.0 * self.width:.2g}"
            text += f"; 95 % intervals of ± {width} % of a column's standard deviation"
        return f"{text}; {100.0 * np.nanmean(self.marked):.0f} % of clusters marked"


def plan(
    n_samples: int,
    n_features: int,
    n_clusters: int,
    epsilon: float,
    delta: float = 0.0,
    *,
    neighbours: str = "replace_one",
    separation: float = USUAL_SEPARATION,
    smallest: float | None = None,
    shape: Literal["round", "skewed"] = "round",
    estimator: CenterClusterer | None = None,
    n_trials: int = 10,
    random_state: RandomState = None,
    progress: Callable[[int], object] | None = None,
) -> Plan:
    """Predict error and intervals of private k-means from simulated fits, without any data.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Size of the planned clustering; more rows than clusters.
    epsilon, delta : float
        The budget.
    neighbours : {"replace_one", "add_remove"}
    separation : float
        Distance of clusters: s. Below 1 they overlap; data without clusters are harder still.
    smallest : float or None
        Fraction of the rows in the smallest cluster, at most 1 / n_clusters; all others have equal
        weights. None: all are equal. Methods differ much if noise hides it.
    shape : {"round", "skewed"}
        Distribution of the rows about the center of their cluster: Gaussian, or with a long tail on
        the right of each feature. Few intervals of skewed clusters are unmarked.
    estimator : estimator or None
        A private estimator of `privclust.kmeans`; its other parameters are used. None:
        `CompressiveKMeans`.
    n_trials : int
        Number of fits.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
    progress : callable or None
        Called with 1 after each fit.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If an argument is not as described, or a ledger is open, which the fits would charge.

    Examples
    --------
    >>> plan(10**9, 2, 3, epsilon=1.0, delta=1e-6, n_trials=2, random_state=0).median < 1.01
    True
    """
    sizes = {"n_samples": n_samples, "n_features": n_features, "n_clusters": n_clusters}
    for name, value in (sizes | {"n_trials": n_trials}).items():
        check_integer(name, value, minimum=1)
    if n_clusters >= n_samples:
        raise ValueError(f"n_clusters must be less than n_samples, {n_samples}, got {n_clusters}")
    check_real("epsilon", epsilon)
    UNUSED_DELTA("delta", delta, {})
    check_real("separation", separation)
    equal = 1.0 / n_clusters
    smallest = equal if smallest is None else smallest
    Real(at_most=equal)("smallest", smallest, {})
    check_option("shape", shape, SHAPES)
    Neighbours.of(neighbours)
    if is_open():
        raise ValueError("simulated fits would be charged to the open ledger: plan outside of it")
    rng = as_generator(random_state)
    n = min(n_samples, max(_MOST_ROWS, _MOST_PER_CLUSTER * n_clusters))
    scale = separation * n_clusters ** (1.0 / n_features)
    half_width = _BOX * math.sqrt(scale**2 + 1.0)
    model = clone(CompressiveKMeans() if estimator is None else estimator)
    # pure accounting of DPLloyd has Laplace noise, whatever delta is
    of_noise = 0.0 if getattr(model, "accounting", None) == "pure" else delta
    model.set_params(
        n_clusters=n_clusters,
        epsilon=_simulated_epsilon(epsilon, of_noise, n_samples / n),
        delta=delta,
        neighbours=neighbours,
        bounds=(-half_width, half_width),
    )
    others = np.full(n_clusters - 1, (1.0 - smallest) / max(n_clusters - 1, 1))
    weights = np.array([1.0 - others.sum(), *others])
    outcomes = []
    for number in range(n_trials):
        X, means = _rows(n, n_features, weights, scale, shape, rng)
        of_intervals = n_samples if number * n_clusters < _FEW_CLUSTERS else None
        outcomes.append(_outcome(model, X, means, of_intervals, rng))
        if progress is not None:
            progress(1)
    errors, detected, widths, marked = np.array([numbers for numbers, _ in outcomes]).T
    return Plan(errors, detected, n, widths, marked, _shares(outcomes[-1][1]))


def _simulated_epsilon(epsilon, delta, ratio):
    """Return the epsilon with noise smaller by a factor of `ratio`."""
    if ratio == 1.0:
        return epsilon
    if delta == 0.0:
        return min(epsilon * ratio, _LARGEST_EPSILON)
    unit = Sensitivity(1.0, "l2", Neighbours.REPLACE_ONE, "a unit")

    def noise(log_epsilon):
        return math.log(analytic_gaussian_sigma(unit, math.exp(log_epsilon), delta))

    wanted, highest = noise(math.log(epsilon)) - math.log(ratio), math.log(_LARGEST_EPSILON)
    if noise(highest) >= wanted:
        return _LARGEST_EPSILON
    return math.exp(
        brentq(lambda place: noise(place) - wanted, math.log(epsilon), highest, xtol=1e-6)
    )


def _rows(n, d, weights, scale, shape, rng):
    """Draw rows (n, d) of clusters with unit variance, and their means (k, d)."""
    means = scale * rng.standard_normal((len(weights), d))
    of_rows = means[rng.choice(len(weights), size=n, p=weights)]
    if shape == "round":
        return of_rows + rng.standard_normal((n, d)), means
    return of_rows + (rng.gamma(_TAIL, size=(n, d)) - _TAIL) / math.sqrt(_TAIL), means


def _outcome(model, X, means, n_samples, rng):
    """Return error over Lloyd's, detected fraction, width and marked fraction; and the guarantee.

    Intervals are those of `n_samples` rows, of which X has as many or fewer. None: NaN instead.
    """
    starts = [means, *(plus_plus(X, len(means), rng) for _ in range(_STARTS))]
    least = min(lloyd(X, start, 100, 1e-4)[1] for start in starts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = clone(model).set_params(random_state=int(rng.integers(2**31))).fit(X)
        width, marked = _intervals(fit, X, n_samples)
    error = inertia(X, fit.cluster_centers_) / least
    detected = float(np.mean(getattr(fit, "is_detected_", 1.0)))
    return (error, detected, width, marked), fit.guarantee_


def _intervals(fit, X, n_samples):
    """Return the width of a fit's intervals and its marked fraction, as in `Plan`."""
    fit = getattr(fit, "estimator_", fit)
    if n_samples is None or not hasattr(fit, "standard_errors"):
        return math.nan, math.nan
    try:
        errors = fit.standard_errors()
    except ValueError:  # clusters were decoded as points
        return math.nan, math.nan
    variances = errors.centers**2
    if n_samples > len(X):
        by_noise = fit.standard_errors(rows=False).centers ** 2
        by_sampling = np.maximum(variances - by_noise, 0.0)
        variances = by_noise + by_sampling * len(X) / n_samples
    is_known = errors.is_reliable & fit.is_detected_
    if not is_known.any():
        return math.nan, 1.0
    widths = _WIDTH_95 * np.sqrt(variances[is_known]) / X.std(axis=0)
    return float(np.median(widths)), float(1.0 - is_known.mean())


def _shares(guarantee: Guarantee) -> dict[str, float]:
    """Return the fraction of the budget of each kind of release."""
    is_pure, spent = guarantee.definition == "pure", {}
    for release in guarantee.releases:
        loss, name = release.loss, _LEVEL.sub("", release.name)
        if loss is not None:
            one = loss.epsilon if is_pure else loss.rho
            spent[name] = spent.get(name, 0.0) + loss.count * one
    total = sum(spent.values())
    return {name: part / total for name, part in spent.items() if part}


def _rounded(error):
    """Format an error so that its excess over 1 has two digits."""
    if error <= 1.0:
        return f"{error:.3g}"
    n_digits = max(0, 1 - math.floor(math.log10(max(error - 1.0, 1e-4))))
    return f"{error:.{n_digits}f}"
