"""Measurements, guarantees and accounting: the noise of private estimators and its privacy loss."""

from privclust.privacy.accounting import Loss, composed_epsilon, pld_epsilon, zcdp_epsilon, zcdp_rho
from privclust.privacy.budget import Budget, BudgetError
from privclust.privacy.guarantee import (
    Guarantee,
    NoiseWarning,
    PrivacyLeakWarning,
    Release,
    WeakGuaranteeWarning,
)
from privclust.privacy.left_out import NoisyCount
from privclust.privacy.noise import SystemEntropy, is_seeded, noise_source
from privclust.privacy.sensitivity import Neighbours, Sensitivity

__all__ = [
    "Budget",
    "BudgetError",
    "Guarantee",
    "Loss",
    "Neighbours",
    "NoiseWarning",
    "NoisyCount",
    "PrivacyLeakWarning",
    "Release",
    "Sensitivity",
    "SystemEntropy",
    "WeakGuaranteeWarning",
    "composed_epsilon",
    "is_seeded",
    "noise_source",
    "pld_epsilon",
    "zcdp_epsilon",
    "zcdp_rho",
]
