r"""The number of clusters of a sketch, and the smallest that is distinguishable from noise.

Mixtures of a decreasing number of atoms are fitted to one sketch, from the largest number allowed
down to one. Each starts from the one before without its least important atom. With noise of
variance :math:`s^2` on real and imaginary parts of m features, residuals :math:`f_k` and
:math:`p = d + 2` numbers of an atom, the mixture of least

.. math:: f_k / s^2 + k\, p \log(2 m)

is chosen (BIC). Atoms are round, or have a variance for each feature or a covariance if that lowers
the score with their larger p. s is that expected at the true mixture (`expected_residual`). It
includes sampling, which is not independent noise at each frequency: it is smooth, and a few atoms
explain most of it. So a round atom must explain half of it as well, an atom of more numbers more.

An atom of weight :math:`\alpha` and variance v explains at most
:math:`\alpha^2 \sum_j e^{-v |\omega_j|^2}` of f. Clusters of a weight for which this is less than
the penalty of an atom are indistinguishable from noise, wherever they lie.

Rows without clusters need several atoms if their density is not Gaussian: if it is uniform, or has
a long tail. So atoms count as clusters only if there is a *valley* between some of them. With the
density g of the best mixture along the line between every two centers,

.. math:: r_{ij} = \min_{0 \le t \le 1} g(c_i + t (c_j - c_i)) / \min(g(c_i), g(c_j)) .

Atoms are joined in decreasing order of r until all are connected. The last r is the valley; if it
is above 0.4, one cluster is chosen. Two equal round Gaussian clusters have a valley of 0.43 at a
distance of 3.5 standard deviations.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import logsumexp

from privclust.core.hints import Bounds, RandomState
from privclust.core.threads import one_blas_thread
from privclust.core.validation import check_integer
from privclust.decoding._ellipsoids import n_numbers
from privclust.decoding._mixture_decoder import OPTIMISER_RESIDUAL, expected_residual
from privclust.decoding._mixture_fit import ROUGH_FIT, MixtureFit
from privclust.decoding._moments import Moments, estimate_moments, moments_of_box
from privclust.decoding._seed import decoding_generator
from privclust.decoding._sketch_check import least_weight
from privclust.decoding._sketch_decoding import count_noise, mean_features
from privclust.privacy.bounds import checked_box
from privclust.sketches._sketch import Sketch

MOST_CLUSTERS = 20  # default of the largest number to choose from
_SCATTER_OF_ATOM = 0.5  # fraction of the sampling error that an atom must explain
DEEP_VALLEY = 0.4  # largest valley between separate clusters; chosen by benchmarks/null_laws.py
_STEPS_ACROSS = 41  # points at which a density is evaluated between two centers
_LEAST_WEIGHT = 1e-300  # keeps logarithms finite


@dataclass(frozen=True)
class ClusterCount:
    """The number of clusters of a sketch, as chosen by `count_clusters`.

    Attributes
    ----------
    n_clusters : int
    scores : ndarray of shape (max_clusters,)
        Score (BIC) of one cluster, two, and so on, minus the least.
    least_weight : float
        Fraction of the rows below which a cluster as wide as the others is hidden by noise.
    valley : float
        Lowest decoded density between the clusters of the best score, relative to the density at
        their centers: 1 if there is no valley. Above 0.4 no separate clusters are found, and
        `n_clusters` is 1.
    """

    n_clusters: int
    scores: np.ndarray
    least_weight: float
    valley: float = 1.0

    @property
    def most_told(self) -> int:
        """Largest number of clusters of equal size that are distinguishable from noise."""
        return int(min(1.0 / self.least_weight, 1e9)) if self.least_weight > 0.0 else 10**9

    def hidden(self) -> str:
        """Return how many clusters can be distinguished from noise; empty if as many as asked for.

        Examples
        --------
        >>> ClusterCount(2, np.zeros(20), 0.24).hidden()
        'up to 4 clusters can be distinguished at this budget; there may be more'
        >>> ClusterCount(2, np.zeros(20), 0.01).hidden()
        ''
        """
        most = max(self.most_told, self.n_clusters)
        if most >= len(self.scores):
            return ""
        clusters = "1 cluster" if most == 1 else f"{most} clusters"
        return f"up to {clusters} can be distinguished at this budget; there may be more"

    def none_separate(self) -> str:
        """Return a sentence if several clusters were looked for and none is separate; else "".

        It is also empty if all but one may be hidden by noise (`hidden`).

        Examples
        --------
        >>> ClusterCount(1, np.zeros(20), 0.01).none_separate()
        'no separate clusters found: the decoded density has no valley'
        """
        if self.n_clusters > 1 or len(self.scores) == 1:
            return ""
        if self.scores.argmin() == 0 and self.hidden():
            return ""
        return "no separate clusters found: the decoded density has no valley"


@one_blas_thread
def count_clusters(
    sketch: Sketch,
    max_clusters: int = MOST_CLUSTERS,
    *,
    bounds: Bounds | None = None,
    moments: Moments | None = None,
    random_state: RandomState = None,
) -> ClusterCount:
    """Choose the number of clusters of a sketch, by post-processing.

    Parameters
    ----------
    sketch : Sketch
        A sketch of at least one record.
    max_clusters : int
        Largest number to choose from.
    bounds, moments, random_state
        As in `decode`.

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
    if box is not None:  # if clusters are far apart, no frequency may be low enough for moments
        guesses.append(moments_of_box(box))
    counts = [
        _counted(features, sketch.frequencies, guess, expected, noise, max_clusters, rng)
        for guess in guesses
    ]
    return min(counts, key=lambda pair: pair[0])[1]


def _counted(features, frequencies, moments, expected, noise, max_clusters, rng):
    """Return the least score of mixtures that start from moments, and the count."""
    d, m = frequencies.shape
    problem = MixtureFit(features, frequencies, moments, "per_cluster")
    unit = 0.5 * expected / m or 1.0  # s^2; 1 if all features are 0
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
    of_round, ellipsoids = best, {}
    for diagonal in (True, False):
        of_ellipsoid = of_atom * n_numbers(1, d, diagonal=diagonal) / (d + 2)
        how = of_ellipsoid, expected, diagonal
        _score_ellipsoids(scores, ellipsoids, problem, mixtures, best, *how)
    best = int(np.argmin(scores)) + 1
    least = least_weight(mixtures[best][2], problem.problem[1], of_atom)
    relative = (scores - scores.min()) / unit
    # Round atoms split a long tail, ellipsoids a uniform density; only a true valley is seen by
    # both. No ellipsoid is thinner than the resolution of the sketch.
    weights, centers, variances = mixtures[of_round]
    valley = deepest_valley(weights, centers, variances[:, None, None] * np.eye(d))
    if best in ellipsoids:
        weights, centers, factors = ellipsoids[best]
        covariances = factors @ factors.transpose(0, 2, 1)
        valley = max(valley, deepest_valley(weights, centers, covariances, variances.min()))
    chosen = best if valley <= DEEP_VALLEY else 1
    return scores.min(), ClusterCount(chosen, relative, least, valley)


def _score_ellipsoids(scores, ellipsoids, problem, mixtures, most, of_atom, enough, diagonal):
    """Update scores, and keep the atoms, where atoms with covariances have lower scores."""
    residual = math.inf
    for k in range(1, most + 1):
        # a residual of noise has nothing left to explain, and the penalty only grows with k
        if residual <= enough or k * of_atom >= scores.min():
            return
        *atoms, residual = problem.with_covariances(mixtures[k], diagonal=diagonal)
        if residual + k * of_atom < scores[k - 1]:
            scores[k - 1], ellipsoids[k] = residual + k * of_atom, atoms


def deepest_valley(
    weights: np.ndarray, centers: np.ndarray, covariances: np.ndarray, least: float = 0.0
) -> float:
    """Return the relative density in the deepest valley of a Gaussian mixture, in [0, 1].

    Components are joined by straight lines, highest density first, until all are connected. The
    lowest density on these lines is returned, relative to the lower of the densities at the ends of
    its line; 1 for one component. Eigenvalues of covariances are at least `least`.
    """
    n_atoms = len(weights)
    if n_atoms <= 1:
        return 1.0
    squares, axes = np.linalg.eigh(covariances)
    squares = np.maximum(squares, max(least, np.finfo(float).tiny))
    heights = np.log(np.maximum(weights, _LEAST_WEIGHT)) - 0.5 * np.log(squares).sum(axis=1)

    def log_density(points):
        with np.errstate(over="ignore"):  # far from a narrow component its density is 0
            exponents = [
                height - 0.5 * (((points - center) @ axis / np.sqrt(square)) ** 2).sum(axis=1)
                for height, center, axis, square in zip(
                    heights, centers, axes, squares, strict=True
                )
            ]
        return logsumexp(exponents, axis=0)

    t, at = np.linspace(0.0, 1.0, _STEPS_ACROSS)[:, None], log_density(centers)
    bridges = np.zeros((n_atoms, n_atoms))
    for i, j in itertools.combinations(range(n_atoms), 2):
        lowest = log_density(centers[i] + t * (centers[j] - centers[i])).min()
        bridges[i, j] = math.exp(min(lowest - min(at[i], at[j]), 0.0))
    # the largest spanning tree; 1 is added since SciPy takes 0 for a missing edge
    tree = minimum_spanning_tree(-np.triu(1.0 + bridges, k=1))
    return float(-tree.data.max() - 1.0)
