"""Sums of harmonic moments of directions, with noise once they are released."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import FixedPoint
from privclust.privacy import Guarantee, is_seeded
from privclust.privacy.measurements import Gaussian
from privclust.privacy.noise import NoiseSource
from privclust.sketches._harmonics import n_moments, roots_of_counts, squared_length, trace_free
from privclust.sketches._measurement import SketchMeasurement
from privclust.sketches.moment_release import (
    check_size,
    coordinate_weights,
    default_degree,
    degrees,
    feature_weights,
    moment_measurement,
    sensitivity,
)
from privclust.sketches.moment_sums import MOMENT_BITS, HarmonicSums


@dataclass(frozen=True, eq=False)
class MomentSketch:
    r"""Sums of harmonic moments of the directions of rows, with or without noise.

    Each row is scaled to norm 1, or stays 0, and mapped to features :math:`\phi(x)` with inner
    products :math:`K(x'y) = a_2 P_2 + a_4 P_4 (+ a_6 P_6)`, Gegenbauer polynomials of the cosine of
    the angle. ``privclust.sketches._harmonics`` derives the sensitivity of the sum of features.
    Degrees 2 and 4 suffice to decode unions of subspaces; degree 6 helps with few features. Sums
    are exact: they do not depend on the order of rows.

    `privclust.subspaces.MomentSubspaceClustering` releases such sums. A sketch without noise is
    **not private**.

    Parameters
    ----------
    n_features : int
        d, from 2; at most 64 for degree 4 and 10 for degree 6.
    degree : {4, 6}
    moments : mapping of int to array_like
        By degree: the trace-free part of the sums, in norm-preserving coordinates.
    n_samples : int or float
        Number n of records; if the count is noisy, a float of any sign that counts nonzero rows.
    sigma : float
        Standard deviation of the noise on the features, which have norm 1 for a row; 0 without
        noise.
    guarantee : privclust.privacy.Guarantee or None
        Guarantee of the noise; None without noise.
    exact : HarmonicSums or None
        The exact sums; None with noise.

    Raises
    ------
    ValueError
        If an argument is not as described.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> sketch = MomentSketch.of(X)
    >>> sketch.n_samples, list(sketch.moments)
    (500, [2, 4, 6])
    """

    n_features: int
    degree: int
    moments: Mapping[int, np.ndarray] = field(repr=False)
    n_samples: int | float
    sigma: float = 0.0
    guarantee: Guarantee | None = field(default=None, repr=False)
    exact: HarmonicSums | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_size(self.n_features, self.degree)
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
    def of(cls, X: ArrayLike) -> Self:
        """Return the sketch of rows, without noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. The degree is 6 with up to 6 features, else 4.

        Returns
        -------
        MomentSketch

        Raises
        ------
        ValueError
            If an argument is not as described, or there are more than 2^26 rows.
        """
        rows = np.asarray(X)
        d = rows.shape[1]
        degree = default_degree(d)
        check_size(d, degree)
        return cls.from_sums(HarmonicSums(d, degree).add(rows))

    @classmethod
    def from_sums(cls, sums: HarmonicSums) -> Self:
        """Return the sketch of the records in `sums`."""
        d, degree = sums.n_features, sums.degree
        moments = {
            each: np.asarray(sums.harmonics(each)) * roots_of_counts(d, each)
            for each in degrees(degree)
        }
        return cls(d, degree, moments, sums.n_samples, exact=sums)

    def with_noise(
        self,
        measurement: SketchMeasurement,
        source: NoiseSource,
        guarantee: Guarantee | None = None,
    ) -> Self:
        """Return the noisy sketch, for callers that have already charged the ledger.

        Noise is added to the exact sums in tensor coordinates and then projected on the trace-free
        space of the features.

        Parameters
        ----------
        measurement : SketchMeasurement
            With Gaussian noise (`privclust.sketches.moment_release.measurement`). With add-remove
            neighbours the number of nonzero rows is noisy as well.
        source : NoiseSource
            Noise for release takes about 70 microseconds a moment.
        guarantee : privclust.privacy.Guarantee or None
            The guarantee that was charged, such as that of a whole fit; None for that of the
            measurement.

        Raises
        ------
        ValueError
            If the sketch is noisy already.
        """
        if self.exact is None:
            raise ValueError("the sketch has noise already: add it once, to the exact sums")
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
        return replace(
            self,
            moments=moments,
            n_samples=float(parts[0][0]) if 0 in parts else self.n_samples,
            sigma=noise.sigma,
            guarantee=guarantee or measurement.promise(seeded=is_seeded(source)),
            exact=None,
        )

    def means(self) -> dict[int, np.ndarray]:
        """Return the moments divided by the number of rows, by degree.

        A noisy number below 1 is replaced by 1.

        Raises
        ------
        ValueError
            If there are no rows and no noise.
        """
        if self.guarantee is None and self.n_samples == 0:
            raise ValueError("a sketch of no rows has no means")
        n_samples = max(self.n_samples, 1.0)
        return {degree: values / n_samples for degree, values in self.moments.items()}

    def deviations(self) -> dict[int, float]:
        """Return the standard deviation of the noise on coordinates of `means`, by degree.

        Without noise it is that of rounding, which keeps decoders from dividing by 0.
        """
        if self.guarantee is None:
            return {degree: 1e-6 / math.sqrt(max(self.n_samples, 1)) for degree in self.moments}
        weights = feature_weights(self.degree, self.guarantee.relation)
        sigma = self.sigma / max(self.n_samples, 1.0)
        return {
            degree: sigma / math.sqrt(weights[degree] / squared_length(self.n_features, degree))
            for degree in self.moments
        }

    def averaged(self, other: MomentSketch, share: float) -> Self:
        """Return the average of two releases of the same records, weighted by budget shares.

        `share` is that of `other`; this sketch has the rest. The noise and the guarantee are those
        of one release with the whole budget.
        """
        weights = 1.0 - share, share
        sigma = math.hypot(weights[0] * self.sigma, share * other.sigma)
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
        return replace(self, moments=moments, n_samples=n_samples, sigma=sigma, guarantee=guarantee)
