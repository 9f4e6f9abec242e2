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

    Sums and second moments are about a centre c_k for each component. `about` moves them to other
    centres, `about_origin` to 0, the raw moments of the paper.

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
    centres : ndarray of shape (k, d)
        c.
    log_likelihood : float
        :math:`\sum_i \log p(x_i)`.
    """

    counts: np.ndarray
    sums: np.ndarray
    second_moments: np.ndarray
    centres: np.ndarray
    log_likelihood: float

    def about(self, centres: ArrayLike) -> Statistics:
        """Return the same statistics about other centres, shape (k, d) or (d,)."""
        centres = np.broadcast_to(np.asarray(centres, dtype=np.float64), self.sums.shape)
        shift = self.centres - centres
        sums = self.sums + self.counts[:, None] * shift
        # sum g (u + s)(u + s)' = sum g u u' + (sum g u) s' + s (sum g (u + s))'
        if self.second_moments.ndim == 3:
            change = self.sums[:, :, None] * shift[:, None, :] + shift[:, :, None] * sums[:, None]
        else:
            change = shift * (self.sums + sums)
            if self.second_moments.ndim == 1:
                change = change.sum(axis=1)
        moments = self.second_moments + change
        if moments.ndim == 3:  # rounding differs between the two halves
            moments = 0.5 * (moments + moments.transpose(0, 2, 1))
        return Statistics(self.counts, sums, moments, centres.copy(), self.log_likelihood)

    def about_origin(self) -> Statistics:
        """Return the raw moments, about 0."""
        return self.about(np.zeros(self.sums.shape[1]))


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
        With ``centres`` the means; second moments have the shape of the covariances.

    Raises
    ------
    ValueError
        If X has another number of features, or holds NaN, inf or numbers with infinite squares.
    """
    points, is_transposed = _points(X, parameters.n_features)
    counts, sums, moments, log_likelihood = _kernels.mixture_moments(
        points, is_transposed, parameters.log_scales, parameters.means, parameters.whitening
    )
    if parameters.covariance_type == "full":
        moments = np.tril(moments) + np.tril(moments, -1).transpose(0, 2, 1)
    if not all(np.isfinite(array).all() for array in (moments, sums, log_likelihood)):
        raise ValueError(NOT_USABLE)
    moments = moments.reshape(parameters.covariances.shape)
    return Statistics(counts, sums, moments, parameters.means, float(log_likelihood))


def expected_statistics(X: ArrayLike, parameters: MixtureParameters) -> Statistics:
    """Return the raw expected statistics of eq. (12): moments about the origin.

    Parameters and errors are those of `centred_statistics`.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.mixtures import MixtureParameters, expected_statistics
    >>> p = MixtureParameters(np.ones(1), np.zeros((1, 2)), np.ones(1), "spherical")
    >>> s = expected_statistics(np.array([[3.0, 4.0], [1.0, 0.0]]), p)
    >>> s.counts.tolist(), s.sums.tolist(), s.second_moments.tolist()
    ([2.0], [[4.0, 4.0]], [26.0])
    """
    return centred_statistics(X, parameters).about_origin()


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
        If X has another number of features or holds NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.mixtures import MixtureParameters, log_density
    >>> p = MixtureParameters(np.ones(1), np.zeros((1, 2)), np.ones(1), "spherical")
    >>> log_density([[0.0, 0.0]], p).round(4).tolist()
    [-1.8379]
    """
    return _evaluate(X, parameters, with_responsibilities=False)[0]


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
    return _evaluate(X, parameters, with_responsibilities=True)[1]


def _evaluate(X, parameters, with_responsibilities):
    """Return log densities (n,) and responsibilities (n, k) or (0, k)."""
    points, is_transposed = _points(X, parameters.n_features)
    n = points.shape[1] if is_transposed else points.shape[0]
    density = np.empty(n)
    gamma = np.empty((n if with_responsibilities else 0, parameters.n_components))
    mixture = parameters.log_scales, parameters.means, parameters.whitening
    _kernels.evaluate(points, is_transposed, *mixture, density, gamma)
    if np.isnan(density).any():
        raise ValueError(NOT_USABLE)
    return density, gamma


def _points(X, n_features: int) -> tuple[np.ndarray, bool]:
    """Return X in C order, or its transpose if that is in C order, and whether it is transposed."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] != n_features:
        raise ValueError(f"X must have shape (n, {n_features}) with n >= 1, got {X.shape}")
    if X.flags.f_contiguous and not X.flags.c_contiguous:
        return X.T, True
    return np.ascontiguousarray(X), False
