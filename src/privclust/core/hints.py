"""Types shared by the signatures of estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
"""A source of random numbers; None is the operating system."""

Bounds: TypeAlias = (
    tuple[ArrayLike, ArrayLike] | Sequence[tuple[float, float]] | Mapping[str, tuple[float, float]]
)
"""The lower and the upper corner of a box: numbers, or arrays of shape (n_features,).

Or a list of pairs, one for each feature; or a pair for each column of a frame, by its name.
"""
