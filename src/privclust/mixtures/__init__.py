"""Mixtures of Gaussians by expectation maximisation."""

from privclust.mixtures._adaptive import AdaptiveGaussianMixture
from privclust.mixtures._em import GaussianMixtureEM
from privclust.mixtures._parameters import MixtureParameters, sample
from privclust.mixtures._perturbations import PlanSettings, budget_share, perturbations
from privclust.mixtures._private_em import PrivateGaussianMixture
from privclust.mixtures._statistics import (
    Statistics,
    centred_statistics,
    log_density,
    responsibilities,
)
from privclust.mixtures.exact_statistics import ExactStatistics, exact_statistics

__all__ = [
    "AdaptiveGaussianMixture",
    "ExactStatistics",
    "GaussianMixtureEM",
    "MixtureParameters",
    "PlanSettings",
    "PrivateGaussianMixture",
    "Statistics",
    "budget_share",
    "centred_statistics",
    "exact_statistics",
    "log_density",
    "perturbations",
    "responsibilities",
    "sample",
]
