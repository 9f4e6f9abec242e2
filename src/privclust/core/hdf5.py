"""The only reader and writer of HDF5 files with a digest: saved estimators, features, artefacts.

The bytes of a file depend only on its content: no time, host name or path is stored, and the
library versions are those of the environment that wrote it. It is written under a temporary name,
flushed to the disk and renamed, so a killed process leaves no file under its name. A digest of
header and arrays is stored: a file that was truncated, edited or mixed up with another one is
refused on reading. Anybody can compute that digest, so it does not prove who made a file. Layout
and size of a file are checked before it is read (`privclust.core.hdf5_layout`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np

from privclust import __version__
from privclust.core.canonical import canonical_json
from privclust.core.files import NO_SUCH_FILE, atomic_path, why_unreadable
from privclust.core.hdf5_layout import NEEDED_BY, arrays_in, text_attribute
from privclust.core.packages import require
from privclust.core.printable import excerpt

RUN_AGAIN = "; delete it and run again"
"""Advice of a reader if a run makes the file again."""

MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a reader's classes for parameters and arrays that they did not write."""

_SCHEMA_VERSION = 1
_HEADER = "header"
_DIGEST = "digest"
_SIGNATURE = b"\x89HDF"
_HEADER_TYPES = {"schema": int, "kind": str, "parameters": dict, "inputs": dict, "versions": dict}
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "h5py")


class FileError(Exception):
    """A file does not have the requested content; the message is one line."""


@dataclass(frozen=True)
class Contents:
    """The content of a file.

    Attributes
    ----------
    kind : str
        Kind of file, such as ``"sketch"``, ``"features"`` or ``"fit"``.
    parameters : dict
        Everything that determined the content, as JSON values.
    inputs : dict of str to str
        Digest of each file that was read to make this one, by its role.
    versions : dict of str to str
        Versions of the packages that computed the content.
    arrays : dict of str to ndarray
        The content; a name may contain ``/`` for groups.
    digest : str
        SHA-256 over header and arrays.
    """

    kind: str
    parameters: dict[str, Any]
    inputs: dict[str, str]
    versions: dict[str, str]
    arrays: dict[str, np.ndarray] = field(repr=False)
    digest: str


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that determine numerical results."""
    return {"privclust": __version__} | {name: metadata.version(name) for name in _PACKAGES}


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, np.ndarray],
    parameters: Mapping[str, Any],
    inputs: Mapping[str, str] | None = None,
) -> str:
    """Write a file atomically and return its digest.

    Parameters
    ----------
    path : path-like
        The file to write; its folder is created if needed.
    kind : str
        Kind of file.
    arrays : mapping of str to array-like
        Numbers, booleans or byte strings; text is stored as UTF-8 bytes of fixed length.
    parameters : mapping
        JSON values that determined the content.
    inputs : mapping of str to str, optional
        Digest of each file read, by role.

    Returns
    -------
    str
        The digest, to be recorded as input by files made from this one.

    Raises
    ------
    TypeError
        If an array holds Python objects.
    OSError
        If the disk refuses the file; then no file is left.
    ImportError
        If h5py is not installed.
    """
    hdf5 = require("h5py", NEEDED_BY)
    header = {
        "schema": _SCHEMA_VERSION,
        "kind": kind,
        "parameters": dict(parameters),
        "inputs": dict(inputs or {}),
        "versions": package_versions(),
    }
    header_text = canonical_json(header)
    storable = {name: _storable(name, arrays[name]) for name in sorted(arrays)}
    digest = _digest(header_text, storable)
    with atomic_path(path) as temporary, _DiskFile(temporary, "w+b") as disk:
        # only the latest format has room for headers above 64 KiB, which are attributes
        with hdf5.File(disk, "w", libver="latest") as file:
            file.attrs[_HEADER] = np.bytes_(header_text.encode())
            file.attrs[_DIGEST] = np.bytes_(digest.encode())
            for name, array in storable.items():
                # scalars cannot have filters, and empty arrays need none
                chunked = {} if array.ndim == 0 or array.size == 0 else _FILTERS
                file.create_dataset(name, data=array, track_times=False, **chunked)
        # after HDF5 has closed the file, which writes the rest
        disk.raise_failure()
    return digest


# level 1 is the fastest; shuffle puts bytes of equal weight together, which gzip packs better
_FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}


class _DiskFile(io.FileIO):
    """A file for HDF5 that survives a full disk, where HDF5 would crash with SIGSEGV."""

    _failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Accept all data, even if the disk does not."""
        left = memoryview(data).cast("B")
        size = len(left)
        while left and self._failure is None:
            try:
                # a disk that is almost full takes a part of the bytes
                left = left[super().write(left) :]
            except OSError as error:
                self._failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self._failure = self._failure or error
            return self.tell() if size is None else size

    def raise_failure(self) -> None:
        """Raise the first error of the disk, if there was one."""
        if self._failure is not None:
            raise self._failure


def read(
    path: str | os.PathLike[str],
    kind: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    names: Collection[str] | None = None,
    most_bytes: float = math.inf,
    remedy: str = "",
) -> Contents:
    """Read a file of `write`, after checks that it is complete and the requested one.

    Header, names, types and sizes are checked before any array is read. Refused are pipes and
    devices, links, arrays stored in other files, headers above 16 MiB, and arrays above 1,100 times
    their stored bytes, which `write` never makes.

    Parameters
    ----------
    path : path-like
        The file.
    kind : str
        The kind it must have.
    parameters : mapping, optional
        Parameters that its header must contain, key by key; others are ignored.
    names : collection of str, optional
        Allowed names of arrays; a file with another one is refused. None: any.
    most_bytes : float
        Largest total size of its arrays in memory.
    remedy : str
        Remedy at the end of messages; `RUN_AGAIN` if a run makes the file again.

    Raises
    ------
    FileError
        If the file is missing, truncated, altered, of another schema or kind, was made with other
        parameters, or is malformed in any way.
    ImportError
        If h5py is not installed.
    """
    hdf5 = require("h5py", NEEDED_BY)
    _check_path(path, kind, remedy)
    if_damaged = remedy or "; take another copy of it"
    try:
        # a shared disk may refuse locks, or keep those of a job that was killed
        with hdf5.File(path, "r", locking=False) as file:
            header_text, digest = (text_attribute(file, name) for name in (_HEADER, _DIGEST))
            header = _parsed(header_text)
            _check_header(path, header, kind, parameters or {}, remedy)
            stored = arrays_in(file, os.path.getsize(path), names, most_bytes)
            arrays = {name: np.asarray(array[()]) for name, array in stored.items()}
    except FileError:
        raise
    except Exception as error:  # a damaged file makes HDF5 fail in any way
        reason = excerpt((str(error) or type(error).__name__).splitlines()[0])
        raise FileError(f"{path}: not a whole artefact ({reason}){if_damaged}") from None
    if _digest(header_text, arrays) != digest:
        raise FileError(f"{path}: its content does not fit its digest{if_damaged}")
    decided = {name: header[name] for name in ("kind", "parameters", "inputs", "versions")}
    return Contents(**decided, arrays=arrays, digest=digest)


def _check_path(path: str | os.PathLike[str], kind: str, remedy: str) -> None:
    """Refuse files other than HDF5, without opening pipes and devices."""
    reason = why_unreadable(path)
    if reason:
        reason = "there is no such artefact" if reason == NO_SUCH_FILE else reason
        raise FileError(f"{path}: {reason}")
    with open(path, "rb") as file:
        if file.read(len(_SIGNATURE)) != _SIGNATURE:
            raise FileError(f"{path}: is no HDF5 file, as a {kind!r} is{remedy}")


def _parsed(text: str) -> dict[str, Any]:
    """Return a header, after checks that entries have their types and numbers are finite."""

    def finite(literal: str) -> float:
        """JSON has no infinity, but Python reads one from 1e999."""
        number = float(literal)
        if not math.isfinite(number):
            raise ValueError(f"its header holds {excerpt(literal)}")
        return number

    header = json.loads(text, parse_constant=finite, parse_float=finite)
    for name, kind in _HEADER_TYPES.items():
        # not isinstance: True is an int
        if not isinstance(header, dict) or type(header.get(name)) is not kind:
            raise ValueError(f"its header has no {name}, or one of another type")
    texts = [*header["inputs"].values(), *header["versions"].values()]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("its header has inputs or versions that are no text")
    return header


def _check_header(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    kind: str,
    parameters: Mapping[str, Any],
    remedy: str,
) -> None:
    if header["schema"] != _SCHEMA_VERSION:
        raise FileError(
            f"{path}: written with schema {excerpt(header['schema'])}, this version reads "
            f"{_SCHEMA_VERSION}{remedy}"
        )
    if header["kind"] != kind:
        raise FileError(f"{path}: holds a {excerpt(repr(header['kind']))} artefact, not a {kind!r}")
    for key, wanted in parameters.items():
        # as JSON, in which a tuple equals the stored list
        found, expected = canonical_json(header["parameters"].get(key)), canonical_json(wanted)
        if found != expected:
            raise FileError(
                f"{path}: was made with {key} = {excerpt(found)}, not {expected}{remedy}"
            )


def _storable(name: str, value: Any) -> np.ndarray:
    """Convert a value to a type with stored bytes determined by its content."""
    array = np.asarray(value)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    if array.dtype.kind not in "biufcS":
        raise TypeError(
            f"array {name!r}: cannot be stored as dtype {array.dtype}; give numbers or text"
        )
    return np.asarray(array, order="C")


def _digest(header_text: str, arrays: Mapping[str, np.ndarray]) -> str:
    sha = hashlib.sha256(header_text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        # equal bytes of another type or shape are other content
        sha.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(np.ascontiguousarray(array).data if array.size else b"")
    return sha.hexdigest()


def encode_text(texts: Sequence[str]) -> np.ndarray:
    """Return texts as an array of UTF-8 bytes, as artefacts store them."""
    return np.char.encode(np.asarray(texts, dtype=str), "utf-8")


def decode_text(texts: Iterable[bytes | str]) -> list[str]:
    """Return stored bytes, or text, as text."""
    return [text.decode() if isinstance(text, bytes) else str(text) for text in texts]
