"""Cases of the privacy audit: noisy statistics of DP-EM, and private mixtures end to end."""

from __future__ import annotations

import numpy as np

from privclust.core.fixed_point import FixedPoint
from privclust.mixtures import (
    AdaptiveGaussianMixture,
    MixtureParameters,
    PrivateGaussianMixture,
    exact_statistics,
)
from privclust.mixtures.exact_statistics import weighted_statistics
from privclust.privacy import Neighbours, Sensitivity
from privclust.privacy.groups import Groups, by_size
from privclust.privacy.measurements import Gamma, Gaussian, Wishart
from privclust_audit.black_box import vectorised
from privclust_papers.audit.cases.audit_case import (
    AuditCase,
    RecordedFit,
    along,
    repeated,
    two_crowds,
)

_ROWS = 100  # of an end-to-end fit: enough for an accurate mean, to undo the plug-in
_NARROW = 1e-4  # variances so small that responsibilities are 0 or 1


class PrintedGamma(AuditCase):
    """Eq. (16): Gamma noise on the variance of a cluster with one record at 0, or at norm 1."""

    claimant, is_private = "paper", False
    least_draws = 200_000
    data, neighbour = 0.0, 1.0
    statistic = staticmethod(vectorised("below_support", lambda outputs: outputs < 1.0))

    def many(self, data, rng, n):
        bound = Sensitivity(1.0, "l1", Neighbours.REPLACE_ONE, "DP-EM, below eq. (16)")
        return Gamma(bound, self.epsilon).release(repeated(data, n), rng)


class PrintedWishart(AuditCase):
    """Eqs. (17), (18): Wishart noise on the covariance of a cluster with one record at 0, or e1."""

    claimant, is_private = "paper", False
    draws, least_draws = 1_000_000, 50_000
    data, neighbour = np.zeros((2, 2)), np.diag([1.0, 0.0])

    def __init__(self) -> None:
        self.statistic = vectorised(
            "smallest_eigenvalue",
            lambda outputs: np.linalg.eigvalsh(outputs - self.neighbour)[:, 0] < 0.0,
        )

    def many(self, data, rng, n):
        bound = Sensitivity(1.0, "trace", Neighbours.REPLACE_ONE, "DP-EM, eq. (27)")
        return Wishart(bound, self.epsilon).release(repeated(data, n), rng)


class RawCountInScale(AuditCase):
    """Noise on a mean in the authors' code, with a scale from the exact N_k, here 1 or 2.

    All records of the cluster are at 0, so that only the scale differs. Ten features.
    """

    claimant, is_private = "code", False
    delta = 1e-3
    least_draws = 100_000
    data, neighbour = 2, 1
    statistic = staticmethod(
        # Two centred Gaussians of different scales: the ratio is monotone in the length of an
        # output.
        vectorised("likelihood_ratio", lambda outputs: -np.einsum("ij,ij->i", outputs, outputs))
    )

    def many(self, data, rng, n):
        moved = Sensitivity(2.0 / data, "l2", Neighbours.REPLACE_ONE, "DP-EM, eq. (22)")
        return Gaussian.classical(moved, self.epsilon, self.delta).release(np.zeros((n, 10)), rng)


class WholeEM(AuditCase):
    """`PrivateGaussianMixture` as printed, end to end: a record at 0, or at norm 1.

    The statistic undoes the plug-in of the noisy mean: with one component N~ = N, so that
    N (Sigma~ + mu~ mu~') is the noisy second moment, or larger if a floor was applied.
    """

    claimant, is_private = "paper", False
    delta = 1e-6
    draws, least_draws = 40_000, 3_000

    def __init__(self, covariance_type: str = "spherical") -> None:
        self.covariance_type = covariance_type
        d = 1 if covariance_type == "spherical" else 2
        self.data = np.zeros((_ROWS, d))
        self.neighbour = self.data.copy()
        self.neighbour[0, 0] = 1.0
        self.statistic = vectorised("below_support", self._gap)

    def __call__(self, data, rng):
        mixture = PrivateGaussianMixture(
            1, covariance_type=self.covariance_type, **self.budget, mean_noise="laplace",
            variant="paper", max_iter=1, norm_bound=1.0, random_state=rng,
        ).fit(data)  # fmt: skip
        d = data.shape[1]
        covariance = mixture.covariances_.reshape(-1)
        if self.covariance_type == "spherical":
            covariance = covariance * np.eye(d)
        return _ROWS * (covariance.reshape(d, d) + np.outer(mixture.means_, mixture.means_))

    def _gap(self, outputs):
        """Return the excess over the neighbour's moment: never negative with one-sided noise."""
        moved = np.zeros(outputs.shape[1:])
        moved[0, 0] = 1.0
        return np.linalg.eigvalsh(outputs - moved)[:, 0]


class CorrectedEM(RecordedFit):
    """`PrivateGaussianMixture` with Laplace noise: a record in one of two components, one round."""

    delta = 1e-6
    draws = 2_000_000

    def __init__(self, covariance_type: str = "spherical") -> None:
        self._covariance_type = covariance_type
        d = 1 if covariance_type == "spherical" else 2
        far = np.full((1, d), (1.0 - 1e-12) / np.sqrt(d))  # largest l1 norm in the ball
        self._means = np.vstack([far, -far])
        self.data, self.neighbour = self._means, np.vstack([-far, -far])
        super().__init__()

    def fit(self, data, rng):
        d = data.shape[1]
        narrow = np.full(2, _NARROW)
        if self._covariance_type == "full":
            narrow = np.tile(_NARROW * np.eye(d), (2, 1, 1))
        return PrivateGaussianMixture(
            2, covariance_type=self._covariance_type, **self.budget, mean_noise="laplace",
            variant="corrected", max_iter=1, norm_bound=1.0, means_init=0.9 * self._means,
            covariances_init=narrow, random_state=rng,
        ).fit(data)  # fmt: skip


class JointRelease(AuditCase):
    """One round of the corrected EM: Gaussian noise on counts, sums and second moments.

    A unit vector in one component is replaced by a unit vector in the other, which attains the
    sensitivity sqrt 6. The record is a row, or a group of `n_rows`, which is replaced by a group of
    one row.
    """

    delta = 0.01
    draws, least_draws = 400_000, 50_000
    data, neighbour = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 0.0]])

    def __init__(self, n_rows: int = 1) -> None:
        self._model = PrivateGaussianMixture(2, **self.budget, max_iter=1, norm_bound=1.0)
        self.data = np.repeat(self.data, [n_rows, 1], axis=0)
        first, second = (
            _flat(*map(np.asarray, self.statistics(rows)), 1)
            for rows in (self.data, self.neighbour)
        )
        self.statistic = along(first - second)

    def many(self, data, rng, n):
        stacked = (_repeated(part, n) for part in self.statistics(data))
        noisy = self._model.noisy_round(*stacked, rng)
        return _flat(noisy.counts, noisy.sums, noisy.second_moments, n)

    def statistics(self, rows):
        """Return exact statistics, at a start with the two records in different components."""
        start = MixtureParameters(
            np.full(2, 0.5), np.eye(2), np.tile(_NARROW * np.eye(2), (2, 1, 1)), "full"
        )
        groups = None
        if len(self.data) > len(self.neighbour):
            groups = Groups.of(rows.any(axis=1), len(rows))
        parts = by_size(groups, rows)
        exact = weighted_statistics(parts, lambda rows: exact_statistics(rows, 1.0, start))
        return exact.counts, exact.sums, exact.second_moments


def _repeated(part, n):
    return FixedPoint(np.concatenate([part.integers] * n), part.bits)


def _flat(counts, sums, moments, n):
    parts = (counts[:, None], sums, moments.reshape(len(counts), -1))
    return np.hstack(parts).reshape(n, -1)


class CorrectedMixture(RecordedFit):
    """`PrivateGaussianMixture` with its defaults, end to end: two rounds, on two crowds."""

    delta = 0.01
    data, neighbour = two_crowds()

    def fit(self, data, rng):
        start = {"means_init": [[0.9], [-0.9]], "covariances_init": [[[_NARROW]], [[_NARROW]]]}
        return PrivateGaussianMixture(
            2, **self.budget, max_iter=2, norm_bound=1.0, **start, random_state=rng
        ).fit(data)


class AdaptiveMixture(AuditCase):
    """`AdaptiveGaussianMixture` end to end, on one record."""

    delta = 0.01
    draws, least_draws = 2_000, 150  # a fit takes 40 ms, and no attack is known
    data, neighbour = np.array([[1.0]]), np.array([[-1.0]])

    def __call__(self, data, rng):
        mixture = AdaptiveGaussianMixture(
            1, **self.budget, max_iter=2, norm_bound=1.0, random_state=rng
        ).fit(data)
        return np.concatenate([mixture.means_.ravel(), mixture.covariances_.ravel()])
