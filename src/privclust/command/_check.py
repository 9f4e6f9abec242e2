"""``privclust cluster --check``: the content of declared columns, for the holder of the table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from privclust.command.output import print_result
from privclust.core.printable import counted
from privclust.preprocessing import TableEncoder
from privclust.records.cells import seconds
from privclust.records.columns import Column
from privclust.records.notation import Notation
from privclust.records.table_files import TableFile

_SHOWN = 3  # most forms of unreadable entries that are shown for a column
_ANY = (-1e307, 1e307)
_TRIED = (
    ("--decimal , --thousands .", Notation(",", ".")),
    ("--decimal ,", Notation(",")),
    ("--thousands ,", Notation(".", ",")),
    *(
        (f"--date-format {form}", Notation(date_format=form))
        for form in ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y%m%d", "%d-%m-%Y")
    ),
)
_ENOUGH = 0.5  # fraction of the unreadable entries that a proposed notation must read


class _Seen:
    def __init__(self, ends: Any) -> None:
        self.ends, self.encoder = ends, TableEncoder({"c": ends or _ANY})
        self.is_date = ends is not None and isinstance(ends[0], str) and not isinstance(ends, list)
        self.n_missing = self.n_unreadable = self.n_outside = 0
        self.low, self.high = np.inf, -np.inf
        self.forms: dict[str, int] = {}
        self.read_by = dict.fromkeys((how for how, _ in _TRIED), 0)

    def add(self, column: Column) -> None:
        is_none, is_unreadable = (flags[:, 0] for flags in self.encoder.unread({"c": column}))
        self.n_missing += int(is_none.sum())
        self.n_unreadable += int(is_unreadable.sum())
        for at in np.flatnonzero(is_unreadable).tolist():
            self._unreadable(column.cell(at))
        if not isinstance(self.ends, list):
            values = column.seconds() if self.is_date else column.numbers().astype(float)
            known = values[~np.isnan(values)]
            if len(known):
                self.low, self.high = min(self.low, known.min()), max(self.high, known.max())
            if self.ends is not None:
                low, high = (seconds(end) if self.is_date else float(end) for end in self.ends)
                self.n_outside += int(((known < low) | (known > high)).sum())

    def _unreadable(self, cell: Any) -> None:
        """Record the form of an entry, and the notations that would read it."""
        text = cell if isinstance(cell, str) else type(cell).__name__
        # digits become 9 and letters a: entries that differ only in these are counted together
        form = re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))[:40]
        self.forms[form] = self.forms.get(form, 0) + 1
        if not isinstance(self.ends, list):
            for how, notation in _TRIED:
                read = notation.seconds if self.is_date else notation.number
                self.read_by[how] += not np.isnan(read(cell))

    def lines(self, name: str, n_rows: int) -> list[str]:
        share = 100.0 / max(n_rows, 1)
        lines = [
            f"{name}: {self.n_missing:,} missing ({self.n_missing * share:.1f} %), "
            f"{self.n_unreadable:,} unreadable ({self.n_unreadable * share:.1f} %)"
        ]
        if np.isfinite(self.low):
            ends = [_shown(end, self.is_date) for end in (self.low, self.high)]
            lines[0] += f", from {ends[0]} to {ends[1]}"
        if self.n_outside:
            lines.append(f"  {self.n_outside:,} outside the bounds, which are clipped")
        most = sorted(self.forms, key=lambda form: -self.forms[form])[:_SHOWN]
        lines += [f"  unreadable, by form: {form!r} ({self.forms[form]:,})" for form in most]
        best = max(self.read_by, key=lambda how: self.read_by[how])
        if self.n_unreadable and self.read_by[best] > _ENOUGH * self.n_unreadable:
            lines.append(f"  {self.read_by[best]:,} of these can be read with {best}")
        return lines


def print_check(table: TableFile, declared: Mapping[str, Any], groups: str | None) -> None:
    seen = {name: _Seen(ends) for name, ends in declared.items()}
    n_rows, n_nobody = 0, 0
    for part in table.columns([*declared, *([groups] if groups else [])]):
        n_rows += len(part)
        for name, of_column in seen.items():
            of_column.add(part[name])
        if groups:
            n_nobody += part[groups].keys().count(None)
    lines = ["for you, not for release: exact numbers of the table", counted(n_rows, "row")]
    for name, of_column in seen.items():
        lines += of_column.lines(name, n_rows)
    if groups:
        lines.append(f"{groups}: {counted(n_nobody, 'row')} without an ID")
    print_result("\n".join(lines) + "\n")


def _shown(value: float, is_date: bool) -> str:
    if not is_date:
        return f"{value:.6g}"
    # not datetime, which ends with the year 9999
    return str(np.datetime64(math.floor(value), "s"))[:-3].replace("T", " ")
