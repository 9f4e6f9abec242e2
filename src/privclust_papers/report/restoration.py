"""Results are taken from a crate, with Snakemake's records, where code and inputs are the same."""

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


def restore(path: str | os.PathLike[str], effort: str, seed: int) -> dict[str, int]:
    """Take from a crate all results that fit the project in the working folder, and are not there.

    A result fits if all that its job read, code, settings and other results, is the same here, by
    SHA-256, or is taken as well. Snakemake itself compares parameters, from its records. Nothing
    is taken of a job that has left some result here already. Returned is how many jobs have
    results that were taken, there before, not in the crate, or of other code or inputs. A crate
    that cannot be used, or is of another effort or seed, is a CrateError, and nothing is written.
    """
    crate = read_crate(path)
    theirs = {"effort": crate.effort, "seed": crate.settings.get("seed")}
    for name, here in (("effort", effort), ("seed", seed)):
        if here != theirs[name]:
            said = excerpt(theirs[name])
            raise crate.error(
                f"is of a run with {name} {said}, and this one has {name} {here}; restore it with "
                f"--config {name}={said}"
            )
    counts = dict.fromkeys((TAKEN, PRESENT, LEFT_OUT, CHANGED), 0)
    taken: set[str] = set()
    for job in sorted(crate.jobs, key=lambda job: job.end):  # inputs before what is made from them
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
    """Write the outputs of jobs that the crate has, with Snakemake's records and their dates."""
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
    """Give the outputs of a job the date that they had in the crate's run, where they are there."""
    for output in filter(Path.exists, (folder / name for name in job.outputs)):
        for path in (*output.rglob("*"), output):
            os.utime(path, (job.end, job.end))


def _fits(crate: Crate, job: Job, taken: Collection[str]) -> bool:
    """Whether all that a job read is the same here, or was taken from the crate."""
    checksums = job.record["input_checksums"]
    for name in job.record.get("input", job.inputs):
        expected = checksums.get(name, crate.digests.get(name)) or "none"
        is_same = file_sha256(name) == expected.removeprefix("sha256:")
        if not is_same and not (name in taken and Path(name).is_dir()):
            return False
    return True
