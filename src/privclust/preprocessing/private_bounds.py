"""Private bounds of columns from noisy histograms, if no bounds are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from privclust.core.fixed_point import SUM_BITS, FixedPoint
from privclust.core.hints import RandomState
from privclust.core.printable import excerpt
from privclust.core.validation import UNUSED_DELTA, check_real
from privclust.privacy import Guarantee, Neighbours, Sensitivity, is_seeded, noise_source
from privclust.privacy.budget import charge
from privclust.privacy.estimator import OF_LISTS
from privclust.privacy.groups import GROUP, ROW, Groups
from privclust.privacy.hidden import warn_of_noise
from privclust.privacy.measurements import Gaussian, Laplace, gaussian_share
from privclust.records.columns import columns_of, is_frame
from privclust.records.errors import ReadingError
from privclust.records.matrix import numbers_of_table

_ROUNDS = 3  # rounds of histograms: one of powers of two, two of equal cells
_CELLS = 64
_EXPONENTS = (-63, 64)  # exponents of 2; smaller magnitudes count as 0, larger ones as the last
_FALSE_ALARM = 0.01  # probability that any bin without rows stands out from noise
_MUCH = 0.05  # least count of a bin that stands out, as a fraction of the rows, for a warning
# relative widening of bounds, over the fraction of rows cut off; and its largest value
_MARGIN_OF_CUT, _LARGEST_MARGIN = 8.0, 0.25
_DEVIATIONS, _TAIL = 2.0, 1e-3  # largest count cut off: deviations of noise, plus share of rows


@dataclass(frozen=True)
class PrivateBounds:
    """Bounds estimated from noisy histograms.

    Attributes
    ----------
    low, high : ndarray of shape (n_features,)
        NaN where they are indistinguishable from noise.
    is_detected : ndarray of shape (n_features,)
        Whether a column was distinguishable from noise.
    guarantee : privclust.privacy.Guarantee
        Guarantee of the bounds; for fits that use them see `Guarantee.compose`.
    """

    low: np.ndarray
    high: np.ndarray
    is_detected: np.ndarray
    guarantee: Guarantee


def private_bounds(
    X: ArrayLike,
    epsilon: float,
    delta: float = 0.0,
    *,
    groups: ArrayLike | None = None,
    neighbours: str = "replace_one",
    random_state: RandomState = None,
) -> PrivateBounds:
    r"""Return bounds of columns that hold nearly all rows, under differential privacy.

    Three rounds release one noisy histogram per column. The first has bins of powers of two and
    signs, the same for any data; the second 64 equal cells between the outermost bins that stand
    out from the noise; the third 64 equal cells between the resulting bounds. At either end, bounds
    cut off counts below a thousandth of the rows plus two deviations of noise: outliers have no
    effect.

    A row adds 1 to one bin of each of d columns. Replacing one changes a round's histograms by at
    most :math:`\sqrt{2 d}` in l2 and 2 d in l1, adding or removing one by :math:`\sqrt d` and d.
    With groups a row adds its weight, rounded down to a multiple of 2^-30; a group's contributions
    to a column are not negative and add up to at most 1, so the same bounds hold. Sums are exact.

    *Where it fails.* Columns with few rows, or a small epsilon, are not detected: a bin needs about
    :math:`40 \sqrt d / \epsilon` rows at a delta of 1e-6. Rare but relevant values, such as a
    remote cluster of a thousandth of the rows, are cut off. If some rows have a code for "unknown",
    such as -999, the bounds include the code. Known bounds avoid all of these problems and use no
    budget.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Any numbers; NaN is not counted, infinity counts as the largest magnitude.
    epsilon : float
        Budget of all rounds and columns, in nats.
    delta : float
        From 0 to less than 1; 0: Laplace noise.
    groups : array-like of shape (n_samples,) or None
        The group of each row, such as its person, if all its rows are protected together.
    neighbours : {"replace_one", "add_remove"}
        Neighbouring relation.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Returns
    -------
    PrivateBounds

    Raises
    ------
    ValueError
        If X is not numeric, groups are not one per row, or a parameter is out of its range.

    Warns
    -----
    NoiseWarning
        If the bounds of a column are indistinguishable from noise, or noise is a large part of its
        counts, so that bounds may exclude some rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.uniform(18, 90, 20000), rng.lognormal(10, 0.5, 20000)])
    >>> bounds = private_bounds(X, 0.5, 1e-7, random_state=0)
    >>> bounds.low.round().tolist(), bounds.high.round().tolist()
    ([16.0, 4096.0], [95.0, 69240.0])
    """
    caveats = (OF_LISTS,) if isinstance(X, (list, tuple)) else ()
    names = [repr(excerpt(name)) for name, _ in columns_of(X)] if is_frame(X) else None
    X = _checked(X)
    check_real("epsilon", epsilon)
    UNUSED_DELTA("delta", delta, {})
    groups = None if groups is None else Groups.of(groups, len(X))
    source = noise_source(random_state)
    noise = _noise(X.shape[1], epsilon, delta, Neighbours.of(neighbours))
    guarantee = Guarantee.of(
        [noise.statement("histograms of columns")],
        "approximate" if delta else "pure",
        noise.sensitivity.relation,
        delta=delta,
        seeded=is_seeded(source),
        caveats=caveats,
        unit=ROW if groups is None else GROUP,
    )
    charge(guarantee)
    units = np.full(len(X), 2**SUM_BITS) if groups is None else groups.units

    def noisy(bins: Iterable[np.ndarray], n_bins: int) -> np.ndarray:
        """Return noisy counts (d, n_bins) of the bins of entries, an iterator over columns."""
        exact = np.stack([_counts(of_column, units, n_bins) for of_column in bins])
        return np.asarray(noise.release(FixedPoint(exact, SUM_BITS), source))

    counts = noisy(map(_power, X.T), len(_LOWS))
    least = _least_count(counts, noise)
    of_rows = least / np.maximum(counts.sum(axis=1), 1.0)
    low, high = _rough_bounds(counts, least)
    for _ in range(_ROUNDS - 1):
        counts = noisy(map(_cell, X.T, low, high), _CELLS)
        low, high = _narrowed(low, high, counts, noise.deviation)
    high = np.where(low == high, low + 1.0, high)  # for a column of zeros
    is_detected = np.isfinite(low)
    hidden = np.flatnonzero(~is_detected)
    if len(hidden):
        warn_of_noise(f"noise hides the bounds of {_listed(hidden, names)}")
    if len(short := np.flatnonzero(is_detected & (of_rows > _MUCH))):
        warn_of_noise(
            f"bounds of {_listed(short, names)} may exclude a part of the rows, if no interval "
            f"between powers of two has {of_rows[short].max():.0%} of them: declare known bounds "
            "instead"
        )
    return PrivateBounds(low, high, is_detected, guarantee)


def _listed(places: np.ndarray, names: Sequence[str] | None) -> str:
    shown = ", ".join(str(j) if names is None else names[j] for j in places)
    word = "column" if len(places) == 1 else "columns"
    return f"{word} {shown}" if names is not None else f"{word} {shown} (counted from 0)"


def _checked(X: ArrayLike) -> np.ndarray:
    rows = np.asarray(numbers_of_table(X))
    if rows.dtype.kind not in "fiub" or rows.ndim != 2 or not rows.shape[1]:
        got = f"{rows.dtype} in {rows.ndim} dimensions"
        raise ReadingError(f"X must hold numbers in shape (n_samples, n_features), got {got}")
    return rows.astype(float)


def _noise(d: int, epsilon: float, delta: float, relation: Neighbours) -> Gaussian | Laplace:
    ends = 2 if relation is Neighbours.REPLACE_ONE else 1
    proof = f"a row adds at most 1 to each of {d} columns, not below 0"
    if delta:
        sensitivity = Sensitivity(math.sqrt(ends * d), "l2", relation, proof)
        return Gaussian.of_share(sensitivity, gaussian_share(epsilon, delta, _ROUNDS), _ROUNDS)
    return Laplace(Sensitivity(ends * d, "l1", relation, proof), epsilon / _ROUNDS, _ROUNDS)


def _counts(bins: np.ndarray, units: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the exact sums of weights by bin, in units of 2^-30; a bin of -1 is none."""
    sums = np.zeros(n_bins + 1, dtype=np.int64)
    np.add.at(sums, bins, units)  # index -1: entries without a bin are added to the last
    return sums[:-1]


_SIDE = _EXPONENTS[1] - _EXPONENTS[0] + 1
_MAGNITUDES = np.ldexp(1.0, np.arange(_EXPONENTS[0] - 1, _EXPONENTS[1] + 1))
# lower ends of the bins: negative ones from -2^64 up, that of 0, positive ones from 2^-64 up
_LOWS = np.concatenate([-_MAGNITUDES[:0:-1], [0.0], _MAGNITUDES[:-1]])
_HIGHS = -_LOWS[::-1]
"""Upper ends of the bins of powers of two; the middle bin contains only 0."""


def _power(column: np.ndarray) -> np.ndarray:
    """Return the bin of each entry by its sign and the power of two above it."""
    # |x| is below 2^e and at least 2^(e - 1); place 0 is 0, place 1 is up to 2^-63
    exponents = np.frexp(column)[1].astype(np.int64)
    exponents[np.isinf(column)] = _EXPONENTS[1]
    place = np.clip(exponents - _EXPONENTS[0] + 1, 0, _SIDE)
    place[column == 0] = 0
    bins = _SIDE + np.where(column < 0, -place, place)
    bins[np.isnan(column)] = -1
    return bins


def _cell(column: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the cell of each entry between bounds; entries outside are in none."""
    # also for NaN: the column was not detected
    if not low < high:
        return np.full(len(column), -1)
    with np.errstate(invalid="ignore", over="ignore"):
        place = (column - low) / (high - low) * _CELLS
        is_in = (place >= 0.0) & (place <= _CELLS)
    return np.where(is_in, np.minimum(np.where(is_in, place, 0.0), _CELLS - 1), -1).astype(np.int64)


def _least_count(counts: np.ndarray, noise: Gaussian | Laplace) -> float:
    """Return the count above which a bin stands out from noise."""
    # union bound over all bins of all columns
    per_bin = _FALSE_ALARM / counts.size
    if isinstance(noise, Laplace):
        # a tail of Laplace noise: P(noise > t) = exp(-t / scale) / 2
        return -noise.scale * math.log(2.0 * per_bin)
    return float(noise.deviation * norm.isf(per_bin))


def _rough_bounds(counts: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the outermost edges of the bins that stand out from noise."""
    low, high = np.full((2, len(counts)), np.nan)
    for j, is_seen in enumerate(counts > least):
        if is_seen.any():
            places = np.flatnonzero(is_seen)
            low[j], high[j] = _LOWS[places[0]], _HIGHS[places[-1]]
    return low, high


def _narrowed(
    low: np.ndarray, high: np.ndarray, counts: np.ndarray, deviation: float
) -> tuple[np.ndarray, ...]:
    """Return bounds without small counts, relative to noise and rows, at either end.

    They are widened by a margin that grows with the share of rows possibly cut off.
    """
    width, total = (high - low) / _CELLS, np.maximum(counts.sum(axis=1, keepdims=True), 0.0)
    # the sum of m noisy counts has sqrt(m) times the noise of one
    allowed = _DEVIATIONS * deviation * np.sqrt(np.arange(1, _CELLS + 1)) + _TAIL * total
    first = _first_above(np.cumsum(counts, axis=1), allowed)
    last = _first_above(np.cumsum(counts[:, ::-1], axis=1), allowed)
    is_told = first + last < _CELLS  # otherwise bounds are unchanged
    narrow = low + first * width, high - last * width
    cut = [allowed[range(len(low)), np.minimum(ends, _CELLS - 1)] for ends in (first, last)]
    margins = [_margin(of_end, total[:, 0]) * (narrow[1] - narrow[0]) for of_end in cut]
    wide = np.maximum(narrow[0] - margins[0], low), np.minimum(narrow[1] + margins[1], high)
    return tuple(np.where(is_told, new, old) for new, old in zip(wide, (low, high), strict=True))


def _margin(cut: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the relative widening of bounds, from the number of rows cut off."""
    return np.minimum(_MARGIN_OF_CUT * cut / np.maximum(total, 1.0), _LARGEST_MARGIN)


def _first_above(sums: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    is_above = sums > allowed
    return np.where(is_above.any(axis=1), is_above.argmax(axis=1), sums.shape[1])
