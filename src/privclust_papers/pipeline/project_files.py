"""The files of the workflow, and their commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from privclust_papers.settings.config import ConfigError, load_yaml

WORKFLOW = "workflow/Snakefile"
CONFIG = "config/config.yaml"
CITATION = "CITATION.cff"
PACKAGES = ("privclust", "privclust_audit", "privclust_papers")
PINS = ("pyproject.toml", "requirements.lock")
_TOP_FILES = (WORKFLOW, "LICENSE", "README.md", *PINS)
# Files of the project: other files in its folders are a user's.
_SOURCES = (
    CITATION,
    "config/README.md",
    "docs/*.md",
    "docs/results/*.md",
    "hatch_build.py",
    *(f"src/{package}/**/*.py" for package in PACKAGES),
    "src/privclust/**/*.pyi",
    *(f"src/{package}/py.typed" for package in PACKAGES),
    *(f"src/privclust_papers/report/page/*.{suffix}" for suffix in ("css", "j2", "js")),
    "src/privclust/report/*.j2",
    "workflow/envs/*.yaml",
    "workflow/profiles/*/*.sh",
    "workflow/profiles/*/profile.yaml",
    "workflow/report/*.rst",
    "workflow/rules/*.smk",
    "workflow/schemas/*.schema.yaml",
    "workflow/scripts/*.py",
    "src/privclust_papers/command/privclust-papers",
)
SETTINGS = ("datasets", "features", "my_methods")  # settings with paths of config files
_OF_A_PAPER = ("paper.yaml", "claims.yaml", "printed.csv")


def project_files(
    folder: str | os.PathLike[str] = ".", config: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the files of the workflow: rules, scripts, configuration, packages, pins.

    Files are declared, not collected, so that other files, such as credentials, are not included.
    Config files are those named by `config` (None for the content of config/config.yaml). Paths
    are sorted and relative to `folder`. Files of the top folder are included even if missing, since
    an archive would be incomplete without them.
    """
    top = Path(folder)
    sources = (path.relative_to(top) for pattern in _SOURCES for path in top.glob(pattern))
    names = {*(path.as_posix() for path in sources), CONFIG, *config_files(top, config)}
    present = {name for name in names if (top / name).is_file() and not _is_hidden(name)}
    return sorted({*_TOP_FILES, *present})


def config_files(
    folder: str | os.PathLike[str] = ".", config: Mapping[str, Any] | None = None
) -> Iterable[str]:
    """Return the files named in settings, even if missing.

    Arguments are those of `project_files`.
    """
    top = Path(folder)
    settings = config if config is not None else _content(top / CONFIG)
    for paper in settings.get("papers") or ():
        yield from (os.path.normpath(Path(paper, name)) for name in _OF_A_PAPER)
    yield from (os.path.normpath(settings[key]) for key in SETTINGS if settings.get(key))


def _content(path: Path) -> Mapping[str, Any]:
    """Return the content of a config file; empty if missing or invalid, which planning reports."""
    try:
        content = load_yaml(path)
    except ConfigError:
        return {}
    return content if isinstance(content, Mapping) else {}


def _is_hidden(name: str) -> bool:
    """Return whether a file or a folder in its path is hidden, or a bytecode cache."""
    parts = (part for part in Path(name).parts if part != "..")
    return any(part.startswith(".") or part == "__pycache__" for part in parts)


def commit_of(folder: str | os.PathLike[str] = ".", config: Mapping[str, Any] | None = None) -> str:
    """Return the git commit of the `project_files`, with a note if some have changed since.

    The text is empty if the project's folder is not a git checkout, or git is missing.
    """
    try:
        top = _git(folder, "rev-parse", "--show-toplevel").strip()
        if Path(top).resolve() != Path(folder).resolve():
            return ""
        commit = _git(folder, "rev-parse", "HEAD").strip()
        files = project_files(folder, config)
        changed = _git(folder, "status", "--porcelain", "--untracked-files=all", "--", *files)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}, with files changed since" if changed.strip() else commit


def _git(folder: str | os.PathLike[str], *arguments: str) -> str:
    command = ["git", "-C", os.fspath(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
