r"""Whether a sketch tells of clusters, and of data within bounds, or of its own noise.

*Clusters.* An atom is *clear* if it explains `NATS_PER_NUMBER` nats for each of its d + 2 numbers.
A nat is a residual of twice the variance of a feature's real or imaginary part, by noise and by
sampling. Noise alone lets a number explain half a nat, and more where the best of many places is
sought; clusters that can be seen explain ten and more.

*Bounds.* For any data in a box with center c and half widths h the feature at :math:`\omega` has

.. math::
    \Re z(\omega) e^{-i \omega' c} \ge \cos \varphi, \qquad
    \varphi = \sum_i |\omega_i| h_i \le \pi / 2,

since no phase is above :math:`\varphi`. The sum over such frequencies of what is missing has noise
of known variance. Data in the box miss `BOX_DEVIATIONS` standard deviations of it with a
probability of at most 0.2 % (Laplace noise at one frequency, the worst), whatever the data are.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import cdist

from privclust.privacy.bounds import Box

NATS_PER_NUMBER = 5.0
BOX_DEVIATIONS = 4.0
_ROUNDING = 1e-9  # of features and phases
_LEAST_SCALE = 1e-6  # of an axis of an atom's covariance, to the longest of all


def clear_atoms(losses: np.ndarray, atoms: tuple, of_one_number: float) -> np.ndarray:
    """Return which atoms explain more than noise lets one explain, (n_atoms,), bool.

    Parameters
    ----------
    losses : ndarray of shape (n_atoms,)
        By how much the residual would rise without each.
    atoms : tuple
        Weights (K,), centers (K, d) and standard deviations (K,), or factors L (K, d, d) of
        covariances L L'.
    of_one_number : float
        Variance of the real or imaginary part of a feature.

    Examples
    --------
    >>> atoms = np.ones(2), np.zeros((2, 1)), np.ones(2)
    >>> clear_atoms(np.array([100.0, 20.0]), atoms, 1.0)
    array([ True, False])
    """
    _, centers, spreads = atoms
    d = centers.shape[1]
    numbers = d + 2 if spreads.ndim == 1 else 1 + d + d * (d + 1) // 2
    return losses > NATS_PER_NUMBER * numbers * 2.0 * of_one_number


def likeliest_atoms(
    points: np.ndarray, weights: np.ndarray, centers: np.ndarray, spreads: np.ndarray
) -> np.ndarray:
    """Return the atom of largest density at each point, (n_points,), int64.

    Atoms are as of `clear_atoms`, of positive spread.

    Examples
    --------
    >>> atoms = np.array([0.9, 0.1]), np.array([[0.0], [3.0]]), np.array([5.0, 0.1])
    >>> likeliest_atoms(np.array([[0.0], [3.0]]), *atoms)
    array([0, 1])
    """
    d = points.shape[1]
    if spreads.ndim == 1:
        squares = cdist(points, centers, "sqeuclidean") / spreads**2
        log_volumes = d * np.log(spreads)
    else:
        singular, scales, _ = np.linalg.svd(spreads)
        scales = np.maximum(scales, _LEAST_SCALE * scales.max())
        offsets = np.einsum("kij,pki->pkj", singular, points[:, None] - centers) / scales
        squares, log_volumes = (offsets**2).sum(axis=2), np.log(scales).sum(axis=1)
    with np.errstate(divide="ignore"):
        heights = np.log(weights) - log_volumes - 0.5 * squares
    return heights.argmax(axis=1)


def is_outside(
    features: np.ndarray,
    frequencies: np.ndarray,
    variance: float,
    of_count: float,
    box: Box,
) -> bool:
    """Return whether a sketch says that data lie outside a box.

    Parameters
    ----------
    features : ndarray of shape (m,), complex
        Means of exp(i omega'x), with noise.
    frequencies : ndarray of shape (n_features, m)
    variance : float
        Of the noise on real and imaginary parts, and of what masks leave out.
    of_count : float
        Variance of a noisy number of records, in squares of it.
    box : Box

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
