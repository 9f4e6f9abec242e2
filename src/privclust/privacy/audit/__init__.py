"""Attacks on privacy claims: lower bounds on epsilon and delta that hold with stated confidence.

An audit proves that a claim is wrong; it never proves that one is right. See `docs/audit.md`.
"""

from privclust.privacy.audit._audit import AuditResult, Event, audit_mechanism
from privclust.privacy.audit._bounds import bounds_from_counts, draws_needed
from privclust.privacy.audit._search import PairSearch, search_pair
from privclust.privacy.audit._sensitivity import (
    SensitivitySearch,
    add_remove,
    numerical_sensitivity,
    replace_one,
)
from privclust.privacy.audit._statistics import likelihood_ratio

__all__ = [
    "AuditResult",
    "Event",
    "PairSearch",
    "SensitivitySearch",
    "add_remove",
    "audit_mechanism",
    "bounds_from_counts",
    "draws_needed",
    "likelihood_ratio",
    "numerical_sensitivity",
    "replace_one",
    "search_pair",
]
