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


@dataclass(frozen=True)
class Change:
    """The change of one release between two data sets.

    Attributes
    ----------
    size : float
        In the sensitivity's norm; for a sampler recorded by an adapter, in l1. NaN if the norm is
        not measured.
    part : float
        Relative to the stated sensitivity; for a sampler, the sum of changes relative to scales.
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
    if first.measurement is None:
        size = float(np.abs(np.subtract(first.value, second.value, dtype=np.float64)).sum())
        return Change(size, float(np.abs(units_moved(first, second)).sum()))
    sensitivity = getattr(first.measurement, "sensitivity", None)
    if sensitivity is None:
        return _of_smooth(first, second)
    if sensitivity.norm == "trace":
        return Change()
    is_both = sensitivity.relation is Neighbours.ADD_REMOVE and relation is Neighbours.REPLACE_ONE
    steps = 2 if is_both else 1  # to replace a row is to remove one and to add one
    bound = steps * Fraction(sensitivity.value)
    moved = _moved(first, second)
    length = math.hypot(*map(float, moved))
    if sensitivity.norm == "l2":
        size = length
        over = sum((each * each for each in moved), Fraction(0)) - bound * bound
        excess = over / (2 * bound)  # by the derivative, which has the sign of the exact excess
    else:
        sizes = list(map(abs, moved))
        exact = sum(sizes, Fraction(0)) if sensitivity.norm == "l1" else max(sizes, default=0)
        size, excess = float(exact), exact - bound
    stated = float(bound)
    problem, kind = "", ""
    if excess > 0:
        kind = "sensitivity"
        problem = f"{sensitivity.norm} change {size:.6g} where {stated:.6g} is stated"
        problem += f" ({float(excess):.3g} more)" if excess < _SLIGHT * stated else ""
    elif sensitivity.norm == "range" and getattr(first.measurement, "one_sided", False):
        if any(each > 0 for each in moved) and any(each < 0 for each in moved):
            kind, problem = "sensitivity", "scores move in both directions where one is stated"
    elif isinstance(first.measurement, Laplace):
        scale = first.measurement.scale
        # The l2 norm is at most the l1 norm, but rounding may exceed it, which
        # `laplace_rho` excludes.
        mu = min(length, size) / scale
        spent = laplace_rho(size / scale, mu) if size else 0.0
        # zCDP of a group of two is four times that of one (Bun and Steinke 2016, Proposition 1.9).
        rho = steps**2 * first.measurement.claimed.rho
        if spent > rho * (1.0 + PRICE_TOLERANCE):
            kind, problem = "price", f"rho {spent:.6g} where {rho:.6g} is charged"
    is_exact = isinstance(first.value, FixedPoint)
    return Change(size, size / stated, is_exact, problem, kind)


def units_moved(first: RecordedRelease, second: RecordedRelease) -> np.ndarray:
    """Return changes of a sampler's entries in units of the noise, one for each noise value (m,).

    They are infinite or NaN if a value is, or if the noise has scale 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.subtract(first.value, second.value, dtype=np.float64)
        # An entry that does not change loses nothing, even without noise (0 / 0).
        moved = np.where(moved == 0.0, 0.0, moved / np.asarray(first.scale, dtype=np.float64))
    shape = np.shape(first.released)
    moved, noise = (np.broadcast_to(each, shape).ravel() for each in (moved, first.noise))
    if np.size(first.noise) == moved.size:
        return moved
    # Entries that share a noise value count once: `shared_noise` reports it if they differ.
    return moved[np.unique(noise, return_index=True)[1]]


def _moved(first, second) -> list[Fraction]:
    """Return the changes of all entries that differ, times their weights."""
    ones, others = (_parts(release.value) for release in (first, second))
    weights = np.broadcast_to(np.asarray(first.weight, dtype=np.float64), ones.shape).ravel()
    places = np.flatnonzero(ones.ravel() != others.ravel())
    # Fractions are slow: only entries that differ become such.
    pairs = [(ones.flat[i], others.flat[i]) for i in places]
    if isinstance(first.value, FixedPoint):
        unit = 2**first.value.bits
        exact = [Fraction(int(one) - int(other), unit) for one, other in pairs]
    else:
        exact = [Fraction(float(one)) - Fraction(float(other)) for one, other in pairs]
    return [each * Fraction(float(weights[i])) for each, i in zip(exact, places, strict=True)]


def _parts(value):
    """Return the real numbers of a value."""
    if isinstance(value, FixedPoint):
        return value.integers
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return array.astype(np.float64)


def _of_smooth(first, second):
    """Compare a data-dependent scale of noise with its smoothness."""
    bounds = [release.measurement.bound for release in (first, second)]
    if min(bounds) <= 0:
        same = bounds[0] == bounds[1]
        return Change(problem="" if same else "noise of 0 on one data set", kind="sensitivity")
    # Smoothness: a neighbour's bound is within a factor of e^beta.
    moved = abs(math.log(bounds[0] / bounds[1]))
    beta = first.measurement.beta
    if moved <= beta * (1.0 + PRICE_TOLERANCE):
        return Change(part=moved / beta)
    problem = f"the logarithm of its smooth bound moves by {moved:.6g} where {beta:.6g} is stated"
    return Change(moved, moved / beta, problem=problem, kind="sensitivity")
