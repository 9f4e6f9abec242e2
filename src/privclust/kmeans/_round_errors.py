"""How far noise and sampling may have moved centers that were found by rounds of noisy sums.

Noise moves a coordinate of a center as `Round.errors` says, and the rows of a cluster scatter as
its spread says. All of it is post-processing.
"""

from __future__ import annotations

import math

import numpy as np

from privclust.core.hints import RandomState
from privclust.core.threads import one_blas_thread
from privclust.core.validation import as_generator
from privclust.decoding._mixture_decoder import Decoded
from privclust.decoding._standard_errors import StandardErrors, draw_errors
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
    is_reliable = draw_errors(sketch, decoded, rows, as_generator(random_state)).is_reliable
    counts, d = np.maximum(last.counts, 1.0), last.centers.shape[1]
    spreads, n = np.maximum(last.spreads, 0.0), float(counts.sum())
    weights = counts / n
    variances = last.errors**2 + rows * spreads / counts
    of_weights = (last.count_noise / n) ** 2 + rows * weights * (1.0 - weights) / n
    of_inertia = ((d * weights * last.spread_noise) ** 2).sum()
    of_inertia += rows * 2.0 * d * float(weights @ spreads**2) / n
    return StandardErrors(
        np.repeat(np.sqrt(variances)[:, None], d, axis=1),
        variances[:, None, None] * np.eye(d),
        np.sqrt(of_weights),
        math.sqrt(of_inertia),
        is_reliable,
    )
