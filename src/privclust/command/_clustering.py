"""What ``privclust cluster`` does: from an opened table to a report on private clusters."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from privclust.command._declared_columns import MISSING_SHARE, part_of_budget
from privclust.command.output import checked_folder, delivered, progress, say, written
from privclust.core.packages import require
from privclust.decoding._cluster_count import MOST_CLUSTERS
from privclust.kmeans import CompressiveKMeans, TreeKMeans
from privclust.kmeans._private import method_for
from privclust.preprocessing import TableEncoder, missing_counts, noise_by_column, private_bounds
from privclust.privacy import Budget, NoiseWarning, WeakGuaranteeWarning, noise_source
from privclust.privacy.advice import WEAK, noted
from privclust.records.columns import column_of
from privclust.report import TableClusters, write
from privclust.report.missing import missing_remarks
from privclust.report.words import origin
from privclust.report.written import NAMES
from privclust.sketches import SketchedTable

_SKETCH = "sketch.h5"
_UNREADABLE = "an error for a table that cannot be read is outside the guarantee"
_ANY_NUMBER = (-1e307, 1e307)  # range of a column without bounds


def cluster(table, declared: dict[str, Any], unknown: list[str], args) -> None:
    """Find the clusters of a table and write the report; `unknown` columns have no bounds."""
    if args.seed is None:
        noise_source(None)  # finds missing packages early
    if args.missing == "drop":  # finds budgets without such noise early
        share = part_of_budget(args.epsilon, args.delta, MISSING_SHARE)
        noise_by_column(len(declared), *share, args.neighbours)
    n_clusters = MOST_CLUSTERS if args.clusters == "auto" else args.clusters
    width = sum(len(ends) if isinstance(ends, list) else 1 for ends in declared.values())
    inputs, names = [args.table, args.budget], (*NAMES, _SKETCH)
    folder = checked_folder(args.output, inputs, names, args.force, (n_clusters, width))
    columns, unread, groups = _read(table, args, declared)
    try:
        with Budget.open(args.budget) if args.budget else contextlib.nullcontext():
            bounds, declared = _private_bounds(columns, groups, declared, unknown, args)
            model, remarks = _fitted(columns, groups, declared, bounds, args)
            missing = _missing(unread, groups, args)
    except BaseException as error:
        if not isinstance(error, Exception):  # stopped: nobody knows before or after the charge
            error.add_note("nothing was written; the budget may be spent")
        raise
    with delivered(folder, names, "the budget is spent; "):
        encoder = TableEncoder(declared, missing=args.missing)
        table = SketchedTable(declared, args.missing)
        if missing is not None:
            unread = np.stack([missing.missing, missing.unreadable])
            table = replace(table, unread=unread, deviation=missing.deviation)
        n_records = model.sketch_.n_samples if _has_sketch(model) else model.n_records_
        on_missing = missing_remarks(table, n_records, model.left_out_, model.guarantee_.unit)
        for remark in on_missing:
            say(remark)
        remarks = [*remarks, *on_missing]  # first whether other clusters fit as well
        others = [bounds and bounds.guarantee.part("bounds"), missing and missing.guarantee]
        _write(folder, encoder, (model, table), others, tuple(unknown), remarks, args)


def _read(table, args, declared: dict[str, Any]):
    """Return columns, encoded if they are declared, otherwise as numbers; entries; and persons.

    Entries (n, 2 d) are flags of missing and of unreadable entries. The number of rows is printed
    only if it is public.
    """

    def encoded(name, part):
        """Return the coordinates of a column (n, width) of float32, or its numbers."""
        if declared[name] is None:
            return part[name].numbers()
        encoder = TableEncoder({name: declared[name]}, missing=args.missing)
        return encoder.transform(part).astype(np.float32)

    is_public = args.neighbours == "replace_one" and not args.groups
    with progress(None, "rows read") if is_public else contextlib.nullcontext() as advance:
        say(f"reading {args.table}")
        parts, unread, groups = [], [], []
        every = TableEncoder({name: ends or _ANY_NUMBER for name, ends in declared.items()})
        for part in table.columns([*declared, *([args.groups] if args.groups else [])]):
            parts.append({name: encoded(name, part) for name in declared})
            unread.append(np.hstack(every.unread(part)))
            if args.groups:
                groups += part[args.groups].keys()
            if advance is not None:
                advance(len(part[args.groups or next(iter(declared))]))
    if not any(len(part[name]) for part in parts for name in part):
        if args.neighbours == "replace_one":
            raise ValueError(f"{args.table}: has no rows")
        # under add-remove a table without rows is as good as any
        nothing = dict.fromkeys(declared, column_of([]))
        parts = [{name: encoded(name, nothing) for name in declared}]
        unread = [np.hstack(every.unread(nothing))]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in declared}
    return columns, np.concatenate(unread), groups if args.groups else None


def _private_bounds(columns, groups, declared, unknown, args):
    """Return private bounds, if requested for any column, and declarations with them."""
    if not unknown:
        return None, declared
    bounds = private_bounds(
        require("pyarrow", "tables").table({name: columns[name] for name in unknown}),
        *part_of_budget(args.epsilon, args.delta, args.private_bounds),
        groups=groups,
        neighbours=args.neighbours,
        # a stream of its own: from one stream the noise of both would be equal
        random_state=None if args.seed is None else np.random.default_rng([args.seed, 1]),
    )
    for name, is_detected in zip(unknown, bounds.is_detected, strict=True):
        if not is_detected:
            raise ValueError(
                f"noise hides the bounds of column {name!r}, or it holds no numbers: give its "
                "--bounds. The budget of --private-bounds is spent"
            )
    declared = dict(declared)
    for name, low, high in zip(unknown, bounds.low.tolist(), bounds.high.tolist(), strict=True):
        say(f"bounds of {name}: {low:.6g} to {high:.6g}")
        declared[name] = low, high
        encoder = TableEncoder({name: declared[name]}, missing=args.missing)
        columns[name] = encoder.transform(columns).astype(np.float32)
    return bounds, declared


def _missing(unread, groups, args):
    """Return noisy numbers of missing and unreadable entries, if rows are left out for them."""
    if args.missing != "drop":
        return None
    try:
        return missing_counts(
            *np.hsplit(unread, 2),
            *part_of_budget(args.epsilon, args.delta, MISSING_SHARE),
            groups=groups,
            neighbours=args.neighbours,
            # see `_private_bounds`
            random_state=None if args.seed is None else np.random.default_rng([args.seed, 2]),
        )
    except Exception as error:  # the clusters are already released and must not be lost
        say(f"no counts of missing entries: {error}")
        return None


def _estimator(declared, bounds, args):
    """Return the estimator that public parameters choose: a tree or a sketch, not fitted."""
    share = 1.0 - (0.0 if bounds is None else args.private_bounds)
    share -= MISSING_SHARE if args.missing == "drop" else 0.0
    epsilon, delta = part_of_budget(args.epsilon, args.delta, share)
    settings = {
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": args.neighbours,
        "bounds": TableEncoder(declared).bounds_,
        "missing": args.missing,
        "random_state": args.seed,
    }
    is_given = args.method == "auto" and args.clusters != "auto"
    has_categories = any(isinstance(ends, list) for ends in declared.values())
    if is_given and not has_categories and method_for(len(declared), delta) == "tree":
        return TreeKMeans(args.clusters, **settings)
    # `part_of_budget` gives a part for Gaussian noise, see its docstring
    noise = "gaussian" if share < 1.0 and delta else "auto"
    return CompressiveKMeans(args.clusters, noise=noise, **settings)


def _has_sketch(model) -> bool:
    """Return whether a fitted model has a sketch: a tree has none."""
    return hasattr(model, "sketch_")


def _fitted(columns, groups, declared, bounds, args):
    model = _estimator(declared, bounds, args)
    say("finding clusters")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(np.hstack(list(columns.values())), groups=groups)
    remarks = [str(w.message) for w in caught if issubclass(w.category, NoiseWarning)]
    count = model.cluster_count_ if _has_sketch(model) else None
    if count is not None and (none := count.none_separate()):
        say(none)
        remarks.append(none)
    for warning in caught:
        if not issubclass(warning.category, WeakGuaranteeWarning):  # `_total` judges all releases
            warnings.warn(warning.message, warning.category, stacklevel=2)
    return model, remarks


def _total(model, others):
    """Return the guarantee of all releases; a weak one has caveats with its own numbers."""
    before = [other for other in others if other]
    total = before[0].compose(*before[1:], model.guarantee_) if before else model.guarantee_
    caveats = [caveat for caveat in total.caveats if not caveat.startswith(WEAK)]
    caveats = dict.fromkeys((*caveats, _UNREADABLE))
    return noted(replace(total, caveats=tuple(caveats)), model._n_public)


def _write(folder: Path, encoder, found, others, private, remarks, args) -> None:
    model, table = found
    paths = args.table, args.output, args.budget
    guarantee = _total(model, others)
    say("estimating standard errors")
    clusters = TableClusters.of(
        encoder,
        model,
        guarantee=guarantee,
        remarks=tuple(remarks),
        private_bounds=private,
        random_state=args.seed,
    )
    # the others have been said before
    for remark in clusters.remarks[len(remarks) :]:
        say(remark)
    with written(str(folder)):
        _save_sketch(folder / _SKETCH, model, table, guarantee)
        write(
            clusters,
            folder,
            source=Path(args.table).name,
            origin=origin(args.typed, paths),
            is_number_given=args.clusters != "auto",
        )
    n_detected = int(clusters.is_detected.sum())
    of = f" of {len(clusters.weights)}" if n_detected < len(clusters.weights) else ""
    word = "cluster" if n_detected == 1 and not of else "clusters"
    say(f"{folder / 'report.html'}: {n_detected}{of} {word} above the noise")
    if args.clusters == "auto" and len(clusters.weights) == MOST_CLUSTERS:
        say(f"{MOST_CLUSTERS} is the most that auto looks for: there may be more (--clusters K)")
    say(str(guarantee))


def _save_sketch(path: Path, model, table, guarantee) -> None:
    """Write the sketch of a model with the guarantee of all releases; say if there is none."""
    if not _has_sketch(model):
        say(f"clusters are from a tree of counts, so no {path.name}: --method sketch writes one")
    elif model.sketch_.n_features == table.n_features:  # not along random directions
        sketch = replace(model.sketch_, table=table, left_out=model.left_out_)
        replace(sketch, guarantee=guarantee).save(path)
