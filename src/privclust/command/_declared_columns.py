"""Declarations of a table's columns on the command line."""

from __future__ import annotations

import argparse
from typing import Any

from privclust.command.arguments import delimiter

MISSING_SHARE = 0.02  # docs/table.md states its budget and error


class Declarations(argparse.Action):
    """Collect ``NAME=VALUE`` from several arguments, each with one or more between commas."""

    def __call__(self, parser, namespace, values, option_string=None):
        declared = dict(getattr(namespace, self.dest) or {})
        for item in (item for value in values for item in _items(value)):
            name, equals, text = item.partition("=")
            if not (name and equals and text):
                parser.error(f"{option_string}: must be NAME=..., got {item!r}")
            if name in declared:
                parser.error(f"{option_string}: {name} is there twice")
            declared[name] = text
        setattr(namespace, self.dest, declared)


def _items(text: str) -> list[str]:
    """Split at commas; a part without ``=`` continues the previous item: ``city=Paris, TX``."""
    items: list[str] = []
    for part in text.split(","):
        if items and "=" not in part:
            items[-1] += f",{part}"
        else:
            items.append(part)
    return items


def add_notation(add) -> None:
    add(
        "--delimiter",
        type=delimiter,
        metavar="C",
        help="character between the fields of CSV files, or 'tab'; default: ,",
    )
    add("--decimal", default=".", metavar="C", help="decimal mark in text files; default: .")
    add("--thousands", default="", metavar="C", help="thousands separator in text files")
    add(
        "--encoding", default="utf-8", metavar="NAME", help="encoding of text files, such as cp1252"
    )
    add(
        "--date-format",
        default="",
        metavar="F",
        help="format of dates in text files, as %%d.%%m.%%Y",
    )


def add_declarations(add) -> None:
    add(
        "--bounds",
        action=Declarations,
        nargs="+",
        metavar="NAME=LOW:HIGH",
        help="the widest plausible range of a column for anyone, of numbers or dates (2024-12-31). "
        "Values outside are clipped. Commas separate columns, so names must not contain a comma or "
        "=. Never derive bounds from the table",
    )
    add(
        "--categories",
        action=Declarations,
        nargs="+",
        metavar="NAME=A:B:C",
        help="the categories of a column",
    )
    add(
        "--missing",
        choices=("drop", "middle"),
        default="drop",
        help="rows with a missing or unreadable entry: 'drop', the default, leaves them out and "
        f"spends {MISSING_SHARE:.0%}% of the budget on noisy counts of these by column; 'middle' "
        "replaces the entry by the middle of the column's bounds",
    )


def opened_table(path: str, args):
    from privclust.records.files import kind_of_file
    from privclust.records.notation import Notation
    from privclust.records.table_files import open_table

    try:
        "".encode(args.encoding)
        notation = Notation(args.decimal, args.thousands, args.date_format)
    except (LookupError, ValueError) as error:
        args.usage_error(str(error))
    delimiter = args.delimiter if kind_of_file(path) == "text" else None
    return open_table(path, delimiter, encoding=args.encoding, notation=notation)


def kind_of_ends(ends: Any) -> str:
    """Return the kind of a column: ``"categories"``, ``"dates"`` or ``"numbers"``."""
    if isinstance(ends, list):
        return "categories"
    return "dates" if ends is not None and isinstance(ends[0], str) else "numbers"


def part_of_budget(epsilon: float, delta: float | None, share: float) -> tuple[float, float]:
    """Return epsilon and delta of a share of the budget; with a delta for Gaussian noise."""
    from privclust.privacy.measurements import gaussian_part

    if share < 1.0 and delta:
        return gaussian_part(epsilon, delta, share), delta
    return share * epsilon, delta or 0.0


def declared_columns(args) -> tuple[dict[str, Any], list[str]]:
    """Return declarations of columns, in order, and the columns with private bounds."""
    bounds, categories = args.bounds or {}, args.categories or {}
    for name in bounds:
        if name in categories:
            args.usage_error(f"column {name!r} has --bounds and --categories")
    columns = args.columns or [*bounds, *categories]
    if not columns:
        args.usage_error("name the columns to use: --bounds NAME=LOW:HIGH or --columns NAME")
    if args.groups in columns:
        args.usage_error(f"column {args.groups!r} identifies persons; it cannot be used as well")
    for name in [*bounds, *categories]:
        if name not in columns:
            args.usage_error(f"column {name!r} is declared but not among --columns")
    declared = {name: _ends(args, name, bounds, categories) for name in columns}
    unknown = [name for name, ends in declared.items() if ends is None]
    if unknown and args.private_bounds is None:
        args.usage_error(
            f"column {unknown[0]!r} has no --bounds or --categories: give the widest plausible "
            "ones for anyone, or let --private-bounds spend a part of epsilon on finding bounds. "
            "Categories are not taken from the table: one that a single person has would identify "
            "that person"
        )
    if args.private_bounds is not None and not unknown:
        args.usage_error("--private-bounds: all columns have bounds; its budget would be wasted")
    return declared, unknown


def _ends(args, name: str, bounds: dict[str, str], categories: dict[str, str]) -> Any:
    if name in categories:
        return categories[name].split(":")
    if name not in bounds:
        return None
    separator = ".." if ".." in bounds[name] else ":"
    ends = bounds[name].split(separator)
    if len(ends) != 2:
        args.usage_error(
            f"--bounds: {name} must be LOW:HIGH, or LOW..HIGH for times of day, "
            f"got {bounds[name]!r}"
        )
    try:
        low, high = map(float, ends)
    except ValueError:
        return tuple(ends)  # dates, which the encoder reads
    return low, high
