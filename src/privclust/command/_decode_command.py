"""``privclust decode``: other clusters of a sketch, without further privacy loss."""

from __future__ import annotations

import functools
import operator
import os
from typing import Any

from privclust.command.arguments import add_command, seed, size
from privclust.command.output import check_readable, checked_folder, delivered, say, written

_NOT_PRIVATE = "made from exact sums, which can reveal records: keep it as the data themselves"


def add_to(commands) -> None:
    parser = add_command(
        commands,
        "decode",
        _run,
        summary="find clusters again in a sketch, such as that of privclust cluster",
        description="Find clusters in sketches with declared columns: the file sketch.h5 that "
        "privclust cluster writes, or sketches of privclust.sketches.Sketch.of_table with a "
        "TableEncoder. Sketches of several tables are added up. The report of privclust cluster "
        "is written into a folder, with the guarantee of the sum.",
    )
    add = parser.add_argument
    add("sketches", nargs="+", metavar="SKETCH", help="a sketch (.h5); several are added up")
    add("-o", "--output", metavar="FOLDER", required=True, help="folder to write into")
    add("--force", action="store_true", help="replace files in the folder")
    add(
        "--clusters",
        type=size,
        default="auto",
        metavar="K",
        help="number of clusters, or 'auto' (the default): chosen from 1 to 20",
    )
    add(
        "--seed",
        type=seed,
        metavar="S",
        help="seed of random starts; default: derived from the sums, so that the same sketch "
        "gives the same clusters",
    )


def _run(args) -> None:
    check_readable(args.sketches)

    from privclust.core.packages import require
    from privclust.report.written import NAMES

    for package in ("matplotlib", "jinja2"):
        require(package, "reports on clusters")
    folder = checked_folder(args.output, args.sketches, NAMES, args.force)

    from privclust.decoding import (
        count_clusters,
        decode,
        hidden_by_noise,
        standard_errors,
    )
    from privclust.decoding._cluster_count import MOST_CLUSTERS
    from privclust.preprocessing import TableEncoder
    from privclust.privacy import Guarantee, Neighbours
    from privclust.report import TableClusters, write
    from privclust.report.missing import missing_remarks
    from privclust.report.words import origin
    from privclust.sketches import Sketch

    sketches = [Sketch.load(path) for path in args.sketches]
    if len({each.sums.tobytes() for each in sketches}) < len(sketches):
        raise ValueError("two of the sketches are the same: name each once")
    sketch = functools.reduce(operator.add, sketches)
    if sketch.table is None:
        raise ValueError(
            f"{args.sketches[0]}: carries no declared columns, which a report needs: decode it by "
            "privclust.decoding.decode"
        )
    missing: Any = sketch.table.missing
    encoder = TableEncoder(sketch.table.columns, missing=missing)
    how: dict[str, Any] = {"bounds": encoder.bounds_, "random_state": args.seed}
    n_clusters, hidden = args.clusters, ""
    if n_clusters == "auto":
        count = count_clusters(sketch, min(MOST_CLUSTERS, _most_clusters(sketch)), **how)
        n_clusters = count.n_clusters
        of_count = [count.hidden() if sketch.noise else "", count.none_separate()]
        hidden = "; ".join(filter(None, of_count))
    _check_clusters(n_clusters, sketch)
    decoded = decode(sketch, n_clusters, **how)
    errors = standard_errors(sketch, decoded, random_state=args.seed)
    on_noise = hidden_by_noise(sketch, decoded) if sketch.noise else ""
    on_missing = missing_remarks(sketch.table, sketch.n_samples, sketch.left_out, sketch.unit)
    remarks = (*filter(None, [on_noise, hidden]), *on_missing)
    numbers = sketch.n_samples, float(sketch.n_left_out)
    guarantee = sketch.guarantee or Guarantee(
        "none", Neighbours.REPLACE_ONE, caveats=(_NOT_PRIVATE,), unit=sketch.unit
    )
    clusters = TableClusters.of_found(
        encoder, numbers, decoded, errors, guarantee=guarantee, remarks=remarks
    )
    with delivered(folder, NAMES), written(args.output):
        write(clusters, args.output, origin=origin(args.typed, (*args.sketches, args.output)))
    for remark in clusters.remarks:
        say(remark)
    say(f"{os.path.join(args.output, 'report.html')}: {len(clusters.weights)} clusters")
    say(str(guarantee))


def _most_clusters(sketch) -> int:
    # a frequency gives two real numbers
    return max(2 * sketch.n_frequencies // (sketch.n_features + 1), 1)


def _check_clusters(n_clusters: int, sketch) -> None:
    """Refuse more clusters than a sketch can determine: each has d coordinates and a weight.

    The decoder warns at half this number; beyond this one there is no unique solution.
    """
    m, d, most = sketch.n_frequencies, sketch.n_features, _most_clusters(sketch)
    if n_clusters > most:
        raise ValueError(
            f"--clusters {n_clusters}: {m} frequencies cannot tell more than {most} clusters of "
            f"{d} features apart; sketch with {10 * n_clusters * d} frequencies, or ask for fewer "
            "clusters"
        )
