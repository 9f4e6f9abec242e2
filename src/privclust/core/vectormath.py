"""Elementary functions for compiled loops that the compiler can vectorise.

A call of the C library's ``exp`` keeps a loop scalar. The function here is plain arithmetic and
selects, without a branch, a table or a call, so a loop around it vectorises on any processor.
Products and sums are fused explicitly, not by the compiler's choice: results are the same bit for
bit in the vector part of a loop, in its remainder, and on any processor.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from privclust.core.compiled import part

LEAST_EXPONENT = -708.0  # exp below this is set to 0; exp(-708) is still a normal number
_INVERSE_LN2 = 1.4426950408889634
# ln 2 in two parts: the first has 33 bits after the point, so n times it is exact for |n| < 2^20.
_LN2_HIGH = 0.6931471806019545
_LN2_LOW = -4.2009150726810846e-11
# 1.5, not 1: with a negative integer added, the sum keeps its exponent
_ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, kept in the low bits
# Interpolant of (exp(r) - 1 - r) / r^2 in the 10 Chebyshev nodes of |r| <= ln(2)/2: the error of
# exp(r) before rounding is below 2e-17.
_C0 = 0.5000000000000001
_C1 = 0.16666666666666669
_C2 = 0.041666666666624164
_C3 = 0.008333333333330065
_C4 = 0.0013888888917196736
_C5 = 0.00019841269863040559
_C6 = 2.480152132234228e-05
_C7 = 2.7557268480289716e-06
_C8 = 2.7620075892548164e-07
_C9 = 2.51003758422237e-08


@intrinsic
def _bits(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _from_bits(typing_context: Any, value: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def fused(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    """x y + z, rounded once, in single or double precision."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    # x and y are converted to the type of z, which sets the precision
    return z(z, z, z), generate


# Sums must not be reordered here: the rounding by _ROUNDER and the two-part ln 2 rely on it.
@part()
def exp_nonpositive(x: float) -> float:
    """Exponential of a nonpositive number, for use in compiled loops.

    With ``n`` the integer nearest to ``x / ln 2`` and ``r = x - n ln 2``, ``exp(x)`` is
    ``2^n (1 + r + r^2 P(r))``; 2^n is made by an integer shift into the exponent's bits.

    Parameters
    ----------
    x : float
        At most 0 (values up to 0.3 are right as well); -inf and NaN are allowed.

    Returns
    -------
    float
        exp(x) with a relative error below 3e-16; exactly 1 at 0; 0 below -708, where exp(x) is less
        than 3.4e-308; NaN at NaN.

    Examples
    --------
    >>> from privclust.core.vectormath import exp_nonpositive
    >>> exp_nonpositive(0.0), exp_nonpositive(-1e9)
    (1.0, 0.0)
    """
    # 2^n must be a normal number; NaN is not below the limit and passes
    y = LEAST_EXPONENT if x < LEAST_EXPONENT else x
    # Numba supplies the typing context
    shifted = fused(y, _INVERSE_LN2, _ROUNDER)  # type: ignore[call-arg]
    n = shifted - _ROUNDER
    r = fused(-n, _LN2_LOW, fused(-n, _LN2_HIGH, y))
    p = fused(r, _C9, _C8)
    p = fused(r, p, _C7)
    p = fused(r, p, _C6)
    p = fused(r, p, _C5)
    p = fused(r, p, _C4)
    p = fused(r, p, _C3)
    p = fused(r, p, _C2)
    p = fused(r, p, _C1)
    p = fused(r, p, _C0)
    # 1 is added last: a sum with a small number rounds once at the precision of the result
    p = 1.0 + fused(r * r, p, r)
    # n + 1023 is the exponent of 2^n; the shift drops all higher bits, which are of _ROUNDER
    scale = _from_bits((_bits(shifted) + 1023) << 52)
    return 0.0 if x < LEAST_EXPONENT else p * scale
