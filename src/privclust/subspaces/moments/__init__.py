"""Private unions of subspaces from one noised sketch of harmonic moments.

Read in this order: `_harmonics` (what a row becomes, and how far it moves a sum), `_sums` (exact
sums), `_sketch` (release, merging, files), `_objective`, `_likelihood` and `_information` (what a
union of subspaces explains, and how well it is known), `_decoding`, `_last_round`, `_estimator`.
"""

from privclust.subspaces.moments._decoding import DecodedSubspaces, decode
from privclust.subspaces.moments._estimator import MomentSubspaceClustering
from privclust.subspaces.moments._sketch import MomentSketch

__all__ = ["DecodedSubspaces", "MomentSketch", "MomentSubspaceClustering", "decode"]
