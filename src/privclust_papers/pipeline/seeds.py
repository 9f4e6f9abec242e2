"""Random streams that depend on what is computed, not on where, when or in which order.

Every stream is keyed by (paper, experiment, point, trial, stream). The key is hashed with SHA-256
(Python's own ``hash`` changes from run to run) and given to `numpy.random.SeedSequence` as its
spawn key. Re-blocking, more cores, another order or another executor therefore change nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.core.canonical import canonical_json

STREAMS = ("data", "init", "noise")


def generator(
    base: int,
    paper: str,
    experiment: str,
    point: Mapping[str, Any],
    trial: int,
    stream: str,
    method: str | None = None,
) -> np.random.Generator:
    """Return the generator of one stream of one trial.

    `base` is the run's seed (``seed`` in config/config.yaml), `point` the grid point as JSON
    values, `stream` one of `STREAMS`, with a method for ``"noise"`` only: methods compared in one
    panel share data and starts. Anything else is a ValueError.

    Examples
    --------
    >>> a = generator(0, "mtsc", "mtsc_synthetic", {"n": 15}, 3, "data")
    >>> b = generator(0, "mtsc", "mtsc_synthetic", {"n": 15}, 3, "data")
    >>> bool(a.random() == b.random())
    True
    """
    if stream not in STREAMS:
        raise ValueError(f"stream: got {stream!r}; it may be one of {', '.join(STREAMS)}")
    if (stream == "noise") != (method is not None):
        raise ValueError(f"stream {stream!r}: a method belongs to 'noise', and to no other stream")
    key = canonical_json([paper, experiment, dict(point), int(trial), stream, method])
    words = np.frombuffer(hashlib.sha256(key.encode()).digest(), dtype="<u4")
    sequence = np.random.SeedSequence(base, spawn_key=tuple(int(word) for word in words))
    return np.random.Generator(np.random.PCG64DXSM(sequence))
