"""Random streams that are functions of the computation, independent of machine, time and order.

Every stream has a key (paper, experiment, point, trial, stream). The SHA-256 of the key (Python's
``hash`` changes between runs) is the spawn key of a `numpy.random.SeedSequence`. Other blocks,
numbers of cores, orders or executors therefore do not change results.
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
    values, `stream` one of `STREAMS`. Only ``"noise"`` has a method, since compared methods share
    data and starts. Raises a ValueError for other combinations.

    Examples
    --------
    >>> a = generator(0, "mtsc", "mtsc_synthetic", {"n": 15}, 3, "data")
    >>> b = generator(0, "mtsc", "mtsc_synthetic", {"n": 15}, 3, "data")
    >>> bool(a.random() == b.random())
    True
    """
    if stream not in STREAMS:
        raise ValueError(f"stream: got {stream!r}; it must be one of {', '.join(STREAMS)}")
    # A forgotten method would give all methods the same noise.
    if (stream == "noise") != (method is not None):
        raise ValueError(f"stream {stream!r}: a method belongs to 'noise', and to no other stream")
    key = canonical_json([paper, experiment, dict(point), int(trial), stream, method])
    # Little-endian on every machine: a spawn key takes words of 32 bits.
    words = np.frombuffer(hashlib.sha256(key.encode()).digest(), dtype="<u4")
    sequence = np.random.SeedSequence(base, spawn_key=tuple(int(word) for word in words))
    return np.random.Generator(np.random.PCG64DXSM(sequence))
