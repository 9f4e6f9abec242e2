"""Exact sums of random Fourier features over records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.validation import check_integer
from privclust.privacy.groups import GROUP, ROW, UNITS, Groups
from privclust.sketches._kernels import (
    BLOCK,
    FRACTION_BITS,
    LANES,
    add_features,
    add_masked_features,
    add_weighted_features,
)

# Bound on the modulus of a feature after rounding to multiples of 2^-22 (float32) or 2^-40
# (float64).
MODULUS_BOUND = 1.0 + 2.0**-20
LARGEST_FREQUENCY = 1e30
FRACTION_BITS_OF_SUMS = 40  # binary places of the sums
_CHUNK_VALUES = 2**18  # values of X that a thread copies at a time
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


class FeatureSums:
    r"""Sums over records of their random Fourier features, exact in fixed point.

    For records x_i with masks b_i the sums are

    .. math:: s_j = \sum_i b_{ij} \exp(i \omega_j^T x_i), \qquad j = 1, \dots, m,

    the sketch of eqs. (2) and (4) without noise and without the factor ``1 / (alpha_r n sqrt(m))``,
    ``alpha_r = r / m``. Features are computed in the precision of X and rounded to multiples of
    2^-22 (float32) or 2^-40 (float64); their sums are exact. The sums are therefore bitwise
    independent of chunks, parts and order. With masks they also depend on
    the index of each record. Memory besides X is O(m) for any number of records.

    Parameters
    ----------
    frequencies : array-like of shape (n_features, m)
        Frequencies omega_j in the columns, finite and at most 1e30 in magnitude.
    n_measurements : int or None, default None
        Number r of features that each record adds to the sums, from 1 to m; None means m, no masks.
        Masks are independent and uniform over the subsets of r features (Definition 3).
    mask_seed : int, default 0
        Seed of the masks, from 0 to 2^64 - 1. A mask is a function of the seed and of the index of
        the record.
    first_record : int, default 0
        Index of the first record that will be added, from 0 to 2^62 - 1. Parts with the same seed
        need disjoint ranges of indices.

    Attributes
    ----------
    values : ndarray of shape (m,), complex128
        The sums, rounded once.
    n_samples : int
        Number of records added.
    next_record : int
        Index of the next record.
    unit : {"row", "group"} or None
        Whether a record is a row or a group of rows; None before the first record.

    Raises
    ------
    ValueError
        If a parameter is not as above.

    Notes
    -----
    The error of a feature is at most 1e-12 in float64 and 9e-7 in float32, plus the rounding error
    of its phase: a few ulps (1e-16 and 6e-8) of ``sum_k |omega_kj x_k|``. Centre data that are far
    from the origin, or use float64.

    Each record adds a number of modulus at most `MODULUS_BOUND` to every sum. The sums hold at most
    2^60 records.

    References
    ----------
    V. Schellekens et al., "Differentially private compressive k-means", ICASSP 2019, eqs. (2), (4),
    Definition 3.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.sketches._feature_sums import FeatureSums
    >>> sums = FeatureSums([[0.0, np.pi]]).add([[0.0], [1.0], [1.0]])
    >>> sums.values.real.tolist(), sums.n_samples
    ([3.0, -1.0], 3)
    """

    def __init__(
        self,
        frequencies: ArrayLike,
        *,
        n_measurements: int | None = None,
        mask_seed: int = 0,
        first_record: int = 0,
    ) -> None:
        self.frequencies = _check_frequencies(frequencies)
        m = self.frequencies.shape[1]
        self.n_measurements = m if n_measurements is None else n_measurements
        check_integer("n_measurements", self.n_measurements, minimum=1)
        if self.n_measurements > m:
            raise ValueError(
                f"n_measurements must be at most the number of frequencies, {m}, "
                f"got {n_measurements}"
            )
        for name, value, power in ("mask_seed", mask_seed, 64), ("first_record", first_record, 62):
            check_integer(name, value, minimum=0)
            if value >= 2**power:
                raise ValueError(f"{name} must be less than 2^{power}, got {value}")
        self.mask_seed = mask_seed
        self.next_record = first_record
        self.n_samples = 0
        self.unit: str | None = None
        self._sums = _FixedPoint(m)
        self._turns = {}

    def add(self, X: ArrayLike, groups: ArrayLike | Groups | None = None) -> Self:
        """Add the features of records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records in the rows, in any memory layout. float32 is computed in float32, every other
            type in float64.
        groups : array-like of shape (n_samples,) or None
            Label of the group of each row, such as a person. A group is then one record: its
            features are the mean over its rows, with the same bound on the modulus. All rows of a
            group must be in one call. None: each row is a record.

        Returns
        -------
        FeatureSums
            self.

        Raises
        ------
        ValueError
            If X has another shape or holds NaN, infinity or values so large that a phase overflows
            (see `clipped`); if there is not one group label per row; if rows and groups are mixed,
            or groups are used with masks. The sums are then unchanged.
        """
        X = self._check_records(X)
        weights, n_records = None, len(X)
        if groups is not None:
            groups = Groups.of(groups, len(X))
            weights, n_records = groups.weights, groups.count
            if self.n_measurements < self.frequencies.shape[1]:
                raise ValueError("groups cannot have masks, which are drawn for each row")
        unit = ROW if groups is None else GROUP
        if self.unit not in (None, unit):
            raise ValueError(
                f"records are {UNITS[self.unit]} each so far, and would be {UNITS[unit]}: a sketch "
                "cannot protect both kinds equally"
            )
        turns, limit = self._turns_in(_SINGLE if X.dtype == _SINGLE else _DOUBLE)
        # whole blocks: only the last chunk has a rest
        size = max(1, _CHUNK_VALUES // turns.shape[1] // BLOCK) * BLOCK
        sums = _FixedPoint(len(turns))  # apart, so that an error changes nothing
        for start in range(0, len(X), size):
            rows = X[start : start + size]
            _check_values(rows, limit, start)
            own = None if weights is None else weights[start : start + size]
            self._add_chunk(rows, own, self.next_record + start, turns, sums)
        self._sums.add(sums.whole, sums.fraction)
        self.next_record += len(X)
        self.n_samples += n_records
        self.unit = unit
        return self

    def clipped(self, X: ArrayLike, middle: ArrayLike = 0.0) -> np.ndarray:
        """Return records clipped to the range that `add` accepts.

        Each entry, also an infinite one, is clipped to the largest magnitude for which no phase
        overflows: at least 1e4 in float32 and 1e270 in float64.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        middle : float or ndarray of shape (n_features,)
            Replaces entries that are NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            X itself if no entry is changed.

        Raises
        ------
        ValueError
            If X has another shape or holds no real numbers.
        """
        X = self._check_records(X)
        dtype = _SINGLE if X.dtype == _SINGLE else _DOUBLE
        # the next smaller number, as rounding to float32 may exceed the limit
        most = np.nextafter(dtype.type(self._turns_in(dtype)[1]), dtype.type(0))
        if not len(X) or (X.min() >= -most and X.max() <= most):
            return X
        clipped = np.clip(X.astype(dtype, copy=False), -most, most)
        return np.where(np.isnan(clipped), np.clip(middle, -most, most).astype(dtype), clipped)

    @property
    def values(self) -> np.ndarray:
        """The sums as complex numbers."""
        parts = self._sums.whole + np.ldexp(
            self._sums.fraction.astype(np.float64), -FRACTION_BITS_OF_SUMS
        )
        return parts[:, 0] + 1j * parts[:, 1]

    def state(self) -> dict[str, np.ndarray]:
        """Return the sums as integers, for storage.

        Returns
        -------
        dict of ndarray, int64
            "whole" and "fraction" of shape (m, 2): the real and imaginary sums are
            ``whole + fraction / 2^40``; and "n_samples" of shape (1,). Equal sums have equal
            states. The states of up to a million disjoint parts may be added entry by entry, which
            gives a state of the union.
        """
        return {
            "whole": self._sums.whole.copy(),
            "fraction": self._sums.fraction.copy(),
            "n_samples": np.array([self.n_samples], dtype=np.int64),
        }

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, ArrayLike],
        frequencies: ArrayLike,
        *,
        unit: str | None = ROW,
        **parameters: Any,
    ) -> Self:
        """Return the sums of a state.

        Parameters
        ----------
        state : mapping
            Result of `state`, or a sum of such results.
        unit : {"row", "group"} or None
            Kind of the records.
        frequencies, **parameters
            Parameters of the class; `first_record` is the index of the next record.

        Returns
        -------
        FeatureSums

        Raises
        ------
        ValueError
            If the state is malformed, or has another number of frequencies.
        """
        sums = cls(frequencies, **parameters)
        pairs = sums._sums.whole.shape
        shapes = {"whole": pairs, "fraction": pairs, "n_samples": (1,)}
        arrays = {}
        for name, shape in shapes.items():
            array = np.asarray(state[name]) if name in state else None
            if array is None or array.shape != shape or array.dtype.kind not in "iu":
                got = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
                raise ValueError(f"state[{name!r}] must be integers of shape {shape}, got {got}")
            arrays[name] = array.astype(np.int64)
        if arrays["n_samples"][0] < 0:
            raise ValueError(f"n_samples must not be negative, got {arrays['n_samples'][0]}")
        sums.n_samples, sums.unit = int(arrays["n_samples"][0]), unit
        sums._sums.add(arrays["whole"], arrays["fraction"])
        return sums

    def _check_records(self, X):
        """Return X as an array, without a copy if possible; check its type and shape."""
        X = np.asarray(X)
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold real numbers, got an array of {X.dtype}")
        d = self.frequencies.shape[0]
        if X.ndim != 2 or X.shape[1] != d:
            raise ValueError(
                f"X must have shape (n_samples, {d}), as the frequencies have {d} rows; "
                f"got {X.shape}"
            )
        return X

    def _turns_in(self, dtype):
        """Return frequencies over 2 pi, padded to (m, n_columns), and the largest |x| allowed."""
        if dtype not in self._turns:
            d, m = self.frequencies.shape
            turns = np.zeros((m, -(-d // LANES) * LANES), dtype=dtype)
            turns[:, :d] = self.frequencies.T / (2.0 * np.pi)
            # four times the largest possible phase is finite, so that no partial sum overflows
            largest = max(1.0, 4.0 * np.abs(turns, dtype=np.float64).sum(axis=1).max())
            self._turns[dtype] = turns, np.finfo(dtype).max / largest
        return self._turns[dtype]

    def _add_chunk(self, rows, weights, first_record, turns, sums):
        """Add the features of a chunk, with weights or None, to fixed-point sums."""
        n, d = rows.shape
        m, n_columns = turns.shape
        shift = FRACTION_BITS_OF_SUMS - FRACTION_BITS[turns.dtype]
        parts = np.zeros((m, 2), dtype=np.int64)
        if self.n_measurements < m:
            padded = np.zeros((n, n_columns), dtype=turns.dtype)
            padded[:, :d] = rows
            r, seed = self.n_measurements, np.uint64(self.mask_seed)
            add_masked_features(padded, first_record, turns, r, seed, shift, parts)
        elif weights is None:
            add_features(_blocks_of(rows, turns), n, turns, shift, parts)
        else:
            blocks = _blocks_of(rows, turns)
            padded = np.zeros((len(blocks), BLOCK))
            # ravel() is a view here
            padded.ravel()[:n] = weights
            add_weighted_features(blocks, padded, n, turns, shift, parts)
        sums.add(np.zeros_like(parts), parts)


def _blocks_of(rows, turns):
    """Return rows as blocks (n_blocks, n_columns, BLOCK), in the type of the frequencies."""
    n, d = rows.shape
    n_full, rest = divmod(n, BLOCK)
    blocks = _aligned_zeros((n_full + (rest > 0), turns.shape[1], BLOCK), turns.dtype)
    full = rows[: n_full * BLOCK].reshape(n_full, BLOCK, d)
    blocks[:n_full, :d] = full.swapaxes(1, 2)
    if rest:
        blocks[n_full, :d, :rest] = rows[n_full * BLOCK :].T
    return blocks


class _FixedPoint:
    """Sums ``whole + fraction / 2^40`` in int64, 0 <= fraction < 2^40; (m, 2)."""

    def __init__(self, m):
        self.whole = np.zeros((m, 2), dtype=np.int64)
        self.fraction = np.zeros((m, 2), dtype=np.int64)

    def add(self, whole, fraction):
        """Add sums with a fraction below 2^62, and carry."""
        self.fraction += fraction
        self.whole += whole
        self.whole += self.fraction >> FRACTION_BITS_OF_SUMS  # arithmetic shift: floor
        self.fraction &= (1 << FRACTION_BITS_OF_SUMS) - 1


def _aligned_zeros(shape, dtype):
    """Return zeros aligned to 64 bytes: vectors across two cache lines are 20 % slower."""
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    memory = np.zeros(n_bytes + 64, dtype=np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + n_bytes].view(dtype).reshape(shape)


def _check_frequencies(frequencies):
    """Return a checked copy of the frequencies as float64 (n_features, m)."""
    frequencies = np.array(frequencies)
    if frequencies.dtype.kind not in "fiub":
        raise ValueError(f"frequencies must be real numbers, got an array of {frequencies.dtype}")
    if frequencies.ndim != 2 or 0 in frequencies.shape:
        raise ValueError(
            "frequencies must have shape (n_features, n_frequencies), neither of them 0, "
            f"got an array of shape {frequencies.shape}"
        )
    frequencies = frequencies.astype(np.float64, order="C")
    if not (np.abs(frequencies) <= LARGEST_FREQUENCY).all():
        raise ValueError(
            f"frequencies must be finite and at most {LARGEST_FREQUENCY:g} in magnitude, "
            f"got {frequencies.flat[np.argmin(np.abs(frequencies) <= LARGEST_FREQUENCY)]}"
        )
    return frequencies


def _check_values(rows, limit, start):
    if rows.min() >= -limit and rows.max() <= limit:
        return
    row, _ = np.argwhere(~(np.abs(rows) <= limit))[0]
    raise ValueError(
        f"X must be finite and at most {limit:.3g} in magnitude, which row {start + row} is not"
    )
