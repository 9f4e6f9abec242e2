r"""Moments of rows in moving frames, and their private release.

A frame is a Gaussian that is known already (public or noisy): its mean m, a whitening factor W and
a radius r. A row is seen in it as :math:`v = \mathrm{clip}_1(W (x - m) / r)`, clipped to the unit
ball. With one frame a component, a release is of

.. math:: a \sum_i \gamma_{ik}, \quad b \sum_i \gamma_{ik} v_{ik}, \quad
          c \sum_i \gamma_{ik} v_{ik} v_{ik}'

for all components together: a sum over rows of :math:`(\gamma_{ik} \phi_k(x_i))_k` with
:math:`\phi = (a, b v, c v v')`. It does not matter that every component has a frame of its own.
For two rows,

.. math:: \Big\| (\gamma_k \phi_k - \gamma'_k \phi'_k)_k \Big\|^2
    \le \sum_k (\gamma_k^2 |\phi_k|^2 + \gamma_k'^2 |\phi'_k|^2 - 2 \gamma_k \gamma'_k
    \phi_k' \phi'_k) \le 2 (a^2 + b^2 + c^2) + 2 \max(0, -\min \phi' \phi'),

as responsibilities sum to one; and :math:`\phi' \phi' \ge a^2 + b^2 t + c^2 t^2` at
:math:`t = v'v' \in [-1, 1]`. The diagonal of v v' is a part of it, and changes by no more.

That holds for v as it is rounded. Responsibilities shared by K components are rounded as well, as
in `privclust.mixtures._perturbations`: both rows change the release by another
:math:`2 \sqrt{K d (b^2 + 2 c^2)}\, 2^{-19}` (and less), a part of :math:`\sqrt{K d}\, 2^{-18}` of
:math:`\sqrt{2 (a^2 + b^2 + c^2)}` at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from privclust.core.fixed_point import FACTOR_BITS, unit_margin
from privclust.mixtures import _exact_kernels
from privclust.mixtures._noisy_statistics import add_joint_noise
from privclust.mixtures._parameters import MixtureParameters
from privclust.mixtures._perturbations import RELATION, rounding
from privclust.mixtures.exact_statistics import ExactStatistics, summed_up, weighted_statistics
from privclust.privacy import Sensitivity
from privclust.privacy.groups import Groups, by_size
from privclust.privacy.measurements import Gaussian
from privclust.privacy.noise import NoiseSource


@dataclass(frozen=True)
class StatisticWeights:
    """How a release weighs counts, sums and second moments: a, b, c; and its l2 sensitivity."""

    counts: float
    sums: float
    seconds: float
    sensitivity: float

    def noise(self, share: float, count: int = 1) -> Gaussian:
        """Return what each of so many releases gets that costs share^2 / 2 in zCDP."""
        bound = Sensitivity(self.sensitivity, "l2", RELATION, "privclust.mixtures._frames")
        return Gaussian.of_share(bound, share, count)


def statistic_weights(
    covariance_type: str, n_features: int, radius: float, *, n_components: int = 1
) -> StatisticWeights:
    """Return the weights that cost the fitted density least.

    To second order, noise of variance s^2 / a^2 on a count of N costs the expected log density a
    multiple of 1 / 2 a^2; that on a sum d r^2 / 2 b^2; that on second moments p r^4 / c^2 with p a
    quarter of the free entries. A given sum of squares is divided best as the roots of these.
    The radius r is in standard deviations, `n_components` how many share a row.
    """
    d, r2 = n_features, radius**2
    entries = {"full": d * (d + 1) / 8.0, "diag": d / 4.0, "spherical": 1.0 / (4.0 * d)}
    a2 = math.sqrt(0.5)
    b2, c2 = math.sqrt(d * r2 / 2.0), math.sqrt(entries[covariance_type]) * r2
    a2 = max(a2, -_least_product(b2, c2))  # then phi'phi' >= 0
    sensitivity = math.sqrt(2.0 * (a2 + b2 + c2)) * rounding(n_components, d, "l2")
    return StatisticWeights(math.sqrt(a2), math.sqrt(b2), math.sqrt(c2), sensitivity)


def _least_product(b2: float, c2: float) -> float:
    """Least value of b^2 t + c^2 t^2 over t in [-1, 1]."""
    t = max(-1.0, -b2 / (2.0 * c2))
    return b2 * t + c2 * t * t


@dataclass(frozen=True)
class FrameMoments:
    """Noisy moments in frames, with the standard deviations of their noise.

    Noise is that of an entry, of a full second moment on its diagonal.
    """

    counts: np.ndarray  # (k,)
    sums: np.ndarray  # of v, the rows in units of the radius, (k, d)
    seconds: np.ndarray  # of v v', its diagonal, or |v|^2: (k, d, d), (k, d) or (k,)
    count_noise: float
    sum_noise: float
    second_noise: float


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
) -> FrameMoments:
    """Release the moments of rows, or of groups, in the frames of a mixture's components.

    Each component is a frame of a radius r in its standard deviations, and decides with the others
    who belongs to it. Frames are in units of the `bound` on rows. Noise comes from the weights.
    """
    exact = weighted_statistics(
        by_size(groups, X), lambda rows: clipped_moments(rows, frames, radius, bound=bound)
    )
    abc = weights.counts, weights.sums, weights.seconds
    parts = exact.counts, exact.sums, exact.second_moments
    noisy = add_joint_noise(noise, *parts, source, abc).of_unit(exact.unit)
    noises = [noise.sigma / weight for weight in abc]
    return FrameMoments(noisy.counts, noisy.sums, noisy.second_moments, *noises)


def clipped_moments(
    X: np.ndarray, frames: MixtureParameters, radius: float, *, bound: float = 1.0
) -> ExactStatistics:
    """Return counts, sums and second moments in frames, without noise."""
    unit = unit_margin(X.shape[1], FACTOR_BITS)
    parameters = frames.log_scales, frames.means, frames.whitening
    arguments = (1.0 / bound, *parameters, radius, unit)
    sums = summed_up(_exact_kernels.clipped_moments, X, arguments, frames)
    return ExactStatistics(*sums, unit)


def chi_radius(n_features: int, part: float) -> float:
    """Return the radius that holds a part of a standard normal distribution in d dimensions."""
    return float(np.sqrt(chi2.ppf(part, n_features)))


def clipping_factor(n_features: int, radius: float) -> float:
    """Return by what the second moment of a standard normal shrinks when clipped to a radius."""
    r2, d = radius**2, n_features
    return float(chi2.cdf(r2, d + 2) + r2 / d * chi2.sf(r2, d))
