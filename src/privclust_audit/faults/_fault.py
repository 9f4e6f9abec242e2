"""The description of a fault: claim, mechanism, private twin, and a pair that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SNIPER = (
    "B. Bichsel, S. Steffen, I. Bogunovic and M. Vechev, 'DP-Sniper: black-box discovery of "
    "differential privacy violations using classifiers', IEEE S&P 2021"
)


@dataclass(frozen=True)
class Fault:
    """A mechanism and its claim. Not for use.

    Attributes
    ----------
    name : str
    about : str
        Description of the fault, or a note that there is none.
    epsilon, delta : float
        The claim.
    neighbours : str
        The neighbours of the claim.
    mechanism : callable
        ``mechanism(data, rng)``, and ``mechanism.many(data, rng, n)`` for n outputs at once.
    data, neighbour : numpy.ndarray
        Neighbours that show the fault.
    twin : callable or None
        A private mechanism with the same claim and signature; None if `mechanism` is private.
    loss : float or None
        Smallest epsilon of the mechanism at the claimed delta; infinite if there is none, None if
        it is not known.
    published : float or None
        Lower bound on epsilon published by DP-Sniper's authors.
    log_density : callable or None
        ``log_density(outputs, data)`` of the mechanism if it is simple, for `likelihood_ratio`.
    source : str
        Origin of the fault or mechanism.
    """

    name: str
    about: str
    epsilon: float
    neighbours: str
    mechanism: Callable
    data: Any
    neighbour: Any
    twin: Callable | None
    source: str
    delta: float = 0.0
    loss: float | None = None
    published: float | None = None
    log_density: Callable | None = None

    @property
    def is_private(self) -> bool:
        """Whether the claim is right."""
        return self.twin is None


def batched(many: Callable, name: str | None = None) -> Callable:
    """Return the mechanism of one output from ``many(data, rng, n)``, its attribute.

    Its `name` is by default that of the function.

    Examples
    --------
    >>> mechanism = batched(lambda data, rng, n: rng.laplace(data, 1.0, n))
    >>> mechanism.many(0.0, np.random.default_rng(0), 3).shape
    (3,)
    """

    def mechanism(data, rng):
        return many(data, rng, 1)[0]

    mechanism.many = many  # type: ignore[attr-defined]
    mechanism.__name__ = mechanism.__qualname__ = name or getattr(many, "__name__", "mechanism")
    return mechanism


class LaplaceNoise:
    """A value of the data with independent Laplace noise on each coordinate. Not for use.

    Parameters
    ----------
    value : callable
        ``value(data)`` returns numbers (d,).
    scale : float, ndarray of shape (d,) or callable
        Scale of the noise; ``scale(data)`` if it depends on the data, which is a fault.

    Examples
    --------
    >>> count = LaplaceNoise(len, 1.0)
    >>> count.many(np.zeros(5), np.random.default_rng(0), 3).shape
    (3, 1)
    >>> float(count.log_density(np.array([5.0]), np.zeros(5)))  # -ln 2
    -0.6931471805599453
    """

    def __init__(self, value: Callable, scale: float | np.ndarray | Callable) -> None:
        self._value, self._scale = value, scale

    def _law(self, data) -> tuple[np.ndarray, np.ndarray]:
        value = np.atleast_1d(np.asarray(self._value(data), dtype=float))
        scale = self._scale(data) if callable(self._scale) else self._scale
        return value, np.broadcast_to(np.asarray(scale, dtype=float), value.shape)

    def many(self, data: Any, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return n outputs (n, d)."""
        value, scale = self._law(data)
        return rng.laplace(value, scale, (n, value.size))

    def __call__(self, data, rng: np.random.Generator) -> np.ndarray:
        return self.many(data, rng, 1)[0]

    def log_density(self, outputs: np.ndarray, data: Any) -> np.ndarray:
        """Logarithm of the density of outputs (..., d)."""
        value, scale = self._law(data)
        return -(np.abs(outputs - value) / scale + np.log(2.0 * scale)).sum(axis=-1)
