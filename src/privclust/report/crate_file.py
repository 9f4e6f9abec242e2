"""A crate of a run, read by whoever did not make it: nothing in it is believed unchecked.

Names are those of files below a folder, each once; every member has the checksum that the crate
gives of it; and what the crate says of jobs has the types that it should have.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from privclust.core.config import ConfigError
from privclust.core.printable import excerpt
from privclust.pipeline.project_files import CITATION, CONFIG, PINS
from privclust.report.archive import CHECKSUMS, JOBS, METADATA, VERSIONS
from privclust.report.run_records import Job

# What may differ where the code is the same: pages, pins of packages, and what the run left.
_BESIDE = ("results/", "data/", "docs/")
_NO_CODE = frozenset(
    (CONFIG, JOBS, METADATA, VERSIONS, CITATION, "config/README.md", "LICENSE", "README.md", *PINS)
)
_FILES = (".csv", ".h5", ".html", ".js", ".png", ".sha256", ".svg", ".tsv")
_SAFE = re.compile(r"[^\x00-\x1f\\:]+")
_HEX = re.compile(r"[0-9a-f]{64}")
_LARGEST_TEXT = 2**28  # bytes of a description that are read at once
_CHUNK = 2**20
_SYMLINK, _FILE_TYPE = 0o120000, 0o170000


class CrateError(ConfigError):
    """A file is no crate of a run that can be used here; the message is one line."""


@dataclass(frozen=True)
class Crate:
    """A crate of a run whose members have the checksums that it gives of them.

    Attributes
    ----------
    path : Path
        The zip file.
    sums : dict of str to str
        SHA-256 of each member, by path.
    effort : str
        Of the run.
    substitutes : tuple of str
        Data sets that others stood in for.
    jobs : tuple of Job
        As `privclust.report.run_records.read_jobs` has them, without code among their inputs.
    digests : dict of str to str
        SHA-256 of each output of a job that the crate says it of, in the crate or not.
    title, author, created : str
        What it is, by whom, and when the run ended.
    """

    path: Path
    sums: Mapping[str, str]
    effort: str
    substitutes: tuple[str, ...]
    jobs: tuple[Job, ...]
    digests: Mapping[str, str]
    title: str = ""
    author: str = ""
    created: str = ""
    makers: Mapping[str, Job] = field(default_factory=dict, repr=False)

    @cached_property
    def _file(self) -> zipfile.ZipFile:
        """The file, opened once: the list of thousands of members takes time to read."""
        return zipfile.ZipFile(self.path)

    @cached_property
    def sha256(self) -> str:
        """The checksum of the zip file."""
        with open(self.path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def members_of(self, output: str) -> list[str]:
        """Return the members that are an output, a file or a folder; none if it is left out."""
        if output in self.sums:
            return [output]
        return sorted(name for name in self.sums if name.startswith(f"{output}/"))

    def holds(self, job: Job) -> bool:
        """Whether all outputs of a job are in the crate."""
        return all(self.members_of(output) for output in job.outputs)

    def read(self, name: str) -> bytes:
        """Return the content of a member, which must still be as it was when it was checked."""
        try:
            content = self._file.read(name)
        except (OSError, KeyError, *_BROKEN) as error:
            raise CrateError(
                f"{self.path}: {name} cannot be read ({excerpt(str(error))})"
            ) from None
        if hashlib.sha256(content).hexdigest() != self.sums[name]:
            raise CrateError(f"{self.path}: {name} was changed while it was read")
        return content

    @property
    def code(self) -> list[str]:
        """The members that are code or settings; not what the run was told (config/config.yaml)."""
        return [name for name in self.sums if name not in _NO_CODE and not name.startswith(_BESIDE)]

    def changed_code(self, folder: str | os.PathLike[str] = ".") -> list[str]:
        """Return the crate's files of code and settings that a project's folder has otherwise."""
        return [n for n in self.code if file_sha256(Path(folder, n)) != self.sums[n]]


_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file; empty where there is none."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def read_crate(path: str | os.PathLike[str]) -> Crate:
    """Read a crate of a run, and check all of it; nothing is written.

    Raises
    ------
    CrateError
        If it is no crate of a run, a member has an unsafe name, or content and checksums do not
        fit; the message names the members.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as file:
            _check_names(path, file.infolist())
            sums = _checksums(path, file)
            _check_contents(path, file, sums)
            texts = [_text(path, file, name) for name in (JOBS, METADATA)]
    except OSError as error:
        raise CrateError(f"{path}: cannot be read ({error.strerror or error})") from None
    except _BROKEN as error:
        if isinstance(error, CrateError):
            raise
        raise CrateError(f"{path}: not a whole .zip file ({excerpt(str(error))})") from None
    try:
        return _parsed(path, sums, *map(json.loads, texts))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, CrateError):
            raise
        reason = excerpt(f"{type(error).__name__}: {error}")
        raise CrateError(
            f"{path}: its {JOBS} is not as this version writes it ({reason})"
        ) from None


def safe_name(name: str) -> bool:
    """Whether a name is that of a file below a folder, on any system.

    Examples
    --------
    >>> safe_name("results/quick/index.html"), safe_name("../x"), safe_name("/x"), safe_name("a//b")
    (True, False, False, False)
    """
    parts = name.split("/")
    return bool(_SAFE.fullmatch(name)) and not {"", ".", ".."}.intersection(parts)


def _check_names(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse names that lead out of a folder, links, and names that come twice."""
    seen: set[str] = set()
    for entry in entries:
        # as it stands in the file: the library cuts a name at its first zero byte
        names = {entry.filename, entry.orig_filename}
        is_link = entry.external_attr >> 16 & _FILE_TYPE == _SYMLINK
        if is_link or len(names) > 1 or not safe_name(entry.filename):
            raise CrateError(
                f"{path}: holds {excerpt(repr(entry.orig_filename))}, which is no file below a "
                "folder; nothing was unpacked"
            )
        if entry.filename in seen:
            raise CrateError(f"{path}: holds {excerpt(repr(entry.filename))} twice")
        seen.add(entry.filename)


def _text(path: Path, file: zipfile.ZipFile, name: str) -> str:
    """Return a member that is text."""
    if name not in file.namelist():
        raise CrateError(
            f"{path}: has no {name}; it is no crate of a run, or of a version before this one's"
        )
    if file.getinfo(name).file_size > _LARGEST_TEXT:
        raise CrateError(f"{path}: {name} is larger than {_LARGEST_TEXT:,} bytes")
    return file.read(name).decode()


def _checksums(path: Path, file: zipfile.ZipFile) -> dict[str, str]:
    """Return the checksum of each member but the list of them, which must be of all."""
    lines = _text(path, file, CHECKSUMS).splitlines()
    sums = {line[66:]: line[:64] for line in lines if line[64:66] == "  "}
    if len(sums) != len(lines) or not all(map(_HEX.fullmatch, sums.values())):
        raise CrateError(f"{path}: {CHECKSUMS} is not as sha256sum writes it")
    members = set(file.namelist()) - {CHECKSUMS}
    if lacking := sorted(members ^ sums.keys()):
        raise CrateError(
            f"{path}: {_several(lacking)} stands in one of the crate and its {CHECKSUMS} only"
        )
    return sums


def _check_contents(path: Path, file: zipfile.ZipFile, sums: Mapping[str, str]) -> None:
    """Refuse members that have not their checksum; all are looked at, to name them."""
    damaged = []
    for name, expected in sums.items():
        sha = hashlib.sha256()
        try:
            with file.open(name) as member:
                while chunk := member.read(_CHUNK):
                    sha.update(chunk)
        except _BROKEN:
            damaged.append(name)
            continue
        if sha.hexdigest() != expected:
            damaged.append(name)
    if damaged:
        raise CrateError(
            f"{path}: {_several(damaged)}: content and checksum do not fit; take another copy"
        )


def _several(names: Iterable[str]) -> str:
    """Name the first few of some members, and say how many more there are."""
    names = list(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(excerpt, names[:3])) + more


def _parsed(path: Path, sums: dict[str, str], said: Any, description: Any) -> Crate:
    """Return a crate from what its texts say; errors of any kind are those of the texts."""
    entities = {entity["@id"]: entity for entity in description["@graph"]}
    inside = {unquote(i): entity for i, entity in entities.items() if not i.startswith("#")}
    outside = {unquote(i[1:]): entity for i, entity in entities.items() if i.startswith("#")}
    effort = _typed(said["effort"], str)
    jobs = tuple(_job(entry) for entry in said["jobs"])
    makers = {output: job for job in jobs for output in job.outputs}
    for name in makers:
        places = (
            f"results/{effort}/",
            "data/raw/",
            "data/prepared/",
            "data/features/",
            "data/own/",
        )
        if not safe_name(name) or not name.startswith(places):
            raise CrateError(
                f"{path}: says that a job made {excerpt(repr(name))}, which no job of a run at "
                f"{excerpt(effort)} effort makes"
            )
    digests = {}
    for name in makers:
        entity = inside[name] if name in sums else outside.get(name, {})
        if name.endswith(_FILES) and "sha256" in entity:
            digests[name] = _typed(entity["sha256"], str)
        if digests.get(name, sums.get(name)) != sums.get(name, digests.get(name)):
            raise CrateError(f"{path}: {name}: {METADATA} and {CHECKSUMS} give other checksums")
    root = inside["./"]
    return Crate(
        path=path,
        sums=sums,
        effort=effort,
        substitutes=tuple(_typed(name, str) for name in said["substitutes"]),
        jobs=jobs,
        digests=digests,
        title=_typed(root["name"], str),
        author=_typed(entities[root["author"]["@id"]]["name"], str),
        created=_typed(root["datePublished"], str),
        makers=makers,
    )


def _job(entry: Mapping[str, Any]) -> Job:
    """Return a job from what the crate says of it, with values of the right types."""
    record, cpu_s = _typed(entry["record"], dict), entry["cpu_s"]
    checksums = _typed(record.get("input_checksums", {}), dict)
    for name in (*_typed(record.get("input", []), list), *checksums.values()):
        _typed(name, str)
    return Job(
        rule=_typed(entry["rule"], str),
        inputs=tuple(_typed(name, str) for name in entry["inputs"]),
        outputs=tuple(_typed(name, str) for name in entry["outputs"]),
        start=_typed(entry["start"], float),
        end=_typed(entry["end"], float),
        spec="",
        cpu_s=None if cpu_s is None else max(_typed(cpu_s, float), 0.0),
        record={**record, "input_checksums": checksums} if record else {},
    )


def _typed(value: Any, kind: Callable) -> Any:
    """Return a value of a type; a whole number is a number as well."""
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value
