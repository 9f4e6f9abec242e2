"""Restoring of results, with Snakemake's records, from a crate with the same code and inputs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from privclust.core.files import atomic_path
from privclust.core.printable import excerpt
from privclust_papers.report.crate_file import Crate, CrateError, file_sha256, read_crate
from privclust_papers.report.run_records import RECORDS, Job, write_record

_INCOMPLETE = ".snakemake/incomplete"  # without this folder, Snakemake migrates the records
_TIMESTAMP = ".snakemake_timestamp"  # file with the date of an output folder
TAKEN, PRESENT = "restored", "already here"
LEFT_OUT, CHANGED = "not in the crate", "with other code or inputs here"


def restore(path: str | os.PathLike[str], effort: str, seed: int) -> dict[str, int]:
    """Restore the missing results of the project in the working folder from a crate.

    The results of a job are restored if all its inputs (code, settings and other results) have the
    same SHA-256 here or are restored as well. Snakemake itself compares parameters, from its
    records. A job with any output here is skipped. Returns the number of jobs that were restored,
    already here, not in the crate, or with other code or inputs here. An unusable crate, or one of
    another effort or seed, raises a CrateError, and nothing is written.
    """
    crate = read_crate(path)
    theirs = {"effort": crate.effort, "seed": crate.settings.get("seed")}
    for name, here in (("effort", effort), ("seed", seed)):
        if here != theirs[name]:
            said = excerpt(theirs[name])
            raise crate.error(
                f"is of a run with {name} {said}, but this run has {name} {here}; restore it with "
                f"--config {name}={said}"
            )
    counts = dict.fromkeys((TAKEN, PRESENT, LEFT_OUT, CHANGED), 0)
    taken: set[str] = set()
    for job in sorted(crate.jobs, key=lambda job: job.end):  # makers of inputs come first
        if any(Path(output).exists() for output in job.outputs):
            counts[PRESENT] += 1
        elif not job.record or not all(map(crate.members_of, job.outputs)):
            counts[LEFT_OUT] += 1
        elif not _fits(crate, job, taken):
            counts[CHANGED] += 1
        else:
            try:
                place(crate, [job], Path())
            except OSError as error:
                said = f"{error.filename}: cannot be written ({error.strerror})"
                raise CrateError(f"{said}; it comes from {path}") from None
            taken.update(job.outputs)
            counts[TAKEN] += 1
    return counts


def place(crate: Crate, jobs: Iterable[Job], folder: Path) -> None:
    """Write the outputs of jobs from the crate, with Snakemake's records and dates."""
    Path(folder, _INCOMPLETE).mkdir(parents=True, exist_ok=True)
    for job in jobs:
        for output in job.outputs:
            for name in crate.members_of(output):
                with atomic_path(Path(folder, name)) as temporary:
                    temporary.write_bytes(crate.read(name))
                if name != output:
                    Path(folder, output, _TIMESTAMP).touch()
                write_record(Path(folder, RECORDS), output, job.record)
        date_outputs(job, folder)


def date_outputs(job: Job, folder: Path) -> None:
    """Set the date of a job's existing outputs to the job's end in the crate's run."""
    for output in filter(Path.exists, (folder / name for name in job.outputs)):
        for path in (*output.rglob("*"), output):
            os.utime(path, (job.end, job.end))


def _fits(crate: Crate, job: Job, taken: Collection[str]) -> bool:
    """Return whether all inputs of a job are the same here, or were taken from the crate."""
    # Snakemake records checksums of small inputs only; the others are in the crate.
    checksums = job.record["input_checksums"]
    for name in job.record.get("input", job.inputs):
        expected = checksums.get(name, crate.digests.get(name)) or "none"
        is_same = file_sha256(name) == expected.removeprefix("sha256:")
        # A folder has no checksum; one that was taken from the crate is the same.
        if not is_same and not (name in taken and Path(name).is_dir()):
            return False
    return True
