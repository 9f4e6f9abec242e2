"""The noise mechanism of a sketch, with its guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.groups import ROW
from privclust.privacy.measurements import Gaussian, Laplace

PUBLIC_COUNT = "the number of records is public"


@dataclass(frozen=True)
class SketchMeasurement:
    """Noise for the sums named by `sums`.

    `noise` holds the sensitivity and the neighbour relation. `delta` is the delta at which the
    guarantee of Gaussian noise is stated. `wording` holds other columns of the statement, such as
    units.
    """

    noise: Laplace | Gaussian
    sums: str
    delta: float = 0.0
    wording: Mapping[str, str] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    @property
    def relation(self) -> Neighbours:
        """The neighbour relation for which the sensitivity of the noise holds."""
        return self.noise.sensitivity.relation

    def promise(self, *, seeded: bool = False, unit: str = ROW) -> Guarantee:
        """Return the guarantee of one release."""
        count_is_public = self.relation is Neighbours.REPLACE_ONE
        name = self.sums if count_is_public else f"{self.sums} and number of records"
        is_gaussian = isinstance(self.noise, Gaussian)
        return Guarantee.of(
            [self.noise.statement(name, **self.wording)],
            "approximate" if is_gaussian else "pure",
            self.relation,
            delta=float(self.delta) if is_gaussian else 0.0,
            seeded=seeded,
            caveats=[*([PUBLIC_COUNT] if count_is_public and unit == ROW else []), *self.caveats],
            unit=unit,
        )
