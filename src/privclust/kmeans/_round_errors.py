"""How far noise and sampling may have moved centers that were found by rounds of noisy sums.

Noise moves a coordinate of a center as `Round.errors` says. How far other rows of the same law
would move it is told from the decoded mixture: by k-means on rows drawn from it. After a projection
that mixture has other features, and the mean of a cluster's rows scatters as their spread says.
All of it is post-processing.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.core.hints import RandomState
from privclust.core.lloyd import nearest_center
from privclust.core.threads import one_blas_thread
from privclust.core.validation import as_generator
from privclust.decoding._mixture_decoder import Decoded
from privclust.decoding._standard_errors import StandardErrors, draw_errors, summary_of_draws
from privclust.kmeans.last_rounds import Round
from privclust.sketches._sketch import Sketch


@one_blas_thread
def errors_after_rounds(
    sketch: Sketch,
    decoded: Decoded,
    last: Round,
    *,
    rows: bool = True,
    random_state: RandomState = None,
) -> StandardErrors:
    """Return the standard errors of the clusters of the last round.

    Parameters are those of `privclust.decoding.standard_errors`, and the round. Where the decoded
    mixture is not reliable, nor are errors.
    """
    draws = draw_errors(sketch, decoded, rows, as_generator(random_state), of_means=True)
    counts, d = np.maximum(last.counts, 1.0), last.centers.shape[1]
    spreads, n = np.maximum(last.spreads, 0.0), float(counts.sum())
    weights = counts / n
    covariances = (last.errors**2)[:, None, None] * np.eye(d)
    of_weights = (last.count_noise / n) ** 2
    of_inertia = float(((d * weights * last.spread_noise) ** 2).sum())
    is_reliable = draws.is_reliable
    if decoded.centers.shape[1] == d:
        of_rows = summary_of_draws(draws.centers - draws.start, draws)
        covariances = covariances + of_rows.covariances
        of_weights = of_weights + of_rows.weights**2
        of_inertia += of_rows.mean_inertia**2
        # a center that a round moved to another cluster is not the one that was decoded
        is_same = nearest_center(last.centers, draws.start) == np.arange(len(counts))
        is_reliable = is_reliable & is_same
    elif rows:
        covariances = covariances + (spreads / counts)[:, None, None] * np.eye(d)
        of_weights = of_weights + weights * (1.0 - weights) / n
        of_inertia += 2.0 * d * float(weights @ spreads**2) / n
    return StandardErrors(
        np.sqrt(np.einsum("kii->ki", covariances)),
        covariances,
        np.sqrt(of_weights),
        math.sqrt(of_inertia),
        is_reliable,
    )
