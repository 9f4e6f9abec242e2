"""Subspaces by sample and aggregate: cluster many small subsets, release the central result."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import permutations
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator

from privclust.core.grassmann import orthonormal, residuals
from privclust.core.hints import RandomState
from privclust.core.validation import DELTA, GROUPS, check_parameters
from privclust.core.warn import warn_caller
from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.bounds import bounded_rows
from privclust.privacy.budget import charge
from privclust.privacy.estimator import PrivateEstimator, caveats_of_bounds, private_records
from privclust.privacy.measurements import SmoothGaussian
from privclust.privacy.noise import NoiseSource, is_seeded, noise_source, unprotected_generator
from privclust.subspaces._smooth_sensitivity import (
    exact_calibration,
    lemma_calibration,
    most_central,
    neighbour_radii,
    printed_sensitivity,
    smooth_sensitivity,
    worst_delta,
)
from privclust.subspaces._subset_results import subset_results, try_base
from privclust.subspaces._subspace_clusterer import DIMENSION, SubspaceClusterer, check_magnitude

_MAX_DRAWS = 200  # most attempts to draw subsets that satisfy the condition of Algorithm 1
_BLOCK_ENTRIES = 1 << 22  # inner products of bases held at once
_MAX_PERMUTED = 5  # clusters up to which all matchings are compared
_DISTANCE_ROUNDING = 1e-6  # computed distances of equal subspaces are below this
_FOR_SUBSPACES_ALONE = (
    "holds for subspaces_ only: labels_, smooth_sensitivity_ and noise_scale_ are not private"
)
_NOT_SMOOTH = "S(B) as printed is not a smooth bound: one record can change it by any factor"
_ORDER_IS_SEEN = (
    "one record can turn the order of the subspaces and their bases, which the distance that the "
    "noise is scaled to does not see"
)


@dataclass(eq=False, repr=False)
class SampleAggregateSubspaceClustering(PrivateEstimator, SubspaceClusterer):
    r"""Subspace clustering by sample and aggregate (Algorithm 1).

    A clusterer without privacy is fitted to each of m small subsets of the rows. The most central
    result is released with Gaussian noise: the center of the smallest ball that holds more than
    half of all results. The noise has standard deviation :math:`S / \alpha`, where S bounds how far
    one record can move the most central result, given these results and all near ones.

    ``variant="corrected"`` differs from Algorithm 1 as printed in four points, without which there
    is no proof:

    - *Subsets* are a partition, so that a record changes one result (s = 1). It is drawn
      independently of the rows.
    - *Order and bases.* The metric of eq. (2) does not depend on the order of the subspaces or
      their bases; noise on a list of bases does. Here the distance of two sets of bases is
      :math:`\min \|U - U' R\|_F` over orders and over rotations R in each subspace, which is at
      most that of eq. (2). Suppose the list had a uniformly random order and uniformly rotated
      bases. Then two lists at distance a could be coupled to always differ by a in the Euclidean
      norm, and noise scaled to a would protect them. Since the noise is isotropic, random order and
      rotations do not change the distribution of the released set of subspaces. So they are
      omitted, and the order and bases of the subspaces depend only on the released set.
    - *S* is `smooth_sensitivity` (``privclust.subspaces._smooth_sensitivity``, with proof): the
      printed S(B) can grow by any factor from one data set to a neighbouring one.
    - :math:`\alpha, \beta` come from the hockey-stick divergence of two normal distributions that
      differ in mean and scale, for every epsilon. The printed ones hold up to an epsilon of 25 to
      60 if D is below 10, and of more than 100 if D is 30 or more. Up to an epsilon of 10 they need
      more noise by a factor of 2 to 7, and smoothness proportional to 1 / D rather than
      :math:`1 / \sqrt D`.

    The noisy coordinates are D = k d min(q, d - q): if 2 q > d, bases are those of the orthogonal
    complements, which have the same angles. Noisy projection matrices would be as accurate to
    first order but have k d (d + 1) / 2 coordinates, which makes S less smooth and thus larger.

    **Failures of `base`.** One row must not decide whether there is a result. If `base` raises any
    exception on a subset, or returns no subspaces, subspaces drawn beforehand replace its result.
    Its warnings are silenced. Errors that occur on every data set are found before the rows are
    read, by a trial on random rows of norm at most 1, in the shape of the smallest subset, and
    raised. `MemoryError`, `KeyboardInterrupt` and `SystemExit` are passed on. The guarantee does
    not cover a `base` that raises them, or never returns, only for some data.

    ``variant="paper"`` is Algorithm 1 as printed, and not proved private: m subsets drawn with
    overlaps, all drawn again until no record is in more than :math:`\sqrt m` of them; the metric of
    eq. (2); the noise of lines 2 and 6 on the k d q coordinates of the bases of the winning subset,
    in its order. The noise is isotropic and only the winner is released, so aligning the others to
    it would change nothing.

    Parameters
    ----------
    base : estimator
        A clusterer with a parameter `n_clusters` and, once fitted, `subspaces_` or `labels_`. It is
        cloned for each subset, with a `random_state` derived from that of this class.
    dimension : int
        q, of each subspace; from 1 to n_features - 1.
    epsilon, delta : float
        Budget, in nats; delta in (0, 1).
    n_subsets : int or None
        m; None: n / (2 q k), rounded down, so that subsets have about 2 q rows a cluster.
    variant : {"corrected", "paper"}
    norm_bound : float or None
        Rows are clipped to a ball of this radius and divided by it. None: rows are unchanged; the
        guarantee needs no bound on them.
    missing : {"drop", "middle"}
        Treatment of a row with an entry that is missing (NaN, None) or is not a number. ``"drop"``:
        the row contributes nothing. ``"middle"``: the entry counts as the middle of the bounds, and
        all rows count.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState
        None for release (needs ``privclust[secure]``), anything else for reproduction.

    Attributes
    ----------
    subspaces_ : ndarray of shape (n_clusters, n_features, dimension)
        Orthonormal bases in the columns.
    labels_ : ndarray of shape (n_samples,)
        Nearest subspace of each row. Not private, like `smooth_sensitivity_`, `noise_scale_` and
        `n_failed_`: `released()` and pickles leave them out.
    left_out_ : None
        The number of rows left out is not released, because the subspaces leave no budget for it
        (`privclust.privacy.left_out`).
    guarantee_ : privclust.privacy.Guarantee
        For replace-one neighbours.
    smooth_sensitivity_, noise_scale_ : float
        S, and the standard deviation of the noise on each coordinate.
    n_failed_ : int
        Subsets on which `base` failed.
    n_subsets_ : int
        m.
    condition_ : float
        :math:`2 D / \sqrt m`, which epsilon must exceed for Theorem 3.1 to bound the noise.
        Independent of the rows.
    n_features_in_ : int

    Warns
    -----
    UserWarning
        If epsilon is at most `condition_`.

    References
    ----------
    Y. Wang, Y.-X. Wang and A. Singh, "Differentially private subspace clustering", NIPS 2015,
    Algorithm 1 and Theorem 3.1; K. Nissim, S. Raskhodnikova and A. Smith, "Smooth sensitivity and
    sampling in private data analysis", STOC 2007, Sections 2.4 and 4.

    Examples
    --------
    >>> from privclust.subspaces import KPlanes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0.5, 1.0, (4000, 1)) * np.eye(2)[rng.integers(2, size=4000)]
    >>> model = SampleAggregateSubspaceClustering(
    ...     KPlanes(2, n_init=3), epsilon=5.0, n_subsets=200, random_state=0
    ... ).fit(X)
    >>> np.abs(model.subspaces_[:, :, 0]).round(1)
    array([[1., 0.],
           [0., 1.]])
    """

    smooth_sensitivity_: float = field(init=False)
    noise_scale_: float = field(init=False)
    n_failed_: int = field(init=False)
    n_subsets_: int = field(init=False)
    condition_: float = field(init=False)

    _constraints: ClassVar = {"dimension": DIMENSION, "delta": DELTA}
    _NOT_RELEASED = ("labels_", "smooth_sensitivity_", "noise_scale_", "n_failed_")

    base: BaseEstimator
    dimension: int = 1
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    n_subsets: int | None = None
    variant: Literal["corrected", "paper"] = "corrected"
    norm_bound: float | None = None
    missing: Literal["drop", "middle"] = "drop"
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find private subspaces.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points assigned to subsets at random; of magnitude up to 1e100, or any if they are
            clipped to a `norm_bound`.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of its range, X has no more features than dimensions, or is not
            finite or too large where it must not be; if `base` fails on random rows; with
            ``variant="paper"``, if no subsets with few common records are found, as happens for 4
            to about (ln n)^2 subsets.
        """
        records = private_records(self, X)
        X = records.every_row
        n_clusters = self._check_parameters(X)
        rows = self._rows(X)
        source = noise_source(self.random_state)
        rng = unprotected_generator(source)
        default = max(1, len(X) // (2 * self.dimension * n_clusters))
        self.n_subsets_ = default if self.n_subsets is None else int(self.n_subsets)
        shape = (n_clusters, X.shape[1], self.dimension)
        # before the charge: a base that fails on every data set uses no budget
        try_base(self.base, len(X) // self.n_subsets_, shape)
        charge(self._promise(shape, is_seeded(source)))
        draw = disjoint_subsets if self.variant == "corrected" else printed_subsets
        subsets = draw(len(X), self.n_subsets_, rng)
        if records.is_counted is not None:  # after the draw, on which no row has an effect
            subsets = [subset[records.is_counted[subset]] for subset in subsets]
        results, self.n_failed_ = subset_results(self.base, rows, subsets, shape, rng)
        self.subspaces_, self.guarantee_ = self.release(results, source)
        self.left_out_ = None  # one row may change the result of a subset completely
        self.labels_ = residuals(rows, self.subspaces_).argmin(axis=1)
        if records.is_counted is not None:
            self.labels_[~records.is_counted] = -1
        return self

    def release(self, results: np.ndarray, source: NoiseSource) -> tuple[np.ndarray, Guarantee]:
        """Return the subspaces and the guarantee from the subsets' results, as `fit` does.

        Results are orthonormal bases (n_subsets, n_clusters, n_features, dimension). Sets
        `n_subsets_` and the attributes of the noise, which comes from the source. `fit` charges
        open ledgers for it; this does not.
        """
        self.n_subsets_ = len(results)
        is_private, shape = self.variant == "corrected", results.shape[1:]
        noise, frames = self._noise(shape), smaller_frames(results)
        # each of the k subspaces adds at most 2 q to a squared distance, in both metrics
        diameter = math.sqrt(2.0 * frames.shape[1] * frames.shape[3])
        if is_private:
            n_changed, radii = 1, neighbour_radii(result_distances(frames, "procrustes"))
            bound = smooth_sensitivity(radii, noise.beta, diameter) + _DISTANCE_ROUNDING
        else:
            n_changed = math.isqrt(len(results))
            radii = neighbour_radii(result_distances(frames, "projection"))
            bound = printed_sensitivity(radii, noise.beta, diameter, n_changed)
        noise, central = replace(noise, bound=bound), most_central(radii, n_changed)
        self._set_noise(noise)
        if is_private:
            subspaces = canonical_subspaces(noise.release(frames[central], source), self.dimension)
        else:  # results that coincide have S = 0: no noise, as printed
            subspaces = orthonormal(noise.release(results[central], source))
        return subspaces, self._promise(shape, is_seeded(source))

    def _rows(self, X):
        if self.norm_bound is None:
            check_magnitude(X)
            return X
        rows, radius, _ = bounded_rows(X, self.norm_bound)
        return rows / radius

    def _noise(self, shape):
        """Return the noise on results (n_clusters, n_features, dimension), for S = 1."""
        n_clusters, n_features, dimension = shape
        is_private, budget = self.variant == "corrected", (self.epsilon, self.delta)
        if is_private:
            n_coordinates = n_clusters * n_features * min(dimension, n_features - dimension)
            alpha, beta = exact_calibration(*budget, n_coordinates)
        else:
            n_coordinates = n_clusters * n_features * dimension
            alpha, beta = lemma_calibration(*budget, n_coordinates)
        proof = "privclust.subspaces._smooth_sensitivity"
        return SmoothGaussian(
            1.0,
            alpha,
            beta,
            n_coordinates,
            *budget,
            proof=proof if is_private else "Algorithm 1, Theorem 3.1",
            flaw="" if is_private else _NOT_SMOOTH,
        )

    def _promise(self, shape, seeded):
        """Return the guarantee of a release; it does not depend on the rows."""
        noise, is_private = self._noise(shape), self.variant == "corrected"
        caveats = [_FOR_SUBSPACES_ALONE] if is_private else [_ORDER_IS_SEEN]
        if not is_private:
            worst = worst_delta(self.epsilon, noise.alpha, noise.beta, noise.n_coordinates)
            if worst > self.delta:
                caveats.append("alpha and beta are not admissible for so large an epsilon")
        return Guarantee.of(
            [noise.statement("subspaces" if is_private else "bases")],
            "approximate" if is_private else "none",
            Neighbours.REPLACE_ONE,
            delta=float(self.delta) if is_private else 0.0,
            seeded=seeded,
            caveats=(*caveats, *caveats_of_bounds(self)),
        )

    def _set_noise(self, noise):
        """Set the noise, and warn where Theorem 3.1 does not bound it."""
        n_coordinates = noise.n_coordinates
        self.smooth_sensitivity_ = float(noise.bound)
        self.noise_scale_ = noise.scale
        self.condition_ = 2.0 * n_coordinates / math.sqrt(self.n_subsets_)
        if self.epsilon <= self.condition_:
            warn_caller(
                f"epsilon={self.epsilon:g} is at most 2 D / sqrt(m) = {self.condition_:.4g}, "
                f"with D = {n_coordinates} coordinates and m = {self.n_subsets_} subsets: the "
                "noise may drown the result (this does not touch privacy)"
            )

    def _check_parameters(self, X):
        """Return the number of clusters, or raise a ValueError that names a wrong parameter."""
        check_parameters(self, X)
        n_samples = len(X)
        if isinstance(self.base, type) or not all(
            hasattr(self.base, name) for name in ("fit", "get_params", "set_params")
        ):
            raise ValueError(f"base must be a clusterer, got {self.base!r}")
        params = self.base.get_params(deep=False)
        n_clusters = params.get("n_clusters")
        GROUPS("n_clusters of base", n_clusters, {"n_samples": n_samples})
        if params.get("dimension", self.dimension) != self.dimension:
            raise ValueError(
                f"base must have the same dimension, got dimension={self.dimension} and a base "
                f"with dimension={params['dimension']!r}"
            )
        if self.n_subsets is not None:
            least = max(n_clusters, self.dimension)
            if n_samples // self.n_subsets < least:
                raise ValueError(
                    f"n_subsets must leave {least} rows a subset, at least as many as clusters and "
                    f"dimensions: for n_samples={n_samples} at most {n_samples // least}, got "
                    f"{self.n_subsets}"
                )
        return int(n_clusters)


def disjoint_subsets(n_samples: int, n_subsets: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return a random partition into parts with sizes that differ by at most 1."""
    return np.array_split(rng.permutation(n_samples), n_subsets)


def printed_subsets(n_samples: int, n_subsets: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return the subsets of Algorithm 1, line 3: drawn until no record is in too many of them.

    With fewer than 4 subsets a record may be in only one. Under this condition, they are a
    uniformly random partition of their records, and are drawn as one.
    """
    size, most = n_samples // n_subsets, math.isqrt(n_subsets)
    if most == 1:
        return list(rng.permutation(n_samples)[: size * n_subsets].reshape(n_subsets, size))
    for _ in range(_MAX_DRAWS):
        subsets = [rng.choice(n_samples, size, replace=False) for _ in range(n_subsets)]
        if np.bincount(np.concatenate(subsets)).max() <= most:
            return subsets
    raise ValueError(
        f"n_subsets={n_subsets}: in {_MAX_DRAWS} draws there was always a record in more than "
        f"sqrt(m), that is {most}, of the subsets; give less than 4 subsets or more than "
        f"{n_subsets}, or use variant='corrected'"
    )


def smaller_frames(results: np.ndarray) -> np.ndarray:
    """Return bases of the subspaces or of their complements, the ones with fewer columns."""
    n_features, dimension = results.shape[-2:]
    if 2 * dimension <= n_features:
        return results
    return np.linalg.qr(results, mode="complete")[0][..., dimension:]


def result_distances(frames: np.ndarray, metric: str) -> np.ndarray:
    r"""Return the distances between m sets of subspaces, for any order and bases.

    Parameters
    ----------
    frames : ndarray of shape (m, n_clusters, n_features, width)
        Orthonormal columns.
    metric : {"procrustes", "projection"}
        The root of the least sum over matchings of, with F the inner products of two bases,
        :math:`\min_R \|U - U' R\|_F^2 = 2 (width - \|F\|_*)` or
        :math:`\|P - P'\|_F^2 = 2 (width - \|F\|_F^2)`, which is eq. (2).

    Returns
    -------
    ndarray of shape (m, m)
        Symmetric, correct to about 1e-7.
    """
    m, k, d, width = frames.shape
    columns = np.ascontiguousarray(frames.transpose(2, 0, 1, 3)).reshape(d, -1)
    distances = np.zeros((m, m))
    size = max(1, _BLOCK_ENTRIES // (m * (k * width) ** 2))
    for begin in range(0, m, size):
        end = min(begin + size, m)
        # from the diagonal on: the rest is symmetric
        inner = columns[:, begin * k * width : end * k * width].T @ columns[:, begin * k * width :]
        inner = inner.reshape(end - begin, k, width, m - begin, k, width)
        # axes: set, other set, subspace, other subspace; then the inner products of their columns
        closeness = _closeness(inner.transpose(0, 3, 1, 4, 2, 5), metric)
        # min |U - W R|^2 over R is 2 (q - |U'W|_*), and |U U' - W W'|^2 is 2 (q - |U'W|_F^2)
        squared = 2.0 * _least_matching(width - closeness)
        distances[begin:end, begin:] = np.sqrt(np.maximum(squared, 0.0))
    # a result has distance exactly 0 to itself, and both orders of a pair have the same bits
    upper = np.triu(distances, 1)
    return upper + upper.T


def _closeness(inner, metric):
    """Return the nuclear norm of stacked matrices, or the square of the Frobenius norm."""
    squared = np.einsum("...ij,...ij->...", inner, inner)
    if metric == "projection":
        return squared
    width = inner.shape[-1]
    if width == 1:
        return np.abs(inner[..., 0, 0])
    if width == 2:  # (a + b)^2 = a^2 + b^2 + 2 a b of the singular values a, b
        product = inner[..., 0, 0] * inner[..., 1, 1] - inner[..., 0, 1] * inner[..., 1, 0]
        return np.sqrt(squared + 2.0 * np.abs(product))
    return np.linalg.svd(inner, compute_uv=False).sum(axis=-1)


def _least_matching(costs):
    """Return the cost of the best matching for each of stacked (k, k) matrices."""
    k = costs.shape[-1]
    if k <= _MAX_PERMUTED:
        best = np.full(costs.shape[:-2], np.inf)
        for order in permutations(range(k)):
            np.minimum(best, sum(costs[..., i, j] for i, j in enumerate(order)), out=best)
        return best
    flat = costs.reshape(-1, k, k)
    totals = [matrix[linear_sum_assignment(matrix)].sum() for matrix in flat]
    return np.array(totals).reshape(costs.shape[:-2])


def canonical_subspaces(noisy: np.ndarray, dimension: int) -> np.ndarray:
    """Return the spans of noisy bases, or their complements, in canonical order and bases.

    `noisy` is (n_clusters, n_features, width); its spans are complements where `width` is not the
    dimension. The result depends only on the set of spans: each subspace has its basis nearest to
    the first axes, and subspaces are ordered by the mean position of their weight on the axes.
    """
    n_features, width = noisy.shape[1:]
    # the left singular vectors span the noisy columns first, then their complement
    # a common factor changes no span, and keeps products of large noise finite
    everything = np.linalg.svd(noisy / np.abs(noisy).max())[0]
    bases = everything[..., :width] if width == dimension else everything[..., width:]
    # orthogonal Procrustes: rotate each basis nearest to the first axes
    left, _, right = np.linalg.svd(np.swapaxes(bases[:, :dimension], 1, 2))
    bases = bases @ (left @ right)
    # squares of a basis summed over its columns depend only on the subspace
    places = (bases**2).sum(axis=2) @ np.arange(n_features)
    return bases[np.argsort(places, kind="stable")]
