"""Cases of the privacy audit: noisy Lloyd iterations, grids, sketches and last rounds."""

from __future__ import annotations

import itertools
import math

import numpy as np

from privclust.kmeans import CompressiveKMeans, DPLloyd, EUGkM, TreeKMeans
from privclust.kmeans.last_rounds import round_noise, round_sums, weights
from privclust.sketches import Sketch, corrected_sigma_xi, printed_sigma_xi, release, scrambled
from privclust_audit.black_box import vectorised
from privclust_papers.audit.cases.audit_case import (
    AuditCase,
    RecordedFit,
    along,
    laplace_ratio,
    repeated,
    two_crowds,
)

_BOX = (-1.0, 1.0)
_VARIANCE = 0.1  # frequencies then match the width of the bounds
_CENTERS = np.array([[0.9], [-0.9]])  # start of DPLloyd


class LloydRound(AuditCase):
    """One round of `DPLloyd`: noisy counts and sums, of a record in one of two clusters.

    The printed noise is for add/remove-one neighbours, and calibrated for one feature here; the
    DP-EM paper compares it with mechanisms for replace-one. The record is a row, or a group of
    `n_rows`, which is replaced by a group of one row.
    """

    draws, least_draws = 1_000_000, 200_000
    data, neighbour = np.array([[1.0], [0.0]]), np.array([[-1.0], [0.0]])

    def __init__(self, variant: str = "paper", n_rows: int = 1) -> None:
        self.claimed_by(variant == "corrected")
        self.data = np.repeat(self.data, [n_rows, 1], axis=0)
        self._model = DPLloyd(2, epsilon=self.epsilon, variant=variant, max_iter=1, norm_bound=1.0)
        (value, noise), (other, _) = self.round(self.data), self.round(self.neighbour)
        self.statistic = laplace_ratio(value, other, noise.scale)

    def round(self, data):
        # The rows at 1 or -1 are one person, the row at 0 is another.
        whose = data[:, 0] != 0.0
        groups = whose if len(self.data) > len(self.neighbour) else None
        value, noise = self._model.one_round(data, _CENTERS, groups)
        return np.asarray(value), noise

    def many(self, data, rng, n):
        value, noise = self.round(data)
        return noise.release(repeated(value, n), rng)


class WholeLloyd(RecordedFit):
    """`DPLloyd` end to end, three rounds, on two crowds between which a row moves."""

    data, neighbour = two_crowds()

    def fit(self, data, rng):
        model = DPLloyd(
            2, epsilon=self.epsilon, max_iter=3, norm_bound=1.0, init=_CENTERS, random_state=rng
        )
        return model.fit(data)


class WholeTree(AuditCase):
    """`TreeKMeans` end to end, on one record at either end of the bounds."""

    epsilon, delta = 4.0, 0.01
    draws, least_draws = 20_000, 400
    data, neighbour = np.array([[1.0]]), np.array([[-1.0]])

    def __call__(self, data, rng):
        model = TreeKMeans(1, **self.budget, bounds=_BOX, random_state=rng).fit(data)
        found = model.cluster_centers_, model.cluster_sizes_, model.cluster_spreads_
        return np.concatenate([*map(np.ravel, found), [model.n_cells_, model.mean_inertia_]])


class GridCounts(AuditCase):
    """`EUGkM` end to end: its noisy counts, with a record in one of two corners."""

    draws, least_draws = 60_000, 3_000
    data, neighbour = np.array([[-1.0]]), np.array([[1.0]])

    def __init__(self) -> None:
        model = self._fitted(self.data, np.random.default_rng(0))
        change = np.zeros(model.n_cells_)
        change[[0, -1]] = 1.0, -1.0
        # the difference of the pair's counts, up to a common value that cancels in the ratio
        self.statistic = laplace_ratio(
            np.maximum(change, 0.0), np.maximum(-change, 0.0), 2.0 / self.epsilon
        )

    def __call__(self, data, rng):
        return self._fitted(data, rng).noisy_counts_

    def _fitted(self, data, rng):
        few = {"n_samples": 30, "n_init": 1, "max_iter": 1}
        return EUGkM(1, epsilon=self.epsilon, bounds=_BOX, **few, random_state=rng).fit(data)


class ScrambledSketch(AuditCase):
    """Definition 3 with masks: one feature of one record, opposite phases at 45 degrees.

    Masks are redrawn each time, and the statistic averages over them. `sigma_xi` is that of
    Proposition 1 in our copy of the text, without the root of alpha_r ("printed"), or with the
    root, as in eq. (7) ("corrected").
    """

    epsilon = 3.0
    draws, least_draws = 200_000, 20_000
    closeness = 0.7  # above, events are too rare for these runs
    data, neighbour = np.array([[math.pi / 4.0]]), np.array([[5.0 * math.pi / 4.0]])

    def __init__(self, sigma_xi: str = "printed") -> None:
        self.is_private = sigma_xi == "corrected"
        self.claimant = "paper" if self.is_private else "copy"
        self._frequencies, self._measured = np.array([[1.0, 1.0, 1.0, 1.0]]), 1
        m, r = 4, self._measured
        rule = {"printed": printed_sigma_xi, "corrected": corrected_sigma_xi}[sigma_xi]
        self._sigma_xi = rule(r / m, m, 1, self.epsilon)
        # The scale for sums: that of eq. (4), sigma_xi / (2 sqrt(alpha_r m)), times alpha_r sqrt m.
        self._scale = self._sigma_xi * math.sqrt(r / m) / 2.0
        masks = np.array([mask for mask in itertools.product((0, 1), repeat=m) if sum(mask) == r])
        # Real and imaginary parts in turn: cosine and sine of 45 degrees.
        self._placed = np.repeat(masks, 2, axis=1) * math.sqrt(0.5)
        self.statistic = vectorised(
            "likelihood_ratio",
            lambda outputs: self._log_density(outputs, 1.0) - self._log_density(outputs, -1.0),
        )

    def __call__(self, data, rng):
        masks = {"n_measurements": self._measured, "mask_seed": int(rng.integers(2**63))}
        sketch = Sketch.of(data, self._frequencies, **masks)
        return scrambled(sketch, self._sigma_xi, random_state=rng).sums.view(float)

    def _log_density(self, outputs, sign):
        """Return the log-density of an even mixture over masks, up to a constant."""
        exponents = np.stack(
            [-np.abs(outputs - sign * place).sum(axis=1) / self._scale for place in self._placed]
        )
        return np.logaddexp.reduce(exponents, axis=0)


class ReleasedSketch(AuditCase):
    """`release` of the sketch of one record without masks: opposite phases.

    The record is a row, or a group of `n_rows` equal rows.
    """

    def __init__(self, noise: str = "laplace", n_rows: int = 1) -> None:
        self._noise = noise
        is_pure = noise == "laplace"
        self.delta = 0.0 if is_pure else 0.01
        # Gaussian noise is calibrated for each release, which takes most of the time
        self.draws, self.least_draws = 200_000, 10_000 if is_pure else 3_000
        angle = math.pi / 4.0
        self.data, self.neighbour = (np.full((n_rows, 1), a) for a in (angle, angle + math.pi))
        groups = None if n_rows == 1 else np.zeros(n_rows)
        self._sketches = {
            float(rows[0, 0]): Sketch.of(rows, np.array([[1.0]]), groups=groups)
            for rows in (self.data, self.neighbour)
        }
        values = [sketch.sums.view(float) for sketch in self._sketches.values()]
        # Opposite phases at 45 degrees change both parts by sqrt 2 each.
        scale = 2.0 * math.sqrt(2.0) / self.epsilon
        self.statistic = laplace_ratio(*values, scale) if is_pure else along(np.subtract(*values))

    def __call__(self, data, rng):
        sketch = self._sketches[float(data[0, 0])]
        return release(sketch, **self.budget, noise=self._noise, random_state=rng).sums.view(float)


class WholeSketch(RecordedFit):
    """`CompressiveKMeans` end to end with a known variance: the sketch of one record.

    Frequencies are public and independent of the data: of many fits, the attack uses the
    frequencies that distinguish the two records best.
    """

    epsilon = 4.0
    data, neighbour = np.array([[1.0]]), np.array([[-1.0]])
    draws, n_fits = 2_000_000, 100

    def fit(self, data, rng):
        return CompressiveKMeans(
            1, epsilon=self.epsilon, bounds=_BOX, n_frequencies=2, variance=_VARIANCE,
            decoder="clompr", missing="middle", random_state=rng,
        ).fit(data)  # fmt: skip


class MeansRound(AuditCase):
    """A last round: the noisy sum and count of one record, at either end of a radius."""

    delta = 0.01
    draws, least_draws = 1_000_000, 200_000
    data, neighbour = np.array([[1.0]]), np.array([[-1.0]])

    def __init__(self) -> None:
        self._noise = round_noise("replace_one", self.epsilon, self.delta, 1.0)
        self.statistic = along(self._exact(self.data) - self._exact(self.neighbour))

    def many(self, data, rng, n):
        return self._noise.release(repeated(self._exact(data), n), rng)

    def _exact(self, data):
        """Return the exact, weighted sums to which a round adds noise."""
        sums = round_sums(data, np.zeros(len(data), dtype=np.int64), np.zeros((1, 1)), 1.0)
        return np.asarray(sums) * weights(1)


class WholeRounds(AuditCase):
    """`CompressiveKMeans` with a last round: pilot, sketch, and the noisy mean of one record."""

    epsilon, delta = 4.0, 0.01
    draws, least_draws = 1_500, 40
    data, neighbour = np.array([[1.0]]), np.array([[-1.0]])

    def __call__(self, data, rng):
        model = CompressiveKMeans(
            1,
            **self.budget,
            bounds=_BOX,
            n_frequencies=2,
            last_round=True,
            noise="gaussian",
            random_state=rng,
        ).fit(data)
        sums = model.sketch_.sums.view(float)
        return np.concatenate([model.cluster_centers_.ravel(), sums, model.sketch_.frequencies[0]])
