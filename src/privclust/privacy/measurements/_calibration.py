"""The amount of noise that a budget requires."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

from scipy.optimize import brentq

from privclust.core.validation import check_integer
from privclust.privacy.accounting import (
    check_budget,
    composed_epsilon,
    root_from_below,
    total_rho,
    zcdp_rho,
)
from privclust.privacy.gaussian_delta import least_epsilon, least_sigma
from privclust.privacy.measurements._gaussian import Gaussian, SymmetricGaussian
from privclust.privacy.measurements._measurement import Measurement
from privclust.privacy.sensitivity import Neighbours, Sensitivity

_UNIT = Sensitivity(1.0, "l2", Neighbours.REPLACE_ONE, "the unit of the noise")
_SMALL_SHARE = 1e-3
_ROUNDING = 1e-8  # relative error of zCDP by calibrations of parts
_LARGEST_BUDGET = 1e300  # larger budgets are reduced to this: squares of shares are floats
_MOST_NOISE = 1e150  # in units of the sensitivity: the zCDP of more noise underflows


def largest_share(
    measurements_at: Callable[[float], Iterable[Measurement]], epsilon: float, delta: float
) -> float:
    """Return the largest share at which the claimed losses of measurements fit a budget.

    The losses are composed by `composed_epsilon`.

    Parameters
    ----------
    measurements_at : callable
        Returns the measurements at a share; their losses grow with it.
    epsilon, delta : float
        Budget of all of them: epsilon in nats, positive; delta in (0, 1).

    Returns
    -------
    float
        Rounded down.

    Raises
    ------
    ValueError
        If the budget is out of its range, or leaves each release less than any float.

    Examples
    --------
    >>> from privclust.privacy.measurements import Laplace
    >>> counts = Sensitivity(1.0, "l1", "add-remove", "one row is one count")
    >>> round(largest_share(lambda share: [Laplace(counts, share)], 1.0, 1e-6), 3)
    1.0
    """
    check_budget(epsilon, delta)
    epsilon = min(epsilon, _LARGEST_BUDGET)

    def excess(log_share: float) -> float:
        losses = [noise.claimed for noise in measurements_at(math.exp(log_share))]
        return composed_epsilon(losses, delta) - epsilon

    rho = zcdp_rho(epsilon, delta)
    if rho == 0.0:  # zCDP gives a share that underflows
        rho = 0.5 / min(least_sigma(epsilon, delta), _MOST_NOISE) ** 2
    if rho <= 0.5 / _MOST_NOISE**2:
        raise ValueError(
            f"epsilon={epsilon!r} and delta={delta!r} leave each release a budget below the range "
            "of floats; use a larger budget"
        )
    # starts where zCDP, which grows with the squared share, would fit: close to the root
    log_share = root_from_below(excess, 0.5 * math.log(rho / claimed_rho(measurements_at(1.0))))
    # discretised distributions are monotone only up to their steps: end on the safe side
    while excess(log_share) > 0:
        log_share -= 1e-4
    return math.exp(log_share)


def claimed_rho(measurements: Iterable[Measurement]) -> float:
    """Return the total claimed zCDP parameter of measurements.

    Examples
    --------
    >>> claimed_rho([Gaussian.of_share(_UNIT, 1.0, 3)])
    1.5
    """
    return total_rho(noise.claimed for noise in measurements)


def share_of_rho(measurements_at: Callable[[float], Iterable[Measurement]], rho: float) -> float:
    """Return the largest share with measurements of a total claimed zCDP of at most rho.

    Parameters are those of `largest_share`, with a positive rho as the budget.

    Examples
    --------
    >>> round(share_of_rho(lambda share: [Gaussian.of_share(_UNIT, share, 3)], 1.5), 6)
    1.0
    """

    def spent(share: float) -> float:
        return claimed_rho(measurements_at(share))

    # the loss grows with the square of a small share, and not faster for a large one
    low = 0.5 * _SMALL_SHARE * math.sqrt(rho / spent(_SMALL_SHARE))
    high = 2.0 * low
    while spent(high) <= rho:
        low, high = high, 2.0 * high
    share = float(brentq(lambda share: spent(share) - rho, low, high, xtol=1e-15 * low, rtol=1e-14))
    # brentq may stop above rho by a rounding
    while spent(share) > rho:
        share *= 1.0 - 1e-13
    return share


@lru_cache(maxsize=1024)
def gaussian_share(epsilon: float, delta: float, count: int = 1) -> float:
    """Return the `largest_share` of `count` Gaussian releases (`Gaussian.of_share`).

    It is the sensitivity over sigma, calibrated once for all fits with one budget. The composition
    of all releases is converted exactly. `count` is at least 1.

    Examples
    --------
    >>> round(gaussian_share(1.0, 1e-6), 3), round(gaussian_share(1.0, 1e-6, 100), 4)
    (0.237, 0.0237)
    """
    check_integer("count", count, minimum=1)
    return largest_share(lambda share: [Gaussian.of_share(_UNIT, share, count)], epsilon, delta)


def gaussian_part(epsilon: float, delta: float, part: float) -> float:
    """Return the epsilon of a part of a budget that is spent only on Gaussian noise.

    If parts add up to 1, and each is calibrated to its epsilon and the whole delta, all together
    are (epsilon, delta)-private: zCDP adds up for Gaussian noise.

    Parameters
    ----------
    epsilon, delta : float
        The budget of all parts; delta in (0, 1).
    part : float
        In (0, 1].

    Raises
    ------
    ValueError
        If the budget is out of its range, or the part fits within delta at epsilon = 0.

    Examples
    --------
    >>> round(gaussian_part(1.0, 1e-6, 0.5), 3), round(gaussian_part(1.0, 1e-6, 0.1), 3)
    (0.689, 0.291)
    """
    rho = 0.5 * gaussian_share(epsilon, delta) ** 2
    # each calibration rounds: parts that use a little less than their rho never exceed the whole
    of_part = least_epsilon(part * rho * (1.0 - _ROUNDING), delta)
    if not of_part > 0.0:
        raise ValueError(
            f"delta={delta!r} is so large compared with epsilon={epsilon!r} that {part:g} of the "
            "budget needs no epsilon: use a smaller delta"
        )
    return of_part


def analytic_gaussian_sigma(sensitivity: Sensitivity, epsilon: float, delta: float) -> float:
    r"""Return the least sigma for which the Gaussian mechanism is (epsilon, delta)-private.

    With Phi the normal distribution function and Delta the sensitivity, sigma solves

    .. math::
        \delta = \Phi\left(\frac{\Delta}{2\sigma} - \frac{\epsilon\sigma}{\Delta}\right)
        - e^{\epsilon} \Phi\left(-\frac{\Delta}{2\sigma} - \frac{\epsilon\sigma}{\Delta}\right),

    for the sensitivity's neighbour relation and every epsilon. It is computed with as many bits as
    needed and rounded up by one part in 10^9: delta is never exceeded, for any floats epsilon and
    delta.

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
        If an argument is not as described, or the noise would be larger than the largest float.

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
    Gaussian(sensitivity, 1.0)  # checks the norm
    check_budget(epsilon, delta)
    sigma = sensitivity.value * least_sigma(float(epsilon), float(delta))
    if not 0.0 < sigma < math.inf:
        raise ValueError(
            f"epsilon={epsilon!r} and delta={delta!r} need noise of {sigma!r} for a sensitivity of "
            f"{sensitivity.value!r}, which is out of the range of floats; use other units"
        )
    return sigma


def second_moment_noise(
    n_features: int,
    neighbours: Neighbours | str,
    epsilon: float,
    delta: float,
    count: int = 1,
    *,
    mod_sulq: bool = False,
    parts: str = "",
) -> SymmetricGaussian:
    r"""Return the noise on sums of x x' of rows of norm at most 1, released `count` times.

    A row changes the sum by :math:`\|x x'\|_F = \|x\|^2 \le 1`, and replacing it by y by
    :math:`\|x x' - y y'\|_F^2 = \|x\|^4 + \|y\|^4 - 2 (x'y)^2 \le 2`, within one sum or over two.

    Parameters
    ----------
    n_features : int
    neighbours : Neighbours or str
    epsilon, delta : float
        Budget of all releases: epsilon in nats, positive; delta in (0, 1).
    count : int
    mod_sulq : bool
        The noise of MOD-SuLQ with basic composition, in place of the least noise.
    parts : str
        The sums over which the rows of one release are divided, for the proof.

    Returns
    -------
    SymmetricGaussian

    Examples
    --------
    >>> round(second_moment_noise(3, "add_remove", 1.0, 1e-6).sigma, 2)
    4.22
    """
    relation = Neighbours.of(neighbours)
    value, proof = {
        Neighbours.REPLACE_ONE: (math.sqrt(2.0), f"|xx' - yy'|^2 <= |x|^4 + |y|^4 <= 2{parts}"),
        Neighbours.ADD_REMOVE: (1.0, "|xx'| = |x|^2 <= 1"),
    }[relation]
    sensitivity = Sensitivity(value, "l2", relation, proof)
    if mod_sulq:
        scale = _mod_sulq_scale(n_features, epsilon / count, delta / count)
        return SymmetricGaussian(sensitivity, scale, count, weight=1.0)
    return SymmetricGaussian(sensitivity, value / gaussian_share(epsilon, delta, count), count)


def _mod_sulq_scale(n_features: int, epsilon: float, delta: float) -> float:
    r"""Return sigma of MOD-SuLQ for a sum of second moments (the paper has their mean).

    On each entry of the upper triangle, for rows of norm at most 1,

    .. math:: n \beta = \frac{d+1}{\epsilon} \sqrt{2 \log \frac{d^2+d}{2 \sqrt{2 \pi} \delta}}
                  + \frac{1}{\sqrt{\epsilon}}.

    The logarithm is not positive for one feature and a delta of 0.4 and more: a ValueError.

    Source: K. Chaudhuri, A. Sarwate and K. Sinha, "A near-optimal algorithm for differentially
    private principal components", JMLR 14, 2013, Algorithm 1.
    """
    check_integer("n_features", n_features, minimum=1)
    check_budget(epsilon, delta)
    d, root = n_features, 2.0 * math.sqrt(2.0 * math.pi)
    logarithm = math.log((d * d + d) / (root * delta))
    if logarithm <= 0:
        raise ValueError(
            f"delta must be less than {(d * d + d) / root:.3g} for {d} feature in MOD-SuLQ, whose "
            f"noise has a logarithm that is not positive then, got {delta!r}"
        )
    return (d + 1.0) / epsilon * math.sqrt(2.0 * logarithm) + 1.0 / math.sqrt(epsilon)
