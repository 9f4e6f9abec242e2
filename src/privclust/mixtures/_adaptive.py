r"""A private mixture that measures each component in its own coordinate frame.

Two stages share the budget; everything else is post-processing.

1. *Start.* Two noisy sketches (means of random Fourier features) are released by
   `privclust.decoding.DensitySketches`: a small one for location and scale of the data, and one at
   the scale of components. EM is run, without noise, on points drawn from the decoded density.
   Single covariances are still unreliable and are moved halfway to their mean.
2. *EM in local frames.* Each component is measured about its own mean, in units of its own
   covariance, with rows clipped to a ball that holds 95 % of a normal distribution. The noise is
   therefore small relative to each component, also to one that is small relative to the data.
   Means and covariances are averaged with their previous estimates by inverse variance (a scalar
   Kalman filter). The variance of a previous estimate is raised where the new measurement is
   farther away than both variances explain, as long as EM has not converged. Counts are those
   measured last.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from privclust.core.hints import RandomState
from privclust.core.progress import logged
from privclust.core.validation import DELTA, GROUPS, Unless
from privclust.decoding import DensitySketches
from privclust.mixtures._em import GaussianMixtureEM
from privclust.mixtures._fitted_mixture import FittedMixture, detected_components
from privclust.mixtures._frames import (
    StatisticWeights,
    chi_radius,
    clipping_factor,
    release_moments,
    statistic_weights,
)
from privclust.mixtures._parameters import (
    MixtureParameters,
    clipped_spectrum,
    outer_products,
    per_component,
    shortened,
)
from privclust.mixtures._perturbations import RELATION
from privclust.privacy import Release
from privclust.privacy.accounting import cdp_share
from privclust.privacy.bounds import bounded_rows
from privclust.privacy.estimator import PrivateEstimator
from privclust.privacy.hidden import noise_message, warn_of_noise
from privclust.privacy.measurements import Gaussian, gaussian_share
from privclust.privacy.noise import noise_source, unprotected_generator

SKETCH_PART = 0.35
"""Share of the budget (in zCDP) for the first stage."""
_KEPT = 0.95  # probability of a normal distribution within a frame's radius
_SHARE_MARGIN = 1e-12  # relative reserve for rounding in the sum of the releases' losses
_LEAST_VARIANCE = 1e-9  # of a component, in squared units of the bound
_SYNTHETIC_ROWS = 4000
_STARTS = 5
_TO_THE_MEAN = 0.5  # shrinkage of the start's covariances to their mean
_START_VARIANCE = 0.25  # variance, in local units, of the start's means and covariances
_CONTRADICTED = 1e-4  # probability of so large a distance, if the variances are right
_SHAPE_CHANGE = (0.1, 10.0)  # a covariance changes by these factors at most in one iteration


@dataclass(eq=False, repr=False)
class AdaptiveGaussianMixture(PrivateEstimator, FittedMixture):
    r"""Differentially private Gaussian mixture, measured in frames that follow the data.

    An extension of the DP-EM paper: at the same privacy loss it needs far fewer rows, finds small
    and narrow components, and needs no start. The guarantee is for replace-one neighbours and holds
    for any data; the frames affect only the accuracy.

    With groups, such as persons with several rows each, a row of a group of n has weight 1 / n.
    Every group then has the same weight, and the guarantee is for a replaced group
    (``privclust.privacy.groups``).

    Parameters
    ----------
    n_components : int
        K.
    covariance_type : {"full", "diag", "spherical"}
    epsilon : float
        Budget of the whole fit in nats; with ``accounting="cdp"`` the mean privacy loss of
        :math:`(\epsilon, \sqrt{2 \epsilon})`-CDP.
    delta : float
        delta of (epsilon, delta)-DP; not used with ``accounting="cdp"``.
    accounting : {"pld", "cdp"}
        The exact composition of Gaussian releases, or concentrated privacy as in DP-EM.
    max_iter : int
        J, iterations of the second stage, fixed in advance.
    norm_bound : float or None
        Largest Euclidean norm of a row, known without the data. With many rows it may be generous:
        at epsilon = 1 and 8,000 rows, a bound 30 times too large lowers the log density by less
        than 0.05 nats. With few rows it hurts. None takes it from the data, warns, and leaves no
        guarantee.
    missing : {"drop", "middle"}
        Treatment of an entry that is missing (NaN, None) or not a number. ``"drop"``: the row
        contributes nothing, and `left_out_` counts such rows. ``"middle"``: the entry is replaced
        by the middle of the bounds.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None draws noise from the operating system, for release (needs ``privclust[secure]``);
        anything else is for reproduction.

    Attributes
    ----------
    parameters_ : MixtureParameters
        The mixture; `weights_`, `means_` and `covariances_` are its parts.
    left_out_ : privclust.privacy.NoisyCount or None
        The noisy number of rows (of persons, with `groups`) that are left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    is_detected_ : ndarray of shape (n_components,)
        Whether a component can be distinguished from noise: its last noisy count exceeds three
        standard deviations of the noise, and the noise moves its mean by less than a quarter of the
        clipping radius.
    n_iter_ : int

    Raises
    ------
    ValueError
        By `fit`, for parameters out of range, more components than rows (or groups), 2^29
        rows or more; for NaN or infinite rows if rows are not clipped to a given bound.

    Warns
    -----
    NoiseWarning
        By `fit`, if components cannot be distinguished from noise.

    References
    ----------
    A. Chatalic, V. Schellekens, F. Houssiau, Y.-A. de Montjoye, L. Jacques and R. Gribonval,
    "Compressive learning with privacy guarantees", Information and Inference 2022, for sketches of
    mixtures.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-2.0, 0.5, (1000, 2)), rng.normal(2.0, 0.5, (1000, 2))])
    >>> mixture = AdaptiveGaussianMixture(2, epsilon=1.0, norm_bound=50.0, random_state=0).fit(X)
    >>> bool(np.abs(np.abs(mixture.means_) - 2.0).max() < 0.2)
    True
    """

    is_detected_: np.ndarray = field(init=False)
    n_iter_: int = field(init=False)

    _constraints: ClassVar = {"n_components": GROUPS, "delta": Unless("accounting", ["cdp"], DELTA)}

    n_components: int = 1
    _: KW_ONLY
    covariance_type: Literal["full", "diag", "spherical"] = "full"
    epsilon: float = 1.0
    delta: float = 1e-6
    accounting: Literal["pld", "cdp"] = "pld"
    max_iter: int = 8
    norm_bound: float | None = None
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups)
        X = records.rows
        delta = None if self.accounting == "cdp" else float(self.delta)
        share = total_share(float(self.epsilon), delta, self.accounting)
        source = noise_source(self.random_state)
        X, bound, leaks = bounded_rows(X, self.norm_bound)
        shape = self.covariance_type, X.shape[1], self.n_components
        plan = FitPlan.of(*shape, self.max_iter, share)
        definition = "cdp" if self.accounting == "cdp" else "approximate"
        promise = self._promised(plan.statements(), definition, source, leaks, records)
        left_out = self._charged(promise, records, source)
        n_records = left_out.n_counted(self.left_out_, RELATION)
        run = _Run(X, bound, self.covariance_type, plan, source, records.groups, n_records)
        mixture = run.refine(run.start(self.n_components))
        self.parameters_ = mixture.stretched(bound)
        self.is_detected_, self.n_iter_ = run.is_detected, self.max_iter
        warn_of_noise(noise_message(self.is_detected_, of="components"))
        return self


@dataclass(frozen=True)
class FitPlan:
    """All releases of a fit: the sketches, and the moments of all iterations."""

    sketches: DensitySketches
    weights: StatisticWeights
    moments: Gaussian

    @classmethod
    def of(cls, kind: str, n_features: int, n_components: int, n_iter: int, share: float) -> Self:
        """Plan releases with a total zCDP loss of share^2 / 2."""
        radius = chi_radius(n_features, _KEPT)
        weights = statistic_weights(kind, n_features, radius, n_components=n_components)
        part = share * math.sqrt(SKETCH_PART)
        # squared shares add up: both stages and all iterations together have share^2
        of_each = share * math.sqrt(1.0 - SKETCH_PART) / math.sqrt(n_iter)
        sketches = DensitySketches.planned(n_features, n_components, part)
        return cls(sketches, weights, weights.noise(of_each, n_iter))

    def statements(self) -> list[Release]:
        words = "sigma {scale:.4g} on weighted sums of sensitivity {sensitivity.value:.4g}"
        return [
            self.sketches.pilot.statement("pilot sketch"),
            self.sketches.clusters.statement("sketch"),
            self.moments.statement("moments of all components", noise=words),
        ]


def total_share(epsilon: float, delta: float | None, accounting: str) -> float:
    """Return sensitivity over sigma of one Gaussian release that spends the whole budget."""
    if accounting == "cdp":
        return cdp_share(epsilon, n_pure=1)
    return gaussian_share(epsilon, delta) * (1.0 - _SHARE_MARGIN)


class _Run:
    """The stages of a fit on one data set, by the releases of a plan, in units of the bound."""

    def __init__(self, X, bound, covariance_type, plan, source, groups, n_records):
        self.X, self.bound, self.kind, self.source = X, bound, covariance_type, source
        self.plan, self.groups = plan, groups
        self.rng = unprotected_generator(source)
        self.n, self.d = n_records, X.shape[1]
        self.radius = chi_radius(self.d, _KEPT)
        self.per_entry = self.d if covariance_type == "spherical" else 1

    def start(self, k):
        """Return a start from noisy sketches: EM on points drawn from the decoded density."""
        n_points = max(_SYNTHETIC_ROWS, 20 * k)
        points = self.plan.sketches.points(
            self.X, self.bound, k, n_points, self.source, self.groups, self.n
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            em = GaussianMixtureEM(
                k, covariance_type=self.kind, n_init=_STARTS, reg_covar=1e-6, random_state=self.rng
            ).fit(points)
        weights = np.maximum(em.weights_, 0.2 / k)
        weights /= weights.sum()
        mean = np.tensordot(weights, em.covariances_, axes=1)
        shapes = em.covariances_ + _TO_THE_MEAN * (mean - em.covariances_)
        return self._mixture(weights, em.means_, shapes)

    def refine(self, mixture):
        k = mixture.n_components
        doubts = np.full((2, k), _START_VARIANCE)  # of means and covariances
        kappa = clipping_factor(self.d, self.radius)
        n_rounds = self.plan.moments.count
        of_count, of_sum, of_second = self.plan.weights.deviations(self.plan.moments)
        for _ in logged(range(n_rounds), n_rounds, "adaptive mixture: rounds"):
            moments = release_moments(
                self.X,
                mixture,
                self.radius,
                self.plan.weights,
                self.plan.moments,
                self.source,
                bound=self.bound,
                groups=self.groups,
            )
            counts = self._counts(moments.counts, of_count)
            # scaling to the sum n in `_counts` may bring counts below twice their noise again
            divisor = np.maximum(counts, 2.0 * of_count)
            noise = self.radius * of_sum / divisor
            shifts = shortened(self.radius * moments.sums / divisor[:, None], self.radius)
            gain, doubts[0] = kalman_step(doubts[0], shifts, noise**2)
            shifts = gain[:, None] * shifts
            unit = np.eye(self.d) if self.kind == "full" else 1.0
            # clipping lowers the second moment of a standard normal coordinate to kappa
            scale = self.radius**2 / divisor / self.per_entry / kappa
            measured = _times(scale, moments.second_moments)
            changes = measured - unit - outer_products(shifts, measured.ndim)
            gain, doubts[1] = kalman_step(doubts[1], changes, (scale * of_second) ** 2)
            shapes = unit + _times(gain, changes)
            moved = self._moved(mixture, shifts, clipped_spectrum(shapes, *_SHAPE_CHANGE))
            mixture = self._mixture(counts / self.n, *moved)
        self.is_detected = detected_components(moments.counts, of_count, of_sum, self.d)
        return mixture

    def _counts(self, counts, noise):
        """Return noisy counts, moved to the sum n and at least at twice their noise."""
        counts = np.maximum(counts + (self.n - counts.sum()) / len(counts), 2.0 * noise)
        return counts * (self.n / counts.sum())

    def _mixture(self, weights, means, covariances):
        """Return a mixture with means in the unit ball and variances up to 1."""
        covariances = clipped_spectrum(covariances, _LEAST_VARIANCE, 1.0)
        return MixtureParameters(weights, shortened(means, 1.0), covariances, self.kind)

    def _moved(self, frames, shifts, shapes):
        """Return means shifted and covariances reshaped by amounts in their own frames."""
        if self.kind == "full":
            roots = np.linalg.cholesky(frames.covariances)
            means = frames.means + np.einsum("kij,kj->ki", roots, shifts)
            # x = mean + L v in the frame of a component with covariance L L'
            covariances = roots @ shapes @ roots.transpose(0, 2, 1)
            return means, 0.5 * (covariances + covariances.transpose(0, 2, 1))
        deviations = np.sqrt(frames.covariances).reshape(len(shifts), -1)
        return frames.means + deviations * shifts, frames.covariances * shapes


def kalman_step(
    variances: np.ndarray, distances: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of new measurements, and the variances of the averages, each (k,).

    `distances` (k, ...) are those of the measurements from the earlier estimates, which have
    `variances` (k,); the variance of the measurements is `noise` (k,). The mean square of distances
    is a chi-square variable if both variances are right. If it is too large to be one, the
    estimate moves still, and its variance is taken from the distances.
    """
    squares = (distances**2).reshape(len(distances), -1).mean(axis=1)
    d = distances.shape[-1] if distances.ndim > 1 else 1
    n_entries = d * (d + 1) // 2 if distances.ndim == 3 else d  # of a symmetric matrix, a vector
    largest = chi2.isf(_CONTRADICTED, n_entries) / n_entries * (variances + noise)
    variances = np.where(squares > largest, squares - noise, variances)
    gain = variances / (variances + noise)
    return gain, (1.0 - gain) * variances


def _times(factors: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    return per_component(factors, covariances.ndim) * covariances
