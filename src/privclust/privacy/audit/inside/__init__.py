"""Looking inside: what a private fit noises, and what comes out of it beside that."""

from privclust.privacy.audit.inside._changes import Change
from privclust.privacy.audit.inside._pair import PairReport, Run, Violation, inspect_pair
from privclust.privacy.audit.inside._recorder import RecordedRelease

__all__ = ["Change", "PairReport", "RecordedRelease", "Run", "Violation", "inspect_pair"]
