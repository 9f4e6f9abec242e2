"""Files of records that a command adds up, each record once."""

from __future__ import annotations

import filecmp
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from privclust.command.output import progress, say

_START_BYTES = 1 << 16
_LABEL_ROWS = 1 << 16
_SAMPLE_ROWS = 100_000  # of a public sample, more tell its scale no better


def check_columns(streams, n_features: int, needed_by: str) -> None:
    """Raise where a file has another number of columns, or two name theirs differently."""
    for stream in streams:
        if stream.n_features != n_features:
            raise ValueError(
                f"{stream.name}: has {stream.n_features} columns, {needed_by} {n_features}"
            )
    named = [stream for stream in streams if stream.header is not None]
    for stream in named[1:]:
        pairs = zip(named[0].header, stream.header, strict=True)
        differs = [i for i, (ours, theirs) in enumerate(pairs, start=1) if ours != theirs]
        if differs:
            raise ValueError(
                f"{stream.name}: column {differs[0]} has another name than in {named[0].name}; "
                "give all files the same columns in the same order"
            )


class Twins:
    """Refuses the same records under another format or compression, before anything leaves."""

    def __init__(self, sample) -> None:
        self._sample, self._names = None, {}
        if sample is not None:
            for _ in self.watched(sample):
                pass
            self._sample = sample.name

    def watched(self, stream):
        """Yield the chunks of a stream; raise a ValueError where its records were seen before."""
        import numpy as np

        sha, empty = hashlib.sha256(), True
        for chunk in stream:
            sha.update(np.ascontiguousarray(chunk, dtype="<f8"))
            empty = empty and not len(chunk)
            yield chunk
        if empty:  # nobody is to be told that two files are alike in that they hold no records
            return
        twin = self._names.setdefault(sha.digest(), stream.name)
        if twin is stream.name:
            return
        if twin == self._sample:
            reason = "of which the variance would tell without noise; name a sample that is public"
        else:
            reason = "whose records would be added twice and hidden half as well; name each once"
        raise ValueError(f"{stream.name}: holds the records of {twin}, {reason}")


def check_distinct(
    files: list[str], public_sample: str | None, counts: Callable[[str], bool]
) -> None:
    """Refuse records that would count twice, for which no noise is, and a private public sample."""
    by_start: dict[tuple[int, bytes], list[str]] = {}
    for file in filter(os.path.isfile, files):
        others = by_start.setdefault(_start(file), [])
        twin = next((other for other in others if filecmp.cmp(file, other, shallow=False)), None)
        if twin is not None and (os.path.samefile(file, twin) or counts(file)):
            raise ValueError(
                f"{file}: holds the same as {twin}; a record that is added twice is hidden half as "
                "well as is promised: name each file once"
            )
        others.append(file)
    if public_sample is not None and os.path.isfile(public_sample):
        for file in by_start.get(_start(public_sample), []):
            if filecmp.cmp(public_sample, file, shallow=False):
                raise ValueError(
                    f"{public_sample}: holds the same as {file}, of which the variance would tell "
                    "without noise; name a sample that is public"
                )


def _start(path: str) -> tuple[int, bytes]:
    """Return a file's size and how it begins: of thousands few are compared in full."""
    with open(path, "rb") as file:
        return os.path.getsize(path), hashlib.sha256(file.read(_START_BYTES)).digest()


def add_checked(streams, sketcher, seen: Twins | None) -> None:
    """Add up records; refuse those that the sketch cannot bear, and no records."""
    counts = [stream.n_rows for stream in streams]
    with progress(None if None in counts else sum(counts)) as advance:
        for stream in streams:
            for chunk in stream if seen is None else seen.watched(stream):
                sketcher.check(chunk, stream)
                sketcher.sums.add(chunk)
                advance(len(chunk))
    if sketcher.sums.n_samples == 0:
        raise ValueError(f"{', '.join(stream.name for stream in streams)}: no records")


def add_any(streams, sketcher, seen: Twins | None) -> None:
    """Add up any records, also none, without a word that depends on them or on their number."""
    for number, stream in enumerate(streams, 1):
        say(f"{stream.name}: file {number} of {len(streams)} is read")
        for chunk in stream if seen is None else seen.watched(stream):
            sketcher.sums.add(sketcher.borne(chunk))


def add_persons(
    streams, sketcher, seen: Twins | None, column: str, how: dict, *, takes_any: bool
) -> None:
    """Add up records by persons, told by a column; nothing is said of how many records they have.

    `how` says how files are read. With `takes_any` records are brought to what sums bear, and those
    without a name count as those of one person.
    """
    import numpy as np

    from privclust.privacy.groups import Groups
    from privclust.records.labels import LabelCounts, SecondReading

    say("all files are read twice, the first time to count")
    counts = LabelCounts(
        labels for stream in streams for labels in labels_of(stream.name, column, **how)
    )
    if not takes_any and not len(counts):
        raise ValueError(f"{', '.join(stream.name for stream in streams)}: no records")
    nobody = np.empty((0, sketcher.n_features))  # makes sums of groups also of no records
    sketcher.sums.add(nobody, Groups(np.empty(0, dtype=np.int64), 0))
    second = SecondReading(counts)
    for number, stream in enumerate(streams, 1):
        say(f"{stream.name}: file {number} of {len(streams)} is read")
        for chunk in stream if seen is None else seen.watched(stream):
            if not takes_any:
                sketcher.check(chunk, stream)
            rows = sketcher.borne(chunk) if takes_any else chunk
            sketcher.sums.add(rows, Groups(*second.sizes(stream.labels)))
    second.check_all_seen()


def labels_of(path: str, column: str, **how) -> Iterator:
    """Yield whose the records of a file are; of a Parquet file that column alone is read."""
    from privclust.records.columns import column_of
    from privclust.records.files import columnar, kind_of_file
    from privclust.records.streams import chunks, named

    stream = chunks(path, label=column, **how)
    if kind_of_file(path) not in ("parquet", "arrow"):
        for _ in stream:
            yield stream.labels
        return
    with columnar(path) as file:
        batches = file.batches(_LABEL_ROWS, [column])
        yield from named(Path(path), (column_of(batch.column(0)).keys() for batch in batches))


def public_stream(args):
    """Return the chunks of the public sample."""
    from privclust.records.files import kind_of_file
    from privclust.records.streams import chunks

    kind = kind_of_file(args.public_sample)
    how = {"chunk_size": _SAMPLE_ROWS, "delimiter": args.delimiter if kind == "text" else None}
    how["columns"] = args.columns if kind in ("parquet", "arrow") else None
    try:
        return chunks(args.public_sample, **how, label=args.groups)
    except ValueError:  # it may be without that column
        return chunks(args.public_sample, **how)


def public_sample(args, n_features: int):
    """Return the first records of a file (n, n_features)."""
    import numpy as np

    path, stream = args.public_sample, public_stream(args)
    if stream.n_features != n_features:
        raise ValueError(f"{path}: has {stream.n_features} columns, the records {n_features}")
    sample = next(stream, np.zeros((0, n_features)))
    if len(sample) == 0:
        raise ValueError(f"{path}: no records to estimate the variance on")
    return sample
