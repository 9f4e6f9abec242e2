"""Moments of the rows of tables, added up where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from privclust.privacy.groups import rows_and_groups
from privclust.records.arrow import GroupedRows, takes_tables
from privclust.records.engines import State
from privclust.records.tables import total
from privclust.sketches.moment_release import check_size, default_degree
from privclust.sketches.moment_sums import GroupSums, HarmonicSums


def table_moments(
    source: Any,
    degree: int | None,
    *,
    columns: Sequence[str] | None,
    encoder: Any,
    groups: str | None,
    row_filter: Any,
    strict: bool,
    n_threads: int,
    progress: Callable[[int], object] | None,
) -> HarmonicSums:
    """Return the sums over a table: `privclust.sketches.MomentSketch.of_table` says of what."""
    d = _n_features(columns, encoder)
    degree = default_degree(d) if degree is None else degree
    check_size(d, degree)
    state = total(
        source,
        partial(_state_of_rows, d, degree, strict),
        columns=columns,
        encoder=encoder,
        groups=groups,
        row_filter=row_filter,
        n_threads=n_threads,
        progress=progress,
    )
    return GroupSums.from_state(d, degree, state).total()


def _n_features(columns, encoder):
    """Return how many features rows have, also of a table without rows."""
    if takes_tables(encoder):
        nothing = {name: np.empty(0, dtype=object) for name in encoder.columns}
        return np.shape(encoder.transform(nothing))[1]
    if columns is None:
        raise ValueError("name the columns to read, or give an encoder that does")
    if encoder is None:
        return len(columns)
    return np.shape(encoder.transform(np.zeros((1, len(columns)))))[1]


def _state_of_rows(
    n_features: int, degree: int, strict: bool, parts: Iterable[np.ndarray | GroupedRows]
) -> State:
    """Return the state of the sums over parts of a table; runs where the parts are."""
    sums = GroupSums(n_features, degree)
    for part in parts:
        rows, groups = rows_and_groups(part, strict)
        if strict and not np.isfinite(rows).all():
            raise ValueError("columns must hold finite numbers alone, and one entry is none")
        sums.add(rows, groups)
    return sums.state()
