"""A run packed into one file that others can check: a Workflow Run RO-Crate.

The crate is a zip file with a description in JSON-LD, ``ro-crate-metadata.json``, after the profile
Provenance Run Crate 0.5 (https://w3id.org/ro/wfrun/provenance/0.5): which jobs ran when, from what
they made what, with which parameters, software and data. It holds the workflow, its configuration
and all tables and figures. Data sets and HDF5 artefacts are named with their checksums and stay
out: data sets have licences of their own, artefacts may hold rows of them, and the workflow makes
an artefact again byte for byte. Of a user's own data, and of artefacts made from them, there are no
checksums either: whoever guesses the data could test the guess by them.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from privclust.core.config import ConfigError
from privclust.core.files import atomic_path
from privclust.pipeline.plan import Plan
from privclust.pipeline.project_files import CONFIG, project_files
from privclust.report.run_records import Job, read_content

_METADATA = "ro-crate-metadata.json"
_CHECKSUMS = "SHA256SUMS"
_VERSIONS = "versions.txt"


def write_archive(
    path: str | os.PathLike[str], plan: Plan, config: Mapping[str, Any], jobs: Iterable[Job]
) -> None:
    """Pack a finished run of the project in the working folder.

    The same results and the same records give the same bytes on one machine: entries are sorted
    and have one fixed time, and the description has no clock but the jobs' own. On other machines
    ``versions.txt`` and the compressed bytes may differ.

    `config` is the content of config/config.yaml with what the command line changed. It is what
    stands in the crate, without the mirror, which is a path of the machine. `jobs` is from
    `read_jobs`. The zip file is written at once or not at all.

    Raises
    ------
    FileError
        If an output of a job is missing or is not what the job wrote.
    ConfigError
        If something that belongs in the crate lies outside the project's folder, or names it.
    """
    from privclust.report.crate import describe  # heavy, and not needed to plan a run

    jobs = list(jobs)
    members = _members(config, jobs)
    project = tomllib.loads(members["pyproject.toml"].decode())["project"]
    members[_METADATA] = describe(plan, config, jobs, project, members).encode()
    _refuse_machine_paths(members)
    sums = (f"{hashlib.sha256(members[name]).hexdigest()}  {name}\n" for name in sorted(members))
    members[_CHECKSUMS] = "".join(sums).encode()
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w") as file:
        for name in sorted(members):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            file.writestr(entry, members[name], zipfile.ZIP_DEFLATED)


def _members(config: Mapping[str, Any], jobs: Iterable[Job]) -> dict[str, bytes]:
    """Return what the crate holds besides its description: content by path."""
    import yaml

    # what an installed package holds is said by its version
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
    settings = yaml.safe_dump(dict(config) | {"mirror": None}, sort_keys=False)
    members[CONFIG] = f"# As the run was done, without its mirror.\n{settings}".encode()
    members[_VERSIONS] = _installed().encode()
    return members


def _installed() -> str:
    """Return the versions of Python and of all packages of this environment, one a line."""
    pairs = {(d.metadata["Name"].lower(), d.version) for d in metadata.distributions()}
    head = f"# Python {platform.python_version()}, {platform.system()} {platform.machine()}\n"
    return head + "".join(f"{name}=={version}\n" for name, version in sorted(pairs))


def _refuse_machine_paths(members: Mapping[str, bytes]) -> None:
    """Refuse to publish where on this machine the project lies."""
    folder = os.fsencode(Path.cwd())
    pattern = re.compile(rb"(?<![\w./:-])" + re.escape(folder) + rb"(?![\w.-])")
    for name, content in sorted(members.items()):
        if len(folder) > 1 and pattern.search(content):
            raise ConfigError(
                f"{name}: holds {os.fsdecode(folder)}, a path of this machine, which does not "
                "belong in an archive; make it relative"
            )
