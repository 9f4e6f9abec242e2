"""Comparison of two runs: names of the verdicts and numbers that differ."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pandas as pd

from privclust.core.printable import excerpt

_VERDICTS = "verdicts.csv"
_TABLE = re.compile(r"targets/([^/]+)/\1\.csv")
_IN_A_CRATE = re.compile(r"results/[^/]+/verdicts\.csv")
TIMES = ("cpu_seconds",)  # columns (and below, metrics) that are times
TIMED_METRICS = ("cpu_s", "of_reference")


class NoRunError(ValueError):
    """Raised if a path is not a finished run, or cannot be read."""


@dataclass(frozen=True)
class Run:
    """The verdicts and tables of a run; all cells are texts."""

    name: str
    verdicts: pd.DataFrame
    tables: dict[str, pd.DataFrame]  # by target


@dataclass(frozen=True)
class Difference:
    """An entry that differs between two runs; None if a run lacks it."""

    name: str
    before: str | None
    after: str | None


@dataclass
class RunComparison:
    """The differences between two runs."""

    # numbers a, b are equal if abs(a - b) is at most this times the larger of abs(a) and abs(b)
    relative: float = 0.0
    # by the id of the claim or of the printed number
    verdicts: list[Difference] = field(default_factory=list)
    # cells of the targets' tables, and rows, columns and targets that one of the runs lacks, named
    # ``<target>[<key of the row>].<column>``
    numbers: list[Difference] = field(default_factory=list)
    n_verdicts: int = 0  # number compared
    n_numbers: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether there are no differences."""
        return not self.verdicts and not self.numbers

    def are_equal(self, a: str, b: str) -> bool:
        """Return whether two cells are equal, for numbers within the tolerance."""
        if a == b:
            return True
        if "_" in a or "_" in b:  # float accepts underscores
            return False
        try:
            one, other = float(a), float(b)
        except ValueError:
            return False
        allowed = self.relative * max(abs(one), abs(other))
        # an infinite number would make any relative tolerance infinite
        return one == other or abs(one - other) <= allowed < float("inf")


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read a finished run: its folder ``results/<effort>``, or its archive (a crate, ``.zip``).

    Raises a NoRunError, with the file and the reason, if there is no run, or a table is damaged.
    """
    path = Path(path)
    if path.is_dir():
        return _read(path, _files_of(path), lambda name: (path / name).read_bytes())
    if not path.is_file():
        raise NoRunError(f"{path}: there is no such folder or file")
    try:
        with zipfile.ZipFile(path) as crate:
            found = [name for name in crate.namelist() if _IN_A_CRATE.fullmatch(name)]
            if len(found) != 1:
                raise NoRunError(f"{path}: contains no run; it must be an archive of one")
            top = PurePosixPath(found[0]).parent
            names = {n.removeprefix(f"{top}/") for n in crate.namelist() if n.startswith(f"{top}/")}
            return _read(path, names, lambda name: crate.read(f"{top}/{name}"))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        if not zipfile.is_zipfile(path):
            raise NoRunError(f"{path}: is neither a folder of results nor a .zip archive") from None
        reason = excerpt(error)
        raise NoRunError(f"{path}: is damaged ({reason}); take another copy") from None


def read_cells(content: bytes) -> pd.DataFrame:
    """Return all cells of a CSV table as texts; a ValueError if the lengths of rows differ.

    CSV readers differ in how they align longer rows, and so would show different numbers.
    """
    if not content:
        return pd.DataFrame()
    try:
        head, *rows = csv.reader(io.StringIO(content.decode(), newline=""), strict=True)
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if any(len(row) != len(head) for row in rows):
        raise ValueError("a row has more or fewer cells than the header")
    # number repeated names, such as n for both an axis and a count
    names = [f"{name}.{n}" if (n := head[:i].count(name)) else name for i, name in enumerate(head)]
    if len(set(names)) < len(names):
        raise ValueError("two of its columns have the same name")
    return pd.DataFrame(rows, columns=names, dtype=object)


def compare_runs(before: Run, after: Run, relative: float = 0.0) -> RunComparison:
    """Compare the verdicts of two runs, and the numbers behind all of their figures and tables.

    The key of a row is the shortest prefix of the columns that is unique in both tables. Times are
    left out.

    Examples
    --------
    >>> import pandas as pd
    >>> verdicts = pd.DataFrame({"id": ["c"], "verdict": ["partly"]})
    >>> table = pd.DataFrame({"method": ["a", "b"], "mean": ["0.5", "1"]})
    >>> one = Run("one", verdicts, {"t": table})
    >>> two = Run("two", verdicts, {"t": table.assign(mean=["0.5004", "1"])})
    >>> [difference.name for difference in compare_runs(one, two).numbers]
    ['t[method=a].mean']
    >>> compare_runs(one, two, relative=0.001).is_equal
    True
    """
    outcome = RunComparison(relative)
    verdicts = [
        dict(zip(run.verdicts["id"], run.verdicts["verdict"], strict=True))
        for run in (before, after)
    ]
    outcome.n_verdicts = len(verdicts[0].keys() & verdicts[1].keys())
    outcome.verdicts = list(_differences(verdicts[0], verdicts[1], lambda a, b: a == b))
    for target in sorted(before.tables.keys() | after.tables.keys()):
        tables = before.tables.get(target), after.tables.get(target)
        if tables[0] is None or tables[1] is None:
            outcome.numbers.append(Difference(target, *(_presence(t) for t in tables)))
            continue
        compare_tables(target, tables, outcome)
    return outcome


def _read(path: Path, names: set[str], content: Callable[[str], bytes]) -> Run:
    if _VERDICTS not in names:
        raise NoRunError(f"{path}: has no {_VERDICTS}; it must be results/<effort> of a whole run")

    def table(name: str) -> pd.DataFrame:
        try:
            data = content(name)
            if f"{name}.sha256" in names:
                digest = content(f"{name}.sha256").decode().partition(" ")[0]
                if hashlib.sha256(data).hexdigest() != digest:
                    raise NoRunError(f"{path}: {name} does not match its checksum; run it again")
            return read_cells(data)
        except (OSError, ValueError) as error:
            if isinstance(error, NoRunError):
                raise
            reason = " ".join(str(error).split())
            raise NoRunError(f"{path}: {name} cannot be read ({reason})") from None

    verdicts = table(_VERDICTS)
    if not {"id", "verdict"} <= set(verdicts):
        raise NoRunError(f"{path}: {_VERDICTS} has no columns id and verdict")
    if verdicts["id"].duplicated().any():
        raise NoRunError(f"{path}: {_VERDICTS} has two verdicts with the same id")
    found = [match for name in sorted(names) if (match := _TABLE.fullmatch(name))]
    return Run(str(path), verdicts, {match[1]: table(match[0]) for match in found})


def _files_of(folder: Path) -> set[str]:
    tables = [folder / _VERDICTS, *folder.glob("targets/*/*.csv")]
    files = [file for table in tables for file in (table, Path(f"{table}.sha256"))]
    return {file.relative_to(folder).as_posix() for file in files if file.is_file()}


def compare_tables(
    target: str, tables: tuple[pd.DataFrame, pd.DataFrame], outcome: RunComparison
) -> None:
    """Compare two tables of a target cell by cell, without times; add differences to `outcome`."""
    times = [name for name in (*TIMES, *TIMED_METRICS) if all(name in table for table in tables)]
    before, after = (_untimed(table, times) for table in tables)
    n_times = [len(table) - len(left) for table, left in zip(tables, (before, after), strict=True)]
    if n_times[0] != n_times[1]:
        outcome.numbers.append(Difference(f"{target}, rows of times", *map(str, n_times)))
    columns = [name for name in before if name in set(after)]
    for name in [*before, *after]:
        if name not in columns:
            presence = (_presence(table if name in table else None) for table in (before, after))
            outcome.numbers.append(Difference(f"{target}.{name}", *presence))
    keys = _key(before[columns], after[columns])
    rows = [_by_key(table, keys) for table in (before[columns], after[columns])]
    for key in dict.fromkeys([*rows[0], *rows[1]]):
        name = f"{target}[{key}]"
        if key not in rows[0] or key not in rows[1]:
            presence = (_presence(of_run.get(key)) for of_run in rows)
            outcome.numbers.append(Difference(name, *presence))
            continue
        one, other = (
            {f"{name}.{column}": of_run[key][column] for column in columns if column not in keys}
            for of_run in rows
        )
        outcome.n_numbers += len(one)
        outcome.numbers += _differences(one, other, outcome.are_equal)


def _differences(
    before: Mapping[str, str], after: Mapping[str, str], is_equal: Callable[[str, str], bool]
) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *after]):
        a, b = before.get(name), after.get(name)
        if a is None or b is None or not is_equal(a, b):
            yield Difference(name, a, b)


def _untimed(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return a table without times: given columns, and rows of timed metrics."""
    table = table.drop(columns=columns)
    return table[~table["metric"].isin(TIMED_METRICS)] if "metric" in table else table


def _key(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """Return the shortest prefix of the columns that is a unique key of both tables, or none.

    Columns with different values in the two tables are left out: they are measured, not keys.
    """
    columns = list(before)
    if len(before) == len(after):
        columns = [name for name in columns if sorted(before[name]) == sorted(after[name])]
    for count in range(1, len(columns) + 1):
        names = columns[:count]
        if not before.duplicated(names).any() and not after.duplicated(names).any():
            return names
    return []


def _by_key(table: pd.DataFrame, keys: list[str]) -> dict[str, dict[str, str]]:
    """Return the rows of a table by their keys, or by their numbers if there are no keys."""
    rows = table.to_dict("records")
    if not keys:
        return {f"row {number}": row for number, row in enumerate(rows, 1)}
    return {", ".join(f"{key}={row[key]}" for key in keys): row for row in rows}


def _presence(thing: object) -> str | None:
    return None if thing is None else "there"
