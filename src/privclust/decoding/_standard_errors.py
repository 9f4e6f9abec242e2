r"""How far noise, and which rows there happen to be, move what a sketch is decoded to.

How the mixture's numbers move says `privclust.decoding._mixture_errors`.

*Its centers.* With the mixture's density p its score :math:`\partial \log p` says how rows gain and
lose weight as its numbers move. Rows drawn from p are weighted so, and Lloyd's algorithm goes on
from the centers until they rest. Changes of the density that leave all features alone, as of two
atoms in one place, then leave the centers alone as well.

All of it is post-processing. It takes the rows for those of the mixture: what else they are is no
part of the errors, nor is a cluster that the search has missed.
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

_DRAWS = 200  # of errors
_LEAST_ROWS, _ROWS_PER_CLUSTER = 1000, 100  # of which sums over rows are made
_POINTS_PER_CLUSTER = 400
_MOST_STEPS, _AT_REST = 100, 0.005  # of Lloyd's algorithm; a move in parts of that from the start
_STARTS, _FEWEST_STARTS = 100, 5  # that look for other centers: over k
_NEARLY, _APART = 0.02, 4.0  # as good, in parts of the inertia; as far, in standard errors
_MOST_ITERATIONS, _TOLERANCE = 100, 1e-5  # of such a run
_KNOWN_WELL, _FEW_POINTS = 0.2, 0.05  # numbers, in their units; part of a center's points
_LEAST_PART = 0.05  # of a cluster's weight, below which a draw has lost it


@dataclass(frozen=True)
class StandardErrors:
    """Standard errors of the centers of a sketch, and of what else is told of clusters.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
    covariances : ndarray of shape (n_clusters, n_features, n_features)
        Of the error of each center.
    weights : ndarray of shape (n_clusters,)
        Of the clusters' parts of the data.
    mean_inertia : float
        Of the mean squared distance of a row to the nearest center; NaN after a projection.
    is_reliable : ndarray of shape (n_clusters,)
        Whether the mixture is known well enough for errors to be such small moves: where the
        numbers of Gaussians are not known to a fifth of their own size, they may be larger than
        stated. No cluster is reliable if Gaussian clusters do not explain the sketch
        (`Decoded.is_explained`), or if quite other centers are nearly as good; and none that
        another start, which explains the sketch equally well, does not find.
    spreads : ndarray of shape (n_clusters, n_features)
        Of `cluster_spreads`: the standard deviations of features within clusters.
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
        What `decode` found in it by Gaussian clusters.
    rows : bool
        Whether errors are those of the population that rows are drawn from; False: of the rows at
        hand, by noise, and by masks, alone.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        Of the draws, 200 in number: standard errors come with a relative error of 5 %. None derives
        it from the sketch and the centers.

    Returns
    -------
    StandardErrors

    Raises
    ------
    ValueError
        If clusters were decoded as points, which have no law of errors here.

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
        return errors
    covariances = errors.covariances + decoded.starts.covariances
    return replace(
        errors,
        centers=np.sqrt(np.einsum("kii->ki", covariances)),
        covariances=covariances,
        is_reliable=errors.is_reliable & decoded.starts.recurs,
    )


@dataclass(frozen=True)
class Draws:
    """Centers of the mixture as it may have been, and of the mixture as it is, on its points."""

    points: np.ndarray
    rows: tuple[np.ndarray, np.ndarray]  # that sums are made of, and their factors in each draw
    start: np.ndarray
    centers: np.ndarray  # (draws, n_clusters, n_features)
    weights: np.ndarray
    inertias: np.ndarray
    is_reliable: np.ndarray
    spreads: np.ndarray


def draw_errors(sketch, decoded, rows, rng, *, of_means=False) -> Draws:
    """Draw errors of a mixture's numbers, and go on to its centers.

    With `of_means` the draws are of the k-means centers of as many rows as the sketch has, where
    centers do not depend on the mixture.
    """
    if decoded.density is None:
        raise ValueError("standard errors are those of Gaussian clusters, not of points")
    density, k = resolved(decoded.density, sketch.frequencies), len(decoded.centers)
    n_rows = max(_LEAST_ROWS, _ROWS_PER_CLUSTER * k) if rows else 0
    sample = drawn_points(*law(density), n_rows, rng)
    scale = 1.0 / math.sqrt(max(n_rows, 1) * max(sketch.n_samples, 1.0))
    factors = scale * rng.standard_normal((n_rows, _DRAWS))
    of_rows = sample, factors
    numbers = errors_of_numbers(sketch, density, decoded.expected_residual, of_rows, rng, _DRAWS)
    size = _POINTS_PER_CLUSTER * k
    points = paired_points(*law(density), size, rng)
    of_numbers = scores(points, density) @ numbers
    if of_means:
        share = max(sketch.n_samples, 1.0) / len(points)
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
    return Draws(points, of_rows, start, centers, weights, inertias, is_reliable, spreads)


def _is_known(points, centers, density, numbers):
    """Return at which centers few points are of Gaussians that are not known well."""
    deviations = np.sqrt((numbers**2).mean(axis=1)).reshape(density.n_fitted, -1)
    doubtful = ((deviations > _KNOWN_WELL) & ~is_thin(density)).any(axis=1)
    of_doubtful = shares(points, density)[:, : density.n_fitted] @ doubtful
    labels, k = nearest_center(points, centers), len(centers)
    n_points = np.maximum(np.bincount(labels, minlength=k), 1)
    return np.bincount(labels, weights=of_doubtful, minlength=k) < _FEW_POINTS * n_points


def _is_unique(points, centers, moves, rng):
    """Return whether runs of Lloyd's algorithm that end elsewhere all end at worse centers."""
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
    """Draw changes of weights of paired points, as many for each Gaussian in all draws."""
    parts = [rng.standard_normal((n, _DRAWS)) for n in pair_counts(weights, n_points)]
    of_pairs = np.concatenate([part - part.mean(axis=0) for part in parts])
    return np.tile(of_pairs, (2, 1)) * math.sqrt(_POINTS_PER_CLUSTER / POINTS_PER_CLUSTER)


def _step(points, factors, centers):
    """Return one step of Lloyd's algorithm on weighted points: centers, parts and mean inertia."""
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
    """Take steps until no center moves more than a small part of the longest way so far."""
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
    unit = float(np.abs(draws.inertias).max()) or 1.0  # whose square may overflow
    return StandardErrors(
        np.sqrt(np.einsum("kii->ki", covariances)),
        covariances,
        draws.weights.std(axis=0),
        unit * float((draws.inertias / unit).std()),
        draws.is_reliable,
        draws.spreads,
    )
