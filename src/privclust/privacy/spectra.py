r"""Inference on a second moment matrix, only from its released noisy version.

**Whether a subspace is distinguishable from noise** (`detected_subspaces`). Let N be the noise of
`SymmetricGaussian`: :math:`N(0, \sigma^2)` on the diagonal, :math:`N(0, \sigma^2 / w^2)` off it, w
at most :math:`\sqrt 2`. Its largest eigenvalue has mean at most :math:`2 \sigma \sqrt d / w`, by
comparison with the Gaussian orthogonal ensemble, and in the coordinates of the noise it has
Lipschitz constant :math:`\sqrt 2 / w`, so that it exceeds

.. math:: T = \frac{\sigma}{w} (2 \sqrt d + t \sqrt 2)

with probability at most :math:`e^{-t^2/2}`: 3.4e-4 for t = 4, and twice that for the norm.

*The rule*: the gap between the eigenvalues q and q + 1 of a noisy matrix (or eigenvalue q and
zero, if q = d) is compared with T. If g is the gap of the matrix itself, the leading subspace is
rotated by an angle of sine at most :math:`\|N\| / (g - \|N\|)` (Davis and Kahan): a gap below T has
no information on the direction.

*False alarms*: by Weyl's inequality the noisy gap is at least :math:`g - 2 \|N\|`. If g is above 3
T, there is a warning with probability at most 6.7e-4 for each matrix. *Misses*: in pure noise the
gap is above T with probability 1e-4 for d = 2, and less for larger d.

**The matrix without its noise** (`estimated_moments`). A map of M + N that commutes with rotations
gives a matrix that commutes with the same reflections as M + N and so has the same eigenvectors v:
it can improve only the eigenvalues. The best ones are v'Mv. By Stein's identity, with eigenvalues
:math:`\lambda_i` of M + N,

.. math:: E\, v_i' M v_i = E \Bigl[\lambda_i - \sum_{j \ne i}
          \frac{\sigma^2 c_{ij}}{\lambda_i - \lambda_j}\Bigr], \quad
          c_{ij} = \frac{2}{w^2} + \Bigl(2 - \frac{4}{w^2}\Bigr) \sum_a v_{ia}^2 v_{ja}^2,

which is 1 for w of :math:`\sqrt 2`. This sum has infinite variance because of eigenvalues close to
one another. Stein's isotonic regression replaces the estimates by the nearest ones in the order of
the eigenvalues, which are means over such groups. Finally, the matrix is projected onto the
positive semidefinite ones with a nuclear norm of at most the noisy trace (d'Orsi and Novikov):
the same number is subtracted from all eigenvalues, and negative ones are set to 0.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import isotonic_regression

from privclust.core.warn import warn_caller
from privclust.privacy.guarantee import NoiseWarning
from privclust.privacy.measurements import SymmetricGaussian

_DEVIATIONS = 4.0  # t of the threshold T
_LEAST_GAP = 1e-6  # least divisor, in sigma: closer eigenvalues are pooled, and divisors cancel


def spectral_bound(noise: SymmetricGaussian, n_features: int) -> float:
    """Return T, which the norm of the noise exceeds with probability 6.7e-4 at most."""
    return noise.off_diagonal * (2.0 * math.sqrt(n_features) + _DEVIATIONS * math.sqrt(2.0))


def detected_subspaces(
    noisy: np.ndarray, dimension: int, noise: SymmetricGaussian, *, of: str
) -> np.ndarray:
    """Return which leading subspaces of noisy matrices (k, d, d) are detected, (k,).

    `of` is a plural noun for the warning, such as the components.

    Warns
    -----
    NoiseWarning
        The warning depends only on `noisy` and is as private.
    """
    values = np.linalg.eigvalsh(noisy)[:, ::-1]
    beyond = values[:, dimension] if dimension < values.shape[1] else 0.0
    gaps = values[:, dimension - 1] - beyond
    is_detected = gaps > spectral_bound(noise, values.shape[1])
    if not is_detected.all():
        warn_caller(
            f"noise may hide {int((~is_detected).sum())} of {len(noisy)} {of}: the gap between "
            f"eigenvalue {dimension} of the noisy moments and the next is below what noise alone "
            "may reach. More rows, a larger epsilon or delta, a smaller norm_bound or fewer "
            "features help",
            NoiseWarning,
        )
    return is_detected


def estimated_moments(noisy: np.ndarray, noise: SymmetricGaussian) -> np.ndarray:
    """Return an estimate of a matrix from its noisy version (d, d), with corrected eigenvalues.

    It is positive semidefinite, with the eigenvectors of `noisy`, and its trace if positive.

    References
    ----------
    C. Stein, "Estimation of a covariance matrix", Rietz lecture, 1975; T. d'Orsi and G. Novikov,
    "On purely private covariance estimation", ALT 2026, arXiv 2510.26717.

    Examples
    --------
    >>> from privclust.privacy import Sensitivity
    >>> noise = SymmetricGaussian(Sensitivity(1.0, "l2", "add-remove", "|x|^2 <= 1"), sigma=2.0)
    >>> estimated_moments(np.diag([9.0, 1.0, -1.0]), noise).round(2)
    array([[8.1 , 0.  , 0.  ],
           [0.  , 0.45, 0.  ],
           [0.  , 0.  , 0.45]])
    """
    values, vectors = np.linalg.eigh(noisy)
    gaps = values[:, None] - values
    least = _LEAST_GAP * noise.sigma
    shares = _pair_weights(vectors, noise.weight) * np.sign(gaps) / np.maximum(abs(gaps), least)
    ordered = isotonic_regression(values - noise.sigma**2 * shares.sum(axis=1)).x
    half = vectors * np.sqrt(onto_nuclear_ball(ordered, float(np.trace(noisy))))
    return half @ half.T


def _pair_weights(vectors: np.ndarray, weight: float) -> np.ndarray:
    """Return c, (d, d), for eigenvectors in the columns."""
    squares = np.square(vectors)
    return 2.0 / weight**2 + (2.0 - 4.0 / weight**2) * (squares.T @ squares)


def onto_nuclear_ball(values: np.ndarray, radius: float) -> np.ndarray:
    """Return the nearest numbers of at least 0 with a sum of at most `radius` (0 below 0).

    For eigenvalues: those of the nearest positive semidefinite matrix with that nuclear norm.

    Examples
    --------
    >>> onto_nuclear_ball(np.array([5.0, 2.0, -1.0]), 5.0)
    array([4., 1., 0.])
    """
    if radius <= 0.0:
        return np.zeros_like(values)
    if np.maximum(values, 0.0).sum() <= radius:
        return np.maximum(values, 0.0)
    # subtract one number from all: that of the last rank that stays positive
    falling = np.sort(values)[::-1]
    cuts = (np.cumsum(falling) - radius) / np.arange(1, len(values) + 1)
    return np.maximum(values - cuts[np.flatnonzero(falling > cuts)[-1]], 0.0)
