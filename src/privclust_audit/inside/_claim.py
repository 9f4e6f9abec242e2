"""Checks of recorded samplers: a claimed epsilon, and separate noise for each entry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust.privacy.gaussian_delta import is_private
from privclust.privacy.measurements import PRICE_TOLERANCE
from privclust_audit.inside._changes import units_moved
from privclust_audit.inside._outputs import is_estimator
from privclust_audit.inside._recorder import RecordedRelease

Pairs = Sequence[tuple[RecordedRelease, RecordedRelease]]
"""Releases that two runs have in common."""

LAPLACE, NORMAL = "NumPy's laplace", ("NumPy's normal", "NumPy's standard_normal")


@dataclass(frozen=True)
class Claim:
    """An epsilon at a delta, for code with releases that state no loss."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Cost:
    """The privacy loss of releases compared with a claim, and the `problem` if it is larger.

    If not `is_certain`, the `problem` assumes that no release is missing. `epsilon` is the loss by
    Laplace noise; NaN for other noise.
    """

    problem: str = ""
    is_certain: bool = True
    epsilon: float = math.nan


def cost_of(pairs: Pairs, output: Any, claim: Claim) -> Cost:
    """Compare the common releases of two runs with a claim.

    With independent noise on each entry, the loss follows from the changes: for Laplace noise the
    sum of their sizes in units of the scales, for Gaussian noise the curve of their length. If all
    releases are in the output, this is exactly the loss on this pair. Otherwise, such as when only
    the largest answer is output, the loss may be smaller, which no two runs show.
    """
    changes = [units_moved(one, other) for one, other in pairs]
    moved = [np.abs(each[each != 0.0]) for each in changes]
    names = {one.mechanism for (one, _), each in zip(pairs, moved, strict=True) if each.size}
    # A release counts as published if its bits are somewhere in the output.
    found = set(_numbers(output))
    told = all(number in found for one, _ in pairs for number in _numbers(one.released))
    if not names:
        return Cost(epsilon=0.0)
    if any(not np.isfinite(each).all() for each in moved):
        return Cost("the value to be perturbed is not a number on one data set only", told)
    if names == {LAPLACE}:
        spent = math.fsum(np.concatenate(moved))
        if spent <= claim.epsilon * (1.0 + PRICE_TOLERANCE):
            return Cost(epsilon=spent)
        words = f"releases cost epsilon = {spent:.6g} where {claim.epsilon:.6g} is claimed"
        # At a delta above 0, a sum of epsilons above the claim may still satisfy the claim.
        return Cost(words, told and claim.delta == 0.0, spent)
    if names.issubset(NORMAL):
        # Less the tolerance, so that rounding convicts nobody.
        length = math.sqrt(math.fsum(np.concatenate(moved) ** 2)) * (1.0 - PRICE_TOLERANCE)
        if claim.delta > 0.0 and is_private(length, claim.epsilon, claim.delta):
            return Cost()
        words = f"values move by {length:.6g} deviations of Gaussian noise, more than "
        return Cost(f"{words}({claim.epsilon:.6g}, {claim.delta:.6g}) allows", told)
    return Cost(f"no price is known of {' and '.join(sorted(names))}", False)


def shared_noise(pairs: Pairs) -> Iterator[RecordedRelease]:
    """Yield releases in which entries with different changes share a noise value."""
    for one, other in pairs:
        if one.noise is None or (
            # separate numbers of few bits may be equal by chance
            one.noise.dtype != np.float64 and one.noise.size == np.size(one.released)
        ):
            continue
        moved = np.asarray(one.value, dtype=float) - np.asarray(other.value, dtype=float)
        shape = np.shape(one.released)
        change, noise = (np.broadcast_to(each, shape).ravel() for each in (moved, one.noise))
        change = np.where(np.isnan(change), np.inf, change)  # a change to or from NaN
        _, numbers = np.unique(noise, return_inverse=True)
        # The largest and the least change of the entries with each noise value.
        most, least = np.full((2, numbers.max(initial=0) + 1), [[-np.inf], [np.inf]])
        np.maximum.at(most, numbers, change)
        np.minimum.at(least, numbers, change)
        if (most > least).any():
            yield one


def known_noise(
    first: Sequence[RecordedRelease], again: Sequence[RecordedRelease]
) -> Iterator[RecordedRelease]:
    """Yield releases with the same noise in two runs on one data set with other generators."""
    for one, other in zip(first, again, strict=False):
        # After the first release that differs, later ones are not the same releases.
        if one.differs(other):
            return
        if one.noise is not None and np.size(one.noise) and np.array_equal(one.noise, other.noise):
            yield one


def _numbers(output: Any) -> Iterator[bytes]:
    """Yield bits of the floats of an output."""
    if isinstance(output, np.ndarray) and output.dtype.kind == "f":
        yield from (number.tobytes() for number in output.astype(np.float64).ravel())
    elif isinstance(output, float | np.floating):
        yield np.float64(output).tobytes()
    elif isinstance(output, list | tuple):
        for each in output:
            yield from _numbers(each)
    elif isinstance(output, dict):
        yield from _numbers(list(output.values()))
    elif is_estimator(output):
        yield from _numbers([value for name, value in vars(output).items() if name[-1:] == "_"])
