r"""The distribution of the log-likelihood ratio of two data sets, given all releases of a fit.

A fit is recorded on one of the two and replayed on the other with the same releases. So the value
of each release is known on both, given all earlier releases, and its noise has a known density. The
sum of the logarithms of the density ratios is that of all releases together, and by the lemma of
Neyman and Pearson no attack on a fit's outputs is stronger. It is a function of the releases, like
any statistic: a bound proved with it holds even if the noise differs from its description.

If the changes of values, in units of the noise, do not depend on earlier releases, the fit is a sum
of independent releases with fixed changes. Then the ratio is drawn without a fit, and for pure
Gaussian noise the trade-off is that of one release with the root of the sum of squared changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privclust.core.fixed_point import FixedPoint
from privclust.privacy.gaussian_delta import least_epsilon
from privclust.privacy.measurements import Gaussian, Laplace, Measurement
from privclust_audit.inside._pair import Run, Settings, run
from privclust_audit.inside._recorder import RecordedRelease

_LARGEST_SEED = 2**63
_SAME_CHANGE = 1e-6  # difference of equal changes by rounding to 2^-30, in units of the noise
_CHUNK = 2_000_000  # noise values drawn at a time


def released_law(fit: Callable, data: Any, neighbour: Any, n_fits: int = 3) -> ReleasedLaw:
    """Return the distribution of the ratio of all releases of a fit, from `n_fits` fits.

    In a fit with a single release, changes can differ only because of public draws; the
    distribution is then that of the fit with the largest change.

    Parameters
    ----------
    fit : callable
        ``fit(data, rng)``, with all noise by `privclust.privacy.measurements`, Laplace or Gaussian,
        and drawn from the generator or from the operating system's entropy.
    data, neighbour : object
        The two data sets of the audit.
    n_fits : int
        Fits on each data set, at least 1.

    Raises
    ------
    ValueError
        If the changes of one of several releases are not the same in all fits, if a release has
        other noise, or if the runs differ without noise.

    Examples
    --------
    >>> from privclust.kmeans import DPLloyd
    >>> from privclust_audit.black_box import audit_mechanism
    >>> X, Y = np.array([[1.0], [0.0]]), np.array([[-1.0], [0.0]])
    >>> def fit(data, rng):
    ...     init = [[0.9], [-0.9]]
    ...     return DPLloyd(2, bounds=(-1, 1), init=init, max_iter=1, random_state=rng).fit(data)
    >>> law = released_law(fit, X, Y)
    >>> round(law.epsilon(0.0), 6)
    1.0
    >>> audit = audit_mechanism(law, X, Y, 1.0, 0.0, 100_000, float, random_state=0)
    >>> audit.verdict
    'consistent'
    """
    rng, recorded = np.random.default_rng(0), []
    for _ in range(n_fits):
        first, second = _runs(fit, (data, neighbour), int(rng.integers(_LARGEST_SEED)))
        both = zip(first.releases, second.releases, strict=True)
        recorded.append([Shift.of(*pair) for pair in both])
    if all(len(one) == 1 for one in recorded):
        # Any choice among fits is valid, since each is a public draw; the largest change is the
        # strongest attack.
        return ReleasedLaw(max(recorded, key=lambda one: one[0].size), data)
    for others in recorded[1:]:
        for order, (one, other) in enumerate(zip(recorded[0], others, strict=True)):
            if not one.is_like(other):
                raise ValueError(
                    f"the change of release {order + 1} ({one.where}) depends on what was "
                    "released before: the law is not known"
                )
    return ReleasedLaw(recorded[0], data)


def _runs(fit, pair, seed) -> tuple[Run, Run]:
    """Record a fit on the first of two data sets, and replay it on the second."""

    def seeded(parameters, data):
        return fit(data, np.random.default_rng(seed))

    settings = Settings(seed)
    first = run(seeded, (pair[0],), settings)
    second = run(seeded, (pair[1],), settings, first.releases)
    for one in (first, second):
        if one.error is not None:
            raise one.error
    if second.divergence or len(first.releases) != len(second.releases):
        why = second.divergence or "one has more releases"
        raise ValueError(f"the data sets differ without noise ({why}): look inside")
    if not first.releases:
        raise ValueError("no release was seen: is the noise drawn by privclust.privacy?")
    return first, second


@dataclass(frozen=True, eq=False)
class Shift:
    """A release on two data sets: its noise, values, and their change in units of the noise."""

    noise: Measurement
    values: tuple[Any, Any]
    weight: Any
    change: np.ndarray
    where: str

    @classmethod
    def of(cls, one: RecordedRelease, other: RecordedRelease) -> Shift:
        """Return the shift of two runs."""
        noise = one.measurement
        if not isinstance(noise, Gaussian | Laplace) or np.iscomplexobj(one.released):
            raise ValueError(f"no density is known of {one.mechanism} ({one.where})")
        change = _moved(one.value, other.value) * one.weight / noise.scale
        return cls(noise, (one.value, other.value), one.weight, change, one.where)

    @property
    def size(self) -> float:
        """The change in the norm of the noise."""
        return float(
            np.linalg.norm(self.change.ravel(), 2 if isinstance(self.noise, Gaussian) else 1)
        )

    def is_like(self, other: Shift) -> bool:
        """Return whether the ratio has the same distribution in another fit.

        For Gaussian noise, which is isotropic, this depends on the length of the change; for
        Laplace noise on the sizes of its entries.
        """
        if self.noise != other.noise:
            return False
        ours, theirs = (
            np.atleast_1d(np.linalg.norm(one.change))
            if isinstance(self.noise, Gaussian)
            else np.sort(np.abs(one.change[one.change != 0.0]))
            for one in (self, other)
        )
        return ours.shape == theirs.shape and bool(np.all(np.abs(ours - theirs) <= _SAME_CHANGE))

    def ratios(self, which: int, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return ratios (n,) of n releases of one of the two values."""
        value = _times(self.values[which], n)
        if isinstance(self.noise, Gaussian):  # of a subclass, too: values are recorded as entries
            released = Gaussian.release(self.noise, value, rng, self.weight)
        else:
            released = Laplace.release(self.noise, value, rng)  # type: ignore[arg-type]
        # The ratio of densities at a release: noise about one value against noise about the other,
        # ln p0 / p1 = (|noise + change|^2 - |noise|^2) / 2, or the same with l1 norms for Laplace.
        noise = (released - np.asarray(self.values[which])) * self.weight / self.noise.scale
        sign = 1.0 if which == 0 else -1.0
        theirs = noise + sign * self.change
        if isinstance(self.noise, Gaussian):
            ratios = (theirs**2 - noise**2) / 2.0
        else:
            ratios = np.abs(theirs) - np.abs(noise)
        return sign * ratios.reshape(n, -1).sum(axis=1)


class ReleasedLaw:
    """The distribution of a fit's ratio on two data sets: a mechanism, with `many` ratios at once.

    See `released_law`.
    """

    def __init__(self, shifts: Sequence[Shift], data: Any) -> None:
        self._shifts, self._data = list(shifts), data

    def __call__(self, data: Any, rng: np.random.Generator) -> float:
        return float(self.many(data, rng, 1)[0])

    def many(self, data: Any, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return n ratios, of the first data set to the second."""
        which = 0 if _is_same(data, self._data) else 1
        ratios = np.zeros(n)
        for shift in self._shifts:
            # One release at least, even if it has more entries than a piece.
            step = max(1, _CHUNK // shift.change.size)
            for begin in range(0, n, step):
                end = min(begin + step, n)
                ratios[begin:end] += shift.ratios(which, rng, end - begin)
        return ratios

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at a delta of all releases on these two data sets.

        For pure Gaussian noise at a delta above 0, or Laplace noise at 0; else NaN.
        """
        kinds = {isinstance(one.noise, Gaussian) for one in self._shifts}
        changes = np.concatenate([one.change.ravel() for one in self._shifts])
        if kinds == {False} and delta == 0.0:
            return math.fsum(np.abs(changes))
        rho = math.fsum(changes**2) / 2.0
        return least_epsilon(rho, delta) if kinds == {True} and delta > 0.0 and rho else math.nan


def _moved(one: Any, other: Any) -> np.ndarray:
    if isinstance(one, FixedPoint):
        return np.ldexp((one.integers - other.integers).astype(float), -one.bits)
    return np.asarray(one, dtype=float) - np.asarray(other, dtype=float)


def _times(value: Any, n: int) -> Any:
    if isinstance(value, FixedPoint):
        return FixedPoint(np.tile(value.integers, (n,) + (1,) * value.integers.ndim), value.bits)
    return np.broadcast_to(value, (n, *np.shape(value)))


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (
        np.shape(one) == np.shape(other) and bool(np.array_equal(one, other, equal_nan=True))
    )
