"""Measurements: noise bound to the sensitivity it is for and to what it costs.

A measurement is made of a `Sensitivity` and a strength. It adds its noise (`release`), knows the
price of that noise (`loss`) and writes the line of a guarantee (`statement`), so that no guarantee
states another noise, or another price, than was added. Prices are in the currencies of
`privclust.privacy.accounting.Loss`: outside of `privclust.privacy` nothing knows of these.

With a numpy Generator as source the same state gives the same bytes, with `SystemEntropy` nothing
can be repeated; guarantees are for noise from the latter (`privclust.privacy.noise`). Parts of a
statistic that need different scales are divided by theirs first and multiplied after.
"""

from privclust.privacy.measurements._calibration import (
    analytic_gaussian_sigma,
    claimed_rho,
    classical_gaussian_sigma,
    gaussian_part,
    gaussian_share,
    largest_share,
    mod_sulq_scale,
    second_moment_noise,
    share_of_rho,
)
from privclust.privacy.measurements._exponential import Exponential
from privclust.privacy.measurements._gaussian import Gaussian, SmoothGaussian, SymmetricGaussian
from privclust.privacy.measurements._laplace import ComplexLaplace, Laplace
from privclust.privacy.measurements._measurement import PRICE_TOLERANCE, Measurement
from privclust.privacy.measurements._printed import Gamma, Wishart

__all__ = [
    "PRICE_TOLERANCE",
    "ComplexLaplace",
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
    "classical_gaussian_sigma",
    "gaussian_part",
    "gaussian_share",
    "largest_share",
    "mod_sulq_scale",
    "second_moment_noise",
    "share_of_rho",
]
