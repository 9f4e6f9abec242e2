"""Jobs of an archived run, drawn at random to be done again, and what comes out held against it."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from privclust.core.hdf5 import FileError
from privclust.core.printable import excerpt
from privclust_papers.pipeline import artefacts
from privclust_papers.report.crate_file import Crate, file_sha256
from privclust_papers.report.run_records import Job
from privclust_papers.report.two_runs import (
    TIMED_METRICS,
    TIMES,
    RunComparison,
    compare_tables,
    read_cells,
)
from privclust_papers.settings.config import load_yaml

KINDS = ("data", "features", "shared", "fit", "metrics", "table", "figure")
"""Kinds of results that are compared; of all but figures a tolerance may be stated."""
SAME, EQUAL, CLOSE = "same bytes", "same numbers", "within tolerance"
DIFFERS, NOT_JUDGED, MISSING = "differs", "not judged", "not recomputed"
_AGREE = (SAME, EQUAL, CLOSE)
_MOST_TIMES_LARGER = 4  # a table than what is made here: more is not worth comparing
_ARTEFACTS = {"data": "dataset"}  # kinds of artefacts that have another name in their files


@dataclass(frozen=True)
class Draw:
    """Jobs to do again.

    Attributes
    ----------
    drawn : tuple of Job
        In the order in which they were drawn.
    needed : tuple of Job
        What has to be done before them, as its results are not in the crate.
    too_long : tuple of Job
        Those that could not be drawn, as each takes longer than the limit with all it needs.
    incomparable : tuple of Job
        Those that make nothing that could be held against the crate: the page, which says how the
        run was called, fetched data, a folder without a checksum, and data of the user's own.
    """

    drawn: tuple[Job, ...]
    needed: tuple[Job, ...]
    too_long: tuple[Job, ...]
    incomparable: tuple[Job, ...] = ()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All jobs that are done again."""
        return (*self.drawn, *self.needed)


@dataclass(frozen=True)
class Finding:
    """What came out for one output of a job."""

    name: str
    kind: str
    outcome: str  # one of the six above
    detail: str = ""

    @property
    def is_agreement(self) -> bool:
        """Whether the output was recomputed and agrees."""
        return self.outcome in _AGREE


@dataclass
class Verification:
    """A crate, the draw, and what came out; see `privclust_papers.report.certificate`."""

    crate: Crate
    draw: Draw
    seed: int
    minutes: float
    tolerances: Mapping[str, float]
    findings: list[Finding] = field(default_factory=list)
    redone: list[Job] = field(default_factory=list)  # jobs all of whose outputs were made again
    elapsed_s: float = 0.0
    messages: str = ""  # what Snakemake said last, where something was not recomputed

    @property
    def agrees(self) -> bool:
        """Whether something was recomputed, and nothing differs or is missing."""
        outcomes = {finding.outcome for finding in self.findings}
        return not outcomes.isdisjoint(_AGREE) and outcomes.isdisjoint((DIFFERS, MISSING))


def cost_of(job: Job) -> float:
    """Return what a job took, in CPU seconds; where no log says so, how long it was under way."""
    return max(job.end - job.start, 0.0) if job.cpu_s is None else job.cpu_s


def draw(crate: Crate, n_jobs: int, minutes: float, seed: int) -> Draw:
    """Draw jobs one after another, each with a probability proportional to its cost.

    A job comes with all that has to be done before it. One that would take the sum beyond the limit
    of time, by what the jobs took in the crate's run, is passed over for the next.

    Parameters
    ----------
    crate : Crate
    n_jobs : int
        How many at most.
    minutes : float
        Of CPU time, at most.
    seed : int
        The same seed draws the same jobs of a crate.
    """
    limit, rng = 60.0 * minutes, random.Random(seed)
    candidates = [job for job in crate.jobs if _is_comparable(crate, job)]
    incomparable = tuple(job for job in crate.jobs if not _is_comparable(crate, job))
    needs = {job: _needs(crate, job) for job in candidates}
    alone = {job: sum(map(cost_of, {job, *needs[job]})) for job in candidates}
    # the smallest of exponential times with the costs as rates comes from a job in proportion to
    # its cost, and so does the next one of those that are left (Efraimidis and Spirakis 2006)
    order = sorted(candidates, key=lambda job: rng.expovariate(max(cost_of(job), 1e-3)))
    drawn: list[Job] = []
    done: set[Job] = set()
    for job in order:
        more = {job, *needs[job]} - done
        if len(drawn) < n_jobs and sum(map(cost_of, done | more)) <= limit:
            drawn.append(job)
            done |= more
    needed = tuple(job for job in crate.jobs if job in done and job not in drawn)
    too_long = tuple(job for job in candidates if alone[job] > limit)
    return Draw(tuple(drawn), needed, too_long, incomparable)


def _is_comparable(crate: Crate, job: Job) -> bool:
    """Whether a job may be drawn: some output of it can be held against the crate."""
    return any(kind_of(output) and output in crate.digests for output in job.outputs)


def _needs(crate: Crate, job: Job) -> list[Job]:
    """Return the jobs that have to be done before a job, since the crate has not their results."""
    needed: dict[str, Job] = {}  # by an output, as jobs take as long to compare as their inputs
    pending = [job]
    while pending:
        for name in pending.pop().inputs:
            maker = crate.makers.get(name)
            if maker and maker.outputs[0] not in needed and not crate.members_of(name):
                needed[maker.outputs[0]] = maker
                pending.append(maker)
    return list(needed.values())


def kind_of(name: str) -> str:
    """Return of what kind of `KINDS` an output is; empty for what says how long something took.

    Examples
    --------
    >>> kind_of("results/quick/ckm/s1/fit/ckm/block_0000.h5"), kind_of("results/quick/x/costs.tsv")
    ('fit', '')
    """
    path = Path(name)
    if path.suffix == ".h5":
        if path.parts[0] == "data":
            return "features" if path.parts[1] == "features" else "data"
        return next((kind for kind in ("fit", "shared") if kind in path.parts[:-1]), "metrics")
    return {".csv": "table", ".svg": "figure", ".png": "figure"}.get(path.suffix, "")


def compare_outputs(
    crate: Crate, jobs: Sequence[Job], folder: Path, tolerances: Mapping[str, float]
) -> list[Finding]:
    """Hold what jobs made in a folder against the crate, output by output.

    `tolerances` has the largest relative difference of numbers by kind; a kind that is not there
    has 0. What is not in the crate can be compared by its bytes alone.
    """
    findings, timed = [], _timed_claims(crate, folder)
    for job in jobs:
        of_job = [
            _compare(crate, name, folder, tolerances, timed)
            for name in job.outputs
            if kind_of(name) and name in crate.digests
        ]
        tables = [finding for finding in of_job if finding.kind == "table"]
        findings += [_judged(finding, tables) for finding in of_job]
    return findings


def _judged(finding: Finding, tables: Sequence[Finding]) -> Finding:
    """Judge no figure whose table agrees but for times or within a tolerance: it shows both."""
    if finding.kind != "figure" or finding.outcome != DIFFERS or not tables:
        return finding
    if all(table.outcome in (EQUAL, CLOSE) for table in tables):
        return Finding(finding.name, "figure", NOT_JUDGED, "drawn from a table of other cells")
    return finding


def _timed_claims(crate: Crate, folder: Path) -> set[str]:
    """Return the claims whose verdicts are on how long something took, by the code of both."""
    claims = []
    for paper in crate.settings.get("papers") or ():
        path = folder / paper / "claims.yaml"
        claims += load_yaml(path) if path.is_file() else []
    return {claim["id"] for claim in claims if claim["check"].get("metric") in TIMED_METRICS}


def _compare(
    crate: Crate, name: str, folder: Path, tolerances: Mapping[str, float], timed: Collection[str]
) -> Finding:
    """Hold one output against the crate."""
    kind, path = kind_of(name), folder / name
    sha256 = file_sha256(path)
    if not sha256:
        return Finding(name, kind, MISSING)
    if sha256 == crate.digests[name]:
        return Finding(name, kind, SAME)
    if name not in crate.sums:
        return Finding(name, kind, DIFFERS, "in its bytes; the crate has no more of it")
    tolerance = tolerances.get(kind, 0.0)
    if kind == "table":
        contents = crate.read(name), path.read_bytes()
        return Finding(name, kind, *_compare_table(*contents, tolerance, timed))
    if kind == "figure":
        return Finding(name, kind, DIFFERS, "in its bytes")
    before = folder / f"{name}.before"
    before.write_bytes(crate.read(name))
    try:
        theirs, ours = (artefacts.read(p, _ARTEFACTS.get(kind, kind)) for p in (before, path))
    except FileError as error:
        reason = str(error).replace(f"{folder}/", "")
        return Finding(name, kind, DIFFERS, f"and cannot be read ({reason})")
    finally:
        before.unlink()
    if theirs.parameters != ours.parameters:
        return Finding(name, kind, DIFFERS, "in the parameters that it states")
    return Finding(name, kind, *compare_arrays(theirs.arrays, ours.arrays, tolerance))


class _SameTexts(RunComparison):
    """A comparison in which no two ways to write a number are one."""

    def are_equal(self, a: str, b: str) -> bool:
        """Whether two cells are the same to the last character."""
        return a == b


def _compare_table(
    before: bytes, after: bytes, tolerance: float, timed: Collection[str] = ()
) -> tuple[str, str]:
    """Compare two tables cell by cell, but for times and what of some claims they decide."""
    if len(before) > _MOST_TIMES_LARGER * len(after):
        return DIFFERS, "and is many times larger"
    try:
        tables = [read_cells(text) for text in (before, after)]
    except ValueError:
        return DIFFERS, "and is no table"
    are_alike = tables[0].equals(tables[1])
    if all({"id", "decided_by"} <= set(table) for table in tables):
        for table in tables:
            table.loc[table["id"].isin(timed), ["verdict", "decided_by"]] = "by times"
    exact = outcome = _SameTexts(0.0, 0.0)
    compare_tables("", (tables[0], tables[1]), exact)
    if tolerance:
        outcome = RunComparison(tolerance, 0.0)
        compare_tables("", (tables[0], tables[1]), outcome)
    if not exact.numbers and are_alike:
        return DIFFERS, "in its bytes, and in none of its cells"
    if not exact.numbers:
        return EQUAL, "but for what says how long something took"
    if not outcome.numbers:
        return CLOSE, f"{len(exact.numbers):,} of {exact.n_numbers:,} cells have other digits"
    first = outcome.numbers[0]
    return DIFFERS, (
        f"in {len(outcome.numbers):,} of {outcome.n_numbers:,} cells, first "
        f"{excerpt(first.name)}: {excerpt(first.before)} -> {excerpt(first.after)}"
    )


def compare_arrays(
    before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray], tolerance: float
) -> tuple[str, str]:
    """Compare arrays by name, but for times: what came out, and by how much they differ at most.

    Numbers a, b differ by |a - b| over the largest entry of their array in the crate; two NaN do
    not. All else, and whole numbers, must be equal.

    Examples
    --------
    >>> one, other = {"x": np.array([1.0, 2.0])}, {"x": np.array([1.0, 2.002])}
    >>> compare_arrays(one, other, 0.01)[0], compare_arrays(one, other, 0.0)[0]
    ('within tolerance', 'differs')
    """
    timed = (*TIMES, *TIMED_METRICS)
    names = [n for n in sorted({*before, *after}) if n.rpartition("/")[2] not in timed]
    apart = {name: _apart(before.get(name), after.get(name)) for name in names}
    worst = max(apart, key=lambda name: apart[name], default="")
    largest = apart.get(worst, 0.0)
    n_equal = sum(value == 0.0 for value in apart.values())
    if largest == 0.0:
        return EQUAL, "but for times, or for versions of packages"
    detail = f"{len(apart) - n_equal} of {len(apart)} arrays, most in {worst}: " + (
        f"by {largest:.2g} of its largest entry" if math.isfinite(largest) else "in its form"
    )
    return (CLOSE, detail) if largest <= tolerance else (DIFFERS, detail)


def _apart(before: np.ndarray | None, after: np.ndarray | None) -> float:
    """Return how far two arrays differ, in parts of the largest entry; infinity if in form."""
    if before is None or after is None or before.shape != after.shape:
        return math.inf
    if before.dtype != after.dtype:
        return math.inf
    if before.dtype.kind not in "fc":
        return 0.0 if np.array_equal(before, after) else math.inf
    if not np.array_equal(np.isfinite(before), np.isfinite(after)):
        return math.inf
    is_finite = np.isfinite(before)
    if not np.array_equal(before[~is_finite], after[~is_finite], equal_nan=True):
        return math.inf
    one, other = before[is_finite], after[is_finite]
    difference = float(np.abs(one - other).max(initial=0.0))
    if difference == 0.0:
        return 0.0
    scale = float(np.abs(one).max(initial=0.0))
    return difference / scale if scale > 0.0 else math.inf


def total_cost(jobs: Collection[Job]) -> float:
    """Return what some jobs took in the crate's run, in CPU seconds."""
    return sum(map(cost_of, jobs))
