"""Gaussian noise: for an l2 sensitivity, and for a smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import FixedPoint
from privclust.core.validation import check_integer, check_real
from privclust.privacy import noise
from privclust.privacy.accounting import Loss, check_budget, gaussian_constant
from privclust.privacy.measurements._measurement import (
    PRICE_TOLERANCE,
    ForSensitivity,
    Measurement,
    real_array,
)
from privclust.privacy.noise import NoiseSource
from privclust.privacy.sensitivity import Sensitivity


@dataclass(frozen=True)
class Gaussian(ForSensitivity):
    r"""Gaussian noise of standard deviation `sigma` on every entry.

    With :math:`\Delta` the sensitivity: :math:`\Delta^2 / (2 \sigma^2)`-zero-concentrated
    differentially private for its neighbour relation, and (epsilon, delta)-differentially private
    for a sigma from `analytic_gaussian_sigma`.

    Parameters
    ----------
    sensitivity : Sensitivity
        In the norm ``"l2"``. The privacy loss depends on its value; the noise does not.
    sigma : float
        Standard deviation of the noise in the value's units, finite and positive.
    count
        As for `Measurement`.
    rho : float or None
        The zCDP parameter of one release from which the noise was computed; see `of_share`. None:
        it follows from sigma. A rho that does not match sigma is refused.

    References
    ----------
    M. Bun and T. Steinke, "Concentrated differential privacy: simplifications, extensions, and
    lower bounds", TCC 2016, Proposition 1.6.

    Examples
    --------
    >>> total = Sensitivity(1.0, "l2", "add-remove", "rows have norm at most 1")
    >>> noise = Gaussian(total, 2.0, count=3)
    >>> noise.release(np.zeros(3), np.random.default_rng(0)).round(2)
    array([ 0.25, -0.26,  1.28])
    >>> noise.loss.rho, noise.loss.count
    (0.125, 3)
    """

    sigma: float
    count: int = 1
    rho: float | None = field(default=None, kw_only=True)
    mechanism = "gaussian"
    _NORM = "l2"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("sigma", self.sigma)
        check_integer("count", self.count, minimum=1)
        if self.rho is not None and not math.isclose(
            self.rho, self._rho_of_sigma, rel_tol=PRICE_TOLERANCE
        ):
            raise ValueError(
                f"rho must be that of the noise, {self._rho_of_sigma!r}, got {self.rho!r}"
            )

    @classmethod
    def of_share(cls, sensitivity: Sensitivity, share: float, count: int = 1) -> Self:
        """Return noise with `share` as the sensitivity over sigma."""
        check_real("share", share)
        return cls(sensitivity, sensitivity.value / share, count, rho=share**2 / 2.0)

    @classmethod
    def classical(
        cls, sensitivity: Sensitivity, epsilon: float, delta: float, count: int = 1
    ) -> Self:
        """Return the noise of the classical formula, at any epsilon, with its zCDP parameter.

        ``sigma = c Delta / epsilon`` with ``c^2 = 2 ln(1.25 / delta)`` (Dwork and Roth 2014,
        Theorem A.1; the private EM paper uses it for means). Its (epsilon, delta) is proved only up
        to epsilon = 1; `analytic_gaussian_sigma` needs less noise and holds for every epsilon.
        """
        check_real("epsilon", epsilon)
        c = gaussian_constant(delta)
        rho = epsilon**2 / 2.0 / c**2
        return cls(sensitivity, sensitivity.value * c / epsilon, count, rho=rho)

    @property
    def scale(self) -> float:
        """The standard deviation of the noise of each number."""
        return self.sigma

    @property
    def claimed(self) -> Loss:
        """The zCDP parameter rho, as given or from sigma and the sensitivity."""
        # the given one has no rounding of sigma, so that shares add up to their budget
        rho = self._rho_of_sigma if self.rho is None else self.rho
        return Loss(rho, count=self.count)

    def against(self, sensitivity: Sensitivity) -> Gaussian:
        """Return the same noise with the loss for another sensitivity."""
        return Gaussian(sensitivity, self.sigma, self.count)

    def for_rows(self, n_rows: int) -> Gaussian:
        """Return the same noise with the loss for `n_rows` changes, each with its own noise."""
        bound = self.sensitivity.scaled(math.sqrt(n_rows))
        return replace(self, sensitivity=bound, rho=n_rows * self.claimed.rho)

    def release(
        self, value: ArrayLike | FixedPoint, source: NoiseSource, weight: float | np.ndarray = 1.0
    ) -> Any:
        """Return a value with noise; see `Measurement.release`.

        With a positive `weight`, the returned value has noise of ``sigma / weight``. In this way
        parts of a statistic, along the last axis of the value, are weighted without rounding.
        """
        return noise.add_gaussian(real_array("value", value), self.sigma / weight, source)

    @property
    def _rho_of_sigma(self) -> float:
        return (self.sensitivity.value / self.sigma) ** 2 / 2.0


@dataclass(frozen=True)
class SymmetricGaussian(Gaussian):
    r"""Gaussian noise on symmetric matrices, such as sums of second moments.

    A symmetric matrix has the coordinates :math:`M_{ii}` and :math:`w M_{ij}`, i < j. With the
    weight :math:`w = \sqrt 2` their Euclidean norm is the matrix's Frobenius norm; with w = 1 they
    are the entries of its upper triangle.

    Parameters
    ----------
    sensitivity : Sensitivity
        Sensitivity of all coordinates of a release together, in the norm ``"l2"``.
    sigma : float
        Standard deviation of the noise on a coordinate, positive: on diagonal entries, and ``sigma
        / weight`` on off-diagonal entries.
    count, rho
        As for `Gaussian`.
    weight : float
        w, positive.

    Examples
    --------
    >>> moved = Sensitivity(1.0, "l2", "add-remove", "|xx'| = |x|^2 <= 1")
    >>> noise = SymmetricGaussian(moved, 0.5)
    >>> noise.release(np.zeros((1, 2, 2)), np.random.default_rng(0)).round(2)
    array([[[ 0.06, -0.05],
            [-0.05,  0.32]]])
    """

    weight: float = field(default=math.sqrt(2.0), kw_only=True)
    _NOISE = "scale {scale:.4g} on the diagonal, {off_diagonal:.4g} off the diagonal"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("weight", self.weight)

    def release(
        self, value: ArrayLike | FixedPoint, source: NoiseSource, weight: float | np.ndarray = 1.0
    ) -> np.ndarray:
        """Return symmetric matrices (k, d, d) with noise; only upper triangles are read."""
        matrices = value if isinstance(value, FixedPoint) else np.asarray(value)
        rows, columns = np.triu_indices(matrices.shape[1])
        weights = weight * np.where(rows == columns, 1.0, self.weight)
        noisy = super().release(matrices[:, rows, columns], source, weights)
        result = np.empty(matrices.shape)
        result[:, rows, columns] = noisy
        result[:, columns, rows] = noisy
        return result

    @property
    def off_diagonal(self) -> float:
        """Standard deviation of the noise off the diagonal."""
        return self.sigma / self.weight


@dataclass(frozen=True)
class SmoothGaussian(Measurement):
    r"""Gaussian noise of deviation :math:`S / \alpha` on a result with smooth sensitivity S.

    (epsilon, delta)-differentially private for replaced records if S is a beta-smooth bound and
    alpha, beta are admissible for both and the number of coordinates (Nissim, Raskhodnikova and
    Smith 2007); no zCDP parameter is known. S depends on the data: a statement does not name it.

    Parameters
    ----------
    bound : float
        S. If it is 0, no noise is added; a bound that may be 0 is flawed.
    alpha, beta : float
    n_coordinates : int
    epsilon, delta : float
    proof : str
    flaw : str
        Why S is no smooth bound, if it is none.

    Examples
    --------
    >>> noise = SmoothGaussian(0.5, 2.0, 0.1, 3, 1.0, 1e-6, "by hand")
    >>> noise.scale, noise.statement("center").noise
    (0.25, 'scale S / 2, beta 0.1, 3 coordinates')
    """

    bound: float
    alpha: float
    beta: float
    n_coordinates: int
    epsilon: float
    delta: float
    proof: str = ""
    flaw: str = ""
    mechanism = "gaussian, smooth sensitivity"
    _NOISE = "scale S / {alpha:.4g}, beta {beta:.4g}, {n_coordinates} coordinates"

    def __post_init__(self) -> None:
        check_real("bound", self.bound, inclusive=bool(self.flaw))
        check_real("alpha", self.alpha)
        check_budget(self.epsilon, self.delta)

    @property
    def scale(self) -> float:
        """The factor of the standard Gaussian noise: the smooth bound S, divided by alpha."""
        return float(self.bound / self.alpha)

    @property
    def claimed(self) -> Loss:
        """The claimed epsilon and delta: this noise has no zCDP parameter."""
        return Loss(epsilon=float(self.epsilon), delta=float(self.delta))

    def release(self, value: ArrayLike, source: NoiseSource) -> Any:
        """Return a value with noise; see `Measurement.release`."""
        array = np.asarray(real_array("value", value))
        return noise.add_gaussian(array, self.scale, source) if self.scale > 0 else array
