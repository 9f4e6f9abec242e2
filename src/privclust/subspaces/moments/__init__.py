"""Private unions of subspaces from one noisy sketch of harmonic moments.

Read in this order: `union`, `_objective`, `_likelihood` and `_information` (fit of a union of
subspaces, and its errors), `_decoding`, `_selection` (how many), `last_round`, `_estimator`;
`_bound` is a lower bound on the error of any decoder.
"""

from privclust.sketches._moment_sketch import MomentSketch
from privclust.subspaces.moments._bound import least_error
from privclust.subspaces.moments._decoding import DecodedSubspaces, decode, misfit_message
from privclust.subspaces.moments._estimator import MomentSubspaceClustering
from privclust.subspaces.moments._selection import choose_sizes
from privclust.subspaces.moments.last_round import is_detected

__all__ = [
    "DecodedSubspaces",
    "MomentSketch",
    "MomentSubspaceClustering",
    "choose_sizes",
    "decode",
    "is_detected",
    "least_error",
    "misfit_message",
]
