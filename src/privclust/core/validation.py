"""Checks of parameters, shared by all estimators; every message contains the given value."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from privclust.core.hints import RandomState


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a Generator for None, an int, a Generator (itself) or a RandomState (one draw)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, numbers.Integral | np.random.Generator):
        return np.random.default_rng(random_state)
    raise ValueError(
        "random_state must be None, an int, a numpy.random.Generator or a RandomState, "
        f"got {random_state!r}"
    )


def check_integer(name: str, value: Any, *, minimum: int) -> None:
    """Raise a ValueError unless `value` is an integer of at least `minimum`."""
    # a bool is an Integral
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}")


def check_real(name: str, value: Any, *, above: float = 0.0, inclusive: bool = False) -> None:
    """Raise a ValueError unless `value` is finite and above `above` (or equal, if inclusive)."""
    is_number = (
        isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    )
    if not is_number or value < above or (value == above and not inclusive):
        bound = "at least" if inclusive else "greater than"
        raise ValueError(f"{name} must be a finite number {bound} {above:g}, got {value!r}")


def check_option(name: str, value: Any, options: Collection[str]) -> None:
    """Raise a ValueError unless `value` is one of the options."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, got {value!r}")


# --- parameters of estimators ------------------------------------------------------------------

# checks a parameter, given its name, value, and the other parameters and sizes of X by name
Constraint = Callable[[str, Any, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Integer:
    """An integer of at least `minimum`; also at most, or below, ``n_samples`` or ``n_features``."""

    minimum: int = 1
    at_most: str = ""
    below: str = ""

    def __call__(self, name: str, value: Any, others: Mapping[str, Any]) -> None:
        check_integer(name, value, minimum=self.minimum)
        size = self.at_most or self.below
        most = others.get(size, math.inf)
        if value > most or (value == most and self.below):
            raise ValueError(
                f"{name} must be {'less than' if self.below else 'at most'} the number of "
                f"{size.removeprefix('n_')}, got {name}={value} for {size}={most}"
            )


@dataclass(frozen=True)
class Real:
    """A finite number above `above` (or equal, if inclusive), and below or at most another."""

    above: float = 0.0
    inclusive: bool = False
    below: float = math.inf
    at_most: float = math.inf

    def __call__(self, name: str, value: Any, others: Mapping[str, Any]) -> None:
        check_real(name, value, above=self.above, inclusive=self.inclusive)
        if value > self.at_most:
            raise ValueError(f"{name} must be at most {self.at_most:g}, got {value!r}")
        if value >= self.below:
            within = f"lie in ({self.above:g}, {self.below:g})"
            bound = f"be less than {self.below:g}" if self.inclusive else within
            raise ValueError(f"{name} must {bound}, got {value!r}")


@dataclass(frozen=True)
class Option:
    """One of the options; with `or_other`, other types than strings are checked where used."""

    options: Collection[str]
    or_other: bool = False

    def __call__(self, name: str, value: Any, others: Mapping[str, Any]) -> None:
        if isinstance(value, str) or not self.or_other:
            check_option(name, value, self.options)


@dataclass(frozen=True)
class Unless:
    """A constraint, replaced or dropped if another parameter has one of these values."""

    parameter: str
    values: Collection[str]
    constraint: Constraint
    otherwise: Constraint | None = None

    def __call__(self, name: str, value: Any, others: Mapping[str, Any]) -> None:
        is_other = others[self.parameter] in self.values
        constraint = self.otherwise if is_other else self.constraint
        if constraint is not None:
            constraint(name, value, others)


# with the dot, so that it is no beginning of privclust_papers and privclust_audit
_PACKAGE = __name__.partition(".")[0] + "."
GROUPS = Integer(at_most="n_samples")
NOT_NEGATIVE = Real(inclusive=True)
DELTA = Real(below=1.0)
UNUSED_DELTA = Real(inclusive=True, below=1.0)
"""An unused delta may be 0, but must be a probability."""
_OF_TYPES: dict[type, Constraint] = {int: Integer(), float: Real()}


@functools.cache
def constraints(cls: type) -> Mapping[str, tuple[Constraint, bool]]:
    """Return the constraints of an estimator's parameters, and whether they may be None.

    A class has a table `_constraints`, inherited by subclasses, for constraints beyond the types of
    its ``__init__``. Without an entry, an int is at least 1, a float is greater than 0, and a
    `Literal` is one of its options. Other types, and those of a user's subclass, are unconstrained.
    """
    table: dict[str, Constraint] = {}
    hints: dict[str, Any] = {}
    # the class itself comes last: its entries replace those of its bases
    for base in reversed(cls.__mro__):
        table |= vars(base).get("_constraints", {})
        if "__init__" in vars(base) and base.__module__.startswith(_PACKAGE):
            hints |= get_type_hints(base.__init__)  # type: ignore[misc]
    checks = {}
    for name, hint in hints.items():
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        constraint = table.get(name) or _of_type([part for part in parts if part is not NoneType])
        if constraint is not None:
            checks[name] = constraint, NoneType in parts
    return checks


def _of_type(parts: list[Any]) -> Constraint | None:
    literals = [part for part in parts if get_origin(part) is Literal]
    if literals:
        options = [option for part in literals for option in get_args(part)]
        return Option(options, or_other=len(parts) > len(literals))
    return _OF_TYPES.get(parts[0]) if len(parts) == 1 else None


def check_parameters(
    estimator: object,
    X: np.ndarray | None = None,
    *,
    count_is_public: bool = True,
    records: Any = None,
) -> None:
    """Raise a ValueError unless the parameters of an estimator are within their `constraints`.

    The message names a parameter, its value and the allowed values. Without X sizes are not
    checked, nor is the number of rows if it is private. The number of `records`, as
    `private_records` returns them, replaces the number of rows of X, some of which may be left out;
    that of groups is private.
    """
    cls: Any = type(estimator)
    parameters = vars(estimator)
    sizes: dict[str, float] = {}
    if X is not None:
        sizes = {"n_samples": X.shape[0], "n_features": X.shape[1]}
        if records is not None:
            # one ID that is missing changes the number of groups: it refuses nothing
            sizes["n_samples"] = math.inf if records.groups is not None else records.n_records
    if not count_is_public:
        sizes["n_samples"] = math.inf
    for name, (constraint, or_none) in constraints(cls).items():
        # the constructor of a class may lack parameters of its bases
        if name in parameters and not (or_none and parameters[name] is None):
            constraint(name, parameters[name], {**parameters, **sizes})


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, or of a class's constructor.

    If it has none, like some compiled functions, any arguments are accepted.
    """
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.signature(lambda *args, **kwargs: None)
