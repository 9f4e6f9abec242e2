r"""Composition, conversion and calibration of privacy losses.

The papers' budget rules are implemented as printed; everything else is done by dp-accounting.
Losses are measured by two parameters:

- a pure parameter :math:`\epsilon'` of one release, and
- :math:`\rho` of zero-concentrated differential privacy (zCDP), which adds up over releases. The
  Gaussian mechanism has :math:`\rho = \Delta_2^2 / (2 \sigma^2)` (Bun and Steinke 2016, Proposition
  1.6); `pure_rho`, `laplace_rho` and `bounded_range_rho` give that of other releases.

(mu, tau)-CDP of Dwork and Rothblum bounds the mean of the privacy loss by mu and requires it to be
subgaussian about its mean with standard deviation tau. A total :math:`\rho` of Gaussian and pure
releases gives :math:`(\rho, \sqrt{2 \rho})`-CDP, which is how the DP-EM paper states its budgets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import numpy as np
from scipy.optimize import brentq

from privclust.core.packages import require
from privclust.core.validation import DELTA, check_real
from privclust.privacy.gaussian_delta import least_epsilon

_NEED = "privacy budgets"  # ask for dp-accounting, which is slow to import
# Renyi orders at which a zCDP curve is converted: the best order is within 1e-4 of one of them.
_ORDERS = 1.0 + np.logspace(-4, 6, 4000)
_ORDER_TERMS = np.log1p(-1.0 / _ORDERS) - np.log(_ORDERS) / (_ORDERS - 1.0)
# Number of grid steps of the smallest pure loss; each loss is rounded up by at most one step.
PLD_STEPS = 200
_MOST_STEPS = 1_000_000  # in all losses together; coarser steps are also valid
# Of one release. A smaller loss counts as the smallest. A larger one is added by basic composition:
# its distribution has probabilities of about e^-epsilon, which must be accurate floats.
_SMALLEST_PLD_LOSS, _LARGEST_PLD_LOSS = 1e-12, 300.0
_LEAST_PLD_DELTA = 1e-10  # below this, rounding errors of a convolution may matter
_ROUNDING = 1e-12  # generous relative rounding error of a conversion in doubles
LAPLACE_STEP = 2.0**-20
"""Largest step of discrete Laplace noise, in scales."""
LARGEST_STEPPED = 16.0
"""Largest epsilon of Laplace noise with steps of at most `LAPLACE_STEP`."""
_SERIES = 1e-3  # below this, a difference has a relative error above `_ROUNDING`


@dataclass(frozen=True)
class Loss:
    """The privacy loss of a release that is repeated `count` times.

    Attributes
    ----------
    rho : float
        The zCDP parameter of each release.
    epsilon : float
        The pure parameter of each release; infinite for the Gaussian mechanism. With a delta,
        epsilon of (epsilon, delta)-DP.
    count : int
        Number of releases.
    delta : float
        The delta of a release known only to be (epsilon, delta)-DP; its rho is infinite.
    """

    rho: float = math.inf
    epsilon: float = math.inf
    count: int = 1
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_not_negative(self, ("rho", "epsilon", "delta"))

    @property
    def is_nothing(self) -> bool:
        """Whether the release adds nothing to the loss of others."""
        return self.rho == self.epsilon == self.delta == 0.0


def check_not_negative(numbers: object, names: Iterable[str]) -> None:
    """Raise a ValueError that names an attribute if it is below 0 or NaN."""
    for name in names:
        if not getattr(numbers, name) >= 0:  # NaN is not
            raise ValueError(f"{name} must not be negative, got {getattr(numbers, name)!r}")


def pure_rho(epsilon: float) -> float:
    r"""Return the zCDP parameter of any epsilon-DP release, :math:`\epsilon \tanh(\epsilon / 2)`.

    Source: Harrison and Manurangsi, "Exact zCDP characterizations for fundamental differentially
    private mechanisms", FORC 2026. The next two functions have the same source.

    Examples
    --------
    >>> round(pure_rho(1.0), 4)
    0.4621
    """
    return epsilon * math.tanh(epsilon / 2.0) * (1.0 + _ROUNDING)


def laplace_rho(epsilon: float, mu: float) -> float:
    r"""Return the zCDP parameter of Laplace noise of scale s on a vector.

    ``epsilon`` and ``mu``, at most epsilon, are the sensitivities in l1 and l2, divided by s.

    A change of x s in one entry has the loss :math:`x r(x)`. For continuous noise
    :math:`r(x) = 1 - (1 - e^{-x}) / x`. For noise on multiples of u s, the last term is multiplied
    by :math:`u / \sinh u`, which adds at most :math:`x u^2 / 6`. r is increasing and concave, and
    :math:`r(y) / y` decreases. With S the sum of changes and Q that of their squares, Jensen gives
    :math:`\sum_i x_i r(x_i) \le S r(Q / S) \le \epsilon\, r(\mu^2 / \epsilon)`.

    The steps are at most `LAPLACE_STEP` scales if epsilon is at most `LARGEST_STEPPED`. Above it
    the loss is that of pure releases, :math:`x \tanh(x / 2)`, to which the same argument applies.
    The bound :math:`\mu^2 / 2` holds for any steps.

    Examples
    --------
    >>> round(laplace_rho(1.0, 1.0), 4)  # a change of one entry
    0.3679
    >>> round(laplace_rho(1.0, 0.1), 5)  # of a hundred entries alike
    0.00498
    """
    mean = mu / epsilon * mu  # in this order: the square may underflow
    if epsilon > LARGEST_STEPPED:
        rate = math.tanh(mean / 2.0)
    elif mean > _SERIES:
        rate = 1.0 + math.expm1(-mean) / mean + LAPLACE_STEP**2 / 6.0
    else:
        rate = mean / 2.0 - mean**2 / 6.0 + mean**3 / 24.0 + LAPLACE_STEP**2 / 6.0
    # the smaller of two valid bounds: epsilon mean / 2 is mu^2 / 2
    if rate < mean / 2.0:
        return epsilon * rate * (1.0 + _ROUNDING)
    return mu * mu / 2.0 * (1.0 + _ROUNDING)


def bounded_range_rho(epsilon: float) -> float:
    r"""Return the zCDP parameter if log ratios lie in an interval of length epsilon.

    With :math:`s = \epsilon / (1 - e^{-\epsilon})` it is :math:`s - 1 - \log s`, which is less than
    :math:`\epsilon^2 / 8`.

    Examples
    --------
    >>> round(bounded_range_rho(1.0), 4)
    0.1233
    """
    # the difference below would cancel; the bound is larger by a share of order epsilon^2
    if epsilon < 10.0 * _SERIES:
        return epsilon * epsilon / 8.0 * (1.0 + _ROUNDING)
    more = epsilon / -math.expm1(-epsilon) - 1.0
    return (more - math.log1p(more)) * (1.0 + _ROUNDING)


def total_rho(losses: Iterable[Loss]) -> float:
    """Return the sum of zCDP parameters."""
    return sum(loss.rho * loss.count for loss in losses)


def total_epsilon(losses: Iterable[Loss]) -> float:
    """Return the sum of pure parameters: basic composition in floating point.

    It is not rounded up, so that ten tenths of a budget add up to that budget.
    """
    return sum(loss.epsilon * loss.count for loss in losses)


def check_delta(delta: float) -> None:
    """Raise a ValueError unless delta is a number in (0, 1)."""
    DELTA("delta", delta, {})


def check_budget(epsilon: float, delta: float) -> None:
    """Raise a ValueError unless epsilon is above 0 and delta lies in (0, 1)."""
    check_real("epsilon", epsilon)
    check_delta(delta)


def gaussian_constant(delta: float) -> float:
    r"""Return c of the classical Gaussian mechanism, :math:`c^2 = 2 \log(1.25 / \delta')`.

    Source: Dwork and Roth, Theorem A.1; DP-EM, Section 4.2 (below eq. 15).

    Examples
    --------
    >>> round(gaussian_constant(0.001), 3)
    3.776
    """
    check_delta(delta)
    # two logarithms, because 1.25 / delta may overflow
    return math.sqrt(2.0 * (math.log(1.25) - math.log(delta)))


def cdp_share(epsilon: float, n_pure: int, n_gaussian: int = 0, c: float = 1.0) -> float:
    r"""Return the share :math:`\epsilon'` of one perturbation by the CDP rule of DP-EM.

    Section 5: pure perturbations have a loss of :math:`\epsilon'^2 / 2` each (its footnote 6),
    classical Gaussian ones :math:`\epsilon'^2 / (2 c^2)`, and the sum must be epsilon:

    .. math:: \epsilon' = \sqrt{2 \epsilon / (n_{pure} + n_{Gaussian} / c^2)}.

    With J iterations and K components ``n_pure = J (2 K + 1)`` for Laplace means, and
    ``n_pure = J (K + 1)``, ``n_gaussian = J K`` for Gaussian means; c is from `gaussian_constant`.
    Epsilon, positive, is the mean privacy loss of the whole, which is
    :math:`(\epsilon, \sqrt{2\epsilon})`-CDP.

    Examples
    --------
    >>> round(cdp_share(0.9, n_pure=10 * 7), 4)
    0.1604
    """
    check_real("epsilon", epsilon)
    return math.sqrt(2.0 * epsilon / (n_pure + n_gaussian / c**2))


def advanced_share(epsilon: float, delta: float, n: int) -> float:
    r"""Return the share :math:`\epsilon'` of one of n perturbations by advanced composition.

    DP-EM, eq. (31): :math:`\epsilon' = \epsilon / (2 \sqrt{2 n \log(1 / \delta_1)})`, with
    ``n = (2 K + 1) J``. Pure perturbations then compose to (epsilon, delta_1)-DP, as long as
    epsilon is below 1 (Dwork and Roth, Corollary 3.21).

    Examples
    --------
    >>> round(advanced_share(0.9, 0.01, 70), 5)
    0.01772
    """
    check_budget(epsilon, delta)
    return epsilon / (2.0 * math.sqrt(-2.0 * n * math.log(delta)))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the smallest epsilon such that rho-zCDP gives (epsilon, delta)-DP.

    Uses the Renyi curve ``alpha * rho`` and dp-accounting's conversion.

    Examples
    --------
    >>> round(zcdp_epsilon(0.9, 1e-4), 2)
    5.92
    """
    accountant = require("dp_accounting.rdp.rdp_privacy_accountant", _NEED)
    if rho == 0.0 or math.isinf(rho):  # a sum too small or too large for a float
        check_delta(delta)
        return float(rho)
    check_budget(rho, delta)
    # rounding errors of the conversion are on the safe side: a smaller delta, a larger epsilon
    delta = delta * (1.0 - _ROUNDING)
    orders = _best_orders(rho, delta)
    with np.errstate(over="ignore"):
        curve = orders * rho
    epsilon, _ = accountant.compute_epsilon(orders, curve, delta)
    return float(epsilon) * (1.0 + _ROUNDING)


def _best_orders(rho: float, delta: float) -> np.ndarray:
    """Return the few orders that can be the best: dp-accounting is slow for many.

    The first order has the least divergence and may allow epsilon = 0. The others are the best by
    the conversion (Canonne, Kamath and Steinke 2020, Proposition 12) and its neighbours, since the
    last digits may differ. At orders up to 1.01 dp-accounting has no bound.
    """
    with np.errstate(over="ignore"):
        epsilons = _ORDERS * rho + _ORDER_TERMS - math.log(delta) / (_ORDERS - 1.0)
    best = int(np.argmin(np.where(_ORDERS > 1.01, epsilons, math.inf)))
    return _ORDERS[sorted({0, *range(max(best - 2, 0), min(best + 3, len(_ORDERS)))})]


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho such that rho-zCDP gives (epsilon, delta)-DP: the inverse.

    Examples
    --------
    >>> round(zcdp_epsilon(zcdp_rho(1.0, 1e-5), 1e-5), 6)
    1.0
    """
    check_budget(epsilon, delta)

    def excess(log_rho: float) -> float:
        return zcdp_epsilon(math.exp(log_rho), delta) - epsilon

    # (epsilon, delta)-DP follows from rho >= epsilon only at useless delta
    return math.exp(root_from_below(excess, math.log(epsilon) - 1.0))


def pld_epsilon(losses: Sequence[Loss], delta: float) -> float:
    """Return epsilon of composed releases at ``delta``, from privacy loss distributions.

    Gaussian releases compose to one Gaussian exactly; a pure release enters as randomised response
    with its epsilon, which dominates every epsilon-DP mechanism (Kairouz, Oh and Viswanath 2015).
    The smaller distribution of Laplace noise on one number is not used: that it also dominates
    discrete noise on several numbers of the same l1 sensitivity is not proved. The result is
    rounded up. Pure releases above 300 are added by basic composition. Infinite if
    delta is below 1e-10 and not all releases are Gaussian, because the rounding of the
    distributions is not bounded there. A ValueError is raised unless delta lies in (0, 1).

    Examples
    --------
    >>> round(pld_epsilon([Loss(rho=0.9)], 1e-4), 2)
    5.41
    """
    check_delta(delta)
    gaussian = total_rho(loss for loss in losses if math.isinf(loss.epsilon))
    if math.isinf(gaussian) or any(loss.delta > 0.0 for loss in losses):
        return math.inf
    pure = [loss for loss in losses if math.isfinite(loss.epsilon) and not loss.is_nothing]
    large = [loss for loss in pure if loss.epsilon > _LARGEST_PLD_LOSS]
    pure = [
        replace(loss, epsilon=max(loss.epsilon, _SMALLEST_PLD_LOSS))
        for loss in pure
        if loss.epsilon <= _LARGEST_PLD_LOSS
    ]
    if not pure:
        rest = least_epsilon(gaussian, delta) if gaussian else 0.0
    else:
        rest = _convolved(pure, gaussian, delta) if delta >= _LEAST_PLD_DELTA else math.inf
    return rest + total_epsilon(large)


def _convolved(pure: Sequence[Loss], gaussian: float, delta: float) -> float:
    """Epsilon of pure losses and Gaussian ones of some rho together, on a grid of losses."""
    pld = require("dp_accounting.pld.privacy_loss_distribution", _NEED)
    sigma = 1.0 / math.sqrt(2.0 * gaussian) if gaussian else math.inf
    # the largest loss of the grid: 40 deviations of the Gaussian part
    reach = total_epsilon(pure) + gaussian + 40.0 * math.sqrt(2.0 * gaussian)
    interval = max(min(loss.epsilon for loss in pure) / PLD_STEPS, reach / _MOST_STEPS)
    # of two answers, dp-accounting gives the other one half of the parameter: 1 / (1 + e^epsilon)
    parts = [
        pld.from_randomized_response(
            2.0 / (1.0 + math.exp(loss.epsilon)), 2, value_discretization_interval=interval
        ).self_compose(loss.count)
        for loss in pure
    ]
    if gaussian:
        parts.append(pld.from_gaussian_mechanism(sigma, value_discretization_interval=interval))
    epsilon = reduce(lambda a, b: a.compose(b), parts).get_epsilon_for_delta(delta)
    return float(epsilon) * (1.0 + _ROUNDING)


def composed_epsilon(losses: Sequence[Loss], delta: float) -> float:
    """Return the smallest epsilon at ``delta`` that any rule here proves for a composition.

    The smallest value by basic composition, zCDP and privacy loss distributions. Losses known only
    as (epsilon, delta)-DP are added by basic composition. Infinite if their deltas exceed delta.

    Examples
    --------
    >>> composed_epsilon([Loss(epsilon=1.0, delta=1e-6), Loss(0.5, epsilon=1.0)], 1e-6)
    2.0
    """
    check_delta(delta)
    approximate = [loss for loss in losses if loss.delta > 0.0]
    others = tuple(loss for loss in losses if loss.delta == 0.0 and not loss.is_nothing)
    left = delta - sum(loss.delta * loss.count for loss in approximate)
    if left < -1e-12 * delta:  # more than rounding
        return math.inf
    added = total_epsilon(approximate)
    if not others:
        return added
    # at a delta of 0, only basic composition is left
    return added + (_composed_epsilon(others, left) if left > 0.0 else total_epsilon(others))


@lru_cache(maxsize=1024)
def _composed_epsilon(losses: tuple[Loss, ...], delta: float) -> float:
    """Cache compositions: an experiment repeats the same ones."""
    rho = total_rho(losses)
    return min(total_epsilon(losses), zcdp_epsilon(rho, delta), pld_epsilon(losses, delta))


def root_from_below(excess: Callable[[float], float], start: float) -> float:
    """Return where an increasing function crosses zero, to 1e-9 and from below."""
    low = high = start
    while excess(low) > 0:
        low -= 1.0
    while excess(high) < 0:
        high += 1.0
    if low == high:
        return low
    root = brentq(excess, low, high, xtol=1e-9)
    # brentq stops up to 1e-9 from the crossing, on either side
    return root if excess(root) <= 0 else root - 2e-9
