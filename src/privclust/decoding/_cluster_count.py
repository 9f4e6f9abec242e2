r"""How many clusters a sketch tells of, and which noise hides.

Mixtures of fewer and fewer atoms are fitted to one sketch, from as many as may be asked for down to
one, each from the one before without the atom that is missed least. With noise of variance
:math:`s^2` on real and imaginary parts of m features, residuals :math:`f_k` and :math:`p = d + 2`
numbers of an atom, the mixture of least

.. math:: f_k / s^2 + k\, p \log(2 m)

is taken (BIC). Atoms are round, or, where that explains more beside its p, have a variance for each
feature or a covariance. s is what is expected at the true mixture (`expected_residual`). How rows
scatter is part of that, and is not noise of each frequency by itself: it is smooth, and a few atoms
explain most of it. So a round atom is to explain half of it as well, one of more numbers more.

An atom of weight :math:`\alpha` and variance v explains at most
:math:`\alpha^2 \sum_j e^{-v |\omega_j|^2}` of f. Below the weight at which that is the penalty of
one atom, clusters are not told from noise, wherever they lie: at most as many equal clusters as fit
above it are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privclust.core.hints import Bounds, RandomState
from privclust.core.threads import one_blas_thread
from privclust.core.validation import check_integer
from privclust.decoding._ellipsoids import n_numbers
from privclust.decoding._mixture_decoder import OPTIMISER_RESIDUAL, expected_residual
from privclust.decoding._mixture_fit import ROUGH_FIT, MixtureFit
from privclust.decoding._moments import Moments, estimate_moments, moments_of_box
from privclust.decoding._seed import decoding_generator
from privclust.decoding._sketch_decoding import count_noise, mean_features
from privclust.privacy.bounds import checked_box
from privclust.sketches._sketch import Sketch

MOST_CLUSTERS = 20
_SCATTER_OF_ATOM = 0.5  # of how rows scatter, which one atom may explain


@dataclass(frozen=True)
class ClusterCount:
    """How many clusters a sketch tells of.

    Attributes
    ----------
    n_clusters : int
    scores : ndarray of shape (max_clusters,)
        Twice the nats by which one cluster, two, and so on explain the sketch worse than the best
        number, with the penalty; 0 for that.
    least_weight : float
        Part of the rows below which noise hides a cluster as wide as those that were seen.
    """

    n_clusters: int
    scores: np.ndarray
    least_weight: float

    @property
    def most_told(self) -> int:
        """The most clusters of one size that noise lets one tell."""
        return int(min(1.0 / self.least_weight, 1e9)) if self.least_weight > 0.0 else 10**9

    def hidden(self) -> str:
        """Return what noise hides of the number of clusters; empty where it hides none.

        Examples
        --------
        >>> ClusterCount(2, np.zeros(20), 0.24).hidden()
        'noise hides more than 4 clusters, of up to 20 that were looked for'
        >>> ClusterCount(2, np.zeros(20), 0.01).hidden()
        ''
        """
        most = max(self.most_told, self.n_clusters)
        if most >= len(self.scores):
            return ""
        clusters = "1 cluster" if most == 1 else f"{most} clusters"
        return f"noise hides more than {clusters}, of up to {len(self.scores)} that were looked for"


@one_blas_thread
def count_clusters(
    sketch: Sketch,
    max_clusters: int = MOST_CLUSTERS,
    *,
    bounds: Bounds | None = None,
    moments: Moments | None = None,
    random_state: RandomState = None,
) -> ClusterCount:
    """Choose the number of clusters of a sketch. All of it is post-processing.

    Parameters
    ----------
    sketch : Sketch
        Of at least one record.
    max_clusters : int
        The most that are chosen from.
    bounds, moments, random_state
        As of `decode`.

    Returns
    -------
    ClusterCount

    Raises
    ------
    ValueError
        If an argument is not as described, or the sketch has no records.

    Examples
    --------
    >>> from privclust.sketches import Sketch, draw_frequencies
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(c, 1, (500, 2)) for c in (-4, 0, 4)])
    >>> sketch = Sketch.of(X, draw_frequencies(2, 100, variance=16.0, random_state=0))
    >>> count_clusters(sketch, 8, random_state=0).n_clusters
    3
    """
    if not isinstance(sketch, Sketch):
        raise ValueError(f"sketch must be a Sketch, got {type(sketch).__name__}")
    check_integer("max_clusters", max_clusters, minimum=1)
    features, noise, n_samples = mean_features(sketch)
    expected = expected_residual(features, n_samples, sketch.alpha_r, noise)
    expected = max(expected, OPTIMISER_RESIDUAL * float(np.vdot(features, features).real))
    box = None if bounds is None else checked_box(bounds, sketch.n_features)
    where = () if box is None else (box.low, box.high)
    if moments is not None:
        where = *where, moments.mean, moments.variances
    rng = decoding_generator(random_state, sketch, "count", max_clusters, *where)
    guesses = [moments]
    if moments is None:
        of_count = count_noise(sketch)
        guesses = [estimate_moments(features, sketch.frequencies, noise, box, rng, of_count)]
    if box is not None:  # clusters far apart: no frequency may be low enough to tell where
        guesses.append(moments_of_box(box))
    counts = [
        _counted(features, sketch.frequencies, guess, expected, noise, max_clusters, rng)
        for guess in guesses
    ]
    return min(counts, key=lambda pair: pair[0])[1]


def _counted(features, frequencies, moments, expected, noise, max_clusters, rng):
    """Return the least score, and the count, of mixtures that start from moments."""
    d, m = frequencies.shape
    problem = MixtureFit(features, frequencies, moments, "per_cluster")
    unit = 0.5 * expected / m or 1.0
    of_atom = unit * (d + 2) * math.log(2.0 * m)
    of_atom += _SCATTER_OF_ATOM * max(expected - 2.0 * m * noise, 0.0)
    mixture, residual, *_ = problem.search(max_clusters, of_atom, rng)
    scores, mixtures = np.full(max_clusters, np.inf), {}
    for k in range(max_clusters, 0, -1):
        if k < max_clusters:
            *mixture, residual = problem.fit(*problem.prune(mixture, k), *ROUGH_FIT)
        mixture, residual = problem.repaired(mixture, residual, of_atom, rng)
        scores[k - 1], mixtures[k] = residual + k * of_atom, mixture
    best = int(np.argmin(scores)) + 1
    *_, residual = problem.refine(*mixtures[best])
    scores[best - 1] = min(scores[best - 1], residual + best * of_atom)
    for diagonal in (True, False):
        of_ellipsoid = of_atom * n_numbers(1, d, diagonal=diagonal) / (d + 2)
        _score_ellipsoids(scores, problem, mixtures, best, of_ellipsoid, expected, diagonal)
    best = int(np.argmin(scores)) + 1
    mixture = mixtures[best]
    norm = float(np.exp(-np.median(mixture[2]) * problem.problem[1]).sum())
    least = math.sqrt(of_atom / norm) if norm > 0.0 else 1.0
    relative = (scores - scores.min()) / unit
    return scores.min(), ClusterCount(best, relative, min(least, 1.0))


def _score_ellipsoids(scores, problem, mixtures, most, of_atom, enough, diagonal):
    """Lower scores where few atoms with covariances do better than many round ones."""
    residual = math.inf
    for k in range(1, most + 1):
        if residual <= enough or k * of_atom >= scores.min():
            return
        *_, residual = problem.with_covariances(mixtures[k], diagonal=diagonal)
        scores[k - 1] = min(scores[k - 1], residual + k * of_atom)
