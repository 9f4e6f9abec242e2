"""``privclust decode``: clusters from one or more sketches."""

from __future__ import annotations

import os
import sys

from privclust.command._arguments import add_command, number, positive_integer, seed
from privclust.command._output import check_output, count, say, say_privacy


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
    add("-o", "--output", metavar="CSV", help="default: the standard output")


def _run(args) -> None:
    """Merge sketches, find centers, write them as CSV."""
    if args.bounds is not None and not args.bounds[0] < args.bounds[1]:
        args.usage_error("--bounds: LOW must be less than HIGH")
    resolved = [os.path.realpath(path) for path in args.sketches]
    if len(set(resolved)) < len(resolved):
        args.usage_error("one SKETCH is named twice: its records would count twice")
    if args.output is not None:
        check_output(args.output, args.sketches)

    from functools import reduce
    from operator import add

    from privclust.core.files import write_text
    from privclust.kmeans import Sketch, decode

    sketch = reduce(add, (Sketch.load(path) for path in args.sketches))
    bounds = None if args.bounds is None else tuple(args.bounds)
    decoded = decode(sketch, args.clusters, bounds=bounds, random_state=args.seed)
    columns = ",".join([*(f"x{j + 1}" for j in range(sketch.n_features)), "weight"])
    rows = (
        ",".join(repr(float(value)) for value in (*center, weight))
        for center, weight in zip(decoded.centers, decoded.weights, strict=True)
    )
    text = "\n".join([columns, *rows]) + "\n"
    if args.output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(args.output, text)
    n_sketches = "1 sketch" if len(resolved) == 1 else f"{len(resolved)} sketches"
    say(f"{args.clusters} centers from {count(sketch)} records in {n_sketches}")
    say_privacy(sketch)
