"""M-steps: the parameters of a mixture of Gaussians from its statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privclust.mixtures._parameters import MixtureParameters, outer_products, per_component
from privclust.mixtures._statistics import Statistics

_EMPTY = 10.0 * np.finfo(np.float64).eps  # a count up to this determines no mean


@dataclass(frozen=True)
class MixturePrior:
    """Dirichlet prior of the weights, normal-inverse-Wishart of means and covariances.

    For diagonal and spherical covariances the prior is the normal-inverse-Wishart density
    restricted to such matrices.

    Attributes
    ----------
    concentration : float
        α of Dir(α, ..., α), at least 1.
    mean_precision : float
        κ₀, not negative; the prior mean is 0.
    degrees_of_freedom : float
        ν₀.
    scale : float
        s of S₀ = s I, positive.
    """

    concentration: float
    mean_precision: float
    degrees_of_freedom: float
    scale: float

    def log_density(self, parameters: MixtureParameters) -> float:
        """Return the log density up to a constant that does not depend on the parameters."""
        w, d = parameters.whitening, parameters.n_features
        if parameters.covariance_type == "full":
            half_log_determinant = -np.log(np.diagonal(w, axis1=1, axis2=2)).sum()
            white_means = np.einsum("kij,kj->ki", w, parameters.means)
            trace = np.sum(w**2)
        else:
            per_row = d // w.shape[1]  # a spherical factor counts for d rows
            half_log_determinant = -per_row * np.log(w).sum()
            white_means = w[:, :, 0] * parameters.means
            trace = per_row * np.sum(w**2)
        log_prior = -(self.degrees_of_freedom + d + 2.0) * half_log_determinant
        log_prior -= 0.5 * self.scale * trace
        log_prior -= 0.5 * self.mean_precision * np.sum(white_means**2)
        if self.concentration > 1.0:  # then no estimate has a weight of 0
            log_prior += (self.concentration - 1.0) * np.log(parameters.weights).sum()
        return float(log_prior)


def maximum_likelihood(
    statistics: Statistics, previous: MixtureParameters, reg_covar: float = 0.0
) -> MixtureParameters:
    """Return the parameters of eq. (12), and of the text after it for spherical covariances.

    Parameters
    ----------
    statistics : Statistics
        About any centres; most accurate about means near the new ones.
    previous : MixtureParameters
        A component without points (a count of at most 1e-15) keeps this mean and covariance.
    reg_covar : float, default 0
        Added to the variances, in units of x squared.

    Raises
    ------
    ValueError
        If a covariance is singular and `reg_covar` is 0.
    """
    counts, means, covariances = _plain_estimates(statistics, previous)
    regularised = _regularised(covariances, reg_covar)
    is_empty = counts <= _EMPTY
    regularised[is_empty] = previous.covariances[is_empty]
    weights = counts / counts.sum()
    return MixtureParameters(weights, means, regularised, previous.covariance_type)


def maximum_a_posteriori(
    statistics: Statistics, previous: MixtureParameters, prior: MixturePrior
) -> MixtureParameters:
    """Return the MAP estimates of Section 4.1.

    Spherical and diagonal covariances are the trace over d and the diagonal of the paper's matrix,
    which maximise the posterior under the restricted prior of `MixturePrior`. A component without
    points takes the mode of the prior.

    Parameters
    ----------
    statistics : Statistics
        About any centres.
    previous : MixtureParameters
        Determines the type of the covariances.
    prior : MixturePrior
        α, κ₀, ν₀ and S₀.
    """
    counts, mle, covariances = _plain_estimates(statistics, previous)
    k, d = mle.shape
    excess = prior.concentration - 1.0
    weights = (counts + excess) / (counts.sum() + k * excess)
    kappa = prior.mean_precision
    means = mle * (counts / (counts + kappa) if kappa else np.ones(k))[:, None]
    shrunk = counts * kappa / (counts + kappa) if kappa else np.zeros(k)
    n_axes = covariances.ndim
    total = prior.scale * np.eye(d) if n_axes == 3 else prior.scale
    total = total + per_component(counts, n_axes) * covariances
    total = total + per_component(shrunk, n_axes) * outer_products(mle, n_axes)
    total = total / per_component(prior.degrees_of_freedom + counts + d + 2.0, n_axes)
    return MixtureParameters(weights, means, _positive(total), previous.covariance_type)


def _plain_estimates(statistics, previous):
    """Return counts, means and covariances of eq. (12); empty components keep theirs."""
    counts = statistics.counts
    is_empty = counts <= _EMPTY
    divisor = np.where(is_empty, 1.0, counts)
    shift = statistics.sums / divisor[:, None]
    means = np.where(is_empty[:, None], previous.means, statistics.centres + shift)
    n_axes = statistics.second_moments.ndim
    covariances = statistics.second_moments / per_component(divisor, n_axes)
    if n_axes == 1:
        covariances = np.maximum(covariances - (shift**2).sum(axis=1), 0.0) / shift.shape[1]
    else:
        covariances = covariances - outer_products(shift, n_axes)
        covariances = np.maximum(covariances, 0.0) if n_axes == 2 else covariances
    covariances[is_empty] = previous.covariances[is_empty]
    return counts, means, covariances


def _regularised(covariances, reg_covar):
    """Return the covariances plus `reg_covar`; if that is 0, refuse singular ones."""
    if covariances.ndim == 3:
        least = np.linalg.eigvalsh(covariances)[:, 0]
        added = reg_covar * np.eye(covariances.shape[1])
        rounding = _rounding(covariances)
    else:
        least = covariances.reshape(len(covariances), -1).min(axis=1)
        added, rounding = reg_covar, 0.0
    is_singular = least <= rounding
    if reg_covar == 0.0 and is_singular.any():
        raise ValueError(
            f"the covariance of component {np.argmax(is_singular)} is singular (its points lie in "
            f"a subspace): reg_covar must be larger, got {reg_covar:g}"
        )
    return _positive(covariances + added)


def _positive(covariances):
    """Return the covariances, with negative eigenvalues (from rounding) raised to a floor."""
    if covariances.ndim < 3:
        return covariances
    values, vectors = np.linalg.eigh(covariances)
    floor = _rounding(covariances)[:, None]
    if (values >= floor).all():
        return covariances
    raised = (vectors * np.maximum(values, floor)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return 0.5 * (raised + raised.transpose(0, 2, 1))


def _rounding(covariances):
    """Return the size of rounding errors in eigenvalues of full covariances, (k,)."""
    d = covariances.shape[1]
    return 4.0 * d * np.finfo(np.float64).eps * np.trace(covariances, axis1=1, axis2=2)
