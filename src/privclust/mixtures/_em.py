"""Expectation maximisation for mixtures of Gaussians."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from privclust.core.hints import RandomState
from privclust.core.lloyd import inertia, plus_plus
from privclust.core.progress import logged
from privclust.core.validation import GROUPS, NOT_NEGATIVE, as_generator, check_parameters
from privclust.core.warn import warn_caller
from privclust.mixtures._estimates import MixturePrior, maximum_a_posteriori, maximum_likelihood
from privclust.mixtures._fitted_mixture import FittedMixture
from privclust.mixtures._parameters import MixtureParameters, covariance_shape
from privclust.mixtures._statistics import NOT_USABLE, centred_statistics


@dataclass(eq=False, repr=False)
class GaussianMixtureEM(FittedMixture):
    r"""Mixture of Gaussians by expectation maximisation, with one fused pass per iteration.

    An iteration computes the responsibilities of eq. (11) and the moments of eq. (12) together,
    block by block in cache, about the current means. No array of size n_samples x n_components is
    allocated. From the same start the iterates are those of scikit-learn's ``GaussianMixture``.

    ``estimate="map"`` maximises the posterior of Section 4.1 instead of the likelihood: with
    weights ~ Dir(α, ..., α) and (μ_k, Σ_k) ~ NIW(0, κ₀, ν₀, S₀),

    .. math::
        \pi_k = \frac{N_k + \alpha - 1}{N + K (\alpha - 1)}, \quad
        \mu_k = \frac{N_k \bar\mu_k}{N_k + \kappa_0}, \quad
        \Sigma_k = \frac{S_0 + N_k \bar\Sigma_k +
        \frac{\kappa_0 N_k}{\kappa_0 + N_k} \bar\mu_k \bar\mu_k^T}{\nu_0 + N_k + d + 2},

    where a bar marks the estimates of eq. (12). ``"diag"`` takes the diagonal of this matrix and
    ``"spherical"`` its trace over d, which maximise the posterior under the prior restricted to
    such matrices.

    Parameters
    ----------
    n_components : int, default 1
        Number K of Gaussians.
    covariance_type : {"full", "diag", "spherical"}, default "full"
        Free entries of a covariance: all, the diagonal, or one variance.
    estimate : {"mle", "map"}, default "mle"
        Maximum likelihood or maximum a posteriori.
    tol : float, default 1e-3
        Iterations stop when the objective per sample changes by less; 0 runs all iterations.
    max_iter : int, default 100
        Largest number of iterations.
    n_init : int, default 1
        Number of starts; the run with the largest objective is kept.
    reg_covar : float, default 1e-6
        Added to variances, in units of X squared; maximum likelihood only (``"map"`` has S₀
        instead). With a value above 0 the likelihood need not rise in every iteration.
    init : {"k-means++", "random"}, default "k-means++"
        Initial means: distinct samples drawn at random, or by k-means++. Initial weights are equal.
        Initial covariances are spherical, with the mean squared distance of samples to the nearest
        mean over n_features, plus `reg_covar` (or S₀), as variance.
    weights_init, means_init, covariances_init : array-like or None, default None
        Replace the initial weights (n_components,), means (n_components, n_features) and
        covariances (shape by their type).
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        Source of the starts.

    Attributes
    ----------
    parameters_ : MixtureParameters
        The fitted mixture; `weights_`, `means_` and `covariances_` are its parts.
    lower_bounds_ : ndarray of shape (n_iter_,)
        Objective per sample at the start of each iteration of the best run: log-likelihood ("mle"),
        or log-likelihood plus log prior up to a constant ("map").
    lower_bound_ : float
        Last entry of `lower_bounds_`; `parameters_` are one M-step later.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether the best run met `tol`.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Warns
    -----
    ConvergenceWarning
        If `tol` is positive and not met within `max_iter`.

    References
    ----------
    M. Park, J. Foulds, K. Chaudhuri and M. Welling, "Practical privacy for expectation
    maximization", Section 4.1, eqs. (11) and (12) and the MAP estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.mixtures import GaussianMixtureEM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-3.0, 1.0, (200, 1)), rng.normal(3.0, 1.0, (200, 1))])
    >>> model = GaussianMixtureEM(2, means_init=[[-1.0], [1.0]]).fit(X)
    >>> model.predict([[-2.0], [2.0]]).tolist()
    [0, 1]
    """

    lower_bounds_: np.ndarray = field(init=False)
    lower_bound_: float = field(init=False)
    n_iter_: int = field(init=False)
    converged_: bool = field(init=False)
    n_features_in_: int = field(init=False)

    _FITTED = ("n_iter_", "converged_", "lower_bound_", "lower_bounds_")

    _constraints: ClassVar = {
        "n_components": GROUPS,
        "tol": NOT_NEGATIVE,
        "reg_covar": NOT_NEGATIVE,
    }

    n_components: int = 1
    _: KW_ONLY
    covariance_type: Literal["full", "diag", "spherical"] = "full"
    estimate: Literal["mle", "map"] = "mle"
    tol: float = 1e-3
    max_iter: int = 100
    n_init: int = 1
    reg_covar: float = 1e-6
    init: Literal["random", "k-means++"] = "k-means++"
    weights_init: ArrayLike | None = None
    means_init: ArrayLike | None = None
    covariances_init: ArrayLike | None = None
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers; double precision in C or Fortran order is not copied.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of its range, there are fewer samples than components, or a
            covariance becomes singular with ``reg_covar=0``.
        """
        X = validate_data(self, X, dtype=np.float64)
        check_parameters(self, X)
        self._check_against(X.shape[1])
        rng = as_generator(self.random_state)
        prior = self._prior()
        best = None
        for _ in range(self.n_init):
            run = self._run(X, self._start(X, rng), prior)
            if best is None or run[1][-1] > best[1][-1]:
                best = run
        self.parameters_, bounds, self.converged_ = best
        self.lower_bounds_ = np.array(bounds)
        self.lower_bound_ = bounds[-1]
        self.n_iter_ = len(bounds)
        if self.tol > 0.0 and not self.converged_:
            warn_caller(
                f"the objective still changed by more than tol={self.tol:g} after "
                f"max_iter={self.max_iter} iterations",
                ConvergenceWarning,
            )
        return self

    def bic(self, X: ArrayLike) -> float:
        """Return the Bayesian information criterion on X, the lower the better."""
        n_samples = np.shape(X)[0]
        return self._n_free() * np.log(n_samples) - 2.0 * n_samples * self.score(X)

    def aic(self, X: ArrayLike) -> float:
        """Return the Akaike information criterion on X, the lower the better."""
        return 2.0 * self._n_free() - 2.0 * np.shape(X)[0] * self.score(X)

    def _run(self, X, parameters, prior):
        """Return the parameters, the objectives per sample, and whether EM converged."""
        bounds = []
        for _ in logged(range(self.max_iter), self.max_iter, "EM: iterations at most"):
            statistics = centred_statistics(X, parameters)
            objective = statistics.log_likelihood
            if prior is None:
                updated = maximum_likelihood(statistics, parameters, self.reg_covar)
            else:
                objective += prior.log_density(parameters)
                updated = maximum_a_posteriori(statistics, parameters, prior)
            bounds.append(objective / X.shape[0])
            parameters = updated
            if len(bounds) > 1 and abs(bounds[-1] - bounds[-2]) < self.tol:
                return parameters, bounds, True
        return parameters, bounds, False

    def _start(self, X, rng) -> MixtureParameters:
        k, d = self.n_components, X.shape[1]
        weights: Any = self.weights_init
        means: Any = self.means_init
        if weights is None:
            weights = np.full(k, 1.0 / k)
        if means is None:
            means = self._drawn_means(X, rng)
        covariances: Any = self.covariances_init
        if covariances is None:
            covariances = self._drawn_covariances(X, np.asarray(means, dtype=np.float64))
        start = MixtureParameters(weights, means, covariances, self.covariance_type)
        if start.means.shape != (k, d):
            raise ValueError(f"means_init must have shape ({k}, {d}), got {start.means.shape}")
        return start

    def _drawn_means(self, X, rng):
        """Return distinct samples; k-means++ has as many trials as in scikit-learn."""
        k = self.n_components
        if self.init == "random":
            return X[rng.choice(X.shape[0], size=k, replace=False)]
        return plus_plus(np.ascontiguousarray(X), k, rng, n_trials=2 + int(np.log(k)))

    def _drawn_covariances(self, X, means):
        """Return spherical covariances from the mean squared distance to the nearest mean."""
        k, d = means.shape
        variance = inertia(X, means) / X.size
        if not np.isfinite(variance):
            raise ValueError(NOT_USABLE)
        prior = self._prior()
        # keeps the variance positive if all samples are means
        variance += self.reg_covar if prior is None else prior.scale
        if variance == 0.0:
            raise ValueError("all samples are means of the start: reg_covar must be above 0, got 0")
        shape = covariance_shape(self.covariance_type, k, d)
        unit = np.eye(d) if self.covariance_type == "full" else 1.0
        return np.broadcast_to(variance * unit, shape)

    def _prior(self) -> MixturePrior | None:
        if self.estimate == "mle":
            return None
        return MixturePrior(2.0, 1.0, self.n_features_in_ + 2.0, 0.1)

    def _n_free(self) -> int:
        k, d = self.means_.shape
        each = {"spherical": 1, "diag": d, "full": d * (d + 1) // 2}[self.covariance_type]
        return k - 1 + k * d + k * each

    def _check_against(self, d):
        """Raise a ValueError if an initial parameter has the wrong shape."""
        k = self.n_components
        shapes = {
            "weights_init": (k,),
            "means_init": (k, d),
            "covariances_init": covariance_shape(self.covariance_type, k, d),
        }
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is not None and np.shape(value) != shape:
                raise ValueError(f"{name} must have shape {shape}, got {np.shape(value)}")
