r"""Exact sums in fixed point, which do not depend on order or blocks.

Floating-point sums of neighbouring data sets may differ by more than one record: its contribution
is rounded to the precision of the sum, and may change all later roundings. Here each contribution
is rounded once, independently, to a multiple of :math:`2^{-b}`. Multiples of :math:`2^{-b}` of
magnitude up to :math:`2^{53-b}` are doubles with exact sums and differences, for any order, block,
vector unit or BLAS. So blocks are summed as doubles, which is fast, and added up as integers.

- *Sums* of entries in [-1, 1] have b = `SUM_BITS` = 30: exact in doubles for blocks of 2^22 rows.
- *Products* have factors in [-1, 1] rounded to b = `FACTOR_BITS` = 16; they have b = `PRODUCT_BITS`
  = 32 and need no further rounding, so that a matrix product by BLAS is exact for blocks of 2^20
  rows.

At most `LARGEST_ROWS` rows are possible. A row of norm 1 may be longer than 1 after rounding: it is
measured in a unit larger by `unit_margin`, so that bounds hold for the represented numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust.core.compiled import part

SUM_BITS = 30
FACTOR_BITS = 16
PRODUCT_BITS = 2 * FACTOR_BITS
EXACT_ROWS = 2**20
"""Rows of a block with exact sums or products of entries in [-1, 1] in doubles."""
LARGEST_ROWS = 2**30
# Adding and subtracting a rounder rounds to a multiple of 2^-b, the weight of the sum's last bit.
# 1.5, not 1: with a negative number added, the sum keeps its exponent.
_SUM_ROUNDER = 1.5 * 2.0 ** (52 - SUM_BITS)
_FACTOR_ROUNDER = 1.5 * 2.0 ** (52 - FACTOR_BITS)


@part()
def rounded_term(x: float) -> float:
    """Return the multiple of 2^-30 nearest to a number of magnitude up to 2^20; compiled."""
    # without fast-math flags: with them the compiler may cancel the two
    return (x + _SUM_ROUNDER) - _SUM_ROUNDER


@part()
def rounded_factor(x: float) -> float:
    """Return the multiple of 2^-16 nearest to a number of magnitude up to 2^34; compiled."""
    return (x + _FACTOR_ROUNDER) - _FACTOR_ROUNDER


def rounded_factors(values: np.ndarray) -> np.ndarray:
    """Return the multiples of 2^-16 nearest to an array of magnitudes up to 2^34, float64.

    Examples
    --------
    >>> float(rounded_factors(np.array([0.1]))[0] * 2**16)
    6554.0
    """
    return (values + _FACTOR_ROUNDER) - _FACTOR_ROUNDER


def unit_margin(n_features: int, bits: int) -> float:
    r"""Return the factor of the unit in which rounded rows of norm 1 have norm at most 1.

    Rounding moves a row by :math:`\sqrt d\, 2^{-b-1}`, so a unit larger by twice that suffices,
    with room for the rounding of norms and quotients and for rows that exceed bounds by 1e-12.

    Examples
    --------
    >>> unit_margin(4, 30) == 1 + 2**-29
    True
    """
    return 1.0 + math.sqrt(n_features) * 2.0**-bits


def check_row_count(n_rows: int) -> None:
    """Raise a ValueError if there are too many rows for exact sums."""
    if n_rows > LARGEST_ROWS:
        raise ValueError(
            f"X has more than {LARGEST_ROWS:,} rows, for which exact sums have no room"
        )


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """Numbers ``integers / 2^bits``; NumPy reads them as float64, rounded once.

    Attributes
    ----------
    integers : ndarray, int64
    bits : int
        From 0 to 62.

    Examples
    --------
    >>> total = FixedPoint(np.array([3, -1]), 1)
    >>> np.asarray(total)
    array([ 1.5, -0.5])
    """

    integers: np.ndarray
    bits: int

    @classmethod
    def of_exact(cls, values: np.ndarray, bits: int) -> FixedPoint:
        """Return the fixed-point numbers of multiples of ``2^-bits`` below ``2^(63 - bits)``."""
        return cls(np.ldexp(values, bits).astype(np.int64), bits)

    def in_bits(self, bits: int) -> FixedPoint:
        """Return the same numbers as multiples of ``2^-bits``, of at least as many bits."""
        # no overflow: sums of 2^30 terms in [-1, 1] need 30 + bits <= 62 bits
        return FixedPoint(self.integers << (bits - self.bits), bits)

    def reshape(self, *shape: int) -> FixedPoint:
        """Return the same numbers in another shape."""
        return FixedPoint(self.integers.reshape(*shape), self.bits)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of numbers, not of its bits."""
        return self.integers.shape

    def __getitem__(self, key: Any) -> FixedPoint:
        return FixedPoint(self.integers[key], self.bits)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # integers above 2^53 are rounded here; the power of 2 is exact
        floats = np.ldexp(self.integers.astype(np.float64), -self.bits)
        return np.asarray(floats, dtype=dtype or np.float64)  # an array, also of one number


def side_by_side(parts: list[FixedPoint]) -> FixedPoint:
    """Return arrays (n, ...) joined along their second axis, with the bits of the finest.

    Examples
    --------
    >>> halves, ones = FixedPoint(np.array([[3]]), 1), FixedPoint(np.array([[1]]), 0)
    >>> np.asarray(side_by_side([halves, ones]))
    array([[1.5, 1. ]])
    """
    bits = max(part.bits for part in parts)
    return FixedPoint(np.hstack([part.in_bits(bits).integers for part in parts]), bits)
