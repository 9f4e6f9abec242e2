"""Checks of folders and disks before a run, since Snakemake would end in a traceback."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from privclust.core.files import atomic_path

_SHELL = frozenset("'\"`$\\&|;<>()*?[]#~!{}")


class DiskError(OSError):
    """A folder cannot be written, or its disk is full; the message is one line."""


def check_writable(*folders: str) -> None:
    """Raise a DiskError for folders that can be neither written nor created."""
    closed = []
    for folder in folders:
        # A folder that is missing is created in the nearest existing one.
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder) or "."
        if not os.access(folder, os.W_OK | os.X_OK):
            closed.append(folder)
    if closed:
        # `os.access` gives the same answer for both reasons.
        is_read_only = os.statvfs(closed[0]).f_flag & os.ST_RDONLY
        reason = "Read-only file system" if is_read_only else "Permission denied"
        names = ["the project's folder" if name == "." else name for name in closed]
        raise DiskError(
            f"{', '.join(dict.fromkeys(names))}: cannot be written ({reason}); "
            "make it writable and run again"
        )


def check_path(name: str, path: str) -> None:
    """Raise a DiskError for a path that a shell would split, since jobs are started by a shell."""
    odd = sorted({sign for sign in path if sign.isspace() or sign in _SHELL})
    if odd:
        raise DiskError(
            f"{name} has {', '.join(map(repr, odd))} in its path, at which a shell splits it: move "
            f"the project to a path without ({path})"
        )


def check_profile(arguments: Sequence[str], folder: str, snakefile: str) -> None:
    """Raise a DiskError for a missing workflow profile, which Snakemake would ignore.

    Snakemake looks for a profile in the folder it was started in, although `--directory` may have
    changed the working folder since, and next to the main Snakefile.
    """
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        option, _, value = argument.partition("=")
        if len(option) < 4 or not "--workflow-profile".startswith(option):  # may be abbreviated
            continue
        name = value or following
        parts = (folder, ""), (folder, "profiles"), (os.path.dirname(snakefile), "profiles")
        places = [os.path.join(*part, name) for part in parts]
        if name != "none" and not any(map(os.path.exists, places)):
            raise DiskError(f"--workflow-profile {name}: there is no such folder or file")


def check_room(megabytes: float) -> None:
    """Raise a DiskError if the working folder's disk has less than `megabytes` free.

    Disks without a size are accepted.
    """
    disk = os.statvfs(".")
    left = disk.f_bavail * disk.f_frsize / 1e6
    if disk.f_blocks and left < megabytes:
        raise DiskError(
            f"the project's folder: {left:.1f} MB are left on its disk; make room there, "
            f"{megabytes} MB at least, and run again"
        )


def copy_if_changed(source: str, target: str) -> None:
    """Copy a file atomically; a target with the same content keeps its date."""
    content = Path(source).read_bytes()
    if not os.path.exists(target) or Path(target).read_bytes() != content:
        with atomic_path(target) as temporary:
            temporary.write_bytes(content)
