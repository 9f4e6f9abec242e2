"""Declared columns of tables, and sums over their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.privacy.groups import counted_rows, unit_of
from privclust.records.arrow import GroupedRows
from privclust.records.tables import State, total
from privclust.sketches._feature_sums import FeatureSums


@dataclass(frozen=True)
class SketchedTable:
    """Declared columns of a sketched table, and counts of its missing entries.

    Attributes
    ----------
    columns : mapping of str to (low, high) or list of str
        As in `privclust.preprocessing.TableEncoder`.
    missing : {"drop", "middle"}
        As in `privclust.preprocessing.TableEncoder`.
    unread : ndarray of shape (2, n_columns) or None
        Noisy numbers of records with an entry that is missing (first row) or cannot be read.
    deviation : float
        Standard deviation of the noise on each number.
    """

    columns: Mapping[str, Any]
    missing: str
    unread: np.ndarray | None = None
    deviation: float = 0.0

    @property
    def declared(self) -> tuple[Any, ...]:
        """The declaration, which must agree in sketches that are merged."""
        return (*((name, *map(str, ends)) for name, ends in self.columns.items()), self.missing)

    def __add__(self, other: SketchedTable) -> SketchedTable:
        """Return the declaration with the counts of both added."""
        unread = None
        if self.unread is not None and other.unread is not None:
            unread = self.unread + other.unread
        deviation = float(np.hypot(self.deviation, other.deviation))
        return SketchedTable(self.columns, self.missing, unread, deviation)

    @property
    def n_features(self) -> int:
        """Number of features of the declared columns: one for a number, one for each category."""
        return sum(len(ends) if isinstance(ends, list) else 1 for ends in self.columns.values())

    def parameters(self) -> dict[str, Any]:
        """Return the attributes except `unread` as JSON types."""
        columns = [
            [name, isinstance(ends, list), list(map(_plain, ends))]
            for name, ends in self.columns.items()
        ]
        return {"columns": columns, "missing": self.missing, "deviation": self.deviation}

    @classmethod
    def restored(cls, parameters: Any, unread: np.ndarray | None) -> SketchedTable:
        """Restore the table from `parameters`, or raise a ValueError if they are malformed."""
        columns = {
            str(name): list(map(str, ends)) if is_list else (ends[0], ends[1])
            for name, is_list, ends in parameters["columns"]
        }
        if unread is not None and unread.shape != (2, len(columns)):
            raise ValueError("its numbers of missing entries are of other columns")
        return cls(columns, str(parameters["missing"]), unread, float(parameters["deviation"]))


def _plain(end: Any) -> float | str:
    """Return a bound or a category as a JSON type."""
    return float(end) if isinstance(end, float | int | np.number) else str(end)


def sums_of_table(
    source: Any, frequencies: ArrayLike, *, encoder: Any, groups: str | None, **how: Any
) -> tuple[FeatureSums, int | None]:
    """Return the sums over a table, and the number of left-out records or None.

    Arguments are those of `privclust.records.tables.total`.
    """

    def state_of(parts: Iterable[np.ndarray | GroupedRows]) -> State:
        sums, n_left_out = FeatureSums(frequencies), 0
        for part in parts:
            rows, groups_of_rows, n = counted_rows(part)
            sums.add(sums.clipped(rows), groups_of_rows)
            n_left_out += n
        return {**sums.state(), "n_left_out": np.array([n_left_out])}

    state = total(source, state_of, encoder=encoder, groups=groups, **how)
    sums = FeatureSums.from_state(state, frequencies, unit=unit_of(groups))
    reads_all = groups is None and getattr(encoder, "missing", None) == "middle"
    return sums, None if reads_all else int(state["n_left_out"][0])
