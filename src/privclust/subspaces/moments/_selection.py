r"""Choice of the number of subspaces and of their dimension from a sketch.

For every pair (k, q), the cost of the best union (minus the logarithm of a posterior density) is
raised by a penalty for each of its :math:`p = k q (d - q) + k` parameters. Errors of means come
from noise and from sampling, taken as equal in all coordinates (`deviations_in_all`): otherwise
more subspaces would explain rows that are uneven by chance. Fitted to noise, a parameter lowers the
cost by half a unit; the choice among many optima requires a larger penalty. The pair of the
smallest sum is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from privclust.core.batched_lbfgs import descend
from privclust.core.hints import RandomState
from privclust.core.validation import as_generator
from privclust.sketches._harmonics import n_moments, squared_length
from privclust.sketches._moment_sketch import MomentSketch
from privclust.subspaces.moments._objective import MomentObjective

_MOST = 6  # largest number of clusters, and largest dimension, to choose from
# factor of the penalty, chosen on simulated mixtures; benchmarks/moments.py measures its accuracy
_STRICTNESS = 2.0
# random starts; the best of them, which are optimized on; most evaluations of both searches
_N_STARTS, _N_BEST, _SEARCH, _DESCENT = 24, 3, 80, 200


def choose_sizes(
    sketch: MomentSketch,
    n_clusters: int | None = None,
    dimension: int | None = None,
    *,
    random_state: RandomState = None,
) -> tuple[int, int]:
    """Return the number of subspaces and their dimension.

    Parameters
    ----------
    sketch : MomentSketch
    n_clusters, dimension : int or None
        Given values are kept; None is chosen from 1 to 6, a dimension below n_features.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState

    Returns
    -------
    n_clusters, dimension : int
    """
    if n_clusters is not None and dimension is not None:
        return n_clusters, dimension
    rng = as_generator(random_state)
    costs = dict(_costs(sketch, n_clusters, dimension, rng))
    return min(costs, key=lambda sizes: costs[sizes])


def _costs(sketch, n_clusters, dimension, rng) -> Iterator[tuple[tuple[int, int], float]]:
    d, means, deviations = sketch.n_features, sketch.means(), deviations_in_all(sketch)
    most = min(_MOST, d - 1)
    for k in range(1, _MOST + 1) if n_clusters is None else [n_clusters]:
        for q in range(1, most + 1) if dimension is None else [dimension]:
            objective = MomentObjective(means, deviations, d, k, q)
            starts, costs = descend(objective, objective.random_starts(_N_STARTS, rng), _SEARCH)
            best = np.argsort(costs, kind="stable")[:_N_BEST]
            _, costs = descend(objective, starts[best], _DESCENT)
            yield (k, q), costs.min() / objective.scale + penalty(d, k, q)


def deviations_in_all(sketch: MomentSketch) -> dict[int, float]:
    """Return standard deviations of coordinates of the means, by degree, from noise and sampling.

    Moments of a row have norm sqrt(c_l), so the mean of n rows has the total variance
    (c_l - |mean|^2) / n, taken here as equal in all directions.
    """
    d, n_samples, means = sketch.n_features, max(sketch.n_samples, 1.0), sketch.means()
    deviations = {}
    for degree, deviation in sketch.deviations().items():
        # dimension of trace-free tensors: a trace is a tensor of degree - 2
        size = n_moments(d, degree) - n_moments(d, degree - 2)
        # noise adds its variance in each direction to the squared norm of the mean
        of_mean = max(float(means[degree] @ means[degree]) - size * deviation**2, 0.0)
        scatter = max(squared_length(d, degree) - of_mean, 0.0) / (n_samples * size)
        deviations[degree] = math.sqrt(deviation**2 + scatter)
    return deviations


def penalty(n_features: int, n_clusters: int, dimension: int) -> float:
    """Return the penalty on the cost of a union for its size."""
    n_parameters = n_clusters * (dimension * (n_features - dimension) + 1)
    return _STRICTNESS * math.log(2.0 * n_features**2) * n_parameters
