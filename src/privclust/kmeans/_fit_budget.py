"""The budget of a fit: the share of each release, and the guarantee of all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privclust.core.hints import RandomState
from privclust.kmeans.last_rounds import round_noise
from privclust.privacy import Guarantee, Neighbours, noise_source
from privclust.privacy.estimator import caveats_of_bounds
from privclust.privacy.groups import ROW
from privclust.privacy.measurements import Gaussian
from privclust.privacy.noise import NoiseSource, is_seeded
from privclust.sketches._measurement import SketchMeasurement
from privclust.sketches._release import measurement, smaller_noise
from privclust.sketches._sketch import Sketch

_ROUND = "sums, counts and spreads of rows by cluster"
_LARGE = "entries that are too large for phases count as the largest that are not"


@dataclass(frozen=True)
class FitBudget:
    """The epsilon, delta and kind of noise that all releases of a fit share."""

    epsilon: float | None
    delta: float
    mechanism: str
    neighbours: str
    random_state: RandomState
    unit: str = ROW
    caveats: tuple[str, ...] = ()

    @classmethod
    def of(cls, estimator, n_frequencies: int, unit: str = ROW) -> FitBudget:
        """Return the budget of `CompressiveKMeans`; the size of the sketch decides on the noise."""
        how = estimator.neighbours, estimator.epsilon, estimator.delta
        noise = estimator.noise
        if estimator.epsilon is not None and noise == "auto":
            noise = smaller_noise(n_frequencies, *how)
        of_rows = caveats_of_bounds(estimator)
        budget = estimator.epsilon, estimator.delta, noise, how[0], estimator.random_state
        return cls(*budget, unit, of_rows)

    @property
    def relation(self) -> Neighbours:
        return Neighbours.of(self.neighbours)

    @property
    def _seeded(self):
        return is_seeded(noise_source(self.random_state))

    def n_samples(self, n_counted: float, sketch: Sketch) -> float:
        """Return the number of records that count: public, or the noisy one of a sketch."""
        is_public = self.relation is Neighbours.REPLACE_ONE
        return float(n_counted if is_public else sketch.n_samples)

    def measurement(self, n_frequencies: int, share: float) -> SketchMeasurement | None:
        """Return the noise of a sketch at a share of the budget; None without an epsilon."""
        if self.epsilon is None:
            return None
        return measurement(
            n_frequencies,
            n_frequencies,
            self.epsilon,
            self.delta,
            noise=self.mechanism,
            neighbours=self.neighbours,
            share=share,
        )

    def promise(self, noise: SketchMeasurement) -> Guarantee:
        return noise.promise(seeded=self._seeded, unit=self.unit)

    def source(self, rng: np.random.Generator) -> NoiseSource:
        return noise_source(None if self.random_state is None else rng)

    def round_noises(self, share: float, parts: Sequence[float] = (1.0,)) -> list[Gaussian]:
        """Return the noise of each round, with these fractions of a share of the budget."""
        how = self.relation, self.epsilon, self.delta
        return [round_noise(*how, share * part) for part in parts]

    def composed(
        self,
        sums: Guarantee | None,
        pilots: Sequence[Guarantee],
        rounds: Sequence[Gaussian],
        leaks: tuple[str, ...],
    ) -> Guarantee:
        """Return the guarantee of sums, pilots and rounds together, with the leaks."""
        if self.epsilon is None or sums is None:
            caveats = ("no noise was asked for",)
            return Guarantee("none", self.relation, caveats=caveats, unit=self.unit)
        whole = sums.compose(*(pilot.part("pilot") for pilot in pilots))
        return Guarantee.of(
            [*whole.releases, *(noise.statement(_ROUND, units="radii") for noise in rounds)],
            "none" if leaks else whole.definition,
            self.relation,
            delta=whole.delta,
            seeded=self._seeded,
            caveats=(*whole.caveats, *(leaks or (*self.caveats, _LARGE))),
            unit=self.unit,
        )
