"""Words that several distant modules share."""

from __future__ import annotations

OWN_CLAIM = "(own claim)"
"""Suffix of the labels of a user's methods; captions state the privacy of the others."""

CLAIMANTS = ("ours", "paper", "code", "copy", "nobody")
"""Claimants of the audited guarantees; the metric ``claimant`` is an index into this tuple."""

CONSISTENT = "consistent"
VIOLATED = "violated"
CANNOT_TELL = "cannot tell"
AUDIT_VERDICTS = (CONSISTENT, VIOLATED, CANNOT_TELL)
"""Verdicts of the audit: no violation although the attack came near to the claim, a violation, and
neither. The metric ``verdict`` is an index into this tuple."""


def is_substitute(source: object) -> bool:
    """Return whether a table's ``source`` marks its data as a substitute for the paper's.

    Examples
    --------
    >>> is_substitute("substitute: generated"), is_substitute("mirror")
    (True, False)
    """
    return str(source).startswith("substitute")


def is_part(source: object) -> bool:
    """Return whether a table's ``source`` marks its data as a part of the paper's.

    Rankings of methods are compared on a part; printed numbers are not.

    Examples
    --------
    >>> is_part("part of cub200"), is_part("cub200")
    (True, False)
    """
    return str(source).startswith("part of ")
