"""How far noise and sampling may have moved centers that last rounds of noisy means have moved.

A last round moves each center by the mean of the clipped differences between its rows and the
center, by the noise of the round, and by how rows scatter in a cluster. What decoding adds is in
`privclust.decoding._standard_errors`. All of it is post-processing.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from privclust.core.hints import RandomState
from privclust.core.lloyd import nearest_center
from privclust.core.threads import one_blas_thread
from privclust.core.validation import as_generator
from privclust.decoding._mixture_decoder import Decoded
from privclust.decoding._standard_errors import StandardErrors, draw_errors, summary_of_draws
from privclust.kmeans.last_rounds import Round
from privclust.sketches._sketch import Sketch


@one_blas_thread
def errors_after_round(
    sketch: Sketch,
    decoded: Decoded,
    last: Round,
    *,
    rows: bool = True,
    random_state: RandomState = None,
) -> StandardErrors:
    """Return the same after a last round from the decoded centers."""
    rng = as_generator(random_state)
    draws = draw_errors(sketch, decoded, rows, rng)
    moves = np.empty_like(draws.centers)
    for move, centers in zip(moves, draws.centers, strict=True):
        of_round = _shortened_means(draws.points, centers, last.radius)
        move[:] = centers - draws.start + last.kept[:, None] * of_round
    moves += last.kept[:, None] * rng.standard_normal(moves.shape) * last.errors[:, None]
    moves += last.kept[:, None] * _scatter(draws.rows, draws.start, last.radius)
    return summary_of_draws(moves, draws)


@one_blas_thread
def errors_after_projection(
    sketch: Sketch,
    decoded: Decoded,
    last: Round,
    *,
    rows: bool = True,
    random_state: RandomState = None,
) -> StandardErrors:
    """Return the same for centers that last rounds alone have found, in all features."""
    draws = draw_errors(sketch, decoded, rows, as_generator(random_state))
    n_rows = np.maximum(sketch.n_samples * decoded.weights, 1.0)
    variances = last.errors**2 + rows * decoded.spread / n_rows
    d = last.centers.shape[1]
    return StandardErrors(
        np.repeat(np.sqrt(variances)[:, None], d, axis=1),
        variances[:, None, None] * np.eye(d),
        draws.weights.std(axis=0),
        math.nan,
        draws.is_reliable,
    )


def _shortened_means(points, centers, radius):
    """Return the mean way of points from the nearest center, each no longer than a radius."""
    members, ways = _shortened_ways(points, centers, radius)
    return (members @ ways) / np.maximum(members.sum(axis=1), 1.0)[:, None]


def _scatter(rows, centers, radius):
    """Return how sums over rows move these means, (draws, n_clusters, n_features)."""
    sample, factors = rows
    members, ways = _shortened_ways(sample, centers, radius)
    parts = np.maximum(members.sum(axis=1), 1.0) / max(len(sample), 1)
    moves = [(members @ (ways * factor[:, None])) / parts[:, None] for factor in factors.T]
    return np.array(moves)


def _shortened_ways(points, centers, radius):
    """Return which points belong to which center, and their ways from there."""
    labels, n = nearest_center(points, centers), len(points)
    ways = points - centers[labels]
    ways *= np.minimum(1.0, radius / np.maximum(np.linalg.norm(ways, axis=1), radius))[:, None]
    members = csr_array((np.ones(n), (labels, np.arange(n))), shape=(len(centers), n))
    return members, ways
