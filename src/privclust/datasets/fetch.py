"""From a data set's sources to a verified file with a receipt, and from there to arrays.

A data set's folder holds the raw file and ``receipt.json``, which says where the file came from.
Where a mirror has a folder of files, the raw file is a tar archive of them, packed in one way only.
A receipt that is there fits the file: it is removed before the file is replaced and written after.
Where no source has the whole, the receipt names the substitute: a part of the data set, whose file
the folder then holds under a name of its own, or generated data, and no file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from privclust.core.dotted import load_object
from privclust.core.files import atomic_path, write_text
from privclust.core.packages import require
from privclust.datasets.network import CHUNK, download, unreachable, why_failed, worth_retrying
from privclust.datasets.registry import DataError, Dataset, Part, Source, Substitute

RECEIPT = "receipt.json"
MIRROR_VARIABLE = "PRIVCLUST_DATA_MIRROR"

_NOT_PACKED = frozenset({"README.md", "SOURCE.md", "SHA256SUMS"})  # of a mirror's folder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Receipt:
    """Where the content of a data set's folder came from.

    Nothing in it depends on the clock, the machine or a local path.

    Attributes
    ----------
    dataset : str
        The data set's name.
    kind : {"mirror", "url", "substitute"}
        Kind of source.
    source : str
        The source in words; for a substitute what it is and why it is not comparable.
    location : str
        Path relative to the mirror directory, address, or dotted path of the generator.
    file : str or None
        Name of the raw file; None if the substitute is generated, as the next two.
    sha256 : str or None
        The file's checksum.
    bytes : int or None
        The file's size.
    """

    dataset: str
    kind: str
    source: str
    location: str
    file: str | None = None
    sha256: str | None = None
    bytes: int | None = None

    @property
    def is_substitute(self) -> bool:
        """Whether a part of the data set or generated data take its place."""
        return self.kind == "substitute"


class _Unavailable(Exception):
    """A source does not have the file or does not give it; the next one may."""


def resolve_mirror(
    config_value: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    default: str | os.PathLike[str] | None,
) -> Path | None:
    """Return the mirror directory: the configured one, else the environment's, else the default.

    Parameters
    ----------
    config_value : path-like or None
        What config/config.yaml says; None or empty if nothing.
    environ : mapping of str to str
        Such as `os.environ`; its ``PRIVCLUST_DATA_MIRROR`` counts unless empty.
    default : path-like or None
        Taken if it is a directory.

    Returns
    -------
    Path or None
        None if there is no mirror.

    Raises
    ------
    DataError
        If a mirror was named that is not a directory; the message says where it was named.

    Examples
    --------
    >>> resolve_mirror(None, {"PRIVCLUST_DATA_MIRROR": "."}, None)
    PosixPath('.')
    """
    named = (
        ("mirror in the configuration", config_value),
        (f"the environment variable {MIRROR_VARIABLE}", environ.get(MIRROR_VARIABLE)),
    )
    for where, value in named:
        if value:
            path = Path(value).expanduser()
            if not path.is_dir():
                raise DataError(
                    f"{where} is {str(value)!r}, which is not a directory",
                    "name a directory that exists or leave it out",
                )
            return path
    return Path(default) if default and Path(default).is_dir() else None


def fetch(
    dataset: Dataset,
    directory: str | os.PathLike[str],
    mirror: str | os.PathLike[str] | None = None,
    allow_substitutes: bool = True,
    timeout: tuple[float, float] = (5.0, 20.0),
    retries: int = 2,
) -> Receipt:
    """Put a data set's verified file and a receipt into a folder.

    Sources are tried in order, then the generated substitute. A source that holds only a part is a
    substitute too, and left out if those are not allowed. A mirror's file that is there but wrong
    is an error; a source that does not have the file, cannot be reached or gives a wrong one is
    passed over, and named in the log and in the final message.

    Parameters
    ----------
    dataset : Dataset
        What to fetch.
    directory : path-like
        The data set's folder, made if needed. Gets the source's file and ``receipt.json``.
    mirror : path-like or None, default=None
        Directory of local copies, from `resolve_mirror`.
    allow_substitutes : bool, default=True
        Whether a declared substitute may take the data set's place.
    timeout : (float, float), default=(5.0, 20.0)
        Seconds to wait for a connection (all addresses are tried at once, so this is also how
        long a machine without a network waits), and between two pieces of an answer.
    retries : int, default=2
        How often a download that broke off or met a passing server error is begun again.

    Returns
    -------
    Receipt
        As written to ``receipt.json``.

    Raises
    ------
    DataError
        If a mirror's file is wrong, the folder cannot be written, or there is neither a source
        nor an allowed substitute.

    Examples
    --------
    >>> sets = load_datasets(
    ...     "config/datasets.yaml", "workflow/schemas/datasets.schema.yaml"
    ... )  # doctest: +SKIP
    >>> fetch(sets["hopkins155"], "data/raw/hopkins155").kind  # doctest: +SKIP
    'url'
    """
    directory = Path(directory)
    if dataset.content_digest is not None:
        load_object(dataset.content_digest)  # a wrong path is no source's fault
    failures: list[str] = []
    sources = [s for s in dataset.sources if s.part is None or allow_substitutes]
    receipt = _first_had(dataset, sources, directory, mirror, timeout, retries, failures)
    if receipt is None and dataset.substitute is not None and allow_substitutes:
        receipt = _generated(dataset, dataset.substitute, directory)
    if receipt is None:
        raise _nothing_had(dataset, failures)
    if receipt.is_substitute:
        log.warning(
            "%s: NO SOURCE CAN BE HAD, A SUBSTITUTE TAKES ITS PLACE: %s Tried: %s",
            dataset.name,
            receipt.source,
            "; ".join(failures),
        )
    return receipt


def load(
    dataset: Dataset, directory: str | os.PathLike[str]
) -> tuple[dict[str, np.ndarray], Receipt]:
    """Return the arrays of a fetched data set, or of its substitute if the receipt says so.

    Parameters
    ----------
    dataset : Dataset
        What was fetched.
    directory : path-like
        The folder that `fetch` filled.

    Returns
    -------
    arrays : dict of str to ndarray
        In the layout of the data set's reader.
    receipt : Receipt
        Where they come from.

    Raises
    ------
    DataError
        If there is no valid receipt, the file is not the one the receipt describes, or its reader
        cannot read it, although its checksum is right.
    """
    receipt = read_receipt(directory)
    if receipt.dataset != dataset.name:
        raise DataError(
            f"{directory}: holds {receipt.dataset}, not {dataset.name}", _again(directory)
        )
    content: Dataset | Part = dataset
    if receipt.is_substitute:
        substitute = _declared_substitute(dataset, receipt)
        if substitute is None:
            raise DataError(
                f"{directory}: {receipt.location} is not a substitute that is declared for "
                f"{dataset.name}",
                _again(directory),
            )
        if isinstance(substitute, Substitute):
            return load_object(substitute.generator)(**substitute.parameters), receipt
        content = substitute
    path = Path(directory) / content.file
    if not path.is_file() or _measure(path)[0] != receipt.sha256:
        raise DataError(f"{path}: missing or changed since it was fetched", _again(directory))
    try:
        return load_object(content.reader)(path), receipt
    except DataError as error:
        where = "" if str(path) in error.problem else f"{path}: "
        raise DataError(
            f"{where}{error.problem}",
            "its checksum is right, so another copy would be the same: correct in "
            f"config/datasets.yaml the reader of {dataset.name}, {content.reader}, or the checksum",
        ) from error


def read_receipt(directory: str | os.PathLike[str]) -> Receipt:
    """Read the receipt that `fetch` left in a folder.

    Raises
    ------
    DataError
        If there is none or it is not one.
    """
    path = Path(directory) / RECEIPT
    try:
        return Receipt(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no receipt", _again(directory)) from None
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a receipt ({error})", _again(directory)) from error


def _again(directory: str | os.PathLike[str]) -> str:
    """Say how a fetched data set is fetched again."""
    return f"delete the folder {directory} and run again"


def _first_had(
    dataset: Dataset,
    sources: Sequence[Source],
    directory: Path,
    mirror: str | os.PathLike[str] | None,
    timeout: tuple[float, float],
    retries: int,
    failures: list[str],
) -> Receipt | None:
    """Take the file from the first source that gives it; add to `failures` why others did not."""
    no_route: dict[str, str] | None = None
    for source in sources:
        try:
            if source.kind == "mirror":
                return _from_mirror(dataset, source, directory, mirror)
            if no_route is None:
                no_route = unreachable((s.location for s in sources if s.kind == "url"), timeout[0])
            if source.location in no_route:
                raise _Unavailable(no_route[source.location])
            return _from_url(dataset, source, directory, timeout, retries)
        except _Unavailable as error:
            failures.append(f"{source.description} ({source.location}): {error}")
            log.info("%s: passed over %s", dataset.name, failures[-1])
        except OSError as error:
            raise _cannot_write(dataset, directory, error) from error
    return None


def _from_mirror(
    dataset: Dataset, source: Source, directory: Path, mirror: str | os.PathLike[str] | None
) -> Receipt:
    """Copy the file or pack the folder of the mirror; what is there but wrong is an error."""
    if mirror is None:
        raise _Unavailable("no mirror directory is set")
    original = Path(mirror) / source.location
    try:
        if source.is_folder:
            return _keep(dataset, source, directory, lambda path: _pack(original, path))
        with original.open("rb") as file:
            return _keep(dataset, source, directory, lambda path: _copy(file, path))
    except FileNotFoundError:
        raise _Unavailable(f"not in the mirror directory {mirror}") from None
    except (DataError, OSError) as error:
        if isinstance(error, OSError) and not Path(error.filename or "").is_relative_to(original):
            raise
        reason = error.problem if isinstance(error, DataError) else error.strerror
        raise DataError(
            f"{dataset.name}: the mirror's {'folder' if source.is_folder else 'file'} {original} "
            f"cannot be used: {reason}",
            "replace it by a whole copy or remove it",
        ) from error


def _copy(file: BinaryIO, path: Path) -> None:
    """Copy an open file."""
    with path.open("wb") as copy:
        shutil.copyfileobj(file, copy, CHUNK)


def _pack(folder: Path, path: Path) -> None:
    """Pack a folder's files into a tar archive that their names and contents alone decide."""
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*")}
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            file = files[name]
            if not file.is_file() or file.name in _NOT_PACKED or file.name.startswith("."):
                continue
            member = tarfile.TarInfo(name)  # no date, no owner
            member.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(member, content)


def _from_url(
    dataset: Dataset,
    source: Source,
    directory: Path,
    timeout: tuple[float, float],
    retries: int,
) -> Receipt:
    """Download the file, beginning again after passing failures."""
    requests = require("requests", "downloads")
    attempt = 0
    while True:
        log.info("%s: downloading %s", dataset.name, source.location)
        try:
            return _keep(
                dataset, source, directory, lambda path: download(source.location, path, timeout)
            )
        except requests.RequestException as error:
            reason = why_failed(error, timeout)
            if attempt >= retries or not worth_retrying(error):
                raise _Unavailable(reason) from error
            log.info("%s: %s; trying again", dataset.name, reason)
            time.sleep(0.5 * 2**attempt)
            attempt += 1
        except DataError as error:
            raise _Unavailable(f"what it gave is not the data set: {error.problem}") from error


def _keep(
    dataset: Dataset, source: Source, directory: Path, obtain: Callable[[Path], object]
) -> Receipt:
    """Obtain the file under a temporary name, verify it, then give it its name and receipt."""
    file = (source.part or dataset).file
    with atomic_path(directory / file) as temporary:
        obtain(temporary)
        sha256, size = _measure(temporary)
        _verify(dataset, source, temporary, sha256)
        _clear(dataset, directory)
    receipt = Receipt(
        dataset=dataset.name,
        kind=source.kind if source.part is None else "substitute",
        source=source.description,
        location=source.location,
        file=file,
        sha256=sha256,
        bytes=size,
    )
    _write_receipt(directory, receipt)
    log.info("%s: from %s (%s)", dataset.name, source.description, source.location)
    return receipt


def _verify(dataset: Dataset, source: Source, path: Path, sha256: str) -> None:
    """Refuse a file of which neither the checksum nor that of its contents is the expected one."""
    if source.sha256 is not None and sha256 == source.sha256:
        return
    if source.sha256 is None and source.md5 is not None:
        md5 = _md5(path)
        if md5 == source.md5:
            return
        problem = f"its MD5 is {md5}, not {source.md5}"
    else:
        problem = f"its SHA-256 is {sha256}, not {source.sha256}"
    if dataset.content_digest is None or source.part is not None:
        raise DataError(problem)
    try:
        content_sha256 = load_object(dataset.content_digest)(path)
    except DataError as error:
        raise DataError(error.problem.removeprefix(f"{path}: ")) from error
    if content_sha256 != dataset.content_sha256:
        raise DataError(
            f"the SHA-256 of its contents is {content_sha256}, not {dataset.content_sha256}: "
            "it holds other data or only a part"
        )


def _measure(path: Path) -> tuple[str, int]:
    """Return the SHA-256 and size of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size


def _md5(path: Path) -> str:
    """Return the MD5 of a file: for damage, not for forgery."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _clear(dataset: Dataset, directory: Path) -> None:
    """Remove the receipt, then whatever an earlier fetch left."""
    parts = [source.part.file for source in dataset.sources if source.part is not None]
    for name in (RECEIPT, dataset.file, *parts):
        (directory / name).unlink(missing_ok=True)


def _write_receipt(directory: Path, receipt: Receipt) -> None:
    """Write the receipt as JSON with one key a line."""
    write_text(
        directory / RECEIPT, json.dumps(asdict(receipt), indent=2, ensure_ascii=False) + "\n"
    )


def _declared_substitute(dataset: Dataset, receipt: Receipt) -> Part | Substitute | None:
    """Return the substitute a receipt names, if it is one of the data set's."""
    if receipt.file is None:
        substitute = dataset.substitute
        return substitute if substitute and substitute.generator == receipt.location else None
    named = (receipt.location, receipt.file)
    parts = ((s.location, s.part) for s in dataset.sources if s.part is not None)
    return next((part for where, part in parts if (where, part.file) == named), None)


def _generated(dataset: Dataset, substitute: Substitute, directory: Path) -> Receipt:
    """Leave a receipt for generated data, and nothing that could be taken for the data set."""
    receipt = Receipt(dataset.name, "substitute", substitute.description, substitute.generator)
    try:
        _clear(dataset, directory)
        _write_receipt(directory, receipt)
    except OSError as error:
        raise _cannot_write(dataset, directory, error) from error
    return receipt


def _nothing_had(dataset: Dataset, failures: list[str]) -> DataError:
    """Say in one line what was tried and what to do."""
    advice = [
        f"put {f'the files of {dataset.name}' if source.is_folder else dataset.file} into a mirror "
        f"directory at {source.location} and name the directory by `mirror` in the configuration "
        f"or by {MIRROR_VARIABLE}"
        for source in dataset.sources
        if source.kind == "mirror" and source.part is None
    ]
    has_substitute = dataset.substitute is not None or any(s.part for s in dataset.sources)
    advice += ["try again later"] if any(s.kind == "url" for s in dataset.sources) else []
    advice += ["allow substitutes (`substitutes: true`)"] if has_substitute else []
    return DataError(
        f"{dataset.name} cannot be had; tried: {'; '.join(failures)}",
        ", or ".join(advice),
    )


def _cannot_write(dataset: Dataset, directory: Path, error: OSError) -> DataError:
    """Say that the data set's folder does not take the file."""
    return DataError(
        f"{dataset.name}: writing to {directory} failed ({error.strerror or error})",
        "make room or choose another folder",
    )
