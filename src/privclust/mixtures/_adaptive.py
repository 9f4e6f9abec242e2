r"""A private mixture that measures each component in a frame of its own.

Three stages share the budget. Each is a sequence of releases of `privclust.mixtures._frames`, whose
sensitivity is the same wherever the frames are; all else is post-processing.

1. *Where the data lie.* A few rounds release mean and covariance of all rows, at first in the ball,
   then in the ellipsoid found so far, made wider by the noise's own size (Biswas, Dong, Kamath and
   Ullman 2020, "CoinPress"). Directions in which the data vary little come out as well as others.
2. *Where the components may lie.* Rows are assigned to several times as many cells as there are
   components, spread over the ellipsoid; counts, sums and second moments of the cells are released
   twice. Synthetic rows drawn from them are clustered without noise by EM, as often as one likes:
   that is the start.
3. *EM in local frames.* Each component is measured about its own mean, in units of its own
   covariance, rows drawn in to a ball that holds 95 % of a normal distribution. Noise is therefore
   small against each component, however small that is against the data. What was known before and
   what is measured are averaged with the weights of their variances (a scalar Kalman filter whose
   state drifts, since EM has not converged at first).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from privclust.core.hints import RandomState
from privclust.core.validation import DELTA, GROUPS, Unless, check_parameters
from privclust.mixtures._em import GaussianMixtureEM
from privclust.mixtures._fitted_mixture import FittedMixture
from privclust.mixtures._frames import (
    StatisticWeights,
    chi_radius,
    clipping_factor,
    release_moments,
    statistic_weights,
)
from privclust.mixtures._noise_check import clear_components
from privclust.mixtures._parameters import (
    MixtureParameters,
    outer_products,
    per_component,
    sample,
)
from privclust.mixtures._perturbations import RELATION
from privclust.privacy import Guarantee
from privclust.privacy.accounting import cdp_share
from privclust.privacy.bounds import bounded_rows
from privclust.privacy.budget import charge
from privclust.privacy.hidden import noise_message, warn_of_noise
from privclust.privacy.measurements import Gaussian, gaussian_share
from privclust.privacy.noise import is_seeded, noise_source, unprotected_generator
from privclust.privacy.records import PrivateEstimator, caveats_of_bounds, private_records


@dataclass(frozen=True)
class Stages:
    """How the budget is divided; chosen on generated mixtures, on none that is reported."""

    global_part: float = 0.15  # of the budget (in zCDP), for the first stage
    global_rounds: int = 4  # releases in it, of equal size
    cell_part: float = 0.20  # of the budget, for the second stage
    cell_rounds: int = 2
    cells: int = 4  # of the second stage for each component
    kept: float = 0.95  # part of a normal distribution that a frame's radius holds


STAGES = Stages()
_SHARE_MARGIN = 1e-12  # part of the share that outweighs rounding in the sum of releases' losses
_LEAST_VARIANCE = 1e-9  # of a component, in squared units of the bound
_SYNTHETIC_ROWS = 4000
_STARTS = 5
_CELL_PRIOR_MEAN, _CELL_PRIOR_VARIANCE = 0.3, 0.05  # of a cell's covariance, by the data's
_START_VARIANCE = 0.25  # variance, in local units, of what the start says of a mean or covariance
_WEIGHT_DRIFT, _MEAN_DRIFT, _COVARIANCE_DRIFT = 0.05, 0.025, 0.025  # added at each iteration
_SHAPE_CHANGE = (0.1, 10.0)  # a covariance changes by these factors at most in one iteration


class AdaptiveGaussianMixture(PrivateEstimator, FittedMixture):
    r"""Differentially private Gaussian mixture, measured in frames that follow the data.

    Beyond the DP-EM paper: at the same privacy it needs a small part of the rows, finds small and
    narrow components, and needs no start. The guarantee is for replaced rows, and holds whatever
    the data; the frames decide how useful the outcome is.

    Parameters
    ----------
    n_components : int
        K.
    covariance_type : {"full", "diag", "spherical"}
    epsilon : float
        Budget of the whole fit in nats; with ``accounting="cdp"`` the mean privacy loss of
        :math:`(\epsilon, \sqrt{2 \epsilon})`-CDP.
    delta : float
        Of (epsilon, delta)-DP; ``accounting="cdp"`` does not use it.
    accounting : {"pld", "cdp"}
        The exact composition of Gaussian releases, or concentrated privacy as in DP-EM.
    max_iter : int
        J, iterations of the last stage, fixed in advance.
    norm_bound : float or None
        Largest Euclidean norm of a row, known without the data. With rows enough it may be
        generous: at epsilon = 1 a bound 30 times too large costs 8,000 rows less than 0.05 nats;
        with few it hurts. None takes it from the data, warns, and leaves no guarantee.
    out_of_bounds : {"clip", "error"}
        What happens to longer rows: drawn in to the bound with a warning, or refused. With
        ``"clip"`` and a bound, rows may be infinite or no numbers: of infinite entries those alone
        count, NaN counts as 0. Neither the warning nor an error is covered by the guarantee: keep
        them as private as X.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None draws noise from the operating system, for release (needs ``privclust[secure]``);
        anything else is for reproduction.

    Attributes
    ----------
    parameters_ : MixtureParameters
        The mixture; `weights_`, `means_` and `covariances_` are its parts.
    guarantee_ : privclust.privacy.Guarantee
    is_clear_ : ndarray of shape (n_components,)
        Whether noise cannot have made a component: its last noised count exceeds three standard
        deviations of the noise, which moves its mean by less than a quarter of what its rows are
        drawn in to.
    n_iter_ : int

    Raises
    ------
    ValueError
        By `fit`, for parameters out of range, more components than rows, 2^29 rows or more; for NaN
        or infinite rows where rows are not drawn in to a given bound.

    Warns
    -----
    NoiseWarning
        By `fit`, if components cannot be told from noise.

    References
    ----------
    S. Biswas, Y. Dong, G. Kamath and J. Ullman, "CoinPress: practical private mean and covariance
    estimation", NeurIPS 2020, for the first stage.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-2.0, 0.5, (1000, 2)), rng.normal(2.0, 0.5, (1000, 2))])
    >>> mixture = AdaptiveGaussianMixture(2, epsilon=1.0, norm_bound=50.0, random_state=0).fit(X)
    >>> bool(np.abs(np.abs(mixture.means_) - 2.0).max() < 0.2)
    True
    """

    _FITTED = ("n_iter_", "guarantee_", "is_clear_")

    _constraints: ClassVar = {"n_components": GROUPS, "delta": Unless("accounting", ["cdp"], DELTA)}

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: Literal["full", "diag", "spherical"] = "full",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        accounting: Literal["pld", "cdp"] = "pld",
        max_iter: int = 8,
        norm_bound: float | None = None,
        out_of_bounds: Literal["clip", "error"] = "clip",
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.epsilon = epsilon
        self.delta = delta
        self.accounting = accounting
        self.max_iter = max_iter
        self.norm_bound = norm_bound
        self.out_of_bounds = out_of_bounds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit the mixture; nothing but noised moments of X reaches the fitted attributes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of norm up to `norm_bound`; longer ones as `out_of_bounds` says.
        y : None
            Not used.

        Returns
        -------
        self
        """
        X = private_records(self, X)
        check_parameters(self, X)
        delta = None if self.accounting == "cdp" else float(self.delta)
        share = total_share(float(self.epsilon), delta, self.accounting)
        source = noise_source(self.random_state)
        X, bound, leaks = bounded_rows(X, self.norm_bound, self.out_of_bounds)
        shape = self.covariance_type, X.shape[1], self.n_components
        plan = release_plan(*shape, self.max_iter, share)
        words = "sigma {scale:.4g} on weighted sums of sensitivity {sensitivity:.4g}"
        self.guarantee_ = Guarantee.of(
            [part.noise.statement(part.name, noise=words) for part in plan.values()],
            "none" if leaks else "cdp" if self.accounting == "cdp" else "approximate",
            RELATION,
            delta=self.delta,
            seeded=is_seeded(source),
            caveats=leaks or caveats_of_bounds(self),
        )
        charge(self.guarantee_)
        self._run(_Run(X, bound, self.covariance_type, plan, source))
        self.n_iter_ = self.max_iter
        return self

    def _run(self, run):
        """Set the mixture, and which components noise cannot have made."""
        mixture = run.refine(run.start(run.locate(), self.n_components))
        self.parameters_ = mixture.stretched(run.bound)
        self.is_clear_ = run.is_clear
        warn_of_noise(noise_message(self.is_clear_, of="components"))


@dataclass(frozen=True)
class PlannedRelease:
    """One kind of release: what it is of, how it weighs its parts, and its noise, with a count."""

    name: str
    weights: StatisticWeights
    noise: Gaussian


def release_plan(
    kind: str, n_features: int, n_components: int, n_iter: int, share: float
) -> dict[str, PlannedRelease]:
    """Return all releases of a fit, by their kind, in their order."""
    radius = chi_radius(n_features, STAGES.kept)
    rest = 1.0 - STAGES.global_part - STAGES.cell_part

    def planned(name, part, rounds, count, weights):
        noise = weights.noise(share * math.sqrt(part) / math.sqrt(rounds), count)
        return PlannedRelease(name, weights, noise)

    def located(scale, count):
        weights = statistic_weights(kind, n_features, scale, with_counts=False)
        name, rounds = "mean and covariance of all rows", STAGES.global_rounds
        return planned(name, STAGES.global_part, rounds, count, weights)

    cells = statistic_weights(kind, n_features, radius)  # a row belongs to one alone
    shared = statistic_weights(kind, n_features, radius, n_components=n_components)
    rounds = STAGES.cell_rounds
    return {
        # the ball's radius is its bound; its rows are taken to vary in all directions alike
        "ball": located(math.sqrt(n_features), 1),
        "ellipsoid": located(radius, STAGES.global_rounds - 1),
        "cells": planned("counts and moments of cells", STAGES.cell_part, rounds, rounds, cells),
        "components": planned("moments of all components", rest, n_iter, n_iter, shared),
    }


def total_share(epsilon: float, delta: float | None, accounting: str) -> float:
    """Return sensitivity over noise of one Gaussian release that would spend the whole budget."""
    if accounting == "cdp":
        return cdp_share(epsilon, n_pure=1)
    return gaussian_share(epsilon, delta) * (1.0 - _SHARE_MARGIN)


class _Run:
    """The three stages on one data set, by the releases of a plan; in units of the bound."""

    def __init__(self, X, bound, covariance_type, plan, source):
        self.X, self.bound, self.kind, self.source = X, bound, covariance_type, source
        self.plan = plan
        self.rng = unprotected_generator(source)
        self.n, self.d = X.shape
        self.radius = chi_radius(self.d, STAGES.kept)
        self.per_entry = self.d if covariance_type == "spherical" else 1

    def measure(self, kind, frames, radius):
        """Release moments as planned."""
        planned = self.plan[kind]
        return release_moments(
            self.X,
            frames,
            radius,
            planned.weights,
            planned.noise,
            self.source,
            bound=self.bound,
            hard=kind == "cells",
        )

    def locate(self):
        """Return one Gaussian for all rows, a frame in which few are clipped."""
        frame = self._mixture(np.ones(1), np.zeros((1, self.d)), _unit(self.kind, 1, self.d))
        radius, first = 1.0, True
        for turn in range(STAGES.global_rounds):
            moments = self.measure("ball" if first else "ellipsoid", frame, radius)
            shift = _shortened(radius * moments.sums / self.n, radius)
            seconds = radius**2 * moments.seconds / self.n / self.per_entry
            noise = radius**2 * moments.second_noise / self.n / self.per_entry
            widest = 1.0 / _LEAST_VARIANCE  # takes any frame beyond the ball
            edge = min(noise * _edge(self.kind, self.d), widest)
            centred = seconds - outer_products(shift, seconds.ndim)
            shape = _spectral(centred, 0.5 * edge + 1e-6, 1.0 if first else widest)
            if turn + 1 < STAGES.global_rounds:
                shape = shape + edge * _unit(self.kind, 1, self.d)  # wide: little is clipped
            frame = self._moved(frame, shift, shape)
            radius, first = self.radius, False
        return frame

    def start(self, whole, k):
        """Return a start from noised cells: EM on synthetic rows."""
        n_cells = STAGES.cells * k
        centers = _spread(n_cells, self.d, self.rng)
        shapes = _unit(self.kind, n_cells, self.d)
        for _ in range(STAGES.cell_rounds):
            counts, noise, centers, shapes = self._measure_cells(whole, centers)
        kept = np.maximum(counts - noise, 0.0)
        kept = kept / kept.sum() if kept.sum() > 0 else np.full(n_cells, 1.0 / n_cells)
        cells = self._in_frame(whole, kept, centers, shapes)
        rows, _ = sample(cells, max(_SYNTHETIC_ROWS, 20 * k), self.rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            em = GaussianMixtureEM(
                k,
                covariance_type=self.kind,
                n_init=_STARTS,
                reg_covar=1e-6,
                random_state=self.rng,
            ).fit(rows)
        weights = np.maximum(em.weights_, 0.2 / k)
        return self._mixture(weights / weights.sum(), em.means_, em.covariances_)

    def _measure_cells(self, whole, centers):
        """Release the cells' moments; return counts, their noise, and centers and shapes."""
        n_cells = len(centers)
        frames = self._in_frame(
            whole, np.full(n_cells, 1.0 / n_cells), centers, _unit(self.kind, n_cells, self.d)
        )
        moments = self.measure("cells", frames, self.radius)
        counts = moments.counts + (self.n - moments.counts.sum()) / n_cells
        divisor = np.maximum(counts, 2.0 * moments.count_noise)
        shifts = self.radius * moments.sums / divisor[:, None]
        noise = self.radius * moments.sum_noise / divisor
        squared = np.maximum((shifts**2).sum(axis=1), np.finfo(float).tiny)
        # James and Stein: a shift that may be noise is shrunk towards none
        shifts *= np.maximum(0.0, 1.0 - self.d * noise**2 / squared)[:, None]
        shifts = _shortened(shifts, self.radius)
        scale = self.radius**2 / divisor / self.per_entry
        seconds = _times(scale, moments.seconds)
        seconds = seconds - outer_products(shifts, seconds.ndim)
        gain = _CELL_PRIOR_VARIANCE / (_CELL_PRIOR_VARIANCE + (scale * moments.second_noise) ** 2)
        unit = _unit(self.kind, n_cells, self.d)
        shapes = _times(1.0 - gain, _CELL_PRIOR_MEAN * unit)
        shapes = shapes + _times(gain, _spectral(seconds, 0.02, 2.0))
        return np.maximum(counts, 0.0), moments.count_noise, centers + shifts, shapes

    def refine(self, mixture):
        """Return the mixture after EM in local frames."""
        k = mixture.n_components
        doubts = np.full((3, k), _START_VARIANCE)  # of weights, means and covariances
        kappa = clipping_factor(self.d, self.radius)
        for _ in range(self.plan["components"].noise.count):
            moments = self.measure("components", mixture, self.radius)
            counts, doubts[0] = self._filtered_counts(mixture.weights, moments, doubts[0])
            divisor = np.maximum(counts, 2.0 * moments.count_noise)
            noise = self.radius * moments.sum_noise / divisor
            gain = doubts[1] / (doubts[1] + noise**2)
            doubts[1] = (1.0 - gain) * doubts[1] + _MEAN_DRIFT
            shifts = _shortened(self.radius * moments.sums / divisor[:, None], self.radius)
            shifts = gain[:, None] * shifts
            scale = self.radius**2 / divisor / self.per_entry
            gain = doubts[2] / (doubts[2] + (scale * moments.second_noise) ** 2)
            doubts[2] = (1.0 - gain) * doubts[2] + _COVARIANCE_DRIFT
            unit = _unit(self.kind, k, self.d)
            measured = _times(scale / kappa, moments.seconds)
            shapes = unit + _times(gain, measured - unit - outer_products(shifts, unit.ndim))
            moved = self._moved(mixture, shifts, _spectral(shapes, *_SHAPE_CHANGE))
            mixture = self._mixture(counts / self.n, moved.means, moved.covariances)
        self.is_clear = clear_components(
            moments.counts, moments.count_noise, moments.sum_noise, self.d
        )
        return mixture

    def _filtered_counts(self, weights, moments, doubt):
        """Average known and measured counts by their variances; they sum to n."""
        k, expected = len(weights), weights * self.n
        measured = moments.counts + (self.n - moments.counts.sum()) / k
        noise = moments.count_noise**2 * (1.0 - 1.0 / k)
        spread = doubt * expected**2
        gain = spread / np.maximum(spread + noise, np.finfo(float).tiny)
        counts = np.maximum(expected + gain * (measured - expected), 2.0 * moments.count_noise)
        return counts * (self.n / counts.sum()), (1.0 - gain) * doubt + _WEIGHT_DRIFT

    def _mixture(self, weights, means, covariances):
        """Return a mixture with means in the ball, variances from the least to the ball's own."""
        covariances = _spectral(covariances, _LEAST_VARIANCE, 1.0)
        return MixtureParameters(weights, _shortened(means, 1.0), covariances, self.kind)

    def _moved(self, frames, shifts, shapes):
        """Return each frame's Gaussian moved and reshaped by amounts in its own units."""
        roots = _roots(frames)
        if self.kind == "full":
            means = frames.means + np.einsum("kij,kj->ki", roots, shifts)
            covariances = roots @ shapes @ roots.transpose(0, 2, 1)
            covariances = 0.5 * (covariances + covariances.transpose(0, 2, 1))
        else:
            means = frames.means + roots.reshape(len(roots), -1) * shifts
            covariances = frames.covariances * shapes
        return self._mixture(frames.weights, means, covariances)

    def _in_frame(self, whole, weights, centers, shapes):
        """Return Gaussians that are given in the units of one frame."""
        n_cells = len(centers)
        frames = MixtureParameters(
            weights,
            np.repeat(whole.means, n_cells, axis=0),
            np.repeat(whole.covariances, n_cells, axis=0),
            self.kind,
        )
        return self._moved(frames, centers, shapes)


def _unit(kind: str, k: int, d: int) -> np.ndarray:
    """Unit covariances of a type."""
    if kind == "full":
        return np.tile(np.eye(d), (k, 1, 1))
    return np.ones((k, d)) if kind == "diag" else np.ones(k)


def _roots(frames: MixtureParameters) -> np.ndarray:
    """Inverse whitening factors: lower triangular, or standard deviations."""
    if frames.covariance_type == "full":
        return np.linalg.cholesky(frames.covariances)
    return np.sqrt(frames.covariances)


def _times(factors: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """Multiply each component's covariance by its factor."""
    return per_component(factors, covariances.ndim) * covariances


def _spectral(covariances: np.ndarray, low: float, high: float) -> np.ndarray:
    """Cut eigenvalues to a range."""
    if covariances.ndim < 3:
        return np.clip(covariances, low, high)
    values, vectors = np.linalg.eigh(covariances)
    return np.einsum("kab,kb,kcb->kac", vectors, np.clip(values, low, high), vectors)


def _edge(kind: str, d: int) -> float:
    """Largest eigenvalue to expect of noise of unit variance on a second moment."""
    if kind == "full":
        return math.sqrt(2.0 * d)
    return math.sqrt(2.0 * math.log(2.0 * d)) if kind == "diag" else 1.0


def _shortened(vectors: np.ndarray, length: float) -> np.ndarray:
    """Shorten vectors to a length at most."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * (length / np.maximum(norms, length))


def _spread(n_points: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Draw points as of a standard normal distribution that keep apart (best of 20 candidates)."""
    points = rng.normal(size=(1, d))
    for _ in range(n_points - 1):
        candidates = rng.normal(size=(20, d))
        gaps = ((candidates[:, None] - points[None]) ** 2).sum(axis=2).min(axis=1)
        points = np.vstack([points, candidates[gaps.argmax()]])
    return points
