"""Measurements: noise together with its sensitivity and its privacy loss.

A measurement is built from a `Sensitivity` and a strength. It adds its noise (`release`), has a
privacy loss (`loss`) and writes the line of a guarantee (`statement`), so that each guarantee
states the noise that was added and its loss. Losses are `privclust.privacy.accounting.Loss`, which
only `privclust.privacy` uses.

With a numpy Generator as source, the same state gives the same bytes. With `SystemEntropy` nothing
can be repeated; guarantees are for this noise (`privclust.privacy.noise`). Parts of a statistic
that need different scales are divided by them first and multiplied afterwards.
"""

from privclust.privacy.measurements._calibration import (
    analytic_gaussian_sigma,
    claimed_rho,
    gaussian_part,
    gaussian_share,
    largest_share,
    second_moment_noise,
    share_of_rho,
)
from privclust.privacy.measurements._exponential import Exponential
from privclust.privacy.measurements._gaussian import Gaussian, SmoothGaussian, SymmetricGaussian
from privclust.privacy.measurements._laplace import Laplace
from privclust.privacy.measurements._measurement import PRICE_TOLERANCE, Measurement
from privclust.privacy.measurements._printed import Gamma, Wishart

__all__ = [
    "PRICE_TOLERANCE",
    "Exponential",
    "Gamma",
    "Gaussian",
    "Laplace",
    "Measurement",
    "SmoothGaussian",
    "SymmetricGaussian",
    "Wishart",
    "analytic_gaussian_sigma",
    "claimed_rho",
    "gaussian_part",
    "gaussian_share",
    "largest_share",
    "second_moment_noise",
    "share_of_rho",
]
