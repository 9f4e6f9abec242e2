"""Checks of parameters that all estimators share; every message names what it got."""

from __future__ import annotations

import math
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

from privclust.hints import RandomState


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a Generator for None, an int, a Generator (itself) or a RandomState (one draw)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, Integral | np.random.Generator):
        return np.random.default_rng(random_state)
    raise ValueError(
        "random_state must be None, an int, a numpy.random.Generator or a RandomState, "
        f"got {random_state!r}"
    )


def check_integer(name: str, value: Any, *, minimum: int) -> None:
    """Raise a ValueError unless `value` is an integer of at least `minimum`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")


def check_real(name: str, value: Any, *, above: float = 0.0, inclusive: bool = False) -> None:
    """Raise a ValueError unless `value` is finite and above `above` (or equal, if inclusive)."""
    is_number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or value < above or (value == above and not inclusive):
        bound = "at least" if inclusive else "greater than"
        raise ValueError(f"{name} must be a finite number {bound} {above:g}, got {value!r}")


def check_option(name: str, value: Any, options: Collection[str]) -> None:
    """Raise a ValueError unless `value` is one of the options."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, got {value!r}")


def check_number_of_groups(name: str, value: Any, n_samples: int) -> None:
    """Raise a ValueError unless `value` is an integer from 1 to the number of samples."""
    check_integer(name, value, minimum=1)
    if value > n_samples:
        raise ValueError(
            f"{name} must be at most the number of samples, got {name}={value} for "
            f"n_samples={n_samples}"
        )
