"""Jobs of a run and their files, from Snakemake's records."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privclust.core.hdf5 import FileError

# Entries by which Snakemake decides whether to rerun a job; the others depend on the machine.
_KEPT = (
    *("rule", "input", "log", "params", "code", "shellcmd", "record_format_version"),
    *("software_stack_hash", "starttime", "endtime", "input_checksums"),
)
_LONGEST_NAME = 254
RECORDS = ".snakemake/metadata"  # the folder with Snakemake's records
_COST = "cost "  # start of the log line with a job's own counts; see `pipeline.job`


@dataclass(frozen=True)
class Job:
    """A job that Snakemake ran, from its records."""

    rule: str  # its script is ``workflow/scripts/<rule>.py``
    inputs: tuple[str, ...]  # files and folders, as the rule names them, sorted
    outputs: tuple[str, ...]
    start: float  # in seconds since 1970 (UTC)
    end: float  # time of its last output
    cpu_s: float | None = None  # CPU seconds; None if its log has no record
    # entries of Snakemake's record by which it decides whether to rerun the job
    record: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    cost: Mapping[str, float] = field(default_factory=dict, compare=False)  # counts in its log


def read_jobs(records: str | os.PathLike[str], result: str) -> list[Job]:
    """Read all jobs behind a result, back to the data, sorted by rule and outputs.

    `records` is the folder with Snakemake's record of each output, `RECORDS`,
    `result` the final file of the run, such as ``results/quick/index.html``. Raises a FileError if
    the result has no record, or a record cannot be read.
    """
    # a job has one log file, and no two jobs share one
    grouped: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}
    for path in sorted(Path(records).rglob("*")):
        if path.is_file():
            output, record = _read_record(path, Path(records))
            grouped.setdefault((record["rule"], *record["log"]), {})[output] = record
    jobs = [_job(of_outputs) for of_outputs in grouped.values()]
    makers = {output: job for job in jobs for output in job.outputs}
    if result not in makers:
        raise FileError(
            f"{result}: Snakemake has no record in {records} of the job that made it; an archive "
            "needs them, so make it again, without --drop-metadata"
        )
    return sorted(behind([makers[result]], makers), key=lambda job: (job.rule, job.outputs))


def behind(jobs: Iterable[Job], makers: Mapping[str, Job]) -> set[Job]:
    """Return jobs and all jobs that they depend on; `makers` has the job of each output."""
    needed, pending = set(), [*jobs]
    while pending:
        job = pending.pop()
        if job not in needed:
            needed.add(job)
            pending.extend(makers[name] for name in job.inputs if name in makers)
    return needed


def made_from(jobs: Iterable[Job], sources: Iterable[str]) -> set[str]:
    """Return the sources and all files that jobs made from them.

    Examples
    --------
    >>> fit = Job("fit", ("rows",), ("fit",), 0.0, 1.0)
    >>> jobs = [fit, Job("sum", ("fit",), ("sum",), 1.0, 2.0)]
    >>> sorted(made_from(jobs, ["rows"]))
    ['fit', 'rows', 'sum']
    """
    jobs, names, size = list(jobs), set(sources), -1
    # Until no job adds a name: jobs are in no order.
    while len(names) > size:
        size = len(names)
        names.update(out for job in jobs if names.intersection(job.inputs) for out in job.outputs)
    return names


def is_code(name: str) -> bool:
    """Return whether an input is code, listed so that an edit reruns the job.

    Examples
    --------
    >>> is_code("workflow/scripts/fit.py"), is_code("data/prepared/s1.h5")
    (True, False)
    """
    return name.endswith(".py") or name.startswith("src/")


def write_record(records: str | os.PathLike[str], output: str, record: Mapping[str, Any]) -> None:
    """Write Snakemake's record of an output; `read_jobs` reads it."""
    text = base64.urlsafe_b64encode(output.encode()).decode()
    # Snakemake's own scheme: names beyond the limit of file systems become nested folders.
    parts = [text[i : i + _LONGEST_NAME] for i in range(0, len(text), _LONGEST_NAME)]
    path = Path(records, *(f"@{part}" for part in parts[:-1]), parts[-1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**record, "incomplete": False}), encoding="utf-8")


def read_content(name: str) -> bytes:
    """Read a file that an archive needs; a FileError if it cannot be read."""
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise FileError(
            f"{name}: the archive needs it, but it cannot be read ({error.strerror}); run the "
            "workflow again"
        ) from None


def kind_of(name: str) -> str:
    """Return the kind of an output; empty for outputs that are not compared, such as times."""
    path = Path(name)
    if path.suffix == ".h5":
        if path.parts[0] == "data":
            return "features" if path.parts[1] == "features" else "dataset"
        return next((kind for kind in ("fit", "shared") if kind in path.parts[:-1]), "metrics")
    return {".csv": "table", ".svg": "figure", ".png": "figure"}.get(path.suffix, "")


def _read_record(path: Path, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the name of an output, and the part of its record that is kept."""
    # the path is the output's name in Base64, split into folders if too long
    name = "".join(part.removeprefix("@") for part in path.relative_to(folder).parts)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        record |= {key: [*record[key]] for key in ("input", "log", "params")}
        record |= {key: float(record[key]) for key in ("starttime", "endtime")}
        output = base64.urlsafe_b64decode(name).decode()
        return output, {"rule": record["rule"]} | {k: record[k] for k in _KEPT if k in record}
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{path}: not a record of a job as Snakemake 9 writes it "
            f"({type(error).__name__}: {error}); make the results again"
        ) from None


def _job(records: Mapping[str, Mapping[str, Any]]) -> Job:
    """Return the job of some outputs with their records."""
    first = next(iter(records.values()))
    log = Path(first["log"][0]) if first["log"] else None
    cost = read_cost(log) if log and log.is_file() else {}
    start = min(record["starttime"] for record in records.values())
    return Job(
        rule=first["rule"],
        inputs=tuple(sorted({name for record in records.values() for name in record["input"]})),
        outputs=tuple(sorted(records)),
        start=start,
        # the end is a file's date, with a coarse clock, so it may precede the start
        end=max(start, *(record["endtime"] for record in records.values())),
        cpu_s=cost.get("cpu_s"),
        cost=cost,
        record=first,
    )


def read_cost(log: Path) -> dict[str, float]:
    """Return the last record of a job's log; empty if the job was killed."""
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = [line for line in file if line.startswith(_COST)]
    return json.loads(lines[-1].removeprefix(_COST)) if lines else {}
