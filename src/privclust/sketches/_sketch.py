"""A sketch: sums of random Fourier features of the records."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import SUM_BITS, FixedPoint
from privclust.core.hints import RandomState
from privclust.core.validation import check_integer, check_option
from privclust.privacy import Guarantee, Neighbours, NoisyCount, is_seeded, noise_source
from privclust.privacy.budget import charge
from privclust.privacy.groups import ROW, UNITS
from privclust.privacy.left_out import LeftOutCount
from privclust.privacy.noise import NoiseSource
from privclust.records.matrix import numbers_of_table
from privclust.sketches._feature_sums import FRACTION_BITS_OF_SUMS, FeatureSums
from privclust.sketches._measurement import SketchMeasurement
from privclust.sketches._noise import SketchNoise
from privclust.sketches._tables import SketchedTable, sums_of_table

_MOST_NOISY = 2**31  # sums of fewer records are integers below 2^62 when noise is added
_MASK_SEED_BITS = 64


@dataclass(frozen=True, eq=False)
class Sketch:
    r"""Sums of random Fourier features over records, with or without noise; immutable.

    With frequencies :math:`\omega_1, \dots, \omega_m` and, for every record, a mask
    :math:`b_i` of r of the m features (all of them where r = m),

    .. math:: \mathrm{sums}_j = \sum_i b_{ij} \exp(i \omega_j^T x_i) + \mathrm{noise}_j, \qquad
        s = \frac{\mathrm{sums}}{\alpha_r n \sqrt{m}}, \quad \alpha_r = r / m.

    `values` is s: eq. (2) of the paper if r = m and there is no noise, else the scrambled sketch
    of eq. (4). ``a + b`` is the sketch of the union of disjoint records: eq. (5) for parts of equal
    size, and weighted by size otherwise. Sums without noise are exact, so that merged parts give,
    to the byte, the sketch of all records.

    A sketch without noise is **not private**: few records can be recovered from it. See
    `privclust.sketches._release.release`.

    Parameters
    ----------
    frequencies : array_like of shape (n_features, m)
        :math:`\Omega`, finite; one frequency per column, in radians per unit of the data.
    sums : array_like of complex, shape (m,)
        Finite.
    n_samples : int or float
        Number n of records; if noisy, a float of any sign.
    n_measurements : int or None
        r, from 1 to m; None for m.
    noise : SketchNoise or None
        None without noise.
    guarantee : privclust.privacy.Guarantee or None
        Guarantee of the noise; None without noise.
    unit : {"row", "group"}
        Kind of the records: rows, or groups of rows, such as all rows of one person.
    exact : mapping of str to ndarray or None
        Exact state of the sums, `FeatureSums.state`; None with noise.
    left_out : int, privclust.privacy.NoisyCount or None
        Number of records that contribute nothing, since an entry is missing or cannot be read; None
        if there can be none.
    table : SketchedTable or None
        Declaration of the table's columns; None if columns are used as numbers.

    Raises
    ------
    ValueError
        If an argument is not as described.

    References
    ----------
    V. Schellekens, A. Chatalic, F. Houssiau, Y.-A. de Montjoye, L. Jacques and R. Gribonval,
    "Differentially private compressive k-means", ICASSP 2019, eqs. (2), (4) and (5).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, frequencies = rng.standard_normal((100, 2)), rng.standard_normal((2, 5))
    >>> whole = Sketch.of(X, frequencies)
    >>> parts = Sketch.of(X[:30], frequencies) + Sketch.of(X[30:], frequencies)
    >>> parts.n_samples, bool((parts.values == whole.values).all())
    (100, True)
    """

    frequencies: np.ndarray = field(repr=False)
    sums: np.ndarray = field(repr=False)
    n_samples: int | float
    n_measurements: int | None = None
    noise: SketchNoise | None = None
    guarantee: Guarantee | None = field(default=None, repr=False)
    exact: Mapping[str, np.ndarray] | None = field(default=None, repr=False)
    unit: str = ROW
    left_out: int | NoisyCount | None = None
    table: SketchedTable | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        checked = FeatureSums(self.frequencies, n_measurements=self.n_measurements)
        frequencies = checked.frequencies
        m = frequencies.shape[1]
        sums = np.array(self.sums, dtype=np.complex128)
        if sums.shape != (m,) or not np.isfinite(sums).all():
            raise ValueError(f"sums must be {m} finite numbers, got an array of {sums.shape}")
        self._check_records()
        object.__setattr__(self, "n_measurements", int(checked.n_measurements))
        for name, array in (("frequencies", frequencies), ("sums", sums)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def _check_records(self) -> None:
        """Raise a ValueError unless noise, guarantee, exact sums and n_samples are consistent."""
        if (self.noise is None) != (self.guarantee is None):
            raise ValueError("a sketch has both noise and a guarantee, or neither")
        check_option("unit", self.unit, tuple(UNITS))
        if self.guarantee is not None and self.guarantee.unit != self.unit:
            raise ValueError(
                f"a sketch of {UNITS[self.unit]} has a guarantee for {UNITS[self.guarantee.unit]}"
            )
        if (self.noise is None) != (self.exact is not None):
            raise ValueError("a sketch has either exact sums or noise")
        if self.noise is None or not isinstance(self.n_samples, float):
            check_integer("n_samples", self.n_samples, minimum=0)
        elif not math.isfinite(self.n_samples):
            raise ValueError(f"n_samples must be finite, got {self.n_samples}")

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        frequencies: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        n_measurements: int | None = None,
        mask_seed: int | None = None,
        first_record: int = 0,
    ) -> Self:
        """Return the sketch of rows in memory or a memory map, without noise.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Finite numbers. float32 and float16 are computed in float32, others in float64. Sketches
            of parts add up to that of all rows; `of_table` reads files, tables and streams.
        frequencies : array_like of shape (n_features, m)
        groups : array_like of shape (n_samples,) or None
            Label of the group of each row, such as a person. A group is then one record with the
            mean of the features of its rows, which may be anywhere in X, but not in another sketch
            that is merged with this one. None: each row is a record.
        n_measurements : int or None
            Number r of features to which each record contributes; None for all.
        mask_seed : int or None
            Seed of the masks, which must be kept secret. None draws a seed from the operating
            system and forgets it. Not used if r = m.
        first_record : int
            Index of the first record in the whole data set. With equal seeds, parts then get the
            masks that they have in the whole.

        Returns
        -------
        Sketch

        Raises
        ------
        ValueError
            If an argument is not as described.
        """
        if isinstance(X, str) or not (hasattr(X, "shape") or isinstance(X, Sequence)):
            raise ValueError(
                f"X must be an array or a list of rows, got {type(X).__name__!r}: Sketch.of_table "
                "reads files, tables and streams, and sketches of parts are added up by +"
            )
        sums = FeatureSums(
            frequencies,
            n_measurements=n_measurements,
            mask_seed=secrets.randbits(_MASK_SEED_BITS) if mask_seed is None else mask_seed,
            first_record=first_record,
        )
        X = np.asarray(numbers_of_table(X))
        if X.dtype.kind == "f":
            X = X.astype(np.float32 if X.dtype.itemsize <= 4 else np.float64, copy=False)
        return cls.from_feature_sums(sums.add(X, groups))

    @classmethod
    def of_table(
        cls,
        source: Any,
        frequencies: ArrayLike,
        *,
        columns: Sequence[str] | None = None,
        encoder: Any = None,
        groups: str | None = None,
        n_threads: int = 1,
    ) -> Self:
        """Return the exact sketch of a table, without noise; data are read in place.

        The same rows give the same bytes from memory, files and any engine, however they are
        partitioned. No row can cause an error: one with an entry that is missing or cannot be read
        contributes nothing and is counted (`left_out`). An entry that is too large for the
        frequencies is clipped.

        Parameters
        ----------
        source : table
            A path of Parquet or CSV files (a file, a pattern such as ``"day-*.parquet"``, a
            list of files, or a folder of Parquet files with its subfolders, except names that begin
            with ``.`` or ``_``), a ``pyarrow.dataset.Dataset``, any Arrow stream (a DuckDB
            relation, a Polars or pandas frame, an Arrow table), a Polars lazy frame. If the rows
            were filtered by private columns, only ``neighbours="add_remove"`` protects their
            number.
        frequencies : array_like of shape (n_features, m)
        columns : sequence of str or None
            Numeric columns, in the order of the features; no others are read. None: all.
        encoder : privclust.preprocessing.TableEncoder or None
            Encodes columns of any type as features; replaces `columns`.
        groups : str or None
            Name of a column of text or whole numbers that identifies the person of each row, whose
            rows may be anywhere in the table. A person is then one record, as in `of`.
        n_threads : int
            Threads that process Parquet files and streams; they do not change the result.

        Returns
        -------
        Sketch

        Raises
        ------
        ValueError
            If an argument is not as described, a column is missing or not numeric, or a file cannot
            be read. Messages contain no entries of the table.
        FileNotFoundError
            If there is no such file.

        Notes
        -----
        Computations are in float32 if all columns are float32 or float16, else in float64. The
        declared types decide, not the entries; for files, the types in the file.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"name": ["a", "b"], "x": [1.0, None], "y": [2, 3]})
        >>> frequencies = np.array([[0.0, 1.0], [0.5, 0.0]])
        >>> sketch = Sketch.of_table(table, frequencies, columns=["x", "y"])
        >>> same = Sketch.of(np.array([[1.0, 2.0]]), frequencies)
        >>> sketch.n_samples, sketch.left_out, bool((sketch.sums == same.sums).all())
        (1, 1, True)
        """
        n_features = FeatureSums(frequencies).frequencies.shape[0]
        if columns is not None and encoder is None and len(columns) != n_features:
            raise ValueError(f"there are {len(columns)} columns, the frequencies have {n_features}")
        how = {"columns": columns, "encoder": encoder, "groups": groups, "n_threads": n_threads}
        sums, left_out = sums_of_table(source, frequencies, **how)
        table = None if encoder is None else SketchedTable(dict(encoder.columns), encoder.missing)
        return replace(cls.from_feature_sums(sums), left_out=left_out, table=table)

    @classmethod
    def from_feature_sums(cls, sums: FeatureSums) -> Self:
        """Return the sketch of the records in `sums`."""
        parts = sums.frequencies, sums.values, sums.n_samples, sums.n_measurements
        return cls(*parts, exact=sums.state(), unit=sums.unit or ROW)

    @property
    def n_features(self) -> int:
        """Number of features of the records, d."""
        return self.frequencies.shape[0]

    @property
    def n_frequencies(self) -> int:
        """Number of frequencies, m."""
        return self.frequencies.shape[1]

    @property
    def alpha_r(self) -> float:
        r"""Share of the features to which a record contributes, :math:`\alpha_r = r / m`."""
        return self.n_measurements / self.n_frequencies

    @property
    def n_left_out(self) -> float:
        """Number of records that contribute nothing, exact or noisy; 0 if not counted."""
        if isinstance(self.left_out, NoisyCount):
            return self.left_out.value
        return float(self.left_out or 0)

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on each real and imaginary part of `sums`; 0 without noise."""
        return 0.0 if self.noise is None else self.noise.variance

    @cached_property
    def key(self) -> str:
        """SHA-256 of shape and bytes of the frequencies: equal if sketches can be merged."""
        sha = hashlib.sha256(repr(self.frequencies.shape).encode())
        sha.update(self.frequencies.astype("<f8").tobytes())
        return sha.hexdigest()

    @property
    def values(self) -> np.ndarray:
        r"""The sketch :math:`\mathrm{sums} / (\alpha_r n \sqrt m)`, eqs. (2) and (4), shape (m,).

        Raises
        ------
        ValueError
            If the exact or noisy number of records is below 1.
        """
        if self.n_samples < 1:
            raise ValueError(
                "a sketch has values only if there are records; their number"
                f"{', with noise,' if self.noise else ''} is {self.n_samples:g}"
            )
        return self.sums / (self.alpha_r * self.n_samples * math.sqrt(self.n_frequencies))

    def __add__(self, other: object) -> Self:
        """Return the sketch of the records of both; the two must be disjoint."""
        if not isinstance(other, type(self)):
            return NotImplemented
        for name, ours, theirs, advice in self._compared(other):
            if ours != theirs:
                raise ValueError(f"sketches cannot be merged: {name} differ: {advice}")
        if (self.noise is None) != (other.noise is None):
            raise ValueError(
                "sketches cannot be merged: one is private and the other is not, so that the "
                "result would protect some records only"
            )
        known = [one.left_out for one in (self, other) if one.left_out is not None]
        # from known[0] on, as a NoisyCount cannot be added to 0
        others: dict[str, Any] = {"left_out": sum(known[1:], known[0]) if known else None}
        if self.table is not None and other.table is not None:
            others["table"] = self.table + other.table
        if self.noise is None:
            state = {name: array + other.exact[name] for name, array in self.exact.items()}
            sums = FeatureSums.from_state(
                state, self.frequencies, unit=self.unit, n_measurements=self.n_measurements
            )
            return replace(self.from_feature_sums(sums), **others)
        budgets = [(each.guarantee.epsilon, each.guarantee.delta) for each in (self, other)]
        if budgets[0] != budgets[1]:
            raise ValueError(
                "sketches cannot be merged: their (epsilon, delta) are ({:g}, {:g}) and "
                "({:g}, {:g}): release all with the same".format(*budgets[0], *budgets[1])
            )
        try:
            guarantee = self.guarantee.alongside(other.guarantee)
        except ValueError as error:
            raise ValueError(f"sketches cannot be merged: {error}") from None
        if self.noise.scale != other.noise.scale:
            raise ValueError("sketches cannot be merged: their noise differs")
        return replace(
            self,
            sums=self.sums + other.sums,
            n_samples=self.n_samples + other.n_samples,
            noise=replace(self.noise, n_parts=self.noise.n_parts + other.noise.n_parts),
            guarantee=guarantee,
            **others,
        )

    def _compared(self, other: Self) -> tuple[tuple[str, object, object, str], ...]:
        """Return what a merge needs to be equal: name, own value, other value and advice."""
        tables = [one.table and one.table.declared for one in (self, other)]
        measured = self.n_measurements, other.n_measurements
        return (
            ("frequencies", self.key, other.key, "draw them once, for all sketches"),
            ("measurements per record", *measured, "use one number"),
            ("kinds of records", self.unit, other.unit, "use groups for all sketches or for none"),
            ("declared columns", tables[0], tables[1], "use one declaration, bounds and all"),
        )

    def _check_without_noise(self) -> None:
        if self.noise is not None:
            raise ValueError("the sketch has noise already: release it once, from the exact sums")
        if self.n_samples >= _MOST_NOISY:
            raise ValueError(
                "exact sums of 2^31 records or more have no room for noise: release the sketches "
                "of parts and merge them"
            )

    def _release(self, measurement: SketchMeasurement, random_state: RandomState) -> Self:
        """Charge the ledger for a measurement and return the noisy sketch."""
        source = noise_source(random_state)
        guarantee = measurement.promise(seeded=is_seeded(source), unit=self.unit)
        exact = cast(int, self.n_samples), cast(int | None, self.left_out)
        count = LeftOutCount.of(guarantee, *exact, self.unit)
        guarantee = count.stated(guarantee)
        charge(guarantee)
        noisy = self.with_noise(measurement, source, guarantee)
        left_out = count.release(source)
        if left_out is None:
            return noisy
        if measurement.relation is Neighbours.REPLACE_ONE:
            n_counted = float(count.n_counted(left_out, measurement.relation))
            noisy = replace(noisy, n_samples=n_counted)
        return replace(noisy, left_out=None if count.left_out is None else left_out)

    def with_noise(
        self,
        measurement: SketchMeasurement,
        source: NoiseSource,
        guarantee: Guarantee | None = None,
    ) -> Self:
        """Return the noisy sketch, for callers that have already charged the ledger.

        Parameters
        ----------
        measurement : SketchMeasurement
        source : NoiseSource
        guarantee : privclust.privacy.Guarantee or None
            The guarantee that was charged, such as that of a whole fit; None for that of the
            measurement.

        Raises
        ------
        ValueError
            If the sketch is noisy already.
        """
        self._check_without_noise()
        if guarantee is None:
            guarantee = measurement.promise(seeded=is_seeded(source), unit=self.unit)
        noise, n_parts = measurement.noise, 2 * self.n_frequencies
        numbers = noise.release(self._numbers(measurement.relation), source)
        return replace(
            self,
            # alternating parts have the layout of complex numbers
            sums=np.ascontiguousarray(numbers[:n_parts]).view(np.complex128),
            n_samples=float(numbers[n_parts]) if len(numbers) > n_parts else self.n_samples,
            noise=SketchNoise(noise.mechanism, noise.scale),
            guarantee=guarantee,
            exact=None,
        )

    def _numbers(self, relation: Neighbours) -> FixedPoint:
        """Return alternating real and imaginary parts and, if not public, the record count."""
        counts = [self.n_samples] if relation is Neighbours.ADD_REMOVE else []
        whole, fraction = (self.exact[name].ravel() for name in ("whole", "fraction"))
        shift = FRACTION_BITS_OF_SUMS - SUM_BITS
        # rounds to the nearest multiple of 2^-SUM_BITS
        sums = (whole << SUM_BITS) + ((fraction + (1 << (shift - 1))) >> shift)
        return FixedPoint(np.append(sums, np.array(counts, dtype=np.int64) << SUM_BITS), SUM_BITS)

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the sketch to an HDF5 file atomically and return the file's digest.

        Equal sketches give equal bytes. The file of a noisy sketch holds no exact sums.

        Raises
        ------
        ValueError
            If its arrays are larger than 1 GiB, which `load` would refuse.
        OSError
            If it cannot be written.
        """
        from privclust.sketches._sketch_file import save

        return save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sketch:
        """Read a sketch that `save` wrote.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        privclust.core.hdf5.FileError
            If the file is damaged, is not such a sketch, or states a guarantee that is stronger
            than that of its noise.
        """
        from privclust.sketches._sketch_file import load

        return load(cls, path)
