"""A crate of a run, read by whoever did not make it: nothing in it is believed unchecked.

Names are those of files below a folder, each once; every member has the checksum that the crate
gives of it; what the crate says of jobs has the types that it should have; each result has one job
that made it, and no result lies within another.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import yaml

from privclust.core.printable import excerpt
from privclust_papers.datasets.fetch import RECEIPT
from privclust_papers.pipeline.project_files import (
    CITATION,
    CONFIG,
    PINS,
    project_files,
)
from privclust_papers.report.archive import (
    CHECKSUMS,
    JOBS,
    METADATA,
    VERSIONS,
)
from privclust_papers.report.crate_members import (
    BROKEN,
    TOO_MUCH,
    CrateError,
    checked_members,
    lies_within,
    safe_name,
    several,
    text_of,
)
from privclust_papers.report.run_records import Job

# What may differ where the code is the same: pages, pins of packages, what the run left, and how
# jobs are sent to the cores or the cluster of a place.
_BESIDE = ("results/", "data/", "docs/", "workflow/envs/", "workflow/profiles/")
_NO_CODE = frozenset(
    (CONFIG, JOBS, METADATA, VERSIONS, CITATION, "config/README.md", "LICENSE", "README.md", *PINS)
)
_FILES = (".csv", ".h5", ".html", ".js", ".png", ".sha256", ".svg", ".tsv")
FETCHED, _PREPARED = "data/raw/", "data/prepared/"
_OUTPUTS = (FETCHED, _PREPARED, "data/features/", "data/own/")
_PLAIN = re.compile(r"[\w.,=+@/ -]+", re.ASCII)  # stands on a terminal and in a page as it is
_DATE = re.compile(r"[\d:+.TZ-]+", re.ASCII)
_WORD = re.compile(r"\w+", re.ASCII)
_LARGEST_SETTINGS = 2**14  # they have some 2,000; nested brackets are read in quadratic time
_CLOCKS_DIFFER = 86_400.0  # seconds
_RECORD: dict[str, Callable] = {  # of Snakemake
    **dict.fromkeys(("rule", "code", "shellcmd", "software_stack_hash"), str),
    **dict.fromkeys(("input", "log", "params"), list),
    **dict.fromkeys(("starttime", "endtime"), float),
    **{"input_checksums": dict, "record_format_version": int},
}
_MAY_BE_NONE = ("code", "shellcmd", "software_stack_hash")


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
    substitutes : dict of str to str or None
        Data sets that others stood in for, with the SHA-256 of the file; None of what is generated.
    jobs : tuple of Job
        As in `privclust_papers.report.run_records.read_jobs`, without code among their inputs.
    digests : dict of str to str
        SHA-256 of each output of a job that the crate says it of, in the crate or not.
    title, author, created : str
        What it is, by whom, and when the run ended.
    """

    path: Path
    sums: Mapping[str, str]
    effort: str
    substitutes: Mapping[str, str | None]
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
        if not output.startswith(FETCHED):
            return []
        return sorted(name for name in self.sums if name.startswith(f"{output}/"))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the run was told, ``config/config.yaml``; a CrateError if that is no such file.

        No value may stand for another one (an alias): a few would stand for gigabytes.
        """
        if CONFIG not in self.sums:
            raise CrateError(f"{self.path}: has no {CONFIG}; it is no crate of a run")
        try:
            text = self.read(CONFIG)
            if len(text) > _LARGEST_SETTINGS:
                raise ValueError(f"larger than {_LARGEST_SETTINGS:,} bytes")
            if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text.decode())):
                raise ValueError("it has aliases")
            settings = yaml.safe_load(text)
            if not isinstance(settings, dict):
                raise TypeError("no settings")
        except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, CrateError):
                raise
            reason = excerpt(" ".join(str(error).split()))
            raise CrateError(f"{self.path}: its {CONFIG} cannot be used ({reason})") from None
        return settings

    def holds(self, job: Job) -> bool:
        """Whether all outputs of a job are in the crate."""
        return all(self.members_of(output) for output in job.outputs)

    def read(self, name: str) -> bytes:
        """Return the content of a member, which must still be as it was when it was checked."""
        try:
            content = self._file.read(name)
        except (OSError, KeyError, *BROKEN) as error:
            raise CrateError(
                f"{self.path}: {name} cannot be read ({excerpt(str(error))})"
            ) from None
        if hashlib.sha256(content).hexdigest() != self.sums[name]:
            raise CrateError(f"{self.path}: {name} was changed while it was read")
        return content

    @property
    def code(self) -> list[str]:
        """The members that are code or settings; not what the run was told (config/config.yaml)."""
        return [name for name in self.sums if _is_code(name)]

    def changed_code(self, folder: str | os.PathLike[str] = ".") -> list[str]:
        """Return the files of code and settings that a crate and a project's folder have not alike.

        They are all of the crate's, and all that an archive of the project would have, but for
        those that settings name.
        """
        here = {name for name in project_files(folder, {}) if _is_code(name)}
        names = sorted({*self.code, *here})
        return [n for n in names if file_sha256(Path(folder, n)) != self.sums.get(n)]


def _is_code(name: str) -> bool:
    """Whether a file of a project is code or settings."""
    return name not in _NO_CODE and not name.startswith(_BESIDE)


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
            sums = checked_members(path, file)
            receipts = _check_fetched(path, file, sums)
            texts = [text_of(path, file, name) for name in (JOBS, METADATA)]
    except OSError as error:
        raise CrateError(f"{path}: cannot be read ({error.strerror or error})") from None
    except BROKEN as error:
        if isinstance(error, CrateError):
            raise
        raise CrateError(f"{path}: not a whole .zip file ({excerpt(str(error))})") from None
    try:
        return _parsed(path, sums, receipts, *map(json.loads, texts))
    except (LookupError, TypeError, ValueError, AttributeError, *TOO_MUCH) as error:
        if isinstance(error, CrateError):
            raise
        reason = excerpt(f"{type(error).__name__}: {error}")
        raise CrateError(
            f"{path}: its {JOBS} or {METADATA} is not as this version writes it ({reason})"
        ) from None


def _check_fetched(path: Path, file: zipfile.ZipFile, sums: Mapping[str, str]) -> set[str]:
    """Return the substitutes of a crate, and refuse data of others: their receipts are archived.

    A receipt that came with a file would have this taken for the data set.
    """
    substitutes = set()
    for name in (name for name in sums if name.startswith(FETCHED)):
        folder, _, last = name.rpartition("/")
        if last != RECEIPT or folder.count("/") != FETCHED.count("/"):
            raise CrateError(f"{path}: holds {excerpt(name)}, as if it were fetched data")
        try:
            is_substitute = json.loads(text_of(path, file, name))["file"] is None
        except (LookupError, TypeError, ValueError, *TOO_MUCH):
            is_substitute = False
        if not is_substitute:
            raise CrateError(f"{path}: {name} is no receipt of a substitute")
        substitutes.add(PurePosixPath(folder).name)
    for name in (name for name in sums if name.startswith(_PREPARED)):
        if PurePosixPath(name).stem not in substitutes:
            raise CrateError(f"{path}: holds {excerpt(name)}, data of others")
    return substitutes


def _parsed(
    path: Path, sums: dict[str, str], receipts: set[str], said: Any, description: Any
) -> Crate:
    """Return a crate from what its texts say; errors of any kind are those of the texts."""
    entities = {entity["@id"]: entity for entity in description["@graph"]}
    inside = {unquote(i): entity for i, entity in entities.items() if not i.startswith("#")}
    outside = {unquote(i[1:]): entity for i, entity in entities.items() if i.startswith("#")}
    effort = _matching(said["effort"], _WORD)
    substitutes = {_matching(name, _WORD): None for name in said["substitutes"]}
    for name in substitutes:
        if (sha256 := outside.get(f"{FETCHED}{name}", {}).get("sha256")) is not None:
            substitutes[name] = _typed(sha256, str)
    if hidden := sorted(receipts.difference(substitutes)):
        raise CrateError(f"{path}: {several(hidden)}: a substitute that {JOBS} does not name")
    jobs = tuple(_job(entry) for entry in said["jobs"])
    makers = _makers(path, jobs, effort)
    _check_makers(path, sums, makers)
    digests = {}
    for name in makers:
        entity = inside[name] if name in sums else outside.get(name, {})
        said_of_it = entity.get("sha256", sums.get(name))
        if name.endswith(_FILES) and said_of_it is not None:
            digests[name] = _typed(said_of_it, str)
        if sums.get(name, said_of_it) != said_of_it:
            raise CrateError(f"{path}: {name}: {METADATA} and {CHECKSUMS} give other checksums")
    root = inside["./"]
    return Crate(
        path=path,
        sums=sums,
        effort=effort,
        substitutes=substitutes,
        jobs=jobs,
        digests=digests,
        title=_typed(root["name"], str),
        author=_typed(entities[root["author"]["@id"]]["name"], str),
        created=_matching(root["datePublished"], _DATE),
        makers=makers,
    )


def _makers(path: Path, jobs: Iterable[Job], effort: str) -> dict[str, Job]:
    """Return which job made each output: files and folders that a run makes, each once."""
    makers: dict[str, Job] = {}
    for job in jobs:
        for name in job.outputs:
            is_file = name.endswith(_FILES) or name.startswith(FETCHED)
            is_plain = safe_name(name) and _PLAIN.fullmatch(name)
            if (
                not is_plain
                or not is_file
                or not name.startswith((f"results/{effort}/", *_OUTPUTS))
            ):
                raise CrateError(
                    f"{path}: says that a job made {excerpt(repr(name))}, which no job of a run at "
                    f"{effort} effort makes"
                )
            if name in makers:
                raise CrateError(f"{path}: says that two jobs made {name}")
            makers[name] = job
    if inner := lies_within(makers, makers):
        raise CrateError(f"{path}: says that a job made {inner}, and another what it lies in")
    return makers


def _check_makers(path: Path, sums: Mapping[str, str], makers: Mapping[str, Job]) -> None:
    """Refuse results that no job is said to have made: none could be drawn to check them."""
    results = (n for n in sums if n.startswith(("results/", *_OUTPUTS[1:3])) or n.endswith(".h5"))
    if lost := sorted(name for name in results if name not in makers):
        raise CrateError(f"{path}: {several(lost)}: no job is said to have made it")


def _job(entry: Mapping[str, Any]) -> Job:
    """Return a job from what the crate says of it, with values of the right types."""
    record, cpu_s = _record(entry["record"]), entry["cpu_s"]
    start, end = _typed(entry["start"], float), _typed(entry["end"], float)
    # clocks may be set back while a job runs: it may end before it began
    if not 0.0 <= min(start, end) <= max(start, end) <= time.time() + _CLOCKS_DIFFER:
        raise ValueError("a job began and ended after 1970 and before tomorrow")
    if not entry["outputs"]:
        raise ValueError("a job makes something")
    if cpu_s is not None and _typed(cpu_s, float) < 0.0:
        raise ValueError("a job took less than no time")
    checksums = _typed(record.get("input_checksums", {}), dict)
    for name in (*_typed(record.get("input", []), list), *checksums.values()):
        _typed(name, str)
    return Job(
        rule=_matching(entry["rule"], _WORD),
        inputs=tuple(dict.fromkeys(_typed(name, str) for name in entry["inputs"])),
        outputs=tuple(_typed(name, str) for name in entry["outputs"]),
        start=start,
        end=end,
        spec="",
        cpu_s=None if cpu_s is None else float(cpu_s),
        record={**record, "input_checksums": checksums} if record else {},
    )


def _record(said: Any) -> dict[str, Any]:
    """Return Snakemake's record of a job, with entries of the types that it reads."""
    whole = _typed(said, dict)
    record = {key: whole[key] for key in _RECORD if key in whole}
    for key, value in record.items():
        if value is not None or key not in _MAY_BE_NONE:
            _typed(value, _RECORD[key])
    for key in ("log", "params"):
        for text in record.get(key, ()):
            _typed(text, str)
    return record


def _typed(value: Any, kind: Callable) -> Any:
    """Return a value of a type; a whole number is a number as well."""
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


def _matching(value: Any, pattern: re.Pattern[str]) -> str:
    """Return a text of a pattern as a whole."""
    if not pattern.fullmatch(_typed(value, str)):
        raise ValueError(f"{value!r} is no {pattern.pattern}")
    return value
