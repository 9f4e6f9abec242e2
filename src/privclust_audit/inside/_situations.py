"""Kinds of neighbours that have broken fits: positions and numbers of rows, and the change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from privclust.privacy.sensitivity import Neighbours
from privclust_audit.inside._entries import CELLS, IDS, Written, as_they_are, with_cells, with_ids

Records = list[np.ndarray]
"""A data set by protected units: each a row (1, d) or all rows of a group (r, d)."""

_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # block sizes of kernels
_LARGEST = float(np.finfo(np.float64).max)
_ROWS_OF_A_GROUP = 4
_TIED_STARTS = 4  # tied starts per turn: rounding breaks some ties only
_EXTREME = (
    math.nan, math.inf, -math.inf, _LARGEST, -_LARGEST, 1e300, 1e101, 1e37, 5e-324, 1e-300, -0.0,
)  # fmt: skip


@dataclass(frozen=True)
class Ground:
    """The domain of the search for neighbours.

    Rows lie in the box, or in a ball of the `radius` about the origin. `starts` are the names of
    start parameters, with their shapes. If `any_rows`, rows outside and NaN are tried; if
    `any_entries`, entries of other kinds, in untyped containers.
    """

    low: np.ndarray
    high: np.ndarray
    radius: float | None
    n_clusters: int
    relation: Neighbours
    grouped: bool = False
    rows: np.ndarray | None = None
    starts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    has_bounds: bool = False
    any_rows: bool = True
    any_entries: bool = False

    @property
    def n_features(self) -> int:
        """The number of entries of a row."""
        return len(self.low)

    def holds(self, records: Records) -> bool:
        """Whether all rows are numbers within the box or ball."""
        X = stacked(records, self.n_features)
        if not np.isfinite(X).all():
            return False
        if self.radius is not None:
            with np.errstate(over="ignore"):
                return bool((np.sqrt((X * X).sum(axis=1)) <= self.radius).all())
        return bool(((self.low <= X) & (self.high >= X)).all())


@dataclass(frozen=True)
class Situation:
    """A data set, its neighbours, parameters of the fit, and the form of rows."""

    name: str
    data: Records
    neighbours: list[Records]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    written: Written = as_they_are


def stacked(records: Records, n_features: int) -> np.ndarray:
    """Return all rows of records, in order, (n, d)."""
    return np.concatenate([np.empty((0, n_features)), *records])


def arguments(records: Records, ground: Ground) -> tuple:
    """Return the arguments of a fit."""
    X = stacked(records, ground.n_features)
    if not ground.grouped:
        return (X,)
    return X, None, np.repeat(np.arange(len(records)), [len(record) for record in records])


def situations(ground: Ground) -> list[Callable[[np.random.Generator, int], Situation]]:
    """Return functions of a generator and a number of neighbours, one for each pathology."""
    kinds: list[Callable] = [
        _anywhere, _as_many_as_clusters, _ties, _equal_rows, _one_alone, _duplicates,
        _across_a_block, _of_many_sizes,
    ]  # fmt: skip
    if ground.relation is Neighbours.ADD_REMOVE:
        kinds.append(_none_at_all)
    if ground.any_rows:
        kinds += [_extreme, _far_out]
    if ground.has_bounds:
        kinds.append(_far_bounds)
    if ground.starts:
        kinds += [_far_starts, _far_starts]
        if ground.n_clusters > 1:
            kinds += [_tied_starts] * _TIED_STARTS
    return [partial(kind, ground) for kind in kinds]


def odd_entries(ground: Ground) -> list[Callable[[np.random.Generator], Situation]]:
    """Return functions of a generator, one for each kind of odd entry, with one neighbour each."""
    kinds: list[Callable[[np.random.Generator], Situation]] = []
    for cell in CELLS:
        kinds += [partial(_odd_cell, ground, cell, container) for container in ("list", "array")]
    if ground.grouped and ground.relation is Neighbours.REPLACE_ONE:
        ids: list[Callable[[np.random.Generator], Situation]] = []
        for odd in IDS:
            ids += [partial(_odd_id, ground, odd, kind) for kind in ("whole", "text")]
        kinds = [kind for pair in zip(ids, kinds, strict=False) for kind in pair]
    return kinds


def _odd_cell(ground, cell, container, rng):
    """One cell of another kind, in an untyped container; in a list, rows may be odd as well."""
    data = _crowd(ground, rng, int(rng.integers(ground.n_clusters + 3, ground.n_clusters + 12)))

    def odd():
        value = row(ground, rng)
        value[rng.integers(len(value))] = math.nan
        return group(ground, rng, value)

    others = neighbours_of(ground, rng, data, 1, odd)
    written = with_cells(cell, container)
    return Situation("a cell of another kind", data, others, written=written)


def _odd_id(ground, odd, kind, rng):
    """One record with an ID of another kind; its rows are unchanged."""
    data = _crowd(ground, rng, int(rng.integers(ground.n_clusters + 8, 40)))
    written = with_ids(odd, kind, int(rng.integers(len(data))))
    return Situation("an ID of another kind", data, [list(data)], written=written)


def row(ground: Ground, rng: np.random.Generator) -> np.ndarray:
    """Return a row (d,) from anywhere in the domain, often on its border."""
    how = rng.integers(5)
    if ground.rows is not None and how < 2:
        return ground.rows[rng.integers(len(ground.rows))].astype(float)
    if ground.radius is not None:
        direction = rng.standard_normal(ground.n_features)
        if how == 3:
            direction = np.sign(direction) * (rng.random(ground.n_features) < 0.5)
        length = np.sqrt(direction @ direction) or 1.0
        return direction / length * ground.radius * (1.0 if how else rng.random())
    if how == 3:
        return np.where(rng.random(ground.n_features) < 0.5, ground.low, ground.high)
    if how == 4:
        return ground.low + (ground.high - ground.low) * rng.integers(0, 3, ground.n_features) / 2
    return rng.uniform(ground.low, ground.high)


def opposite(ground: Ground, value: np.ndarray) -> np.ndarray:
    """Return the row at the other side of the domain."""
    return ground.low + (ground.high - value) if ground.radius is None else -value


def neighbours_of(
    ground: Ground,
    rng: np.random.Generator,
    data: Records,
    n: int,
    record: Callable[[], np.ndarray] | None = None,
) -> list[Records]:
    """Return neighbours of a data set; a function draws added records."""
    record = record or (lambda: group(ground, rng))
    found = []
    for _ in range(n):
        where = int(rng.integers(len(data))) if data else 0
        if ground.relation is Neighbours.REPLACE_ONE:
            found.append([*data[:where], record(), *data[where + 1 :]])
        elif data and rng.random() < 0.5:
            found.append([*data[:where], *data[where + 1 :]])
        else:
            end = len(data) if rng.random() < 0.5 else where
            found.append([*data[:end], record(), *data[end:]])
    return found


def group(ground: Ground, rng: np.random.Generator, value: np.ndarray | None = None) -> np.ndarray:
    """Return a record of one row, or of several in a group; all of one value if it is given."""
    size = int(rng.integers(1, _ROWS_OF_A_GROUP + 1)) if ground.grouped else 1
    rows = [row(ground, rng) if value is None else value for _ in range(size)]
    return np.array(rows)


def _crowd(ground, rng, n=None, value=None):
    """Return records, in a given or random number."""
    n = int(rng.integers(max(ground.n_clusters, 1), 3 * ground.n_clusters + 8)) if n is None else n
    return [group(ground, rng, value) for _ in range(n)]


def _anywhere(ground, rng, m):
    data = _crowd(ground, rng)
    if ground.rows is not None:
        places = rng.permutation(len(ground.rows))
        data = [ground.rows[[i]].astype(float) for i in places]
    return Situation("rows anywhere", data, neighbours_of(ground, rng, data, m))


def _as_many_as_clusters(ground, rng, m):
    data = _crowd(ground, rng, ground.n_clusters)
    fewer = [data[:-1]] if ground.relation is Neighbours.ADD_REMOVE else []
    return Situation(
        "as many rows as clusters", data, [*fewer, *neighbours_of(ground, rng, data, m)][:m]
    )


def _none_at_all(ground, rng, m):
    if rng.random() < 0.5:
        data = _crowd(ground, rng, 1)
        return Situation("one row and none", data, [[]])
    return Situation("no rows and one", [], [_crowd(ground, rng, 1) for _ in range(m)])


def _ties(ground, rng, m):
    """Rows on a lattice, with equal distances from several centers."""
    middle, half = (ground.low + ground.high) / 2, (ground.high - ground.low) / 2
    if ground.radius is not None:
        half = np.full(ground.n_features, ground.radius / math.sqrt(ground.n_features))

    def lattice():
        return group(ground, rng, middle + half * rng.integers(-1, 2, ground.n_features))

    data = [lattice() for _ in range(int(rng.integers(ground.n_clusters, 12)))]
    return Situation("ties", data, neighbours_of(ground, rng, data, m, lattice))


def _equal_rows(ground, rng, m):
    value = row(ground, rng)
    data = _crowd(ground, rng, value=value)
    other = opposite(ground, value)
    return Situation(
        "equal rows", data, neighbours_of(ground, rng, data, m, lambda: group(ground, rng, other))
    )


def _duplicates(ground, rng, m):
    few = [row(ground, rng) for _ in range(2)]

    def one_of_few():
        return group(ground, rng, few[rng.integers(2)])

    data = [one_of_few() for _ in range(int(rng.integers(ground.n_clusters, 12)))]
    return Situation("duplicates", data, neighbours_of(ground, rng, data, m, one_of_few))


def _one_alone(ground, rng, m):
    """A cluster with one row, which becomes empty without it."""
    value = row(ground, rng)
    data = _crowd(ground, rng, value=value)
    alone = [*data, group(ground, rng, opposite(ground, value))]
    if ground.relation is Neighbours.ADD_REMOVE:
        return Situation("an empty cluster", alone, [data])
    moved = [[*data, group(ground, rng, value)], [*data, group(ground, rng, row(ground, rng))]]
    return Situation("an empty cluster", alone, moved[:m])


def _across_a_block(ground, rng, m):
    """The number of rows of a kernel's block, and one more or less."""
    n = int(rng.choice(_BLOCKS))
    value = row(ground, rng) if rng.random() < 0.5 else None
    data = _crowd(ground, rng, n, value)
    more = [*data, group(ground, rng, value)]
    if ground.relation is Neighbours.ADD_REMOVE:
        return Situation("one row across a block", data, [more, data[:-1]][:m])
    return Situation("one row across a block", more, neighbours_of(ground, rng, more, m))


def _of_many_sizes(ground, rng, m):
    """Rows of very different magnitudes; in a sum, large ones absorb small ones."""
    middle = np.zeros(ground.n_features) if ground.radius else (ground.low + ground.high) / 2

    def scaled():
        value = row(ground, rng)
        return group(ground, rng, middle + (value - middle) * 2.0 ** -rng.integers(0, 60))

    data = [scaled() for _ in range(int(rng.integers(ground.n_clusters, 40)))]
    return Situation("rows of many sizes", data, neighbours_of(ground, rng, data, m))


def _extreme(ground, rng, m):
    data = _crowd(ground, rng)

    def extreme():
        value = row(ground, rng)
        value[rng.random(len(value)) < 0.6] = rng.choice(_EXTREME)
        return group(ground, rng, value)

    return Situation("an extreme row", data, neighbours_of(ground, rng, data, m, extreme))


def _far_out(ground, rng, m):
    """One row outside, which may change a domain, a mean or a scale read from the data."""
    data = _crowd(ground, rng)

    def far():
        value = row(ground, rng)
        return group(ground, rng, value * 10.0 ** rng.uniform(0.1, 6.0))

    return Situation("one row far out", data, neighbours_of(ground, rng, data, m, far))


def _far_bounds(ground, rng, m):
    """Bounds and rows far from the origin, with sums that lose their differences."""
    width = ground.high - ground.low
    offset = float(width.max()) * 10.0 ** rng.uniform(6.0, 15.0)
    far = replace(ground, low=ground.low + offset, high=ground.low + offset + width)
    value = row(far, rng) if rng.random() < 0.5 else None
    data = _crowd(far, rng, int(rng.integers(ground.n_clusters, 200)), value)
    return Situation(
        "bounds far from the origin",
        data,
        neighbours_of(far, rng, data, m),
        {"bounds": (far.low, far.high)},
    )


def _tied_starts(ground, rng, m):
    """Starts that are permutations of one another, and rows equally far from all of them."""
    name = str(rng.choice(list(ground.starts)))
    shape = ground.starts[name]
    width = (ground.high - ground.low) / 8
    start = (ground.low + ground.high) / 2 + width * rng.standard_normal((shape[0], len(width)))
    first = 1 if rng.random() < 0.7 else shape[0] - 1  # all of them, or only the last
    start[first:] = [rng.permutation(start[0]) for _ in range(first, shape[0])]
    if len(shape) > 2:
        start = start / (np.linalg.norm(start, axis=1, keepdims=True) + 1e-300)
    diagonal = (ground.low + ground.high) / 2
    if ground.radius is not None:
        diagonal = np.full(ground.n_features, ground.radius / math.sqrt(ground.n_features))
    n = 1 if rng.random() < 0.5 else int(rng.choice(_BLOCKS[:9]))
    data = _crowd(ground, rng, n, diagonal)
    if ground.relation is Neighbours.ADD_REMOVE:  # few neighbours: other starts find more
        comes = [[*data, group(ground, rng, diagonal)]]
    else:
        comes = neighbours_of(ground, rng, data, m)
    return Situation("tied starts", data, comes, {name: start.reshape(shape)})


def _far_starts(ground, rng, m):
    """A start in other units."""
    name = str(rng.choice(list(ground.starts)))
    start = np.stack([row(ground, rng) for _ in range(ground.starts[name][0])])
    start = (start * 10.0 ** rng.uniform(6.0, 15.0)).reshape(ground.starts[name])
    data = _crowd(ground, rng)
    return Situation(
        "a start in other units", data, neighbours_of(ground, rng, data, m), {name: start}
    )
