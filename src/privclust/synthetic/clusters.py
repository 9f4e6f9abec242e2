"""Mixtures of Gaussians of any size, drawn chunk by chunk: data for compressive k-means.

After V. Schellekens et al., "Differentially private compressive k-means", ICASSP 2019, Section 5,
and three kinds of mixtures that its experiments leave out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from privclust.core.validation import check_integer, check_option

_CHUNK = 1 << 16  # rows of a chunk: another number gives other rows
SHAPES = ("paper", "unequal", "elongated", "unbalanced")
_LEAST_VARIANCE, _LARGEST_VARIANCE = 0.25, 4.0  # variances of the shape "unequal"
_AXIS_RATIO = 5.0  # largest ratio of axes of the shape "elongated"


class MixtureRows:
    """Rows of a Gaussian mixture, drawn on request by chunks.

    Each chunk of 2^16 rows has its own generator, keyed by the seed and the chunk's number. Any
    range of rows therefore has the same bytes, in any order and division; nothing is stored.

    Parameters
    ----------
    n_samples : int
        Rows, >= 1.
    centers : array-like of shape (n_clusters, n_features)
        Means.
    seed : int
        Determines all draws, >= 0.
    factors : array-like of shape (n_clusters,) or (n_clusters, n_features, n_features) or None
        Standard deviations of spherical components, or matrices A of covariance A A'. None: unit
        covariances.
    weights : array-like of shape (n_clusters,) or None
        Positive shares of the components, which need not sum to 1. None: equal shares.

    Attributes
    ----------
    n_samples, n_features : int
    centers : ndarray of shape (n_clusters, n_features), float64

    Raises
    ------
    ValueError
        If an argument is not as described.

    Examples
    --------
    >>> rows = MixtureRows(10**9, [[0.0, 0.0], [9.0, 9.0]], seed=1)
    >>> [block.shape for block in rows.chunks(999_950_000, 999_950_003)]
    [(3, 2)]
    """

    def __init__(
        self,
        n_samples: int,
        centers: ArrayLike,
        seed: int,
        *,
        factors: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        check_integer("n_samples", n_samples, minimum=1)
        check_integer("seed", seed, minimum=0)
        self.centers = np.array(centers, dtype=np.float64)
        if self.centers.ndim != 2 or not self.centers.size or not np.isfinite(self.centers).all():
            raise ValueError(
                "centers must be finite of shape (n_clusters, n_features), got shape "
                f"{self.centers.shape}"
            )
        k, d = self.centers.shape
        self.n_samples, self.n_features = int(n_samples), d
        self._seed = int(seed)
        self._factors = _factors(factors, k, d)
        self._edges = _edges(weights, k)

    def chunks(
        self, start: int = 0, stop: int | None = None, dtype: DTypeLike = np.float64
    ) -> Iterator[np.ndarray]:
        """Yield the rows from `start` to `stop`, at most a chunk at a time.

        Parameters
        ----------
        start, stop : int
            Range of rows; None for all remaining.
        dtype : numpy dtype, default=float64
            float32 rows are the float64 rows, rounded.

        Yields
        ------
        ndarray of shape (at most 2^16, n_features)

        Raises
        ------
        ValueError
            If the range leaves 0 .. n_samples.
        """
        stop = self.n_samples if stop is None else stop
        check_integer("start", start, minimum=0)
        check_integer("stop", stop, minimum=start)
        if stop > self.n_samples:
            raise ValueError(f"stop must be at most n_samples={self.n_samples}, got {stop}")
        for number in range(start // _CHUNK, -(-stop // _CHUNK)):
            origin = number * _CHUNK
            first, last = max(start - origin, 0), min(stop - origin, _CHUNK)
            if first < last:
                sequence = np.random.SeedSequence(self._seed, spawn_key=(number,))
                rng = np.random.Generator(np.random.PCG64DXSM(sequence))
                # all labels of the chunk are drawn: normal numbers start at the same place
                labels = np.searchsorted(self._edges, rng.random(_CHUNK)[:last], side="right")
                yield self._rows(rng, labels)[first:].astype(dtype, copy=False)

    def to_array(self, dtype: DTypeLike = np.float64) -> np.ndarray:
        """Return all rows, shape (n_samples, n_features)."""
        rows = np.empty((self.n_samples, self.n_features), dtype=dtype)
        for number, block in enumerate(self.chunks()):
            start = number * _CHUNK
            rows[start : start + len(block)] = block
        return rows

    def _rows(self, rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
        drawn = rng.standard_normal((len(labels), self.n_features))
        if self._factors.ndim == 1:
            return self.centers[labels] + self._factors[labels, None] * drawn
        moves = np.zeros(drawn.shape)
        for j in range(self.n_features):  # a row has the same bits with any others
            moves += self._factors[labels, :, j] * drawn[:, j, None]
        return self.centers[labels] + moves


def draw_mixture(
    shape: str, n_samples: int, n_clusters: int, n_features: int, seed: int
) -> MixtureRows:
    r"""Draw a mixture of Gaussians and return its rows.

    Means are drawn from :math:`N(0, (1.5\, k^{1/d})^2 I_d)`, and one seed gives the same means for
    all shapes.

    ==============  ==============================================================================
    shape           components
    ==============  ==============================================================================
    ``paper``       unit covariances, equal weights: Section 5 of the paper
    ``unequal``     variances from 0.25 to 4 in equal ratios (1 for a single component)
    ``elongated``   random directions; standard deviations log-uniform within a factor of 5,
                    scaled to an average variance of 1
    ``unbalanced``  weights proportional to 1 .. k
    ==============  ==============================================================================

    Parameters
    ----------
    shape : {"paper", "unequal", "elongated", "unbalanced"}
    n_samples, n_clusters, n_features : int
        n, k, d; >= 1.
    seed : int
        Determines all draws, >= 0.

    Returns
    -------
    MixtureRows

    Raises
    ------
    ValueError
        If a number is out of range or there is no such shape.

    Examples
    --------
    >>> rows = draw_mixture("paper", 1000, 10, 10, seed=0)
    >>> rows.to_array().shape, rows.centers.shape
    ((1000, 10), (10, 10))
    """
    check_option("shape", shape, SHAPES)
    check_integer("n_clusters", n_clusters, minimum=1)
    check_integer("n_features", n_features, minimum=1)
    check_integer("seed", seed, minimum=0)
    k, d = n_clusters, n_features
    # chunks have spawn keys, so this stream is none of theirs
    rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed)))
    centers = 1.5 * k ** (1.0 / d) * rng.standard_normal((k, d))
    factors = weights = None
    if shape == "unequal":
        factors = np.sqrt(np.geomspace(_LEAST_VARIANCE, _LARGEST_VARIANCE, k) if k > 1 else [1.0])
    elif shape == "elongated":
        factors = np.stack([_elongated(d, rng) for _ in range(k)])
    elif shape == "unbalanced":
        weights = np.arange(1.0, k + 1.0)
    return MixtureRows(n_samples, centers, seed, factors=factors, weights=weights)


def _elongated(d: int, rng: np.random.Generator) -> np.ndarray:
    """Return A of a random covariance A A' with average variance 1."""
    spreads = _AXIS_RATIO ** rng.random(d)
    spreads /= np.sqrt(np.mean(spreads**2))
    directions, _ = np.linalg.qr(rng.standard_normal((d, d)))
    return directions * spreads


def _factors(factors: ArrayLike, k: int, d: int) -> np.ndarray:
    array = np.ones(k) if factors is None else np.array(factors, dtype=np.float64)
    is_positive = array.ndim != 1 or (array > 0).all()
    if array.shape not in ((k,), (k, d, d)) or not np.isfinite(array).all() or not is_positive:
        raise ValueError(
            f"factors must be finite, positive of shape ({k},) or of shape ({k}, {d}, {d}), "
            f"got shape {array.shape}"
        )
    return array


def _edges(weights: ArrayLike, k: int) -> np.ndarray:
    array = np.ones(k) if weights is None else np.array(weights, dtype=np.float64)
    if array.shape != (k,) or not np.isfinite(array).all() or not (array > 0).all():
        raise ValueError(f"weights must be {k} positive numbers, got {weights!r}")
    # without the last edge: rounding below 1 must not give a component k
    return np.cumsum(array / array.sum())[:-1]
