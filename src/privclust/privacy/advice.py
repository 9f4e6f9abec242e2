"""Advice in warnings: how much less noise Gaussian noise would be in place of Laplace noise."""

from __future__ import annotations

EXAMPLE_DELTA = 1e-6
"""For which warnings say how much less noise there would be."""
_USUAL_EPSILONS = 1e-3, 1e2  # for which they do


def is_usual(epsilon: float) -> bool:
    """Return whether to say what a delta would buy at this epsilon."""
    return _USUAL_EPSILONS[0] <= epsilon <= _USUAL_EPSILONS[1]


def less_noise(ratio: float, how: str) -> str:
    """Return advice on normal noise in place of Laplace noise, where it would be less by a ratio.

    Examples
    --------
    >>> less_noise(12.3, "delta=1e-06")
    ', and with delta=1e-06 there would be 12 times less noise'
    >>> less_noise(0.5, "delta=1e-06")
    ''
    """
    return f", and with {how} there would be {ratio:.2g} times less noise" if ratio > 1.0 else ""
