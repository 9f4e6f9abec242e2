"""Attacks on privacy claims: lower bounds on epsilon and delta that hold with stated confidence.

An audit proves that a claim is wrong; it never proves that one is right. See `docs/audit.md`.
"""

from privclust_audit.black_box._audit import audit_mechanism
from privclust_audit.black_box._bounds import bounds_from_counts
from privclust_audit.black_box._events import Event
from privclust_audit.black_box._result import CANNOT_TELL, CONSISTENT, VIOLATED, AuditResult
from privclust_audit.black_box._sensitivity_search import SensitivitySearch, numerical_sensitivity
from privclust_audit.black_box._statistics import likelihood_ratio, vectorised
from privclust_audit.black_box.neighbours import add_remove, replace_one

__all__ = [
    "CANNOT_TELL",
    "CONSISTENT",
    "VIOLATED",
    "AuditResult",
    "Event",
    "SensitivitySearch",
    "add_remove",
    "audit_mechanism",
    "bounds_from_counts",
    "likelihood_ratio",
    "numerical_sensitivity",
    "replace_one",
    "vectorised",
]
