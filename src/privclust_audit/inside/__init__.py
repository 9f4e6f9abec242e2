"""Recorded fits: the noisy releases of a private fit, and its other outputs.

All noise goes through `privclust.privacy.measurements`. A fit is recorded: each release with the
value before noise, its sensitivity, and its caller. The same fit on a neighbour gets the released
values and the same unprotected draws. Any remaining difference comes from the data in another way,
and two runs prove it. See ``docs/audit.md``.
"""

from privclust_audit.inside._changes import Change
from privclust_audit.inside._pair import (
    CANNOT_TELL,
    CLAIM,
    NOTHING_FOUND,
    RUNS_WITH_GENERATOR,
    VIOLATED,
    PairReport,
    Run,
    Violation,
    inspect_pair,
)
from privclust_audit.inside._ratio import ReleasedLaw, released_law
from privclust_audit.inside._recorder import RecordedRelease
from privclust_audit.inside._search import Finding, InsideResult, Site, look_inside

__all__ = [
    "CANNOT_TELL",
    "CLAIM",
    "NOTHING_FOUND",
    "RUNS_WITH_GENERATOR",
    "VIOLATED",
    "Change",
    "Finding",
    "InsideResult",
    "PairReport",
    "RecordedRelease",
    "ReleasedLaw",
    "Run",
    "Site",
    "Violation",
    "inspect_pair",
    "look_inside",
    "released_law",
]
