"""Laplace noise: for an l1 sensitivity, without a delta."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from privclust.core.validation import check_real
from privclust.privacy import noise
from privclust.privacy.accounting import Loss, laplace_rho
from privclust.privacy.measurements._measurement import (
    PRICE_TOLERANCE,
    WithEpsilon,
    real_array,
)
from privclust.privacy.noise import NoiseSource


@dataclass(frozen=True)
class Laplace(WithEpsilon):
    r"""Laplace noise of scale ``sensitivity / epsilon`` on every entry.

    Epsilon-differentially private for the sensitivity's neighbour relation: the log density ratio
    of two outputs is at most ``||value - value'||_1 / scale``. Every entry is a separate release,
    so the zCDP parameter is smaller if a change affects many entries. It follows from epsilon and
    :math:`\mu = \Delta_2 / scale`, with :math:`\Delta_2` the sensitivity in l2, if it is known
    (`privclust.privacy.accounting.laplace_rho`).

    Parameters
    ----------
    sensitivity : Sensitivity
        In the norm ``"l1"``.
    epsilon, count
        As for `Measurement`.
    entries : float
        At least 1: number of entries among which, in the worst case, the change is divided equally.
    mu : float or None
        :math:`\Delta_2 / scale`, in place of `entries`; at most epsilon.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith, "Calibrating noise to sensitivity in private
    data analysis", TCC 2006, Proposition 1.

    Examples
    --------
    >>> import numpy as np
    >>> from privclust.privacy import Sensitivity
    >>> noise = Laplace(Sensitivity(1.0, "l1", "add-remove", "one row is one count"), 0.5)
    >>> noise.release([10.0, 20.0], np.random.default_rng(0)).round(2)
    array([10.64, 18.77])
    >>> noise.loss.epsilon, round(noise.loss.rho, 4)
    (0.5, 0.1065)
    >>> noise.statement("counts").noise
    'scale 2'
    """

    entries: float = field(default=1.0, kw_only=True)
    mu: float | None = field(default=None, kw_only=True)
    mechanism = "laplace"
    _NORM = "l1"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("entries", self.entries, above=1.0, inclusive=True)
        if self.mu is not None:
            check_real("mu", self.mu)
            if self.mu > self.epsilon * (1.0 + PRICE_TOLERANCE):
                raise ValueError(
                    f"mu must be at most epsilon={self.epsilon!r}, as l2 norms are at most l1 "
                    f"norms, got {self.mu!r}"
                )

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on an entry, the root of 2 times its scale."""
        return math.sqrt(2.0) * self.scale

    @property
    def claimed(self) -> Loss:
        """Epsilon, and the sum of the entries' zCDP parameters."""
        mu = self.epsilon / math.sqrt(self.entries) if self.mu is None else self.mu
        # mu may exceed epsilon by a rounding, up to PRICE_TOLERANCE
        rho = laplace_rho(self.epsilon, min(mu, self.epsilon))
        return Loss(rho, self.epsilon, self.count)

    def release(self, value: ArrayLike, source: NoiseSource) -> Any:
        """Return a value with noise; see `Measurement.release`."""
        return noise.add_laplace(real_array("value", value), self.scale, source)
