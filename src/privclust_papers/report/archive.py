"""Packing of a run into one file that others can check: a Process Run Crate.

The crate is a zip file with a description in JSON-LD after the profile Process Run Crate 0.5
(https://w3id.org/ro/wfrun/process/0.5). docs/archive.md lists its contents. ``jobs.json`` has the
inputs, outputs and cost of each job, with Snakemake's own records.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import tomllib
import zipfile
from collections.abc import Collection, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import privclust
from privclust.core.files import atomic_path
from privclust_papers.datasets.fetch import RECEIPT, read_receipt
from privclust_papers.pipeline import artefacts, layout
from privclust_papers.pipeline.plan import Plan
from privclust_papers.pipeline.project_files import CONFIG, project_files
from privclust_papers.report.crate import describe
from privclust_papers.report.run_records import (
    Job,
    is_code,
    kind_of,
    made_from,
    read_content,
)
from privclust_papers.settings.config import ConfigError

METADATA = "ro-crate-metadata.json"
CHECKSUMS = "SHA256SUMS"
JOBS = "jobs.json"
VERSIONS = "versions.txt"


def write_archive(
    path: str | os.PathLike[str], plan: Plan, config: Mapping[str, Any], jobs: Iterable[Job]
) -> None:
    """Write the archive of a finished run of the project in the working folder, atomically.

    The same results and the same records give the same bytes on one machine: entries are sorted and
    have one fixed time, and the only times in the description are those of the jobs. On other
    machines ``versions.txt`` and the compressed bytes may differ.

    `config` is the content of config/config.yaml with the changes from the command line. The crate
    leaves out the mirror, which is a path of the machine. With ``artefacts`` true, it includes the
    HDF5 artefacts that were made without third-party data. `jobs` is from `read_jobs`. Raises a
    FileError if an output of a job is missing or damaged, and a ConfigError if a file of the crate
    lies outside the project's folder or contains its path.
    """
    jobs = list(jobs)
    members = _members(config, jobs)
    receipts = {name: read_receipt(layout.RAW.format(dataset=name)) for name in plan.datasets}
    substitutes = [name for name, receipt in receipts.items() if receipt.is_substitute]
    if config.get("artefacts"):
        folders = {layout.RAW.format(dataset=name): receipts[name] for name in receipts}
        of_others = {folder for folder, receipt in folders.items() if receipt.file is not None}
        members |= _artefacts(jobs, made_from(jobs, of_others), folders.keys() - of_others)
    digests = _digests(jobs, members)
    members[JOBS] = _jobs_text(substitutes, digests, jobs).encode()
    project = tomllib.loads(members["pyproject.toml"].decode())["project"]
    project["version"] = privclust.__version__
    members[METADATA] = describe(plan, jobs, project, members, digests, receipts).encode()
    _refuse_machine_paths(members)
    sums = (f"{hashlib.sha256(members[name]).hexdigest()}  {name}\n" for name in sorted(members))
    members[CHECKSUMS] = "".join(sums).encode()
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as file:
        for name in sorted(members):
            file.writestr(zip_entry(name), members[name])


def zip_entry(name: str) -> zipfile.ZipInfo:
    """Return the zip entry of a member: a plain file with a fixed time."""
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    # System 3 is Unix, where the upper 16 bits have the mode: a plain file, rw-r--r--.
    entry.create_system, entry.external_attr = 3, 0o100644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _members(config: Mapping[str, Any], jobs: Iterable[Job]) -> dict[str, bytes]:
    """Return the content of each file of the crate by path, without its description."""
    # installed packages are given by their versions
    read = {n for job in jobs for n in job.inputs if "site-packages" not in Path(n).parts}
    files = project_files(config=config)
    outside = sorted(n for n in {*read, *files} if Path(n).is_absolute() or n.startswith(".."))
    if outside:
        raise ConfigError(
            f"{outside[0]}: the run read this file, which lies outside the project's folder; copy "
            "it into the folder, so that an archive can name it"
        )
    code = {name for name in read if name.endswith(".py")}
    outputs = {name for job in jobs for name in job.outputs}
    results = {n for n in outputs if n.startswith("results/") and not n.endswith(".h5")}
    members = {name: read_content(name) for name in {*files, *code, *results}}
    # JSON is YAML as well, but has no aliases, by which a short text could stand for a long one
    members[CONFIG] = json.dumps(dict(config) | {"mirror": None}, indent=1).encode()
    members[VERSIONS] = _installed().encode()
    return members


def _artefacts(
    jobs: Iterable[Job], left_out: Collection[str], folders: Iterable[str]
) -> dict[str, bytes]:
    """Return the HDF5 artefacts that are not left out, and the receipts of generated data sets."""
    outputs = {name for job in jobs for name in job.outputs} - set(left_out)
    names = [name for name in outputs if name.endswith(".h5")]
    names += [f"{folder}/{RECEIPT}" for folder in folders]
    return {name: read_content(name) for name in names}


def _digests(jobs: Iterable[Job], members: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of outputs, after checking all artefacts against their own digests."""
    outputs = sorted(name for job in jobs for name in job.outputs)
    for name in outputs:
        if name.endswith(".h5"):
            artefacts.read(name, kind_of(name))
    outside = [name for name in outputs if name not in members and not Path(name).is_dir()]
    return {name: hashlib.sha256(read_content(name)).hexdigest() for name in outside}


def _jobs_text(substitutes: list[str], digests: Mapping[str, str], jobs: Iterable[Job]) -> str:
    """Return the jobs as JSON, one line per job.

    Snakemake's records are left out for jobs that use a path of the machine.
    """
    lines = []
    for job in jobs:
        is_far = any(Path(name).is_absolute() for name in job.inputs)
        entry = {
            "rule": job.rule,
            "inputs": [name for name in job.inputs if not is_code(name)],
            "outputs": job.outputs,
            "start": job.start,
            "end": job.end,
            "cpu_s": job.cpu_s,
            "record": {} if is_far else job.record,
        }
        lines.append(json.dumps(entry, sort_keys=True))
    head = json.dumps({"substitutes": substitutes, "digests": digests})
    # The closing brace of `head` moves behind the list of jobs, which has one line per job.
    return head[:-1] + ', "jobs": [\n' + ",\n".join(lines) + "\n]}\n"


@functools.cache
def _installed() -> str:
    """Return the versions of Python and of all installed packages, one per line."""
    abouts = [distribution.metadata for distribution in metadata.distributions()]
    pairs = {(about["Name"].lower(), about["Version"]) for about in abouts}
    head = f"# Python {platform.python_version()}, {platform.system()} {platform.machine()}\n"
    return head + "".join(f"{name}=={version}\n" for name, version in sorted(pairs))


def _refuse_machine_paths(members: Mapping[str, bytes]) -> None:
    """Raise a ConfigError if a member contains the path of the project on this machine."""
    folder = os.fsencode(Path.cwd())
    # The folder as a whole path: not as a part of an address or of a longer name.
    pattern = re.compile(rb"(?<![\w./:-])" + re.escape(folder) + rb"(?![\w.-])")
    for name, content in sorted(members.items()):
        # A project in the root folder has the path "/", which every file contains.
        if len(folder) > 1 and pattern.search(content):
            raise ConfigError(
                f"{name}: holds {os.fsdecode(folder)}, a path of this machine, which does not "
                "belong in an archive; make it relative"
            )
