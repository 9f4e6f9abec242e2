"""``privclust sketch``: files of records reduced to one small sketch."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

from privclust.command._records import (
    Twins,
    add_any,
    add_checked,
    add_persons,
    check_columns,
    check_distinct,
    public_stream,
)
from privclust.command._sketchers import LAWS, FeatureSketcher, MomentSketcher
from privclust.command.arguments import (
    add_command,
    add_delimiter,
    add_epsilon_and_delta,
    add_groups,
    add_ledger,
    add_neighbours,
    names,
    positive_integer,
    positive_number,
    seed,
)
from privclust.command.output import (
    add_output,
    check_free,
    check_output,
    check_readable,
    check_write,
    count,
    say,
    say_privacy,
    written,
)

_HEADER_BYTES = 1 << 16  # of a sketch's file, beside its arrays
_NO_TWINS = "that no two of the files hold the same is taken for public"
_ONE_SKETCH = "all records of a group are in this sketch, and none is in another merged with it"
_NOBODY = "records whose group is missing count as those of one"
_ERROR_FOR_NOBODY = "an error for a record whose group is missing is outside the guarantee"
_OF_FREQUENCIES = (
    "like",
    "frequencies",
    "law",
    "variance",
    "public_sample",
    "seed",
    "measurements",
    "noise",
)


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
    add(
        "files",
        nargs="+",
        metavar="FILE",
        help="records, one a row; a folder stands for the Parquet files in it",
    )
    add_output(add, "SKETCH", "file to write (.h5)", required=True)
    add_delimiter(add)
    add(
        "--columns",
        type=names,
        metavar="A,B,...",
        help="columns of Parquet files, in this order; no others are read; default: all",
    )
    add("--dataset", metavar="NAME", help="data set within HDF5 files, if there are several")
    add_groups(
        add,
        ". All are to be in this one call. Files are read twice; memory grows with the number of "
        "persons (with --subspaces also as much as a sketch for each number of records)",
    )
    add("--threads", type=positive_integer, default=_cores(), metavar="N", help="default: all")
    _add_subspaces(
        parser.add_argument_group(
            "subspaces", "Sketches can be merged if made with the same degree."
        )
    )
    _add_frequencies(
        parser.add_argument_group(
            "frequencies",
            "Sketches can be merged if made with the same: use --like for all but one.",
        )
    )
    _add_privacy(parser.add_argument_group("privacy"))


def _add_subspaces(group) -> None:
    """A sketch of moments instead of frequencies."""
    add = group.add_argument
    add(
        "--subspaces",
        action="store_true",
        help="sketch directions of records for subspaces, not positions for clusters; needs no "
        "frequencies, and a --delta with --epsilon; up to 64 columns",
    )
    add(
        "--degree",
        type=int,
        choices=(4, 6),
        help="of moments; default: 6 with up to 6 columns, else 4",
    )


def _add_frequencies(group) -> None:
    """Which frequencies, drawn how, and how many of them a record is asked."""
    add = group.add_argument
    add("--like", metavar="SKETCH", help="use the frequencies and measurements of this sketch")
    add("--frequencies", type=positive_integer, metavar="M", help="how many, such as 10 k d")
    add("--law", choices=LAWS, help=f"default: {LAWS[0]}")
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


def _add_privacy(group) -> None:
    """Budget, noise, neighbours and the ledger."""
    add = group.add_argument
    add_epsilon_and_delta(add, required=False, delta="default: 0")
    add("--noise", choices=("auto", "laplace", "gaussian"), help="default: auto")
    add_neighbours(
        add,
        ": the exact number is neither shown nor kept; so that no record can decide whether there "
        "is a result, a field that is missing or no number counts as 0, one that is too large for "
        "the frequencies as the largest that is not, and a CSV file must have a header",
        default=None,
    )
    add(
        "--seed-noise",
        type=seed,
        metavar="S",
        help="seed of noise and masks, for reproduction ONLY: who knows it can take the noise off",
    )
    add_ledger(add)


def _run(args) -> None:
    """Read files, add up, add noise, write: exact sums of a private sketch meet no disk."""
    from privclust.records.files import files_of

    _check_arguments(args)
    args.files = [file for name in args.files for file in files_of(name)]
    inputs = [*args.files, args.like, args.public_sample, args.budget]
    check_output(args.output, inputs, "HDF5", args.force)

    from privclust.privacy import Budget, noise_source
    from privclust.records.streams import chunks

    ledger = Budget.open(args.budget) if args.budget else contextlib.nullcontext()
    if args.epsilon is not None and args.seed_noise is None:
        noise_source(None)  # says now, not after hours, what is not installed
    check_readable(inputs)
    hides_number = args.epsilon is not None and args.neighbours == "add_remove"
    how = {"dataset": args.dataset, "delimiter": args.delimiter, "columns": args.columns}
    how["strict"] = not hides_number
    streams = [chunks(file, label=args.groups, **how) for file in args.files]
    check_distinct(
        args.files,
        args.public_sample,
        # nobody is to be told that two files are alike in that they hold no records
        lambda file: not hides_number or any(map(len, chunks(file, label=args.groups, **how))),
    )
    sketcher_type = MomentSketcher if args.subspaces else FeatureSketcher
    sketcher = sketcher_type(args, streams[0].n_features)
    check_columns(streams, sketcher.n_features, sketcher.needed_by)
    if args.budget is not None:  # drawn on when records are released, after hours
        ledger.check(sketcher.promise())
    _check_room(args.output, sketcher)
    seen = None
    counts_twice = len(streams) > 1 and args.groups is None
    if args.public_sample is not None or counts_twice:
        seen = Twins(None if args.public_sample is None else public_stream(args))
    if args.groups is not None:
        add_persons(streams, sketcher, seen, args.groups, how, takes_any=hides_number)
    else:
        (add_any if hides_number else add_checked)(streams, sketcher, seen)
    with ledger:
        sketch = _released(sketcher, args)
    check_free(args.output, args.force)  # may be there now, after hours
    _check_room(args.output, sketcher)  # may be gone; HDF5 fails with many words
    with written(args.output):
        sketch.save(args.output)
    say(f"{args.output}: sketch of {count(sketch)}, {sketcher.n_numbers} numbers")
    say_privacy(sketch)


def _released(sketcher, args):
    """Return the sketch with noise, if any is asked for."""
    import numpy as np

    sketch = sketcher.exact()
    if args.epsilon is None:
        return sketch
    # a stream of its own: frequencies may have been drawn from the same number
    seeded = args.seed_noise is not None
    rng = np.random.default_rng([args.seed_noise, 1]) if seeded else None
    private = sketcher.release(sketch, rng)
    hides_number = args.neighbours == "add_remove"
    caveats = [sketcher.any_record if hides_number else sketcher.errors_tell]
    if len(args.files) > 1:
        caveats.append(_NO_TWINS)
    if args.groups is not None:
        caveats += [_ONE_SKETCH, _NOBODY if hides_number else _ERROR_FOR_NOBODY]
    guarantee = private.guarantee
    return replace(private, guarantee=replace(guarantee, caveats=(*guarantee.caveats, *caveats)))


def _check_arguments(args) -> None:
    """Refuse what does not go together, before anything is read."""
    if args.subspaces:
        for name in _OF_FREQUENCIES:
            if getattr(args, name) is not None:
                option = name.replace("_", "-")
                args.usage_error(f"--{option} does not go with --subspaces, which has none")
        if args.epsilon is not None and not args.delta:
            args.usage_error("--subspaces with --epsilon needs a --delta greater than 0")
    else:
        if args.degree is not None:
            args.usage_error("--degree goes with --subspaces")
        _check_frequencies(args)
    if args.epsilon is None:
        if args.budget is not None:
            args.usage_error("--budget counts what --epsilon costs, which is not given")
        for name in ("delta", "noise", "neighbours"):
            if getattr(args, name) is not None:
                args.usage_error(f"--{name} says how --epsilon is met, which is not given")
    if args.groups is not None and args.measurements is not None:
        args.usage_error("--measurements does not go with --groups: each record has its own")
    if args.noise == "gaussian" and not args.delta:
        args.usage_error("--noise gaussian needs a --delta greater than 0")


def _check_frequencies(args) -> None:
    """Refuse frequencies that are drawn and given, or neither."""
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


def _check_room(output: str, sketcher) -> None:
    """Find out whether a sketch of its size fits on the disk."""
    check_write(Path(output), sketcher.n_bytes + _HEADER_BYTES)


def _cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
