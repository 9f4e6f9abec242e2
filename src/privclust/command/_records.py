"""Files of records for a command, with each record used once."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from privclust.command.output import progress, say

_SAMPLE_ROWS = 100_000  # rows of a public sample that are used; more do not improve the scale


class Piece(NamedTuple):
    """Some records of a file.

    `rows` (n, n_features) have NaN for missing or unreadable entries. `persons` are those of the
    rows, None without an ID. `unread` flags missing and unreadable entries.
    """

    rows: Any
    persons: list[str | None] | None
    unread: Any


@dataclass
class Records:
    name: str
    n_features: int
    n_rows: int | None
    header: tuple[str, ...] | None
    pieces: Callable[[], Iterator[Piece]]


def records_of(path: str, args, encoder, groups: str | None) -> Records:
    """Return the records of a file, by an encoder of declared columns or as numbers."""
    from privclust.records.files import kind_of_file
    from privclust.records.streams import chunks

    is_text = kind_of_file(path) == "text"
    if encoder is not None:
        return _declared_records(path, args, encoder, groups)
    how = {
        "dataset": args.dataset,
        "delimiter": args.delimiter if is_text else None,
        "columns": args.columns,
        "label": groups,
        "strict": False,
    }
    stream = chunks(path, **how)

    def pieces() -> Iterator[Piece]:
        stream = chunks(path, **how)
        for rows in stream:
            yield Piece(rows, stream.labels, None)

    return Records(stream.name, stream.n_features, stream.n_rows, stream.header, pieces)


def _declared_records(path: str, args, encoder, groups: str | None) -> Records:
    from privclust.command._declared_columns import kind_of_ends, opened_table

    table = opened_table(path, args)
    for name, ends in encoder.columns.items():
        table.check_kind(name, kind_of_ends(ends))
    reads = [*encoder.columns, *([groups] if groups else [])]
    if groups:
        table.check_kind(groups, "persons")

    def pieces() -> Iterator[Piece]:
        for part in table.columns(reads):
            persons = part[groups].keys() if groups else None
            yield Piece(encoder.transform(part), persons, encoder.unread(part))

    return Records(str(path), len(encoder.bounds_[0]), table.n_rows, tuple(reads), pieces)


def check_columns(files: list[Records], n_features: int, needed_by: str) -> None:
    for file in files:
        if file.n_features != n_features:
            raise ValueError(
                f"{file.name}: has {file.n_features} columns, {needed_by} {n_features}"
            )
    named = [file for file in files if file.header is not None]
    for file in named[1:]:
        pairs = zip(named[0].header, file.header, strict=True)
        differs = [i for i, (ours, theirs) in enumerate(pairs, start=1) if ours != theirs]
        if differs:
            raise ValueError(
                f"{file.name}: column {differs[0]} has another name than in {named[0].name}; "
                "give all files the same columns in the same order"
            )


class Twins:
    """Refuse a copy of a file's records, in any format or compression, before any release.

    A copy has the same records in the same order, as floats of 64 bits. Parts of a file, files with
    rounded numbers and several files in one are not found. Files are compared with the public
    sample, and with `between_files` with one another. With groups they need not be: the mean of a
    person's records stays the same if the records are repeated.
    """

    def __init__(self, sample: Records | None, *, between_files: bool) -> None:
        self._sample, self._names, self._between_files = None, {}, between_files
        if sample is not None:
            self.check([sample])
            self._sample = sample.name

    def watched(self, file: Records) -> Iterator[Piece]:
        """Yield the pieces of a file; raise a ValueError if its records were seen before."""
        import numpy as np

        sha, empty = hashlib.sha256(), True
        for piece in file.pieces():
            # NaN and zero have several forms, which depend on the format
            rows = np.where(np.isnan(piece.rows), np.nan, piece.rows) + 0.0
            sha.update(np.ascontiguousarray(rows, dtype="<f8").data)
            empty = empty and not len(piece.rows)
            yield piece
        if empty:  # a message that two files are alike would reveal that both are empty
            return
        twin = self._names.get(sha.digest())
        if self._between_files or self._sample is None:
            self._names.setdefault(sha.digest(), file.name)
        if twin is None:
            return
        if twin == self._sample:
            reason = "and the variance would reveal them without noise; name a public sample"
        else:
            reason = "and records that are added twice are protected half as well; name each once"
        raise ValueError(f"{file.name}: has the same records as {twin}, {reason}")

    def check(self, files: list[Records]) -> None:
        """Read files only to raise that ValueError."""
        for file in files:
            for _ in self.watched(file):
                pass


def check_distinct(paths: list[str], public_sample: str | None) -> None:
    """Refuse a file that is named twice, whatever it contains; `Twins` finds copies."""
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        if twin := seen.get(inode := _inode(path)):
            raise ValueError(
                f"{path}: is the same file as {twin}; a record that is added twice has half the "
                "promised protection: name each file once"
            )
        seen[inode] = path
    if public_sample is not None and (twin := seen.get(_inode(public_sample))):
        raise ValueError(
            f"{public_sample}: is the same file as {twin}, and the variance would reveal its "
            "records without noise; name a public sample"
        )


def _inode(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


class Tally:
    """Numbers of records left out, and of missing and unreadable entries of each column.

    `n_left_out` and `unread` (2, n_columns) count records; `unread` is in units of 2^-30.
    """

    def __init__(self, n_columns: int | None) -> None:
        import numpy as np

        self.n_rows = self.n_left_out = 0
        self.unread = None if n_columns is None else np.zeros((2, n_columns), dtype=np.int64)

    def add(self, piece: Piece, n_left_out: int, units) -> None:
        import numpy as np

        self.n_rows += len(piece.rows)
        self.n_left_out += n_left_out
        if self.unread is not None:
            self.unread += np.stack([units @ flags.astype(np.int64) for flags in piece.unread])


def add_records(
    files: list[Records], sketcher, seen: Twins | None, tally: Tally, *, tells_number: bool
) -> None:
    """Add up the counting rows of all files; print their number only with `tells_number`."""
    import numpy as np

    from privclust.privacy.groups import UNIT_BITS, counted_rows

    total = None if None in (counts := [file.n_rows for file in files]) else sum(counts)
    with progress(total) if tells_number else contextlib.nullcontext() as advance:
        for number, file in enumerate(files, 1):
            if advance is None:
                say(f"{file.name}: file {number} of {len(files)} is read")
            for piece in file.pieces() if seen is None else seen.watched(file):
                rows, _, n_left_out = counted_rows(piece.rows, strict=False)
                sketcher.add(rows, None, file)
                tally.add(piece, n_left_out, np.full(len(piece.rows), 1 << UNIT_BITS))
                if advance is not None:
                    advance(len(piece.rows))


def add_persons(files: list[Records], sketcher, seen: Twins | None, tally: Tally) -> None:
    """Add up records by persons, without printing their numbers of records."""
    import numpy as np

    from privclust.privacy.groups import Groups, counted_rows, whole_rows
    from privclust.records.arrow import GroupedRows
    from privclust.records.labels import LabelCounts, SecondReading

    say("all files are read twice, the first time to count")
    counts, of_all = LabelCounts(), LabelCounts()
    for piece in (piece for file in files for piece in file.pieces()):
        counts.add(piece.persons, whole_rows(piece.rows))
        if tally.unread is not None:
            of_all.add(piece.persons, np.ones(len(piece.rows), dtype=bool))
    nobody = np.empty((0, sketcher.n_features))  # sums without records are also by groups
    sketcher.sums.add(nobody, Groups(np.empty(0, dtype=np.int64), 0))
    second, every = SecondReading(counts), SecondReading(of_all)
    for number, file in enumerate(files, 1):
        say(f"{file.name}: file {number} of {len(files)} is read")
        for piece in file.pieces() if seen is None else seen.watched(file):
            is_whole = whole_rows(piece.rows)
            counted = [
                who if is_one else None for who, is_one in zip(piece.persons, is_whole, strict=True)
            ]
            rows, groups, n_left_out = counted_rows(
                GroupedRows(piece.rows, *second.sizes(counted)), strict=False
            )
            sketcher.add(rows, groups, file)
            units = None
            if tally.unread is not None:
                units = Groups(every.sizes(piece.persons)[0], 0).units
            tally.add(piece, n_left_out, units)
    second.check_all_seen()
    every.check_all_seen()


def public_sample(args, encoder) -> Records:
    """Return the public sample; it may lack the column of persons."""
    try:
        return records_of(args.public_sample, args, encoder, args.groups)
    except ValueError:
        return records_of(args.public_sample, args, encoder, None)


def first_rows(sample: Records):
    """Return the first rows (n, n_features) without NaN of a public sample."""
    import numpy as np

    from privclust.privacy.groups import whole_rows

    kept, n_kept = [np.zeros((0, sample.n_features))], 0
    for piece in sample.pieces():
        kept.append(piece.rows[whole_rows(piece.rows)])
        n_kept += len(kept[-1])
        if n_kept >= _SAMPLE_ROWS:
            break
    if n_kept == 0:
        raise ValueError(f"{sample.name}: no records to estimate the variance on")
    return np.concatenate(kept)[:_SAMPLE_ROWS]
