"""``privclust decode``: clusters or subspaces from one or more sketches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from privclust.command.arguments import add_command, number, refuse, seed, size
from privclust.command.output import (
    add_output,
    check_free,
    check_output,
    check_readable,
    checked_folder,
    count,
    print_result,
    say,
    say_privacy,
    written,
)


def add_to(commands) -> None:
    parser = add_command(
        commands,
        "decode",
        _run,
        summary="find clusters or subspaces from one or more sketches",
        description="Find cluster centers, or subspaces, from merged sketches of disjoint records. "
        "Centers are written as CSV with their weights, in names and units of declared columns; "
        "subspaces as orthonormal rows with their weights and expected errors. All results have "
        "the guarantee of the sketches.",
    )
    add = parser.add_argument
    add("sketches", nargs="+", metavar="SKETCH", help="files that privclust sketch wrote")
    add(
        "--clusters",
        type=size,
        required=True,
        metavar="K",
        help="number of clusters, or 'auto': chosen from 1 to 20 (subspaces: from 1 to 6)",
    )
    add(
        "--bounds",
        type=number,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="bounds of every feature, if columns were not declared",
    )
    add(
        "--subspaces",
        action="store_true",
        help="find subspaces, from sketches made with --subspaces",
    )
    add(
        "--dimension",
        type=size,
        metavar="Q",
        help="dimension of each subspace, or 'auto': chosen from 1 to 6",
    )
    add(
        "--errors",
        action="store_true",
        help="add columns with standard errors of centers and weights, from noise and sampling, "
        "and spreads of clusters with their standard errors; always added for declared columns",
    )
    add(
        "--report",
        metavar="FOLDER",
        help="also write the report of privclust cluster into a folder; needs declared columns",
    )
    add(
        "--seed",
        type=seed,
        metavar="S",
        help="seed of random starts; default: derived from the sums, so that the same sketches "
        "give the same clusters in any order",
    )
    add_output(add, "CSV", "file to write (.csv); default: the standard output")


def _run(args) -> None:
    _check_arguments(args)
    if args.output is not None:
        check_output(args.output, args.sketches, "CSV", args.force)
    check_readable(args.sketches)

    from privclust.core.files import write_text
    from privclust.core.packages import require

    if args.report is not None:
        from privclust.report.written import NAMES

        for package in ("matplotlib", "jinja2"):
            require(package, "reports on clusters")
        checked_folder(args.report, args.sketches, NAMES, args.force)
    text, remarks, sketch = (_subspaces if args.subspaces else _clusters)(args)
    if args.output is not None:
        check_free(args.output, args.force)
        with written(args.output):
            write_text(args.output, text)
    elif args.report is None:
        print_result(text)
    for remark in remarks:
        say(remark)
    say_privacy(sketch)


def _check_arguments(args) -> None:
    if args.bounds is not None and not args.bounds[0] < args.bounds[1]:
        args.usage_error("--bounds: LOW must be less than HIGH")
    if args.subspaces:
        refuse(args, ["errors"], "does not go with --subspaces, which always gives errors")
        if args.dimension is None:
            args.usage_error("--subspaces needs --dimension Q, or 'auto'")
        refuse(args, ["bounds"], "does not go with --subspaces, which go through the origin")
        refuse(args, ["report"], "does not go with --subspaces")
    else:
        refuse(args, ["dimension"], "goes with --subspaces")
    if len({os.path.realpath(path) for path in args.sketches}) < len(args.sketches):
        args.usage_error("one SKETCH is named twice: its records would count twice")


def _clusters(args):
    """Return the text of a table, remarks and the sketch of clusters."""
    from privclust.decoding import count_clusters, decode, decoding_summary
    from privclust.decoding._cluster_count import MOST_CLUSTERS
    from privclust.preprocessing import TableEncoder
    from privclust.sketches import Sketch

    sketch, encoder = _merged(args.sketches, Sketch, lambda sketch: sketch.sums), None
    if sketch.table is not None:
        if args.bounds is not None:
            args.usage_error("--bounds: those that were declared are in the sketches")
        encoder = TableEncoder(sketch.table.columns, missing=sketch.table.missing)
    elif args.report is not None:
        raise ValueError(
            f"{args.sketches[0]}: carries no declared columns, which a report needs: make sketches "
            "with --bounds and --categories"
        )
    bounds: Any = None if args.bounds is None else tuple(args.bounds)
    bounds = bounds if encoder is None else encoder.bounds_
    hidden = ""
    if args.clusters == "auto":
        most = min(MOST_CLUSTERS, _most_clusters(sketch))
        count = count_clusters(sketch, most, bounds=bounds, random_state=args.seed)
        args.clusters = count.n_clusters
        of_count = [count.hidden() if sketch.noise else "", count.none_separate()]
        hidden = "; ".join(filter(None, of_count))
    _check_clusters(args.clusters, sketch)
    decoded = decode(sketch, args.clusters, bounds=bounds, random_state=args.seed)
    remarks = [_remark(f"{args.clusters} centers", sketch, args)]
    remarks += filter(None, [decoding_summary(sketch, decoded), hidden])
    if encoder is None:
        return _centers(sketch, decoded, args), remarks, sketch
    text, on_table = _in_units(sketch, encoder, decoded, hidden, args)
    return text, [*remarks, *on_table], sketch


def _in_units(sketch, encoder, decoded, hidden: str, args):
    """Return clusters in units, as text, and remarks on them; write the report if requested."""
    from privclust.decoding import hidden_by_noise, standard_errors
    from privclust.report import TableClusters, write
    from privclust.report.missing import missing_remarks
    from privclust.report.words import origin

    on_noise = hidden_by_noise(sketch, decoded) if sketch.noise else ""
    on_missing = missing_remarks(sketch.table, sketch.n_samples, sketch.left_out, sketch.unit)
    remarks = [*filter(None, [on_noise, hidden]), *on_missing]
    errors = standard_errors(sketch, decoded, random_state=args.seed)
    clusters = TableClusters.of_sketch(encoder, sketch, decoded, errors, remarks=tuple(remarks))
    if args.report is not None:
        with written(args.report):
            paths = *args.sketches, args.report, args.output
            write(clusters, args.report, origin=origin(args.typed, paths))
        say(f"{os.path.join(args.report, 'report.html')}: {len(clusters.weights)} clusters")
    return clusters.csv(), [remark for remark in clusters.remarks if remark != hidden]


def _centers(sketch, decoded, args) -> str:
    import numpy as np

    from privclust.decoding import standard_errors

    columns = [*_features(sketch), "weight"]
    rows = [
        _line([*center, weight])
        for center, weight in zip(decoded.centers, decoded.weights, strict=True)
    ]
    if args.errors:
        errors = standard_errors(sketch, decoded, random_state=args.seed)
        names = _features(sketch)
        columns += [f"{name}_error" for name in columns]
        columns += [f"{name}_spread" for name in names]
        columns += [*(f"{name}_spread_error" for name in names), "reliable"]
        spreads = np.hstack([decoded.cluster_spreads, errors.spreads])
        is_reliable = errors.is_reliable & decoded.is_detected
        told = zip(
            rows,
            np.column_stack([errors.centers, errors.weights, spreads]),
            decoded.is_detected,
            is_reliable,
            strict=True,
        )
        rows = [
            f"{row},{_line(cells) if is_own else ',' * (len(cells) - 1)},{_word(is_known)}"
            for row, cells, is_own, is_known in told
        ]
    if sketch.noise:
        columns.append("detected")
        rows = [f"{row},{_word(it)}" for row, it in zip(rows, decoded.is_detected, strict=True)]
    return _text(columns, rows)


def _text(columns: list[str], rows: list[str]) -> str:
    return "\n".join([",".join(columns), *rows]) + "\n"


def _word(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _subspaces(args):
    """Return the text of a table, remarks and the sketch: a row for each basis vector."""
    import numpy as np

    from privclust.privacy.hidden import noise_message, warn_of_noise
    from privclust.sketches import MomentSketch
    from privclust.subspaces import decode
    from privclust.subspaces.moments import choose_sizes, is_detected, misfit_message

    sketch = _merged(
        args.sketches,
        MomentSketch,
        lambda sketch: np.concatenate([sketch.moments[degree] for degree in sketch.moments]),
    )
    rng = np.random.default_rng(args.seed)
    given = [None if size == "auto" else size for size in (args.clusters, args.dimension)]
    k, q = choose_sizes(sketch, *given, random_state=rng)
    decoded = decode(sketch, k, q, random_state=rng)
    detected = is_detected(decoded)
    warn_of_noise(noise_message(detected, of="subspaces"))
    if message := misfit_message(decoded):
        warnings.warn(message, UserWarning, stacklevel=2)
    columns = ["subspace", "direction", *_features(sketch), "weight", "error", "detected"]
    told = zip(decoded.subspaces, decoded.weights, decoded.errors, detected, strict=True)
    rows = [
        f"{j},{i},{_line([*vector, weight, error])},{_word(is_one_detected)}"
        for j, (basis, weight, error, is_one_detected) in enumerate(told, start=1)
        for i, vector in enumerate(basis.T, start=1)
    ]
    remarks = [_remark(f"{k} subspaces of dimension {q}", sketch, args)]
    return _text(columns, rows), remarks, sketch


def _features(sketch) -> list[str]:
    return [f"x{j + 1}" for j in range(sketch.n_features)]


def _line(values) -> str:
    """Return numbers as text that is read back exactly."""
    return ",".join(repr(float(value)) for value in values)


def _remark(what: str, sketch, args) -> str:
    """Return a remark on the number of records."""
    n_sketches = "1 sketch" if len(args.sketches) == 1 else f"{len(args.sketches)} sketches"
    return f"{what} from {count(sketch)} in {n_sketches}"


def _merged(paths: list[str], sketch_type, sums_of: Callable):
    """Return the sum of sketches, in any order, or raise an error that names two that do not merge.

    Noisy sums are added in the order of their bytes. So rounding, and the decoder's seed, which is
    derived from the sums, do not depend on the order of files.
    """
    seen: dict[bytes, str] = {}
    sketches = []
    for path in paths:
        sketch = sketch_type.load(path)
        sums = sums_of(sketch)
        twin = seen.setdefault(sums.tobytes(), path)
        if twin is not path and sums.any():
            raise ValueError(
                f"{twin} and {path}: hold the same sums, whose records would count twice"
            )
        if sketches:
            _check_mergeable(sketches[0], (sums.tobytes(), path, sketch))
        sketches.append((sums.tobytes(), path, sketch))
    _, _, merged = min(sketches, key=lambda named: named[0])
    for _, _, sketch in sorted(sketches, key=lambda named: named[0])[1:]:
        merged = merged + sketch
    return merged


def _check_mergeable(first, other) -> None:
    try:
        first[2] + other[2]
    except ValueError as error:
        statements = [_statement(first[2]), _statement(other[2])]
        reason = str(error)
        if statements[0] != statements[1] and None not in statements:
            reason = (
                f"sketches cannot be merged: one gives {statements[0]}, the other "
                f"{statements[1]}; make all with the same options of privacy"
            )
        raise ValueError(f"{first[1]} and {other[1]}: {reason}") from None


def _statement(sketch) -> str | None:
    """The first line of a sketch's guarantee; None if it has none."""
    return None if sketch.guarantee is None else str(sketch.guarantee).splitlines()[0]


def _most_clusters(sketch) -> int:
    return max(2 * sketch.n_frequencies // (sketch.n_features + 1), 1)


def _check_clusters(n_clusters: int, sketch) -> None:
    """Refuse more clusters than a sketch can determine: each has d coordinates and a weight.

    The decoder warns at half this number; beyond this one there is no unique solution.
    """
    m, d, most = sketch.n_frequencies, sketch.n_features, _most_clusters(sketch)
    if n_clusters > most:
        raise ValueError(
            f"--clusters {n_clusters}: {m} frequencies cannot tell more than {most} clusters of "
            f"{d} features apart; make sketches with --frequencies {10 * n_clusters * d}, or ask "
            "for fewer clusters"
        )
