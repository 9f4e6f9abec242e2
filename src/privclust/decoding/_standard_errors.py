r"""Standard errors of decoded clusters, by noise and by sampling.

`privclust.decoding._mixture_errors` draws errors of the mixture's numbers.

*Centers.* The score :math:`\partial \log p` of the mixture's density p maps errors of the numbers
to changes of the weights of rows. Rows are drawn from p and weighted accordingly, and Lloyd's
algorithm is run from the centers to convergence. Changes of the density that do not change the
features, such as between two atoms in one place, then do not move the centers either.

All of this is post-processing. Rows are assumed to follow the mixture: the errors include neither a
misfit nor clusters that the search has missed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from privclust.core.hints import RandomState
from privclust.core.lloyd import inertia, lloyd, nearest_center, plus_plus
from privclust.core.threads import one_blas_thread
from privclust.decoding._cluster_spreads import spread_errors
from privclust.decoding._gaussians import drawn_points, pair_counts, paired_points
from privclust.decoding._mixture_decoder import POINTS_PER_CLUSTER, Decoded
from privclust.decoding._mixture_errors import (
    errors_of_numbers,
    is_thin,
    law,
    resolved,
    scores,
    shares,
)
from privclust.decoding._seed import decoding_generator
from privclust.sketches._sketch import Sketch

_DRAWS = 200  # number of drawn errors
_LEAST_ROWS, _ROWS_PER_CLUSTER = 1000, 100  # drawn rows for the sampling error
_POINTS_PER_CLUSTER = 400  # drawn points of the density
_MOST_STEPS, _AT_REST = 100, 0.005  # of Lloyd's algorithm; last move relative to the largest
_STARTS, _FEWEST_STARTS = 100, 5  # runs that look for other centers: 100 / k, at least 5
# excess inertia of other centers that are as good; distance of different ones, in standard errors
_NEARLY, _APART = 0.02, 4.0
_MOST_ITERATIONS, _TOLERANCE = 100, 1e-5  # of such a run
# largest error of a known number, relative to it; largest fraction of points of unknown Gaussians
_KNOWN_WELL, _FEW_POINTS = 0.2, 0.05
_LEAST_PART = 0.05  # fraction of a cluster's weight below which a draw has lost it
# fraction of clusters with reliable errors below which those of no cluster are (frontier_intervals)
_LEAST_RELIABLE = 0.375


@dataclass(frozen=True)
class StandardErrors:
    """Standard errors of the centers, weights and spreads of clusters.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
    covariances : ndarray of shape (n_clusters, n_features, n_features)
        Covariance of the error of each center.
    weights : ndarray of shape (n_clusters,)
        Errors of the fractions of the data in the clusters.
    mean_inertia : float
        Error of the mean squared distance of a row to the nearest center.
    is_reliable : ndarray of shape (n_clusters,)
        Whether the mixture is known well enough for first-order errors: the numbers of its
        Gaussians to a fifth of their size. Otherwise errors may be larger than stated. No cluster
        is reliable if Gaussian clusters do not explain the sketch (`Decoded.is_explained`), or if
        different centers are nearly as good. A cluster is not reliable if another start, which
        explains the sketch equally well, does not find it. No cluster is reliable if fewer than
        three eighths of all clusters would be.
    spreads : ndarray of shape (n_clusters, n_features)
        Errors of `cluster_spreads`, the standard deviations of features within clusters. They
        include noise and sampling of the mixture's numbers only, and are too small: on nearly
        all tables that were tried fewer than 90 % of 95 % intervals hold.
    """

    centers: np.ndarray
    covariances: np.ndarray
    weights: np.ndarray
    mean_inertia: float
    is_reliable: np.ndarray
    spreads: np.ndarray


@one_blas_thread
def standard_errors(
    sketch: Sketch, decoded: Decoded, *, rows: bool = True, random_state: RandomState = None
) -> StandardErrors:
    """Return how far noise and sampling may have moved the clusters of a sketch.

    Parameters
    ----------
    sketch : Sketch
    decoded : Decoded
        The result of `decode` with Gaussian clusters.
    rows : bool
        Whether the rows are taken as drawn from a population. False: errors by noise and masks
        only.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Seed of the 200 draws, which give standard errors a relative error of 5 %. None derives it
        from the sketch and the centers.

    Returns
    -------
    StandardErrors

    Raises
    ------
    ValueError
        If clusters were decoded as points, for which there are no standard errors.

    Examples
    --------
    >>> from privclust.decoding import decode
    >>> from privclust.sketches import Sketch, draw_frequencies, release
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-3, 1, (5000, 2)), rng.normal(3, 1, (5000, 2))])
    >>> sketch = Sketch.of(X, draw_frequencies(2, 50, variance=4.0, random_state=0))
    >>> private = release(sketch, 1.0, 1e-6, random_state=0)
    >>> errors = standard_errors(private, decode(private, 2, random_state=0), random_state=0)
    >>> bool((errors.centers < 0.05).all())
    True
    """
    rng = decoding_generator(random_state, sketch, "errors", decoded.centers)
    draws = draw_errors(sketch, decoded, rows, rng)
    errors = summary_of_draws(draws.centers - draws.start, draws)
    if decoded.starts is None:
        return replace(errors, is_reliable=if_enough(errors.is_reliable))
    covariances = errors.covariances + decoded.starts.covariances
    return replace(
        errors,
        centers=np.sqrt(np.einsum("kii->ki", covariances)),
        covariances=covariances,
        is_reliable=if_enough(errors.is_reliable & decoded.starts.recurs),
    )


def if_enough(is_reliable: np.ndarray) -> np.ndarray:
    """Return which clusters have reliable errors; none if these are too few of all clusters.

    If most clusters are not Gaussian or not separate, the few that seem to be are so by chance.
    """
    return is_reliable & (is_reliable.mean() >= _LEAST_RELIABLE)


@dataclass(frozen=True)
class Draws:
    """K-means centers of mixtures with drawn errors, and of the mixture itself (`start`)."""

    points: np.ndarray
    start: np.ndarray
    centers: np.ndarray  # (draws, n_clusters, n_features)
    weights: np.ndarray
    inertias: np.ndarray
    is_reliable: np.ndarray
    spreads: np.ndarray


def draw_errors(sketch, decoded, rows, rng, *, of_means=False) -> Draws:
    """Draw errors of a mixture's numbers, and compute the centers with each.

    With `of_means` the draws are k-means centers of as many drawn rows as the sketch has, for
    centers that do not depend on the mixture.
    """
    if decoded.density is None:
        raise ValueError("standard errors are those of Gaussian clusters, not of points")
    density, k = resolved(decoded.density, sketch.frequencies), len(decoded.centers)
    n_rows = max(_LEAST_ROWS, _ROWS_PER_CLUSTER * k) if rows else 0
    sample = drawn_points(*law(density), n_rows, rng)
    # the weighted sum over drawn rows has the sampling variance of a mean of n rows
    scale = 1.0 / math.sqrt(max(n_rows, 1) * max(sketch.n_samples, 1.0))
    factors = scale * rng.standard_normal((n_rows, _DRAWS))
    expected, of_rows = decoded.expected_residual, (sample, factors)
    numbers = errors_of_numbers(sketch, density, expected, of_rows, rng, _DRAWS)
    size = _POINTS_PER_CLUSTER * k
    points = paired_points(*law(density), size, rng)
    of_numbers = scores(points, density) @ numbers
    if of_means:
        # Gamma weights of points, as in a Bayesian bootstrap of as many rows as the sketch has
        share = max(sketch.n_samples, 1.0) / len(points)
        # without `rows` there is no sampling error
        changes = rows * (rng.gamma(share, 1.0 / share, (len(points), _DRAWS)) - 1.0)
    else:
        changes = of_numbers + _of_points(density.weights, size, rng)
    start = _rested(points, np.ones(len(points)), decoded.centers)[0]
    runs = [_rested(points, 1.0 + change, start) for change in changes.T]
    centers, weights, inertias = (np.array(part) for part in zip(*runs, strict=True))
    is_reliable = _is_known(points, start, density, numbers)
    if not (decoded.is_explained and _is_unique(points, start, centers - start, rng)):
        is_reliable[:] = False
    spreads = spread_errors(points, start, of_numbers)
    return Draws(points, start, centers, weights, inertias, is_reliable, spreads)


def _is_known(points, centers, density, numbers):
    """Return which centers have few points of Gaussians with numbers that are not known well."""
    deviations = np.sqrt((numbers**2).mean(axis=1)).reshape(density.n_fitted, -1)
    doubtful = ((deviations > _KNOWN_WELL) & ~is_thin(density)).any(axis=1)
    of_doubtful = shares(points, density)[:, : density.n_fitted] @ doubtful
    labels, k = nearest_center(points, centers), len(centers)
    n_points = np.maximum(np.bincount(labels, minlength=k), 1)
    return np.bincount(labels, weights=of_doubtful, minlength=k) < _FEW_POINTS * n_points


def _is_unique(points, centers, moves, rng):
    """Return whether all other local minima of Lloyd's algorithm are clearly worse."""
    k = len(centers)
    error = inertia(points, centers)
    reach = _APART * np.sqrt((moves**2).sum(axis=2).mean(axis=0))
    reach = np.maximum(reach, _NEARLY * math.sqrt(error / len(points)))
    for _ in range(max(_FEWEST_STARTS, _STARTS // k) if k > 1 else 0):
        other, its, _ = lloyd(points, plus_plus(points, k, rng), _MOST_ITERATIONS, _TOLERANCE)
        if its <= error * (1.0 + _NEARLY):
            distances = cdist(centers, other)
            pairs = linear_sum_assignment(distances)
            if (distances[pairs] > reach).any():
                return False
    return True


def _of_points(weights, n_points, rng):
    """Draw changes of weights of paired points; each Gaussian keeps its total weight."""
    parts = [rng.standard_normal((n, _DRAWS)) for n in pair_counts(weights, n_points)]
    of_pairs = np.concatenate([part - part.mean(axis=0) for part in parts])
    # scaled to the variation of a mean of the POINTS_PER_CLUSTER points of the decoder
    return np.tile(of_pairs, (2, 1)) * math.sqrt(_POINTS_PER_CLUSTER / POINTS_PER_CLUSTER)


def _step(points, factors, centers):
    """Return centers, weights and mean inertia after a step of Lloyd on weighted points."""
    labels = nearest_center(points, centers)
    n = len(points)
    members = csr_array((factors, (labels, np.arange(n))), shape=(len(centers), n))
    parts = members.sum(axis=1)
    before = np.bincount(labels, minlength=len(centers))
    is_there = parts > _LEAST_PART * np.maximum(before, 1.0)
    moved = centers.copy()
    moved[is_there] = (members @ points)[is_there] / parts[is_there][:, None]
    squares = ((points - moved[labels]) ** 2).sum(axis=1)
    total = factors.sum()
    return moved, parts / total, float(factors @ squares) / total


def _rested(points, factors, centers):
    """Iterate until the last move is small compared with the largest distance moved."""
    start = centers
    for _ in range(_MOST_STEPS):
        moved, parts, inertia = _step(points, factors, centers)
        last = np.linalg.norm(moved - centers, axis=1).max()
        way = np.linalg.norm(moved - start, axis=1).max()
        centers = moved
        if last <= _AT_REST * way:
            break
    return centers, parts, inertia


def summary_of_draws(moves, draws):
    """Return standard errors of draws."""
    covariances = np.einsum("bki,bkj->kij", moves, moves) / len(moves)
    unit = float(np.abs(draws.inertias).max()) or 1.0  # squares may overflow
    return StandardErrors(
        np.sqrt(np.einsum("kii->ki", covariances)),
        covariances,
        draws.weights.std(axis=0),
        unit * float((draws.inertias / unit).std()),
        draws.is_reliable,
        draws.spreads,
    )
