"""A guarantee compared with the noise behind it."""

from __future__ import annotations

from privclust.privacy.guarantee import Guarantee, Release

_STATED_TOLERANCE = 1e-6  # relative: releases of the accountant differ by less


def check_stated(guarantee: Guarantee, line: Release) -> None:
    """Raise a ValueError if a guarantee is stronger than the noise stated by `line` gives.

    Its losses and their composition at its delta are recomputed from the noise. It is not possible
    to check whether noise was seeded, or records were assigned to parts by their values.
    """
    if guarantee.definition == "none":
        return
    covered = any(_states(release, line) for release in guarantee.releases if release.loss)
    honest = Guarantee.of([line], guarantee.definition, guarantee.relation, delta=guarantee.delta)
    if not covered or not _reaches(guarantee, honest, ("epsilon", "rho", "mu", "tau")):
        raise ValueError("the noise gives less than its guarantee states")


def _states(release: Release, line: Release) -> bool:
    """Whether a release states at least the loss of a line, and its sensitivity per scale."""
    ratios = [
        each.sensitivity / each.scale
        for each in (release, line)
        if each.sensitivity is not None and each.scale is not None
    ]
    if len(ratios) > 1 and ratios[0] < (1.0 - _STATED_TOLERANCE) * ratios[1]:
        return False
    return _reaches(release.loss, line.loss, ("rho", "epsilon", "count"))


def _reaches(stated: object, honest: object, names: tuple[str, ...]) -> bool:
    """Whether every stated number is at least the honest one, up to rounding."""
    part = 1.0 - _STATED_TOLERANCE
    return all(getattr(stated, name) >= part * getattr(honest, name) for name in names)
