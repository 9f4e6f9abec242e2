"""The members of a crate: a zip file whose names, sizes and checksums are what they should be."""

from __future__ import annotations

import hashlib
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath

from privclust.core.printable import excerpt
from privclust_papers.report.archive import CHECKSUMS
from privclust_papers.settings.config import ConfigError

_SAFE = re.compile(r"[^\x00-\x1f\\:]+")
_HEX = re.compile(r"[0-9a-f]{64}")
_LARGEST_TEXT = 2**26  # bytes of a description that are read at once
_LARGEST_MEMBER = 2**32
_MOST_UNPACKED, _ROOM = 100, 2**30  # times the file's size, and bytes besides
_LONGEST_NAME, _LONGEST_PATH = 200, 800  # in bytes; with a suffix, what all file systems take
_PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CHUNK = 2**20
_HEADER = struct.Struct("<6sH18xHH")  # of a member, before its name: flags, and lengths
_NO_SIZES, _UTF_8 = 1 << 3, 1 << 11  # flags: sizes come after the content; the name is in UTF-8
_LARGE = b"\1\0"  # begins the field of a member that is large
_LISTED, _ENDS = 46, (22, 98)  # bytes of the list at the end, without names, and of its own end
_SYMLINK, _FILE_TYPE = 0o120000, 0o170000
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
TOO_MUCH = (RecursionError, OverflowError, MemoryError)


class CrateError(ConfigError):
    """A file is no crate of a run that can be used here; the message is one line."""


def checked_members(path: Path, file: zipfile.ZipFile) -> dict[str, str]:
    """Return the SHA-256 of each member but the list of them, all of which fit; nothing is written.

    It is a CrateError if a name is unsafe, or content and checksums do not fit.
    """
    _check_names(path, file.infolist())
    _check_layout(path, file)
    _check_sizes(path, file.infolist())
    sums = _checksums(path, file)
    _check_contents(path, file, sums)
    return sums


def safe_name(name: str) -> bool:
    """Whether a name is that of a file below a folder, on any system.

    Examples
    --------
    >>> safe_name("results/quick/index.html"), safe_name("../x"), safe_name("/x"), safe_name("a//b")
    (True, False, False, False)
    """
    parts = name.split("/")
    return bool(_SAFE.fullmatch(name)) and not {"", ".", ".."}.intersection(parts)


def lies_within(names: Iterable[str], folders: Collection[str]) -> str:
    """Return the first name that lies below another one; empty if none does."""
    below = (n for n in names if any(str(p) in folders for p in PurePosixPath(n).parents))
    return min(below, default="")


def several(names: Iterable[str]) -> str:
    """Name the first few of some members, and say how many more there are."""
    names = list(names)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(excerpt, names[:3])) + more


def text_of(path: Path, file: zipfile.ZipFile, name: str) -> str:
    """Return a member that is text."""
    if name not in file.namelist():
        raise CrateError(
            f"{path}: has no {name}; it is no crate of a run, or of a version before this one's"
        )
    if file.getinfo(name).file_size > _LARGEST_TEXT:
        raise CrateError(f"{path}: {name} is larger than {_LARGEST_TEXT:,} bytes")
    try:
        return file.read(name).decode()
    except UnicodeDecodeError:
        raise CrateError(f"{path}: {name} is no text in UTF-8") from None


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
        if len(entry.filename.encode()) > _LONGEST_PATH or any(
            len(part.encode()) > _LONGEST_NAME for part in entry.filename.split("/")
        ):
            raise CrateError(f"{path}: the name {excerpt(repr(entry.filename))} is too long")
        seen.add(entry.filename)
    if inner := lies_within(seen, seen):
        raise CrateError(f"{path}: {excerpt(repr(inner))} lies within what is a file")


def _check_layout(path: Path, file: zipfile.ZipFile) -> None:
    """Refuse a file that another program may unpack otherwise: that has more than its members.

    They lie one behind the other from the first byte on, each with the name that the list at the
    end gives; no field gives another name; and nothing follows.
    """
    end = 0
    with open(path, "rb") as raw:
        for entry in sorted(file.infolist(), key=lambda entry: entry.header_offset):
            raw.seek(end)
            head = raw.read(_HEADER.size)
            flags, n_name, n_extra = 0, 0, 0
            if len(head) == _HEADER.size:
                _, flags, n_name, n_extra = _HEADER.unpack(head)
            name, extra = raw.read(n_name), raw.read(n_extra)
            is_plain = not flags & _NO_SIZES and all(
                not field or field.startswith(_LARGE) for field in (extra, entry.extra)
            )
            encoded = entry.orig_filename.encode("utf-8" if flags & _UTF_8 else "cp437", "replace")
            if entry.header_offset != end or name != encoded or not is_plain:
                raise CrateError(
                    f"{path}: {excerpt(repr(entry.filename))} is packed so that other programs may "
                    "unpack something else; crates are not"
                )
            end += _HEADER.size + n_name + n_extra + entry.compress_size
        raw.seek(0, 2)
        listed = sum(
            _LISTED + len(e.orig_filename.encode()) + len(e.extra) for e in file.infolist()
        )
        if file.start_dir != end or raw.tell() - end - listed not in _ENDS or file.comment:
            raise CrateError(f"{path}: holds more than its members; crates do not")


def _check_sizes(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse what unpacks to far more than results do, or is packed in another way than here."""
    largest = max(entries, key=lambda entry: entry.file_size, default=zipfile.ZipInfo())
    unpacked = sum(entry.file_size for entry in entries)
    if largest.file_size > _LARGEST_MEMBER:
        raise CrateError(
            f"{path}: {excerpt(largest.filename)} unpacks to {largest.file_size:,} bytes, which "
            "is more than any result has; nothing was unpacked"
        )
    if unpacked > _MOST_UNPACKED * path.stat().st_size + _ROOM:
        raise CrateError(
            f"{path}: unpacks to {unpacked:,} bytes, which results do not; nothing was unpacked"
        )
    for entry in entries:
        if entry.compress_type not in _PACKING:
            raise CrateError(
                f"{path}: {excerpt(entry.filename)} is packed in another way than crates are, by "
                "method 8 (deflate) of .zip files"
            )


def _checksums(path: Path, file: zipfile.ZipFile) -> dict[str, str]:
    """Return the checksum of each member but the list of them, which must be of all."""
    lines = text_of(path, file, CHECKSUMS).splitlines()
    sums = {line[66:]: line[:64] for line in lines if line[64:66] == "  "}
    if len(sums) != len(lines) or not all(map(_HEX.fullmatch, sums.values())):
        raise CrateError(f"{path}: {CHECKSUMS} is not as sha256sum writes it")
    members = set(file.namelist()) - {CHECKSUMS}
    if lacking := sorted(sums.keys() - members):
        raise CrateError(
            f"{path}: {several(lacking)}: has a checksum in {CHECKSUMS}, and is not in the crate; "
            "take another copy"
        )
    if more := sorted(members - sums.keys()):
        raise CrateError(
            f"{path}: {several(more)}: is in the crate, and has no checksum in {CHECKSUMS}; "
            "take another copy"
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
        except BROKEN:
            damaged.append(name)
            continue
        if sha.hexdigest() != expected:
            damaged.append(name)
    if damaged:
        raise CrateError(
            f"{path}: {several(damaged)}: content and checksum do not fit; take another copy"
        )
