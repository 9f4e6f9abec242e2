"""``privclust sketch``: files of records reduced to one small sketch."""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from privclust.command._arguments import (
    add_command,
    delimiter,
    positive_integer,
    positive_number,
    probability,
    seed,
)
from privclust.command._output import (
    add_output,
    check_free,
    check_output,
    check_readable,
    check_write,
    count,
    progress,
    say,
    say_privacy,
    written,
)

_HEADER_BYTES = 1 << 16  # of a sketch's file, beside its arrays
_ANY_RECORD = "what is no number counts as 0, what is too large for the frequencies as the largest"
_ERRORS_TELL = "an error for a record that is no number or too large is outside the guarantee"
_NO_TWINS = "that no two of the files hold the same is taken for public"
_SAMPLE_ROWS = 100_000  # of a public sample, more tell its scale no better
_WITHIN = 1.0 - 2.0**-20  # of a bound: still within it when it is rounded to float32
_LAWS = ("adapted_radius", "folded_gaussian", "gaussian", "log_uniform")


def add_to(commands) -> None:
    """``privclust sketch``."""
    parser = add_command(
        commands,
        "sketch",
        _run,
        summary="reduce files of records to one small sketch",
        description="Reduce files of records (HDF5, Parquet, CSV, .npy; of any size) to a sketch. "
        "With --epsilon it is private; without, it is NOT and must be kept as the data.",
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="records, one a row")
    add_output(add, "SKETCH", "file to write (.h5)", required=True)
    add(
        "--delimiter",
        type=delimiter,
        metavar="C",
        help="character between the fields of CSV files, or 'tab'; default: ,",
    )
    add("--dataset", metavar="NAME", help="data set within HDF5 files, if there are several")
    add("--threads", type=positive_integer, default=_cores(), metavar="N", help="default: all")
    group = parser.add_argument_group(
        "frequencies", "Sketches can be merged if made with the same: use --like for all but one."
    )
    add = group.add_argument
    add("--like", metavar="SKETCH", help="use the frequencies and measurements of this sketch")
    add("--frequencies", type=positive_integer, metavar="M", help="how many, such as 10 k d")
    add("--law", choices=_LAWS, help=f"default: {_LAWS[0]}")
    add(
        "--variance",
        type=positive_number,
        metavar="V",
        help="scale of the frequencies: about 4 times the variance of a cluster per feature, one "
        "for all columns, which are to be scaled alike beforehand",
    )
    add("--public-sample", metavar="FILE", help="estimate the variance on records that are public")
    add("--seed", type=seed, metavar="S", help="of the frequencies, which are public")
    add("--measurements", type=positive_integer, metavar="R", help="of M per record; default: all")
    group = parser.add_argument_group("privacy")
    add = group.add_argument
    add("--epsilon", type=positive_number, metavar="E", help="in nats")
    add("--delta", type=probability, metavar="D", help="default: 0")
    add("--noise", choices=("auto", "laplace", "gaussian"), help="default: auto")
    add(
        "--neighbours",
        choices=("replace_one", "add_remove"),
        type=lambda name: name.replace("-", "_"),
        help="what is hidden: one record's values (replace_one, the default; the number of records "
        "is public), or whether it is there at all (add_remove: the exact number is neither shown "
        "nor kept; so that no record can decide whether there is a result, a field that is missing "
        "or no number counts as 0, one that is too large for the frequencies as the largest that "
        "is not, and a CSV file must have a header)",
    )
    add(
        "--seed-noise",
        type=seed,
        metavar="S",
        help="seed of noise and masks, for reproduction ONLY: who knows it can take the noise off",
    )
    add("--budget", metavar="FILE", help="ledger to draw on (privclust.privacy.Budget.open)")


def _run(args) -> None:
    """Read files, add up, add noise, write: exact sums of a private sketch meet no disk."""
    _check_sketch_arguments(args)
    inputs = [*args.files, args.like, args.public_sample, args.budget]
    check_output(args.output, inputs, "HDF5", args.force)

    from privclust.core.streams import chunks
    from privclust.kmeans import FeatureSums, Sketch, promise, secret_mask_seed
    from privclust.privacy import Budget, noise_source

    ledger = Budget.open(args.budget) if args.budget else contextlib.nullcontext()
    if args.epsilon is not None and args.seed_noise is None:
        noise_source(None)  # says now, not after hours, what is not installed
    check_readable(inputs)
    hides_number = args.epsilon is not None and args.neighbours == "add_remove"
    how = {"dataset": args.dataset, "delimiter": args.delimiter, "strict": not hides_number}
    streams = [chunks(file, **how) for file in args.files]
    _check_distinct(
        args.files,
        args.public_sample,
        # nobody is to be told that two files are alike in that they hold no records
        lambda file: not hides_number or any(map(len, chunks(file, **how))),
    )
    frequencies, n_measurements = _frequencies(args, streams[0].n_features)
    for stream in streams:
        if stream.n_features != len(frequencies):
            raise ValueError(
                f"{stream.name}: has {stream.n_features} columns, "
                f"the frequencies are for {len(frequencies)}"
            )
    _check_columns(streams)
    if args.budget is not None:  # drawn on when records are released, after hours
        ledger.check(
            promise(n_measurements or frequencies.shape[1], frequencies.shape[1], **_terms(args))
        )
    sums = FeatureSums(
        frequencies,
        n_measurements=n_measurements,
        mask_seed=secret_mask_seed() if args.seed_noise is None else args.seed_noise,
        n_threads=args.threads,
    )
    _check_room(args.output, frequencies)
    seen = None
    if args.public_sample is not None or len(streams) > 1:
        seen = _Twins(None if args.public_sample is None else _public_stream(args))
    if hides_number:
        _add_any(streams, sums, seen)
    else:
        _add_checked(streams, sums, seen)
    with ledger:
        sketch = _released(Sketch.from_feature_sums(sums), args)
    check_free(args.output, args.force)  # may be there now, after hours
    _check_room(args.output, frequencies)  # may be gone; HDF5 fails with many words
    with written(args.output):
        sketch.save(args.output)
    say(f"{args.output}: sketch of {count(sketch)} records, {sketch.n_frequencies} numbers")
    say_privacy(sketch)


def _check_columns(streams) -> None:
    """Raise where two files name their columns, and not alike."""
    named = [stream for stream in streams if stream.header is not None]
    for stream in named[1:]:
        pairs = zip(named[0].header, stream.header, strict=True)
        differs = [i for i, (ours, theirs) in enumerate(pairs, start=1) if ours != theirs]
        if differs:
            raise ValueError(
                f"{stream.name}: column {differs[0]} has another name than in {named[0].name}; "
                "give all files the same columns in the same order"
            )


def _released(sketch, args):
    """Return the sketch with noise, if any is asked for."""
    import numpy as np

    from privclust.kmeans import release

    if args.epsilon is None:
        return sketch
    # a stream of its own: frequencies may have been drawn from the same number
    seeded = args.seed_noise is not None
    rng = np.random.default_rng([args.seed_noise, 1]) if seeded else None
    private = release(sketch, **_terms(args), random_state=rng)
    caveats = [_ANY_RECORD if args.neighbours == "add_remove" else _ERRORS_TELL]
    if len(args.files) > 1:
        caveats.append(_NO_TWINS)
    guarantee = private.guarantee
    return replace(private, guarantee=replace(guarantee, caveats=(*guarantee.caveats, *caveats)))


def _terms(args) -> dict[str, Any]:
    """What a release is asked for."""
    return {
        "epsilon": args.epsilon,
        "delta": args.delta or 0.0,
        "noise": args.noise or "auto",
        "neighbours": args.neighbours or "replace_one",
    }


class _Twins:
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


def _add_checked(streams, sums, seen) -> None:
    """Add up records; refuse those whose values are too large for their phases, and no records."""
    import numpy as np

    counts = [stream.n_rows for stream in streams]
    with progress(None if None in counts else sum(counts)) as advance:
        for stream in streams:
            for chunk in stream if seen is None else seen.watched(stream):
                largest = sums.largest_value(chunk.dtype)
                large = np.argwhere(np.abs(chunk) > largest)
                if len(large):
                    row, column = large[0]
                    raise ValueError(
                        f"{stream.name}: {stream.place(row - len(chunk), column)} is too large for "
                        f"the frequencies, which bear {largest:.3g}; rescale the columns"
                    )
                sums.add(chunk)
                advance(len(chunk))
    if sums.n_samples == 0:
        raise ValueError(f"{', '.join(stream.name for stream in streams)}: no records")


def _add_any(streams, sums, seen) -> None:
    """Add up any records, also none, without a word that depends on them or on their number."""
    import numpy as np

    for number, stream in enumerate(streams, 1):
        say(f"{stream.name}: file {number} of {len(streams)} is read")
        for chunk in stream if seen is None else seen.watched(stream):
            largest = sums.largest_value(chunk.dtype) * _WITHIN
            values = np.clip(chunk, -largest, largest)
            values[np.isnan(values)] = 0.0
            sums.add(values)


def _check_sketch_arguments(args) -> None:
    """Refuse what does not go together, before anything is read."""
    drawn = ("frequencies", "law", "variance", "public_sample", "seed")
    if args.like is not None:
        for name in drawn:
            if getattr(args, name) is not None:
                option = name.replace("_", "-")
                args.usage_error(f"--{option} does not go with --like, which brings its own")
    elif args.frequencies is None:
        args.usage_error("--frequencies M is needed (or --like SKETCH)")
    elif (args.variance is None) == (args.public_sample is None):
        args.usage_error(
            "the scale of the clusters is needed, from one of --variance V (known beforehand), "
            "--public-sample FILE or --like SKETCH; it is not taken from FILE, because that would "
            "tell of the private records without noise"
        )
    elif args.measurements is not None and args.measurements > args.frequencies:
        args.usage_error(f"--measurements may be at most --frequencies {args.frequencies}")
    if args.epsilon is None:
        if args.budget is not None:
            args.usage_error("--budget counts what --epsilon costs, which is not given")
        for name in ("delta", "noise", "neighbours"):
            if getattr(args, name) is not None:
                args.usage_error(f"--{name} says how --epsilon is met, which is not given")
    if args.noise == "gaussian" and not args.delta:
        args.usage_error("--noise gaussian needs a --delta greater than 0")


def _check_distinct(
    files: list[str], public_sample: str | None, counts: Callable[[str], bool]
) -> None:
    """Refuse records that would count twice, for which no noise is, and a private public sample."""
    by_size: dict[int, list[str]] = {}
    for file in filter(os.path.isfile, files):
        others = by_size.setdefault(os.path.getsize(file), [])
        twin = next((other for other in others if filecmp.cmp(file, other, shallow=False)), None)
        if twin is not None and (os.path.samefile(file, twin) or counts(file)):
            raise ValueError(
                f"{file}: holds the same as {twin}; a record that is added twice is hidden half as "
                "well as is promised: name each file once"
            )
        others.append(file)
    if public_sample is not None and os.path.isfile(public_sample):
        for file in by_size.get(os.path.getsize(public_sample), []):
            if filecmp.cmp(public_sample, file, shallow=False):
                raise ValueError(
                    f"{public_sample}: holds the same as {file}, of which the variance would tell "
                    "without noise; name a sample that is public"
                )


def _frequencies(args, n_features: int):
    """Return frequencies (n_features, m) and the number of measurements."""
    from privclust.kmeans import Sketch, draw_frequencies, estimate_variance
    from privclust.kmeans._sketch import MOST_BYTES

    if args.like is not None:
        like = Sketch.load(args.like)
        return like.frequencies, args.measurements or like.n_measurements
    most = MOST_BYTES // (8 * (n_features + 4))
    if args.frequencies > most:
        raise ValueError(
            f"--frequencies {args.frequencies}: may be at most {most} for {n_features} columns, as "
            f"a sketch's file may hold {MOST_BYTES >> 30} GiB"
        )
    variance = args.variance
    if variance is None:
        sample = _public_sample(args, n_features)
        variance = estimate_variance(sample, random_state=args.seed)
        say(f"variance estimated on the public sample: {variance:.6g}")
    law: Any = args.law or _LAWS[0]
    frequencies = draw_frequencies(
        n_features, args.frequencies, variance=variance, law=law, random_state=args.seed
    )
    return frequencies, args.measurements


def _public_stream(args):
    """Return the chunks of the public sample."""
    from privclust.core.streams import chunks

    is_text = ".csv" in Path(args.public_sample.lower()).suffixes
    return chunks(
        args.public_sample,
        chunk_size=_SAMPLE_ROWS,
        delimiter=args.delimiter if is_text else None,
    )


def _public_sample(args, n_features: int):
    """Return the first records of a file (n, n_features)."""
    import numpy as np

    path, stream = args.public_sample, _public_stream(args)
    if stream.n_features != n_features:
        raise ValueError(f"{path}: has {stream.n_features} columns, the records {n_features}")
    sample = next(stream, np.zeros((0, n_features)))
    if len(sample) == 0:
        raise ValueError(f"{path}: no records to estimate the variance on")
    return sample


def _check_room(output: str, frequencies) -> None:
    """Find out whether a sketch with these frequencies fits on the disk."""
    of_sums = 2 * 2 * 8 * frequencies.shape[1]
    check_write(Path(output), frequencies.nbytes + of_sums + _HEADER_BYTES)


def _cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
