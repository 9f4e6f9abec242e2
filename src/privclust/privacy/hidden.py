"""Messages about clusters and components that cannot be distinguished from noise.

Below `COUNT_DEVIATIONS` standard deviations of its noise, a noisy count may be mere noise. That of
no rows exceeds this with probability 0.7 % (Laplace noise: half of :math:`e^{-3 \\sqrt 2}`) or
0.13 % (Gaussian noise); a count of six standard deviations falls below as rarely.
"""

from __future__ import annotations

import numpy as np

from privclust.core.warn import warn_caller
from privclust.privacy.guarantee import NoiseWarning

COUNT_DEVIATIONS = 3.0


def noise_message(is_detected: np.ndarray, *, of: str = "clusters") -> str:
    """Return a message on clusters that are not detected; empty if all are.

    Examples
    --------
    >>> print(noise_message(np.array([True, False])).partition(":")[0])
    1 of 2 clusters cannot be distinguished from noise
    """
    if is_detected.all():
        return ""
    hidden = f"{np.sum(~is_detected)} of {len(is_detected)} {of} cannot be distinguished from noise"
    return f"{hidden}: more rows, a larger epsilon or tighter bounds help"


def warn_of_noise(message: str) -> None:
    """Warn the caller of the fit, unless there is nothing to say."""
    if message:
        warn_caller(message, NoiseWarning)
