r"""Moments of rows in moving frames, and their private release.

A frame is a Gaussian with known (public or noisy) parameters: mean m, whitening factor W and
radius r. The coordinates of a row x are :math:`v = \mathrm{clip}_1(W (x - m) / r)`, clipped to the
unit ball. With one frame per component, a release contains

.. math:: a \sum_i \gamma_{ik}, \quad b \sum_i \gamma_{ik} v_{ik}, \quad
          c \sum_i \gamma_{ik} v_{ik} v_{ik}'

for all components together: a sum over rows of :math:`(\gamma_{ik} \phi_k(x_i))_k` with
:math:`\phi = (a, b v, c v v')`. Each component may have its own frame. For two rows,

.. math:: \Big\| (\gamma_k \phi_k - \gamma'_k \phi'_k)_k \Big\|^2
    \le \sum_k (\gamma_k^2 |\phi_k|^2 + \gamma_k'^2 |\phi'_k|^2 - 2 \gamma_k \gamma'_k
    \phi_k' \phi'_k) \le 2 (a^2 + b^2 + c^2) + 2 \max(0, -\min \phi' \phi'),

as responsibilities sum to one; and :math:`\phi' \phi' \ge a^2 + b^2 t + c^2 t^2` at
:math:`t = v'v' \in [-1, 1]`. The same bound holds if only the diagonal of v v' is released.

The bound holds for rounded v. Responsibilities shared by K components are rounded as well, as in
`privclust.mixtures._perturbations`. This changes the release by less than
:math:`2 \sqrt{K d (b^2 + 2 c^2)}\, 2^{-19}` for both rows together, at most
:math:`\sqrt{K d}\, 2^{-18}` relative to :math:`\sqrt{2 (a^2 + b^2 + c^2)}`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from privclust.core.fixed_point import FACTOR_BITS, unit_margin
from privclust.mixtures._noisy_statistics import NoisedStatistics, add_joint_noise
from privclust.mixtures._parameters import MixtureParameters
from privclust.mixtures._perturbations import RELATION, rounding
from privclust.mixtures.exact_statistics import ExactStatistics, summed_up, weighted_statistics
from privclust.privacy import Sensitivity
from privclust.privacy.groups import Groups, by_size
from privclust.privacy.measurements import Gaussian
from privclust.privacy.noise import NoiseSource


@dataclass(frozen=True)
class StatisticWeights:
    """Weights a, b, c of counts, sums and second moments in a release, and its l2 sensitivity."""

    counts: float
    sums: float
    seconds: float
    sensitivity: float

    def noise(self, share: float, count: int = 1) -> Gaussian:
        """Return the noise of each of `count` releases with a zCDP loss of share^2 / 2 each."""
        bound = Sensitivity(self.sensitivity, "l2", RELATION, "privclust.mixtures._frames")
        return Gaussian.of_share(bound, share, count)

    def deviations(self, noise: Gaussian) -> list[float]:
        """Return the noise on a count, on a sum, and on a diagonal entry of second moments."""
        return [noise.sigma / weight for weight in (self.counts, self.sums, self.seconds)]


def statistic_weights(
    covariance_type: str, n_features: int, radius: float, *, n_components: int = 1
) -> StatisticWeights:
    """Return the weights that minimise the loss of expected log density.

    To second order, the noise lowers the expected log density by multiples of 1 / 2 a^2 (counts),
    d r^2 / 2 b^2 (sums) and p r^4 / c^2 (second moments), with p a quarter of the number of free
    entries. For a given a^2 + b^2 + c^2, the optimal squares are proportional to the roots of these
    factors. The radius r is in standard deviations.
    """
    d, r2 = n_features, radius**2
    # p; a spherical variance is a sum over d axes, divided by d: d / 4 / d^2
    entries = {"full": d * (d + 1) / 8.0, "diag": d / 4.0, "spherical": 1.0 / (4.0 * d)}
    a2 = math.sqrt(0.5)
    b2, c2 = math.sqrt(d * r2 / 2.0), math.sqrt(entries[covariance_type]) * r2
    a2 = max(a2, -_least_product(b2, c2))  # then phi'phi' >= 0
    sensitivity = math.sqrt(2.0 * (a2 + b2 + c2)) * rounding(n_components, d, "l2")
    return StatisticWeights(math.sqrt(a2), math.sqrt(b2), math.sqrt(c2), sensitivity)


def _least_product(b2: float, c2: float) -> float:
    """Return the minimum of b^2 t + c^2 t^2 over t in [-1, 1]."""
    t = max(-1.0, -b2 / (2.0 * c2))
    return b2 * t + c2 * t * t


def release_moments(
    X: np.ndarray,
    frames: MixtureParameters,
    radius: float,
    weights: StatisticWeights,
    noise: Gaussian,
    source: NoiseSource,
    *,
    bound: float = 1.0,
    groups: Groups | None = None,
) -> NoisedStatistics:
    """Release the moments of rows, or of groups, in the frames of a mixture's components.

    They are counts (k,), sums of v (k, d), and sums of v v' (k, d, d), its diagonal (k, d) or |v|^2
    (k,), with v the rows in units of the radius.

    The mixture gives responsibilities and frames, in units of the `bound` on rows. `radius` is in
    standard deviations. The noise on each part is divided by its weight: see
    `StatisticWeights.deviations`.
    """
    exact = weighted_statistics(
        by_size(groups, X), lambda rows: clipped_moments(rows, frames, radius, bound=bound)
    )
    abc = weights.counts, weights.sums, weights.seconds
    parts = exact.counts, exact.sums, exact.second_moments
    return add_joint_noise(noise, *parts, source, abc).of_unit(exact.unit)


def clipped_moments(
    X: np.ndarray, frames: MixtureParameters, radius: float, *, bound: float = 1.0
) -> ExactStatistics:
    """Return exact counts, sums and second moments in frames."""
    return summed_up(X, 1.0 / bound, frames, unit_margin(X.shape[1], FACTOR_BITS), radius)


def chi_radius(n_features: int, part: float) -> float:
    """Return the radius of the ball with probability `part` under a standard normal law."""
    return float(np.sqrt(chi2.ppf(part, n_features)))


def clipping_factor(n_features: int, radius: float) -> float:
    """Return the second moment per coordinate of a standard normal vector clipped to a radius."""
    r2, d = radius**2, n_features
    return float(chi2.cdf(r2, d + 2) + r2 / d * chi2.sf(r2, d))
