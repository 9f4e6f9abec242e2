"""A sketch of directions: sums of harmonic moments, with noise once they are released."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import FixedPoint
from privclust.core.hints import RandomState
from privclust.privacy import Guarantee, Neighbours, NoisyCount
from privclust.privacy.groups import GROUP, ROW, UNITS, unit_of, with_groups
from privclust.privacy.measurements import Gaussian, check_stated
from privclust.privacy.noise import NoiseSource
from privclust.records.arrow import takes_tables
from privclust.records.streams import Source, chunks
from privclust.sketches._base import BaseSketch
from privclust.sketches._harmonics import n_moments, roots_of_counts, squared_length, trace_free
from privclust.sketches._measurement import SketchMeasurement
from privclust.sketches._noise import SketchNoise
from privclust.sketches._tables import table_state
from privclust.sketches.moment_release import (
    check_size,
    coordinate_weights,
    default_degree,
    degrees,
    feature_weights,
    measurement,
    moment_measurement,
    sensitivity,
)
from privclust.sketches.moment_sums import MOMENT_BITS, GroupSums, HarmonicSums


@dataclass(frozen=True, eq=False)
class MomentSketch(BaseSketch):
    r"""Sums of harmonic moments of the directions of rows, with or without noise.

    Each row is scaled to norm 1, or stays 0, and mapped to features :math:`\phi(x)` with inner
    products :math:`K(x'y) = a_2 P_2 + a_4 P_4 (+ a_6 P_6)`, Gegenbauer polynomials of the cosine of
    the angle. ``privclust.sketches._harmonics`` derives the sensitivity of the sum of features.
    Degrees 2 and 4 suffice to decode unions of subspaces; degree 6 helps with few features. Sums
    are exact: they do not depend on the order of rows, on chunks or processes. ``a + b`` is, to the
    byte, the sketch of the union of disjoint records.

    A sketch without noise is **not private**; see `release`.

    Parameters
    ----------
    n_features : int
        d, from 2; at most 64 for degree 4 and 10 for degree 6.
    degree : {4, 6}
    moments : mapping of int to array_like
        By degree: the trace-free part of the sums, in norm-preserving coordinates.
    n_samples : int or float
        Number n of records; if the count is noisy, a float of any sign that counts nonzero rows.
    noise : SketchNoise or None
        Gaussian; the features of a row have norm 1.
    guarantee : privclust.privacy.Guarantee or None
        Guarantee of the noise; None without noise.
    exact : HarmonicSums or None
        The exact sums; None with noise.
    unit : {"row", "group"}
        Kind of the records: rows, or groups of rows, such as all rows of one person.
    left_out : int, privclust.privacy.NoisyCount or None
        Number of records that contribute nothing, since an entry is missing or cannot be read; None
        if there can be none.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> parts = MomentSketch.of(X[:200]) + MomentSketch.of(X[200:])
    >>> whole = MomentSketch.of(X)
    >>> parts.n_samples, all((parts.moments[l] == whole.moments[l]).all() for l in (2, 4, 6))
    (500, True)
    >>> private = whole.release(1.0, 1e-6, random_state=0)
    >>> private.guarantee.definition, round(private.guarantee.epsilon, 3)
    ('approximate', 1.0)
    """

    n_features: int
    degree: int
    moments: Mapping[int, np.ndarray] = field(repr=False)
    n_samples: int | float
    noise: SketchNoise | None = None
    guarantee: Guarantee | None = field(default=None, repr=False)
    exact: HarmonicSums | None = field(default=None, repr=False)
    unit: str = ROW
    left_out: int | NoisyCount | None = None
    KIND: ClassVar[str] = "moment sketch"
    _ARRAYS: ClassVar = tuple(f"{kind}/{n}" for kind in ("exact", "moments") for n in (0, 2, 4, 6))

    def __post_init__(self) -> None:
        check_size(self.n_features, self.degree)
        self._check_records()
        moments = {}
        for degree in degrees(self.degree):
            array = np.array(self.moments[degree], dtype=np.float64)
            size = n_moments(self.n_features, degree)
            if array.shape != (size,) or not np.isfinite(array).all():
                raise ValueError(
                    f"moments of degree {degree} must be {size} finite numbers, got {array.shape}"
                )
            array.setflags(write=False)
            moments[degree] = array
        object.__setattr__(self, "moments", moments)

    @classmethod
    def of(
        cls,
        source: Source,
        *,
        degree: int | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Return the sketch of a source of any size, without noise.

        Parameters
        ----------
        source
            As in `privclust.sketches.Sketch.of`; finite numbers.
        degree : {4, 6} or None
            None for 6 with up to 6 features, else 4. Only sketches of equal degree can be merged.
        groups : array-like of shape (n_samples,) or None
            As in `Sketch.of`. Sums for each size of groups are held in memory. Merged sketches of
            groups agree with the sketch of the union to 2^-36 for each size, not to the byte.

        Returns
        -------
        MomentSketch

        Raises
        ------
        ValueError
            If an argument is not as described, the source cannot be read, or holds more than
            2^26 records (or rows of groups of one size).
        FileNotFoundError
            If there is no such file.
        """
        stream = chunks(source)
        degree = default_degree(stream.n_features) if degree is None else degree
        check_size(stream.n_features, degree)
        sums = GroupSums(stream.n_features, degree)
        whole = ((chunk, None) for chunk in stream)
        for chunk, own in whole if groups is None else with_groups(stream, groups):
            sums.add(chunk, own)
        return cls.from_sums(sums.total(), ROW if groups is None else GROUP)

    @classmethod
    def of_table(
        cls,
        source: Any,
        *,
        degree: int | None = None,
        columns: Sequence[str] | None = None,
        encoder: Any = None,
        groups: str | None = None,
        row_filter: Any = None,
        strict: bool = False,
        n_threads: int = 1,
        progress: Callable[[int], object] | None = None,
    ) -> Self:
        """Return the exact sketch of a table, without noise; data are read in place.

        Parameters
        ----------
        source, groups, row_filter, n_threads, progress
            As in `privclust.sketches.Sketch.of_table`: files, data frames, Dask, Spark.
        degree : {4, 6} or None
            As in `of`.
        columns, encoder
            As in `Sketch.of_table`, but one of the two must name the columns.
        strict : bool
            False: no row can cause an error. A row with an entry that is missing or cannot be read
            contributes nothing and is counted (`left_out`); in a row with infinite entries only
            these count. True: such an entry is an error, which no guarantee covers.

        Returns
        -------
        MomentSketch

        Raises
        ------
        ValueError
            If an argument is not as described, the table cannot be read, or holds more than 2^26
            records (or rows of groups of one size). No message holds an entry.
        FileNotFoundError
            If there is no such file.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"who": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "y": [0, 1, 2]})
        >>> MomentSketch.of_table(table, columns=["x", "y"], groups="who").n_samples
        2
        """
        d = _n_features(columns, encoder)
        degree = default_degree(d) if degree is None else degree
        check_size(d, degree)
        state, left_out = table_state(
            source,
            partial(GroupSums, d, degree),
            columns=columns,
            encoder=encoder,
            groups=groups,
            row_filter=row_filter,
            strict=strict,
            n_threads=n_threads,
            progress=progress,
        )
        sketch = cls.from_sums(GroupSums.from_state(d, degree, state).total(), unit_of(groups))
        return replace(sketch, left_out=left_out)

    @classmethod
    def from_sums(cls, sums: HarmonicSums, unit: str = ROW) -> Self:
        """Return the sketch of the records in `sums`."""
        d, degree = sums.n_features, sums.degree
        moments = {
            each: np.asarray(sums.harmonics(each)) * roots_of_counts(d, each)
            for each in degrees(degree)
        }
        return cls(d, degree, moments, sums.n_samples, exact=sums, unit=unit)

    def release(
        self,
        epsilon: float,
        delta: float,
        *,
        neighbours: Literal["replace_one", "add_remove"] = "replace_one",
        share: float = 1.0,
        random_state: RandomState = None,
    ) -> Self:
        r"""Return the sketch with Gaussian noise, private.

        Noise is added to the exact sums in tensor coordinates and then projected on the trace-free
        space of the features. The Gaussian mechanism is calibrated exactly to (epsilon, delta).
        Compose the guarantees of several releases from the same records.

        Parameters
        ----------
        epsilon, neighbours, share, random_state
            As in `privclust.sketches.release`, with Gaussian noise. With ``"add_remove"`` the
            number of nonzero rows is noisy as well. Noise for release takes about 70 microseconds a
            moment.
        delta : float
            In (0, 1).

        Returns
        -------
        MomentSketch

        Raises
        ------
        ValueError
            If an argument is not as described, or the sketch has noise already.
        ImportError
            If `random_state` is None and OpenDP is not installed.

        References
        ----------
        B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML
        2018 (calibration).
        """
        self._check_without_noise()
        relation = Neighbours.of(neighbours)
        chosen = measurement(self.n_features, self.degree, relation, epsilon, delta, share)
        noisy = self._release(chosen, random_state)
        return self._noted(noisy) if share == 1.0 else noisy

    def _noisy(self, measurement: SketchMeasurement, source: NoiseSource) -> dict[str, Any]:
        """Return the noisy moments, and the noisy number of records if it is not public."""
        relation = measurement.relation
        values, weights, ends = [], [], []
        for degree, weight in feature_weights(self.degree, relation).items():
            integers = self.exact.moments(0) if degree == 0 else self.exact.harmonics(degree)
            values.append(integers.integers)
            weights.append(coordinate_weights(self.n_features, degree, weight))
            ends.append(sum(map(len, values)))
        exact = FixedPoint(np.concatenate(values), MOMENT_BITS)
        noise = cast(Gaussian, measurement.noise)
        noisy = noise.release(exact, source, np.concatenate(weights))
        parts = dict(
            zip(feature_weights(self.degree, relation), np.split(noisy, ends[:-1]), strict=True)
        )
        moments = {
            degree: trace_free(
                parts[degree] * roots_of_counts(self.n_features, degree), self.n_features, degree
            )
            for degree in degrees(self.degree)
        }
        return {
            "moments": moments,
            "n_samples": float(parts[0][0]) if 0 in parts else self.n_samples,
            "noise": SketchNoise("gaussian", noise.sigma),
        }

    def means(self) -> dict[int, np.ndarray]:
        """Return the moments divided by the number of rows, by degree.

        A noisy number below 1 is replaced by 1.

        Raises
        ------
        ValueError
            If there are no rows and no noise.
        """
        if self.noise is None and self.n_samples == 0:
            raise ValueError("a sketch of no rows has no means")
        n_samples = max(self.n_samples, 1.0)
        return {degree: values / n_samples for degree, values in self.moments.items()}

    def deviations(self) -> dict[int, float]:
        """Return the standard deviation of the noise on coordinates of `means`, by degree.

        Without noise it is that of rounding, which keeps decoders from dividing by 0.
        """
        if self.noise is None:
            return {degree: 1e-6 / math.sqrt(max(self.n_samples, 1)) for degree in self.moments}
        relation, n_parts = self.guarantee.relation, self.noise.n_parts
        weights = feature_weights(self.degree, relation)
        sigma = self.noise.scale * math.sqrt(n_parts) / max(self.n_samples, 1.0)
        return {
            degree: sigma / math.sqrt(weights[degree] / squared_length(self.n_features, degree))
            for degree in self.moments
        }

    def _compared(self, other: Self) -> tuple[tuple[str, object, object], ...]:
        ours, theirs = (self.n_features, self.degree), (other.n_features, other.degree)
        units = UNITS[self.unit], UNITS[other.unit]
        return ("features and degrees", ours, theirs), ("kinds of records", *units)

    def _plus_exact(self, other: Self) -> Self:
        return self.from_sums(self.exact.merge(other.exact), self.unit)

    def _added(self, other: Self) -> dict[str, Any]:
        pairs = {degree: (values, other.moments[degree]) for degree, values in self.moments.items()}
        return {"moments": {degree: ours + theirs for degree, (ours, theirs) in pairs.items()}}

    def averaged(self, other: MomentSketch, share: float) -> Self:
        """Return the average of two releases of the same records, weighted by budget shares.

        `share` is that of `other`; this sketch has the rest. The noise and the guarantee are those
        of one release with the whole budget.
        """
        weights = 1.0 - share, share
        sigma = math.hypot(weights[0] * self.noise.scale, share * other.noise.scale)
        moments = {
            degree: weights[0] * values + weights[1] * other.moments[degree]
            for degree, values in self.moments.items()
        }
        n_samples = self.n_samples
        if isinstance(n_samples, float):
            n_samples = weights[0] * n_samples + weights[1] * other.n_samples
        whole = self.guarantee
        bound = sensitivity(self.n_features, self.degree, whole.relation)
        released = moment_measurement(Gaussian(bound, sigma), whole.delta)
        guarantee = released.promise(seeded=whole.seeded, unit=whole.unit)
        guarantee = replace(guarantee, caveats=whole.caveats)
        return replace(
            self,
            moments=moments,
            n_samples=n_samples,
            noise=SketchNoise("gaussian", sigma),
            guarantee=guarantee,
        )

    @property
    def key(self) -> str:
        """SHA-256 of the values of all moments, which identifies this sketch."""
        sha = hashlib.sha256()
        for values in self.moments.values():
            sha.update(values.astype("<f8").tobytes())
        return sha.hexdigest()

    def _content(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        parameters: dict[str, Any] = {
            "n_features": self.n_features,
            "degree": self.degree,
            "n_samples": self.n_samples,
            "noise": self.noise and {"sigma": self.noise.scale, "n_parts": self.noise.n_parts},
            "guarantee": self.guarantee and self.guarantee.as_dict(),
        }
        if self.exact is not None:
            arrays = {f"exact/{each}": self.exact.integers[each] for each in (0, *self.moments)}
        else:
            arrays = {f"moments/{degree}": values for degree, values in self.moments.items()}
        return parameters, arrays

    @classmethod
    def _restored(cls, parameters: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        d, degree, n_samples = (parameters[name] for name in ("n_features", "degree", "n_samples"))
        unit = parameters.get("unit", ROW)
        check_size(d, degree)
        if parameters["noise"] is None:
            state = {each: arrays[f"exact/{each}"] for each in (0, *degrees(degree))}
            return cls.from_sums(HarmonicSums.from_state(d, degree, n_samples, state), unit)
        stored = parameters["noise"]
        noise = SketchNoise("gaussian", stored["sigma"], stored["n_parts"])
        guarantee = Guarantee.from_dict(parameters["guarantee"])
        released = Gaussian(sensitivity(d, degree, guarantee.relation), noise.scale)
        check_stated(guarantee, released.statement("moments"))
        moments = {each: arrays[f"moments/{each}"] for each in degrees(degree)}
        return cls(d, degree, moments, n_samples, noise, guarantee, unit=unit)


def _n_features(columns: Sequence[str] | None, encoder: Any) -> int:
    """Return the number of features of rows; the table may be empty."""
    if takes_tables(encoder):
        nothing = {name: np.empty(0, dtype=object) for name in encoder.columns}
        return int(np.shape(encoder.transform(nothing))[1])
    if columns is None:
        raise ValueError("name the columns to read, or give an encoder that does")
    if encoder is None:
        return len(columns)
    return int(np.shape(encoder.transform(np.zeros((1, len(columns)))))[1])
