"""A sketch: what is left of records when only sums of random Fourier features are kept."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import SUM_BITS, FixedPoint
from privclust.core.validation import check_integer
from privclust.privacy import Guarantee, Neighbours, NoisyCount
from privclust.privacy.groups import ROW, UNITS, unit_of, with_groups
from privclust.privacy.noise import NoiseSource
from privclust.records.arrow import is_of
from privclust.records.streams import Source, chunks
from privclust.sketches._base import UNREAD, BaseSketch
from privclust.sketches._feature_sums import FRACTION_BITS_OF_SUMS, FeatureSums
from privclust.sketches._measurement import SketchMeasurement
from privclust.sketches._noise import SketchNoise, check_statement
from privclust.sketches._tables import SketchedTable, table_state

_FREQUENCIES, _SUMS = "frequencies", "sums"  # in files
# in files: exact sums, from which a sketch without noise is restored
_EXACT = {name: f"exact/{name}" for name in ("whole", "fraction", "n_samples")}
_MOST_ROUNDED = 2**31  # records whose sums in float64 are as fine as the sensitivity supposes
_MASK_SEED_BITS = 64


@dataclass(frozen=True, eq=False)
class Sketch(BaseSketch):
    r"""Sums of random Fourier features over records, with or without noise; not to be changed.

    With frequencies :math:`\omega_1, \dots, \omega_m` and, for every record, a mask
    :math:`b_i` of r of the m features (all of them where r = m),

    .. math:: \mathrm{sums}_j = \sum_i b_{ij} \exp(i \omega_j^T x_i) + \mathrm{noise}_j, \qquad
        s = \frac{\mathrm{sums}}{\alpha_r n \sqrt{m}}, \quad \alpha_r = r / m.

    s is `values`: eq. (2) of the paper where r = m and there is no noise, else the scrambled
    sketch of eq. (4). ``a + b`` is the sketch of the records of both, which must have none in
    common: eq. (5) for parts of equal size, and weighted by size otherwise. Sums without noise are
    kept exactly, so that the sketch of parts is, to the byte, that of the whole.

    A sketch without noise is **not private**: with few records they can be read off it. See
    `privclust.sketches._release.release`.

    Parameters
    ----------
    frequencies : array_like of shape (n_features, m)
        :math:`\Omega`, finite; one frequency a column, in radians per unit of the data.
    sums : array_like of complex, shape (m,)
        Finite.
    n_samples : int or float
        n; a float, of any sign, where the number itself is noisy.
    n_measurements : int or None
        r, from 1 to m; None for m.
    noise : SketchNoise or None
        None where there is none.
    guarantee : privclust.privacy.Guarantee or None
        What the noise gives; None where there is no noise.
    unit : {"row", "group"}
        What its records are: rows, or groups of rows, such as all rows of one person.
    exact : mapping of str to ndarray or None
        The exact state of the sums, `FeatureSums.state`; None where they are not exact.
    left_out : int, privclust.privacy.NoisyCount or None
        How many records contribute nothing, since an entry is missing or cannot be read; None where
        there can be none.
    table : SketchedTable or None
        What was declared of the table's columns; None where they are numbers as they stand.

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
    KIND: ClassVar[str] = "sketch"
    _ARRAYS: ClassVar = (_FREQUENCIES, _SUMS, UNREAD, *_EXACT.values())
    _IF_UNLIKE: ClassVar = "; draw the frequencies once, and use one kind of records"

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

    @classmethod
    def of(
        cls,
        source: Source,
        frequencies: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        n_measurements: int | None = None,
        mask_seed: int | None = None,
        first_record: int = 0,
        chunk_size: int | None = None,
        dataset: str | None = None,
        n_threads: int = 1,
    ) -> Self:
        """Return the sketch of a source of any size, without noise.

        Parameters
        ----------
        source : array_like, path or iterable of chunks
            What `privclust.records.streams.chunks` reads.
        frequencies : array_like of shape (n_features, m)
        groups : array_like of shape (n_samples,) or None
            Whose each row of the source is, in its order: a record is then a group, such as a
            person, and its features are the mean of its rows'. These labels are in memory all at
            once; a group's rows may lie anywhere in the source, but in no other sketch that is
            merged with this one. None: each row is a record.
        n_measurements : int or None
            r: how many features each record takes part in; None for all.
        mask_seed : int or None
            Which of the features: None draws the seed from the operating system and forgets it, an
            int, which is then to be kept secret, repeats it. Not used where r = m.
        first_record : int
            Index of the first record among all: with one seed, parts of a data set get the masks
            that they have in the whole.
        chunk_size : int or None
            Records in memory at a time; the result does not depend on it.
        dataset : str or None
            Of an HDF5 file.
        n_threads : int
            The result does not depend on it.

        Returns
        -------
        Sketch

        Raises
        ------
        ValueError
            If an argument is not as described, or the source cannot be read.
        FileNotFoundError
            If there is no such file.
        """
        sums = FeatureSums(
            frequencies,
            n_measurements=n_measurements,
            mask_seed=secret_mask_seed() if mask_seed is None else mask_seed,
            first_record=first_record,
            n_threads=n_threads,
        )
        stream = chunks(source, chunk_size=chunk_size, dataset=dataset)
        n_features = sums.frequencies.shape[0]
        if stream.n_features != n_features:
            raise ValueError(
                f"{stream.name} has {stream.n_features} columns, the frequencies {n_features}"
            )
        whole = ((chunk, None) for chunk in stream)
        for chunk, own in whole if groups is None else with_groups(stream, groups):
            sums.add(chunk, own)
        return cls.from_feature_sums(sums)

    @classmethod
    def of_table(
        cls,
        source: Any,
        frequencies: ArrayLike,
        *,
        columns: Sequence[str] | None = None,
        encoder: Any = None,
        groups: str | None = None,
        row_filter: Any = None,
        strict: bool = False,
        n_measurements: int | None = None,
        mask_seed: int | None = None,
        first_record: int = 0,
        n_threads: int = 1,
        progress: Callable[[int], object] | None = None,
    ) -> Self:
        """Return the sketch of a table where it lies, without noise, its sums to the last bit.

        Sums are exact: the same rows give the same bytes from memory, from files, and from any
        engine, however they are cut into parts.

        Parameters
        ----------
        source : table
            A path of Parquet files (a file, a folder, a pattern such as ``"day-*.parquet"``, or a
            list of files), a ``pyarrow.dataset.Dataset``, whatever gives a stream of Arrow (a
            relation of DuckDB, a frame of Polars or pandas, a table of Arrow), a lazy frame of
            Polars, a data frame of Dask or of Spark. See `privclust.records.tables.total`.
        frequencies : array_like of shape (n_features, m)
        columns : sequence of str or None
            Columns of numbers, in the order of the features; no others are read. None: all.
        encoder : privclust.preprocessing.TableEncoder or None
            What makes features of columns of any kind, in place of `columns`. Or any other object
            whose ``transform`` makes features of an array of the columns, each row by itself.
        row_filter : pyarrow.compute.Expression or None
            Which rows of Parquet files count. The number of rows then depends on rows: if it does
            so on columns that are private, it is hidden by ``neighbours="add_remove"`` alone.
        strict : bool
            False: no row decides whether there is a result. A row with an entry that is missing or
            cannot be read contributes nothing and is counted (`left_out`); an entry that is too
            large for the frequencies counts as the largest that is not. True: such an entry, or a
            row that is no group's, is an error, which is outside of any guarantee.
        n_measurements, mask_seed, first_record : int or None
            As of `of`, by the order of files and of their rows; not of Dask and Spark, whose rows
            have none, nor with `groups`.
        n_threads : int
            That read and add up Parquet files and streams; the result does not depend on it.
        progress : callable or None
            Of files and streams: is told of numbers of rows as they are read.

        Returns
        -------
        Sketch

        Raises
        ------
        ValueError
            If an argument is not as described, if a column is not there or holds no numbers, or if
            a file cannot be read. No message holds an entry.
        FileNotFoundError
            If there is no such file.

        Notes
        -----
        Columns of float32 and float16 alone are computed in float32; with integers or float64 among
        them, in float64. Types decide, not entries, and of a file its own types.

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
        masks: dict[str, Any] = {
            "n_measurements": n_measurements,
            "mask_seed": secret_mask_seed() if mask_seed is None else mask_seed,
            "first_record": first_record,
        }
        empty, readers = FeatureSums(frequencies, **masks), n_threads
        n_features, m = empty.frequencies.shape
        if columns is not None and encoder is None and len(columns) != n_features:
            raise ValueError(f"there are {len(columns)} columns, the frequencies have {n_features}")
        if empty.n_measurements < m:
            _check_masks(source, groups)
            readers, masks["n_threads"] = 1, n_threads  # masks go by the index of a row
        state, left_out = table_state(
            source,
            partial(FeatureSums, empty.frequencies, **masks),
            columns=columns,
            encoder=encoder,
            groups=groups,
            row_filter=row_filter,
            strict=strict,
            n_threads=readers,
            progress=progress,
        )
        unit, r = unit_of(groups), empty.n_measurements
        sums = FeatureSums.from_state(state, empty.frequencies, n_measurements=r, unit=unit)
        sketch = cls.from_feature_sums(sums)
        return replace(sketch, left_out=left_out, table=SketchedTable.of_encoder(encoder))

    @classmethod
    def from_feature_sums(cls, sums: FeatureSums) -> Self:
        """Return the sketch of the records that were added to `sums` so far."""
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
        r"""Share of the features that a record takes part in, :math:`\alpha_r = r / m`."""
        return self.n_measurements / self.n_frequencies

    @property
    def noise_variance(self) -> float:
        """Variance of the noise on each real and imaginary part of `sums`; 0 without noise."""
        return 0.0 if self.noise is None else self.noise.variance

    @cached_property
    def key(self) -> str:
        """SHA-256 of shape and bytes of the frequencies: sketches with one key can be merged."""
        sha = hashlib.sha256(repr(self.frequencies.shape).encode())
        sha.update(self.frequencies.astype("<f8").tobytes())
        return sha.hexdigest()

    @property
    def values(self) -> np.ndarray:
        r"""The sketch :math:`\mathrm{sums} / (\alpha_r n \sqrt m)`, eqs. (2) and (4), shape (m,).

        Raises
        ------
        ValueError
            If there are no records, or their noisy number is below 1.
        """
        if self.n_samples < 1:
            raise ValueError(
                "a sketch has values only if there are records; their number"
                f"{', with noise,' if self.noise else ''} is {self.n_samples:g}"
            )
        return self.sums / (self.alpha_r * self.n_samples * math.sqrt(self.n_frequencies))

    def _compared(self, other: Self) -> tuple[tuple[str, object, object], ...]:
        return (
            ("shapes of the frequencies", self.frequencies.shape, other.frequencies.shape),
            ("frequencies (their keys)", self.key, other.key),
            ("measurements per record", self.n_measurements, other.n_measurements),
            ("kinds of records", UNITS[self.unit], UNITS[other.unit]),
            ("declared columns", _declared(self), _declared(other)),
        )

    def _plus_exact(self, other: Self) -> Self:
        """Return the sketch of the records of both, to the byte where both have exact sums."""
        if self.exact is None or other.exact is None:
            n_samples = self.n_samples + other.n_samples
            return replace(self, **self._added(other), n_samples=n_samples, exact=None)
        return self.from_feature_sums(self._feature_sums().merge(other._feature_sums()))

    def _added(self, other: Self) -> dict[str, Any]:
        return {"sums": self.sums + other.sums}

    def _check_without_noise(self) -> None:
        super()._check_without_noise()
        if self.n_samples >= _MOST_ROUNDED:
            raise ValueError(
                "sums of 2^31 records or more are too coarse in float64: release the sketches of "
                "parts and merge them"
            )

    def _noisy(self, measurement: SketchMeasurement, source: NoiseSource) -> dict[str, Any]:
        """Return the noisy sums, and the noisy number of records where it is private too."""
        noise, n_parts = measurement.noise, 2 * self.n_frequencies
        numbers = noise.release(self._numbers(measurement.relation), source)
        return {
            "sums": np.ascontiguousarray(numbers[:n_parts]).view(np.complex128),
            "n_samples": float(numbers[n_parts]) if len(numbers) > n_parts else self.n_samples,
            "noise": SketchNoise(noise.mechanism, noise.scale),
        }

    def _numbers(self, relation: Neighbours) -> FixedPoint | np.ndarray:
        """Real and imaginary parts in turn and, where it is private too, the number of records."""
        counts = [self.n_samples] if relation is Neighbours.ADD_REMOVE else []
        if self.exact is None:
            return np.append(self.sums.view(np.float64), counts)
        whole, fraction = (self.exact[name].ravel() for name in ("whole", "fraction"))
        shift = FRACTION_BITS_OF_SUMS - SUM_BITS
        sums = (whole << SUM_BITS) + ((fraction + (1 << (shift - 1))) >> shift)
        return FixedPoint(np.append(sums, np.array(counts, dtype=np.int64) << SUM_BITS), SUM_BITS)

    def _content(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        parameters = {
            "frequencies": self.key,
            "n_samples": self.n_samples,
            "n_measurements": self.n_measurements,
            "noise": self.noise and asdict(self.noise),
            "guarantee": self.guarantee and self.guarantee.as_dict(),
        }
        if self.exact is None:
            content = {_SUMS: self.sums}
        else:
            content = {_EXACT[name]: array for name, array in self.exact.items()}
        return parameters, {_FREQUENCIES: self.frequencies, **content}

    @classmethod
    def _restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        frequencies, n_measurements = arrays[_FREQUENCIES], parameters["n_measurements"]
        check_integer("n_measurements", n_measurements, minimum=1)
        noise, guarantee = parameters["noise"], parameters["guarantee"]
        unit = parameters.get("unit", ROW)
        if noise is None and guarantee is None and _SUMS not in arrays:
            state = {name: arrays[key] for name, key in _EXACT.items()}
            sums = FeatureSums.from_state(
                state, frequencies, n_measurements=n_measurements, unit=unit
            )
            sketch = cls.from_feature_sums(sums)
        else:
            sketch = cls(
                frequencies,
                arrays[_SUMS],
                parameters["n_samples"],
                n_measurements,
                None if noise is None else SketchNoise(**noise),
                None if guarantee is None else Guarantee.from_dict(guarantee),
                unit=unit,
            )
        if sketch.n_samples != parameters["n_samples"] or sketch.key != parameters["frequencies"]:
            raise ValueError("its header is of other records or frequencies")
        if sketch.noise is not None:
            check_statement(sketch.noise, sketch.n_measurements, sketch.guarantee)
        return sketch

    def _feature_sums(self) -> FeatureSums:
        """An accumulator of its own with these sums: merging changes it."""
        return FeatureSums.from_state(
            self.exact, self.frequencies, n_measurements=self.n_measurements, unit=self.unit
        )


def _declared(sketch: Sketch) -> object:
    """Return what was declared of a sketch's columns, to be compared."""
    return None if sketch.table is None else sketch.table.declared


def _check_masks(source: Any, groups: str | None) -> None:
    """Raise a ValueError where rows have no index, by which masks go."""
    if groups is not None:
        raise ValueError("groups cannot have masks, which are drawn for each row")
    if is_of(source, "dask") or is_of(source, "pyspark"):
        raise ValueError(
            "masks (n_measurements) go by the index of a row, which rows of Dask and Spark do not "
            "have: leave them out, or write the frame to Parquet files and sketch those"
        )


def secret_mask_seed() -> int:
    """Return a seed of masks from the operating system, which nobody is to know."""
    return secrets.randbits(_MASK_SEED_BITS)
