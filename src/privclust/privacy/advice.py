"""Caveats and warnings of weak guarantees."""

from __future__ import annotations

from dataclasses import replace

from privclust.core.warn import warn_caller
from privclust.privacy.guarantee import Guarantee, WeakGuaranteeWarning

LARGEST_EPSILON = 10.0
"""A guarantee with a larger epsilon is called weak."""
WEAK = "weak: "
"""The beginning of the caveats of a weak guarantee."""


def weak_parameters(guarantee: Guarantee, n_records: int | None) -> tuple[bool, bool]:
    """Return whether epsilon is above `LARGEST_EPSILON`, and delta at least one over `n_records`.

    Examples
    --------
    >>> weak_parameters(Guarantee("approximate", "replace-one", epsilon=1.0, delta=0.01), 100)
    (False, True)
    """
    if guarantee.definition not in ("pure", "approximate"):
        return False, False
    # without records, no delta below 1 is weak
    is_large = n_records is not None and guarantee.delta * max(n_records, 1) >= 1.0
    return guarantee.epsilon > LARGEST_EPSILON, is_large


def noted(guarantee: Guarantee, n_records: int | None) -> Guarantee:
    """Return a guarantee with caveats if it is weak, and warn.

    Parameters
    ----------
    guarantee : Guarantee
    n_records : int or None
        The number of records, if it is public.

    Returns
    -------
    Guarantee
        The same one if its epsilon is at most `LARGEST_EPSILON`, and its delta below one over
        `n_records`.

    Warns
    -----
    WeakGuaranteeWarning
    """
    epsilon, delta, points = guarantee.epsilon, guarantee.delta, []
    is_weak_epsilon, is_weak_delta = weak_parameters(guarantee, n_records)
    if is_weak_epsilon:
        points.append(
            f"{WEAK}an epsilon of {epsilon:.4g} allows the probability of any outcome to grow by a "
            f"factor of e^{epsilon:.4g} with one record; below {LARGEST_EPSILON:g} is usual"
        )
    if is_weak_delta:
        points.append(
            f"{WEAK}a delta of {delta:g} is at least one over the {n_records:,} records: "
            "publishing one record as it is would be allowed"
        )
    if not points:
        return guarantee
    warn_caller("; ".join(points), WeakGuaranteeWarning)
    return replace(guarantee, caveats=tuple(dict.fromkeys((*points, *guarantee.caveats))))
