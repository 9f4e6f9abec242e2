"""Base class of sketches: merging, the release of noisy sums, and files.

A subclass defines a feature map: the sums, how two sketches are compared and merged, and the
content of a file. All code about privacy is in this class.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from privclust.core import hdf5
from privclust.core.hints import RandomState
from privclust.core.printable import excerpt
from privclust.core.validation import check_integer, check_option
from privclust.privacy import Guarantee, Neighbours, is_seeded, noise_source
from privclust.privacy.advice import noted
from privclust.privacy.budget import charge
from privclust.privacy.groups import ROW, UNITS
from privclust.privacy.left_out import LeftOutCount, NoisyCount
from privclust.privacy.noise import NoiseSource
from privclust.sketches._measurement import SketchMeasurement
from privclust.sketches._tables import SketchedTable

MOST_BYTES = 1 << 30
"""Limit on the arrays in a sketch's file."""
UNREAD = "unread"  # in files: numbers of missing and of unreadable entries
_MOST_RECORDS = 2**62
_FORMAT = 2


class BaseSketch(ABC):
    """Sums of features of records, exact until noise is added to them once.

    `exact` holds the exact sums, None for a noisy sketch. `noise` is a frozen dataclass with the
    `scale` of the noise on each merged part and their number, `n_parts`. A noisy `n_samples` is a
    float and may be negative. Subclasses add other attributes.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # kinds are frozen dataclasses
    n_features: int
    n_samples: int | float
    noise: Any
    guarantee: Guarantee | None
    exact: Any
    unit: str
    left_out: int | NoisyCount | None
    table: SketchedTable | None = None
    KIND: ClassVar[str]
    _ARRAYS: ClassVar[tuple[str, ...]]  # names of all arrays that a file may hold
    _IF_UNLIKE: ClassVar[str] = ""  # advice on sketches that cannot be merged

    @property
    def n_left_out(self) -> float:
        """Number of records that contribute nothing, exact or noisy; 0 if not counted."""
        if isinstance(self.left_out, NoisyCount):
            return self.left_out.value
        return float(self.left_out or 0)

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
        return replace(self, **self._noisy(measurement, source), guarantee=guarantee, exact=None)

    def _noted(self, noisy: Self) -> Self:
        """Return a noisy version of this sketch with advice in its guarantee if that is weak."""
        is_public = noisy.guarantee.relation is Neighbours.REPLACE_ONE and self.unit == ROW
        n_records = int(self.n_samples + self.n_left_out) if is_public else None
        return replace(noisy, guarantee=noted(noisy.guarantee, n_records))

    def _check_without_noise(self) -> None:
        if self.noise is not None:
            raise ValueError("the sketch has noise already: release it once, from the exact sums")

    def __add__(self, other: object) -> Self:
        """Return the sketch of the records of both; the two must be disjoint."""
        if not isinstance(other, type(self)):
            return NotImplemented
        for name, ours, theirs in self._compared(other):
            if ours != theirs:
                raise ValueError(
                    f"sketches cannot be merged: {name} differ, {ours} and {theirs}"
                    f"{self._IF_UNLIKE}"
                )
        if (self.noise is None) != (other.noise is None):
            raise ValueError(
                "sketches cannot be merged: one is private and the other is not, so that the "
                "result would protect some records only"
            )
        if self.noise is None:
            return replace(self._plus_exact(other), **self._beside(other))
        guarantee = check_alike(self.guarantee, other.guarantee)
        if self.noise.scale != other.noise.scale:
            raise ValueError("sketches cannot be merged: their noise differs")
        return replace(
            self,
            **self._added(other),
            n_samples=self.n_samples + other.n_samples,
            noise=replace(self.noise, n_parts=self.noise.n_parts + other.noise.n_parts),
            guarantee=guarantee,
            **self._beside(other),
        )

    def _beside(self, other: Self) -> dict[str, Any]:
        """Return the merged fields other than the sums: left-out counts and tables."""
        known = [one.left_out for one in (self, other) if one.left_out is not None]
        both: dict[str, Any] = {"left_out": sum(known[1:], known[0]) if known else None}
        if self.table is not None and other.table is not None:
            both["table"] = self.table + other.table
        return both

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
        parameters, arrays = self._content()
        parameters["format"] = _FORMAT
        if self.unit != ROW:
            parameters["unit"] = self.unit
        if self.left_out is not None:
            left_out = self.left_out
            parameters["left_out"] = left_out if isinstance(left_out, int) else asdict(left_out)
        if self.table is not None:
            parameters["table"] = self.table.parameters()
            if self.table.unread is not None:
                arrays[UNREAD] = self.table.unread
        n_bytes = sum(array.nbytes for array in arrays.values())
        if n_bytes > MOST_BYTES:
            raise ValueError(f"a sketch's file may hold {MOST_BYTES} bytes, this takes {n_bytes}")
        return hdf5.write(path, self.KIND, arrays, parameters)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a sketch that `save` wrote.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        privclust.core.hdf5.FileError
            If the file is damaged, is not such a sketch, or states a guarantee that is stronger
            than that of its noise.
        """
        if not os.path.exists(path):
            raise FileNotFoundError(f"{os.fspath(path)}: there is no such file")
        content = hdf5.read(path, cls.KIND, names=cls._ARRAYS, most_bytes=MOST_BYTES)
        parameters = content.parameters
        if parameters.get("format", 1) != _FORMAT:
            raise hdf5.FileError(
                f"{os.fspath(path)}: is of format {excerpt(parameters.get('format', 1))}; this "
                f"version of privclust reads format {_FORMAT}: make the sketch again"
            )
        try:
            sketch = cls._restored(parameters, content.arrays)
            beside = _restored_beside(parameters, content.arrays.get(UNREAD))
            sketch = replace(sketch, **beside) if beside else sketch
            sketch._check_restored()
        except hdf5.MALFORMED as error:
            reason = excerpt(f"no {error}" if isinstance(error, KeyError) else error)
            raise hdf5.FileError(f"{os.fspath(path)}: holds no whole sketch ({reason})") from None
        return sketch

    def _check_restored(self) -> None:
        """Raise a ValueError if numbers are out of range, or public where they should be noisy."""
        n_parts = 1 if self.noise is None else self.noise.n_parts
        if not max(abs(self.n_samples), n_parts) < _MOST_RECORDS:
            raise ValueError("its numbers of records and parts must be below 2^62")
        if self.table is not None and self.table.n_features != self.n_features:
            raise ValueError("its declared columns are not those of its features")
        hides_number = self.noise is not None and self.guarantee.relation is Neighbours.ADD_REMOVE
        if hides_number and not isinstance(self.n_samples, float):
            raise ValueError("its number of records has no noise, as its guarantee states")

    @property
    @abstractmethod
    def key(self) -> str:
        """SHA-256 that identifies the sketch, or all sketches that it can be merged with."""

    @abstractmethod
    def _compared(self, other: Self) -> tuple[tuple[str, object, object], ...]:
        """Return (name, own value, other value) of each property that must agree in a merge."""

    @abstractmethod
    def _plus_exact(self, other: Self) -> Self:
        """Return the merged sketch without noise."""

    @abstractmethod
    def _added(self, other: Self) -> Mapping[str, Any]:
        """Return the fields of the added noisy sums."""

    @abstractmethod
    def _noisy(self, measurement: SketchMeasurement, source: NoiseSource) -> Mapping[str, Any]:
        """Return the fields of the noisy sums, the number of records and the noise."""

    @abstractmethod
    def _content(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the parameters and arrays of a file."""

    @classmethod
    @abstractmethod
    def _restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Return the sketch of a file, after checking its content."""


def _restored_beside(parameters: Mapping[str, Any], unread: np.ndarray | None) -> dict[str, Any]:
    beside: dict[str, Any] = {}
    left_out = parameters.get("left_out")
    if left_out is not None:
        beside["left_out"] = NoisyCount(**left_out) if isinstance(left_out, dict) else left_out
    if "table" in parameters:
        beside["table"] = SketchedTable.restored(parameters["table"], unread)
    return beside


def check_alike(ours: Guarantee, theirs: Guarantee) -> Guarantee:
    """Return the guarantee of two merged sketches, or raise a ValueError if they do not match."""
    try:
        return ours.alongside(theirs)
    except ValueError as error:
        raise ValueError(f"sketches cannot be merged: {error}") from None
