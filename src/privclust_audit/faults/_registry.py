"""All faults by name."""

from __future__ import annotations

from privclust_audit.faults import _clustering, _fits, _patterns, _sparse_vector, _textbook
from privclust_audit.faults._fault import Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for module in (_textbook, _sparse_vector, _patterns, _clustering, _fits)
    for fault in module.ALL
}
"""Faults, and published mechanisms without one, by name in the order of their topics."""
