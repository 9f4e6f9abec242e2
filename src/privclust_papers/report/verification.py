"""Verification of an archived run: random jobs are repeated, and their results compared."""

from __future__ import annotations

import csv
import io
import math
import os
import platform
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from llvmlite.binding import get_host_cpu_name

from privclust import __version__
from privclust.core.files import write_text
from privclust.core.hdf5 import FileError, package_versions
from privclust.core.printable import excerpt
from privclust_papers.pipeline import artefacts
from privclust_papers.report.crate_file import FEATURES, PREPARED, Crate, file_sha256
from privclust_papers.report.run_records import Job, kind_of, made_from
from privclust_papers.settings.config import load_yaml

CERTIFICATE = "certificate.yml"
SAME, EQUAL = "same bytes", "same numbers"
DIFFERS, NOT_JUDGED, MISSING = "differs", "not judged", "not recomputed"
_TIMES = ("cpu_seconds",)  # columns (and below, metrics) that are times
_TIMED_METRICS = ("cpu_s", "of_reference")


@dataclass(frozen=True)
class Draw:
    """The jobs of a crate that a verification repeats, and those that it leaves out."""

    drawn: tuple[Job, ...]  # in the order of drawing
    needed: tuple[Job, ...]  # jobs before them, if their results are not in the crate
    too_long: tuple[Job, ...] = ()  # beyond the limit of time, with the jobs that they need
    incomparable: tuple[Job, ...] = ()  # the page, and fetched data
    seed: int = 0
    minutes: float = math.inf  # limit of CPU time

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The drawn jobs, and those on which they depend."""
        return (*self.drawn, *self.needed)


@dataclass(frozen=True)
class Finding:
    """The result of comparing one output of a job."""

    name: str
    outcome: str  # one of the five constants above
    detail: str = ""


@dataclass(frozen=True)
class Verification:
    """The result of repeating drawn jobs of a crate; see `write_certificate`."""

    crate: Crate
    draw: Draw
    findings: list[Finding]
    redone: list[Job]  # jobs with all outputs made again
    messages: str = ""  # of Snakemake, if a job failed

    @property
    def agrees(self) -> bool:
        """Whether at least one output agrees, and none differs or is missing."""
        outcomes = {finding.outcome for finding in self.findings}
        return not outcomes.isdisjoint((SAME, EQUAL)) and outcomes.isdisjoint((DIFFERS, MISSING))


def cost_of(*jobs: Job) -> float:
    """Return the CPU seconds of jobs; for a job without a log, its wall time."""
    return math.fsum(
        max(job.end - job.start, 0.0) if job.cpu_s is None else job.cpu_s for job in jobs
    )


def draw(crate: Crate, n_jobs: int, minutes: float, seed: int) -> Draw:
    """Draw at most `n_jobs` jobs without replacement, with probabilities proportional to costs.

    The jobs that a job needs are added. A job is skipped if the CPU time of all, as recorded in the
    crate's run, would exceed the limit.
    """
    limit, rng = 60.0 * minutes, random.Random(seed)
    comparable = [job for job in crate.jobs if _comparable(crate, job)]
    needs = {job: _needs(crate, job) for job in comparable}
    # sorting by exponential variates with the costs as rates is weighted sampling without
    # replacement (Efraimidis and Spirakis 2006); a rate of 0 is an error
    order = sorted(comparable, key=lambda job: rng.expovariate(max(cost_of(job), 1e-3)))
    drawn: list[Job] = []
    done: set[Job] = set()
    for job in order:
        # Jobs needed by several drawn jobs run once and count once.
        together = done | {job, *needs[job]}
        if len(drawn) < n_jobs and cost_of(*together) <= limit:
            drawn.append(job)
            done = together
    return Draw(
        tuple(drawn),
        tuple(job for job in crate.jobs if job in done and job not in drawn),
        tuple(job for job in comparable if cost_of(job, *needs[job]) > limit),
        tuple(job for job in crate.jobs if job not in needs),
        seed,
        minutes,
    )


def _comparable(crate: Crate, job: Job) -> list[str]:
    return [name for name in job.outputs if kind_of(name) and name in crate.digests]


def _needs(crate: Crate, job: Job) -> list[Job]:
    """Return the jobs that must run before a job, as the crate lacks their results."""
    needed: dict[str, Job] = {}  # by an output, as hashing a job with many inputs is slow
    pending = [job]
    while pending:
        for name in pending.pop().inputs:
            maker = crate.makers.get(name)
            if maker and maker.outputs[0] not in needed and not crate.members_of(name):
                needed[maker.outputs[0]] = maker
                pending.append(maker)
    return list(needed.values())


def compare_outputs(crate: Crate, jobs: Iterable[Job], folder: Path) -> list[Finding]:
    """Compare the outputs of jobs in a folder with those of the crate, by their bytes.

    Outputs with other bytes agree if they differ only in measured times, which the crate must have
    to compare. Results from other data than the run's, such as a substitute, do not count as
    recomputed.
    """
    findings: list[Finding] = []
    timed = _timed_claims(crate, folder)
    for job in jobs:
        found = [_compare(crate, name, folder, timed) for name in _comparable(crate, job)]
        tables = {finding.outcome for finding in found if kind_of(finding.name) == "table"}
        for finding in found:
            # A figure of times differs in each run; its table shows whether anything else does.
            is_figure = kind_of(finding.name) == "figure"
            if is_figure and finding.outcome == DIFFERS and tables == {EQUAL}:
                finding = Finding(finding.name, NOT_JUDGED, "its table differs in times")
            findings.append(finding)
    data = [f for f in findings if f.name.startswith((PREPARED, FEATURES))]
    others = {finding.name for finding in data if finding.outcome == DIFFERS}
    rest = made_from(crate.jobs, others) - others
    return [
        Finding(f.name, MISSING, "its data differ here") if f.name in rest else f for f in findings
    ]


def _timed_claims(crate: Crate, folder: Path) -> set[str]:
    """Return the ids of claims on times, from the claims.yaml of the project's copy."""
    paths = [folder / paper / "claims.yaml" for paper in crate.settings.get("papers") or ()]
    claims = [claim for path in paths if path.is_file() for claim in load_yaml(path)]
    checks = {claim["id"]: claim.get("check", {}) for claim in claims}
    return {name for name, check in checks.items() if check.get("metric") in _TIMED_METRICS}


def _compare(crate: Crate, name: str, folder: Path, timed: Collection[str]) -> Finding:
    kind, path = kind_of(name), folder / name
    sha256 = file_sha256(path)
    if not sha256:
        return Finding(name, MISSING)
    if sha256 == crate.digests[name]:
        return Finding(name, SAME)
    if name not in crate.sums:
        return Finding(name, DIFFERS, "in its bytes; the crate has only its checksum")
    if kind == "figure":
        return Finding(name, DIFFERS, "in its bytes")
    content, before = crate.read(name), path.with_name(f"{path.name}.before")
    try:
        if kind == "table":
            return Finding(name, *compare_cells(content, path.read_bytes(), timed))
        before.write_bytes(content)
        theirs, ours = (artefacts.read(p, kind) for p in (before, path))
        if theirs.parameters != ours.parameters:
            return Finding(name, DIFFERS, "in its recorded parameters")
        return Finding(name, *compare_arrays(theirs.arrays, ours.arrays))
    except (FileError, ValueError) as error:
        reason = str(error).replace(f"{folder}/", "")
        return Finding(name, DIFFERS, f"and cannot be read ({reason})")
    finally:
        before.unlink(missing_ok=True)


def compare_cells(before: bytes, after: bytes, timed: Collection[str] = ()) -> tuple[str, str]:
    """Compare two tables cell by cell, without times and verdicts on times.

    The outcome of tables that differ has the first such cell, and the largest difference of two
    numbers relative to the larger of their sizes.
    """
    theirs, ours = map(read_cells, (before, after))
    if theirs.equals(ours):
        return DIFFERS, "in its bytes, but in none of its cells"
    times = [name for name in (*_TIMES, *_TIMED_METRICS) if name in theirs and name in ours]
    theirs, ours = (_untimed(table.drop(columns=times), timed) for table in (theirs, ours))
    if list(theirs) != list(ours) or len(theirs) != len(ours):
        return DIFFERS, "in its columns or its number of rows"
    is_other = theirs.to_numpy() != ours.to_numpy()
    if not is_other.any():
        return EQUAL, "except for times"
    row, column = np.argwhere(is_other)[0]
    one, other = (table.iat[row, column] for table in (theirs, ours))
    numbers = [pd.to_numeric(t.to_numpy()[is_other], errors="coerce") for t in (theirs, ours)]
    with np.errstate(invalid="ignore"):
        relative = np.abs(numbers[0] - numbers[1]) / np.maximum(*np.abs(numbers))
    largest = f", by up to {np.nanmax(relative):.2g}" if np.isfinite(relative).any() else ""
    return DIFFERS, (
        f"in {is_other.sum():,} of {is_other.size:,} cells{largest}, first "
        f"{excerpt(theirs.columns[column])} of row {row + 1}: {excerpt(one)} -> {excerpt(other)}"
    )


def read_cells(content: bytes) -> pd.DataFrame:
    """Return all cells of a CSV table as texts; a ValueError if the lengths of rows differ.

    CSV readers differ in how they align longer rows, and so would show different numbers.
    """
    try:
        head, *rows = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if any(len(row) != len(head) for row in rows):
        raise ValueError("a row has more or fewer cells than the header")
    # number repeated names, such as n for both an axis and a count
    names = [f"{name}.{n}" if (n := head[:i].count(name)) else name for i, name in enumerate(head)]
    if len(set(names)) < len(names):
        raise ValueError("two of its columns have the same name")
    return pd.DataFrame(rows, columns=names, dtype=object)


def _untimed(table: pd.DataFrame, timed: Collection[str]) -> pd.DataFrame:
    """Return a table without rows of timed metrics and without verdicts on times."""
    if "metric" in table:
        # their number stays, so that a table without them is another one
        table = table.mask(table["metric"].isin(_TIMED_METRICS), "time")
    if {"id", "verdict", "decided_by"} <= set(table):
        table.loc[table["id"].isin(timed), ["verdict", "decided_by"]] = "by times"
    return table


def compare_arrays(
    before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]
) -> tuple[str, str]:
    """Compare arrays by name, without times; two NaN are equal."""
    names = {*before, *after}
    names = {name for name in names if name.rpartition("/")[2] not in (*_TIMES, *_TIMED_METRICS)}
    others = [n for n in sorted(names) if not _is_same(before.get(n), after.get(n))]
    if not others:
        return EQUAL, "except for times, or versions of packages"
    return DIFFERS, f"in {len(others)} of {len(names)} arrays, first {others[0]}"


def _is_same(before: np.ndarray | None, after: np.ndarray | None) -> bool:
    if before is None or after is None or before.dtype != after.dtype:
        return False
    return np.array_equal(before, after, equal_nan=before.dtype.kind in "fc")


def summary(verification: Verification) -> str:
    """Return a few sentences on the repeated jobs, their share, and the results."""
    crate, findings = verification.crate, verification.findings
    outcomes = Counter(finding.outcome for finding in findings)
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    done, total = cost_of(*verification.redone), cost_of(*crate.jobs)
    share = f" ({done / total:.2%} of its {total:,.0f} CPU s)" if total else ""
    return (
        f"All {len(crate.sums):,} files of the crate match their checksums. "
        f"{len(verification.redone)} of the run's {len(crate.jobs):,} jobs were repeated; they "
        f"took {done:,.1f} CPU s in the run{share}. Results of these jobs: "
        f"{counts or 'none compared'}. Other results were not checked."
    )


def write_certificate(verification: Verification, folder: str | os.PathLike[str]) -> None:
    """Write the certificate, in YAML, into a folder, created if needed.

    It has the outcome of each result, the archive, the draw and the machine.
    """
    crate, draw = verification.crate, verification.draw
    document = {
        "title": f"privclust {__version__}, {crate.effort} effort",
        "summary": summary(verification),
        "check_time": datetime.now(UTC).isoformat(timespec="seconds"),
        "agrees": verification.agrees,
        "results": {
            f.name: f"{f.outcome}: {excerpt(f.detail)}".removesuffix(": ")
            for f in verification.findings
        },
        "archive": {"sha256": file_sha256(crate.path), "substitutes": list(crate.substitutes)},
        "draw": {
            "seed": draw.seed,
            "minutes": draw.minutes,
            "drawn": [f"{job.rule}: {job.outputs[0]}" for job in draw.drawn],
            "needed_before": [f"{job.rule}: {job.outputs[0]}" for job in draw.needed],
            "too_long": f"{len(draw.too_long)} jobs of {cost_of(*draw.too_long):,.0f} CPU s",
            "incomparable": f"{len(draw.incomparable)} jobs",
        },
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processor": f"{get_host_cpu_name()}, {os.cpu_count()} cores",
            "python": platform.python_version(),
            "packages": package_versions(),
        },
    }
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    write_text(Path(folder, CERTIFICATE), f"---\n{text}")
