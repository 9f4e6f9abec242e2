"""The base classes of measurements."""

# annotations are evaluated here, so that those of inherited fields resolve in any module

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.fixed_point import FixedPoint
from privclust.core.validation import check_integer, check_real
from privclust.privacy.accounting import Loss, pure_rho
from privclust.privacy.guarantee import Release
from privclust.privacy.noise import NoiseSource
from privclust.privacy.sensitivity import Sensitivity

PRICE_TOLERANCE = 1e-9  # relative difference between a given rho and that of the noise


class Measurement(ABC):
    """Noise together with its sensitivity and its privacy loss.

    Measurements are immutable. All raise a ValueError that names the parameter if one is not as
    described, or if a computed scale is not a positive float. Common parameters:

    Parameters
    ----------
    sensitivity : Sensitivity
        In the norm that the mechanism requires.
    epsilon : float
        In nats, finite and positive; of one release.
    count : int
        The number of releases.

    Attributes
    ----------
    mechanism : str
        Its name in a guarantee.
    flaw : str
        Why it is not private; empty if it is.
    """

    mechanism: ClassVar[str]
    flaw: str = ""
    _NOISE: ClassVar[str] = "scale {scale:.4g}"

    @property
    @abstractmethod
    def scale(self) -> float:
        """Scale of the noise, in the statistic's units."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on an entry."""
        return self.scale

    @property
    @abstractmethod
    def claimed(self) -> Loss:
        """The privacy loss, or the loss claimed by the paper if the noise is not private."""

    @property
    @abstractmethod
    def proof(self) -> str:
        """Reference of the proof of the sensitivity."""

    @abstractmethod
    def release(self, value: ArrayLike, source: NoiseSource) -> Any:
        """Return a value with noise.

        Parameters
        ----------
        value : array_like or FixedPoint
            Finite numbers, of any shape unless the mechanism requires one. Exact sums are
            `privclust.core.fixed_point.FixedPoint`, to which Laplace and Gaussian noise is added
            without rounding.
        source : SystemEntropy or numpy.random.Generator
            Source of the noise; see `privclust.privacy.noise_source`.

        Returns
        -------
        ndarray or float
            float64, in the value's shape; a float for a scalar.

        Raises
        ------
        ValueError
            If the value is not as described.
        """

    @property
    def loss(self) -> Loss | None:
        """The privacy loss; None if it is not private."""
        return None if self.flaw else self.claimed

    def statement(
        self, name: str, *, noise: str = "", units: str = "", mechanism: str = "", flaw: str = ""
    ) -> Release:
        """Return its line of a guarantee.

        Parameters
        ----------
        name : str
            Name of the released quantity.
        noise : str
            Text on the noise in place of "scale ...". A field in braces, such as ``{scale:.4g}``,
            is replaced by that attribute of the measurement.
        units : str
            Units of the noise, appended to it.
        mechanism : str
            Another name of the mechanism, such as that of its sampler.
        flaw : str
            Why the release is not private for a reason other than the noise.

        Returns
        -------
        Release
        """
        flaw = flaw or self.flaw
        words = (noise or self._NOISE).format_map(_Attributes(self))
        return Release(
            name,
            mechanism or self.mechanism,
            f"{words}, {units}" if units else words,
            self.proof,
            None if flaw else self.loss,
            flaw,
            **self._unrounded(),
        )

    def _unrounded(self) -> dict[str, Any]:
        """Return a statement's sensitivity, scale and norm; none if they are not public."""
        return {}


@dataclass(frozen=True)
class ForSensitivity(Measurement):
    """Noise for a sensitivity in the mechanism's norm."""

    sensitivity: Sensitivity
    _NORM: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.sensitivity, Sensitivity):
            raise ValueError(f"sensitivity must be a Sensitivity, got {self.sensitivity!r}")
        if self.sensitivity.norm != self._NORM:
            # a bound in one norm says nothing about another: it is refused, not converted
            raise ValueError(
                f"this mechanism needs a sensitivity in the norm {self._NORM!r}, got "
                f"{self.sensitivity.norm!r}"
            )

    @property
    def proof(self) -> str:
        return self.sensitivity.proof

    def _unrounded(self) -> dict[str, Any]:
        bound = self.sensitivity
        return {"sensitivity": bound.value, "scale": float(self.scale), "norm": bound.norm}


@dataclass(frozen=True)
class WithEpsilon(ForSensitivity):
    """Noise with the scale sensitivity / epsilon."""

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("epsilon", self.epsilon)
        check_integer("count", self.count, minimum=1)
        # an underflow or overflow would leave no privacy
        # half and twice the scale are used as well, by Wishart noise and the exponential mechanism
        if not 0 < self.scale / 2 <= 2 * self.scale < math.inf:
            raise ValueError(
                f"sensitivity / epsilon = {self.sensitivity.value!r} / {self.epsilon!r} is not "
                "representable"
            )

    @property
    def scale(self) -> float:
        return self.sensitivity.value / float(self.epsilon)

    @property
    def claimed(self) -> Loss:
        """Epsilon, and the zCDP parameter that it implies."""
        return Loss(pure_rho(self.epsilon), self.epsilon, self.count)


class _Attributes:
    def __init__(self, measurement: Measurement) -> None:
        self._measurement = measurement

    def __getitem__(self, name: str) -> Any:
        return getattr(self._measurement, name)


def real_array(name: str, value) -> np.ndarray | FixedPoint:
    """Return a float64 array of finite numbers; fixed-point numbers are unchanged."""
    if isinstance(value, FixedPoint):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        bad = np.asarray(value)[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must be finite, got {bad}")
    return array
