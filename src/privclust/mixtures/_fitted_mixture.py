"""Base class of fitted mixtures of Gaussians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer
from privclust.mixtures import _parameters, _statistics
from privclust.mixtures._parameters import MixtureParameters
from privclust.privacy.estimator import validated
from privclust.privacy.hidden import COUNT_DEVIATIONS

_MEAN_PART = 0.25  # relative to the radius of the ball, or of a component's frame


def _has_density(mixture: Any) -> bool:
    """Raise an AttributeError if no variances were released."""
    if mixture.covariance_type == "zero":
        raise AttributeError("covariance_type='zero' releases no variances: there is no density")
    return True


class FittedMixture(DensityMixin, BaseEstimator):
    """Densities, labels and samples of an estimator that fits a mixture of Gaussians.

    A subclass sets `parameters_` in ``fit``. Samples and densities of a private mixture are
    post-processing and have its guarantee.
    """

    parameters_: MixtureParameters

    @property
    def weights_(self) -> np.ndarray:
        """π, shape (n_components,)."""
        return self.parameters_.weights

    @property
    def means_(self) -> np.ndarray:
        """μ, shape (n_components, n_features)."""
        return self.parameters_.means

    @property
    def covariances_(self) -> np.ndarray:
        """Covariances; their shape depends on the type, see `MixtureParameters`."""
        return self.parameters_.covariances

    @available_if(_has_density)
    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the log density of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.

        Returns
        -------
        ndarray of shape (n_samples,)
            log p(x), at least about -5e299 however far x is.
        """
        return _statistics.log_density(self._validated(X), self.parameters_)

    @available_if(_has_density)
    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log density of samples; parameters as for `score_samples`.

        The mean is exact: neither this score nor a choice that depends on it is private.
        """
        return float(self.score_samples(X).mean())

    @available_if(_has_density)
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the responsibilities, shape (n_samples, n_components).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        """
        return _statistics.responsibilities(self._validated(X), self.parameters_)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the component of the largest responsibility for each sample, (n_samples,).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        """
        return self.predict_proba(X).argmax(axis=1)

    @available_if(_has_density)
    def sample(
        self, n_samples: int = 1, random_state: RandomState = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw samples from the mixture.

        Parameters
        ----------
        n_samples : int, default 1
            At least 1.
        random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
            Source of the draws.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Independent samples.
        y : ndarray of shape (n_samples,)
            Component of each sample.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, minimum=1)
        return _parameters.sample(self.parameters_, n_samples, as_generator(random_state))

    def _validated(self, X) -> np.ndarray:
        check_is_fitted(self)
        return validated(self, X, dtype=np.float64, reset=False)


def detected_components(
    counts: np.ndarray, count_noise: float, sum_noise: float | np.ndarray, n_features: int
) -> np.ndarray:
    """Return which components can be distinguished from noise, (n_components,), bool.

    `count_noise` and `sum_noise` are standard deviations of noisy counts and of an entry of sums,
    the latter in units of the radius of the ball, or of the component's frame.

    Examples
    --------
    >>> detected_components(np.array([900.0, 20.0, 35.0]), 10.0, 10.0, 2)
    array([ True, False, False])
    """
    moved = math.sqrt(n_features) * sum_noise / np.maximum(counts, 1.0)
    return (counts > COUNT_DEVIATIONS * count_noise) & (moved < _MEAN_PART)
