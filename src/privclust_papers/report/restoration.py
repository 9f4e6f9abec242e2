"""Results taken from a crate in place of being made: those whose code and inputs are the same.

With a result goes Snakemake's record of the job that made it, and the date of then. So Snakemake
decides as ever what has to be done again: a job of other parameters, inputs or code is.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from privclust.core.files import atomic_path
from privclust.core.printable import excerpt
from privclust_papers.report.crate_file import Crate, file_sha256, read_crate
from privclust_papers.report.crate_members import CrateError
from privclust_papers.report.run_records import Job, write_record

RECORDS = ".snakemake/metadata"
_INCOMPLETE = ".snakemake/incomplete"  # without it, Snakemake takes the records for older ones
_TIMESTAMP = ".snakemake_timestamp"  # which has the date of a folder that a job made


@dataclass(frozen=True)
class Restored:
    """What became of the jobs of a crate."""

    path: Path
    taken: int
    present: int  # whose results were there before
    left_out: int  # of which the crate has not all outputs
    changed: int  # whose code or inputs are others here

    def in_words(self) -> str:
        """Say it in a sentence."""
        return (
            f"{self.path}: results of {self.taken} jobs were taken, of {self.present} they were "
            f"there, of {self.left_out} they are not in the crate, of {self.changed} code or "
            "inputs are others here"
        )


def restore(
    path: str | os.PathLike[str],
    effort: str,
    seed: int,
    folder: str | os.PathLike[str] = ".",
) -> Restored:
    """Take from a crate all results that fit the project in a folder, and none that is there.

    A result fits if all that its job read, code, settings and other results, is the same here, by
    SHA-256, or is taken as well. Parameters are compared by Snakemake itself, from its records. Of
    a job that has left some result here already, none is taken.

    Raises
    ------
    CrateError
        If it is no whole crate of a run, or of another effort or seed: then nothing was written; or
        if a result cannot be written.
    """
    crate = read_crate(path)
    if crate.effort != effort:
        raise CrateError(
            f"{path}: is of a run at {crate.effort} effort, and this one is at {effort} effort; "
            f"restore it with --config effort={crate.effort}"
        )
    if crate.settings.get("seed") != seed:
        theirs = excerpt(crate.settings.get("seed"))
        raise CrateError(
            f"{path}: is of a run with seed {theirs}, and this one has seed {seed}; restore it "
            f"with --config seed={theirs}"
        )
    counts = {"taken": 0, "present": 0, "left_out": 0, "changed": 0}
    taken: set[str] = set()
    for job in sorted(crate.jobs, key=lambda job: job.end):  # inputs before what is made from them
        if any(Path(folder, output).exists() for output in job.outputs):
            counts["present"] += 1
        elif not job.record or not crate.holds(job):
            counts["left_out"] += 1
        elif not _fits(crate, job, taken, Path(folder)):
            counts["changed"] += 1
        else:
            try:
                place(crate, [job], folder)
            except OSError as error:
                raise CrateError(
                    f"{error.filename}: cannot be written ({error.strerror}); it comes from {path}"
                ) from None
            taken.update(job.outputs)
            counts["taken"] += 1
    return Restored(Path(path), **counts)


def place(crate: Crate, jobs: Iterable[Job], folder: str | os.PathLike[str]) -> None:
    """Write the outputs of some jobs, with Snakemake's records, of the time when they were made.

    What the crate does not hold is left out.
    """
    Path(folder, _INCOMPLETE).mkdir(parents=True, exist_ok=True)
    for job in jobs:
        for output in job.outputs:
            members = crate.members_of(output)
            if not members:
                continue
            for name in members:
                with atomic_path(Path(folder, name)) as temporary:
                    temporary.write_bytes(crate.read(name))
            if members != [output]:
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
