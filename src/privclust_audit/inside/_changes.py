"""The change of the value before noise between neighbours, in exact arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privclust.core.fixed_point import FixedPoint
from privclust.privacy.accounting import laplace_rho
from privclust.privacy.measurements import PRICE_TOLERANCE, Laplace
from privclust.privacy.sensitivity import Neighbours
from privclust_audit.inside._recorder import RecordedRelease

_SLIGHT = 1e-5  # relative excess of the bound that six digits do not show
_STEPS_TO_REPLACE = 2


@dataclass(frozen=True)
class Change:
    """The change of one release between two data sets.

    Attributes
    ----------
    size : float
        In the sensitivity's norm; for a sampler recorded by an adapter, in l1. NaN if the value or
        the norm is not measured.
    part : float
        Relative to the stated sensitivity; for a sampler, to its scale.
    is_exact : bool
        Whether the values are whole numbers (fixed-point sums). Otherwise they are floats with
        their rounding as part of the change; the change of the floats is exact.
    problem : str
        Description of the fault; empty if there is none.
    kind : str
        ``"sensitivity"`` or ``"price"``.
    """

    size: float = math.nan
    part: float = math.nan
    is_exact: bool = False
    problem: str = ""
    kind: str = ""


def change_of(
    first: RecordedRelease, second: RecordedRelease, relation: Neighbours | None
) -> Change:
    """Return the change of a release between two runs, compared with its statement."""
    if first.value is None or second.value is None:
        return Change()
    if first.measurement is None:
        return _of_sampler(first, second)
    sensitivity = getattr(first.measurement, "sensitivity", None)
    if sensitivity is None:
        return _of_smooth(first, second)
    if sensitivity.norm == "trace":
        return Change()
    steps = _steps(sensitivity.relation, relation)
    bound = steps * Fraction(sensitivity.value)
    is_exact = isinstance(first.value, FixedPoint)
    differences = _Differences(first, second)
    size = differences.norm(sensitivity.norm)
    stated = float(bound)
    problem, kind = "", ""
    excess = differences.excess(sensitivity.norm, bound)
    if excess > 0:
        kind = "sensitivity"
        problem = f"{sensitivity.norm} change {size:.6g} where {stated:.6g} is stated"
        problem += f" ({excess:.3g} more)" if excess < _SLIGHT * stated else ""
    elif sensitivity.norm == "range" and getattr(first.measurement, "one_sided", False):
        if differences.has_both_signs():
            kind, problem = "sensitivity", "scores move in both directions where one is stated"
    elif isinstance(first.measurement, Laplace):
        scale = first.measurement.scale
        mu = min(differences.norm("l2"), size) / scale  # both are rounded
        spent = laplace_rho(size / scale, mu) if size else 0.0
        rho = steps**2 * first.measurement.claimed.rho
        if spent > rho * (1.0 + PRICE_TOLERANCE):
            kind, problem = "price", f"rho {spent:.6g} where {rho:.6g} is charged"
    return Change(size, size / stated, is_exact, problem, kind)


class _Differences:
    """Weighted entries of a change: as floats at once, as fractions on request."""

    def __init__(self, first, second):
        self._values = [_parts(release.value) for release in (first, second)]
        self._bits = first.value.bits if isinstance(first.value, FixedPoint) else None
        self._weights = np.broadcast_to(
            np.asarray(first.weight, dtype=np.float64), self._values[0].shape
        ).ravel()

    def norm(self, name):
        ones, others = self._values
        if self._bits is None:
            moved = ones - others
        else:
            whole = np.asarray(ones.astype(object) - others.astype(object))  # may exceed 64 bits
            moved = np.ldexp(whole.astype(float), -self._bits)
        moved = np.abs(np.ravel(moved) * self._weights)
        if name == "l1":
            return math.fsum(moved)
        return math.hypot(*moved) if name == "l2" else float(moved.max(initial=0.0))

    def excess(self, name, bound):
        """Return the excess of the norm over a bound; its sign is that of exact arithmetic."""
        moved = self._fractions()
        if name == "l1":
            return float(sum(map(abs, moved), Fraction(0)) - bound)
        if name == "l2":  # from the excess of the square, by the derivative if small
            over = sum((each * each for each in moved), Fraction(0)) - bound * bound
            return float(over / (2 * bound))
        return float(max(map(abs, moved), default=Fraction(0)) - bound)

    def has_both_signs(self):
        moved = self._fractions()
        return any(each > 0 for each in moved) and any(each < 0 for each in moved)

    def _fractions(self):
        ones, others = (value.ravel() for value in self._values)
        places = np.flatnonzero(ones != others)
        if self._bits is None:
            exact = [Fraction(float(ones[i])) - Fraction(float(others[i])) for i in places]
        else:
            exact = [Fraction(int(ones[i]) - int(others[i]), 2**self._bits) for i in places]
        return [
            each * Fraction(float(self._weights[i])) for each, i in zip(exact, places, strict=True)
        ]


def _parts(value):
    """Return the real numbers of a value."""
    if isinstance(value, FixedPoint):
        return value.integers
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return array.astype(np.float64)


def _steps(stated, asked):
    """Return the distance of the neighbours in steps of a sensitivity."""
    is_two = stated is Neighbours.ADD_REMOVE and asked is Neighbours.REPLACE_ONE
    return _STEPS_TO_REPLACE if is_two else 1


def _of_smooth(first, second):
    """Compare a data-dependent scale of noise with its smoothness."""
    bounds = [release.measurement.bound for release in (first, second)]
    if min(bounds) <= 0:
        same = bounds[0] == bounds[1]
        return Change(problem="" if same else "noise of 0 on one data set", kind="sensitivity")
    moved = abs(math.log(bounds[0] / bounds[1]))
    beta = first.measurement.beta
    if moved <= beta * (1.0 + PRICE_TOLERANCE):
        return Change(part=moved / beta)
    problem = f"the logarithm of its smooth bound moves by {moved:.6g} where {beta:.6g} is stated"
    return Change(moved, moved / beta, problem=problem, kind="sensitivity")


def _of_sampler(first, second):
    """Return the change of a sampler's value before noise, in l1 and in units of its scale."""
    ones, others = (np.asarray(release.value, dtype=np.float64) for release in (first, second))
    if ones.shape != others.shape:
        return Change()
    size = float(np.abs(ones - others).sum())
    scale = float(np.max(first.scale)) if np.size(first.scale) else math.nan
    return Change(size, size / scale if scale > 0 else math.nan)
