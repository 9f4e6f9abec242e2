r"""Records left out of a fit, and their noisy number, at no additional privacy loss.

A row without an ID, or with an entry that is missing or cannot be read, is left out: it adds
nothing to any sum. A record is a row, or all rows of one person; a person is left out if no row of
theirs counts. Rows without an ID are not counted: all may belong to one person.

**The sums.** With *add_remove* a record that is left out does not change the sums. With
*replace_one* a record may be replaced by one that is left out: the sums then change by one record's
contribution, at most N, and not by D, the largest change if both count. All sensitivities here have
N <= D (`privclust.privacy.groups`), so they hold unchanged.

**The number.** A record counts in the sums or among those left out, never in both.

- *add_remove*: only one of the two changes (parallel composition). A count with noise for the whole
  budget has the same loss as the sums.
- *replace_one*: if both records count, or neither does, the count does not change. If one does, the
  sums change by N and the count by 1. In l2, N <= D / sqrt 2: the sums have a loss of at most rho /
  2, and the count may have rho / 2. In l1, N <= D / 2: with Laplace noise the sums have at most
  epsilon / 2, and the count may have epsilon / 2, but no more than rho / 2.

The number of records that count is then private, even if the number of all records is public.
Divisions use the public number minus the noisy number of records left out. The number of persons is
never public, since one missing ID would change it: with groups and *replace_one* the number that
count is released as well. One person then changes two numbers by 1 each: 2 in l1, sqrt 2 in l2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from privclust.privacy.accounting import Loss, total_epsilon, total_rho
from privclust.privacy.groups import GROUP, Groups
from privclust.privacy.guarantee import Guarantee, Release
from privclust.privacy.measurements import Gaussian, Laplace
from privclust.privacy.noise import NoiseSource, is_seeded
from privclust.privacy.sensitivity import Neighbours, Sensitivity, root_above

_LEFT_OUT, _COUNTED = "number of records left out", "number of groups"
_BOTH = "numbers of records that count and are left out"
_PROOF = "a record is in the sums or left out, never both (privclust.privacy.left_out)"
_NOISE = "{noise}, at no loss beyond that of the sums"
_NOBODY = "a row without an ID contributes nothing"


@dataclass(frozen=True)
class NoisyCount:
    """A number of records with noise.

    Attributes
    ----------
    value : float
        At least 0.
    deviation : float
        Standard deviation of the noise.
    n_counted : float or None
        The noisy number of records that count, at least 1, if it was released.
    """

    value: float
    deviation: float
    n_counted: float | None = None

    def __add__(self, other: NoisyCount) -> NoisyCount:
        """Return the sum of two numbers, of disjoint records."""
        deviation = math.hypot(self.deviation, other.deviation)
        return NoisyCount(self.value + other.value, deviation)


@dataclass(frozen=True)
class PrivateRecords:
    """The rows of X that count, and a mask of them.

    Attributes
    ----------
    rows : ndarray of shape (n_counted, n_features)
    every_row : ndarray of shape (n_samples, n_features)
        Rows of X, with NaN for missing entries.
    groups : Groups or None
        Groups of these rows.
    is_counted : ndarray of shape (n_samples,), bool, or None
        None: all rows count, because of their type or by ``missing="middle"``.
    n_records : int
        The number of all records, rows or persons, including those left out; public only for rows
        with *replace_one*.
    """

    rows: np.ndarray
    every_row: np.ndarray
    groups: Groups | None
    is_counted: np.ndarray | None
    n_records: int

    @property
    def n_counted(self) -> int:
        """The number of records that count, which is private."""
        return len(self.rows) if self.groups is None else self.groups.count

    @property
    def n_left_out(self) -> int | None:
        """The number of the others, which is private; None if there can be none."""
        return None if self.is_counted is None else self.n_records - self.n_counted

    def labels(self, labels: np.ndarray) -> np.ndarray:
        """Return labels of all rows of X, -1 for those that do not count."""
        if self.is_counted is None:
            return labels
        every = np.full(len(self.is_counted), -1, dtype=labels.dtype)
        every[self.is_counted] = labels
        return every


@dataclass(frozen=True)
class LeftOutCount:
    """The release of the number of records left out, in addition to sums of those that count.

    Attributes
    ----------
    counted : int
        The exact number of records that count.
    left_out : int or None
        The exact number of others; None if there can be none.
    hides_counted : bool
        Whether the number of those that count is also released: for groups it is never public.
    noise : Laplace, Gaussian or None
        None if the guarantee has no room for it.
    """

    counted: int
    left_out: int | None
    hides_counted: bool
    noise: Laplace | Gaussian | None

    @classmethod
    def of(
        cls, guarantee: Guarantee, n_counted: int, n_left_out: int | None, unit: str
    ) -> LeftOutCount:
        """Return the count with the least noise that the guarantee of the sums allows."""
        hides_counted = guarantee.relation is Neighbours.REPLACE_ONE and unit == GROUP
        n_counts = (n_left_out is not None) + hides_counted
        noise = _noise_beside(guarantee, n_counts) if n_counts else None
        return cls(n_counted, n_left_out, hides_counted, noise)

    def stated(self, guarantee: Guarantee) -> Guarantee:
        """Return the guarantee of the sums and of the count."""
        if self.noise is None:
            return guarantee
        name = _LEFT_OUT
        if self.hides_counted:
            name = _COUNTED if self.left_out is None else _BOTH
        line = self.noise.statement(name)
        line = replace(line, loss=Loss(0.0, 0.0), noise=_NOISE.format(noise=line.noise))
        nobody = (_NOBODY,) if guarantee.unit == GROUP else ()
        caveats = tuple(dict.fromkeys((*guarantee.caveats, *nobody)))
        return replace(guarantee, releases=(*guarantee.releases, line), caveats=caveats)

    def release(self, source: NoiseSource) -> NoisyCount | None:
        """Return the noisy number; None if no record is left out or there is no guarantee."""
        if self.noise is None:
            return None
        exact = [] if self.left_out is None else [float(self.left_out)]
        exact += [float(self.counted)] if self.hides_counted else []
        if is_seeded(source):  # leave its state unchanged
            source = source.spawn(1)[0]
        noisy = np.maximum(self.noise.release(exact, source), 0.0).tolist()
        # at least 1, because sums are divided by it
        counted = max(noisy.pop(), 1.0) if self.hides_counted else None
        return NoisyCount(noisy[0] if noisy else 0.0, self.noise.deviation, counted)

    def n_counted(self, left_out: NoisyCount | None, relation: Neighbours | str) -> float:
        """Return the usable number of records that count: noisy if it is private.

        With ``"add_remove"`` it is exact and must not be used without noise.
        """
        if left_out is None or Neighbours.of(relation) is Neighbours.ADD_REMOVE:
            return self.counted
        if left_out.n_counted is not None:
            return left_out.n_counted
        return max(self.counted + (self.left_out or 0) - left_out.value, 1.0)


def _noise_beside(guarantee: Guarantee, n_counts: int) -> Laplace | Gaussian | None:
    """Return the least noise of `n_counts` counts released with others; None without room."""
    relation = guarantee.relation
    rooms = [_room(loss, relation) for loss in _together(guarantee.releases)]
    kind, share = max((room for room in rooms if room), key=itemgetter(1), default=(Laplace, 0.0))
    if not share:
        return None
    if kind is Laplace:
        return Laplace(Sensitivity(float(n_counts), "l1", relation, _PROOF), share)
    length = root_above(n_counts)
    return Gaussian.of_share(Sensitivity(length, "l2", relation, _PROOF), share)


def _together(releases: tuple[Release, ...]) -> list[Loss]:
    """Return the losses that a count may have: that of all releases of one kind, or of each."""
    known = [release.loss for release in releases if release.loss is not None]
    if len(known) < len(releases) or any(loss.delta for loss in known):
        return []
    if len({math.isfinite(loss.epsilon) for loss in known}) == 1:
        return [Loss(total_rho(known), total_epsilon(known))]
    # Laplace and Gaussian losses have no common sum. The loss of one release is below the total.
    return [replace(loss, count=1) for loss in known]


def _room(loss: Loss, relation: Neighbours) -> tuple[type, float] | None:
    """Return the kind of noise, and shift over scale, that a count may have; None if none may."""
    half = 0.5 if relation is Neighbours.REPLACE_ONE else 1.0
    share = math.sqrt(2.0 * half * loss.rho)  # rho is half of the squared share
    if math.isfinite(loss.epsilon):
        share = min(share, half * loss.epsilon)
    if loss.delta or not 0.0 < share < math.inf:
        return None
    return (Laplace if math.isfinite(loss.epsilon) else Gaussian), share
