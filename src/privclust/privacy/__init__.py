"""Mechanisms, guarantees and accounting: what makes an estimator private, and how private."""

from privclust.privacy.accounting import Loss, composed_epsilon, pld_epsilon, zcdp_epsilon, zcdp_rho
from privclust.privacy.guarantee import Guarantee, PrivacyLeakWarning, Release

__all__ = [
    "Guarantee",
    "Loss",
    "PrivacyLeakWarning",
    "Release",
    "composed_epsilon",
    "pld_epsilon",
    "zcdp_epsilon",
    "zcdp_rho",
]
