"""Words that code far apart has to spell alike."""

from __future__ import annotations

OWN_CLAIM = "(own claim)"
"""Ends the labels of a user's own methods: captions speak of the privacy of the others."""

ROWS, ROWS_OUTSIDE = "rows", "rows_outside"
"""Facts of trials on a user's own data: how many rows there are, and how many outside the box."""

CLAIMANTS = ("ours", "paper", "code", "copy", "nobody")
"""Who claims what the audit attacks, if anybody; the metric ``claimant`` is the place here."""

CONSISTENT = "consistent"
VIOLATED = "violated"
CANNOT_TELL = "cannot tell"
AUDIT_VERDICTS = (CONSISTENT, VIOLATED, CANNOT_TELL)
"""What the audit says of a claim: no violation although the attack came near to it, a violation,
and neither. The metric ``verdict`` is the place here."""


def is_substitute(source: object) -> bool:
    """Return whether a table's ``source`` says that its data stand in for the paper's.

    Examples
    --------
    >>> is_substitute("substitute: generated"), is_substitute("mirror")
    (True, False)
    """
    return str(source).startswith("substitute")


def is_part(source: object) -> bool:
    """Return whether a table's ``source`` says that its data are a part of the paper's.

    Orders of methods on it are judged; printed numbers are not comparable.

    Examples
    --------
    >>> is_part("part of cub200"), is_part("cub200")
    (True, False)
    """
    return str(source).startswith("part of ")
