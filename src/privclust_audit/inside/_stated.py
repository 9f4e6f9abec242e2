"""The lines of a guarantee, compared with the releases that a run made."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from privclust.privacy.guarantee import Guarantee
from privclust.privacy.measurements import PRICE_TOLERANCE
from privclust_audit.inside._changes import Change
from privclust_audit.inside._recorder import RecordedRelease

Problems = Iterator[tuple[str, str]]  # what is wrong, and where in the code


def differing_lines(guarantee: Guarantee | None, releases: Sequence[RecordedRelease]) -> Problems:
    """Yield each price at which the guarantee counts other numbers of releases than were made."""
    if guarantee is None or any(release.measurement is None for release in releases):
        return
    made, stated, free = Counter(), Counter(), Counter()
    for release in releases:
        made[_price(release.mechanism, release.measurement.loss)] += 1
    for line in guarantee.releases:
        if line.loss is not None and line.loss.is_nothing:
            free[line.mechanism] += line.loss.count
        elif line.mechanism in {release.mechanism for release in releases}:
            stated[_price(line.mechanism, line.loss)] += 1 if line.loss is None else line.loss.count
    for price in {*made, *stated}:
        # A line without a loss is for a mechanism that is not private. Its count is not known.
        flawed = price[1:] == (None,)
        if free[price[0]] and made[price] == stated[price] + free[price[0]]:
            free[price[0]] = 0  # its loss is compared with that of all releases together
        elif made[price] != stated[price] and not (flawed and stated[price]):
            first = next(
                (r for r in releases if _price(r.mechanism, r.measurement.loss) == price), None
            )
            message = (
                f"{price[0]} of one price is released {made[price]} times, and guarantee_ counts "
                f"{stated[price]}"
            )
            yield message, first.where if first else ""


def larger_losses(
    guarantee: Guarantee | None, releases: Sequence[RecordedRelease], changes: Sequence[Change]
) -> Problems:
    """Yield a joint loss of all releases above that stated, if a release is stated as free."""
    lines = [] if guarantee is None else guarantee.releases
    losses = [line.loss for line in lines if line.loss is not None]
    if not any(loss.is_nothing for loss in losses):
        return
    spent: dict[str, float] = defaultdict(float)
    stated: dict[str, float] = defaultdict(float)
    for loss in losses:
        if math.isfinite(loss.epsilon):
            stated["epsilon"] += loss.epsilon * loss.count
        else:
            stated["rho"] += loss.rho * loss.count
    for change, release in zip(changes, releases, strict=False):
        loss = release.measurement and release.measurement.claimed
        if loss is None or not change.part > 0:
            continue
        if math.isfinite(loss.epsilon):
            spent["epsilon"] += change.part * loss.epsilon
        else:
            spent["rho"] += change.part**2 * loss.rho
    for name in spent:
        if spent[name] > stated[name] * (1.0 + PRICE_TOLERANCE):
            had, has = f"{spent[name]:.6g}", f"{stated[name]:.6g}"
            yield f"releases together lose {name} {had} where {has} is stated", releases[0].where


def _price(mechanism, loss):
    """Return the key of releases with the same loss."""
    return (mechanism, None) if loss is None else (mechanism, loss.rho, loss.epsilon, loss.delta)
