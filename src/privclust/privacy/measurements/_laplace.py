"""Laplace noise: for an l1 sensitivity, without a delta."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.validation import check_real
from privclust.privacy import noise
from privclust.privacy.accounting import Loss, laplace_rho
from privclust.privacy.measurements._measurement import (
    PRICE_TOLERANCE,
    WithEpsilon,
    finite_array,
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
        rho = laplace_rho(self.epsilon, min(mu, self.epsilon))
        return Loss(rho, self.epsilon, self.count)

    def release(self, value: ArrayLike, source: NoiseSource) -> Any:
        """Return a value with noise; see `Measurement.release`."""
        return noise.add_laplace(real_array("value", value), self.scale, source)


@dataclass(frozen=True)
class ComplexLaplace(Laplace):
    r"""Laplace noise of scale ``sensitivity / epsilon`` on real and imaginary parts.

    As `Laplace` on these parts, with their joint l1 sensitivity.

    Notes
    -----
    In the compressive k-means paper (Definition 2) L^C(beta) has parts of scale beta / sqrt(2), and
    the noise of the sketch, eq. (4), is L^C(sigma_xi / sqrt(2)) / sqrt(alpha_r m n_0): parts of
    scale ``sigma_xi / (2 sqrt(alpha_r m n_0))``. One of n_0 rows moves r = alpha_r m features of
    modulus 1 / sqrt(m) by at most 2 sqrt(2) each in l1, divided by alpha_r n_0: l1 sensitivity
    ``2 sqrt(2) sqrt(m) / n_0`` (replace-one, masks given). Equating scales gives
    ``sigma_xi = 4 sqrt(2) sqrt(alpha_r) m / (sqrt(n_0) epsilon)``. Eq. (7) of the paper agrees; our
    copy of Proposition 1 has alpha_r in place of its root, which gives epsilon / sqrt(alpha_r).

    References
    ----------
    V. Schellekens, A. Chatalic, F. Houssiau, Y.-A. de Montjoye, L. Jacques and R. Gribonval,
    "Differentially private compressive k-means", ICASSP 2019, Definitions 2 to 4, Proposition 1.

    Examples
    --------
    >>> from privclust.privacy import Sensitivity
    >>> sketch = Sensitivity(0.2, "l1", "replace-one", "unit phases, 10 rows")
    >>> ComplexLaplace(sketch, 1.0).release([1.0 + 1.0j], np.random.default_rng(0)).round(2)
    array([1.06+0.88j])
    """

    mechanism = "complex laplace"

    def release(self, value: ArrayLike, source: NoiseSource) -> Any:
        """Return a complex value with noise, complex128; see `Measurement.release`."""
        array = finite_array("value", value, "biufc", np.complex128)
        parts = np.stack([array.real, array.imag], axis=-1)
        noisy = noise.add_laplace(parts, self.scale, source)
        return np.ascontiguousarray(noisy).view(np.complex128)[..., 0][()]
