r"""The error of private k-means at a budget, predicted from simulated fits before it is spent.

Rows are drawn from k Gaussian clusters of unit variance. The centers are Gaussian with a variance
of :math:`(s k^{1/d})^2`; s = 1.5 is that of the compressive k-means paper. Clusters weigh the same,
except for one that may be declared smaller. No real data are used.

A large number of rows is replaced by a smaller one. The effect of noise on sums over rows depends
only on its standard deviation divided by their number. So noise is reduced by the same factor:
:math:`\epsilon' = \epsilon n / n'` for Laplace noise; for Gaussian noise
:math:`\sigma(\epsilon', \delta) / n' = \sigma(\epsilon, \delta) / n`. The sampling error is then
overstated, which matters little where noise dominates.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from sklearn.base import clone

from privclust.core.hints import RandomState
from privclust.core.lloyd import inertia, lloyd, plus_plus
from privclust.core.validation import Real, as_generator, check_integer, check_real
from privclust.kmeans._compressive import CompressiveKMeans
from privclust.kmeans._lloyd import CenterClusterer
from privclust.privacy import Neighbours
from privclust.privacy.budget import is_open
from privclust.privacy.measurements import analytic_gaussian_sigma
from privclust.privacy.sensitivity import Sensitivity

USUAL_SEPARATION = 1.5  # distance of clusters in the compressive k-means paper: s
# largest number of simulated rows, in all or per cluster; the larger of both
_MOST_ROWS, _MOST_PER_CLUSTER = 50_000, 1_000
_BOX = 4.0  # half-width of the bounds, in standard deviations of a feature
_LARGEST_EPSILON = 1e6  # of a simulated fit
_STARTS = 3  # k-means++ starts of Lloyd's algorithm, in addition to the true means
_MIDDLE = 0.1, 0.5, 0.9  # quantiles of the errors: 80 % interval and median
_FEWEST = 5  # fewest fits for which the interval is printed
_CLEAR_PART = 0.9  # detected fraction of clusters below which a plan says that noise hides some


@dataclass(frozen=True)
class Plan:
    """Errors of simulated private fits.

    Attributes
    ----------
    errors : ndarray of shape (n_trials,)
        Sums of squared errors, divided by those of Lloyd's algorithm without privacy.
    detected : ndarray of shape (n_trials,)
        Fractions of the clusters that are distinguishable from noise (`is_detected_`).
    n_simulated : int
        Rows of each fit.
    """

    errors: np.ndarray
    detected: np.ndarray
    n_simulated: int

    @property
    def median(self) -> float:
        """The median of `errors`: half of the simulated fits were better."""
        return float(np.median(self.errors))

    @property
    def interval(self) -> tuple[float, float]:
        """The 10 % and the 90 % quantile of the errors."""
        low, high = np.quantile(self.errors, (_MIDDLE[0], _MIDDLE[2]))
        return float(low), float(high)

    def __str__(self) -> str:
        """Return the outcome in words.

        Examples
        --------
        >>> print(Plan(np.array([1.01, 1.02, 1.04]), np.ones(3), 1000))
        error 1.020 times that without privacy (of 3, too few to tell how fits differ)
        >>> str(Plan(np.full(2, 3.0), np.full(2, 0.1), 1000)).partition("; ")[2]
        'noise hides 90 % of the clusters'
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
        return text


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
    estimator: CenterClusterer | None = None,
    n_trials: int = 10,
    random_state: RandomState = None,
    progress: Callable[[int], object] | None = None,
) -> Plan:
    """Predict the error of private k-means from simulated fits, without any data.

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
    for name, value in (("n_samples", n_samples), ("n_features", n_features)):
        check_integer(name, value, minimum=1)
    check_integer("n_clusters", n_clusters, minimum=1)
    check_integer("n_trials", n_trials, minimum=1)
    if n_clusters >= n_samples:
        raise ValueError(f"n_clusters must be less than n_samples, {n_samples}, got {n_clusters}")
    check_real("epsilon", epsilon)
    check_real("delta", delta, inclusive=True)
    if delta >= 1.0:
        raise ValueError(f"delta must be less than 1, got {delta!r}")
    check_real("separation", separation)
    equal = 1.0 / n_clusters
    smallest = equal if smallest is None else smallest
    Real(at_most=equal)("smallest", smallest, {})
    Neighbours.of(neighbours)
    if is_open():
        raise ValueError("simulated fits would be charged to the open ledger: plan outside of it")
    rng = as_generator(random_state)
    n = min(n_samples, max(_MOST_ROWS, _MOST_PER_CLUSTER * n_clusters))
    scale = separation * n_clusters ** (1.0 / n_features)
    half_width = _BOX * math.sqrt(scale**2 + 1.0)
    model = clone(CompressiveKMeans() if estimator is None else estimator)
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
    for _ in range(n_trials):
        outcomes.append(_outcome(model, n, n_features, weights, scale, rng))
        if progress is not None:
            progress(1)
    errors, detected = np.array(outcomes).T
    return Plan(errors, detected, n)


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


def _outcome(model, n, d, weights, scale, rng):
    """Return the error of a simulated fit over Lloyd's, and its fraction of detected clusters."""
    k = len(weights)
    means = scale * rng.standard_normal((k, d))
    X = means[rng.choice(k, size=n, p=weights)] + rng.standard_normal((n, d))
    starts = [means, *(plus_plus(X, k, rng) for _ in range(_STARTS))]
    least = min(lloyd(X, start, 100, 1e-4)[1] for start in starts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = clone(model).set_params(random_state=int(rng.integers(2**31))).fit(X)
    error = inertia(X, fit.cluster_centers_)
    return error / least, float(np.mean(getattr(fit, "is_detected_", 1.0)))


def _rounded(error):
    """Format an error so that its excess over 1 has two digits."""
    if error <= 1.0:
        return f"{error:.3g}"
    n_digits = max(0, 1 - math.floor(math.log10(max(error - 1.0, 1e-4))))
    return f"{error:.{n_digits}f}"
