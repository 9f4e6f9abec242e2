"""Cases of the privacy audit: sample and aggregate, Gibbs samplers and SuLQ."""

from __future__ import annotations

import math
import warnings

import numpy as np

from privclust.core.grassmann import orthonormal
from privclust.privacy import Neighbours
from privclust.privacy.noise import add_gaussian
from privclust.sketches.moment_release import measurement, weighted_features
from privclust.sketches.moment_sums import HarmonicSums
from privclust.subspaces import (
    GibbsSubspaceClustering,
    KPlanes,
    MomentSubspaceClustering,
    SampleAggregateSubspaceClustering,
    SuLQKPlanes,
    canonical_subspaces,
    most_central,
    neighbour_radii,
    result_distances,
)
from privclust_audit.black_box import vectorised
from privclust_papers.audit.cases.audit_case import AuditCase, RecordedFit, along, repeated

_AXES = np.eye(2)
_SPREAD = 1e-3  # of results about the most central one, in radians


class OrderOfSubspaces(AuditCase):
    """Algorithm 1 with a record that reverses the order of the subspaces of its subset.

    The base clusterer, which is arbitrary, returns the two axes of the plane, slightly rotated to
    either side. A subset with the record returns the exact axes and is the most central, in reverse
    order for one data set of the pair. The noise is scaled to a distance that ignores the order.
    Results are computed for each number of subsets with the record; the number is binomial as
    printed, and one for a partition.
    """

    epsilon, delta = 8.0, 0.01
    data, neighbour = False, True  # whether the record turns the order

    def __init__(self, variant: str = "paper", n_subsets: int = 1600) -> None:
        self.claimed_by(variant == "corrected")
        self.draws, self.least_draws = (40_000, 2_000) if self.is_private else (1_000_000, 100_000)
        self._variant, self._m = variant, n_subsets
        self._winners: dict = {}
        self.statistic = vectorised("first_axis", lambda outputs: outputs[:, 0, 0, 0] ** 2)

    def many(self, data, rng, n):
        if self.is_private:
            winner, scale = self.winner(data, 1)
            noisy = add_gaussian(repeated(winner, n), scale, rng)
            return np.stack([canonical_subspaces(one, 1) for one in noisy])
        # The printed bound covers at most sqrt m subsets with the record; more are negligibly rare.
        holding = np.minimum(rng.binomial(self._m, 1.0 / self._m, n), math.isqrt(self._m))
        outputs = np.empty((n, 2, 2, 1))
        for count in np.unique(holding):
            winner, scale = self.winner(data, int(count))
            at = np.flatnonzero(holding == count)
            outputs[at] = orthonormal(add_gaussian(repeated(winner, at.size), scale, rng))
        return outputs

    def winner(self, is_turned, count):
        """Return the selected bases, and the scale of the estimator's noise on them."""
        if (is_turned, count) not in self._winners:
            results = self._results(is_turned, count)
            model = SampleAggregateSubspaceClustering(
                KPlanes(2), **self.budget, variant=self._variant
            )
            model.release(results, np.random.default_rng(0))  # sets noise_scale_
            metric, s = (
                ("procrustes", 1) if self.is_private else ("projection", math.isqrt(self._m))
            )
            radii = neighbour_radii(result_distances(results, metric))
            self._winners[is_turned, count] = results[most_central(radii, s)], model.noise_scale_
        return self._winners[is_turned, count]

    def _results(self, is_turned, count):
        angles = np.where(np.arange(self._m) % 2 == 0, _SPREAD, -_SPREAD)
        angles[:count] = 0.0
        lines = np.stack([angles, angles + math.pi / 2.0], axis=1)
        if is_turned:
            lines[:count] = lines[:count, ::-1]
        return np.stack([np.cos(lines), np.sin(lines)], axis=2)[..., None]


class WholeSampleAggregate(AuditCase):
    """`SampleAggregateSubspaceClustering` end to end: a line by one record, at 0 or 90 degrees."""

    epsilon, delta = 4.0, 0.01
    draws, least_draws = 20_000, 1_000
    data, neighbour = _AXES[:1], _AXES[1:]
    statistic = staticmethod(vectorised("square", lambda outputs: outputs[:, 0] ** 2))

    def __call__(self, data, rng):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the noise may dominate the result
            model = SampleAggregateSubspaceClustering(
                KPlanes(1, n_init=1), **self.budget, n_subsets=1, random_state=rng
            ).fit(data)
        return model.subspaces_.ravel()


class ExactExponential(AuditCase):
    """The exponential mechanism for one line, for which a sweep is an exact draw.

    There is a row at 0 degrees; the record is at 0 or 90 degrees.
    """

    epsilon = 4.0
    draws, least_draws, closeness = 100_000, 4_000, 0.6  # only rare lines have a larger loss
    data, neighbour = _AXES[[0, 0]], _AXES[[0, 1]]
    statistic = staticmethod(vectorised("square", lambda outputs: outputs[:, 0] ** 2))

    def __call__(self, data, rng):
        return lines_sampler(1, self.epsilon, 1, rng).fit(data).subspaces_.ravel()


class GibbsChain(AuditCase):
    """The Gibbs sampler, two lines, after few sweeps: one record decides which two are best.

    There are `n_rows` at 0, 60 and 120 degrees each. The best two lines are one of these and the
    one halfway between the others; all labels of a start at the best lines reveal which. The start
    is random ("random"), or at the best lines, taken from the data as in the paper ("data"). For
    the latter nobody claims epsilon: the paper states only asymptotic privacy.
    """

    epsilon = 2.0
    draws, least_draws = 20_000, 1_000

    def __init__(self, start: str = "random", n_sweeps: int = 2, n_rows: int = 100) -> None:
        self.claimed_by(start == "random", "nobody")
        self._n_sweeps = int(n_sweeps)
        angles = np.repeat([0.0, math.pi / 3.0, 2.0 * math.pi / 3.0], int(n_rows))
        self.data, self.neighbour = (
            rows_at(np.append(angles, last)) for last in (0.0, math.pi / 3.0)
        )
        self._starts = {}
        for rows in (self.data, self.neighbour):
            labels = KPlanes(2, n_init=20, random_state=0).fit(rows).labels_
            self._starts[rows.tobytes()] = "random" if self.is_private else labels

    def __call__(self, data, rng):
        model = lines_sampler(2, self.epsilon, self._n_sweeps, rng)
        model.init = self._starts[data.tobytes()]
        bases = model.fit(data).subspaces_
        squares = (bases @ bases.transpose(0, 2, 1)).reshape(2, -1)
        # The two lines are in random order, which would blur the attack.
        return squares[np.argsort(-squares[:, 0])].ravel()


class MeanOfSamples(AuditCase):
    """A mean over the last 100 samples with the loss of one: the paper's figures average them."""

    claimant, is_private = "nobody", False
    draws, least_draws = 50_000, 1_500
    data, neighbour = _AXES[:1], _AXES[1:]

    def __init__(self) -> None:
        self.statistic = along(np.diag([1.0, -1.0]))

    def __call__(self, data, rng):
        model = lines_sampler(1, self.epsilon, 100, rng)
        model.n_kept = 100
        bases = model.fit(data).kept_subspaces_
        return (bases @ bases.swapaxes(-1, -2)).mean(axis=(0, 1))


class SuLQRounds(AuditCase):
    """All rounds of `SuLQKPlanes`: noisy second moments of a record at 0 or 90 degrees."""

    delta = 0.01
    draws, least_draws = 400_000, 30_000
    _ROUNDS = 3

    def __init__(self, calibration: str = "zcdp", neighbours: str = "replace_one") -> None:
        self.data = np.diag([1.0, 0.0])
        self.neighbour = np.diag([0.0, 1.0 if neighbours == "replace_one" else 0.0])
        model = SuLQKPlanes(1, **self.budget, calibration=calibration, neighbours=neighbours)
        self._noise = model.round_noise(2, self._ROUNDS)
        self.statistic = along(np.tile(np.ravel(self.data - self.neighbour), self._ROUNDS))

    def many(self, data, rng, n):
        return self._noise.release(repeated(data, n * self._ROUNDS), rng).reshape(n, -1)


class WholeSuLQ(RecordedFit):
    """`SuLQKPlanes` end to end: two rounds on one record."""

    delta = 0.01
    data, neighbour = _AXES[:1], _AXES[1:]

    def fit(self, data, rng):
        model = SuLQKPlanes(1, **self.budget, max_iter=2, norm_bound=1.0, random_state=rng)
        return model.fit(data)


class MomentRelease(AuditCase):
    """The noisy features of a sketch of one record, at the angle with the largest change."""

    delta = 0.01
    draws, least_draws = 400_000, 30_000

    def __init__(self, neighbours: str = "replace_one") -> None:
        relation = Neighbours.of(neighbours)
        self.data, self.neighbour = (
            weighted_features(HarmonicSums(2, 6).add(rows), relation) for rows in furthest_rows()
        )
        if relation is Neighbours.ADD_REMOVE:
            self.neighbour = np.zeros_like(self.data)
        self._noise = measurement(2, 6, relation, self.epsilon, self.delta).noise
        self.statistic = along(self.data - self.neighbour)

    def many(self, data, rng, n):
        return self._noise.release(repeated(data, n), rng)


class WholeMoments(RecordedFit):
    """`MomentSubspaceClustering` end to end, on one record: both releases are sketches.

    The last round, which runs with many records, would change by an amount that depends on noise.
    """

    delta = 0.01

    def __init__(self, neighbours: str = "replace_one") -> None:
        self._neighbours = neighbours
        self.data, self.neighbour = furthest_rows()
        if neighbours == "add_remove":
            self.neighbour = _AXES[:0]
        super().__init__()

    def fit(self, data, rng):
        model = MomentSubspaceClustering(
            1, **self.budget, neighbours=self._neighbours, random_state=rng
        )
        return model.fit(data)


def furthest_rows():
    """Return two data sets of one row, at angles with the largest distance of sketches."""
    rows = rows_at(np.linspace(0.0, np.pi / 2, 181))
    features = [
        weighted_features(HarmonicSums(2, 6).add(row[None]), Neighbours.REPLACE_ONE) for row in rows
    ]
    moves = [np.linalg.norm(other - features[0]) for other in features]
    return rows[:1], rows[[int(np.argmax(moves))]]


def lines_sampler(n_clusters, epsilon, n_sweeps, rng):
    """Return a Gibbs sampler of lines."""
    sweeps = {"n_sweeps": n_sweeps, "record_every": n_sweeps}
    return GibbsSubspaceClustering(
        n_clusters, 1, epsilon=epsilon, **sweeps, norm_bound=1.0, random_state=rng
    )


def rows_at(angles):
    """Return unit rows at angles, inside the ball despite rounding."""
    return (1.0 - 1e-12) * np.column_stack([np.cos(angles), np.sin(angles)])
