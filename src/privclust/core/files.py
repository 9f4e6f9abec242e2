"""Files that are written whole or not at all, and paths that can be read as files."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

NO_SUCH_FILE = "there is no such file"
# errors of file systems that cannot flush a folder
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` if the block ends without an error.

    The file is flushed to the disk before it is renamed, and the folder after, so that after a
    power cut there is either the whole file or none. If a folder cannot be flushed (shared folders
    of virtual machines, SMB, FUSE), the file is complete nevertheless. Permissions follow the
    umask.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    # O_EXCL never takes over a file of another process; mode 0o666 leaves the umask to decide
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(target)
        _sync_folder(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically (UTF-8, Unix line ends)."""
    with atomic_path(path) as temporary:
        # bytes: text mode would write the line ends of the system
        temporary.write_bytes(text.encode())


def why_unreadable(path: str | os.PathLike[str]) -> str:
    """Return why a path cannot be read as a file, in a few words; empty if it can.

    Pipes and devices are not opened: reading one may wait for ever.

    Examples
    --------
    >>> why_unreadable("/")
    'is a directory; name a file'
    """
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return "is a directory; name a file"
        if not stat.S_ISREG(mode):
            return "is a pipe or a device; name a file"
        # only opening shows whether the permissions suffice
        os.close(os.open(path, os.O_RDONLY))
    except FileNotFoundError:
        return NO_SUCH_FILE
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return ""


def _sync_folder(path: Path) -> None:
    """Flush a folder if its file system can, since a rename may not survive a power cut."""
    try:
        _sync(path)
    except OSError as error:
        if error.errno not in _CANNOT_FLUSH:
            raise


def _sync(path: Path) -> None:
    # a folder can only be opened for reading, and fsync accepts that
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
