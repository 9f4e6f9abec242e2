"""The seed of a decoder, derived from released values.

Random starts are not noise and need no secret seed. Their seed is a hash of the released sums and
of public settings, so that the same files and settings give the same clusters in any process, at no
privacy loss. Noise never comes from here (`privclust.privacy.noise`).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from privclust.core.hints import RandomState
from privclust.core.validation import as_generator
from privclust.sketches._sketch import Sketch


def decoding_generator(
    random_state: RandomState, sketch: Sketch, *settings: Any
) -> np.random.Generator:
    """Return the generator of a decoder's starts, seeded by a hash if `random_state` is None.

    The hash is that of the sketch's frequencies, sums and number of records, and of the `settings`
    of the decoder; all are public or released.
    """
    if random_state is not None:
        return as_generator(random_state)
    digest = hashlib.sha256()
    of_sketch = sketch.frequencies, sketch.sums, sketch.n_samples, sketch.n_measurements
    for part in (*of_sketch, *settings):
        # shapes too, so that different pairs of arrays cannot have the same bytes
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
        else:  # the same number may have different types
            digest.update(f"{part if isinstance(part, str) else float(part).hex()};".encode())
    return np.random.default_rng(np.frombuffer(digest.digest(), dtype="<u4"))
