"""The only reader and writer of the pipeline's HDF5 artefacts, and of its tables.

An artefact is written once by one job. Its bytes depend on nothing but its content: no clock, no
host name and no path is stored, and the library versions are those of the environment that wrote
it. It is written under a temporary name, flushed to the disk and renamed, so a killed job leaves
no file under the artefact's name; and it carries a digest of its header and arrays, so a file
that was truncated, edited or mixed up with another one is refused on reading. A table is text, and
has its digest in a file beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privclust import __version__
from privclust.packages import require

if TYPE_CHECKING:
    import h5py

SCHEMA_VERSION = 1
_HEADER = "header"
_DIGEST = "digest"
_WHAT = "artefacts and saved estimators"  # need HDF5
_AGAIN = "; delete it and run again"
_KEPT = frozenset({"mixture", "sketch"})  # files of a user, which no rule makes again
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "h5py")


class ArtefactError(Exception):
    """A file is not the artefact that its reader asked for; the message is one line."""


@dataclass(frozen=True)
class Artefact:
    """What an artefact holds.

    Attributes
    ----------
    kind : str
        What sort of artefact this is: ``"dataset"``, ``"shared"``, ``"fit"``, ``"metrics"``,
        ``"mixture"`` or ``"sketch"``.
    parameters : dict
        Everything that decided the content, as JSON values.
    inputs : dict of str to str
        Digest of each artefact that was read to make this one, by its role.
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


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN.

    Examples
    --------
    >>> canonical_json({"b": 1, "a": [1.5, None]})
    '{"a":[1.5,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def package_versions() -> dict[str, str]:
    """Return the versions of the packages whose code decides numerical results."""
    return {"privclust": __version__} | {name: metadata.version(name) for name in _PACKAGES}


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, np.ndarray],
    parameters: Mapping[str, Any],
    inputs: Mapping[str, str] | None = None,
) -> str:
    """Write an artefact atomically and return its digest.

    Parameters
    ----------
    path : path-like
        Where the artefact shall be; its folder is made if needed.
    kind : str
        What sort of artefact this is.
    arrays : mapping of str to array-like
        Numbers, booleans or byte strings; text is stored as UTF-8 bytes of fixed length.
    parameters : mapping
        JSON values that decided the content.
    inputs : mapping of str to str, optional
        Digest of each artefact read, by role.

    Returns
    -------
    str
        The artefact's digest, which later artefacts record as their input.

    Raises
    ------
    TypeError
        If an array holds Python objects.
    OSError
        If the disk does not take the file; then there is none.
    ImportError
        If h5py is not installed.
    """
    hdf5 = require("h5py", _WHAT)
    header = {
        "schema": SCHEMA_VERSION,
        "kind": kind,
        "parameters": dict(parameters),
        "inputs": dict(inputs or {}),
        "versions": package_versions(),
    }
    header_text = canonical_json(header)
    storable = {name: _storable(name, arrays[name]) for name in sorted(arrays)}
    digest = _digest(header_text, storable)
    with atomic_path(path) as temporary, _DiskFile(temporary, "w+b") as disk:
        with hdf5.File(disk, "w", libver="latest") as file:
            file.attrs[_HEADER] = np.bytes_(header_text.encode())
            file.attrs[_DIGEST] = np.bytes_(digest.encode())
            for name, array in storable.items():
                chunked = {} if array.ndim == 0 or array.size == 0 else _FILTERS
                file.create_dataset(name, data=array, track_times=False, **chunked)
        disk.raise_failure()
    return digest


_FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}


class _DiskFile(io.FileIO):
    """A file that HDF5 can write to on a full disk, where it would end the process by SIGSEGV."""

    _failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Take all of the data, whether or not the disk does."""
        left = memoryview(data).cast("B")
        size = len(left)
        while left and self._failure is None:
            try:
                left = left[super().write(left) :]
            except OSError as error:
                self._failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size, if the disk does."""
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
) -> Artefact:
    """Read an artefact and check that it is whole and the one that was asked for.

    Parameters
    ----------
    path : path-like
        The artefact.
    kind : str
        The kind it must have.
    parameters : mapping, optional
        Parameters that its header must hold, key by key; others are not looked at.

    Returns
    -------
    Artefact

    Raises
    ------
    ArtefactError
        If the file is missing, truncated, altered, of another schema or kind, or was made with
        other parameters.
    ImportError
        If h5py is not installed.
    """
    hdf5 = require("h5py", _WHAT)
    remedy = "; take another copy of it" if kind in _KEPT else _AGAIN
    try:
        with hdf5.File(path, "r", locking=False) as file:
            header_text = bytes(file.attrs[_HEADER]).decode()
            digest = bytes(file.attrs[_DIGEST]).decode()
            arrays = dict(_datasets(file))
    except FileNotFoundError:
        rule = "" if kind in _KEPT else "; run the rule that makes it"
        raise ArtefactError(f"{path}: there is no such artefact{rule}") from None
    except Exception as error:  # a damaged file makes HDF5 fail in any way
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ArtefactError(f"{path}: not a whole artefact ({reason}){remedy}") from None
    if _digest(header_text, arrays) != digest:
        raise ArtefactError(f"{path}: its content does not fit its digest{remedy}")
    header = json.loads(header_text)
    _check_header(path, header, kind, parameters)
    return Artefact(
        kind=header["kind"],
        parameters=header["parameters"],
        inputs=header["inputs"],
        versions=header["versions"],
        arrays=arrays,
        digest=digest,
    )


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path` that becomes `path` if the block ends well.

    The file is flushed to the disk before it is renamed, and the folder after, so that after a
    power cut there is either the whole file or none.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        temporary.chmod(0o644)
        temporary.replace(target)
        _sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically (UTF-8, Unix line ends)."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode())


def write_table(path: str | os.PathLike[str], text: str) -> None:
    """Write a table and its digest, each whole or not at all.

    The digest is the table's SHA-256, in a file ``<path>.sha256`` that ``sha256sum --check`` can
    read. It is written first, so that a table is never without one.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_text(f"{os.fspath(path)}.sha256", f"{digest}  {Path(path).name}\n")
    write_text(path, text)


def read_table(path: str | os.PathLike[str]) -> io.BytesIO:
    """Return the bytes of a table, to be parsed.

    Raises
    ------
    ArtefactError
        If the table or its digest is missing, or they do not fit.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(f"{folder}/trials.csv", "error\\n0.5\\n")
    ...     pd.read_csv(read_table(f"{folder}/trials.csv"))["error"].tolist()
    [0.5]
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise ArtefactError(f"{path}: there is no such table; run the rule that makes it") from None
    try:
        digest = Path(f"{os.fspath(path)}.sha256").read_bytes()
    except FileNotFoundError:
        raise ArtefactError(f"{path}: its digest, {path}.sha256, is missing{_AGAIN}") from None
    if digest != f"{hashlib.sha256(content).hexdigest()}  {Path(path).name}\n".encode():
        raise ArtefactError(f"{path}: its content does not fit its digest{_AGAIN}")
    return io.BytesIO(content)


def _sync(path: Path) -> None:
    """Flush a file or folder to the disk: a rename alone does not outlive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _storable(name: str, value: Any) -> np.ndarray:
    """Bring a value to a type whose stored bytes are determined by its content."""
    array = np.asarray(value)
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    if array.dtype.kind not in "biufcS":
        raise TypeError(
            f"array {name!r}: cannot be stored as dtype {array.dtype}; give numbers or text"
        )
    return np.asarray(array, order="C")


def _digest(header_text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over the header and every array's name, type, shape and bytes."""
    sha = hashlib.sha256(header_text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        sha.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        sha.update(np.ascontiguousarray(array).data if array.size else b"")
    return sha.hexdigest()


def _datasets(group: h5py.Group, prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Walk through all datasets below a group."""
    for key, item in group.items():
        if isinstance(item, Mapping):  # a group
            yield from _datasets(item, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", np.asarray(item[()])


def _check_header(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    kind: str,
    parameters: Mapping[str, Any] | None,
) -> None:
    """Refuse a header of another schema, kind or parameter."""
    remedy = "" if kind in _KEPT else _AGAIN
    if header["schema"] != SCHEMA_VERSION:
        raise ArtefactError(
            f"{path}: written with schema {header['schema']}, this version reads {SCHEMA_VERSION}"
            f"{remedy}"
        )
    if header["kind"] != kind:
        raise ArtefactError(f"{path}: holds a {header['kind']!r} artefact, not a {kind!r}")
    for key, wanted in (parameters or {}).items():
        found = header["parameters"].get(key)
        if canonical_json(found) != canonical_json(wanted):
            raise ArtefactError(
                f"{path}: was made with {key} = {canonical_json(found)}, "
                f"not {canonical_json(wanted)}{remedy}"
            )
