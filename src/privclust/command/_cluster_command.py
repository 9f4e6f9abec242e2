"""``privclust cluster``: from a table to private clusters in its own units."""

from __future__ import annotations

import argparse
import contextlib
import os
import warnings
from pathlib import Path

from privclust.command._arguments import (
    add_command,
    delimiter,
    number,
    positive_number,
    probability,
    seed,
    size,
)
from privclust.command._declared_columns import Declarations, declared_columns, names
from privclust.command._output import check_readable, check_write, progress, say, written

_SKETCH = "sketch.h5"
_ROOM = 1 << 20  # of what is written, at most about
_UNREADABLE = "an error for a table that cannot be read is outside the guarantee"
_MISSING_GROUP = "an error for a row that is no one's is outside the guarantee"


def add_to(commands) -> None:
    """``privclust cluster``."""
    parser = add_command(
        commands,
        "cluster",
        _run,
        summary="find private clusters in a table, in its own units",
        description="Find clusters of a table's rows under differential privacy. Columns are "
        "scaled by what is declared of them. Centers, errors, a picture, the guarantee and a "
        "report are written into a folder; all may be published under the guarantee.",
    )
    add = parser.add_argument
    add("table", metavar="TABLE", help="CSV with a header, or Parquet")
    add("-o", "--output", metavar="FOLDER", required=True, help="folder to write into")
    add("--force", action="store_true", help="replace files in the folder")
    add(
        "--delimiter",
        type=delimiter,
        metavar="C",
        help="character between the fields of CSV files, or 'tab'; default: ,",
    )
    add(
        "--clusters",
        type=size,
        default="auto",
        metavar="K",
        help="how many, or 'auto', the default, which chooses from 1 to 20 at no budget",
    )
    _add_columns(parser.add_argument_group("columns").add_argument)
    _add_privacy(parser.add_argument_group("privacy").add_argument)


def _add_columns(add) -> None:
    """Add what declares columns."""
    add("--columns", type=names, metavar="A,B", help="that count; default: all that are declared")
    add(
        "--bounds",
        action=Declarations,
        nargs="+",
        metavar="NAME=LOW:HIGH",
        help="what numbers or dates (2024-12-31) of a column may be, of anybody; several after "
        "commas. Entries beyond count as the nearest bound. Never take them from the table",
    )
    add(
        "--categories",
        action=Declarations,
        nargs="+",
        metavar="NAME=A:B:C",
        help="the categories of a column",
    )
    add(
        "--private-bounds",
        type=_share,
        nargs="?",
        const=0.1,
        metavar="SHARE",
        help="find the bounds of columns of numbers that have none, on this part of epsilon and "
        "delta; default: 0.1",
    )
    add(
        "--groups",
        metavar="NAME",
        help="column that says whose a row is, such as a customer: all rows of one are protected "
        "together, and each counts as one record, whatever its number of rows",
    )


def _add_privacy(add) -> None:
    """Add what privacy is asked for."""
    add("--epsilon", type=positive_number, metavar="E", required=True, help="in nats")
    add(
        "--delta",
        type=probability,
        metavar="D",
        required=True,
        help="well below one over the number of records, such as 1e-6; 0 needs far more noise",
    )
    add(
        "--neighbours",
        choices=("replace_one", "add_remove"),
        default="replace_one",
        type=lambda name: name.replace("-", "_"),
        help="what is hidden: one record's values (replace_one, the default; the number of records "
        "is public), or whether it is there at all (add_remove)",
    )
    add(
        "--seed",
        type=seed,
        metavar="S",
        help="of noise too, for reproduction ONLY: who knows it can take the noise off",
    )
    add("--budget", metavar="FILE", help="ledger to draw on (privclust.privacy.Budget.open)")


def _share(text: str) -> float:
    """A part of the budget, below one half."""
    value = number(text)
    if not 0.0 < value <= 0.5:
        raise argparse.ArgumentTypeError(f"must be greater than 0, at most 0.5, got {text!r}")
    return value


def _run(args) -> None:
    """Read the columns, bound them, find clusters, write the report."""
    declared, unknown = declared_columns(args)
    check_readable([args.table, args.budget])

    from privclust.core.named_columns import Table
    from privclust.core.packages import require
    from privclust.preprocessing import TableEncoder
    from privclust.privacy import Budget, noise_source

    for package in ("matplotlib", "jinja2"):
        require(package, "reports on clusters")
    table = Table(args.table, args.delimiter)
    known = {name: ends for name, ends in declared.items() if ends is not None}
    encoder = TableEncoder(known) if known else None
    if encoder is not None:
        encoder.bounds_  # noqa: B018  says now what is wrong with a declaration
    if args.seed is None:
        noise_source(None)  # says now what is not installed
    folder = _checked_folder(args)
    columns, groups = _read(table, args, list(declared))
    with Budget.open(args.budget) if args.budget else contextlib.nullcontext() as ledger:
        if ledger is not None and args.epsilon > ledger.remaining():
            raise ValueError(f"{args.budget}: has {ledger.remaining():.4g} left of epsilon")
        bounds, declared = _found_bounds(columns, groups, declared, unknown, args)
        encoder = TableEncoder(declared)
        model, remarks = _fitted(encoder, columns, groups, args)
    _write(folder, encoder, model, bounds, remarks, args)


def _checked_folder(args) -> Path:
    """Find out before the table is read whether the folder can be written to."""
    from privclust.report.clusters.written import NAMES

    folder = Path(args.output)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: is no folder; name a folder to write into")
    if not args.force:
        for name in (*NAMES, _SKETCH):
            if os.path.lexists(folder / name):
                raise ValueError(
                    f"{folder / name}: is there already; name another, or pass --force"
                )
    with written(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
    check_write(folder / _SKETCH, _ROOM)
    return folder


def _read(table, args, columns: list[str]):
    """Return the columns and whose rows are."""
    import numpy as np

    asked = [*columns, *([args.groups] if args.groups else [])]
    parts: list[dict] = []
    with progress(None, "rows read") as advance:
        for part in table.columns(asked):
            parts.append(part)
            advance(len(part[asked[0]]))
    whole = {
        name: np.concatenate([part[name] for part in parts]) if parts else np.zeros(0)
        for name in asked
    }
    groups = whole.pop(args.groups) if args.groups else None
    return whole, groups


def _found_bounds(columns, groups, declared, unknown, args):
    """Return private bounds, if any are to be found, and declarations that have them."""
    if not unknown:
        return None, declared
    import numpy as np

    from privclust.preprocessing import private_bounds
    from privclust.preprocessing.table_encoder import numbers_of

    X = np.column_stack([numbers_of(columns[name]) for name in unknown])
    bounds = private_bounds(
        X,
        args.private_bounds * args.epsilon,
        args.private_bounds * args.delta,
        groups=groups,
        neighbours=args.neighbours,
        random_state=None if args.seed is None else np.random.default_rng([args.seed, 1]),
    )
    for name, is_clear in zip(unknown, bounds.is_clear, strict=True):
        if not is_clear:
            raise ValueError(
                f"noise hides the bounds of column {name!r}, or it holds no numbers: give its "
                "--bounds. What --private-bounds costs is spent"
            )
    told = dict(
        zip(unknown, zip(bounds.low.tolist(), bounds.high.tolist(), strict=True), strict=True)
    )
    for name, (low, high) in told.items():
        say(f"bounds of {name}: {low:.6g} to {high:.6g}")
    return bounds, {name: told.get(name, ends) for name, ends in declared.items()}


def _fitted(encoder, columns, groups, args):
    """Return the model and what it warned of."""
    import numpy as np

    from privclust.kmeans import CompressiveKMeans
    from privclust.privacy import NoiseWarning

    X = encoder.transform(columns).astype(np.float32)
    share = 1.0 if args.private_bounds is None else 1.0 - args.private_bounds
    model = CompressiveKMeans(
        args.clusters,
        epsilon=share * args.epsilon,
        delta=share * args.delta,
        neighbours=args.neighbours,
        bounds=encoder.bounds_,
        random_state=args.seed,
    )
    say("finding clusters")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, groups=groups)
    remarks = [str(w.message) for w in caught if issubclass(w.category, NoiseWarning)]
    for warning in caught:
        warnings.warn(warning.message, warning.category, stacklevel=2)
    return model, remarks


def _write(folder: Path, encoder, model, bounds, remarks, args) -> None:
    """Write all files, and say what was found."""
    from dataclasses import replace

    from privclust.privacy import Guarantee
    from privclust.report.clusters import TableClusters, write

    guarantee = model.guarantee_
    caveats = [*guarantee.caveats, _UNREADABLE, *([_MISSING_GROUP] if args.groups else [])]
    guarantee = replace(guarantee, caveats=tuple(dict.fromkeys(caveats)))
    if bounds is not None:
        found = bounds.guarantee.part("bounds")
        guarantee = Guarantee.of(
            [*found.releases, *guarantee.releases],
            guarantee.definition,
            guarantee.relation,
            delta=args.delta,
            seeded=guarantee.seeded,
            caveats=guarantee.caveats,
            unit=guarantee.unit,
        )
    say("finding how far centers may be off")
    clusters = TableClusters.of(
        encoder, model, guarantee=guarantee, remarks=tuple(remarks), random_state=args.seed
    )
    with written(str(folder)):
        write(clusters, folder)
        if model.sketch_.n_features == len(encoder.scale()):  # of directions it is of no use
            sketch = replace(model.sketch_, guarantee=guarantee)
            sketch.save(folder / _SKETCH)
    n_clear = int(clusters.is_clear.sum())
    of = f" of {len(clusters.weights)}" if n_clear < len(clusters.weights) else ""
    say(f"{folder / 'report.html'}: {n_clear}{of} clusters above the noise")
    say(str(guarantee))
