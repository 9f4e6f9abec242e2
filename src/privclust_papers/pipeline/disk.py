"""What a run asks of its disks before it starts: Snakemake itself would end in a traceback."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from privclust.core.files import atomic_path

_SHELL = frozenset("'\"`$\\&|;<>()*?[]#~!{}")


class DiskError(OSError):
    """A folder cannot be written, or there is no room on its disk; one line says which, and why."""


def check_writable(*folders: str) -> None:
    """Refuse folders that can be neither written nor made; they need not be there."""
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


def check_path(folder: str) -> None:
    """Refuse a working folder whose path a shell takes apart, as jobs are started by one."""
    odd = sorted({sign for sign in folder if sign.isspace() or sign in _SHELL})
    if odd:
        raise DiskError(
            f"the project's folder has {', '.join(map(repr, odd))} in its path, by which a shell "
            "takes it apart: move the project to a path without"
        )


def check_profile(arguments: Sequence[str], folder: str) -> None:
    """Refuse a workflow profile that is nowhere, which Snakemake itself passes over."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        option, _, value = argument.partition("=")
        if option != "--workflow-profile":
            continue
        name = value or following
        places = [os.path.join(folder, part, name) for part in ("", "profiles")]
        if name != "none" and not any(map(os.path.exists, places)):
            raise DiskError(f"--workflow-profile {name}: there is no such folder or file")


def check_room(megabytes: float) -> None:
    """Refuse a working folder on a disk with less than `megabytes` of room.

    A disk that does not say its size has room.
    """
    disk = os.statvfs(".")
    left = disk.f_bavail * disk.f_frsize / 1e6
    if disk.f_blocks and left < megabytes:
        raise DiskError(
            f"the project's folder: {left:.1f} MB are left on its disk; make room there, "
            f"{megabytes} MB at least, and run again"
        )


def copy_if_changed(source: str, target: str) -> None:
    """Copy a file, whole or not at all; a target with the same content keeps its date."""
    content = Path(source).read_bytes()
    if not os.path.exists(target) or Path(target).read_bytes() != content:
        with atomic_path(target) as temporary:
            temporary.write_bytes(content)
