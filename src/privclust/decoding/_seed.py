"""The seed of a decoder, derived from what was released.

Random starts protect nobody's privacy. Their seed is a hash of the released sums and of public
settings, so that the same files and settings give the same clusters, in any process. A function of
released values costs no privacy. Noise never comes from here (`privclust.privacy.noise`).
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
    """Return the generator of a decoder's starts: seeded by a hash if `random_state` is None.

    The hash is of the sketch's frequencies, sums and number of records, and of `settings` on which
    the result depends as well; all are public or released.
    """
    if random_state is not None:
        return as_generator(random_state)
    digest = hashlib.sha256()
    of_sketch = sketch.frequencies, sketch.sums, sketch.n_samples, sketch.n_measurements
    for part in (*of_sketch, *settings):
        # shapes too: bytes of two arrays in a row must not be those of two others
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode() + part.tobytes())
        else:  # a number may come as any type of number
            digest.update(f"{part if isinstance(part, str) else float(part).hex()};".encode())
    return np.random.default_rng(np.frombuffer(digest.digest(), dtype="<u4"))
