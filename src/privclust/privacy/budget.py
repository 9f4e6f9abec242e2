"""A ledger of privacy: what fits, sketches and commands have spent, and what is left."""

from __future__ import annotations

from contextvars import ContextVar

from privclust.privacy.guarantee import Guarantee

_LEDGERS: ContextVar[tuple] = ContextVar("ledgers", default=())


def charge(guarantee: Guarantee) -> None:
    """Draw a guarantee on the open ledgers, before anything private is released.

    Does nothing where no ledger is open.
    """
    for ledger in _LEDGERS.get():
        ledger.spend(guarantee)
