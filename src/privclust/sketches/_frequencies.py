"""Frequencies of a sketch: their distributions, and the scale of the data that they need."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator, check_integer, check_option, check_real
from privclust.sketches._sketch import Sketch

LAWS = ("adapted_radius", "folded_gaussian", "log_uniform")
_SMALLEST_RADIUS, _LARGEST_RADIUS = 0.1, 7.0  # of "log_uniform"

# Estimate of the variance: records and frequencies of the small sketches, frequencies of similar
# radius per block, rounds, and the largest factor by which a round may change the variance.
_PILOT_SAMPLES = 5000
_PILOT_FREQUENCIES = 1000
_FREQUENCIES_OF_BLOCK = 25
_ROUNDS = 5
_LARGEST_CHANGE = 100.0
_LARGEST_SPREAD = 1e150  # its square is finite


def draw_frequencies(
    n_features: int,
    n_frequencies: int,
    *,
    variance: float = 1.0,
    law: Literal["adapted_radius", "folded_gaussian", "log_uniform"] = "adapted_radius",
    random_state: RandomState = None,
) -> np.ndarray:
    r"""Draw the frequencies of a sketch.

    All laws are isotropic: ``omega = R phi / sigma`` with phi uniform on the unit sphere.

    Parameters
    ----------
    n_features : int
        Dimension d of the data.
    n_frequencies : int
        Size m of the sketch.
    variance : float, default 1.0
        sigma^2, positive, in squared units of the data: about four times the variance of a cluster
        along one axis.
    law : {"adapted_radius", "folded_gaussian", "log_uniform"}
        Distribution of R. "adapted_radius": density proportional to
        ``sqrt(R^2 + R^4 / 4) exp(-R^2 / 2)``, which favours radii where the sketch of a Gaussian
        changes most with its mean and variance. "folded_gaussian": modulus of a standard Gaussian
        number. "log_uniform": log-uniform from 0.1 to 7, for data with structure on several scales.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        Source of the frequencies.

    Returns
    -------
    ndarray of shape (n_features, n_frequencies)
        Omega, one frequency per column.

    Raises
    ------
    ValueError
        If a parameter is not as above.

    References
    ----------
    N. Keriven, A. Bourrier, R. Gribonval and P. Perez, "Sketching for large-scale learning of
    mixture models", Information and Inference 7(3), 2018, Section 3.3.

    Examples
    --------
    >>> from privclust.sketches._frequencies import draw_frequencies
    >>> draw_frequencies(2, 5, variance=4.0, random_state=0).shape
    (2, 5)
    """
    check_integer("n_features", n_features, minimum=1)
    check_integer("n_frequencies", n_frequencies, minimum=1)
    check_real("variance", variance)
    check_option("law", law, LAWS)
    rng = as_generator(random_state)
    frequencies = rng.standard_normal((n_features, n_frequencies))
    frequencies /= np.linalg.norm(frequencies, axis=0)
    if law == "adapted_radius":
        frequencies *= _adapted_radii(n_frequencies, rng)
    elif law == "log_uniform":
        ends = np.log(_SMALLEST_RADIUS), np.log(_LARGEST_RADIUS)
        frequencies *= np.exp(rng.uniform(*ends, n_frequencies))
    else:
        frequencies *= np.abs(rng.standard_normal(n_frequencies))
    return frequencies / np.sqrt(variance)


def _adapted_radii(count, rng):
    """Draw radii of the adapted law by rejection.

    The density of u = R^2 / 2 is proportional to ``sqrt(1 + u/2) exp(-u)``. Its envelope
    ``(1 + u/4) exp(-u)`` is a mixture of Exp(1) and, with probability 1/5, Gamma(2).
    """
    accepted = np.empty(0)
    while accepted.size < count:
        u = rng.standard_exponential(count)
        u += np.where(rng.random(count) < 0.2, rng.standard_exponential(count), 0.0)
        keep = rng.random(count) * (1.0 + u / 4.0) <= np.sqrt(1.0 + u / 2.0)
        accepted = np.append(accepted, u[keep])
    return np.sqrt(2.0 * accepted[:count])


def estimate_variance(X: ArrayLike, *, random_state: RandomState = None) -> float:
    r"""Estimate the variance for `draw_frequencies` from small sketches of a few records.

    The modulus of the (unnormalised) sketch of Gaussians of variance sigma^2 is at most
    ``exp(-sigma^2 |omega|^2 / 2)``, and near this bound at frequencies where the phases of the
    means agree. Frequencies are drawn and sorted by radius. The bound is fitted by least squares
    to the largest modulus in each block of 25. The fitted variance is used in the next of 5 rounds.
    Squared moduli are corrected for the sampling of the records, which adds ``1/n``.

    With many clusters or dimensions phases rarely agree, and the result exceeds the variance of a
    cluster. Multiplying X by c multiplies the result by c^2.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Records; at most 5000 are used. The result depends on them without noise, so that they must
        be public.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default None
        Chooses the records and frequencies.

    Returns
    -------
    float
        The variance, positive; 1 if all records are equal.

    Raises
    ------
    ValueError
        If X is not a matrix of finite numbers, or their squares overflow or underflow.

    References
    ----------
    N. Keriven, A. Bourrier, R. Gribonval and P. Perez, "Sketching for large-scale learning of
    mixture models", Information and Inference 7(3), 2018, Section 3.3 (there with 3 rounds from 1).

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.sketches._frequencies import estimate_variance
    >>> X = 3.0 * np.random.default_rng(0).standard_normal((5000, 2))
    >>> 7.0 < estimate_variance(X, random_state=0) < 11.0
    True
    """
    rng = as_generator(random_state)
    X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape or X.dtype.kind not in "fiub":
        raise ValueError(
            "X must be real numbers of shape (n_samples, n_features), neither of them 0, "
            f"got {X.dtype} of shape {X.shape}"
        )
    if len(X) > _PILOT_SAMPLES:
        X = X[rng.choice(len(X), _PILOT_SAMPLES, replace=False)]
    X = X.astype(np.float64)
    if not np.isfinite(X).all():
        raise ValueError("X must be finite, got NaN or infinity")
    with np.errstate(over="ignore"):
        X = X - X[0]  # keeps precision for data far from the origin
    size = np.abs(X).max()
    if size == 0.0:
        return 1.0
    if not 1.0 / _LARGEST_SPREAD <= size <= _LARGEST_SPREAD:
        raise ValueError(
            f"records must differ by {1.0 / _LARGEST_SPREAD:g} to {_LARGEST_SPREAD:g}, "
            f"got a largest difference of {size:g}"
        )
    X /= size
    X -= X.mean(axis=0)
    variance = X.var(axis=0).mean()
    for _ in range(_ROUNDS):
        variance *= _fitted_factor(X, variance, rng)
    return float(variance * size**2)


def _fitted_factor(X, variance, rng):
    """Return the ratio of the fitted variance and the variance that frequencies are drawn at."""
    n, d = X.shape
    frequencies = draw_frequencies(d, _PILOT_FREQUENCIES, variance=variance, random_state=rng)
    # `values` are divided by sqrt(m)
    squares = _PILOT_FREQUENCIES * np.abs(Sketch.of(X, frequencies).values) ** 2
    # the mean of n features has E|z|^2 = |phi|^2 (1 - 1 / n) + 1 / n
    moduli = np.sqrt(np.maximum(n * squares - 1.0, 0.0) / max(n - 1, 1))
    radii = variance * (frequencies**2).sum(axis=0)  # R^2
    order = np.argsort(radii).reshape(-1, _FREQUENCIES_OF_BLOCK)
    largest = np.take_along_axis(order, moduli[order].argmax(axis=1)[:, None], axis=1)[:, 0]

    def misfit(log_factor):
        curve = np.exp(-0.5 * np.exp(log_factor) * radii[largest])
        return ((curve - moduli[largest]) ** 2).sum()

    bound = np.log(_LARGEST_CHANGE)
    return np.exp(minimize_scalar(misfit, bounds=(-bound, bound), method="bounded").x)
