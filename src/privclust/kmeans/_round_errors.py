"""How far noise and sampling may have moved centers that were found by rounds of noisy sums.

`Round.errors` is the standard deviation by noise. The sampling error is estimated by k-means on
rows drawn from the decoded mixture. After a projection the mixture has other features; the sampling
error is then that of the mean of independent rows with the measured spread. Everything is
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privclust.core.hints import RandomState
from privclust.core.lloyd import nearest_center
from privclust.core.threads import one_blas_thread
from privclust.decoding._cluster_spreads import error_of_root
from privclust.decoding._mixture_decoder import Decoded
from privclust.decoding._seed import decoding_generator
from privclust.decoding._standard_errors import StandardErrors, draw_errors, summary_of_draws
from privclust.kmeans.last_rounds import Round
from privclust.sketches._sketch import Sketch

_SETTLED = 3  # last rounds, in which no center is moved to another cluster


def spreads_of_rounds(rounds: Sequence[Round]) -> tuple[np.ndarray, np.ndarray]:
    """Return the variance of a feature in each cluster, and its noise, (n_clusters,).

    It is the mean of the last rounds, each weighted by its precision. Noise may make it negative.
    """
    squares = np.array([found.spreads for found in rounds[-_SETTLED:]])
    precisions = np.array([found.spread_noise**-2.0 for found in rounds[-_SETTLED:]])
    total = precisions.sum(axis=0)
    return (precisions * squares).sum(axis=0) / total, total**-0.5


@one_blas_thread
def errors_after_rounds(
    sketch: Sketch,
    decoded: Decoded,
    rounds: Sequence[Round],
    *,
    rows: bool = True,
    random_state: RandomState = None,
) -> StandardErrors:
    """Return the standard errors of the clusters of the last round.

    Parameters are those of `privclust.decoding.standard_errors`, and the rounds. Where the decoded
    mixture is not reliable, nor are errors.
    """
    last = rounds[-1]
    rng = decoding_generator(random_state, sketch, "errors", last.centers)
    draws = draw_errors(sketch, decoded, rows, rng, of_means=True)
    counts, d = np.maximum(last.counts, 1.0), last.centers.shape[1]
    spreads, n = np.maximum(last.spreads, 0.0), float(counts.sum())
    weights = counts / n
    covariances = (last.errors**2)[:, None, None] * np.eye(d)
    of_weights = (last.count_noise / n) ** 2
    of_inertia = [*(d * weights * last.spread_noise)]
    is_reliable = draws.is_reliable
    if decoded.starts is not None:
        is_reliable = is_reliable & decoded.starts.recurs
    of_spreads = draws.spreads
    if decoded.centers.shape[1] == d:
        of_rows = summary_of_draws(draws.centers - draws.start, draws)
        covariances = covariances + of_rows.covariances
        of_weights = of_weights + of_rows.weights**2
        of_inertia.append(of_rows.mean_inertia)
        # a center that a round moved to another cluster is not the one that was decoded
        is_same = nearest_center(last.centers, draws.start) == np.arange(len(counts))
        is_reliable = is_reliable & is_same
    else:
        of_spreads = np.repeat(error_of_root(*spreads_of_rounds(rounds))[:, None], d, axis=1)
    if rows and decoded.centers.shape[1] != d:
        covariances = covariances + (spreads / counts)[:, None, None] * np.eye(d)
        of_weights = of_weights + weights * (1.0 - weights) / n
        of_inertia += [*(np.sqrt(2.0 * d * weights / n) * spreads)]
    return StandardErrors(
        np.sqrt(np.einsum("kii->ki", covariances)),
        covariances,
        np.sqrt(of_weights),
        math.hypot(*of_inertia),  # squares of what has four powers of the bounds would overflow
        is_reliable,
        of_spreads,
    )
