"""The noise for a sketch, built once: it states its guarantee, and a sketch is released by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from privclust.privacy import Guarantee, Neighbours
from privclust.privacy.groups import ROW
from privclust.privacy.measurements import Gaussian, Laplace

PUBLIC_COUNT = "the number of records is public"


@dataclass(frozen=True)
class SketchMeasurement:
    """Noise bound to the sums that it is for.

    `noise` has their sensitivity and the neighbour relation. `delta` is that at which Gaussian
    noise is stated. `wording` has the statement's other columns, such as its units.
    """

    noise: Laplace | Gaussian
    sums: str
    delta: float = 0.0
    wording: Mapping[str, str] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    @property
    def relation(self) -> Neighbours:
        """The change of the records that is hidden."""
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
