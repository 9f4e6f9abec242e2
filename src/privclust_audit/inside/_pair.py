"""Two runs on neighbours, the second with the first one's releases: other differences."""

from __future__ import annotations

import copy
import os
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privclust.privacy.estimator import ERRORS_TELL
from privclust.privacy.guarantee import Guarantee, NoiseWarning
from privclust.privacy.sensitivity import Neighbours
from privclust_audit.inside._changes import Change, change_of
from privclust_audit.inside._claim import Claim, Cost, cost_of, known_noise, shared_noise
from privclust_audit.inside._foreign import seen_samplers
from privclust_audit.inside._outputs import differences
from privclust_audit.inside._recorder import (
    Diverged,
    LooseDraw,
    RecordedRelease,
    Recorder,
    is_passed_over,
    place,
    recording,
)
from privclust_audit.inside._stated import differing_lines, larger_losses
from privclust_audit.inside._subject import fit_of, takes_generator

CONTROL_FLOW, OUTPUT, EXCEPTION = "control flow", "output", "exception"
GUARANTEE, NOISE, CLAIM = "guarantee", "noise", "claim"
VIOLATED, NOTHING_FOUND, CANNOT_TELL = "violated", "nothing found", "cannot tell"
NOT_LOOKED_INTO = "not looked into"
_MOST_PATHS = 3  # most paths that a message names
RUNS_WITH_GENERATOR = 3
"""Runs for one pair if the subject takes a generator; otherwise 2."""


@dataclass(frozen=True)
class Violation:
    """A broken guarantee, proved by two runs.

    Attributes
    ----------
    kind : str
        ``"control flow"``, ``"sensitivity"``, ``"price"``, ``"output"``, ``"exception"``,
        ``"guarantee"``; for samplers recorded by an adapter, ``"noise"`` or ``"claim"``.
    message : str
        Description, without entries of the data.
    where : str
        File, line and function; for a release, its caller.
    release : int or None
        Index of the release, from 0.
    part : float
        The change relative to the stated one; NaN for other violations.
    """

    kind: str
    message: str
    where: str = ""
    release: int | None = None
    part: float = float("nan")

    def __str__(self) -> str:
        at = "" if self.release is None else f"release {self.release + 1}, "
        where = f"{at}{self.where}: " if self.where else ""
        return f"{self.kind}: {where}{self.message}"


@dataclass(frozen=True, eq=False)
class Run:
    """One run, recorded.

    Attributes
    ----------
    output : object
        None if it ended in an error.
    error : Exception or None
    releases : tuple of RecordedRelease
    divergence : str
        Why a replay was stopped early.
    said : tuple
        Categories and texts of its warnings.
    loose : tuple of str
        Names of recorded draws that were not added to a recorded value.
    laws : tuple of str
        Names of draws with possibly data-dependent distributions.
    """

    output: Any
    error: Exception | None
    releases: tuple[RecordedRelease, ...]
    divergence: str
    said: tuple[tuple[type, str], ...]
    loose: tuple[LooseDraw, ...] = ()
    laws: tuple[str, ...] = ()

    @property
    def guarantee(self) -> Guarantee | None:
        """The guarantee of the output, if it has one."""
        guarantee = getattr(self.output, "guarantee_", None)
        return guarantee if isinstance(guarantee, Guarantee) else None


@dataclass(frozen=True, eq=False)
class PairReport:
    """The result of two runs on neighbours.

    Attributes
    ----------
    violations : tuple of Violation
    remarks : tuple of str
        Differences that do not violate the guarantee, and parts that were not examined.
    changes : tuple of Change
        For each release that both runs have in common.
    runs : tuple of Run
        On the data set, and the replay on its neighbour.
    cost : float
        The total epsilon of changes under Laplace noise of samplers, if a claim was given; else
        NaN.
    """

    violations: tuple[Violation, ...]
    remarks: tuple[str, ...]
    changes: tuple[Change, ...]
    runs: tuple[Run, Run]
    cost: float = float("nan")

    @property
    def is_refused(self) -> bool:
        """Whether both runs ended in the same error."""
        return not self.violations and self.runs[0].error is not None

    @property
    def verdict(self) -> str:
        """``"violated"``, ``"nothing found"``, or ``"cannot tell"`` if not everything was examined.

        Nothing was examined if no release was recorded.
        """
        if self.violations:
            return VIOLATED
        is_partial = any(remark.startswith(NOT_LOOKED_INTO) for remark in self.remarks)
        is_all = self.runs[0].releases and self.runs[0].error is None and not is_partial
        return NOTHING_FOUND if is_all else CANNOT_TELL


@dataclass(frozen=True)
class Settings:
    """Settings of the runs.

    The `seed` stands in for the operating system's entropy. If `quiet`, releases of the first run
    have noise 0. With `samplers`, draws of NumPy outside of measurements count as
    releases. The `parameters` are set on the estimator first.
    """

    seed: int = 0
    quiet: bool = False
    samplers: bool = False
    parameters: Mapping[str, Any] = field(default_factory=dict)


def inspect_pair(
    subject: Any,
    data: Any,
    neighbour: Any,
    neighbours: Neighbours | str | None = None,
    random_state: int = 0,
    *,
    quiet: bool = False,
    samplers: bool = False,
    epsilon: float | None = None,
    delta: float = 0.0,
) -> PairReport:
    """Compare two recorded runs on neighbouring data sets.

    The first run is recorded. The second gets the values that the first released, and the same
    unprotected draws, so that any difference comes from the data in another way.

    Parameters
    ----------
    subject : estimator or callable
        An estimator (each run fits a copy); a callable without arguments that returns one; or a
        callable of a data set, or of a data set and a generator, that returns the release.
    data, neighbour : array-like of shape (n_samples, n_features), or tuple
        Two neighbouring data sets. A tuple has the arguments of the fit, such as ``(X, None,
        groups)``.
    neighbours : {"replace_one", "add_remove"} or None
        Their relation; None: equal numbers of rows mean a replaced row.
    random_state : int
        Seed of the draws in place of the operating system's.
    quiet : bool
        Whether releases of the first run have noise 0.
    samplers : bool
        Whether draws of NumPy's samplers count as releases, for code without measurements.
    epsilon, delta : float
        With `samplers`, the claim for all releases together; None: no claim. It is compared with
        the loss of their changes, which is exact if the changes do not depend on earlier releases
        and all releases are in the output.

    Returns
    -------
    PairReport

    Examples
    --------
    >>> from privclust.kmeans import DPLloyd
    >>> X = np.array([[0.1], [0.9], [0.4]])
    >>> other = np.array([[0.1], [0.9], [1.0]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     report = inspect_pair(DPLloyd(2, bounds=(0, 1), random_state=0), X, other)
    >>> report.violations, len(report.changes), report.changes[0].part <= 1.0
    ((), 6, True)
    """
    relation = _relation(data, neighbour) if neighbours is None else Neighbours.of(neighbours)
    claim = None if epsilon is None else Claim(float(epsilon), float(delta))
    settings = Settings(random_state, quiet, samplers)
    fit = fit_of(subject)
    first = run(fit, data, settings)
    second = run(fit, neighbour, settings, first.releases)
    # Without noise, releases do not have the distribution on which a claim is judged.
    report = compared(first, second, relation, claim=None if quiet else claim)
    if not (samplers and takes_generator(subject)):
        return report
    # A third run with another generator: noise that does not change is known to anybody.
    again = run(fit, data, replace(settings, seed=settings.seed + 1))
    known = [
        Violation(NOISE, "its noise is the same whatever generator is given", one.where, one.order)
        for one in known_noise(first.releases, again.releases)
    ]
    return replace(report, violations=(*report.violations, *known))


def run(
    fit: Callable, data: Any, settings: Settings, frozen: Sequence[RecordedRelease] | None = None
) -> Run:
    """Return a recorded run; with frozen releases, a replay."""
    arguments = data if isinstance(data, tuple) else (data,)
    recorder = Recorder(settings.seed, quiet=settings.quiet, frozen=frozen)
    output = error = None
    with ExitStack() as blocks:
        caught = blocks.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        blocks.enter_context(recording(recorder))
        if settings.samplers:
            blocks.enter_context(seen_samplers(recorder))
        try:
            # A fit that writes into its arguments would change the data of the next run.
            output = fit(settings.parameters, *copy.deepcopy(arguments))
        except Diverged:
            pass
        except Exception as raised:  # any exception of a fit is part of its output
            error = raised
    # The same warning in a loop counts once, whatever the number of turns.
    said = tuple(dict.fromkeys((each.category, str(each.message)) for each in caught))
    done = recorder.divergence, said, tuple(recorder.loose), tuple(recorder.laws)
    return Run(output, error, tuple(recorder.releases), *done)


def compared(
    first: Run,
    second: Run,
    relation: Neighbours | None,
    *,
    outside: bool = False,
    claim: Claim | None = None,
) -> PairReport:
    """Return the report of a run and its replay.

    If rows are `outside` of declared bounds, an error excluded by the guarantee itself is a remark.
    """
    if _is_noise_once(first, second):
        told = ", ".join(_unmeasured(first, second))
        words = f"{NOT_LOOKED_INTO}: {told} in one of the runs, and to a value in the other"
        return PairReport((), (words,), (), (first, second))
    # A replay ends at its first release that differs: common releases are the first of both runs.
    common = [
        (one, other)
        for one, other in zip(first.releases, second.releases, strict=False)
        if not one.differs(other)
    ]
    changes = tuple(change_of(one, other, relation) for one, other in common)
    violations = [*_of_changes(changes, first), *_of_flow(first, second), *_of_noise(common)]
    stated = first.guarantee, first.releases
    violations += [Violation(GUARANTEE, *each) for each in larger_losses(*stated, changes)]
    remarks = []
    cost = _held_against(claim, common, first)
    if cost.problem and cost.is_certain:
        violations.append(Violation(CLAIM, cost.problem, common[-1][0].where))
    elif cost.problem:
        remarks.append(f"{NOT_LOOKED_INTO}: {cost.problem}, if all of them are published")
    if first.error is not None or second.error is not None:
        told = _of_errors(first, second)
        if told and outside and _sets_errors_apart(first, second):
            remarks.append(f"{told[0].message}; the guarantee sets errors of rows outside apart")
        else:
            violations += told
        if not told and not violations:
            kind = type(first.error).__name__
            remarks.append(f"both runs end in the same {kind}, {_origin(first.error)}")
    elif unmeasured := _unmeasured(first, second):
        remarks.append(
            f"{NOT_LOOKED_INTO}: {', '.join(unmeasured)}, which is not a recorded release; "
            "results that depend on it may differ"
        )
    elif not second.divergence:
        violations += _of_outputs(first, second)
    if first.error is second.error is None and not second.divergence:
        violations += [Violation(GUARANTEE, *each) for each in differing_lines(*stated)]
        remarks += _of_words(first, second, violations)
    return PairReport(tuple(violations), tuple(remarks), changes, (first, second), cost.epsilon)


def _relation(data, neighbour):
    first = [one[0] if isinstance(one, tuple) else one for one in (data, neighbour)]
    counts = {np.shape(one)[:1] for one in first}
    return Neighbours.REPLACE_ONE if len(counts) == 1 else Neighbours.ADD_REMOVE


def _of_changes(changes: Iterable[Change], first) -> list[Violation]:
    return [
        Violation(change.kind, change.problem, release.where, release.order, change.part)
        for change, release in zip(changes, first.releases, strict=False)
        if change.problem
    ]


def _of_flow(first, second):
    if second.divergence and not _outlives(second, first):
        last = second.releases[-1]
        return [Violation(CONTROL_FLOW, second.divergence, last.where, last.order)]
    # With a loose draw in the replay, the missing release may have been made in a form that the
    # adapter does not follow.
    is_short = len(second.releases) < len(first.releases) and not second.loose
    if is_short and first.error is second.error is None:
        missing = first.releases[len(second.releases)]
        message = "it is made on one data set and not on its neighbour"
        return [Violation(CONTROL_FLOW, message, missing.where, missing.order)]
    return []


def _is_noise_once(first, second):
    """Return whether a draw is noise in one run and a release in the other.

    A sampler with a location gives noise alone if the location is 0.
    """
    pairs = ((first, second), (second, first))
    return any(
        {draw.where for draw in one.loose if draw.has_location}
        & {release.where for release in other.releases}
        for one, other in pairs
    )


def _of_noise(common):
    message = "entries that move apart have the same number of noise"
    return [Violation(NOISE, message, one.where, one.order) for one in shared_noise(common)]


def _held_against(claim, common, first):
    """Return the comparison of samplers' releases with a claim; measurements have a ledger."""
    if claim is None or any(one.measurement is not None for one, _ in common):
        return Cost()
    return cost_of(common, first.output, claim)


def _outlives(second, first):
    """Return whether a replay reached a release that an error prevented in the first run."""
    return first.error is not None and len(second.releases) > len(first.releases)


def _of_errors(first, second):
    if second.divergence and not _outlives(second, first):
        return []
    errors = [one.error for one in (first, second)]
    kinds = [type(error).__name__ for error in errors]
    raised = next(error for error in errors if error is not None)
    where = _origin(raised)
    if None in errors:
        data = "the first data set" if errors[1] is None else "its neighbour"
        message = f"{type(raised).__name__} on {data} only"
    elif kinds[0] != kinds[1]:
        message = f"{kinds[0]} on one data set and {kinds[1]} on its neighbour"
    elif str(errors[0]) != str(errors[1]):
        message = f"{kinds[0]} on both, with different messages"
    else:
        return []
    return [Violation(EXCEPTION, message, where)]


def _origin(error):
    """Return the place of an error: the last one outside of other libraries."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [
        (frame, line)
        for frame, line in frames
        if f"{os.sep}site-packages{os.sep}" not in frame.f_code.co_filename
        and not is_passed_over(frame.f_code.co_filename)
    ]
    # The deepest frame may be in NumPy; the last own one tells which code asked for it.
    frame, line = (own or frames)[-1]
    return place(frame.f_code.co_filename, line, frame.f_code)


def _sets_errors_apart(first, second):
    """Return whether the guarantee of a run excludes errors for rows outside the bounds."""
    guarantees = [one.guarantee for one in (first, second)]
    return any(g is not None and ERRORS_TELL in g.caveats for g in guarantees)


def _of_outputs(first, second):
    paths = list(differences(first.output, second.output))
    if not paths:
        return []
    words = "; ".join(f"{path}: {how}" for path, how in paths[:_MOST_PATHS])
    more = len(paths) - _MOST_PATHS
    words += f"; and {more} more" if more > 0 else ""
    return [Violation(OUTPUT, f"differs though all releases are the same: {words}")]


def _of_words(first, second, violations):
    """Return remarks on warnings that differ; those on noise depend only on releases."""
    ours, theirs = set(first.said), set(second.said)
    names = sorted({category.__name__ for category, _ in ours ^ theirs})
    if any(issubclass(category, NoiseWarning) for category, _ in ours ^ theirs):
        message = "a NoiseWarning differs though all releases are the same"
        violations.append(Violation(OUTPUT, message))
    if not names:
        return []
    return [f"warnings differ ({', '.join(names)}): only the holder of the data may see them"]


def _unmeasured(run, again):
    """Return names of draws, or of lines of a guarantee, without a recorded release."""
    draws = [draw.name for draw in (*run.loose, *again.loose)]
    names = dict.fromkeys((*draws, *run.laws))
    loose = [f"a draw of {name} that is added to nothing" for name in names]
    if run.guarantee is None or any(release.measurement is None for release in run.releases):
        return loose
    made = {release.mechanism for release in run.releases}
    return loose + [one.name for one in run.guarantee.releases if one.mechanism not in made]
