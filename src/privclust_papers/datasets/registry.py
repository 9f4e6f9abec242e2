"""config/datasets.yaml as frozen dataclasses, checked against its schema."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from privclust_papers.settings.config import load_validated


class DataError(Exception):
    """A data set or its description cannot be used; the message is one line.

    Advice follows the problem after a semicolon.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        self.problem = " ".join(problem.split())
        super().__init__(f"{self.problem}; {advice}" if advice else self.problem)


def damaged(where: object, problem: str) -> DataError:
    """Return the error of readers, with the advice to replace the file.

    `privclust_papers.datasets.fetch` replaces the advice, since it knows the checksum.
    """
    return DataError(f"{where}: {problem}", "replace the file by a whole copy")


@dataclass(frozen=True)
class Part:
    """File and reader of a part of a data set that is a substitute for the whole."""

    file: str  # name of the raw file, without a folder; not that of the whole
    # dotted path of a function that returns arrays in the layout of the data set's reader
    reader: str
    # whether rankings of methods on it may be compared with those on the whole: it has the same
    # images, reduced in size. Printed numbers are not compared.
    orders: bool = False


@dataclass(frozen=True)
class Source:
    """One source of a data set's file, or of a part of it."""

    kind: str  # {"mirror", "url"}: A local directory of copies, or an address
    # path relative to the mirror directory, or an http(s) address. A path that ends in ``/`` is a
    # folder, whose files are packed into one tar archive.
    location: str
    description: str  # the source in words, for the receipt and for messages
    # checksum of the file itself, or of the archive of a folder, if known
    sha256: str | None = None
    md5: str | None = None  # the same where only an MD5 was published
    # address of the Zenodo record, as JSON, with the MD5; it is requested at the download
    record: str | None = None
    # not None if the source holds only a part of the data set: it is then a declared substitute,
    # and the description explains why results on it are not comparable
    part: Part | None = None

    @property
    def is_folder(self) -> bool:
        """Whether the source is a folder of files in the mirror."""
        return self.kind == "mirror" and self.location.endswith("/")


@dataclass(frozen=True)
class Substitute:
    """A generator that replaces a data set if no source is available."""

    # dotted path of a function that returns arrays in the reader's layout, all drawn from its
    # ``seed``
    generator: str
    parameters: Mapping[str, Any]  # its keyword arguments
    description: str  # of the data, and why results are not comparable


@dataclass(frozen=True)
class Dataset:
    """One entry of config/datasets.yaml."""

    name: str  # the entry's key
    title: str
    terms: str  # the licence, as far as known
    citation: str  # the work to cite
    homepage: str | None  # address of a page about it
    file: str  # name of the raw file, without a folder
    reader: str  # dotted path of a function ``reader(path) -> dict of str to ndarray``
    # dotted path of a function ``digest(path) -> str``: a checksum of the content, however packed
    content_digest: str | None
    content_sha256: str | None  # the required result of that function
    sources: tuple[Source, ...]  # in the order in which they are tried
    substitute: Substitute | None  # None if there is no generated substitute
    # memory of jobs that read the whole data set, in MB; None for the default
    memory_mb: int | None = None


def load_datasets(
    path: str | os.PathLike[str], schema: str | os.PathLike[str]
) -> dict[str, Dataset]:
    """Return the data sets described in a file, such as ``config/datasets.yaml``, by name.

    `schema` is its JSON schema, such as ``workflow/schemas/datasets.schema.yaml``.

    Raises a ConfigError if the file cannot be read, is not YAML or violates the schema. The message
    names the file, the key, its value and the allowed values.
    """
    entries = load_validated(path, schema)
    return {name: _dataset(name, entry) for name, entry in entries.items()}


def _dataset(name: str, entry: Mapping[str, Any]) -> Dataset:
    optional = dict.fromkeys(
        ("homepage", "content_digest", "content_sha256", "substitute", "memory_mb")
    )
    fields = {"name": name, **optional, **entry}
    fields["sources"] = tuple(
        Source(**source | {"part": Part(**source["part"]) if "part" in source else None})
        for source in entry["sources"]
    )
    if substitute := entry.get("substitute"):
        parameters = MappingProxyType(dict(substitute.get("parameters", {})))
        fields["substitute"] = Substitute(**substitute | {"parameters": parameters})
    return Dataset(**fields)
