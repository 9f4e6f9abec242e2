"""What a run asks of its disks before it starts: Snakemake itself would end in a traceback."""

from __future__ import annotations

import os


class DiskError(OSError):
    """A folder cannot be written, or there is no room on its disk."""


def check_writable(*folders: str) -> None:
    """Refuse folders that can be neither written nor made.

    Parameters
    ----------
    *folders : str
        They need not be there.

    Raises
    ------
    DiskError
        In one line: what cannot be written, and why.
    """
    closed = []
    for folder in folders:
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder) or "."
        if not os.access(folder, os.W_OK | os.X_OK):
            closed.append(folder)
    if closed:
        is_read_only = os.statvfs(closed[0]).f_flag & os.ST_RDONLY
        reason = "Read-only file system" if is_read_only else "Permission denied"
        names = ["the project's folder" if name == "." else name for name in closed]
        raise DiskError(
            f"{', '.join(dict.fromkeys(names))}: cannot be written ({reason}); "
            "make it writable and run again"
        )


def check_room(megabytes: float) -> None:
    """Refuse a working folder on a disk that has next to no room.

    Parameters
    ----------
    megabytes : float
        How much there may be at least, in MB. A disk that does not say its size has room.

    Raises
    ------
    DiskError
        In one line: how much is left, and how much is needed.
    """
    disk = os.statvfs(".")
    left = disk.f_bavail * disk.f_frsize / 1e6
    if disk.f_blocks and left < megabytes:
        raise DiskError(
            f"the project's folder: {left:.1f} MB are left on its disk; make room there, "
            f"{megabytes} MB at least, and run again"
        )
