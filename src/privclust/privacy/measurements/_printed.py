"""Noise as printed in the private EM paper, which is not private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.privacy.measurements._measurement import WithEpsilon, real_array
from privclust.privacy.noise import NoiseSource, unprotected_generator


@dataclass(frozen=True)
class Gamma(WithEpsilon):
    r"""Gamma noise (shape 1, rate ``epsilon / sensitivity``) on every entry. Not private.

    The private EM paper's noise for variances, eq. (16), with ``beta = epsilon / sensitivity``.
    It is **not differentially private** for any epsilon: the noise is never negative, so that an
    output below the value of one data set excludes that data set. With values 0 and Delta the
    output is below Delta with probability ``1 - exp(-epsilon)`` and 0. So (epsilon', delta) holds
    with exactly ``delta = 1 - exp(-epsilon)``, for every epsilon' >= 0. The paper's proof compares
    densities only on the common support; `claimed` is its claim.

    Parameters
    ----------
    sensitivity : Sensitivity
        In the norm ``"l1"``.
    epsilon, count
        As for `Measurement`: the paper's epsilon', and the number of releases it counts.

    References
    ----------
    M. Park, J. Foulds, K. Chaudhuri and M. Welling, "Practical privacy for expectation
    maximization", 2016 (as "DP-EM", AISTATS 2017), eq. (16).

    Examples
    --------
    >>> from privclust.privacy import Sensitivity
    >>> noise = Gamma(Sensitivity(0.01, "l1", "replace-one", "eq. (16)"), 1.0)
    >>> bool(noise.release(0.5, np.random.default_rng(0)) > 0.5), noise.loss
    (True, None)
    >>> noise.claimed.epsilon
    1.0
    """

    mechanism = "gamma"
    flaw = (
        "one-sided noise, eq. (16): an output below one data set's value excludes that data set; "
        "delta = 1 - exp(-eps') at every epsilon"
    )
    _NORM = "l1"

    def release(self, value: ArrayLike, source: NoiseSource) -> Any:
        """Return a value with noise; see `Measurement.release`.

        With `SystemEntropy` the noise comes from a numpy Generator seeded by the operating system,
        which does not resist the floating-point attack: the release is not private anyway.
        """
        array = np.asarray(real_array("value", value))
        return array + unprotected_generator(source).gamma(1.0, self.scale, size=array.shape)


@dataclass(frozen=True)
class Wishart(WithEpsilon):
    r"""Wishart noise ``Z Z'`` on symmetric matrices. Not private.

    The private EM paper's noise for covariances, eqs. (17) and (18): Z is d x (d + 1) with entries
    N(0, lambda), ``lambda = sensitivity / (2 epsilon)``. It is **not differentially private** for
    any epsilon: the noise is positive semi-definite, so that an output minus the matrix of a data
    set excludes this data set if it is not. With the matrices 0 and Delta x x', x of norm 1, that
    has probability ``P(lambda chi^2_2 < Delta) = 1 - exp(-epsilon)`` and 0, in any dimension: delta
    is at least that, for every epsilon' >= 0.

    Parameters
    ----------
    sensitivity : Sensitivity
        In the norm ``"trace"``.
    epsilon, count
        As for `Gamma`, with the same reference: eqs. (17), (18).

    Examples
    --------
    >>> from privclust.privacy import Sensitivity
    >>> moment = Sensitivity(0.01, "trace", "replace-one", "rows have norm at most 1, n = 100")
    >>> noisy = Wishart(moment, 1.0).release(np.zeros((2, 2)), np.random.default_rng(0))
    >>> bool(np.linalg.eigvalsh(noisy).min() > 0)
    True
    """

    mechanism = "wishart"
    flaw = (
        "positive semi-definite noise, eqs. (17), (18): an output that is not above one data "
        "set's matrix excludes that data set; delta >= 1 - exp(-eps') at every epsilon"
    )
    _NORM = "trace"

    def release(self, value: ArrayLike, source: NoiseSource) -> Any:
        """Return a symmetric matrix or a stack of them, (..., d, d), with noise, float64."""
        array = np.asarray(real_array("value", value))
        if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
            raise ValueError(f"value must have shape (..., d, d), got {array.shape}")
        *stack, d, _ = array.shape
        # the variance is lambda = sensitivity / (2 epsilon)
        deviation = math.sqrt(self.scale / 2)
        Z = unprotected_generator(source).normal(scale=deviation, size=(*stack, d, d + 1))
        return array + Z @ np.swapaxes(Z, -1, -2)
