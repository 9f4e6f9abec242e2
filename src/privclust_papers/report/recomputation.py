"""Recomputation of drawn jobs by the project's own workflow in a temporary folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from privclust.core.printable import excerpt
from privclust_papers.datasets.fetch import resolve_mirror
from privclust_papers.pipeline.plan import DEFAULT_MIRROR
from privclust_papers.pipeline.project_files import CITATION, CONFIG, WORKFLOW, config_files
from privclust_papers.report.crate_file import Crate, CrateError, file_sha256, safe_name
from privclust_papers.report.restoration import date_outputs, place
from privclust_papers.report.verification import Draw, Verification, compare_outputs
from privclust_papers.settings.config import ConfigError, load_yaml, validate


def check_project(crate: Crate) -> dict[str, Any]:
    """Return the settings of a crate's run, if the project here has the same code.

    Nothing of a crate is run. Raises a CrateError, with the difference, unless the crate's code and
    all files that its settings name are the same as in the project here.
    """
    if not Path(WORKFLOW).is_file():
        raise CrateError(
            f"{WORKFLOW}: not found; run this in the project's folder, at the crate's version"
        )
    if changed := crate.changed_code():
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise crate.error(
            f"is of another version of the code: {excerpt(changed[0])}{more} differ from the files "
            "here; check out that version, or archive a run of this one"
        )
    config = dict(crate.settings)
    schema = load_yaml("workflow/schemas/config.schema.yaml")  # same as the crate's, checked above
    try:
        validate(config, schema, CONFIG)
    except ConfigError as error:
        raise crate.error(f"{excerpt(error)}; its settings cannot be used") from None
    for name in config_files(config=config):
        here = file_sha256(name) if safe_name(name) else "outside"
        if here != crate.sums.get(name, ""):
            named = f"its {CONFIG} names {excerpt(repr(name))}"
            raise crate.error(f"{named}, which differs between the crate and this folder")
    return config


def recompute(crate: Crate, config: Mapping[str, Any], draw: Draw) -> Verification:
    """Repeat the drawn jobs in a copy of the project, and compare their outputs.

    The copy has the code of the project in the working folder, the crate's settings, and the
    results of the crate that the jobs read. Snakemake is asked for one job after another, and the
    outputs get the dates of the crate's run: asked for two jobs, or with other dates, it would
    repeat all jobs between them.
    """
    jobs, messages = draw.jobs, ""
    with tempfile.TemporaryDirectory(prefix="privclust-verify-", ignore_cleanup_errors=True) as top:
        scratch = Path(top)
        _copy_project(crate, config, Path(), scratch)
        read = {crate.makers[n] for job in jobs for n in job.inputs if n in crate.makers}
        place(crate, sorted(read - set(jobs), key=lambda job: job.end), scratch)
        outputs = sorted(output for job in jobs for output in job.outputs)
        if early := [output for output in outputs if (scratch / output).exists()]:
            # possible by another spelling on file systems that ignore case
            raise crate.error(f"would provide {early[0]}, which must be recomputed")
        for job in sorted(jobs, key=lambda job: job.end):
            read_here = (scratch / name for name in job.inputs if name in crate.makers)
            if all(map(Path.exists, read_here)):  # else a job before it failed
                messages += _run_snakemake(job.outputs, scratch)
                date_outputs(job, scratch)
        redone = [job for job in jobs if all((scratch / name).exists() for name in job.outputs)]
        return Verification(crate, draw, compare_outputs(crate, jobs, scratch), redone, messages)


def _run_snakemake(targets: Collection[str], scratch: Path) -> str:
    """Make files by the workflow in a folder; return Snakemake's messages if a job failed."""
    command = [
        *(sys.executable, "-m", "snakemake", "--cores", "1"),
        # without "params", which include the location of a data set
        *("--rerun-triggers", "code", "input", "mtime", "software-env"),
        *("--nocolor", "--quiet", "rules", "--show-failed-logs", "--", *targets),
    ]
    paths = (f"{scratch}/src", str(scratch), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(
        command, cwd=scratch, env=environment, errors="replace", start_new_session=True, **streams
    ) as process:
        try:
            said, _ = process.communicate()
        except BaseException:  # kill the group, as jobs survive if only Snakemake is killed
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return said if process.returncode else ""


def _copy_project(crate: Crate, config: Mapping[str, Any], folder: Path, scratch: Path) -> None:
    """Copy the declared files of the project, and the run's settings."""
    # caches of compiled kernels included, but not those that another process is writing
    half_written = shutil.ignore_patterns("*.pyc.*", "*.nb?.tmp.*")
    for part in ("src", "workflow"):
        shutil.copytree(folder / part, scratch / part, ignore=half_written)
    (scratch / "config").mkdir()
    for name in (CITATION, *crate.code, *config_files(folder, config)):
        source, target = folder / name, scratch / name
        if source.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    here = load_yaml(folder / CONFIG)
    mirror = resolve_mirror(here.get("mirror"), os.environ, folder / DEFAULT_MIRROR)
    place_of_data = str(folder.resolve() / mirror) if mirror else None
    # the crate's container is ignored, since nothing of a crate is run
    settings = dict(config) | {"mirror": place_of_data, "container": here.get("container")}
    if not crate.substitutes:  # then the recomputation must not use substitutes either
        settings["substitutes"] = False
    (scratch / CONFIG).write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
