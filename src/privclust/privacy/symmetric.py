r"""Normal noise on symmetric matrices, such as sums of second moments.

A symmetric matrix has the coordinates :math:`M_{ii}` and :math:`w M_{ij}`, i < j. With the weight
:math:`w = \sqrt 2` their Euclidean norm is the matrix's Frobenius norm; with w = 1 they are the
entries of its upper triangle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privclust.privacy.accounting import Loss, calibrated, check_budget
from privclust.privacy.mechanisms import gaussian
from privclust.privacy.noise import NoiseSource
from privclust.privacy.sensitivity import Sensitivity
from privclust.validation import check_integer, check_real


@dataclass(frozen=True)
class SymmetricNoise:
    r"""Normal noise on upper triangles, whose entries beside the diagonal are weighted.

    Attributes
    ----------
    sensitivity : Sensitivity
        Of all coordinates of a round together, in the norm ``"l2"``.
    sigma : float
        Standard deviation of the noise on a coordinate, positive: on entries of the diagonal, and
        ``sigma / weight`` on those beside it.
    weight : float
        w, positive: :math:`\sqrt 2`, or 1.
    n_rounds : int
        How many times noise of this scale is to be added, which is what the loss is stated for.

    Raises
    ------
    ValueError
        If an attribute is out of its range.

    Examples
    --------
    >>> moved = Sensitivity(1.0, "l2", "add-remove", "|xx'| = |x|^2 <= 1")
    >>> noise = SymmetricNoise(moved, 0.5, math.sqrt(2.0), 1)
    >>> noised = noise.add(np.zeros((1, 2, 2)), np.random.default_rng(0))
    >>> noised.round(2)
    array([[[ 0.06, -0.05],
            [-0.05,  0.32]]])
    """

    sensitivity: Sensitivity
    sigma: float
    weight: float
    n_rounds: int

    def __post_init__(self) -> None:
        check_real("sigma", self.sigma)
        check_real("weight", self.weight)
        check_integer("n_rounds", self.n_rounds, minimum=1)

    def add(self, matrices: np.ndarray, source: NoiseSource) -> np.ndarray:
        """Return matrices with noise.

        Parameters
        ----------
        matrices : ndarray of shape (k, d, d)
            Symmetric; the upper triangles are read.
        source : SystemEntropy or numpy.random.Generator
            See `privclust.privacy.noise.noise_source`.

        Returns
        -------
        ndarray of shape (k, d, d), float64
            Symmetric.

        Raises
        ------
        ValueError
            If an entry is not finite.
        """
        rows, columns = np.triu_indices(matrices.shape[1])
        weights = np.where(rows == columns, 1.0, self.weight)
        coordinates = matrices[:, rows, columns] * weights
        noised = gaussian(coordinates, self.sensitivity, self.sigma, source) / weights
        result = np.empty(matrices.shape)
        result[:, rows, columns] = noised
        result[:, columns, rows] = noised
        return result


@lru_cache(maxsize=1024)
def round_share(epsilon: float, delta: float, n_rounds: int) -> float:
    r"""Return the largest sensitivity over noise of a normal release that can be done so often.

    Calibrated once for all fits with one budget. A round of share s costs :math:`s^2 / 2` of zCDP;
    all rounds together are converted exactly.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all rounds: epsilon in nats, positive; delta in (0, 1).
    n_rounds : int
        At least 1.

    Returns
    -------
    float
        s: the noise of a round is the sensitivity over s.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> round(round_share(1.0, 1e-6, 1), 3), round(round_share(1.0, 1e-6, 100), 4)
    (0.237, 0.0237)
    """
    check_integer("n_rounds", n_rounds, minimum=1)
    return calibrated(lambda share: [Loss(share**2 / 2.0, count=n_rounds)], epsilon, delta)


def mod_sulq_scale(n_features: int, epsilon: float, delta: float) -> float:
    r"""Return the noise of MOD-SuLQ on a sum of second moments, in place of their mean.

    On each entry of the upper triangle, for rows of norm at most 1,

    .. math:: n \beta = \frac{d+1}{\epsilon} \sqrt{2 \log \frac{d^2+d}{2 \sqrt{2 \pi} \delta}}
                  + \frac{1}{\sqrt{\epsilon}}.

    Parameters
    ----------
    n_features : int
        d, at least 1.
    epsilon, delta : float
        Budget of the release: epsilon in nats, positive; delta in (0, 1).

    Returns
    -------
    float
        Standard deviation.

    Raises
    ------
    ValueError
        If an argument is out of its range, or the logarithm is not positive: for one feature and a
        delta of 0.4 and more.

    References
    ----------
    K. Chaudhuri, A. Sarwate and K. Sinha, "A near-optimal algorithm for differentially private
    principal components", JMLR 14, 2013, Algorithm 1.

    Examples
    --------
    >>> round(mod_sulq_scale(3, 0.5, 1e-3), 2)
    32.97
    """
    check_integer("n_features", n_features, minimum=1)
    check_budget(epsilon, delta)
    d = n_features
    logarithm = math.log((d * d + d) / (2.0 * math.sqrt(2.0 * math.pi) * delta))
    if logarithm <= 0:
        raise ValueError(
            f"delta must be less than {(d * d + d) / (2.0 * math.sqrt(2.0 * math.pi)):.3g} for "
            f"{d} feature in MOD-SuLQ, whose noise has a logarithm that is not positive then, got "
            f"{delta!r}"
        )
    return (d + 1.0) / epsilon * math.sqrt(2.0 * logarithm) + 1.0 / math.sqrt(epsilon)
