"""Standard errors, by noise and sampling, of centers found by rounds of noisy sums.

`Round.errors` is the standard deviation by noise. The sampling error is that of independent rows of
Gaussian clusters with the measured spread. Where a mixture of the same features was decoded, it is
estimated by k-means on rows drawn from the mixture, and rescaled to the measured spread, since the
decoded Gaussian of a tight cluster is wider than the cluster. Everything is post-processing.

The distances between near-best starts of the decoder are not added, unlike in the errors of a
sketch. A round measures a center on the rows of its cluster. The start does not enter its error,
except if another start leads to other clusters. Those clusters are marked (`Agreement.recurs`,
`TreeKMeans.standard_errors`).
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
from privclust.decoding._standard_errors import (
    Draws,
    StandardErrors,
    draw_errors,
    if_enough,
    summary_of_draws,
)
from privclust.kmeans.last_rounds import Round
from privclust.sketches._sketch import Sketch

_SETTLED = 3  # number of last rounds, in which no center is moved to another cluster


def spreads_of_rounds(rounds: Sequence[Round]) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean variance of a feature in each cluster, and its noise, (k,)."""
    squares = np.array([found.spreads for found in rounds[-_SETTLED:]])
    noise = np.array([found.spread_noise for found in rounds[-_SETTLED:]])
    least = np.maximum(noise.min(axis=0), np.finfo(float).tiny)
    precisions = (least / np.maximum(noise, least)) ** 2  # relative: squares of noise may overflow
    total = precisions.sum(axis=0)
    return (precisions * squares).sum(axis=0) / total, least / np.sqrt(total)


def widths_of_rounds(rounds: Sequence[Round]) -> np.ndarray:
    """Return the root mean square of offsets in each cluster, per feature, (k, n_features)."""
    roots = np.sqrt(np.maximum(spreads_of_rounds(rounds)[0], 0.0))
    return np.repeat(roots[:, None], rounds[-1].centers.shape[1], axis=1)


def mean_inertia_of(last: Round) -> float:
    """Return the noisy mean squared distance of a row to its center, at least 0."""
    return max(float(last.centers.shape[1] * last.weights @ last.spreads), 0.0)


@one_blas_thread
def errors_after_rounds(
    sketch: Sketch,
    decoded: Decoded,
    rounds: Sequence[Round],
    *,
    rows: bool = True,
    random_state: RandomState = None,
) -> StandardErrors:
    """Return standard errors of the last round; reliable where those of the mixture are."""
    last = rounds[-1]
    rng = decoding_generator(random_state, sketch, "errors", last.centers)
    draws = draw_errors(sketch, decoded, rows, rng, of_means=True)
    is_reliable = draws.is_reliable
    if decoded.starts is not None:
        is_reliable = is_reliable & decoded.starts.recurs
    if decoded.centers.shape[1] != last.centers.shape[1]:
        return errors_of_rounds(rounds, if_enough(is_reliable), rows=rows)
    of_noise = errors_of_rounds(rounds, is_reliable, rows=False)
    of_rows = summary_of_draws(draws.centers - draws.start, draws)
    ratios = _variance_ratios(draws, rounds)
    covariances = of_noise.covariances + ratios[:, None, None] * of_rows.covariances
    # rescaled in the same way, by the mean squared distances
    drawn = float(np.mean(draws.inertias)) or 1.0
    of_inertia = of_rows.mean_inertia / drawn * mean_inertia_of(last)
    # a center that a round moved to another cluster is not the one that was decoded
    is_same = nearest_center(last.centers, draws.start) == np.arange(len(last.counts))
    of_weights = of_rows.weights
    if rows:  # a few draws may by chance vary less than a binomial count
        n = np.maximum(last.counts, 1.0).sum()
        of_weights = np.maximum(of_weights, np.sqrt(last.weights * (1.0 - last.weights) / n))
    return StandardErrors(
        np.sqrt(np.einsum("kii->ki", covariances)),
        covariances,
        np.hypot(of_noise.weights, of_weights),
        math.hypot(of_noise.mean_inertia, of_inertia),
        if_enough(is_reliable & is_same),
        draws.spreads,
    )


def _variance_ratios(draws: Draws, rounds: Sequence[Round]) -> np.ndarray:
    """Return the variance in each cluster divided by that of the decoded mixture, (k,).

    It is the mean of the mixture's and of the rounds' measurement, by inverse variances. Their
    standard errors are the mixture's whole variance, and the noise.
    """
    labels, k = nearest_center(draws.points, draws.start), len(draws.start)
    squares = ((draws.points - draws.start[labels]) ** 2).mean(axis=1)
    n_points = np.maximum(np.bincount(labels, minlength=k), 1)
    drawn = np.bincount(labels, weights=squares, minlength=k) / n_points
    measured, noise = spreads_of_rounds(rounds)
    # in units of both errors: a variance may be 0, and the square of a variance overflow
    unit = np.hypot(drawn, noise)
    unit[unit == 0.0] = 1.0
    drawn, measured, noise = drawn / unit, measured / unit, noise / unit
    return np.maximum(noise**2 + measured * drawn, 0.0)


def errors_of_rounds(
    rounds: Sequence[Round], is_reliable: np.ndarray, *, rows: bool = True
) -> StandardErrors:
    """Return standard errors from released rounds, for isotropic Gaussian clusters.

    `is_reliable` (n_clusters,) is passed on. With `rows` the rows are taken as drawn from a
    population, and the errors include those of sampling.
    """
    last = rounds[-1]
    counts, d = np.maximum(last.counts, 1.0), last.centers.shape[1]
    squares, of_squares = spreads_of_rounds(rounds)
    spreads, n = np.maximum(last.spreads, 0.0), float(counts.sum())
    weights = last.weights
    of_centers = last.errors**2
    # the noise of a count is in the sum that it is divided by as well
    # (1 - w)^2 by its own count, and w^2 by each of the other k - 1
    kept = 1.0 - 2.0 * weights + len(counts) * weights**2
    of_weights = kept * (last.count_noise / n) ** 2
    of_inertia = [*(d * weights * last.spread_noise)]
    if rows:
        of_centers = of_centers + spreads / counts
        of_weights = of_weights + weights * (1.0 - weights) / n
        of_inertia += [*(np.sqrt(2.0 * d * weights / n) * spreads)]
        # a mean of d n squares of Gaussian offsets has the relative variance 2 / (d n)
        of_squares = np.hypot(of_squares, np.maximum(squares, 0.0) * np.sqrt(2.0 / (d * counts)))
    of_spreads = error_of_root(squares, of_squares)
    return StandardErrors(
        np.repeat(np.sqrt(of_centers)[:, None], d, axis=1),
        of_centers[:, None, None] * np.eye(d),
        np.sqrt(of_weights),
        math.hypot(*of_inertia),  # these grow with the squared bounds: squaring them might overflow
        is_reliable,
        np.repeat(of_spreads[:, None], d, axis=1),
    )
