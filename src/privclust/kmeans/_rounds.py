r"""Eight noisy rounds that move decoded centers to the means of their clusters.

**A move.** The offset of a center c from the mean of its rows is unknown, with variance A in each
coordinate. A round measures it with an error of variance :math:`\tau^2 = (\sigma r / n)^2`, n the
number of rows. The center makes the fraction :math:`A / (A + \tau^2)` of the measured move
:math:`\Delta`. The variance :math:`V = A \tau^2 / (A + \tau^2)` is left, as in a Kalman filter.
Before the next round A is V / 0.8, but no more than before this one, since rows change clusters.
:math:`|\Delta|^2 / d - \tau^2` estimates A as well. If its median over clusters is far above A, the
difference is added to A (empirical Bayes).

**The radius** contains 95 % of a Gaussian cluster of variance :math:`A + s^2`. It is up to twice as
large if noise is small compared with the spread, since clipping moves the means of skewed clusters.
The variance within clusters, :math:`s^2`, is that of the decoder, the same for all clusters.
Numbers of rows are averages over rounds with larger weights for later rounds. They are shrunk
towards equal numbers, as far as noise explains the difference.

**Two clusters with one center** have a measured spread far above the median, and elsewhere two
centers share a cluster. Merging two centers raises the loss by
:math:`n_i n_j / (n_i + n_j) (|c_i - c_j|^2 - \text{noise})`. The cheapest pair is merged, and the
free center splits the wide cluster, if that gains more. This happens in rounds 2 to 6; two more
find the new means.

The rounds have fixed shares of the budget, so that their privacy losses add up. Everything except
the sums over rows is post-processing.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.distance import cdist

from privclust.core.lloyd import nearest_center
from privclust.decoding._mixture_decoder import Decoded
from privclust.kmeans.last_rounds import Round, RoundSums, radius_of_cluster, release_round
from privclust.privacy.bounds import Box
from privclust.privacy.groups import Groups
from privclust.privacy.measurements import Gaussian
from privclust.privacy.noise import NoiseSource

# benchmarks/ablation.py measures the effect of these constants on the loss
_N_ROUNDS = 8  # rounds in all features
_OF_MEAN = 0.04  # share of the rounds' budget for the mean of all rows, after a projection
_SPLITTING = range(1, 6)  # rounds that may split clusters
_KEPT = 0.8  # weight of a round relative to the next: the clusters change between rounds
_START_ERROR = 0.25  # variance of decoded centers about means, as a fraction of the spread
_UNLIKELY = 2.5  # deviations above the prediction from which the median offset raises A
_LEAST_PART = 0.1  # least number of rows of a cluster, as a fraction of n / k
# noise, as a fraction of the spread, below which a radius grows; largest factor by which it does
_SMALL_NOISE, _WIDEST = 0.01, 2.0
_LEAST_RADIUS = 1e-9  # as a fraction of half the diagonal of the box
_WIDE = 3.5  # standard deviations above the median from which a spread is that of two clusters
_GAIN = 1.5  # a split must lower the loss by this times what the merge of two centers adds
_APART = 0.05  # distance of split centers, as a fraction of the root of the excess spread


def parts_of_rounds(*, projected: bool) -> tuple[float, ...]:
    """Return the fractions of the budget of all rounds, which add up to 1."""
    if not projected:
        return (1.0 / _N_ROUNDS,) * _N_ROUNDS
    return (_OF_MEAN, *((1.0 - _OF_MEAN) / _N_ROUNDS,) * _N_ROUNDS)


def centers_by_rounds(
    X: np.ndarray,
    labels: np.ndarray,
    box: Box,
    decoded: Decoded,
    n_samples: float,
    noises: list[Gaussian],
    source: NoiseSource,
    rng: np.random.Generator,
    groups: Groups | None = None,
) -> tuple[list[Round], np.ndarray]:
    """Find centers in all features by rounds with these `noises`, from `decoded` centers.

    These may be in a projection, centered on the middle of the box. The generator draws directions
    of splits. Returns the rounds, and whether each center was moved to another cluster.
    """
    d, rounds = X.shape[1], []
    if decoded.centers.shape[1] == d:
        clusters = _Clusters(decoded.centers, _START_ERROR * decoded.spread, decoded, n_samples)
    else:
        # after a projection, the first round finds the mean of all rows, where all centers start
        mean, *noises = noises
        # the middle is the origin of a projection of any number of directions
        middle = _Clusters(box.center[None], decoded.mean_square(np.zeros(1)), decoded, n_samples)
        # the mean square about the middle has the rows' spread in it already
        middle.spread = 0.0
        everywhere = np.zeros(len(X), dtype=np.int64)
        radius = middle.radius(mean.sigma, box)
        released = release_round(X, everywhere, middle.centers, radius, mean, source, groups)
        rounds.append(middle.moved(released))
        between = decoded.mean_square(decoded.weights @ decoded.centers) - decoded.spread
        centers = np.repeat(middle.centers, len(decoded.centers), axis=0)
        clusters = _Clusters(centers, between + middle.unknown[0], decoded, n_samples)
    is_split = np.zeros(len(decoded.centers), dtype=bool)
    for number, noise in enumerate(noises):
        radius = clusters.radius(noise.sigma, box)
        released = release_round(X, labels, clusters.centers, radius, noise, source, groups)
        rounds.append(clusters.moved(released))
        if number in _SPLITTING:
            is_split |= clusters.split(rounds[-1], rng)
        labels = nearest_center(X, clusters.centers)
    return rounds, is_split


class _Clusters:
    """Centers, with their estimated errors, row counts and spread.

    `unknown` is A: the variance of a coordinate of a center about the mean of its rows. `spread` is
    the decoded variance of a feature within clusters.
    """

    def __init__(
        self, centers: np.ndarray, unknown: float, decoded: Decoded, n_samples: float
    ) -> None:
        k = len(centers)
        self.centers, self.unknown = centers, np.full(k, max(unknown, 0.0))
        self.spread, self._equal = decoded.spread, max(n_samples, 1.0) / k
        self.rows = np.full(k, self._equal)
        self._totals, self._weight, self._squares = np.zeros(k), 0.0, 0.0

    def radius(self, sigma: float, box: Box) -> np.ndarray:
        """Return the radius of each cluster for a round with noise, (n_clusters,)."""
        d = self.centers.shape[1]
        spread = self.unknown + self.spread
        radius = radius_of_cluster(1.0, d) * np.sqrt(spread)
        noise = (sigma * radius / self._equal) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            # noise grows with the squared radius: at this factor it is _SMALL_NOISE of the spread
            reach = np.sqrt(_SMALL_NOISE * spread / noise)
        radius = radius * np.clip(np.nan_to_num(reach, nan=1.0), 1.0, _WIDEST)
        half = float(np.linalg.norm(box.half_widths))
        return np.clip(radius, _LEAST_RADIUS * half, 2.0 * half)

    def moved(self, released: RoundSums) -> Round:
        """Move the centers by a released round; return the clusters."""
        d = self.centers.shape[1]
        count_noise = self._counted(released)
        radius, sigma = released.radius, released.noise.sigma
        errors = (sigma * radius / self.rows) ** 2
        moves = radius[:, None] * released.sums / self.rows[:, None]
        beyond = (moves**2).sum(axis=1) / d - errors
        more = float(np.median(beyond - self.unknown))
        # a mean of d k squares has the relative deviation sqrt(2 / (d k))
        unlikely = _UNLIKELY * math.sqrt(2.0 / (d * len(errors))) * np.median(self.unknown + errors)
        unknown = self.unknown + (more if more > unlikely else 0.0)
        kept = unknown / (unknown + errors)  # the Kalman gain
        self.centers = self.centers + kept[:, None] * moves
        self.unknown = np.minimum(kept * errors / _KEPT, unknown)
        squares, noise = (part / d for part in released.mean_squares(self.rows))
        # squares are about the old center: the squared move is subtracted
        told = np.sqrt(kept * errors), squares - np.maximum(beyond, 0.0), noise
        told = *told, released.extent, released.noise
        return Round(self.centers.copy(), self._means, count_noise, *told)

    def _counted(self, released):
        """Average counts over rounds; return the standard deviation of the averages' noise."""
        self._totals = _KEPT * self._totals + released.counts
        self._weight = _KEPT * self._weight + 1.0
        self._squares = _KEPT**2 * self._squares + 1.0
        self._means = self._totals / self._weight
        variance = released.count_noise**2 * self._squares / self._weight**2
        # shrink the averages towards n / k by the ratio of their own variance to that with noise
        own = max(float(((self._means - self._equal) ** 2).mean()) - variance, 0.0)
        rows = self._equal + own / (own + variance) * (self._means - self._equal)
        self.rows = np.maximum(rows, max(_LEAST_PART * self._equal, 1.0))
        return math.sqrt(variance)

    def split(self, last: Round, rng: np.random.Generator) -> np.ndarray:
        """Merge centers of one cluster and split wide ones; return which, (n_clusters,)."""
        (k, d), rows = self.centers.shape, self.rows
        is_split = np.zeros(k, dtype=bool)
        noise = d * (self.unknown[:, None] + self.unknown)
        costs = np.maximum(cdist(self.centers, self.centers, "sqeuclidean") - noise, 0.0)
        costs *= rows[:, None] * rows / (rows[:, None] + rows)
        np.fill_diagonal(costs, np.inf)
        beyond = last.spreads - np.median(last.spreads)
        gains = 0.5 * rows * d * beyond  # half of the excess of squared distances
        for wide in np.argsort(-gains, kind="stable"):
            if beyond[wide] <= _WIDE * last.spread_noise[wide] or is_split[wide]:
                continue
            others = costs.copy()
            others[wide] = others[:, wide] = np.inf
            i, j = np.unravel_index(np.argmin(others), costs.shape)
            if not gains[wide] > _GAIN * others[i, j]:
                continue
            part = rows[i] / (rows[i] + rows[j])
            self.centers[i] = part * self.centers[i] + (1.0 - part) * self.centers[j]
            # a small step in a random direction: the next rounds separate the two centers
            way = rng.standard_normal(d)
            way *= _APART * math.sqrt(d * beyond[wide]) / np.linalg.norm(way)
            self.centers[j] = self.centers[wide] - way
            self.centers[wide] = self.centers[wide] + way
            self._totals[i] += self._totals[j]
            self._totals[[j, wide]] = 0.5 * self._totals[wide]
            self.unknown[[j, wide]] = beyond[wide]
            taken = [i, j, wide]
            is_split[taken] = True
            costs[taken] = costs[:, taken] = np.inf
        return is_split
