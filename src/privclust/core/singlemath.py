"""Elementary functions in single precision for vectorised compiled loops. Like
`privclust.core.vectormath`: only arithmetic and selects, with explicitly fused products and sums.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from privclust.core.compiled import part
from privclust.core.vectormath import fused

LEAST_EXPONENT = np.float32(-87.0)  # exp below this is set to 0; exp(-87) is still a normal number
_INVERSE_LN2 = np.float32(1.4426950408889634)
# ln 2 in two parts: the first has 9 bits, so n times it is exact for |n| < 2^15.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.1219444005469057e-4)
_ROUNDER = np.float32(12582912.0)  # 1.5 * 2^23: adding it rounds to an integer, in the low bits
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
# Interpolant of (exp(r) - 1 - r) / r^2 in the 5 Chebyshev nodes of |r| <= ln(2)/2: the error of
# exp(r) before rounding is below 1.1e-8.
_C0 = np.float32(0.5)
_C1 = np.float32(0.1666657702559799)
_C2 = np.float32(0.041666554662050534)
_C3 = np.float32(0.008363173074513711)
_C4 = np.float32(0.001392617611993558)


@intrinsic
def _power_of_two(typing_context: Any, shifted: Any) -> Any:
    """2^n, with n the integer in the low bits of _ROUNDER + n."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = ir.IntType(32)
        bits = builder.bitcast(arguments[0], integer)
        # n + 127 is the exponent of 2^n; the shift drops all higher bits, which are of _ROUNDER
        bits = builder.shl(builder.add(bits, ir.Constant(integer, 127)), ir.Constant(integer, 23))
        return builder.bitcast(bits, ir.FloatType())

    return types.float32(types.float32), generate


@part()
def exp_nonpositive(x: float) -> float:
    """Exponential of a nonpositive float32, like that of doubles in `privclust.core.vectormath`.

    Parameters
    ----------
    x : float32
        At most 0; -inf and NaN are allowed.

    Returns
    -------
    float32
        exp(x) with a relative error below 1.3e-7; exactly 1 at 0; 0 below -87, where exp(x) is less
        than 1.7e-38; NaN at NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.core.singlemath import exp_nonpositive
    >>> exp_nonpositive(np.float32(0.0)), exp_nonpositive(np.float32(-1e9))
    (1.0, 0.0)
    """
    # 2^n must be a normal number; NaN is not below the limit and passes
    y = LEAST_EXPONENT if x < LEAST_EXPONENT else x
    # Numba supplies the typing context
    shifted = fused(y, _INVERSE_LN2, _ROUNDER)  # type: ignore[call-arg]
    n = shifted - _ROUNDER
    r = fused(-n, _LN2_LOW, fused(-n, _LN2_HIGH, y))
    p = fused(r, _C4, _C3)
    p = fused(r, p, _C2)
    p = fused(r, p, _C1)
    p = fused(r, p, _C0)
    # 1 is added last: a sum with a small number rounds once at the precision of the result
    p = _ONE + fused(r * r, p, r)
    return _ZERO if x < LEAST_EXPONENT else p * _power_of_two(shifted)
