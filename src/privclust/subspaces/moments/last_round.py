r"""The last round: a noisy measurement of the rows' deviation from decoded subspaces.

A sketch gives the subspaces to within a small angle. A row then need not change a release by more
than such an angle. With a decoded basis U and its complement V, a row x of the cluster gives
:math:`R = V'x\, x'U`, clipped to Frobenius norm r. The sums of R over the rows of each cluster are
released. If the true subspace is U + V T, R is :math:`T\, U'x\, x'U` plus noise orthogonal to
the subspace, so that the sums determine T.

**Exact.** U depends on an earlier release only. Rows are multiples of 2^-16, bases of 2^-30, so
their products are exact. Norms are summed in a fixed order. Clipped entries are rounded to
multiples of 2^-30, which adds at most :math:`2^{-31} \sqrt{(d-q) q}` to a norm, less than `_MARGIN`
of the least r. The sensitivities below hold for the computed values. With groups, each of the n
rows of a group has weight 1 / n (`privclust.privacy.groups`).

**The information of sums** on T is found by simulation, at no privacy loss. Unions are drawn from
the sketch's uncertainty, rows from each, and the sums of their R are regressed on T, with their
scatter, for several r. The best r is used. A sketch determines the rows' distance from their
subspaces poorly, and r / |R| depends on it. So the sums of the factors :math:`f = \min(1, r / |R|)`
and of :math:`g = \min(1, |R| / r)` are released with those of :math:`f R`, times
:math:`\kappa = r / 2`. They determine the distance for the simulation, and the slope of :math:`f R`
in T is nearly proportional to the sum of f. Since :math:`|R| \le 1/2`, :math:`f \ge 2 r`.

The squared sensitivity is at most:

- *add-remove*: :math:`r^2 + 2 \kappa^2`, at :math:`|R| = r`.
- *replace-one*, in two clusters: :math:`2 (r^2 + 2 \kappa^2) = 3 r^2`. In one cluster, with
opposite R: if both are at least r long, g is 1 for both, and :math:`4 r^2 + \kappa^2 (1 - 2 r)^2`.
If one has length g r, :math:`(1 + g)^2 r^2 + \kappa^2 ((1 - 2 r)^2 + (1 - g)^2)`, which is convex
in g and largest at g = 1. If both are shorter, f is 1 for both, and :math:`4 r^2`.

Tangents of the sketch and of the round are combined by precision. If not all subspaces are
detected, the budget of the round is spent on a second sketch. Two sketches with shares
of a budget, weighted by these, are as precise as one with the whole. This choice depends only on
the first sketch, which is private. Shares of the budget are fixed beforehand, and only the measured
quantities depend on earlier releases. Adaptive composition of Gaussian releases then applies
(J. Dong, A. Roth and W. J. Su, "Gaussian differential privacy", 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privclust.core.compiled import kernel
from privclust.core.fixed_point import SUM_BITS, FixedPoint, check_row_count, rounded_term
from privclust.core.grassmann import blocks
from privclust.core.second_moments import in_units, unit
from privclust.privacy import Neighbours
from privclust.privacy.bounds import directions
from privclust.privacy.groups import Groups, by_size, weighted_sums
from privclust.privacy.measurements import Gaussian, gaussian_share
from privclust.privacy.noise import NoiseSource
from privclust.privacy.sensitivity import Sensitivity
from privclust.subspaces._exact_moments import labels_by_subspace, rounded_columns
from privclust.subspaces.moments._decoding import DecodedSubspaces

ROUND_SHARE = 1.0 / 3.0  # share of the budget for a last round
_RADII = tuple(float(r) for r in np.geomspace(0.01, 0.5, 6))  # simulated values of r
_KAPPA = 0.5  # weight of the sums of f and g, as a fraction of r
_MARGIN = 2.0**-16  # relative increase of the sensitivity that covers rounding
# simulated fractions of a row's squared norm outside its subspace
_SHARES_OUTSIDE = tuple(float(s) for s in np.geomspace(1e-4, 0.8, 14))
_SCALES = 0.2, 2.0  # range of the sums of f, relative to those of the simulation
_MOST_UNCLEAR = 0.25  # largest error of a detected subspace, relative to random ones
_LEAST_GAP = 2.0  # least difference in cost to the next optimum, for detection
# nats per number for detection: rows without subspaces reach 1.8, unions 2.8 and more
_LEAST_EVIDENCE = 2.5
_N_UNIONS, _N_ROWS = 16, 1000  # simulated unions, and rows of each


@dataclass(frozen=True)
class RoundPlan:
    """The releases of a round, and their expected precision.

    Attributes
    ----------
    radius : float
        r.
    noise : Gaussian
        On sums of clipped R.
    variance : float
        Expected variance of all tangents from sketch and round together.
    """

    radius: float
    noise: Gaussian
    variance: float


def sensitivity(radius: float, relation: Neighbours) -> Sensitivity:
    """Return the sensitivity of the sums of clipped R."""
    squares = 1.0 + 2.0 * _KAPPA**2
    if relation is Neighbours.REPLACE_ONE:
        squares = 4.0 + (_KAPPA * (1.0 - 2.0 * radius)) ** 2
    value = math.sqrt(squares) * radius * (1.0 + _MARGIN)
    return Sensitivity(value, "l2", relation, "a row adds f R, |f R| <= r, r f / 2 and r g / 2")


def is_detected(decoded: DecodedSubspaces) -> np.ndarray:
    """Return which subspaces are distinguishable from noise, (k,).

    A detected subspace has an error well below the distance of a random one, and explains more than
    subspaces of rows in all directions. None is detected if another union explains the sketch
    nearly as well: noise may decide between them.
    """
    _, d, q = decoded.subspaces.shape
    is_near = decoded.errors <= _MOST_UNCLEAR * random_distance(d, q)
    is_told = decoded.evidence >= _LEAST_EVIDENCE
    return is_near & is_told & (decoded.gap >= _LEAST_GAP)


def random_distance(n_features: int, dimension: int) -> float:
    """Return the root mean squared distance of a random subspace from another.

    Examples
    --------
    >>> round(random_distance(10, 3), 3)
    2.049
    """
    return math.sqrt(2.0 * dimension * (1.0 - dimension / n_features))


def plan_round(
    decoded: DecodedSubspaces,
    n_samples: float,
    relation: Neighbours,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> RoundPlan:
    """Return the round with the highest expected precision at its share of a budget."""
    # squared shares add up in the composition of Gaussian releases
    share = gaussian_share(float(epsilon), float(delta)) * math.sqrt(ROUND_SHARE)
    plans = []
    for radius in _RADII:
        simulated = _simulated(decoded, radius, rng)
        noise = Gaussian.of_share(sensitivity(radius, relation), share)
        slopes = simulated.slopes * n_samples
        _, by_noise, by_rows = _weighed(decoded, simulated, slopes, n_samples, noise)
        plans.append(RoundPlan(radius, noise, float(np.trace(by_noise) + np.trace(by_rows))))
    return min(plans, key=lambda plan: plan.variance)


def released(
    X: np.ndarray,
    decoded: DecodedSubspaces,
    plan: RoundPlan,
    source: NoiseSource,
    groups: Groups | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy sums of f R, (k, d - q, q), and of f and g, (k, 2)."""
    exact = round_sums(X, decoded, plan.radius, groups)
    weights = np.ones(exact.shape[1])
    # the sensitivity counts f and g times kappa = r / 2; `release` divides by the weights again
    weights[-2:] = _KAPPA * plan.radius
    noisy = plan.noise.release(exact, source, weights)
    k, d, q = decoded.subspaces.shape
    return noisy[:, :-2].reshape(k, d - q, q), noisy[:, -2:]


def round_sums(
    X: np.ndarray, decoded: DecodedSubspaces, radius: float, groups: Groups | None = None
) -> FixedPoint:
    """Return exact sums over the rows of each cluster: f R raveled, f and g, (k, (d - q) q + 2).

    X is (n_samples, n_features), any floats; each row is scaled to norm 1. Every group has the
    weight of one row, with a contribution of at least r, far above a unit in every entry.
    """
    check_row_count(len(X))
    terms = ((n, [_sums_of_rows(rows, decoded, radius)]) for n, rows in by_size(groups, X))
    k, d, q = decoded.subspaces.shape
    return weighted_sums(terms, math.sqrt(k * ((d - q) * q + 2)) / radius)[0]


def _sums_of_rows(X: np.ndarray, decoded: DecodedSubspaces, radius: float) -> FixedPoint:
    """Return the sums of rows of equal weight."""
    k, d, q = decoded.subspaces.shape
    sums = np.zeros((k, (d - q) * q + 2), dtype=np.int64)
    inside, outside = (rounded_columns(part) for part in (decoded.subspaces, decoded.complements))
    for part in blocks(len(X), max(d * k, d * d)):
        rows = in_units(directions(X[part]), unit(1.0, d))
        labels = labels_by_subspace(rows, inside, k)
        for c in range(k):
            block = rows[labels == c]
            along = block @ inside[:, c * q : (c + 1) * q]
            across = block @ outside[:, c * (d - q) : (c + 1) * (d - q)]
            # multiples of 2^-30 in float64: exact, since a block has few rows
            total = np.zeros(sums.shape[1])
            _add_shortened(along, across, radius, total)
            sums[c] += FixedPoint.of_exact(total, SUM_BITS).integers
    return FixedPoint(sums, SUM_BITS)


@kernel()
def _add_shortened(along: np.ndarray, across: np.ndarray, radius: float, total: np.ndarray) -> None:
    """Add f R, f and g of each row, rounded independently; rows of zeros add nothing."""
    q = along.shape[1]
    for i in range(along.shape[0]):
        inside, outside = 0.0, 0.0
        for j in range(q):
            inside += along[i, j] * along[i, j]
        for j in range(across.shape[1]):
            outside += across[i, j] * across[i, j]
        length = np.sqrt(inside * outside)  # the Frobenius norm of R, which has rank 1
        factor = radius / length if length > radius else 1.0
        for a in range(across.shape[1]):
            for b in range(q):
                total[a * q + b] += rounded_term(factor * across[i, a] * along[i, b])
        if inside + outside > 0.0:
            total[-2] += rounded_term(factor)
            total[-1] += rounded_term(length / radius if length < radius else 1.0)


def combined(
    decoded: DecodedSubspaces,
    plan: RoundPlan,
    sums: np.ndarray,
    factors: np.ndarray,
    n_samples: float,
    rng: np.random.Generator,
) -> DecodedSubspaces:
    """Return the subspaces estimated from a sketch and a round together.

    `sums` and `factors` are those of `released`.
    """
    d, n_outside = decoded.complements.shape[1:]
    n_rows = decoded.weights * n_samples

    def misfit(level: _Simulated) -> float:
        off = level.factors / decoded.weights[:, None] - factors / n_rows[:, None]
        return float((off**2).sum())

    # the share of squares outside the subspaces that fits the released f and g
    shares = (share for share in _SHARES_OUTSIDE if share < n_outside / d)
    levels = [_simulated(decoded, plan.radius, rng, share) for share in shares]
    here = min(levels, key=misfit)
    # the slope of f R in T is proportional to f: use the released sum of f, not the row count
    scale = np.clip(factors[:, 0] / (here.factors[:, 0] * n_samples), *_SCALES)
    slopes = here.slopes * n_samples * scale[:, None]
    weights, by_noise, by_rows = _weighed(decoded, here, slopes, n_samples, plan.noise)
    # a direction without slope has weight 0: the divisor only avoids a division by 0
    estimates = sums / np.where(slopes > 0, slopes, 1.0)[:, None, :]
    tangents = (weights @ estimates.ravel()).reshape(estimates.shape)
    union = decoded.union.turned(tangents, decoded.complements)
    # rotate the complements with the subspaces, and keep their signs
    back = decoded.complements - decoded.subspaces @ tangents.transpose(0, 2, 1)
    back -= union.bases @ (union.bases.transpose(0, 2, 1) @ back)
    complements = np.linalg.qr(back)[0]
    signs = np.where(np.einsum("kij,kij->kj", complements, back) < 0, -1.0, 1.0)
    complements = complements * signs[:, None, :]
    return replace(
        decoded, union=union, complements=complements, by_noise=by_noise, by_rows=by_rows
    )


@dataclass(frozen=True)
class _Simulated:
    """Simulated averages over rows: slopes in T, squares, bias (k, q); f and g (k, 2)."""

    slopes: np.ndarray
    squares: np.ndarray
    bias: np.ndarray
    factors: np.ndarray


def _simulated(
    decoded: DecodedSubspaces,
    radius: float,
    rng: np.random.Generator,
    outside: float | None = None,
) -> _Simulated:
    """Return averages over rows of unions drawn from the posterior."""
    k, d, q = decoded.subspaces.shape
    root = _root(decoded.covariance)
    tangents = (rng.standard_normal((_N_UNIONS, len(root))) @ root.T).reshape(-1, k, d - q, q)
    sums = np.zeros(tangents.shape)
    squares, factors = np.zeros((k, q)), np.zeros((k, 2))
    for u, tangent in enumerate(tangents):
        rows = decoded.union.turned(tangent, decoded.complements).draw(_N_ROWS, rng, outside)
        inside = (rows @ decoded.subspaces.transpose(1, 0, 2).reshape(d, k * q)).reshape(-1, k, q)
        labels = (inside**2).sum(axis=2).argmax(axis=1)
        for c in range(k):
            along, across = inside[labels == c, c], rows[labels == c] @ decoded.complements[c]
            outside_squares = (across**2).sum(axis=1)
            lengths = np.sqrt((along**2).sum(axis=1) * outside_squares)
            f = radius / np.maximum(lengths, radius)
            weighted = f[:, None] * along
            sums[u, c] = across.T @ weighted / _N_ROWS
            squares[c] += outside_squares @ weighted**2 / (d - q)
            factors[c] += f.sum(), np.minimum(lengths / radius, 1.0).sum()
    squares, factors = squares / (_N_ROWS * _N_UNIONS), factors / (_N_ROWS * _N_UNIONS)
    energy = (tangents**2).sum(axis=(0, 2))
    # least squares of the sums on T; beyond sampling, the residual is a bias
    slopes = np.maximum((sums * tangents).sum(axis=(0, 2)) / energy, 0.0)
    left = ((sums - slopes[:, None, :] * tangents) ** 2).mean(axis=(0, 2))
    return _Simulated(slopes, squares, np.maximum(left - squares / _N_ROWS, 0.0), factors)


def _weighed(
    decoded: DecodedSubspaces,
    simulated: _Simulated,
    slopes: np.ndarray,
    n_samples: float,
    noise: Gaussian,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weights of a round against a sketch, and errors by noise and rows, (p, p) each.

    Noise of both is independent, but both use the same rows: their sampling errors add up. So
    weights depend only on noise and on the nonlinearity of rounds in T.
    """
    # keeps deviations finite where the slope is 0
    squares = np.maximum(slopes, 1e-12 * n_samples) ** 2
    precisions = squares / (noise.sigma**2 + n_samples**2 * simulated.bias)
    deviations = np.sqrt(n_samples * simulated.squares / squares)
    k, _, n_outside = decoded.complements.shape
    shape = k, n_outside, slopes.shape[1]
    of_noise, of_rows = (
        np.broadcast_to(column[:, None, :], shape).ravel() for column in (precisions, deviations)
    )
    # the error of rows is shared by both estimates and does not enter the weights
    of_sketch = np.linalg.inv(decoded.by_noise)  # precisions add up
    by_noise = np.linalg.inv(of_sketch + np.diag(of_noise))
    weights = by_noise * of_noise
    together = by_noise @ of_sketch @ _root(decoded.by_rows) + weights * of_rows
    return weights, by_noise, together @ together.T


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
