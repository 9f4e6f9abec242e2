"""The subject of an inspection: an estimator, or a callable that returns one or a release."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np


def fit_of(subject: Any) -> Callable:
    """Return the function of parameters and arguments that fits a fresh copy of a subject."""
    if hasattr(subject, "fit") and not isinstance(subject, type):
        return lambda parameters, *data: _fitted(_with(copy.deepcopy(subject), parameters), data)
    if not callable(subject):
        raise ValueError(f"an estimator or a callable is needed, got {type(subject).__name__}")
    if takes(subject, 0):
        return lambda parameters, *data: _fitted(_with(subject(), parameters), data)
    if not takes_generator(subject):
        return lambda parameters, *data: subject(*data)
    # a generator that is made within the recording, which the adapter sees
    return lambda parameters, *data: subject(*data, np.random.default_rng())


def takes_generator(subject: Any) -> bool:
    """Return whether a subject is a callable of a data set and a generator."""
    is_callable = callable(subject) and not hasattr(subject, "fit")
    # A callable with defaults accepts fewer arguments, and then needs no generator.
    return is_callable and takes(subject, 2) and not (takes(subject, 0) or takes(subject, 1))


def takes(subject: Callable, n_arguments: int) -> bool:
    """Return whether a callable can be called with `n_arguments` arguments."""
    try:
        inspect.signature(subject).bind(*[None] * n_arguments)
    except (TypeError, ValueError):
        return False
    return True


def _fitted(estimator: Any, data: tuple[Any, ...]) -> Any:
    """Return a fit to (X,), (X, y) or (X, y, groups); groups are passed by name."""
    *others, groups = data if len(data) == 3 else (*data, None)
    return estimator.fit(*others) if groups is None else estimator.fit(*others, groups=groups)


def _with(estimator, parameters):
    return estimator.set_params(**parameters) if parameters else estimator
