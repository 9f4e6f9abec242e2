"""Exact statistics of a private mixture, in units of the ball that bounds the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privclust.core.fixed_point import FACTOR_BITS, SUM_BITS, FixedPoint, unit_margin
from privclust.core.lloyd import nearest_center_sums
from privclust.mixtures._kernels import BITS, EXACT_ROWS, LARGEST_ROWS, exact_moments
from privclust.mixtures._parameters import MixtureParameters
from privclust.privacy.groups import weighted_sums


@dataclass(frozen=True)
class ExactStatistics:
    """Fixed-point sums over rows, before noise is added.

    The contribution of a row is bitwise independent of all other rows. Shapes are as in
    `privclust.mixtures.Statistics`.
    """

    counts: FixedPoint
    sums: FixedPoint
    second_moments: FixedPoint | None
    unit: float  # unit of coordinates, relative to the ball's radius


def exact_statistics(X: np.ndarray, radius: float, mixture: MixtureParameters) -> ExactStatistics:
    """Return expected counts, sums and second moments about the origin.

    Parameters
    ----------
    X : ndarray of shape (n, d), float64
        Rows of norm up to `radius`, fewer than 2^29.
    radius : float
    mixture : MixtureParameters
        Mixture in units of the radius.

    Examples
    --------
    >>> p = MixtureParameters(np.ones(1), np.zeros((1, 2)), np.ones(1), "spherical")
    >>> s = exact_statistics(np.array([[3.0, 4.0], [1.0, 0.0]]), 5.0, p)
    >>> float(np.asarray(s.counts)[0]), (np.asarray(s.sums)[0] * s.unit * 5.0).round(3).tolist()
    (2.0, [4.0, 4.0])
    """
    unit = unit_margin(X.shape[1], FACTOR_BITS)
    # the mixture is rescaled to the same, slightly different unit
    return summed_up(X, 1.0 / (radius * unit), mixture.stretched(1.0 / unit), unit)


def nearest_mean_statistics(X: np.ndarray, radius: float, means: np.ndarray) -> ExactStatistics:
    """Return the counts and sums of the rows nearest to each mean."""
    d = X.shape[1]
    unit = unit_margin(d, SUM_BITS)
    scale = np.full(d, 1.0 / (radius * unit))
    sums = nearest_center_sums(X, means * radius, np.zeros(d), scale)
    return ExactStatistics(*sums, None, unit)


def weighted_statistics(
    parts: Sequence[tuple[int, np.ndarray]], exact: Callable[[np.ndarray], ExactStatistics]
) -> ExactStatistics:
    """Return statistics in which every group has the weight of one row.

    Parameters
    ----------
    parts : sequence of tuples
        Rows by group size, from `privclust.privacy.groups.by_size`.
    exact : callable
        Returns the statistics of rows of equal weight.
    """
    found = [(size, exact(rows)) for size, rows in parts]
    has_moments = found[0][1].second_moments is not None
    names = ("counts", "sums", "second_moments")[: 2 + has_moments]
    sums = weighted_sums((size, [getattr(own, name) for name in names]) for size, own in found)
    moments = sums[2] if has_moments else None
    return ExactStatistics(sums[0], sums[1], moments, found[0][1].unit)


def summed_up(
    X: np.ndarray, scale: float, mixture: MixtureParameters, unit: float, radius: float = 0.0
) -> ExactStatistics:
    """Return the statistics of rows times a scale, from passes of the kernel.

    They are about the origin, or in the frames of the components, clipped to a positive `radius`.
    """
    if len(X) > LARGEST_ROWS:
        raise ValueError(
            f"X has more than {LARGEST_ROWS:,} rows, for which exact sums have no room"
        )
    X, (k, d) = np.ascontiguousarray(X), mixture.means.shape
    totals = np.zeros((k, 1 + d), dtype=np.int64)
    moments = np.zeros(mixture.whitening.shape, dtype=np.int64)
    arguments = mixture.log_scales, mixture.means, mixture.whitening, radius, unit
    for start in range(0, len(X), EXACT_ROWS):
        parts = exact_moments(X[start : start + EXACT_ROWS], scale, *arguments)
        for whole, part in zip((totals, moments), parts, strict=True):
            # sums are multiples of 2^-34, so that nothing is cut off
            whole += np.ldexp(part, BITS).astype(np.int64)
    if mixture.covariance_type == "full":
        moments = np.tril(moments) + np.tril(moments, -1).transpose(0, 2, 1)
    counts, sums = FixedPoint(totals[:, 0], BITS), FixedPoint(totals[:, 1:], BITS)
    moments = moments.reshape(mixture.covariances.shape)
    return ExactStatistics(counts, sums, FixedPoint(moments, BITS), unit)
