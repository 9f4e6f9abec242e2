"""A Gaussian mixture with differentially private parameters."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.hints import RandomState
from privclust.core.lloyd import nearest_center
from privclust.core.progress import logged
from privclust.core.validation import DELTA, GROUPS, Unless
from privclust.core.warn import warn_caller
from privclust.mixtures._fitted_mixture import FittedMixture, detected_components
from privclust.mixtures._noisy_statistics import (
    Estimate,
    FloorRates,
    NoisedStatistics,
    add_noise,
    parameters_from,
)
from privclust.mixtures._parameters import (
    MixtureParameters,
    clipped_spectrum,
    covariance_shape,
    shortened,
    start_array,
)
from privclust.mixtures._perturbations import PlanSettings, budget_share, perturbations, statements
from privclust.mixtures.exact_statistics import (
    ExactStatistics,
    exact_statistics,
    nearest_mean_statistics,
    weighted_statistics,
)
from privclust.privacy.bounds import bounded_rows, uniform_in_ball
from privclust.privacy.estimator import PrivateEstimator
from privclust.privacy.groups import by_size
from privclust.privacy.hidden import noise_message, warn_of_noise
from privclust.privacy.noise import (
    NoiseSource,
    Value,
    noise_source,
    unprotected_generator,
)

_VARIANCES = (1e-12, 1.0)  # of a start, in squared units of the bound
_PRIOR = {"concentration": 2.0, "mean_precision": 1.0, "scale": 0.1}


@dataclass(eq=False, repr=False)
class PrivateGaussianMixture(PrivateEstimator, FittedMixture):
    r"""Gaussian mixture by EM on noisy sufficient statistics.

    Each of `max_iter` iterations computes the responsibilities (eq. 11 of the DP-EM paper) at the
    current parameters, adds noise to the expected sufficient statistics once, and sets the
    parameters from them. All iterates may be published; the last is kept.

    By default (``variant="corrected"``, ``mean_noise="joint"``, ``accounting="pld"``) one Gaussian
    release covers counts, sums and second moments of all components. It is calibrated to
    (epsilon, delta) for replace-one neighbours. The paper's mechanisms and budget rules are for
    reproduction and comparison: ``variant="paper"`` is **not** private, see `guarantee_`.

    With groups, such as persons with several rows each, a row of a group of n has weight 1 / n.
    Every group then has the same weight, and the guarantee is for a replaced group
    (``privclust.privacy.groups``).

    Parameters
    ----------
    n_components : int
        K.
    covariance_type : {"full", "spherical", "diag", "zero"}
        ``"zero"`` is the k-means limit: variances go to zero, each row belongs to its nearest mean,
        and no second moment is released ("k-means mode", CDPlap and CDPgau of Fig. 3). There is no
        density then, and `predict` is the only method.
    epsilon : float
        Budget of the whole fit in nats. With ``accounting="cdp"`` the mean privacy loss of
        :math:`(\epsilon, \sqrt{2 \epsilon})`-CDP, far weaker than (epsilon, delta)-DP with the same
        number: 0.9 is 5.9 at delta = 1e-4.
    delta : float
        delta of (epsilon, delta)-DP; not used with ``accounting="cdp"``.
    accounting : {"pld", "zcdp", "cdp", "advanced"}
        Division of the budget: by the better of privacy loss distributions and zCDP, by zCDP, by
        the rule of Section 5, or by advanced composition (Appendix C, eq. 31).
    mean_noise : {"joint", "laplace", "gaussian"}
        ``"joint"``: one Gaussian release of all statistics. Otherwise separate noise on weights,
        means and covariances, as in the paper; this is the noise on the means (eq. 15, or the
        Gaussian mechanism below it).
    variant : {"corrected", "paper"}
        ``"paper"`` adds Gamma noise to variances (eq. 16) and Wishart noise to covariances (eqs.
        17, 18), which is not private. ``"corrected"`` adds Laplace noise instead, and keeps means
        in the ball and variances below its squared radius. Both have a floor on variances.
    max_iter : int
        J, fixed in advance: the budget is divided by it.
    norm_bound : float or None
        Largest Euclidean norm of a row, in the units of X, known without the data. None takes it
        from the data, warns, and leaves no guarantee.
    estimate : {"mle", "map"}
        Maximum likelihood (eq. 12) or maximum a posteriori with the paper's priors in unit-ball
        coordinates: alpha = 2, kappa_0 = 1, nu_0 = d + 2, S_0 = 0.1 I.
    mean_delta : float
        delta' of the Gaussian mechanism for ``mean_noise="gaussian"``, which sets its scale. With
        advanced composition, Appendix C adds a failure probability ``max_iter * mean_delta`` to
        `delta`; K releases per iteration, as the paper counts, would make it K times larger.
    covariance_floor : float
        Least variance, relative to ``norm_bound**2``.
    weights_init, means_init, covariances_init : array-like or None
        The start, which must not depend on the data. Means are clipped to the ball, and variances
        to its squared radius, with a warning. None: equal weights, means uniform in the ball,
        covariances ``K**(-2 / d) / (d + 2)`` of the squared bound times the identity.
    missing : {"drop", "middle"}
        Treatment of an entry that is missing (NaN, None) or not a number. ``"drop"``: the row
        contributes nothing, and `left_out_` counts such rows. ``"middle"``: the entry is replaced
        by the middle of the bounds.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None draws noise from the operating system with samplers that resist the floating-point
        attack, for release (needs the extra ``privclust[secure]``). Anything else is for
        reproduction; the guarantee then states that it was seeded.

    Attributes
    ----------
    parameters_ : MixtureParameters
        The mixture; `weights_`, `means_` and `covariances_` are its parts. Zero covariances are
        set to the floor.
    left_out_ : privclust.privacy.NoisyCount or None
        The noisy number of rows (of persons, with `groups`) that are left out; see
        `privclust.privacy.left_out`. None with ``missing="middle"`` and without a guarantee.
    guarantee_ : privclust.privacy.Guarantee
    share_ : float
        eps' of one perturbation (joint noise: sensitivity over standard deviation).
    floor_rates_ : FloorRates
        How often post-processing had to correct parameters.
    is_detected_ : ndarray of shape (n_components,)
        Whether a component can be distinguished from noise: its last noisy count exceeds three
        standard deviations of the noise, which moves its mean by less than a quarter of the bound.
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
    M. Park, J. Foulds, K. Chaudhuri and M. Welling, "Practical Privacy for Expectation
    Maximization", arXiv:1605.06995.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-0.4, 0.1, (20_000, 2)), rng.normal(0.4, 0.1, (20_000, 2))])
    >>> mixture = PrivateGaussianMixture(
    ...     2, epsilon=1.0, delta=1e-5, norm_bound=1.0,
    ...     means_init=[[-0.2, 0.0], [0.2, 0.0]], random_state=1,
    ... ).fit(X.clip(-0.7, 0.7))
    >>> np.abs(np.abs(mixture.means_) - 0.4).max() < 0.05
    np.True_
    >>> mixture.guarantee_.definition, mixture.guarantee_.seeded
    ('approximate', True)
    """

    share_: float = field(init=False)
    floor_rates_: FloorRates = field(init=False)
    is_detected_: np.ndarray = field(init=False)
    n_iter_: int = field(init=False)

    _constraints: ClassVar = {
        "n_components": GROUPS,
        "delta": Unless("accounting", ["cdp"], DELTA),
        "mean_delta": DELTA,
    }

    n_components: int = 1
    _: KW_ONLY
    covariance_type: Literal["spherical", "diag", "full", "zero"] = "full"
    epsilon: float = 1.0
    delta: float = 1e-6
    accounting: Literal["cdp", "advanced", "zcdp", "pld"] = "pld"
    mean_noise: Literal["laplace", "gaussian", "joint"] = "joint"
    variant: Literal["corrected", "paper"] = "corrected"
    max_iter: int = 10
    norm_bound: float | None = None
    estimate: Literal["mle", "map"] = "mle"
    mean_delta: float = 1e-3
    covariance_floor: float = 1e-3
    weights_init: ArrayLike | None = None
    means_init: ArrayLike | None = None
    covariances_init: ArrayLike | None = None
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        records = self._checked_records(X, groups)
        X = records.rows
        if self.variant == "paper" and (
            self.mean_noise == "joint" or self.covariance_type == "diag"
        ):
            raise ValueError(
                "variant='paper' knows mean_noise 'laplace' and 'gaussian' and no diagonal "
                f"covariances, got mean_noise={self.mean_noise!r}, "
                f"covariance_type={self.covariance_type!r}"
            )
        settings = self._settings(X.shape[1])
        self.share_ = budget_share(settings, self.epsilon, self.delta, self.accounting)
        source = noise_source(self.random_state)
        X, radius, leaks = bounded_rows(X, self.norm_bound)
        start = self._start(X.shape[1], radius, unprotected_generator(source))
        definition = "cdp" if self.accounting == "cdp" else "approximate"
        releases = statements(settings, self.share_)
        promise = self._promised(releases, definition, source, leaks, records)
        left_out = self._charged(promise, records, source)
        n_records = left_out.n_counted(self.left_out_, promise.relation)
        plan = perturbations(settings, self.share_)
        self._run(by_size(records.groups, X), n_records, radius, start, plan, source)
        self.n_iter_ = self.max_iter
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the component of each row: the most likely, or (``"zero"``) the nearest mean."""
        if self.covariance_type != "zero":
            return super().predict(X)
        return nearest_center(self._validated(X), self.means_)

    def noisy_round(
        self, counts: Value, sums: Value, second_moments: Value, source: NoiseSource
    ) -> NoisedStatistics:
        """Return the statistics of one iteration, for rows in the unit ball, with noise.

        Statistics of several iterations may be concatenated along the first axes, as if there were
        more components. The result has attributes of these names and shapes.
        """
        settings = self._settings(sums.shape[1])
        share = budget_share(settings, self.epsilon, self.delta, self.accounting)
        return add_noise(perturbations(settings, share), counts, sums, second_moments, source)

    def _settings(self, n_features):
        kinds = self.covariance_type, self.mean_noise, self.variant
        return PlanSettings(n_features, self.n_components, self.max_iter, *kinds, self.mean_delta)

    def _run(self, parts, n_records, radius, start, plan, source):
        """Run EM from a mixture in units of the radius; `parts` are rows by group size."""
        mixture, acted, estimate = start, np.zeros(3), self._estimate(start.n_features)
        for _ in logged(range(self.max_iter), self.max_iter, "private EM: iterations"):
            exact = weighted_statistics(parts, partial(self._statistics, radius, mixture))
            sums = exact.counts, exact.sums, exact.second_moments
            noisy = add_noise(plan, *sums, source).of_unit(exact.unit)
            *found, floors = parameters_from(noisy, n_records, estimate)
            mixture, acted = self._mixture(*found), acted + floors.sum(axis=1)
        self.parameters_ = mixture.stretched(radius)
        rates = acted / (self.n_components * self.max_iter)
        self.floor_rates_ = FloorRates(*(float(rate) for rate in rates))
        noises = (plan.get("joint") or plan[part] for part in ("counts", "sums"))
        deviations = [noise.deviation for noise in noises]
        self.is_detected_ = detected_components(noisy.counts, *deviations, start.n_features)
        warn_of_noise(noise_message(self.is_detected_, of="components"))

    def _mixture(self, weights, means, covariances):
        """Return a mixture, with zero covariances (None) set to the floor."""
        kind = self.covariance_type
        if kind == "zero":
            kind, covariances = "spherical", np.full(len(means), self.covariance_floor)
        return MixtureParameters(weights, means, covariances, kind)

    def _statistics(self, radius, mixture, X) -> ExactStatistics:
        """Return the exact statistics of rows, in units of about the radius."""
        if self.covariance_type == "zero":
            return nearest_mean_statistics(X, radius, mixture.means)
        return exact_statistics(X, radius, mixture)

    def _start(self, n_features, radius, rng):
        """Return a data-independent mixture in unit-ball coordinates."""
        k, kind = self.n_components, self.covariance_type
        weights = start_array("weights_init", self.weights_init, (k,))
        if weights is None:
            weights = np.full(k, 1.0 / k)
        drawn = uniform_in_ball(k, n_features, rng)  # with any start, for the same noise
        means = start_array("means_init", self.means_init, (k, n_features))
        if means is None:
            means = drawn
        else:
            means = means / radius
            if np.linalg.norm(means, axis=1).max() > 1.0 + 1e-12:
                means = shortened(means, 1.0)
                _warn_of_start("means_init")
        if kind == "zero":
            return self._mixture(weights, means, None)
        shape = covariance_shape(kind, k, n_features)
        covariances = start_array("covariances_init", self.covariances_init, shape)
        if covariances is None:
            unit = np.eye(n_features) if kind == "full" else 1.0
            # of a uniform distribution in a ball with 1 / k of the unit ball's volume
            variance = k ** (-2.0 / n_features) / (n_features + 2.0)
            covariances = np.broadcast_to(variance * unit, shape)
        else:
            covariances = covariances / radius**2
        MixtureParameters(weights, means, covariances, kind)  # refuses a bad start
        clipped = clipped_spectrum(covariances, *_VARIANCES)
        if clipped is not covariances:
            _warn_of_start("covariances_init")
        return self._mixture(weights, means, clipped)

    def _estimate(self, n_features):
        project = self.variant == "corrected"
        if self.estimate == "mle":
            return Estimate(1.0, 0.0, 0.0, 0.0, self.covariance_floor, project)
        weight = 2.0 * (n_features + 2.0)  # c = nu_0 + d + 2 with nu_0 = d + 2
        return Estimate(
            degrees_of_freedom=weight, floor=self.covariance_floor, project=project, **_PRIOR
        )


def _warn_of_start(name):
    warn_caller(
        f"{name} lies outside the ball of norm_bound and is clipped to it: the start may be "
        "in other units than X"
    )
