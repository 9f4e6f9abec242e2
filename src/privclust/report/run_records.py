"""What a run left: which jobs made which files, as Snakemake's records tell, and the files."""

from __future__ import annotations

import ast
import base64
import json
import os
from dataclasses import dataclass
from pathlib import Path

from privclust.core.hdf5 import FileError


@dataclass(frozen=True)
class Job:
    """A job that Snakemake ran, as its records tell."""

    rule: str  # whose script is ``workflow/scripts/<rule>.py``
    inputs: tuple[str, ...]  # files and folders, as the rule names them, sorted
    outputs: tuple[str, ...]
    start: float  # in seconds since 1970 (UTC)
    end: float  # when its last output was there
    spec: str  # the parameters that decided its outputs, as JSON; empty if there are none


def read_jobs(records: str | os.PathLike[str], result: str) -> list[Job]:
    """Read which jobs made a result, and what they needed, back to the data, by rule and outputs.

    `records` is the folder with Snakemake's record of each output, ``.snakemake/metadata``,
    `result` the file that all of the run led to, such as ``results/quick/index.html``. It is a
    FileError if there is no record of how that was made, or a record cannot be read.
    """
    grouped: dict[tuple[str, ...], list[Job]] = {}
    for path in sorted(Path(records).rglob("*")):
        if path.is_file():
            log, job = _read_record(path, Path(records))
            # a job has one log file, and no two jobs share one
            grouped.setdefault((job.rule, *log), []).append(job)
    jobs = [_join(parts) for parts in grouped.values()]
    makers = {output: job for job in jobs for output in job.outputs}
    if result not in makers:
        raise FileError(
            f"{result}: Snakemake has no record in {records} of the job that made it; an archive "
            "needs them, so make it again, without --drop-metadata"
        )
    needed, pending = set(), [makers[result]]
    while pending:
        job = pending.pop()
        if job not in needed:
            needed.add(job)
            pending.extend(makers[name] for name in job.inputs if name in makers)
    return sorted(needed, key=lambda job: (job.rule, job.outputs))


def read_content(name: str) -> bytes:
    """Read a file that an archive needs; it is a FileError if that cannot be done."""
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise FileError(
            f"{name}: the archive needs it, but it cannot be read ({error.strerror}); run the "
            "workflow again"
        ) from None


def _read_record(path: Path, folder: Path) -> tuple[tuple[str, ...], Job]:
    """Read the record of one output: the log files of its job, and what it says of the job."""
    # the name is the output's in Base64, cut into folders where it is too long
    name = "".join(part.removeprefix("@") for part in path.relative_to(folder).parts)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        # parameters stand there as Python code, without their names
        texts = [text for text in record["params"] if text.startswith("'{")]
        job = Job(
            rule=record["rule"],
            inputs=tuple(record["input"]),
            outputs=(base64.urlsafe_b64decode(name).decode(),),
            start=float(record["starttime"]),
            end=float(record["endtime"]),
            spec=ast.literal_eval(texts[0]) if texts else "",
        )
        return tuple(record["log"]), job
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(
            f"{path}: not a record of a job as Snakemake 9 writes it "
            f"({type(error).__name__}: {error}); make the results again"
        ) from None


def _join(parts: list[Job]) -> Job:
    """Join what is said of one job with each of its outputs."""
    return Job(
        rule=parts[0].rule,
        inputs=tuple(sorted({name for part in parts for name in part.inputs})),
        outputs=tuple(sorted(name for part in parts for name in part.outputs)),
        start=min(part.start for part in parts),
        end=max(part.end for part in parts),
        spec=parts[0].spec,
    )
