r"""Whether clusters of a sketch are distinguishable from noise, and data lie within the bounds.

*Clusters.* Atoms are deleted, the least important first, until each of the others explains
`NATS_PER_NUMBER` nats for each of its d + 2 numbers. A nat is a residual of twice the variance of a
feature's real or imaginary part, by noise and by sampling. Fitted to noise, a number explains half
a nat, or more at the best of many places; visible clusters explain at least ten. Points are drawn
from the density. A center is *detected* if at half of the points nearest to it the remaining atoms
have at least half of the density. No center was detected in 400 fits to pure noise, and every
center in 40 fits to 3 to 5 clusters of 100,000 rows at epsilon 1 (benchmarks/noise_warnings.py).

*Bounds.* For any data in a box with center c and half widths h the feature at :math:`\omega` has

.. math::
    \Re z(\omega) e^{-i \omega' c} \ge \cos \varphi, \qquad
    \varphi = \sum_i |\omega_i| h_i \le \pi / 2,

since no phase is above :math:`\varphi`. The shortfall, summed over such frequencies, has noise of
known variance. For any data in the box it exceeds `BOX_DEVIATIONS` standard deviations with a
probability of at most 0.2 % (the worst case: Laplace noise at one frequency).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from privclust.decoding._ellipsoids import n_numbers
from privclust.decoding._gaussians import log_parts
from privclust.privacy.bounds import Box

NATS_PER_NUMBER = 5.0  # that a detected atom must explain
BOX_DEVIATIONS = 4.0  # shortfall of features, in its deviations, by data outside the bounds
_ROUNDING = 1e-9  # rounding errors of features and phases


def least_loss(spreads: np.ndarray, n_features: int, of_one_number: float) -> float:
    """Return the least increase of the residual by deleting a detected atom.

    Spreads are standard deviations (K,) or factors L (K, d, d) of covariances L L'; `of_one_number`
    is the variance of the real or imaginary part of a feature.

    Examples
    --------
    >>> least_loss(np.ones(3), 2, 0.5)
    20.0
    """
    numbers = n_features + 2 if spreads.ndim == 1 else n_numbers(1, n_features)
    return 2.0 * NATS_PER_NUMBER * numbers * of_one_number


def least_weight(variances: np.ndarray, squares: np.ndarray, least: float) -> float:
    r"""Return the fraction of rows below which an atom as wide as others is not detected.

    An atom of weight :math:`\alpha` and variance v explains at most
    :math:`\alpha^2 \sum_j e^{-v |\omega_j|^2}`, wherever it lies. v is the median of the
    `variances` of other atoms; `squares` (m,) are those of the frequencies, `least` is
    `least_loss`.
    """
    norm = float(np.exp(-np.median(variances) * squares).sum())
    return min(math.sqrt(least / norm), 1.0) if norm > 0.0 else 1.0


def holds_most(points: np.ndarray, detected: tuple, whole: tuple) -> np.ndarray:
    """Return at which points detected atoms have at least half of the density, (n_points,).

    Mixtures are weights (K,), of any sum, centers (K, d), and positive standard deviations (K,) or
    factors L (K, d, d) of covariances L L'.

    Examples
    --------
    >>> detected = np.ones(1), np.zeros((1, 1)), np.ones(1)
    >>> whole = np.array([0.8, 0.2]), np.array([[0.0], [9.0]]), np.ones(2)
    >>> holds_most(np.array([[0.5], [9.0]]), detected, whole)
    array([ True, False])
    """
    if not len(detected[0]):
        return np.zeros(len(points), dtype=bool)
    return _log_density(points, *detected) >= _log_density(points, *whole) - math.log(2.0)


def _log_density(points, weights, centers, spreads):
    """Return the logarithm of a mixture's density up to a constant; weights have any sum."""
    parts = weights / weights.sum() if weights.sum() > 0.0 else weights
    return logsumexp(log_parts(points, parts, centers, spreads), axis=1)


def is_outside(
    features: np.ndarray, frequencies: np.ndarray, variance: float, of_count: float, box: Box
) -> bool:
    """Return whether a sketch shows that data lie outside a box.

    Features (m,) are noisy means of exp(i omega'x). `variance` is that of the noise on real and
    imaginary parts plus that of sampling by masks; `of_count` is the relative variance of a noisy
    number of records.

    Examples
    --------
    >>> frequencies, box = np.array([[0.5, 1.0]]), Box(np.zeros(1), np.ones(1))
    >>> [is_outside(np.exp(1j * x * frequencies[0]), frequencies, 1e-4, 0.0, box) for x in (1, 6)]
    [False, True]
    """
    widest = np.abs(frequencies).T @ box.half_widths
    low = widest < 0.5 * math.pi
    if not low.any():
        return False
    turned = features[low] * np.exp(-1j * (box.center @ frequencies[:, low]))
    least = np.cos(widest[low])
    missing = float((least - turned.real).sum())
    deviation = math.sqrt(np.sum(low) * variance + of_count * float(least.sum()) ** 2)
    return bool(missing > BOX_DEVIATIONS * deviation + _ROUNDING * np.sum(low))
