"""A search over neighbours: known pathologies, then a climb on the change of a release."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.core.validation import check_integer
from privclust.privacy.estimator import PrivateEstimator
from privclust.privacy.guarantee import Guarantee
from privclust.privacy.sensitivity import Neighbours
from privclust_audit.inside._claim import Claim
from privclust_audit.inside._entries import as_they_are
from privclust_audit.inside._pair import (
    CANNOT_TELL,
    NOT_LOOKED_INTO,
    NOTHING_FOUND,
    VIOLATED,
    PairReport,
    Run,
    Settings,
    Violation,
    compared,
    run,
)
from privclust_audit.inside._situations import (
    Ground,
    Records,
    Situation,
    arguments,
    odd_entries,
    opposite,
    row,
    situations,
)
from privclust_audit.inside._subject import fit_of, takes

_CLIMB_PART = 0.4  # fraction of the pairs for the climb
_ENTRIES_PART = 0.2
_OWN_NOISE = 8  # one data set in this number is run with the subject's own source of noise
_NEIGHBOUR_MOVES = 0.8  # fraction of moves of neighbours; others need another recording
_COMMON_MOVES = 0.25  # fraction of moves of a record that both data sets have
_TRIES = 4  # attempts to find a data set that the subject accepts
_LARGEST_SEED = 2**31


@dataclass(frozen=True, eq=False)
class Finding:
    """A violation, and a pair that shows it.

    Attributes
    ----------
    violation : Violation
    situation : str
        The kind of neighbours.
    data, neighbour : tuple
        Arguments of the two fits.
    parameters : dict
        Further parameters of the estimator.
    count : int
        Number of pairs with a violation of this kind at this place.
    """

    violation: Violation
    situation: str
    data: tuple
    neighbour: tuple
    parameters: dict[str, Any]
    count: int = 1

    def __str__(self) -> str:
        rows = f"{len(self.data[0])} and {len(self.neighbour[0])} rows"
        given = f", with other {', '.join(self.parameters)}" if self.parameters else ""
        return f"{self.violation} ({self.situation}, {rows}{given}; {self.count} pairs)"


@dataclass
class Site:
    """All releases requested at one place.

    Attributes
    ----------
    mechanism : str
    count : int
        The largest number in one run.
    part : float
        The largest change, relative to the stated sensitivity or a sampler's scale.
    is_exact : bool
        Whether all values were whole numbers.
    is_stated : bool
        Whether a sensitivity is stated.
    """

    mechanism: str
    count: int = 0
    part: float = math.nan
    is_exact: bool = True
    is_stated: bool = True


@dataclass
class InsideResult:
    """The result of a search over neighbours.

    Attributes
    ----------
    findings : list of Finding
        One for each kind of violation at each place.
    n_pairs : int
        Number of compared pairs.
    n_refused : int
        Number of these with the same error in both runs.
    sites : dict
        The `Site` of each place that requested a release.
    remarks : dict
        Differences that are no violations, with the number of pairs.
    guarantee : Guarantee or None
        Guarantee of the first fit.
    """

    findings: list[Finding] = field(default_factory=list)
    n_pairs: int = 0
    n_refused: int = 0
    sites: dict[str, Site] = field(default_factory=dict)
    remarks: dict[str, int] = field(default_factory=dict)
    guarantee: Guarantee | None = None

    @property
    def verdict(self) -> str:
        """``"violated"``, ``"nothing found"``, or ``"cannot tell"`` if nothing was examined.

        Nothing can be examined without a guarantee, without a recorded release, or if all pairs
        ended in errors.
        """
        promises_nothing = self.guarantee is not None and self.guarantee.definition == "none"
        if promises_nothing or not (self.sites or self.findings):
            return CANNOT_TELL
        if self.findings:
            return VIOLATED
        if self.n_refused == self.n_pairs:
            return CANNOT_TELL
        is_partial = any(remark.startswith(NOT_LOOKED_INTO) for remark in self.remarks)
        return CANNOT_TELL if is_partial else NOTHING_FOUND

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.n_pairs} pairs of neighbours, {self.n_refused} refused"]
        if self.guarantee is not None and self.guarantee.definition == "none":
            lines.append(f"  guarantee_ promises nothing: {'; '.join(self.guarantee.caveats)}")
        lines += [f"  {finding}" for finding in self.findings]
        for where, site in self.sites.items():
            exact = "whole numbers" if site.is_exact else "floats"
            of = "of the sensitivity" if site.is_stated else "scales of the noise (l1)"
            change = "not measured" if math.isnan(site.part) else f"{site.part:.4g} {of}, {exact}"
            lines.append(f"  {site.mechanism} x {site.count}, {where}: largest change {change}")
        if not self.sites:
            lines.append("  no release was seen: is the noise drawn by privclust.privacy?")
        lines += [f"  {remark} ({n} pairs)" for remark, n in self.remarks.items()]
        return "\n".join(lines)


def look_inside(
    subject: Any,
    data: ArrayLike | None = None,
    n_pairs: int = 200,
    random_state: int = 0,
    *,
    n_features: int = 2,
    neighbours: Neighbours | str | None = None,
    grouped: bool = False,
    epsilon: float | None = None,
    delta: float = 0.0,
    progress: Callable[[int], object] = lambda n: None,
) -> InsideResult:
    """Search for neighbours that break the guarantee of a recorded fit.

    Every pair is two runs, the second with the releases of the first: see `inspect_pair`. The first
    pairs are of kinds that have broken fits before: as many rows as clusters, none, ties, an empty
    cluster, bounds or a start far from the origin, extreme rows, one row across a block. They are
    then moved to increase the change of each release, relative to its sensitivity. Draws of NumPy's
    samplers count as releases if no measurement releases anything.

    Parameters
    ----------
    subject : estimator or callable
        As for `inspect_pair`. Parameters `bounds`, `norm_bound`, `n_clusters`, `n_components` and
        those that end in `init` are understood, and varied if they are public.
    data : array-like of shape (n_samples, n_features) or None
        Additional rows for neighbours; None: only generated rows.
    n_pairs : int
        At least 1.
    random_state : int
    n_features : int
        Number of columns of generated rows.
    neighbours : {"replace_one", "add_remove"} or None
        None: that of the subject's guarantee, or ``"replace_one"``.
    grouped : bool
        Whether the fit takes ``(X, y, groups)``, and a neighbour differs in a group of rows.
    epsilon, delta : float
        As for `inspect_pair`, if no measurement releases anything.
    progress : callable
        Called with the numbers of finished pairs.

    Returns
    -------
    InsideResult

    Raises
    ------
    ValueError
        If a parameter is not as described.

    Examples
    --------
    >>> from privclust.kmeans import DPLloyd
    >>> result = look_inside(DPLloyd(2, bounds=(0, 1), max_iter=2), n_pairs=20)
    >>> result.verdict, [site.mechanism for site in result.sites.values()]
    ('nothing found', ['laplace', 'laplace'])
    """
    check_integer("n_pairs", n_pairs, minimum=1)
    check_integer("n_features", n_features, minimum=1)
    rows = None if data is None else np.atleast_2d(np.asarray(data, dtype=np.float64))
    claim = None if epsilon is None else Claim(float(epsilon), float(delta))
    search = _Search(subject, rows, n_features, random_state, grouped, claim)
    search.set_out(neighbours)
    n_entries = int(_ENTRIES_PART * n_pairs) if search.ground.any_entries else 0
    # Limits of the total, so that pairs that one kind leaves over go to the next.
    for pairs, up_to in (
        (search.situations(), n_pairs - int(_CLIMB_PART * n_pairs)),
        (search.uphill(), n_pairs - n_entries),
        (search.entries(), n_pairs),
    ):
        while search.result.n_pairs < up_to and (pair := next(pairs, None)):
            search.compare(*pair)
            progress(1)
    return search.result


@dataclass(frozen=True)
class _Recorded:
    """A situation, and the recorded run on its data."""

    situation: Situation
    settings: Settings
    run: Run


class _Search:
    """The state of a search: findings, and the pairs with the largest changes of releases."""

    def __init__(self, subject, rows, n_features, seed, grouped, claim):
        self.fit, self.rng = fit_of(subject), np.random.default_rng(seed)
        self.result = InsideResult()
        self._parameters = _parameters_of(subject)
        self._rows, self._n_features = rows, n_features if rows is None else rows.shape[1]
        # cells and IDs that are no numbers are tried if the base class reads them
        any_entries = isinstance(_estimator_of(subject), PrivateEstimator)
        self._tried = {"grouped": grouped, "any_entries": any_entries}
        self._samplers, self._claim = False, claim
        self._best: dict[int, tuple[float, _Recorded, Records]] = {}
        self._n_recorded = 0

    def set_out(self, neighbours):
        """Determine from one fit the claimed relation and the use of measurements."""
        self.ground = self._ground(Neighbours.REPLACE_ONE)
        # Enough rows for a fit that refuses fewer rows than clusters.
        X, n = self._rows, 4 * self.ground.n_clusters + 8
        for _ in range(_TRIES):
            if self._rows is None:
                X = np.stack([row(self.ground, self.rng) for _ in range(n)])
            situation = Situation("the first fit", [each[None] for each in X], [])
            first = self._recorded(situation, quiet=False).run
            if first.error is None:
                break
        # Samplers are recorded only if no measurement is used: library code may draw with NumPy for
        # purposes other than noise.
        self._samplers = not first.releases and first.error is None
        self.result.guarantee = guarantee = first.guarantee
        relation = neighbours
        if relation is None and guarantee is not None:
            relation = guarantee.relation
        self.ground = self._ground(Neighbours.of(relation or Neighbours.REPLACE_ONE))

    def situations(self):
        """Yield recorded runs and neighbours of each kind in turn."""
        kinds = situations(self.ground)
        for turn in itertools.count():
            # Every kind with noise first, then every kind without noise.
            first = self._recorded(kinds[turn % len(kinds)](self.rng), turn // len(kinds) % 2 == 1)
            yield from ((first, neighbour) for neighbour in first.situation.neighbours)

    def entries(self):
        """Yield recorded runs and neighbours that differ in an entry of another kind."""
        kinds = odd_entries(self.ground) if self.ground.any_entries else []
        for kind in itertools.cycle(self.rng.permutation(kinds)):
            first = self._recorded(kind(self.rng), True)
            yield first, first.situation.neighbours[0]

    def uphill(self):
        """Yield pairs near those with the largest change of the first, a middle or last release."""
        for turn in itertools.count():
            if not self._best:
                return
            order = sorted(self._best)
            # With one or two releases these coincide.
            order = list(dict.fromkeys((order[0], order[len(order) // 2], order[-1])))
            yield self._moved(*self._best[order[turn % len(order)]][1:])

    def _ground(self, relation):
        """Return the ground of the search, from parameters and given rows."""
        known, d = self._parameters, self._n_features
        radius, bounds = known.get("norm_bound"), known.get("bounds")
        low, high = np.full(d, -1.0), np.full(d, 1.0)
        if bounds is not None:
            low, high = (np.broadcast_to(np.asarray(b, dtype=float), (d,)).copy() for b in bounds)
        elif radius is not None:
            low, high = np.full(d, -float(radius)), np.full(d, float(radius))
        elif self._rows is not None:
            finite = self._rows[np.isfinite(self._rows).all(axis=1)]
            low, high = (finite.min(axis=0), finite.max(axis=0)) if len(finite) else (low, high)
        k = next((v for n in _COUNTS if isinstance(v := known.get(n), int)), 1)
        q = known.get("dimension")
        starts = {
            name: (k, d, q) if isinstance(q, int) else (k, d)
            for name, value in known.items()
            if name.endswith("init") and (name in _STARTS or isinstance(value, np.ndarray))
        }
        norm = float(radius) if bounds is None and radius is not None else None
        return Ground(
            low, high, norm, k, relation, rows=self._rows, starts=starts,
            has_bounds=bounds is not None, **self._tried,
        )  # fmt: skip

    def _recorded(self, situation, quiet):
        self._n_recorded += 1
        parameters = dict(situation.parameters)
        # A seed makes fits faster than the protected noise, which one data set in eight still uses.
        if "random_state" in self._parameters and self._n_recorded % _OWN_NOISE:
            parameters["random_state"] = int(self.rng.integers(_LARGEST_SEED))
        seed = int(self.rng.integers(_LARGEST_SEED))
        return self._run(situation, Settings(seed, quiet, self._samplers, parameters))

    def _run(self, situation, settings):
        data = situation.written(arguments(situation.data, self.ground), False)
        return _Recorded(situation, settings, run(self.fit, data, settings))

    def compare(self, first, neighbour):
        """Compare a recorded run with a replay, and keep the result."""
        situation, ground = first.situation, self.ground
        sides = ((situation.data, False), (neighbour, True))
        pair = [situation.written(arguments(data, ground), is_other) for data, is_other in sides]
        second = run(self.fit, pair[1], first.settings, first.run.releases)
        if "bounds" in situation.parameters:
            low, high = situation.parameters["bounds"]
            ground = replace(ground, low=low, high=high)
        outside = not (ground.holds(situation.data) and ground.holds(neighbour))
        claim = None if first.settings.quiet else self._claim
        report = compared(first.run, second, ground.relation, outside=outside, claim=claim)
        self.result.n_pairs += 1
        self.result.n_refused += report.is_refused
        self._note(report)
        for violation in report.violations:
            self._add(violation, situation, pair)
        if situation.written is not as_they_are:  # the difference cannot be moved
            return
        for place, change in enumerate(report.changes):
            part = 0.0 if math.isnan(change.part) else change.part
            # Equal changes are accepted, so that a climb crosses plateaus.
            if place not in self._best or part >= self._best[place][0]:
                self._best[place] = part, first, neighbour

    def _note(self, report: PairReport):
        counts: dict[str, int] = {}
        for release in report.runs[0].releases:
            counts[release.where] = counts.get(release.where, 0) + 1
            site = self.result.sites.setdefault(release.where, Site(release.mechanism))
            site.count = max(site.count, counts[release.where])
            site.is_stated &= release.measurement is not None
        for release, change in zip(report.runs[0].releases, report.changes, strict=False):
            site = self.result.sites[release.where]
            # `fmax` ignores NaN, which marks changes that are not measured.
            site.part = float(np.fmax(site.part, change.part))
            site.is_exact &= change.is_exact
        for remark in report.remarks:
            self.result.remarks[remark] = self.result.remarks.get(remark, 0) + 1

    def _add(self, violation, situation, pair):
        new = Finding(violation, situation.name, *copy.deepcopy(pair), dict(situation.parameters))
        for i, old in enumerate(self.result.findings):
            if (old.violation.kind, old.violation.where) == (violation.kind, violation.where):
                kept = new if violation.part > old.violation.part else old
                self.result.findings[i] = replace(kept, count=old.count + 1)
                return
        self.result.findings.append(new)

    def _moved(self, first, neighbour):
        """Return a recorded run and its neighbour, with another record in one or in both."""
        situation = first.situation
        both = [list(situation.data), list(neighbour)]
        # If a record is added, only the larger data set has it; with as many rows either may move.
        side = int(len(both[1]) > len(both[0]))
        if len(both[0]) == len(both[1]):
            side = int(self.rng.random() < _NEIGHBOUR_MOVES)
        place = _difference(*both)
        # Records before the first difference are common to both.
        if place and self.rng.random() < _COMMON_MOVES:
            side, place = 0, int(self.rng.integers(place))
            both[0][place] = both[1][place] = self._step(both[0][place])
        else:
            both[side][place] = self._step(both[side][place])
        name = situation.name.removesuffix(_UPHILL) + _UPHILL
        situation = replace(situation, name=name, data=both[0])
        moved = (
            replace(first, situation=situation) if side else self._run(situation, first.settings)
        )
        return moved, both[1]

    def _step(self, record):
        rng, ground = self.rng, self.ground
        moved = record.copy()
        which = int(rng.integers(len(moved)))
        how = rng.random()
        if how < 0.2:
            moved[which] = row(ground, rng)
        elif how < 0.35:
            moved[which] = opposite(ground, moved[which])
        else:
            width = np.maximum(ground.high - ground.low, 1e-300)
            step = width * 10.0 ** rng.uniform(-6.0, 0.0) * rng.standard_normal(len(width))
            if rng.random() < 0.5:
                step *= np.arange(len(step)) == rng.integers(len(step))
            with np.errstate(over="ignore", invalid="ignore"):
                moved[which] = moved[which] + step
        return moved


_UPHILL = ", moved uphill"
_COUNTS = ("n_clusters", "n_components", "k")
_STARTS = ("init", "means_init", "centers_init")


def _parameters_of(subject):
    estimator = _estimator_of(subject)
    return estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}


def _estimator_of(subject):
    if hasattr(subject, "get_params") and not isinstance(subject, type):
        return subject
    return subject() if callable(subject) and takes(subject, 0) else None


def _difference(data, neighbour):
    for i, (one, other) in enumerate(zip(data, neighbour, strict=False)):
        if one.shape != other.shape or one.tobytes() != other.tobytes():
            return i
    return min(len(data), len(neighbour)) if len(data) != len(neighbour) else 0
