"""Reading of a crate of a run from an untrusted source: all contents are checked."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import jsonschema

from privclust.core.printable import excerpt
from privclust_papers.datasets.fetch import RECEIPT
from privclust_papers.pipeline.project_files import CITATION, CONFIG, PINS, project_files
from privclust_papers.report.archive import CHECKSUMS, JOBS, METADATA, VERSIONS, zip_entry
from privclust_papers.report.run_records import Job
from privclust_papers.settings.config import ConfigError

# Files that are not code; profiles are the settings of a cluster.
_BESIDE = ("results/", "data/", "docs/", "workflow/envs/", "workflow/profiles/")
_NO_CODE = frozenset(
    (CONFIG, JOBS, METADATA, VERSIONS, CITATION, "config/README.md", "LICENSE", "README.md", *PINS)
)
_FETCHED, PREPARED, FEATURES = "data/raw/", "data/prepared/", "data/features/"
_NAME = re.compile(r"[^\x00-\x1f\\:]+")
_LONGEST_NAME, _LONGEST_PATH = 200, 800  # bytes; leave room for suffixes on all file systems
_LARGEST_TEXT = 2**26  # bytes of a description
_MOST_UNPACKED, _ROOM = 100, 2**30  # factor of the file's size, and additional bytes
_ZIP64 = b"\1\0"  # start of the extra field of a member beyond 4 GB
# 98 is 22 with the end record and the locator of ZIP64 before it, 56 and 20 bytes.
_LISTED, _ENDS = 46, (22, 98)  # bytes of a central directory entry, and of the end records
# zipfile raises a RuntimeError for an encrypted member, and a NotImplementedError for an unknown
# compression.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)

_WORD = {"type": "string", "pattern": r"\A\w{1,100}\Z"}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_TEXT_OR_NONE = {"type": ["string", "null"]}
_TIME = {"type": "number", "minimum": 0, "maximum": 2**33}
# names of data, tables and drawings that are safe on a terminal and in a page
_OUTPUT = r"\A(data/raw/[\w.=-]+|[\w.,=+@/ -]+\.(csv|h5|html|js|png|sha256|svg|tsv))\Z"
_OUTPUTS = {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": _OUTPUT}}
_RECORD = {  # entries that Snakemake reads
    **dict.fromkeys(("code", "shellcmd", "software_stack_hash"), _TEXT_OR_NONE),
    **dict.fromkeys(("input", "log", "params"), _TEXTS),
    **dict.fromkeys(("starttime", "endtime"), _TIME),
    **{"rule": {"type": "string"}, "record_format_version": {"type": "integer"}},
    "input_checksums": {"type": "object", "additionalProperties": {"type": "string"}},
}
_JOB = {
    **{"rule": _WORD, "inputs": _TEXTS, "outputs": _OUTPUTS, "start": _TIME, "end": _TIME},
    **{"cpu_s": {"type": ["number", "null"], "minimum": 0, "maximum": 2**33}},
    "record": {"type": "object", "properties": _RECORD},
}
_JOBS = {
    "required": ["substitutes", "digests", "jobs"],
    "properties": {
        "substitutes": {"type": "array", "items": _WORD},
        "digests": {"type": "object", "additionalProperties": {"type": "string"}},
        "jobs": {"type": "array", "items": {"required": [*_JOB], "properties": _JOB}},
    },
}


class CrateError(ConfigError):
    """Raised if a file is not a usable crate of a run; the message is one line."""


@dataclass(frozen=True)
class Crate:
    """A crate of a run with verified checksums."""

    path: Path
    sums: Mapping[str, str]  # SHA-256 of each member
    settings: Mapping[str, Any]  # of the run, from ``config/config.yaml``
    substitutes: tuple[str, ...]  # data sets replaced by substitutes
    jobs: tuple[Job, ...]  # as from `read_jobs`, but inputs without code
    makers: Mapping[str, Job]  # the job of each output
    digests: Mapping[str, str]  # SHA-256 of outputs in the crate or outside

    @cached_property
    def _file(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.path)  # cached, as listing thousands of members is slow

    @property
    def effort(self) -> str:
        """The effort of the run."""
        return str(self.settings["effort"])

    def error(self, reason: str) -> CrateError:
        """Return an error that names this crate."""
        return CrateError(f"{self.path}: {reason}")

    def members_of(self, output: str) -> list[str]:
        """Return the members of an output (file or folder); none if the crate leaves it out."""
        names = (output, f"{output}/{RECEIPT}")  # of a folder of fetched data, only the receipt
        return [name for name in names if name in self.sums]

    def read(self, name: str) -> bytes:
        """Return the content of a member; a CrateError if the file changed after the check."""
        content = self._file.read(name)
        if hashlib.sha256(content).hexdigest() != self.sums[name]:
            raise self.error(f"{name} was changed while it was read")
        return content

    @property
    def code(self) -> list[str]:
        """The members that are code or settings, without config/config.yaml."""
        return [name for name in self.sums if _is_code(name)]

    def changed_code(self) -> list[str]:
        """Return the files of code and settings that differ between the crate and the project here.

        Compared are all such files of the crate, and all that an archive of the project would
        include, without files that only the settings name.
        """
        code = sorted({*self.code, *filter(_is_code, project_files(config={}))})
        return [name for name in code if file_sha256(name) != self.sums.get(name, "")]


def _is_code(name: str) -> bool:
    return name not in _NO_CODE and not name.startswith(_BESIDE)


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def safe_name(name: str) -> bool:
    """Return whether a name is a relative path inside a folder, valid on any system.

    Examples
    --------
    >>> safe_name("results/quick/index.html"), safe_name("../x"), safe_name("/x"), safe_name("a//b")
    (True, False, False, False)
    """
    parts = name.split("/")
    is_short = max(len(part.encode()) for part in parts) <= _LONGEST_NAME
    is_plain = bool(_NAME.fullmatch(name)) and not {"", ".", ".."}.intersection(parts)
    return is_plain and is_short and len(name.encode()) <= _LONGEST_PATH


def read_crate(path: str | os.PathLike[str]) -> Crate:
    """Read a crate of a run and check all members; nothing is written.

    Raises a CrateError if the file is not a crate of a run, a member has an unsafe name, or a
    checksum does not match; the message names the members.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as file:
            _check_members(path, file)
            sums = _checksums(file)
            settings, said = (_json(file, name) for name in (CONFIG, JOBS))
            jsonschema.validate(settings, {"properties": {"effort": _WORD}, "required": ["effort"]})
            jsonschema.validate(said, _JOBS)
            jobs = tuple(map(_job, said["jobs"]))
            makers = _makers(settings["effort"], jobs, sums)
            _check_data(file, said["substitutes"])
    except CrateError as error:
        raise CrateError(f"{path}: {error}") from None
    except OSError as error:
        raise CrateError(f"{path}: cannot be read ({error.strerror or error})") from None
    except _BROKEN as error:
        raise CrateError(f"{path}: not a whole .zip file of a run ({excerpt(error)})") from None
    except (jsonschema.ValidationError, LookupError, TypeError, AttributeError) as error:
        reason = error.message if isinstance(error, jsonschema.ValidationError) else repr(error)
        raise CrateError(
            f"{path}: its {JOBS} or {CONFIG} is not in this version's format ({excerpt(reason)})"
        ) from None
    # Checked sums win over the digests that the crate merely states.
    digests = {name: d for name, d in (said["digests"] | sums).items() if name in makers}
    return Crate(path, sums, settings, tuple(said["substitutes"]), jobs, makers, digests)


def _refuse(names: Collection[str], reason: str) -> None:
    """Raise a CrateError with the first few names and a reason, if there are names."""
    if names:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise CrateError(f"{', '.join(map(excerpt, sorted(names)[:3]))}{more}: {reason}")


def _check_members(path: Path, file: zipfile.ZipFile) -> None:
    """Refuse a zip file that another program could unpack to other files or names.

    Members must be contiguous from the first byte on, each with the header that `write_archive`
    writes for its name, and followed only by the central directory.
    """
    entries, seen, end, listed = file.infolist(), set(), 0, 0
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > _MOST_UNPACKED * path.stat().st_size + _ROOM:
        raise CrateError(
            f"unpacks to {unpacked:,} bytes, too many for a crate of its size; nothing was unpacked"
        )
    with open(path, "rb") as raw:
        for entry in entries:
            name, plain = entry.filename, zip_entry(entry.filename)
            is_link = entry.external_attr != plain.external_attr
            if is_link or name in seen or not safe_name(entry.orig_filename):
                raise CrateError(
                    f"contains {excerpt(repr(entry.orig_filename))}, which is not a file inside a "
                    "folder, has too long a name, or occurs twice; nothing was unpacked"
                )
            seen.add(name)
            # Sizes and checksum are the member's own; everything else must be as `zip_entry` gives
            # it.
            plain.CRC, plain.file_size = entry.CRC, entry.file_size
            plain.compress_size = entry.compress_size
            # the rule by which zipfile chooses ZIP64 before packing a member
            header = plain.FileHeader(entry.file_size * 1.05 > zipfile.ZIP64_LIMIT)
            raw.seek(end)
            if raw.read(len(header)) != header or entry.extra[:2] not in (b"", _ZIP64):
                raise CrateError(
                    f"{excerpt(repr(name))} is not packed as crates are; other programs may unpack "
                    "other contents"
                )
            end += len(header) + entry.compress_size
            listed += _LISTED + len(name.encode()) + len(entry.extra)
        raw.seek(0, os.SEEK_END)
        if file.start_dir != end or raw.tell() - end - listed not in _ENDS or file.comment:
            raise CrateError("contains data that belong to none of its members")
    _refuse(_inner(seen), "lies inside another member, which is a file")


def _inner(names: Collection[str]) -> list[str]:
    return [n for n in names if any(str(parent) in names for parent in PurePosixPath(n).parents)]


def _text(file: zipfile.ZipFile, name: str) -> str:
    if name not in file.namelist():
        raise CrateError(f"has no {name}; it is not a crate of a run, or an older version wrote it")
    if file.getinfo(name).file_size > _LARGEST_TEXT:
        raise CrateError(f"{name} is larger than {_LARGEST_TEXT:,} bytes")
    return file.read(name).decode()


def _json(file: zipfile.ZipFile, name: str) -> Any:
    try:
        return json.loads(_text(file, name), parse_constant=int)  # int refuses NaN and Infinity
    except (ValueError, RecursionError) as error:
        reason = f"its {name} is not in this version's format ({excerpt(error)})"
        raise CrateError(reason) from None


def _checksums(file: zipfile.ZipFile) -> dict[str, str]:
    """Return the checksum of each member except the list of checksums, after checking all."""
    lines = [line.partition("  ") for line in _text(file, CHECKSUMS).splitlines()]
    sums = {name: digest for digest, _, name in lines}
    members = set(file.namelist()) - {CHECKSUMS}
    again = "take another copy"
    _refuse(sums.keys() - members, f"is listed in {CHECKSUMS}, but is not in the crate; {again}")
    _refuse(members - sums.keys(), f"is in the crate, but not listed in {CHECKSUMS}; {again}")
    damaged = [name for name, digest in sums.items() if _digest(file, name) != digest]
    _refuse(damaged, f"content does not match its checksum; {again}")
    return sums


def _digest(file: zipfile.ZipFile, name: str) -> str:
    """Return the SHA-256 of a member; empty if it cannot be unpacked."""
    try:
        with file.open(name) as member:
            return hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]
    except _BROKEN:
        return ""


def _job(entry: Mapping[str, Any]) -> Job:
    # Unknown entries are dropped: Snakemake would read them from a file that it trusts.
    record = {key: entry["record"][key] for key in _RECORD if key in entry["record"]}
    start, end, cpu_s = entry["start"], entry["end"], entry["cpu_s"]
    # a job may end before it began, if the clock was set back meanwhile
    if max(start, end) > time.time() + 86_400.0:
        raise TypeError("a job starts or ends in the future")
    record = {"input_checksums": {}, **record} if record else {}
    inputs, outputs = tuple(dict.fromkeys(entry["inputs"])), tuple(entry["outputs"])
    return Job(entry["rule"], inputs, outputs, start, end, cpu_s, record)


def _makers(effort: str, jobs: Iterable[Job], sums: Mapping[str, str]) -> dict[str, Job]:
    """Return the job of each output; raise if an output has several, or a result none."""
    makers: dict[str, Job] = {}
    places = (f"results/{effort}/", _FETCHED, PREPARED, FEATURES)
    for job in jobs:
        for name in job.outputs:
            if not safe_name(name) or not name.startswith(places) or name in makers:
                raise CrateError(
                    f"lists {name} as an output of a job, but no run at {effort} effort makes it, "
                    "or two jobs list it"
                )
            makers[name] = job
    _refuse(_inner(makers), "lies inside an output of another job")
    made = (n for n in sums if n.startswith(("results/", PREPARED, FEATURES)) or n.endswith(".h5"))
    # results without a job could not be drawn for recomputation
    _refuse([name for name in made if name not in makers], "no job lists it as an output")
    return makers


def _check_data(file: zipfile.ZipFile, substitutes: Iterable[str]) -> None:
    """Refuse third-party data, and data of substitutes that are not named.

    A receipt of a substitute must not name a file, which would be taken for the original data.
    """
    receipts = {f"{_FETCHED}{name}/{RECEIPT}" for name in substitutes}
    names = {name for name in file.namelist() if name.startswith((_FETCHED, PREPARED))}
    others = names - receipts - {f"{PREPARED}{name}.h5" for name in substitutes}
    # The name itself is the default: a receipt without the key "file" is refused, too.
    others |= {n for n in names & receipts if _json(file, n).get("file", n) is not None}
    _refuse(others, f"third-party data, or data of a substitute that {JOBS} does not name")
