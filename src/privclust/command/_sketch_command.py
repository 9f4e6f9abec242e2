"""``privclust sketch``: files of records reduced to one small sketch."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from privclust.command._declared_columns import (
    MISSING_SHARE,
    add_declarations,
    add_notation,
    declared_columns,
    part_of_budget,
)
from privclust.command._records import (
    Tally,
    Twins,
    add_persons,
    add_records,
    check_columns,
    check_distinct,
    public_sample,
    records_of,
)
from privclust.command._sketchers import (
    LAWS,
    FeatureSketcher,
    MomentSketcher,
    SampleError,
    unit_of_records,
)
from privclust.command.arguments import (
    add_command,
    add_epsilon_and_delta,
    add_groups,
    add_ledger,
    add_neighbours,
    names,
    positive_integer,
    positive_number,
    refuse,
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
    say_left_out,
    say_privacy,
    written,
)
from privclust.core.threads import usable_cores

_HEADER_BYTES = 1 << 16  # size of a sketch's file in addition to its arrays
_NO_TWINS = "that no two of the files hold the same is taken for public"
_ONE_SKETCH = "all records of a group are in this sketch, and none is in another merged with it"
_NO_TABLE = "an error for a file that is no table is outside the guarantee"
_DRAWN = ("frequencies", "law", "variance", "public_sample", "seed")
_OF_FREQUENCIES = ("like", *_DRAWN, "measurements", "noise")


def add_to(commands) -> None:
    parser = add_command(
        commands,
        "sketch",
        _run,
        summary="reduce files of records to one small sketch",
        description="Reduce files of records (CSV, Parquet, Arrow, HDF5, .npy; of any size) to a "
        "sketch. With --epsilon the sketch is private. Without, it is NOT, and must be protected "
        "like the data. A row with a missing or unreadable entry is left out.",
    )
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        metavar="FILE",
        help="records, one per row; a folder means all Parquet files in it",
    )
    add_output(add, "SKETCH", "file to write (.h5)", required=True)
    add_notation(add)
    add(
        "--columns",
        type=names,
        metavar="A,B,...",
        help="columns of tables to read, in this order; default: all",
    )
    add("--dataset", metavar="NAME", help="data set within HDF5 files, if there are several")
    add_groups(
        add,
        ". Pass all files in one call. They are read twice; memory grows with the number of "
        "persons (with --subspaces also by one sketch for each number of records)",
    )
    add(
        "--threads",
        type=positive_integer,
        default=usable_cores(),
        metavar="N",
        help="number; default: all cores",
    )
    declaring = parser.add_argument_group(
        "columns",
        "For tables in units, as for privclust cluster. The sketch stores the declarations, and "
        "privclust decode gives centers in names and units.",
    )
    add_declarations(declaring.add_argument)
    _add_subspaces(
        parser.add_argument_group(
            "subspaces", "Sketches can be merged if they have the same degree."
        )
    )
    _add_frequencies(
        parser.add_argument_group(
            "frequencies",
            "Sketches can be merged if they have the same frequencies: use --like for all but one.",
        )
    )
    _add_privacy(parser.add_argument_group("privacy"))


def _add_subspaces(group) -> None:
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
        help="largest degree of the moments; default: 6 with up to 6 columns, else 4",
    )


def _add_frequencies(group) -> None:
    """Add the arguments on frequencies and on measurements per record."""
    add = group.add_argument
    add("--like", metavar="SKETCH", help="use the frequencies and measurements of this sketch")
    add("--frequencies", type=positive_integer, metavar="M", help="number of frequencies")
    add("--law", choices=LAWS, help=f"distribution of the frequencies; default: {LAWS[0]}")
    add(
        "--variance",
        type=positive_number,
        metavar="V",
        help="scale of the frequencies: about 4 times the variance of a cluster per feature, the "
        "same for all columns. The range of a declared column is 1; scale other columns alike "
        "beforehand",
    )
    add("--public-sample", metavar="FILE", help="public records, to estimate the variance")
    add("--seed", type=seed, metavar="S", help="seed of the frequencies, which are public")
    add(
        "--measurements",
        type=positive_integer,
        metavar="R",
        help="frequencies used per record; default: all M",
    )


def _add_privacy(group) -> None:
    add = group.add_argument
    add_epsilon_and_delta(add, required=False, delta="default: 0")
    add("--noise", choices=("auto", "laplace", "gaussian"), help="default: auto")
    add_neighbours(add, "; the exact number is neither shown nor stored", default=None)
    add(
        "--seed-noise",
        type=seed,
        metavar="S",
        help="seed of noise and masks. For reproduction ONLY: anyone with the seed can remove the "
        "noise",
    )
    add_ledger(add)


def _run(args) -> None:
    """Read files, add up, add noise, write; exact sums of a private sketch stay in memory."""
    from privclust.records.files import files_of

    _check_arguments(args)
    args.files = [file for name in args.files for file in files_of(name)]
    inputs = [*args.files, args.like, args.public_sample, args.budget]
    check_output(args.output, inputs, "HDF5", args.force)

    from privclust.privacy import Budget, noise_source

    ledger = Budget.open(args.budget) if args.budget else contextlib.nullcontext()
    if args.epsilon is not None and args.seed_noise is None:
        noise_source(None)  # finds missing packages before hours of work
    check_readable(inputs)
    encoder = _encoder(args)
    files = [records_of(file, args, encoder, args.groups) for file in args.files]
    hides_number = args.epsilon is not None and args.neighbours == "add_remove"
    check_distinct(args.files, args.public_sample)
    sample = None if args.public_sample is None else public_sample(args, encoder)
    if sample is not None:
        same = [sample] if encoder is not None else [files[0], sample]  # declared ones have names
        check_columns(same, files[0].n_features, "the records")
    watches = sample is not None or (len(files) > 1 and args.groups is None)
    seen = Twins(sample, between_files=args.groups is None) if watches else None
    sketcher_type = MomentSketcher if args.subspaces else FeatureSketcher
    try:
        sketcher = sketcher_type(args, files[0].n_features, sample)
    except SampleError:  # its message reveals private records if the sample is a copy of them
        say("all files are read, to compare them with the public sample")
        seen.check(files)
        raise
    check_columns(files, sketcher.n_features, sketcher.needed_by)
    if args.budget is not None:  # charged at release, which may be hours later
        ledger.check(_promise(args, sketcher, encoder))
    _check_room(args.output, sketcher)
    tally = Tally(None if encoder is None else len(encoder.columns))
    if args.groups is not None:
        add_persons(files, sketcher, seen, tally)
    else:
        add_records(files, sketcher, seen, tally, tells_number=not hides_number)
    if sample is not None:  # which is not private, as all files were compared with it
        say(f"variance estimated on the public sample: {sketcher.variance:.6g}")
    if not (hides_number or tally.n_rows):
        raise ValueError(f"{files[0].name}: no records in {_all_of(files)}")
    if args.epsilon is None and args.groups is None and tally.n_left_out == tally.n_rows:
        raise ValueError(
            f"{files[0].name}: each of the {tally.n_rows:,} rows in {_all_of(files)} has an entry "
            "that is missing or no number: is the --delimiter another one, or do dates or "
            "categories need --bounds and --categories?"
        )
    with ledger:
        sketch = _released(sketcher, encoder, tally, args)
    check_free(args.output, args.force)  # the file may exist by now
    _check_room(args.output, sketcher)  # the disk may be full by now; HDF5 has a long message
    with written(args.output):
        sketch.save(args.output)
    say(f"{args.output}: sketch of {count(sketch)}, {sketcher.n_numbers} numbers")
    say_left_out(sketch)
    say_privacy(sketch)


def _all_of(files) -> str:
    return "this file" if len(files) == 1 else f"these {len(files)} files"


def _encoder(args):
    """Return the encoder of columns declared here or by the sketch of --like, or None."""
    from privclust.sketches import Sketch

    table = None if args.like is None else Sketch.load(args.like).table
    is_declared = args.bounds or args.categories
    if args.missing == "middle" and not is_declared:
        args.usage_error("--missing middle needs --bounds or --categories, which have a middle")
    if table is None and not is_declared:
        return None
    from privclust.preprocessing import TableEncoder

    given = None
    if is_declared:
        declared, _ = declared_columns(args)
        given = TableEncoder(declared, missing=args.missing or "drop")
    if table is None:
        if given is not None and args.like is not None:
            args.usage_error(f"{args.like}: was made without --bounds and --categories")
        encoder = given
    else:
        if args.missing not in (None, table.missing):
            args.usage_error(f"{args.like}: was made with --missing {table.missing}")
        encoder = TableEncoder(table.columns, missing=table.missing)
        if given is not None and _sketched(given, None).declared != table.declared:
            args.usage_error(f"{args.like}: was made with other columns; leave their options out")
    for name in encoder.columns:
        TableEncoder({name: encoder.columns[name]}).scale()  # finds errors early
    return encoder


def _sketched(encoder, unread):
    """Return the information on a declared table that a sketch contains."""
    from privclust.sketches import SketchedTable

    return SketchedTable(dict(encoder.columns), encoder.missing, unread)


def _counts_by_column(args, encoder):
    """Return the noise on numbers of missing entries by column; None if there is none."""
    if args.epsilon is None or encoder is None or encoder.missing != "drop":
        return None
    from privclust.preprocessing import CountsByColumn

    delta = None if args.noise == "laplace" else args.delta  # the same kind of noise as the sketch
    share = part_of_budget(args.epsilon, delta, MISSING_SHARE)
    return CountsByColumn.of(len(encoder.columns), *share, args.neighbours or "replace_one")


def _share_of_sums(counts) -> float:
    return 1.0 if counts is None else 1.0 - MISSING_SHARE


def _promise(args, sketcher, encoder):
    counts = _counts_by_column(args, encoder)
    promise = sketcher.promise(_share_of_sums(counts))
    if counts is None:
        return promise
    seeded = args.seed_noise is not None
    return counts.promise(seeded=seeded, unit=unit_of_records(args)).compose(promise)


def _released(sketcher, encoder, tally, args):
    """Return the sketch, with noise if requested, and its counts of entries."""
    import numpy as np

    sketch = replace(sketcher.exact(), left_out=tally.n_left_out)
    if encoder is not None:
        sketch = replace(sketch, table=_sketched(encoder, tally.unread))
        if encoder.missing == "middle" and args.groups is None:
            sketch = replace(sketch, left_out=None)
    if args.epsilon is None:
        return sketch

    def seeded(stream: int):
        """Return a separate stream, because frequencies may use the same seed."""
        seed = args.seed_noise
        return None if seed is None else np.random.default_rng([seed, stream])

    counts = _counts_by_column(args, encoder)
    of_columns = counts and counts.release(tally.unread, sketch.unit, random_state=seeded(2))
    private = sketcher.release(sketch, _share_of_sums(counts), seeded(1))
    guarantee = private.guarantee
    if of_columns is not None:
        guarantee = of_columns.guarantee.compose(guarantee)
    caveats = [sketcher.any_record] if encoder is None else []
    caveats.append(_NO_TABLE)
    if len(args.files) > 1:
        caveats.append(_NO_TWINS)
    if args.groups is not None:
        caveats.append(_ONE_SKETCH)
    guarantee = replace(guarantee, caveats=(*guarantee.caveats, *caveats))
    private = replace(private, guarantee=guarantee)
    if encoder is None:
        return private
    private = sketch._noted(private)
    unread, deviation = None, 0.0
    if of_columns is not None:
        unread = np.stack([of_columns.missing, of_columns.unreadable])
        deviation = of_columns.deviation
    table = replace(_sketched(encoder, unread), deviation=deviation)
    return replace(private, table=table)


def _check_arguments(args) -> None:
    if args.subspaces:
        refuse(args, _OF_FREQUENCIES, "does not go with --subspaces, which has none")
        why = "do not go with --subspaces, which go through the origin"
        refuse(args, ("bounds", "categories"), why)
        if args.epsilon is not None and not args.delta:
            args.usage_error("--subspaces with --epsilon needs a --delta greater than 0")
    else:
        refuse(args, ["degree"], "goes with --subspaces")
        _check_frequencies(args)
    if args.epsilon is None:
        refuse(args, ("budget", "delta", "noise", "neighbours"), "needs --epsilon")
    if args.groups is not None:
        refuse(args, ["measurements"], "does not go with --groups: each record has its own")
    if args.noise == "gaussian" and not args.delta:
        args.usage_error("--noise gaussian needs a --delta greater than 0")


def _check_frequencies(args) -> None:
    if args.like is not None:
        refuse(args, _DRAWN, "does not go with --like, which brings its own")
    elif args.frequencies is None:
        args.usage_error("--frequencies M is needed (or --like SKETCH)")
    elif (args.variance is None) == (args.public_sample is None):
        args.usage_error(
            "the scale of the clusters is needed, from one of --variance V (known beforehand), "
            "--public-sample FILE or --like SKETCH; it is not taken from FILE, because that would "
            "reveal the private records without noise"
        )
    elif args.measurements is not None and args.measurements > args.frequencies:
        args.usage_error(f"--measurements must be at most --frequencies {args.frequencies}")


def _check_room(output: str, sketcher) -> None:
    """Check that a sketch of its size fits on the disk."""
    check_write(Path(output), sketcher.n_bytes + _HEADER_BYTES)
