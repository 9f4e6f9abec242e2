"""Metrics of private subspace clusterings and of Gibbs chains."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from statistics import fmean

import numpy as np

from privclust.core.grassmann import random_bases
from privclust.metrics.subspaces import subspace_cost, wasserstein_distance
from privclust_papers.pipeline.runner import TrialData

MIXED = 1.1  # the customary largest potential scale reduction of chains that have mixed
_RANDOM_SETS = 1000  # pairs of random sets: enough for a standard error of 0.3 %
_CUSTOMARY_RANGE = 1.0, 10.0  # epsilons from a usual to a loose budget


def evaluate_subspaces(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return cost, eq. (3), on the original rows, and Wasserstein distance to the truth, eq. (2).

    ``cost`` and ``distance``: means over the kept samples of a sampler, as in the paper;
    ``cost_last`` and ``distance_last``: for the released subspaces. ``relative_cost``: relative to
    the reference, non-private k-plane from SSC's clusters. ``relative_distance``: relative to that
    of random subspaces (`distance_of_random`); ``closeness``: 1 minus that. ``budget``: 0 for
    epsilon < 1, 1 for 1 to 10, 2 above; NaN without a budget.
    """
    truth = data.extra["truth"]
    sets = outputs["kept"] if "kept" in outputs else outputs["bases"][None]
    cost = float(np.mean([subspace_cost(data.X, bases) for bases in sets]))
    distance = float(np.mean([wasserstein_distance(bases, truth) for bases in sets]))
    relative = distance / distance_of_random(*truth.shape)
    return {
        "cost": cost,
        "distance": distance,
        "cost_last": subspace_cost(data.X, outputs["bases"]),
        "distance_last": wasserstein_distance(outputs["bases"], truth),
        "relative_cost": cost / subspace_cost(data.X, data.extra["reference"]["bases"]),
        "relative_distance": relative,
        "closeness": 1.0 - relative,
        "budget": budget_range(outputs.get("epsilon")),
    }


@cache
def distance_of_random(n_clusters: int, n_features: int, dimension: int) -> float:
    """Return the mean distance, eq. (2), of two sets of uniform subspaces, from fixed draws.

    Eq. (2) matches the sets in the best way, so in few dimensions this mean is below the distance
    in a fixed matching. Its standard error is at most 0.3 % for three or more subspaces.
    """
    rng, sizes = np.random.default_rng(0), (n_clusters, n_features, dimension)
    return fmean(
        wasserstein_distance(random_bases(*sizes, rng), random_bases(*sizes, rng))
        for _ in range(_RANDOM_SETS)
    )


def budget_range(epsilon) -> float:
    """Return the range of an epsilon: 0, 1, 2 or NaN, see `evaluate_subspaces`."""
    if epsilon is None:
        return math.nan
    low, high = _CUSTOMARY_RANGE
    return float(epsilon >= low) + float(epsilon > high)


def evaluate_chain(data: TrialData, outputs: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the curves of Figure 3, and compare the second half of a chain with the reference.

    Arrays over the records: ``sweep``, ``statistic``, ``aligned``, ``cost_path`` and
    ``distance_path`` (to the truth). Numbers: ``final_statistic``, ``final_aligned``; ``rhat``, the
    split potential scale reduction of the cost of both chains; ``separation``, the mean distance
    between samples of both chains, relative to that within a chain: 1 if both have the same
    distribution; ``unmixed`` and ``apart``: 1 if `rhat` or `separation` is above `MIXED`. For the
    reference itself, `rhat` is that of its halves, and `separation` and `apart` are NaN.
    """
    bases, other = outputs["subspaces"], data.extra["reference"]["subspaces"]
    sweep = outputs["sweep"]
    late = 2 * sweep > sweep[-1]
    cost, other_cost = (
        np.array([subspace_cost(data.X, sample) for sample in chain]) for chain in (bases, other)
    )
    distance = [wasserstein_distance(sample, data.extra["truth"]) for sample in bases]
    # The reference method is evaluated against its own outputs.
    is_reference = np.array_equal(bases, other)
    halves = _halves(cost[late])
    if not is_reference:
        halves += _halves(other_cost[late])
    rhat = potential_scale_reduction(np.stack(halves))
    separation = math.nan if is_reference else _separation(bases[late], other[late])
    return {
        "final_statistic": outputs["statistic"][-1],
        "final_aligned": outputs["aligned_statistic"][-1],
        "rhat": rhat,
        "unmixed": float(rhat > MIXED),
        "separation": separation,
        "apart": math.nan if is_reference else float(separation > MIXED),
        "sweep": sweep,
        "statistic": outputs["statistic"],
        "aligned": outputs["aligned_statistic"],
        "cost_path": cost,
        "distance_path": np.array(distance),
    }


def potential_scale_reduction(chains: np.ndarray) -> float:
    r"""Return the potential scale reduction :math:`\hat R` of chains (n_chains, n_draws).

    With W the mean of the variances within chains and B / n the variance of their means,
    :math:`\hat R = \sqrt{((n - 1) W / n + B / n) / W}`; 1 for constant chains (A. Gelman and
    D. Rubin, Statistical Science 7(4), 1992).
    """
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    between = chains.mean(axis=1).var(ddof=1)
    total = (n - 1) / n * within + between
    if total == 0.0:
        return 1.0
    return math.sqrt(total / within) if within > 0.0 else math.inf


def _halves(values: np.ndarray) -> list[np.ndarray]:
    half = len(values) // 2
    # Of an odd number the first value is left out, so that both halves have the same length.
    return [values[-2 * half : -half], values[-half:]]


def _separation(bases: np.ndarray, other: np.ndarray) -> float:
    """Return the mean distance between samples of two chains, relative to that within them."""
    # samples half a chain apart are nearly independent if the chain mixes
    shift = max(len(bases) // 2, 1)
    within = [
        wasserstein_distance(a, b)
        for chain in (bases, other)
        for a, b in zip(chain[:-shift], chain[shift:], strict=True)
    ]
    between = [wasserstein_distance(a, b) for a, b in zip(bases, other, strict=True)]
    return float(np.mean(between) / np.mean(within))
