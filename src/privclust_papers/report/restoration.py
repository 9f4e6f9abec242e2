"""Results taken from a crate in place of being made: those whose code and inputs are the same.

With a result goes Snakemake's record of the job that made it, and the date of then. So Snakemake
decides as ever what has to be done again: a job of other parameters, inputs or code is.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from privclust.core.files import atomic_path
from privclust.core.printable import excerpt
from privclust_papers.report.crate_file import Crate, CrateError, file_sha256, read_crate
from privclust_papers.report.run_records import Job, write_record

RECORDS = ".snakemake/metadata"
_INCOMPLETE = ".snakemake/incomplete"  # without it, Snakemake takes the records for older ones
_TIMESTAMP = ".snakemake_timestamp"  # which has the date of a folder that a job made
TAKEN, PRESENT = "taken", "there before"
LEFT_OUT, CHANGED = "not in the crate", "of other code or inputs here"


def restore(
    path: str | os.PathLike[str],
    effort: str,
    seed: int,
    folder: str | os.PathLike[str] = ".",
) -> dict[str, int]:
    """Take from a crate all results that fit the project in a folder, and none that is there.

    A result fits if all that its job read, code, settings and other results, is the same here, by
    SHA-256, or is taken as well. Parameters are compared by Snakemake itself, from its records. Of
    a job that has left some result here already, none is taken. Returned is how many jobs have
    results that were taken, there before, not in the crate, or of other code or inputs.

    Raises
    ------
    CrateError
        If it is no whole crate of a run, or of another effort or seed: then nothing was written; or
        if a result cannot be written.
    """
    crate = read_crate(path)
    for name, here, theirs in (
        ("effort", effort, crate.effort),
        ("seed", seed, crate.settings.get("seed")),
    ):
        if here != theirs:
            raise CrateError(
                f"{path}: is of a run with {name} {excerpt(theirs)}, and this one has {name} "
                f"{here}; restore it with --config {name}={excerpt(theirs)}"
            )
    counts = dict.fromkeys((TAKEN, PRESENT, LEFT_OUT, CHANGED), 0)
    taken: set[str] = set()
    for job in sorted(crate.jobs, key=lambda job: job.end):  # inputs before what is made from them
        if any(Path(folder, output).exists() for output in job.outputs):
            counts[PRESENT] += 1
        elif not job.record or not all(map(crate.members_of, job.outputs)):
            counts[LEFT_OUT] += 1
        elif not _fits(crate, job, taken, Path(folder)):
            counts[CHANGED] += 1
        else:
            try:
                place(crate, [job], folder)
            except OSError as error:
                raise CrateError(
                    f"{error.filename}: cannot be written ({error.strerror}); it comes from {path}"
                ) from None
            taken.update(job.outputs)
            counts[TAKEN] += 1
    return counts


def place(crate: Crate, jobs: Iterable[Job], folder: str | os.PathLike[str]) -> None:
    """Write the outputs of some jobs, with Snakemake's records, of the time when they were made.

    What the crate does not hold is left out.
    """
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


def date_outputs(job: Job, folder: str | os.PathLike[str]) -> None:
    """Give the outputs of a job the date that they had in the crate's run, where they are there."""
    for output in filter(Path.exists, (Path(folder, name) for name in job.outputs)):
        for path in (*output.rglob("*"), output):
            os.utime(path, (job.end, job.end))


def _fits(crate: Crate, job: Job, taken: Collection[str], folder: Path) -> bool:
    """Whether all that a job read is the same here, or was taken from the crate."""
    checksums = job.record["input_checksums"]
    for name in job.record.get("input", job.inputs):
        if name in taken and Path(folder, name).is_dir():
            continue
        expected = checksums.get(name, crate.digests.get(name))
        if not expected or file_sha256(Path(folder, name)) != expected.removeprefix("sha256:"):
            return False
    return True
