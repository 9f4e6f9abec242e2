"""Kinds of files by their suffix, and folders of files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from privclust.records.errors import ReadingError

COMPRESSIONS = (".gz", ".bz2", ".xz")
"""Suffixes of compressed texts that are read as well."""
TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".parq", ".pq")
_SHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_KINDS = {"text": TEXT, "parquet": PARQUET}


def kind_of_file(path: str | os.PathLike[str]) -> str:
    """Return the kind of a file by its suffix: "text", "parquet" or "".

    Raises
    ------
    ReadingError
        If it is a spreadsheet, which must be saved in another format.

    Examples
    --------
    >>> kind_of_file("day.CSV.gz"), kind_of_file("day.pq"), kind_of_file("day")
    ('text', 'parquet', '')
    """
    suffix = _suffix(path)
    if suffix in _SHEETS:
        raise ReadingError(
            f"{os.fspath(path)}: is a spreadsheet; save the sheet as CSV (UTF-8) or Parquet, in "
            "Excel by File, Save As, CSV UTF-8"
        )
    return next((kind for kind, suffixes in _KINDS.items() if suffix in suffixes), "")


def delimiter_of(path: str | os.PathLike[str], given: str | None) -> str:
    """Return the delimiter of a text file: the given one, or that of its suffix."""
    return given or ("\t" if _suffix(path) == ".tsv" else ",")


def _suffix(path: str | os.PathLike[str]) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] in COMPRESSIONS and suffixes[-2] in TEXT:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def files_of(source: str | os.PathLike[str]) -> list[str]:
    """Return the Parquet files of a folder, the files of a pattern, or a path itself, sorted.

    Links to folders are followed, each folder once.

    Raises
    ------
    ReadingError
        If a folder contains none, or a pattern matches none.

    Examples
    --------
    >>> files_of("day.parquet")
    ['day.parquet']
    """
    path = os.fspath(source)
    if os.path.isdir(path):
        files, what = list(_inside(path)), "is a directory without Parquet files"
    # the name of an existing file may contain brackets, as a pattern does
    elif glob.has_magic(path) and not os.path.exists(path):
        files, what = glob.glob(path, recursive=True), "no file is named so"
    else:
        return [path]
    if not files:
        raise ReadingError(f"{path}: {what}")
    return sorted(files)


def _inside(folder: str) -> Iterator[str]:
    """Yield the Parquet files in a folder and in its folders, except hidden ones."""
    seen = {os.path.realpath(folder)}
    for place, folders, files in os.walk(folder, followlinks=True):
        kept = []
        for name in folders:
            real = os.path.realpath(os.path.join(place, name))
            # Spark and Hadoop give such names to metadata and to unfinished files
            if name[0] not in "._" and real not in seen:
                seen.add(real)
                kept.append(name)
        # in place: os.walk enters the folders that are left in its list
        folders[:] = kept
        yield from (
            os.path.join(place, name)
            for name in files
            if name[0] not in "._" and os.path.splitext(name)[1].lower() in PARQUET
        )
