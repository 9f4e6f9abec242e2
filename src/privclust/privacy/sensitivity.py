"""The largest change of a statistic by one row, which scales a mechanism's noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from privclust.core.validation import check_real

NORMS = ("l1", "l2", "trace", "range")


class Neighbours(StrEnum):
    """The relation of neighbouring data sets; ``replace_one`` also means ``replace-one``.

    Examples
    --------
    >>> Neighbours.of("add_remove") is Neighbours.of("add-remove") is Neighbours.ADD_REMOVE
    True
    >>> f"{Neighbours.REPLACE_ONE} neighbours"
    'replace-one neighbours'
    """

    REPLACE_ONE = "replace-one"
    """One row is exchanged for another; the number of rows is public."""
    ADD_REMOVE = "add-remove"
    """One row more or less."""

    @classmethod
    def of(cls, value: Any, name: str = "neighbours") -> Neighbours:
        """Return the relation of this name, with a dash or an underscore.

        A ValueError that begins with the parameter's `name` is raised for other names.
        """
        try:
            return cls(value.replace("_", "-"))
        except (AttributeError, ValueError):
            names = ", ".join(member.replace("-", "_") for member in cls)
            raise ValueError(f"{name} must be one of {names}, got {value!r}") from None


def check_neighbours(name: str, value: Any, known: Mapping[str, Any]) -> None:
    """Raise a ValueError unless a parameter names a relation; used in tables of parameters."""
    Neighbours.of(value, name)


@dataclass(frozen=True)
class Sensitivity:
    r"""Largest change of a statistic between neighbouring data sets, with its proof.

    Attributes
    ----------
    value : float
        The bound, finite and positive, in the statistic's own units.
    norm : {"l1", "l2", "trace", "range"}
        Norm of the change. ``"l1"`` and ``"l2"``: that norm of all entries together (of a complex
        array: of all its real and imaginary parts). ``"trace"``: nuclear norm of a symmetric
        matrix. ``"range"``: largest absolute change of any one candidate's score.
    relation : Neighbours
        Or its name: one row is replaced (n fixed), or added or removed.
    proof : str
        Reference of the proof, such as ``"eq. (14)"``.

    Raises
    ------
    ValueError
        If an attribute is none of these.

    Examples
    --------
    >>> mean = Sensitivity(2.0, "l2", "replace-one", "rows have norm at most 1").scaled(1 / 100)
    >>> mean.value, mean.norm
    (0.02, 'l2')
    """

    value: float
    norm: str
    relation: Neighbours
    proof: str

    def __post_init__(self) -> None:
        check_real("value", self.value)
        if self.norm not in NORMS:
            raise ValueError(f"norm must be one of {NORMS}, got {self.norm!r}")
        object.__setattr__(self, "relation", Neighbours.of(self.relation, "relation"))
        if not isinstance(self.proof, str) or not self.proof.strip():
            raise ValueError(f"proof must say where the bound is proved, got {self.proof!r}")
        # a float32 would carry its rounding into every scale that is computed from it
        object.__setattr__(self, "value", float(self.value))

    def scaled(self, factor: float) -> Sensitivity:
        """Return the sensitivity of the statistic times `factor`, such as one over n.

        A ValueError is raised if `factor`, or the scaled bound, is not finite and positive.

        Examples
        --------
        >>> Sensitivity(3.0, "l1", "add-remove", "by hand").scaled(0.5).value
        1.5
        """
        check_real("factor", factor)
        return replace(self, value=self.value * float(factor))


def root_above(square: float) -> float:
    """Return the square root of a number, rounded up to a float, for use as a bound.

    Parameters
    ----------
    square : float
        Positive, itself exact, such as a whole number.

    Examples
    --------
    >>> root_above(3.0) > math.sqrt(3.0), root_above(2.0) == math.sqrt(2.0)
    (True, True)
    """
    root = math.sqrt(square)
    # fractions are exact, and the root may have been rounded down
    is_below = Fraction(root) ** 2 < Fraction(square)
    return math.nextafter(root, math.inf) if is_below else root
