"""Expectation maximisation for mixtures of Gaussians."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from privclust.core.hints import RandomState
from privclust.core.lloyd import inertia, plus_plus
from privclust.core.progress import logged
from privclust.core.validation import GROUPS, NOT_NEGATIVE, as_generator, check_parameters
from privclust.core.warn import warn_caller
from privclust.mixtures._fitted_mixture import FittedMixture
from privclust.mixtures._parameters import (
    MixtureParameters,
    clipped_spectrum,
    covariance_shape,
    outer_products,
    per_component,
    start_array,
)
from privclust.mixtures._statistics import NOT_USABLE, Statistics, centred_statistics

_EMPTY = 10.0 * np.finfo(np.float64).eps  # a count up to this determines no mean


@dataclass(eq=False, repr=False)
class GaussianMixtureEM(FittedMixture):
    r"""Mixture of Gaussians by expectation maximisation, with one fused pass per iteration.

    An iteration computes the responsibilities of eq. (11) and the moments of eq. (12) together,
    block by block in cache, about the current means. No array of size n_samples x n_components is
    allocated. From the same start the iterates are those of scikit-learn's ``GaussianMixture``.

    Parameters
    ----------
    n_components : int, default 1
        Number K of Gaussians.
    covariance_type : {"full", "diag", "spherical"}, default "full"
        Free entries of a covariance: all, the diagonal, or one variance.
    tol : float, default 1e-3
        Iterations stop when the log-likelihood per sample changes by less; 0 runs all iterations.
    max_iter : int, default 100
        Largest number of iterations.
    n_init : int, default 1
        Number of starts; the run with the largest log-likelihood is kept.
    reg_covar : float, default 1e-6
        Added to variances, in units of X squared. With a value above 0 the likelihood need not rise
        in every iteration.
    weights_init, means_init, covariances_init : array-like or None, default None
        The start: weights (n_components,), means (n_components, n_features) and covariances (shape
        by their type). None: equal weights; means drawn from the samples by k-means++; spherical
        covariances, with the mean squared distance of samples to the nearest mean over n_features,
        plus `reg_covar`, as variance.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        Source of the starts.

    Attributes
    ----------
    parameters_ : MixtureParameters
        The fitted mixture; `weights_`, `means_` and `covariances_` are its parts.
    lower_bounds_ : ndarray of shape (n_iter_,)
        Log-likelihood per sample at the start of each iteration of the best run.
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

    _constraints: ClassVar = {
        "n_components": GROUPS,
        "tol": NOT_NEGATIVE,
        "reg_covar": NOT_NEGATIVE,
    }

    n_components: int = 1
    _: KW_ONLY
    covariance_type: Literal["full", "diag", "spherical"] = "full"
    tol: float = 1e-3
    max_iter: int = 100
    n_init: int = 1
    reg_covar: float = 1e-6
    weights_init: ArrayLike | None = None
    means_init: ArrayLike | None = None
    covariances_init: ArrayLike | None = None
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
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
        X = validate_data(self, X, dtype=np.float64, order="C")
        check_parameters(self, X)
        rng = as_generator(self.random_state)
        best = None
        for _ in range(self.n_init):
            run = self._run(X, self._start(X, rng))
            if best is None or run[1][-1] > best[1][-1]:
                best = run
        self.parameters_, bounds, self.converged_ = best
        self.lower_bounds_ = np.array(bounds)
        self.lower_bound_ = bounds[-1]
        self.n_iter_ = len(bounds)
        if self.tol > 0.0 and not self.converged_:
            warn_caller(
                f"the log-likelihood still changed by more than tol={self.tol:g} after "
                f"max_iter={self.max_iter} iterations",
                ConvergenceWarning,
            )
        return self

    def _run(self, X, parameters):
        """Return the parameters, the log-likelihoods per sample, and whether EM converged."""
        bounds = []
        for _ in logged(range(self.max_iter), self.max_iter, "EM: iterations at most"):
            statistics = centred_statistics(X, parameters)
            bounds.append(statistics.log_likelihood / X.shape[0])
            parameters = _maximum_likelihood(statistics, parameters, self.reg_covar)
            if len(bounds) > 1 and abs(bounds[-1] - bounds[-2]) < self.tol:
                return parameters, bounds, True
        return parameters, bounds, False

    def _start(self, X, rng) -> MixtureParameters:
        k, d = self.n_components, X.shape[1]
        shape = covariance_shape(self.covariance_type, k, d)
        weights = start_array("weights_init", self.weights_init, (k,))
        means = start_array("means_init", self.means_init, (k, d))
        covariances = start_array("covariances_init", self.covariances_init, shape)
        if weights is None:
            weights = np.full(k, 1.0 / k)
        if means is None:  # as many trials as in scikit-learn
            means = plus_plus(X, k, rng, n_trials=2 + int(np.log(k)))
        if covariances is None:
            unit = np.eye(d) if self.covariance_type == "full" else 1.0
            covariances = np.broadcast_to(self._drawn_variance(X, means) * unit, shape)
        return MixtureParameters(weights, means, covariances, self.covariance_type)

    def _drawn_variance(self, X, means):
        """Return the mean squared distance to the nearest mean, by feature."""
        variance = inertia(X, means) / X.size
        if not np.isfinite(variance):
            raise ValueError(NOT_USABLE)
        variance += self.reg_covar  # keeps it positive if all samples are means
        if variance == 0.0:
            raise ValueError("all samples are means of the start: reg_covar must be above 0, got 0")
        return variance


def _maximum_likelihood(
    statistics: Statistics, previous: MixtureParameters, reg_covar: float
) -> MixtureParameters:
    """Return the parameters of eq. (12), and of the text after it for spherical covariances.

    A component without points keeps its mean and covariance.
    """
    counts, moments = statistics.counts, statistics.second_moments
    is_empty, n_axes = counts <= _EMPTY, moments.ndim
    divisor = np.where(is_empty, 1.0, counts)
    shifts = statistics.sums / divisor[:, None]
    if n_axes == 1:
        # one variance for all features: the mean of theirs
        moments = moments / shifts.shape[1]
    covariances = moments / per_component(divisor, n_axes) - outer_products(shifts, n_axes)
    # now, so that their moments of 0 are not refused as singular
    covariances[is_empty] = previous.covariances[is_empty]
    covariances = _regularised(covariances, reg_covar)
    # and again, so that nothing is added to them
    covariances[is_empty] = previous.covariances[is_empty]
    means = np.where(is_empty[:, None], previous.means, previous.means + shifts)
    weights = counts / counts.sum()
    return MixtureParameters(weights, means, covariances, previous.covariance_type)


def _regularised(covariances, reg_covar):
    """Return the covariances plus `reg_covar`; if that is 0, refuse singular ones."""
    least, unit, rounding = covariances, 1.0, np.zeros((len(covariances), 1))
    if covariances.ndim == 3:
        d = covariances.shape[1]
        least, unit = np.linalg.eigvalsh(covariances), np.eye(d)
        traces = np.trace(covariances, axis1=1, axis2=2)
        rounding = 4.0 * d * np.finfo(np.float64).eps * traces[:, None]
    is_singular = (least.reshape(len(least), -1) <= rounding).any(axis=1)
    if reg_covar == 0.0 and is_singular.any():
        raise ValueError(
            f"the covariance of component {np.argmax(is_singular)} is singular (its points lie in "
            f"a subspace): reg_covar must be larger, got {reg_covar:g}"
        )
    # rounding errors may make an eigenvalue negative
    low = rounding if covariances.ndim > 1 else 0.0
    return clipped_spectrum(covariances, low, np.inf) + reg_covar * unit
