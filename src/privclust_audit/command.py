"""``privclust audit``: audit of a mechanism, data and statistic given on the command line."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Callable, Sized
from typing import TYPE_CHECKING

from privclust.command.arguments import add_command, number, positive_integer, probability, seed
from privclust.command.output import print_result, progress

if TYPE_CHECKING:
    import numpy as np

_PAIR = "pair"  # name of the two data sets in a module


def add_to(commands) -> None:
    """``privclust audit``."""
    parser = add_command(
        commands,
        "audit",
        _run,
        summary="attack a mechanism's privacy claim",
        description="Run a mechanism on two neighbouring data sets and bound epsilon and delta "
        "from below; or, with --inside, compare two recorded fits of an estimator on each of many "
        "pairs. Exit code 1 if the claim is exceeded. No audit proves privacy.",
    )
    add = parser.add_argument
    called = "called as (data, rng), returns an output; with --inside an estimator, a callable "
    called += "that returns one, or a callable of a data set"
    add("mechanism", metavar="MODULE:CALLABLE", help=called)
    add("--inside", action="store_true", help="record a fit's noise, and replay it on neighbours")
    add(
        "--epsilon",
        type=number,
        metavar="E",
        help="claimed epsilon, in nats; with --inside, for code without privclust's measurements",
    )
    add("--delta", type=probability, default=0.0, metavar="D", help="claimed delta; default: 0")
    add(
        "--trials", type=positive_integer, default=10_000, metavar="N", help="runs on each data set"
    )
    pair = "MODULE:PAIR (or a function that returns it) or FILE FILE; default: pair in MODULE. "
    pair += "With --inside: MODULE:ARRAY or FILE, rows for neighbours; default: generated"
    add("--data", nargs="+", metavar="X", help=pair)
    add(
        "--neighbours",
        choices=("replace_one", "add_remove", "other"),
        type=lambda name: name.replace("-", "_"),
        help="neighbours of the claim; the data are checked for it row by row. Default: either "
        "relation for two files, no check for an object. other: no check",
    )
    add(
        "--statistic",
        metavar="MODULE:CALLABLE",
        help="maps an output to a number; default: learned",
    )
    add(
        "--stopping",
        choices=("fixed", "anytime"),
        default="fixed",
        help="fixed: all runs; anytime: until the claim is convicted, bounds are close to it, or "
        "more runs would hardly help; default: fixed",
    )
    share = "share of the claim at which --stopping anytime stops; default: 0.9"
    add("--closeness", type=number, default=0.9, metavar="P", help=share)
    add(
        "--confidence",
        type=probability,
        default=0.95,
        metavar="P",
        help="of the bounds; default: 0.95",
    )
    add("--seed", type=seed, metavar="S", help="seed of the mechanism's random numbers")
    add(
        "--pairs",
        type=positive_integer,
        default=200,
        metavar="N",
        help="number of pairs, with --inside",
    )
    made_up = "number of columns of generated rows, with --inside; default: 2"
    add("--features", type=positive_integer, default=2, metavar="D", help=made_up)


def _run(args) -> int:
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    if args.inside:
        return _look_inside(args)
    if len(args.data or ()) > 2:
        args.usage_error("--data takes MODULE:PAIR or two files")
    if args.epsilon is None:
        args.usage_error("the following arguments are required: --epsilon (or --inside)")

    from privclust_audit.black_box import VIOLATED, audit_mechanism

    with progress(2 * args.trials, "runs") as advance:
        mechanism = _callable(args.mechanism, "(data, rng)", 2)
        statistic = args.statistic and _callable(args.statistic, "(output)", 1)
        data, neighbour = _pair(args)
        _check(args, data, neighbour)
        result = audit_mechanism(
            mechanism,
            data,
            neighbour,
            args.epsilon,
            args.delta,
            args.trials,
            statistic,
            args.seed,
            confidence=args.confidence,
            stopping=args.stopping,
            closeness=args.closeness,
            progress=advance,
        )
    print_result(f"{result}\n")
    return 1 if result.verdict == VIOLATED else 0


def _look_inside(args) -> int:
    if len(args.data or ()) > 1:
        args.usage_error("--data takes MODULE:ARRAY or one file with --inside")
    if args.neighbours == "other":
        args.usage_error("--neighbours must be replace_one or add_remove with --inside")

    from privclust_audit.inside import VIOLATED, look_inside

    with progress(args.pairs, "pairs") as advance:
        subject = _object(args.mechanism)
        rows = None
        if args.data:
            rows = _object(args.data[0]) if ":" in args.data[0] else _file(args.data[0])
        result = look_inside(
            subject,
            rows,
            args.pairs,
            args.seed or 0,
            n_features=args.features,
            neighbours=args.neighbours,
            epsilon=args.epsilon,
            delta=args.delta,
            progress=advance,
        )
    print_result(f"{result}\n")
    return 1 if result.verdict == VIOLATED else 0


def _pair(args) -> tuple:
    """Return the two data sets: two files, an object, or ``pair`` of the mechanism's module."""
    import numpy as np

    if args.data and len(args.data) == 2:
        return _file(args.data[0]), _file(args.data[1])
    if args.data:
        name = args.data[0]
        if ":" not in name:
            raise ValueError(f"--data {name}: must be MODULE:PAIR, or two files")
        pair = _object(name)
    else:
        module = args.mechanism.partition(":")[0]
        name = f"{module}:{_PAIR}"
        try:
            pair = _object(name)
        except ValueError:
            raise ValueError(
                f"two neighbouring data sets are needed: --data FILE FILE, --data MODULE:PAIR, or "
                f"an attribute {_PAIR!r} of module {module}"
            ) from None
    if callable(pair):
        pair = pair()
    if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
        raise ValueError(f"{name}: must be two data sets (data, neighbour), got {_kind(pair)}")
    return pair[0], pair[1]


def _check(args, data, neighbour) -> None:
    from privclust.privacy.sensitivity import Neighbours
    from privclust_audit.black_box.neighbours import check_pair, refuse_equal

    are_files = bool(args.data) and len(args.data) == 2
    names = tuple(args.data) if are_files else ("data", "neighbour")
    refuse_equal(data, neighbour, names)
    if args.neighbours == "other" or (args.neighbours is None and not are_files):
        return
    relation = Neighbours.of(args.neighbours) if args.neighbours else None
    try:
        check_pair(data, neighbour, relation, names)
    except ValueError as error:
        raise ValueError(f"{error} (--neighbours other: do not check)") from None


def _file(path: str) -> np.ndarray:
    """Return the rows of a table, or of an array in a ``.npy`` file."""
    import numpy as np

    from privclust.core.files import why_unreadable
    from privclust.records.arrow import RowReader
    from privclust.records.matrix import numbers_of_table
    from privclust.records.table_files import TextFile, open_table, worded

    if path.endswith(".npy"):
        if reason := why_unreadable(path):
            raise ValueError(f"{path}: {reason}")
        with worded(path):  # NumPy's own message may suggest to trust the file
            rows = np.asarray(numbers_of_table(np.load(path, allow_pickle=False)))
    else:
        table = open_table(path)
        with worded(path):
            if isinstance(table, TextFile):
                table.check_header(None)
            reader = RowReader(None).for_schema(table.schema)
            parts = map(reader.rows, table.batches(reader.columns))
            # The empty part gives the result columns and a type if the file has no row.
            rows = np.concatenate([np.empty((0, len(reader.columns)), reader.dtype), *parts])
    if rows.ndim != 2 or rows.dtype.kind == "c" or not np.isfinite(rows).all():
        raise ValueError(f"{path}: must hold rows of finite real numbers")
    # Single precision is kept: a mechanism may treat it in another way.
    is_short = rows.dtype.kind == "f" and rows.dtype.itemsize <= 4
    return rows.astype(np.float32 if is_short else np.float64)


def _callable(name: str, signature: str, n_arguments: int) -> Callable:
    from privclust.core.validation import signature_of

    function = _object(name)
    if not callable(function):
        raise ValueError(f"{name}: must be callable as {signature}, got {_kind(function)}")
    accepted = signature_of(function)
    try:
        accepted.bind(*[None] * n_arguments)
    except TypeError as error:
        raise ValueError(
            f"{name}: must be callable as {signature}, got {accepted} ({error})"
        ) from None
    return function


def _object(name: str):
    """Return the object MODULE:NAME; NAME may have dots."""
    module, _, path = name.partition(":")
    if not module or not path:
        raise ValueError(
            f"{name}: must be of the form MODULE:NAME, such as package.module:function"
        )
    try:
        return pkgutil.resolve_name(name)
    except Exception as error:  # importing a module may raise anything
        raise ValueError(f"{name}: not found ({type(error).__name__}: {error})") from error


def _kind(value) -> str:
    """Return the kind of an object for a message, without its values, which may be private."""
    size = f" of length {len(value)}" if isinstance(value, Sized) else ""
    return f"{type(value).__name__}{size}"
