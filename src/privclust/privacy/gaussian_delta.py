r"""Comparison of the Gaussian mechanism's delta with a float, without rounding errors.

With r the sensitivity over the noise's deviation, it is (epsilon, delta)-private if and only if

.. math::
    \Phi\left(\frac{r}{2} - \frac{\epsilon}{r}\right)
    - e^{\epsilon} \Phi\left(-\frac{r}{2} - \frac{\epsilon}{r}\right) \le \delta

(B. Balle and Y.-X. Wang, ICML 2018, Theorem 8). Doubles lose this difference if noise is large or
delta small. Here it is computed with as many bits as needed, and searches return a value for which
the inequality was verified.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from privclust.core.packages import require

_NEED = "privacy budgets"
_FIRST_BITS = 128
_SPARE_BITS = 40  # accurate bits of the difference
_ROUNDING = 2.0**-48  # relative error of a ratio that the caller has computed in doubles
_FURTHEST = 40.0  # Phi(-40) is less than any float
_SEARCH_STEPS = 44  # bisection steps after the power of 2: one part in 10^13


def is_private(ratio: float, epsilon: float, delta: float) -> bool:
    """Return whether noise of this ratio, rounded up, is certainly (epsilon, delta)-private.

    Parameters
    ----------
    ratio : float
        Sensitivity over deviation, positive; one part in 2^48 is added.
    epsilon, delta : float
        The claim: epsilon from 0, delta in (0, 1).

    Examples
    --------
    >>> is_private(0.1, 1.0, 1e-6), is_private(0.5, 1.0, 1e-6)
    (True, False)
    """
    mp = require("mpmath", _NEED)
    bits = _FIRST_BITS
    while True:
        with mp.workprec(bits):
            r, e = mp.mpf(ratio) * (1 + _ROUNDING), mp.mpf(epsilon)
            u, v = e / r - r / 2, e / r + r / 2
            # the relative rounding error of u and of the terms is below 2 ** (size - bits)
            size = 4 + max(0, 2 * mp.mag(v))
            if size + _SPARE_BITS < bits:
                # u > 40: delta is below every float; u < -40: it is above every float below 1
                if abs(u) > _FURTHEST:
                    return bool(u > 0)
                # cancellation loses `lost` bits: repeat with twice as many if too few are left
                first, second = mp.ncdf(-u), mp.exp(e) * mp.ncdf(-v)
                difference = first - second
                lost = mp.mag(first) - mp.mag(difference) if difference > 0 else bits
                if size + lost + _SPARE_BITS < bits:
                    # rounded up by 16 times the error that the spare bits allow
                    return bool(difference * (1 + mp.ldexp(1, 4 - _SPARE_BITS)) <= delta)
        bits *= 2


@lru_cache(maxsize=1024)
def least_sigma(epsilon: float, delta: float) -> float:
    """Return the least sigma for sensitivity 1 that is (epsilon, delta)-private.

    A part in 10^9 is added. A ValueError is raised if it is larger than the largest float.

    Examples
    --------
    >>> round(least_sigma(1.0, 1e-5), 4), f"{least_sigma(1e-12, 1e-100):.4g}"
    (3.7306, '1.964e+13')
    """
    sigma = _least(lambda value: is_private(1.0 / value, epsilon, delta))
    if not math.isfinite(sigma):
        raise ValueError(
            f"epsilon={epsilon!r} and delta={delta!r} need more noise than the largest float; ask "
            "for a larger epsilon or delta"
        )
    return sigma * (1.0 + 1e-9)


@lru_cache(maxsize=1024)
def least_epsilon(rho: float, delta: float) -> float:
    """Return the least epsilon at this delta, rounded up, of Gaussian noise with a zCDP parameter.

    That is ``rho = ratio**2 / 2``, positive. It is 0 or infinite if no float between them holds.

    Examples
    --------
    >>> round(least_epsilon(0.9, 1e-4), 2)
    5.41
    """
    ratio = math.sqrt(2.0) * math.sqrt(rho)  # rho may be close to the largest float
    if is_private(ratio, 0.0, delta):
        return 0.0
    return _least(lambda value: is_private(ratio, value, delta))


def _least(holds: Callable[[float], bool]) -> float:
    """Return the least positive float with a property that all larger ones have.

    By bisection, up to a part in 10^13 above.
    """
    low, high = -1022, 1024  # exponents of 2: it fails at the first and holds at the second
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(math.ldexp(1.0, middle)) else (middle, high)
    if high == 1024:
        return math.inf
    below, above = math.ldexp(1.0, low), math.ldexp(1.0, high)
    for _ in range(_SEARCH_STEPS):
        middle = 0.5 * (below + above)
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
