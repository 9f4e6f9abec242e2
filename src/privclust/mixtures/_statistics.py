"""Expected sufficient statistics of a mixture of Gaussians, and its densities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privclust.mixtures import _kernels
from privclust.mixtures._parameters import MixtureParameters

NOT_USABLE = (
    "X must be finite and of magnitudes whose squares do not overflow (at most about 1e150): "
    "scale the data"
)


@dataclass(frozen=True, eq=False)
class Statistics:
    r"""Expected sufficient statistics of n points, summed over the points.

    Sums and second moments are about the mean c_k of each component.

    Attributes
    ----------
    counts : ndarray of shape (k,)
        :math:`N_k = \sum_i \gamma_{ik}`.
    sums : ndarray of shape (k, d)
        :math:`\sum_i \gamma_{ik} (x_i - c_k)`.
    second_moments : ndarray
        :math:`\sum_i \gamma_{ik} |x_i - c_k|^2` of shape (k,) for spherical covariances, the
        squares of each coordinate, (k, d), for diagonal ones, and
        :math:`\sum_i \gamma_{ik} (x_i - c_k)(x_i - c_k)^T`, (k, d, d), for full ones.
    log_likelihood : float
        :math:`\sum_i \log p(x_i)`.
    """

    counts: np.ndarray
    sums: np.ndarray
    second_moments: np.ndarray
    log_likelihood: float


def centred_statistics(X: ArrayLike, parameters: MixtureParameters) -> Statistics:
    """Return the expected statistics about the current means, in one pass over the points.

    Statistics about the means keep full precision for points far from the origin.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Points, n >= 1, with finite squares.
    parameters : MixtureParameters
        Mixture for the responsibilities (eq. 11).

    Returns
    -------
    Statistics
        Second moments have the shape of the covariances.

    Raises
    ------
    ValueError
        If X has another number of features, or holds NaN, inf or numbers with infinite squares.
    """
    totals, moments, log_likelihood = _kernels.mixture_moments(
        _points(X, parameters.n_features),
        parameters.log_scales,
        parameters.means,
        parameters.whitening,
    )
    if parameters.covariance_type == "full":
        moments = np.tril(moments) + np.tril(moments, -1).transpose(0, 2, 1)
    if not all(np.isfinite(array).all() for array in (totals, moments, log_likelihood)):
        raise ValueError(NOT_USABLE)
    moments = moments.reshape(parameters.covariances.shape)
    return Statistics(totals[:, 0], totals[:, 1:], moments, float(log_likelihood))


def log_density(X: ArrayLike, parameters: MixtureParameters) -> np.ndarray:
    """Return log p(x) of every point, shape (n,).

    Squared distances in standard deviations are capped at 1e300: the result is never -inf.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Finite points.
    parameters : MixtureParameters
        The mixture.

    Raises
    ------
    ValueError
        If X has another number of features, or holds NaN or inf.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.mixtures import MixtureParameters, log_density
    >>> p = MixtureParameters(np.ones(1), np.zeros((1, 2)), np.ones(1), "spherical")
    >>> log_density([[0.0, 0.0]], p).round(4).tolist()
    [-1.8379]
    """
    return _evaluate(X, parameters)[0]


def responsibilities(X: ArrayLike, parameters: MixtureParameters) -> np.ndarray:
    """Return γ of eq. (11), shape (n, k); parameters and errors as for `log_density`.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.mixtures import MixtureParameters, responsibilities
    >>> p = MixtureParameters([0.25, 0.75], np.zeros((2, 1)), np.ones(2), "spherical")
    >>> responsibilities([[5.0]], p).round(12).tolist()
    [[0.25, 0.75]]
    """
    return _evaluate(X, parameters)[1]


def _evaluate(X, parameters):
    """Return log densities (n,) and responsibilities (n, k)."""
    points = _points(X, parameters.n_features)
    density, gamma = np.empty(len(points)), np.empty((len(points), parameters.n_components))
    mixture = parameters.log_scales, parameters.means, parameters.whitening
    _kernels.evaluate(points, *mixture, density, gamma)
    return density, gamma


def _points(X, n_features: int) -> np.ndarray:
    """Return points as a finite array in C order, or raise a ValueError."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] != n_features:
        raise ValueError(f"X must have shape (n, {n_features}) with n >= 1, got {X.shape}")
    if not np.isfinite(X).all():
        raise ValueError(NOT_USABLE)
    return X
