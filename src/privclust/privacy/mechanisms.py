r"""Noise mechanisms: a statistic, its sensitivity and a source of randomness in, a release out.

All are pure functions: with a numpy Generator as `source` the same state gives the same bytes, with
`SystemEntropy` nothing can be repeated. Guarantees are for the neighbour relation that the
sensitivity is stated for, and for noise from `SystemEntropy`; see `privclust.privacy.noise`.
Parts of a statistic that need different scales are divided by theirs first and multiplied after.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.packages import require
from privclust.privacy.noise import (
    NoiseSource,
    add_gaussian,
    add_laplace,
    select,
    unprotected_generator,
)
from privclust.privacy.sensitivity import Sensitivity
from privclust.validation import check_real

_ROOT_TOLERANCE = 1e-12  # the calibration's root finder stops this close to the root
_ROUNDING_MARGIN = 1e-9  # more noise by this part outweighs cancellation in the function's values


def laplace(value: ArrayLike, sensitivity: Sensitivity, epsilon: float, source: NoiseSource) -> Any:
    r"""Add Laplace noise of scale ``sensitivity / epsilon`` to every entry.

    Epsilon-differentially private for the sensitivity's neighbour relation: the log density ratio
    of two outputs is at most ``||value - value'||_1 / scale``.

    Parameters
    ----------
    value : array_like of float, any shape
        The statistic; finite.
    sensitivity : Sensitivity
        In the norm ``"l1"``.
    epsilon : float
        In nats, finite and positive.
    source : SystemEntropy or numpy.random.Generator
        See `privclust.privacy.noise.noise_source`.

    Returns
    -------
    ndarray of the value's shape (a float for a scalar), float64

    Raises
    ------
    ValueError
        If an argument is not as described, or if the scale is not a positive float.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to sensitivity in private
    data analysis", TCC 2006, Proposition 1.

    Examples
    --------
    >>> count = Sensitivity(1.0, "l1", "add-remove", "one row is one count")
    >>> noised = laplace([10.0, 20.0], count, 0.5, np.random.default_rng(0))
    >>> noised.round(2)
    array([10.64, 18.77])
    """
    scale = _scale(sensitivity, "l1", epsilon)
    return add_laplace(_real_array("value", value), scale, source)


def complex_laplace(
    value: ArrayLike,
    sensitivity: Sensitivity,
    epsilon: float,
    source: NoiseSource,
) -> Any:
    r"""Add Laplace noise of scale ``sensitivity / epsilon`` to real and imaginary parts.

    Epsilon-differentially private for the sensitivity's neighbour relation, as `laplace` on the
    real and imaginary parts, whose joint l1 sensitivity is asked for.

    Parameters
    ----------
    value : array_like of complex, any shape
        The statistic; finite.
    sensitivity : Sensitivity
        In the norm ``"l1"``: the sum of absolute changes of real and imaginary parts.
    epsilon : float
        In nats, finite and positive.
    source : SystemEntropy or numpy.random.Generator

    Returns
    -------
    ndarray of the value's shape (a complex for a scalar), complex128

    Raises
    ------
    ValueError
        If an argument is not as described, or if the scale is not a positive float.

    Notes
    -----
    In the compressive k-means paper (Definition 2) L^C(beta) has parts of scale beta / sqrt(2), and
    the noise of the sketch, eq. (4), is L^C(sigma_xi / sqrt(2)) / sqrt(alpha_r m n_0): parts of
    scale ``sigma_xi / (2 sqrt(alpha_r m n_0))``. One of n_0 rows moves r = alpha_r m features of
    modulus 1 / sqrt(m) by at most 2 sqrt(2) each in l1, divided by alpha_r n_0: l1 sensitivity
    ``2 sqrt(2) sqrt(m) / n_0`` (replace-one, masks given). Equating scales gives
    ``sigma_xi = 4 sqrt(2) sqrt(alpha_r) m / (sqrt(n_0) epsilon)``. Proposition 1 of the paper
    prints alpha_r for its root, which would give epsilon / sqrt(alpha_r).

    References
    ----------
    V. Schellekens, A. Chatalic, F. Houssiau, Y.-A. de Montjoye, L. Jacques and R. Gribonval,
    "Differentially private compressive k-means", ICASSP 2019, Definitions 2 to 4, Proposition 1.

    Examples
    --------
    >>> sketch = Sensitivity(0.2, "l1", "replace-one", "unit phases, 10 rows")
    >>> complex_laplace([1.0 + 1.0j], sketch, 1.0, np.random.default_rng(0)).round(2)
    array([1.06+0.88j])
    """
    scale = _scale(sensitivity, "l1", epsilon)
    array = _finite_array("value", value, "biufc", np.complex128)
    parts = np.stack([array.real, array.imag], axis=-1)
    return np.ascontiguousarray(add_laplace(parts, scale, source)).view(np.complex128)[..., 0][()]


def gaussian(value: ArrayLike, sensitivity: Sensitivity, sigma: float, source: NoiseSource) -> Any:
    r"""Add normal noise of standard deviation `sigma` to every entry.

    With Delta the sensitivity: ``Delta^2 / (2 sigma^2)``-zero-concentrated differentially private
    and ``Delta / sigma``-Gaussian differentially private for its neighbour relation, and
    (epsilon, delta)-differentially private for a sigma from `analytic_gaussian_sigma`.

    Parameters
    ----------
    value : array_like of float, any shape
        The statistic; finite.
    sensitivity : Sensitivity
        In the norm ``"l2"``. The noise does not depend on its value; the guarantee does.
    sigma : float
        Standard deviation of the noise in the value's units, finite and positive.
    source : SystemEntropy or numpy.random.Generator

    Returns
    -------
    ndarray of the value's shape (a float for a scalar), float64

    Raises
    ------
    ValueError
        If an argument is not as described.

    References
    ----------
    M. Bun and T. Steinke, "Concentrated differential privacy: simplifications, extensions, and
    lower bounds", TCC 2016, Proposition 1.6.

    Examples
    --------
    >>> total = Sensitivity(1.0, "l2", "add-remove", "rows have norm at most 1")
    >>> gaussian(np.zeros(3), total, 2.0, np.random.default_rng(0)).round(2)
    array([ 0.25, -0.26,  1.28])
    """
    _check_norm(sensitivity, "l2")
    check_real("sigma", sigma)
    return add_gaussian(_real_array("value", value), float(sigma), source)


def classical_gaussian_sigma(sensitivity: Sensitivity, epsilon: float, delta: float) -> float:
    r"""Noise of the Gaussian mechanism by the classical formula.

    ``sigma = c Delta / epsilon`` with ``c^2 = 2 ln(1.25 / delta)``. (epsilon, delta)-differential
    privacy for the sensitivity's neighbour relation is proved for epsilon up to 1 only; the
    private EM paper uses the formula for its means. `analytic_gaussian_sigma` needs less noise and
    holds for every epsilon.

    Parameters
    ----------
    sensitivity : Sensitivity
        In the norm ``"l2"``.
    epsilon : float
        In nats, finite and positive.
    delta : float
        Between 0 and 1, both excluded.

    Returns
    -------
    float
        Standard deviation of the noise, in the units of the statistic.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Warns
    -----
    UserWarning
        If epsilon is above 1, where the formula is not covered by its proof.

    References
    ----------
    C. Dwork and A. Roth, "The algorithmic foundations of differential privacy", 2014, Theorem A.1.

    Examples
    --------
    >>> total = Sensitivity(1.0, "l2", "add-remove", "rows have norm at most 1")
    >>> round(classical_gaussian_sigma(total, 1.0, 1e-5), 3)
    4.845
    """
    _check_calibration(sensitivity, epsilon, delta)
    if epsilon > 1:
        warnings.warn(
            "the classical Gaussian mechanism is proved for epsilon of at most 1, "
            f"got {float(epsilon):g}: use analytic_gaussian_sigma",
            UserWarning,
            stacklevel=2,
        )
    return math.sqrt(2 * math.log(1.25 / delta)) * sensitivity.value / float(epsilon)


def analytic_gaussian_sigma(sensitivity: Sensitivity, epsilon: float, delta: float) -> float:
    r"""Least noise with which the Gaussian mechanism is (epsilon, delta)-private.

    The sigma at which, with Phi the normal distribution function and Delta the sensitivity,

    .. math::
        \delta = \Phi\left(\frac{\Delta}{2\sigma} - \frac{\epsilon\sigma}{\Delta}\right)
        - e^{\epsilon} \Phi\left(-\frac{\Delta}{2\sigma} - \frac{\epsilon\sigma}{\Delta}\right),

    for the sensitivity's neighbour relation and every epsilon. One part in 10^9 is added, so that
    numerical error falls on the side of privacy for epsilon from 1e-4 and delta from 1e-15 (below
    these, cancellation may let delta be exceeded: by one part in 10^5 at 1e-8 and 1e-15).

    Parameters
    ----------
    sensitivity : Sensitivity
        In the norm ``"l2"``.
    epsilon : float
        In nats, finite and positive.
    delta : float
        Between 0 and 1, both excluded.

    Returns
    -------
    float
        Standard deviation of the noise, in the units of the statistic.

    Raises
    ------
    ValueError
        If an argument is not as described.

    References
    ----------
    B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy: analytical
    calibration and optimal denoising", ICML 2018, Theorem 8.

    Examples
    --------
    >>> total = Sensitivity(1.0, "l2", "add-remove", "rows have norm at most 1")
    >>> round(analytic_gaussian_sigma(total, 1.0, 1e-5), 3)
    3.731
    """
    _check_calibration(sensitivity, epsilon, delta)
    accounting = require("dp_accounting", "privacy budgets")  # slow to import
    root = accounting.get_sigma_gaussian(float(epsilon), float(delta), tol=_ROOT_TOLERANCE)
    return sensitivity.value * float(root * (1 + _ROUNDING_MARGIN) + _ROOT_TOLERANCE)


def gamma(value: ArrayLike, sensitivity: Sensitivity, epsilon: float, source: NoiseSource) -> Any:
    r"""Add Gamma noise (shape 1, rate ``epsilon / sensitivity``) to every entry. Not private.

    The private EM paper's noise for variances, eq. (16), with ``beta = epsilon / sensitivity``.
    It is **not differentially private** for any epsilon: the noise is never negative, so that an
    output below the value of one data set excludes that data set. With values 0 and Delta the
    output is below Delta with probability ``1 - exp(-epsilon)`` and 0: (epsilon', delta) holds
    with exactly ``delta = 1 - exp(-epsilon)``, for every epsilon' >= 0. The paper's proof compares
    densities on the common support only.

    Parameters
    ----------
    value : array_like of float, any shape
        The statistic; finite.
    sensitivity : Sensitivity
        In the norm ``"l1"``.
    epsilon : float
        The paper's epsilon', finite and positive.
    source : SystemEntropy or numpy.random.Generator
        No sampler resists the floating-point attack here, nor would one help: with `SystemEntropy`
        the noise is a numpy Generator's, seeded by the operating system.

    Returns
    -------
    ndarray of the value's shape (a float for a scalar), float64

    Raises
    ------
    ValueError
        If an argument is not as described, or if the scale is not a positive float.

    References
    ----------
    M. Park, J. Foulds, K. Chaudhuri and M. Welling, "Practical privacy for expectation
    maximization", 2016 (as "DP-EM", AISTATS 2017), eq. (16).

    Examples
    --------
    >>> variance = Sensitivity(0.01, "l1", "replace-one", "eq. (16)")
    >>> bool(gamma(0.5, variance, 1.0, np.random.default_rng(0)) > 0.5)
    True
    """
    scale = _scale(sensitivity, "l1", epsilon)
    array = _real_array("value", value)
    return array + unprotected_generator(source).gamma(1.0, scale, size=array.shape)


def wishart(value: ArrayLike, sensitivity: Sensitivity, epsilon: float, source: NoiseSource) -> Any:
    r"""Add Wishart noise ``Z Z'`` to symmetric matrices. Not private.

    The private EM paper's noise for covariances, eqs. (17) and (18): Z is d x (d + 1) with entries
    N(0, lambda), ``lambda = sensitivity / (2 epsilon)``. It is **not differentially private** for
    any epsilon: the noise is positive semi-definite, so that an output from which one data set's
    matrix cannot be subtracted excludes that data set. With the matrices 0 and Delta x x', x of
    norm 1, that has probability ``P(lambda chi^2_2 < Delta) = 1 - exp(-epsilon)`` and 0, in any
    dimension: delta is at least that, for every epsilon' >= 0.

    Parameters
    ----------
    value : array_like of float, shape (..., d, d)
        A symmetric matrix or a stack of them; finite.
    sensitivity : Sensitivity
        In the norm ``"trace"``.
    epsilon : float
        The paper's epsilon', finite and positive.
    source : SystemEntropy or numpy.random.Generator
        As for `gamma`.

    Returns
    -------
    ndarray of the value's shape, float64

    Raises
    ------
    ValueError
        If an argument is not as described, or if the scale is not a positive float.

    References
    ----------
    M. Park, J. Foulds, K. Chaudhuri and M. Welling, "Practical privacy for expectation
    maximization", 2016 (as "DP-EM", AISTATS 2017), eqs. (17), (18).

    Examples
    --------
    >>> moment = Sensitivity(0.01, "trace", "replace-one", "rows have norm at most 1, n = 100")
    >>> noised = wishart(np.zeros((2, 2)), moment, 1.0, np.random.default_rng(0))
    >>> bool(np.linalg.eigvalsh(noised).min() > 0)
    True
    """
    variance = _scale(sensitivity, "trace", epsilon) / 2
    array = _real_array("value", value)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"value must have shape (..., d, d), got {array.shape}")
    *stack, d, _ = array.shape
    Z = unprotected_generator(source).normal(scale=math.sqrt(variance), size=(*stack, d, d + 1))
    return array + Z @ np.swapaxes(Z, -1, -2)


def exponential(
    scores: ArrayLike,
    sensitivity: Sensitivity,
    epsilon: float,
    source: NoiseSource,
) -> int:
    r"""Draw an index with probability proportional to ``exp(epsilon score / (2 sensitivity))``.

    Epsilon-differentially private for the sensitivity's neighbour relation: weights and their sum
    change by a factor of at most ``exp(epsilon / 2)`` each. Also
    ``epsilon^2 / 8``-zero-concentrated.

    Parameters
    ----------
    scores : array_like of float, shape (n_candidates,)
        How good each candidate is; finite, of any magnitude.
    sensitivity : Sensitivity
        In the norm ``"range"``: largest change of any one score.
    epsilon : float
        In nats, finite and positive.
    source : SystemEntropy or numpy.random.Generator
        `SystemEntropy` samples exactly, in rational arithmetic; a Generator takes the largest score
        after adding Gumbel noise.

    Returns
    -------
    int
        In 0 .. n_candidates - 1.

    Raises
    ------
    ValueError
        If an argument is not as described, or if the scale is not a positive float.

    References
    ----------
    F. McSherry and K. Talwar, "Mechanism design via differential privacy", FOCS 2007, Theorem 6;
    M. Cesar and R. Rogers, "Bounding, concentrating, and truncating: unifying privacy loss
    composition for data analytics", ALT 2021 (concentration).

    Examples
    --------
    >>> votes = Sensitivity(1.0, "range", "add-remove", "one row is one vote")
    >>> exponential([3.0, 90.0, 5.0], votes, 1.0, np.random.default_rng(0))
    1
    """
    scale = 2 * _scale(sensitivity, "range", epsilon)
    array = _real_array("scores", scores)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"scores must have shape (n_candidates,), not empty, got {array.shape}")
    return select(array, scale, source)


def _check_norm(sensitivity, norm: str) -> None:
    """A bound in one norm says nothing about another: refuse it rather than convert it."""
    if not isinstance(sensitivity, Sensitivity):
        raise ValueError(f"sensitivity must be a Sensitivity, got {sensitivity!r}")
    if sensitivity.norm != norm:
        raise ValueError(
            f"this mechanism needs a sensitivity in the norm {norm!r}, got {sensitivity.norm!r}"
        )


def _check_calibration(sensitivity, epsilon, delta) -> None:
    """What both calibrations of the Gaussian mechanism ask for."""
    _check_norm(sensitivity, "l2")
    check_real("epsilon", epsilon)
    check_real("delta", delta)
    if delta >= 1:
        raise ValueError(f"delta must be less than 1, got {delta!r}")


def _scale(sensitivity, norm: str, epsilon: float) -> float:
    """Sensitivity over epsilon, which must neither vanish nor overflow, or there is no privacy."""
    _check_norm(sensitivity, norm)
    check_real("epsilon", epsilon)
    scale = sensitivity.value / float(epsilon)
    if not 0 < scale / 2 <= 2 * scale < math.inf:
        raise ValueError(
            f"sensitivity / epsilon = {sensitivity.value!r} / {epsilon!r} is not representable"
        )
    return scale


def _real_array(name: str, value) -> np.ndarray:
    """A float64 array of finite numbers."""
    return _finite_array(name, value, "biuf", np.float64)


def _finite_array(name: str, value, kinds: str, dtype) -> np.ndarray:
    """An array of `dtype` with finite entries, from numbers of the given numpy kinds only."""
    array = np.asarray(value)
    if array.dtype.kind not in kinds:
        number = "complex" if "c" in kinds else "real"
        raise ValueError(f"{name} must hold {number} numbers, got dtype {array.dtype}")
    array = array.astype(dtype)
    if not np.isfinite(array).all():
        bad = np.asarray(value)[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must be finite, got {bad}")
    return array
