"""``privclust decode``: clusters from one or more sketches."""

from __future__ import annotations

import os

from privclust.command._arguments import add_command, number, positive_integer, seed
from privclust.command._output import (
    add_output,
    check_free,
    check_output,
    check_readable,
    count,
    print_result,
    say,
    say_privacy,
    written,
)


def add_to(commands) -> None:
    """``privclust decode``."""
    parser = add_command(
        commands,
        "decode",
        _run,
        summary="find clusters from one or more sketches",
        description="Find cluster centers from sketches of disjoint records, merged. Centers come "
        "as CSV with their weights. What sketches promise, their centers promise.",
    )
    add = parser.add_argument
    add("sketches", nargs="+", metavar="SKETCH", help="files that privclust sketch wrote")
    add("--clusters", type=positive_integer, required=True, metavar="K")
    add("--bounds", type=number, nargs=2, metavar=("LOW", "HIGH"), help="of every feature")
    add("--seed", type=seed, metavar="S", help="of random starts, to repeat the outcome")
    add_output(add, "CSV", "file to write (.csv); default: the standard output")


def _run(args) -> None:
    """Merge sketches, find centers, write them as CSV."""
    if args.bounds is not None and not args.bounds[0] < args.bounds[1]:
        args.usage_error("--bounds: LOW must be less than HIGH")
    resolved = [os.path.realpath(path) for path in args.sketches]
    if len(set(resolved)) < len(resolved):
        args.usage_error("one SKETCH is named twice: its records would count twice")
    if args.output is not None:
        check_output(args.output, args.sketches, "CSV", args.force)
    check_readable(args.sketches)

    from privclust.core.files import write_text
    from privclust.kmeans import decode, decoding_summary

    sketch = _merged(args.sketches)
    _check_clusters(args.clusters, sketch)
    bounds = None if args.bounds is None else tuple(args.bounds)
    decoded = decode(sketch, args.clusters, bounds=bounds, random_state=args.seed)
    columns = ",".join([*(f"x{j + 1}" for j in range(sketch.n_features)), "weight"])
    rows = (
        ",".join(repr(float(value)) for value in (*center, weight))
        for center, weight in zip(decoded.centers, decoded.weights, strict=True)
    )
    text = "\n".join([columns, *rows]) + "\n"
    if args.output is None:
        print_result(text)
    else:
        check_free(args.output, args.force)
        with written(args.output):
            write_text(args.output, text)
    n_sketches = "1 sketch" if len(resolved) == 1 else f"{len(resolved)} sketches"
    say(f"{args.clusters} centers from {count(sketch)} records in {n_sketches}")
    summary = decoding_summary(sketch, decoded)
    if summary:
        say(summary)
    say_privacy(sketch)


def _merged(paths: list[str]):
    """Return the sum of sketches, or name two that cannot be merged."""
    from privclust.kmeans import Sketch

    first, *others = paths
    merged = Sketch.load(first)
    seen = {merged.sums.tobytes(): first}  # not of pairs alone: each is compared with all before
    for path in others:
        other = Sketch.load(path)
        twin = seen.setdefault(other.sums.tobytes(), path)
        if twin is not path and other.sums.any():
            raise ValueError(
                f"{twin} and {path}: hold the same sums, whose records would count twice"
            )
        try:
            merged = merged + other
        except ValueError as error:
            statements = [_statement(merged), _statement(other)]
            reason = str(error)
            if statements[0] != statements[1] and None not in statements:
                reason = (
                    f"sketches cannot be merged: one gives {statements[0]}, the other "
                    f"{statements[1]}; make all with the same options of privacy"
                )
            raise ValueError(f"{first} and {path}: {reason}") from None
    return merged


def _statement(sketch) -> str | None:
    """The first line of a sketch's guarantee; None where it has none."""
    return None if sketch.guarantee is None else str(sketch.guarantee).splitlines()[0]


def _check_clusters(n_clusters: int, sketch) -> None:
    """Refuse more clusters than a sketch's numbers can tell: each has d coordinates and a weight.

    That is half as strict as the decoder's warning: it may be wanted, but this cannot be solved.
    """
    m, d = sketch.n_frequencies, sketch.n_features
    most = 2 * m // (d + 1)
    if n_clusters > most:
        raise ValueError(
            f"--clusters {n_clusters}: {m} frequencies cannot tell more than {most} clusters of "
            f"{d} features apart; make sketches with --frequencies {10 * n_clusters * d}, or ask "
            "for fewer clusters"
        )
