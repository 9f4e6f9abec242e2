"""``privclust cluster``: from a table to private clusters in its own units."""

from __future__ import annotations

import argparse

from privclust.command._declared_columns import (
    add_declarations,
    add_notation,
    declared_columns,
    kind_of_ends,
    opened_table,
)
from privclust.command.arguments import (
    add_command,
    add_neighbours,
    names,
    number,
    positive_number,
    probability,
    seed,
    size,
)
from privclust.command.output import check_readable


def add_to(commands) -> None:
    parser = add_command(
        commands,
        "cluster",
        _run,
        summary="find private clusters in a table, in its own units",
        description="Find clusters of a table's rows under differential privacy. Columns are "
        "scaled by their declared bounds or categories. Centers, errors, a picture, the guarantee "
        "and a report are written into a folder; everything in it may be published under the "
        "guarantee.",
    )
    add = parser.add_argument
    add("table", metavar="TABLE", help="CSV with a header, or Parquet")
    add("-o", "--output", metavar="FOLDER", help="folder to write into")
    add(
        "--check",
        action="store_true",
        help="print exact counts of the declared columns, for the holder of the table. Not for "
        "release; uses no budget and writes nothing",
    )
    add("--force", action="store_true", help="replace files in the folder")
    add_notation(add)
    add(
        "--clusters",
        type=size,
        default="auto",
        metavar="K",
        help="number of clusters, or 'auto' (the default): chosen from 1 to 20, uses no budget",
    )
    add(
        "--method",
        choices=("auto", "sketch"),
        default="auto",
        help="auto (the default): with --clusters K, a positive --delta and one or two columns of "
        "numbers or dates, a tree of noisy counts, which finds many small clusters; otherwise a "
        "noisy sketch. sketch: always a sketch, which is written to sketch.h5",
    )
    _add_columns(parser.add_argument_group("columns").add_argument)
    _add_privacy(parser.add_argument_group("privacy").add_argument)


def _add_columns(add) -> None:
    add("--columns", type=names, metavar="A,B", help="columns to use; default: all declared")
    add_declarations(add)
    add(
        "--private-bounds",
        type=_share,
        nargs="?",
        const=0.1,
        metavar="SHARE",
        help="find the bounds of numeric columns without declared bounds, with this share of the "
        "budget; default: 0.1. It is spent even if a ledger then refuses the clusters",
    )
    add(
        "--groups",
        metavar="NAME",
        help="column that identifies the person of each row (such as a customer): all rows of a "
        "person are protected together, and count as one record, their mean, for any number of "
        "rows",
    )


def _add_privacy(add) -> None:
    add("--epsilon", type=positive_number, metavar="E", help="in nats")
    add(
        "--delta",
        type=probability,
        metavar="D",
        help="well below one over the number of records, such as 1e-6; 0 needs far more noise",
    )
    add_neighbours(add)
    add(
        "--seed",
        type=seed,
        metavar="S",
        help="seed, also of the noise. For reproduction ONLY: anyone with the seed can remove the "
        "noise",
    )
    add("--budget", metavar="FILE", help="ledger to charge (privclust.privacy.Budget.open)")


def _share(text: str) -> float:
    """A share of the budget, above 0 and at most one half."""
    value = number(text)
    if not 0.0 < value <= 0.5:
        raise argparse.ArgumentTypeError(f"must be greater than 0, at most 0.5, got {text!r}")
    return value


def _run(args) -> None:
    declared, unknown = declared_columns(args)
    if not args.check:
        for name in ("output", "epsilon", "delta"):
            if getattr(args, name) is None:
                args.usage_error(f"--{name} is needed, unless there is --check")
    check_readable([args.table, args.budget])

    from privclust.core.packages import require
    from privclust.preprocessing import TableEncoder

    table = opened_table(args.table, args)
    for name, ends in declared.items():
        if ends is not None:
            TableEncoder({name: ends}).scale()  # finds wrong declarations early
        table.check_kind(name, kind_of_ends(ends))
    if args.check:
        from privclust.command._check import print_check

        print_check(table, declared, args.groups)
        return
    for package in ("matplotlib", "jinja2"):
        require(package, "reports on clusters")

    from privclust.command._clustering import cluster

    cluster(table, declared, unknown, args)
