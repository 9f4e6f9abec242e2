"""Features of the rows of tables, added up where they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.privacy.groups import rows_and_groups, unit_of
from privclust.records.arrow import GroupedRows, is_of
from privclust.records.engines import State
from privclust.records.tables import total
from privclust.sketches._feature_sums import FeatureSums


def table_sums(
    source: Any,
    frequencies: ArrayLike,
    masks: Mapping[str, Any],
    *,
    columns: Sequence[str] | None,
    encoder: Any,
    groups: str | None,
    row_filter: Any,
    strict: bool,
    n_threads: int,
    progress: Callable[[int], object] | None,
) -> FeatureSums:
    """Return the sums over a table: `privclust.sketches.Sketch.of_table` says of what.

    `masks` are the further parameters of `FeatureSums`. Masks go by the index of a row: then one
    thread reads, in order, and `n_threads` share the rows that it has read.
    """
    empty = FeatureSums(frequencies, **masks)
    n_features, m = empty.frequencies.shape
    if columns is not None and encoder is None and len(columns) != n_features:
        raise ValueError(f"there are {len(columns)} columns, the frequencies have {n_features}")
    how = {**masks, "n_threads": 1}
    if empty.n_measurements < m:
        if groups is not None:
            raise ValueError("groups cannot have masks, which are drawn for each row")
        if is_of(source, "dask") or is_of(source, "pyspark"):
            raise ValueError(
                "masks (n_measurements) go by the index of a row, which rows of Dask and Spark do "
                "not have: leave them out, or write the frame to Parquet files and sketch those"
            )
        how["n_threads"], n_threads = n_threads, 1
    state = total(
        source,
        partial(_state_of_rows, empty.frequencies, how, strict),
        columns=columns,
        encoder=encoder,
        groups=groups,
        row_filter=row_filter,
        n_threads=n_threads,
        progress=progress,
    )
    unit, r = unit_of(groups), empty.n_measurements
    return FeatureSums.from_state(state, empty.frequencies, n_measurements=r, unit=unit)


def _state_of_rows(
    frequencies: np.ndarray,
    how: Mapping[str, Any],
    strict: bool,
    parts: Iterable[np.ndarray | GroupedRows],
) -> State:
    """Return the state of the sums over parts of a table; runs where the parts are."""
    sums = FeatureSums(frequencies, **how)
    zeros = np.zeros(len(frequencies))
    for part in parts:
        rows, groups = rows_and_groups(part, strict)
        sums.add(rows if strict else sums.clipped(rows, zeros), groups)
    return sums.state()
