"""Sequential reading of files in archives and unpacked folders."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from privclust_papers.datasets.registry import DataError, damaged

_Place = str | os.PathLike[str]
_Opener = Callable[[], Any]  # returns a binary file
_BROKEN = (
    OSError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    RuntimeError,  # of zipfile, for damaged headers: a password or an unknown compression
)


@dataclass(frozen=True)
class Member:
    """A file of an archive or folder, to be read before the next file.

    `name` is the part matched by the pattern; `archive` is for messages. Reading raises a DataError
    if the archive is damaged.
    """

    name: str
    size: int
    archive: _Place
    opened: _Opener

    def read(self, whole: Callable[[Any], Any] = lambda file: file.read()) -> Any:
        """Return the result of a function of the open file, by default its bytes."""
        with _whole(self.archive), self.opened() as file:
            return whole(file)

    def members(self, pattern: str) -> Iterator[Member]:
        """Yield the files of this member, itself a tar archive, as `members`."""
        where = f"{self.archive}: {self.name}"
        with _whole(where), self.opened() as file:
            yield from _matching(where, _of_tar(file), pattern)


def members(path: _Place, pattern: str) -> Iterator[Member]:
    """Yield files of a zip or tar archive, compressed or not, or of an unpacked folder.

    The names of the files, without leading folders, match the regular expression `pattern`. Raises
    a DataError if the archive is damaged.
    """
    with _whole(path):
        if Path(path).is_dir():
            yield from _matching(path, _of_folder(Path(path)), pattern)
            return
        with open(path, "rb") as file:
            is_zip = file.read(2) == b"PK"  # also for a truncated archive
            file.seek(0)
            yield from _matching(path, (_of_zip if is_zip else _of_tar)(file), pattern)


def read_members(path: _Place, pattern: str) -> dict[str, bytes]:
    """Return the contents of the files of `members`, by name."""
    return {member.name: member.read() for member in members(path, pattern)}


def content_digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 over the sorted lines ``"<name> <SHA-256 of the file>\\n"``."""
    lines = sorted(f"{name} {hashlib.sha256(data).hexdigest()}\n" for name, data in files.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def fill(found: Iterator[Member], places: Mapping[str, np.ndarray]) -> None:
    """Read files into uint8 arrays of their sizes; files without an array are skipped.

    Raises a DataError if a file cannot be read.
    """
    for member in found:
        place = places.get(member.name)
        if place is not None and len(place) == member.size:
            member.read(partial(_read_into, place))


def numbered_lines(
    path: _Place, name: str, contents: Mapping[str, bytes], n_values: int
) -> dict[int, list[str]]:
    """Parse a text file of an archive with lines of a number and `n_values` values.

    Raises a DataError that names the archive `path` if the file is missing or a line is malformed.
    """
    if name not in contents:
        raise damaged(path, f"has no {name}")
    table = {}
    for line in contents[name].decode("utf-8", "replace").splitlines():
        number, _, rest = line.strip().partition(" ")
        values = rest.split()
        if not number.isdigit() or len(values) != n_values:
            raise damaged(
                path,
                f"{name} has the line {line[:80]!r}; it must be a number and "
                f"{n_values} value(s), separated by spaces",
            )
        table[int(number)] = values
    return table


@contextmanager
def _whole(archive: _Place) -> Iterator[None]:
    """Convert errors from reading a damaged archive to a DataError."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{archive}: no such file", "fetch the data set first") from None
    except PermissionError as error:
        raise DataError(f"{archive}: cannot be read ({error.strerror})") from error
    except _BROKEN as error:
        raise damaged(archive, _problem(Path(archive), error)) from error


def _problem(path: Path, error: Exception) -> str:
    """Say what is wrong with an archive; a download may be cut off or another page."""
    reason = str(error) or type(error).__name__
    if not path.is_file():  # an archive within another
        return f"not a whole tar archive ({reason})"
    with path.open("rb") as file:
        start = file.read(4)
    is_zip = start == b"PK\x03\x04"
    if not is_zip and ".zip" in (suffix.lower() for suffix in path.suffixes):
        return f"not a zip archive (it starts with {start!r})"
    if not is_zip:
        return f"not a whole tar archive ({reason})"
    if not zipfile.is_zipfile(path):
        return "the archive is truncated (its directory, at the end, is missing)"
    return f"the archive is damaged ({reason})"


def _matching(
    archive: _Place, files: Iterator[tuple[str, int, _Opener]], pattern: str
) -> Iterator[Member]:
    # Group 1 is the whole match, so that groups of a pattern are numbered from 2 on.
    wanted = re.compile(rf"(?:^|/)({pattern})\Z")
    for name, size, opened in files:
        if match := wanted.search(name):
            yield Member(match.group(1), size, archive, opened)


def _of_folder(folder: Path) -> Iterator[tuple[str, int, _Opener]]:
    # The order of a folder's entries depends on its file system.
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.relative_to(folder).as_posix(), file.stat().st_size, partial(file.open, "rb")


def _of_tar(stream: IO[bytes]) -> Iterator[tuple[str, int, _Opener]]:
    with tarfile.open(fileobj=stream, mode="r|*") as archive:  # one pass, without temporary files
        for member in archive:
            if member.isfile():
                yield member.name, member.size, partial(archive.extractfile, member)


def _of_zip(stream: IO[bytes]) -> Iterator[tuple[str, int, _Opener]]:
    with zipfile.ZipFile(stream) as archive:
        for entry in archive.infolist():
            yield entry.filename, entry.file_size, partial(archive.open, entry)


def _read_into(place: np.ndarray, file: Any) -> None:
    # `readinto` may return less than asked for, as decompressors do at the end of a block.
    left = memoryview(place.data)
    while left:
        n_read = file.readinto(left)
        if not n_read:
            raise EOFError("a file of it ends too early")
        left = left[n_read:]
