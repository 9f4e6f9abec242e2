"""The files that make up the workflow, and a checksum of them all."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

WORKFLOW = "workflow/Snakefile"
_PINS = ("environment.yml", "pyproject.toml", "requirements.lock")
_TOP_FILES = (WORKFLOW, "LICENSE", "README.md", *_PINS)
_FOLDERS = ("config", "src/privclust", "workflow")


def project_files(folder: str | os.PathLike[str] = ".") -> list[str]:
    """Return the files that make up the workflow: rules, scripts, configuration, package, pins.

    Paths are sorted and relative to `folder`. Those of the top folder are named whether they are
    there or not, as an archive without one of them would not do.

    Examples
    --------
    >>> project_files("there/is/no/project")[:2]
    ['LICENSE', 'README.md']
    """
    top = Path(folder)
    paths = (path.relative_to(top) for part in _FOLDERS for path in (top / part).rglob("*.*"))
    names = (
        path.as_posix()
        for path in paths
        if (top / path).is_file() and not re.search(r"/(__pycache__/|[.])", f"/{path.as_posix()}")
    )
    return sorted({*_TOP_FILES, *names})


def project_digest(folder: str | os.PathLike[str] = ".") -> str:
    """Return the SHA-256 of all `project_files` that are there; an archive changes with it."""
    sha = hashlib.sha256()
    for name in project_files(folder):
        path = Path(folder, name)
        if path.is_file():
            sha.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return sha.hexdigest()
