"""What the command line declares of a table's columns."""

from __future__ import annotations

import argparse
from typing import Any


class Declarations(argparse.Action):
    """Collect ``NAME=VALUE`` of several arguments, each of which may hold some between commas."""

    def __call__(self, parser, namespace, values, option_string=None):
        """Add to what there is."""
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
    """Split at commas; what has no ``=`` belongs to the item before, as in ``city=Paris, TX``."""
    items: list[str] = []
    for part in text.split(","):
        if items and "=" not in part:
            items[-1] += f",{part}"
        else:
            items.append(part)
    return items


def declared_columns(args) -> tuple[dict[str, Any], list[str]]:
    """Return what is declared of columns, in their order, and those whose bounds are to be found.

    Usage errors name the column.
    """
    bounds, categories = args.bounds or {}, args.categories or {}
    for name in bounds:
        if name in categories:
            args.usage_error(f"column {name!r} has --bounds and --categories")
    columns = args.columns or [*bounds, *categories]
    if not columns:
        args.usage_error("name the columns that count: --bounds NAME=LOW:HIGH or --columns NAME")
    if args.groups in columns:
        args.usage_error(f"column {args.groups!r} says whose a row is; it cannot count as well")
    for name in [*bounds, *categories]:
        if name not in columns:
            args.usage_error(f"column {name!r} is declared but not among --columns")
    declared = {name: _ends(args, name, bounds, categories) for name in columns}
    unknown = [name for name, ends in declared.items() if ends is None]
    if unknown and args.private_bounds is None:
        args.usage_error(
            f"column {unknown[0]!r} has no --bounds or --categories: give those that are known of "
            "anybody, or let --private-bounds spend a part of epsilon on finding bounds. "
            "Categories are not found: one that a single person has would identify that person"
        )
    if args.private_bounds is not None and not unknown:
        args.usage_error("--private-bounds: all columns have bounds, so that it would be wasted")
    return declared, unknown


def _ends(args, name: str, bounds: dict[str, str], categories: dict[str, str]) -> Any:
    """Return the bounds or categories of a column; None if there are none."""
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
