"""A density of rows in a ball, from two sketches with Gaussian noise: a pilot, and one of clusters.

This is `privclust.kmeans.CompressiveKMeans` without rounds, for callers that compose the noise with
other releases of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from privclust.decoding._ellipsoids import n_numbers
from privclust.decoding._gaussians import drawn_points
from privclust.decoding._sizes import (
    PILOT_SHARE,
    cluster_frequencies,
    number_of_frequencies,
    pilot_frequencies,
    pilot_size,
)
from privclust.decoding._sketch_decoding import decode_density, moments_of_pilot
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.bounds import Box
from privclust.privacy.groups import Groups
from privclust.privacy.measurements import Gaussian
from privclust.privacy.noise import NoiseSource, unprotected_generator
from privclust.sketches._feature_sums import FeatureSums
from privclust.sketches._noise import sensitivities
from privclust.sketches._release import fourier_measurement
from privclust.sketches._sketch import Sketch

MOST_NUMBERS = 1000
"""Largest number of unknowns for which covariances are fitted: they are many times slower."""
_CHUNK = 1 << 16  # rows at a time
_LARGEST_SIGMA = 1e150  # largest noise with a finite square
_OF_THE_CALLER = Guarantee(
    "none", Neighbours.REPLACE_ONE, caveats=("a part of a fit, which states what all promise",)
)


@dataclass(frozen=True)
class DensitySketches:
    """The noise of both sketches, for replace-one neighbours: the number of rows is public.

    Attributes
    ----------
    pilot, clusters : Gaussian
    """

    pilot: Gaussian
    clusters: Gaussian

    @classmethod
    def planned(cls, n_features: int, n_clusters: int, share: float) -> Self:
        """Return noise with a privacy loss of share^2 / 2 in zCDP.

        Raises
        ------
        ValueError
            If the share is so small that squares of the noise overflow.

        Examples
        --------
        >>> sketches = DensitySketches.planned(2, 3, 0.5)
        >>> round(sketches.pilot.loss.rho + sketches.clusters.loss.rho, 6)
        0.125
        """
        sizes = pilot_size(n_features), number_of_frequencies(n_clusters * n_features)
        noises = [
            Gaussian.of_share(sensitivities(size, "replace_one")[1], share * math.sqrt(part))
            for size, part in zip(sizes, (PILOT_SHARE, 1.0 - PILOT_SHARE), strict=True)
        ]
        largest = max(noise.sigma for noise in noises)
        if largest > _LARGEST_SIGMA:
            raise ValueError(
                f"the budget is too small: sketches would get noise of {largest:.3g}, which may be "
                f"{_LARGEST_SIGMA:g} at most"
            )
        return cls(*noises)

    def points(
        self,
        X: np.ndarray,
        radius: float,
        n_clusters: int,
        n_points: int,
        source: NoiseSource,
        groups: Groups | None = None,
        n_records: float | None = None,
    ) -> np.ndarray:
        """Sketch rows and draw points from the density that is decoded.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Rows in a ball about the origin.
        radius : float
            Radius of the ball.
        n_clusters : int
        n_points : int
        source : NoiseSource
        groups : Groups or None
            Groups of rows that are protected together.
        n_records : float or None
            The released number of records, if it is private. None: that of X.

        Returns
        -------
        ndarray of shape (n_points, n_features)
            In units of the radius.
        """
        d, rng = X.shape[1], unprotected_generator(source)
        box = Box(np.full(d, -1.0), np.full(d, 1.0))
        how = source, groups, n_records
        pilot = _released(X, radius, pilot_frequencies(box, rng), self.pilot, *how)
        moments = moments_of_pilot(pilot, box, rng)
        m = number_of_frequencies(n_clusters * d)
        frequencies = cluster_frequencies(n_clusters, m, moments, rng)
        density = decode_density(
            _released(X, radius, frequencies, self.clusters, *how),
            n_clusters,
            moments,
            box,
            rng,
            covariances=n_numbers(n_clusters, d) <= MOST_NUMBERS,
        )
        return drawn_points(density.weights, density.centers, density.spreads, n_points, rng)


def _released(X, radius, frequencies, noise, source, groups, n_records) -> Sketch:
    """Return the noisy sketch of X / radius, in single precision: noise is far larger."""
    sums = FeatureSums(frequencies)
    for start in range(0, max(len(X), 1), _CHUNK):  # also without rows, to set the unit
        stop = start + _CHUNK
        own = None if groups is None else groups.rows(start, stop)
        sums.add((X[start:stop] / radius).astype(np.float32), own)
    exact = Sketch.from_feature_sums(sums)
    m = exact.n_frequencies
    stated = replace(_OF_THE_CALLER, unit=exact.unit)
    noisy = exact.with_noise(fourier_measurement(noise, m, m), source, stated)
    return noisy if n_records is None else replace(noisy, n_samples=float(n_records))
