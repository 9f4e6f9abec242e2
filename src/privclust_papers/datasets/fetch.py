"""Fetching of data sets: from sources to a verified file with a receipt, and to arrays.

The folder of a data set holds the raw file and ``receipt.json``, which states its source. A folder
of files in a mirror is packed into a deterministic tar archive. An existing receipt always matches
the file: it is removed before the file is replaced, and written afterwards. If no source has the
whole data set, the receipt names a substitute: a part of the data set, in a file of another name,
or generated data, without a file.
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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from privclust.core.files import atomic_path, write_text
from privclust.core.packages import require
from privclust_papers.datasets.network import (
    CHUNK,
    download,
    published_md5,
    unreachable,
    why_failed,
    worth_retrying,
)
from privclust_papers.datasets.registry import DataError, Dataset, Part, Source, Substitute
from privclust_papers.settings.dotted import load_object

RECEIPT = "receipt.json"
MIRROR_VARIABLE = "PRIVCLUST_DATA_MIRROR"

_NOT_PACKED = frozenset({"README.md", "SOURCE.md", "SHA256SUMS"})  # of a mirror's folder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Receipt:
    """Source of the content of a data set's folder.

    It does not depend on time, machine or local paths.
    """

    dataset: str  # the data set's name
    kind: str  # {"mirror", "url", "substitute"}: kind of source
    source: str  # description of the source; for a substitute, why it is not comparable
    location: str  # path relative to the mirror directory, address, or dotted path of the generator
    # name of the raw file; like the next two, None for a generated substitute
    file: str | None = None
    sha256: str | None = None  # the file's checksum
    bytes: int | None = None  # the file's size

    @property
    def is_substitute(self) -> bool:
        """Whether the content is a part of the data set or generated data."""
        return self.kind == "substitute"


class _Unavailable(Exception):
    """A source does not provide the file; the next one may."""


def resolve_mirror(
    config_value: str | os.PathLike[str] | None,
    environ: Mapping[str, str],
    default: str | os.PathLike[str] | None,
) -> Path | None:
    """Return the mirror directory: from the configuration, else the environment, else the default.

    Empty values are ignored, and so is a default that is not a directory. The environment variable
    is ``PRIVCLUST_DATA_MIRROR``. Raises a DataError if a named mirror is not a directory.
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
    """Put a data set's verified file and ``receipt.json`` into a folder, created if needed.

    Sources are tried in order, then the generated substitute. A source with only a part is a
    substitute as well, and skipped if substitutes are not allowed. A wrong file in the mirror is an
    error. A source without the file, or that cannot be reached or returns a wrong file, is skipped
    and named in the log and in the final message.

    `mirror` is a directory of local copies. `timeout` is the number of seconds to wait for a
    connection (all addresses are tried at once), and between two chunks of an answer. `retries` is
    the number of new attempts after a broken connection or a temporary server error. Raises a
    DataError if a mirror's file is wrong, the folder cannot be written, or there is neither a
    source nor an allowed substitute.
    """
    if dataset.content_digest is not None:
        load_object(dataset.content_digest)  # a wrong path is not the fault of a source
    fetching = _Fetching(dataset, Path(directory), mirror, timeout, retries)
    try:
        receipt = fetching.from_sources(
            source for source in dataset.sources if source.part is None or allow_substitutes
        )
        if receipt is None and dataset.substitute is not None and allow_substitutes:
            receipt = fetching.from_generator(dataset.substitute)
    except OSError as error:
        raise DataError(
            f"{dataset.name}: writing to {directory} failed ({error.strerror or error})",
            "make room or choose another folder",
        ) from error
    if receipt is None:
        raise _no_source(dataset, fetching.failures)
    if receipt.is_substitute:
        log.warning(
            "%s: NO SOURCE IS AVAILABLE, A SUBSTITUTE IS USED: %s Tried: %s",
            dataset.name,
            receipt.source,
            "; ".join(fetching.failures),
        )
    return receipt


def source_of(dataset: Dataset, receipt: Receipt) -> str:
    """Return the name of the data set, or words for its substitute.

    These begin with "substitute", or with "part" if rankings of methods on it are compared.
    """
    if not receipt.is_substitute:
        return dataset.name
    content = _described(dataset, receipt)
    has_orders = isinstance(content, Part) and content.orders
    return f"{'part of' if has_orders else 'substitute for'} {dataset.name}"


def load(
    dataset: Dataset, directory: str | os.PathLike[str]
) -> tuple[dict[str, np.ndarray], Receipt]:
    """Return the arrays of a fetched data set, or of its substitute, and the receipt.

    Raises a DataError if there is no valid receipt, the file does not match the receipt, or its
    reader fails although the checksum is right.
    """
    receipt = read_receipt(directory)
    if receipt.dataset != dataset.name:
        raise DataError(
            f"{directory}: holds {receipt.dataset}, not {dataset.name}", _fetch_again(directory)
        )
    content = _described(dataset, receipt)
    if content is None:
        raise DataError(
            f"{directory}: {receipt.location} is not a substitute that is declared for "
            f"{dataset.name}",
            _fetch_again(directory),
        )
    if isinstance(content, Substitute):
        return load_object(content.generator)(**content.parameters), receipt
    path = Path(directory) / content.file
    if not path.is_file() or _checksum(path) != receipt.sha256:
        raise DataError(f"{path}: missing or changed since it was fetched", _fetch_again(directory))
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
    """Return the receipt in a folder, or raise a DataError if it is missing or malformed."""
    path = Path(directory) / RECEIPT
    try:
        return Receipt(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no receipt", _fetch_again(directory)) from None
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a receipt ({error})", _fetch_again(directory)) from error


def _fetch_again(directory: str | os.PathLike[str]) -> str:
    return f"delete the folder {directory} and run again"


@dataclass(frozen=True)
class _Fetching:
    """State of a call of `fetch`, with its arguments."""

    dataset: Dataset
    directory: Path
    mirror: str | os.PathLike[str] | None
    timeout: tuple[float, float]
    retries: int
    failures: list[str] = field(default_factory=list)  # reasons for skipped sources

    def from_sources(self, sources: Iterable[Source]) -> Receipt | None:
        sources = list(sources)
        no_route: dict[str, str] | None = None
        for source in sources:
            try:
                if source.kind == "mirror":
                    return self._from_mirror(source)
                # Tested at the first address only: a file in the mirror needs no network.
                if no_route is None:
                    urls = (s.location for s in sources if s.kind == "url")
                    no_route = unreachable(urls, self.timeout[0])
                if source.location in no_route:
                    raise _Unavailable(no_route[source.location])
                return self._from_url(source)
            except _Unavailable as error:
                self.failures.append(f"{source.description} ({source.location}): {error}")
                log.info("%s: skipped %s", self.dataset.name, self.failures[-1])
        return None

    def from_generator(self, substitute: Substitute) -> Receipt:
        """Write a receipt for generated data, and remove any file of the data set."""
        self._clear()
        name, text = self.dataset.name, substitute.description
        return _write_receipt(
            self.directory, Receipt(name, "substitute", text, substitute.generator)
        )

    def _from_mirror(self, source: Source) -> Receipt:
        """Copy the file or pack the folder of the mirror; raise a DataError if it is wrong."""
        if self.mirror is None:
            raise _Unavailable("no mirror directory is set")
        original = Path(self.mirror) / source.location
        try:
            if source.is_folder:
                return self._keep(source, partial(_pack, original))
            with original.open("rb") as file:
                return self._keep(source, partial(_copy, file))
        except FileNotFoundError:
            raise _Unavailable(f"not in the mirror directory {self.mirror}") from None
        except (DataError, OSError) as error:
            is_disk = isinstance(error, OSError)
            # An error at another path, such as a full disk, is no fault of the mirror.
            if is_disk and not Path(error.filename or "").is_relative_to(original):
                raise
            raise DataError(
                f"{self.dataset.name}: the mirror's {'folder' if source.is_folder else 'file'} "
                f"{original} cannot be used: {error.strerror if is_disk else error.problem}",
                "replace it by a whole copy or remove it",
            ) from error

    def _from_url(self, source: Source) -> Receipt:
        """Download the file, with new attempts after temporary failures."""
        requests = require("requests", "downloads")
        name, url = self.dataset.name, source.location
        attempt = 0
        while True:
            log.info("%s: downloading %s", name, url)
            try:
                if source.record is not None:
                    md5 = published_md5(source.record, url.rpartition("/")[2], self.timeout)
                    # A new attempt at the download does not ask for the checksum again.
                    source = replace(source, md5=md5, record=None)
                return self._keep(source, lambda path: download(url, path, self.timeout))
            except requests.RequestException as error:
                reason = why_failed(error, self.timeout)
                if attempt >= self.retries or not worth_retrying(error):
                    raise _Unavailable(reason) from error
                log.info("%s: %s; trying again", name, reason)
                time.sleep(0.5 * 2**attempt)
                attempt += 1
            except DataError as error:
                raise _Unavailable(f"the download is not the data set: {error.problem}") from error

    def _keep(self, source: Source, obtain: Callable[[Path], object]) -> Receipt:
        """Obtain the file under a temporary name, verify and rename it, and write the receipt."""
        file = (source.part or self.dataset).file
        with atomic_path(self.directory / file) as temporary:
            obtain(temporary)
            sha256, size = _checksum(temporary), temporary.stat().st_size
            _verify(self.dataset, source, temporary, sha256)
            # Before the new file gets its name: a receipt never stands next to another file.
            self._clear()
        kind = source.kind if source.part is None else "substitute"
        name, text, where = self.dataset.name, source.description, source.location
        receipt = Receipt(name, kind, text, where, file, sha256, size)
        _write_receipt(self.directory, receipt)
        log.info("%s: from %s (%s)", name, text, where)
        return receipt

    def _clear(self) -> None:
        parts = [source.part.file for source in self.dataset.sources if source.part is not None]
        for name in (RECEIPT, self.dataset.file, *parts):
            (self.directory / name).unlink(missing_ok=True)


def _copy(file: BinaryIO, path: Path) -> None:
    """Copy an open file; errors of `shutil.copyfile` would name the source for a full disk."""
    with path.open("wb") as copy:
        shutil.copyfileobj(file, copy, CHUNK)


def _pack(folder: Path, path: Path) -> None:
    """Pack a folder's files into a tar archive that depends only on their names and contents."""
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*")}
    # USTAR has no extended headers, whose content may differ between versions of Python.
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            file = files[name]
            if not file.is_file() or file.name in _NOT_PACKED or file.name.startswith("."):
                continue
            member = tarfile.TarInfo(name)  # no date, no owner
            member.size = file.stat().st_size
            with file.open("rb") as content:
                archive.addfile(member, content)


def _verify(dataset: Dataset, source: Source, path: Path, sha256: str) -> None:
    """Raise a DataError unless the checksum of the file or of its contents is as expected."""
    # An MD5 decides only if no SHA-256 is known.
    if source.sha256 is None and source.md5 is not None:
        name, checksum, expected = "MD5", _checksum(path, "md5"), source.md5
    else:
        name, checksum, expected = "SHA-256", sha256, source.sha256
    if checksum == expected:
        return
    if dataset.content_digest is None or source.part is not None:
        raise DataError(f"its {name} is {checksum}, not {expected}")
    try:
        content_sha256 = load_object(dataset.content_digest)(path)
    except DataError as error:
        raise DataError(error.problem.removeprefix(f"{path}: ")) from error
    if content_sha256 != dataset.content_sha256:
        raise DataError(
            f"the SHA-256 of its contents is {content_sha256}, not {dataset.content_sha256}: "
            "it holds other data or only a part"
        )


def _checksum(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as file:
        digest = partial(hashlib.new, algorithm, usedforsecurity=False)
        return hashlib.file_digest(file, digest).hexdigest()


def _write_receipt(directory: Path, receipt: Receipt) -> Receipt:
    text = json.dumps(asdict(receipt), indent=2, ensure_ascii=False)
    write_text(directory / RECEIPT, text + "\n")
    return receipt


def _described(dataset: Dataset, receipt: Receipt) -> Dataset | Part | Substitute | None:
    """Return the data set, or the declared substitute, that a receipt names; None if undeclared."""
    if not receipt.is_substitute:
        return dataset
    declared: dict[tuple[str, str | None], Part | Substitute] = {
        (source.location, source.part.file): source.part
        for source in dataset.sources
        if source.part is not None
    }
    if dataset.substitute is not None:
        declared[dataset.substitute.generator, None] = dataset.substitute
    return declared.get((receipt.location, receipt.file))


def _no_source(dataset: Dataset, failures: list[str]) -> DataError:
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
        f"{dataset.name} is not available; tried: {'; '.join(failures)}", ", or ".join(advice)
    )
