"""Files that jobs write for other jobs: HDF5 artefacts, and tables.

An artefact is written once by one job. A table is text, with its digest in a second file.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privclust.core import hdf5
from privclust.core.files import write_text
from privclust.core.hdf5 import RUN_AGAIN, FileError, write

__all__ = ["read", "read_table", "write", "write_table"]


def read(
    path: str | os.PathLike[str], kind: str, parameters: Mapping[str, Any] | None = None
) -> hdf5.Contents:
    """Read an artefact by `privclust.core.hdf5.read`; errors advise to make it again."""
    if not os.path.exists(path):
        raise FileError(f"{path}: there is no such artefact; run the rule that makes it")
    return hdf5.read(path, kind, parameters, remedy=RUN_AGAIN)


def write_table(path: str | os.PathLike[str], text: str) -> None:
    """Write a table and its digest, both atomically.

    The digest is the table's SHA-256, in a file ``<path>.sha256`` for ``sha256sum --check``. It is
    written first, so that a table always has a digest.
    """
    write_text(f"{os.fspath(path)}.sha256", _digest_line(path, text.encode()))
    write_text(path, text)


def _digest_line(path: str | os.PathLike[str], content: bytes) -> str:
    """Return the digest of a table in the format of ``sha256sum``."""
    return f"{hashlib.sha256(content).hexdigest()}  {Path(path).name}\n"


def read_table(path: str | os.PathLike[str]) -> io.BytesIO:
    """Return the bytes of a table, for parsing.

    Raises a FileError if the table or its digest is missing, or they do not match.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such table; run the rule that makes it") from None
    try:
        digest = Path(f"{os.fspath(path)}.sha256").read_bytes()
    except FileNotFoundError:
        raise FileError(f"{path}: its digest, {path}.sha256, is missing{RUN_AGAIN}") from None
    if digest != _digest_line(path, content).encode():
        raise FileError(f"{path}: its content does not fit its digest{RUN_AGAIN}")
    return io.BytesIO(content)
