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

_AT_ONCE = 4  # neighbours of one data set, whose run is recorded once
_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)  # block sizes of kernels
_LARGEST = float(np.finfo(np.float64).max)
_ROWS_OF_A_GROUP = 4
_TIED_STARTS = 4  # tied starts per turn: rounding breaks some ties only
# 1e101 is above the largest bound that privclust accepts. Squares of 1e37 overflow in single
# precision, those of 1e300 in double precision. Those of 1e-300 underflow.
_EXTREME = (
    math.nan, math.inf, -math.inf, _LARGEST, -_LARGEST, 1e300, 1e101, 1e37, 5e-324, 1e-300, -0.0,
)  # fmt: skip


@dataclass(frozen=True)
class Ground:
    """The domain of the search for neighbours.

    Rows lie in the box, or in a ball of the `radius` about the origin. `starts` are the names of
    start parameters, with their shapes. If `any_entries`, entries of other kinds are tried, in
    untyped containers.
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


def situations(ground: Ground) -> list[Callable[[np.random.Generator], Situation]]:
    """Return functions of a generator, one for each pathology, with some neighbours each."""
    kinds: list[Callable] = [partial(_rows_of, name, *how) for name, how in _KINDS.items()]
    if ground.relation is Neighbours.ADD_REMOVE:
        kinds.append(partial(_rows_of, "no row or one", _anywhere, _none_or_one))
    if ground.has_bounds:
        kinds.append(_far_bounds)
    if ground.starts:
        kinds += [_far_starts, _far_starts]
        if ground.n_clusters > 1:
            kinds += [_tied_starts] * _TIED_STARTS
    return [partial(kind, ground) for kind in kinds]


def odd_entries(ground: Ground) -> list[Callable[[np.random.Generator], Situation]]:
    """Return functions of a generator, one for each kind of odd entry, with one neighbour each."""
    kinds: list[Callable[[np.random.Generator], Situation]] = [
        partial(_odd_cell, ground, cell, container)
        for cell in CELLS
        for container in ("list", "array")
    ]
    if ground.grouped and ground.relation is Neighbours.REPLACE_ONE:
        kinds += [partial(_odd_id, ground, odd, kind) for odd in IDS for kind in ("whole", "text")]
    return kinds


def _odd_cell(ground, cell, container, rng):
    """One cell of another kind, in an untyped container; in a list, rows may be odd as well."""

    def odd():
        value = row(ground, rng)
        value[rng.integers(len(value))] = math.nan
        return value

    data = _crowd(ground, rng, int(rng.integers(ground.n_clusters + 3, ground.n_clusters + 12)))
    # One neighbour for each recorded run: the kinds of cells matter here, not the positions.
    others = _neighbours_of(ground, rng, data, odd)[:1]
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


def _neighbours_of(ground, rng, data, draw):
    """Return neighbours of a data set; `draw` returns rows of a new record."""
    found = []
    for _ in range(_AT_ONCE):
        where = int(rng.integers(len(data))) if data else 0
        if ground.relation is Neighbours.REPLACE_ONE:
            found.append([*data[:where], _record(ground, rng, draw), *data[where + 1 :]])
        elif data and rng.random() < 0.5:
            found.append([*data[:where], *data[where + 1 :]])
        else:
            end = len(data) if rng.random() < 0.5 else where
            found.append([*data[:end], _record(ground, rng, draw), *data[end:]])
    return found


def _record(ground, rng, draw):
    """Return one drawn row, or several in a group, which may be equal."""
    size = int(rng.integers(1, _ROWS_OF_A_GROUP + 1)) if ground.grouped else 1
    if size > 1 and rng.random() < 0.5:
        return np.tile(draw(), (size, 1))
    return np.array([draw() for _ in range(size)])


def _crowd(ground, rng, n, draw=None):
    """Return n records of drawn rows, by default from anywhere."""
    return [_record(ground, rng, draw or partial(row, ground, rng)) for _ in range(n)]


def _rows_of(name, kind, number, ground, rng):
    """Rows of one kind; the record that is exchanged may be of another."""
    draw, draw_other = kind(ground, rng)
    data = _crowd(ground, rng, number(ground, rng), draw)
    if ground.rows is not None and name == "rows anywhere":
        data = [ground.rows[[i]].astype(float) for i in rng.permutation(len(ground.rows))]
    return Situation(name, data, _neighbours_of(ground, rng, data, draw_other))


def _some(ground, rng):
    return int(rng.integers(max(ground.n_clusters, 1), 3 * ground.n_clusters + 8))


def _many(ground, rng):
    return int(rng.integers(ground.n_clusters, 40))


def _as_clusters(ground, rng):
    return ground.n_clusters


def _none_or_one(ground, rng):
    return int(rng.integers(2))


def _of_a_block(ground, rng):
    """Return a number of records that one more or less takes across a block."""
    # If a row is replaced, the number stays: one more than a block puts the last row in its own.
    return int(rng.choice(_BLOCKS)) + int(ground.relation is Neighbours.REPLACE_ONE)


def _anywhere(ground, rng):
    return (partial(row, ground, rng),) * 2


def _lattice(ground, rng):
    """Rows with equal distances from several centers, and duplicates."""
    middle, half = (ground.low + ground.high) / 2, (ground.high - ground.low) / 2
    if ground.radius is not None:
        half = np.full(ground.n_features, ground.radius / math.sqrt(ground.n_features))

    def draw():
        return middle + half * rng.integers(-1, 2, ground.n_features)

    return draw, draw


def _equal(ground, rng):
    """Equal rows, and one far from them, without which a cluster is empty."""
    value = row(ground, rng)
    return lambda: value, lambda: opposite(ground, value)


def _anywhere_or_equal(ground, rng):
    return (_anywhere if rng.random() < 0.5 else _equal)(ground, rng)


def _of_many_sizes(ground, rng):
    """Rows of very different magnitudes; in a sum, large ones absorb small ones."""
    middle = np.zeros(ground.n_features) if ground.radius else (ground.low + ground.high) / 2

    def draw():
        return middle + (row(ground, rng) - middle) * 2.0 ** -rng.integers(0, 60)

    return draw, partial(row, ground, rng)


def _extreme(ground, rng):
    def draw():
        value = row(ground, rng)
        value[rng.random(len(value)) < 0.6] = rng.choice(_EXTREME)
        return value

    return partial(row, ground, rng), draw


def _far_out(ground, rng):
    """One row outside, which may change a domain, a mean or a scale read from the data."""

    def draw():
        return row(ground, rng) * 10.0 ** rng.uniform(0.1, 6.0)

    return partial(row, ground, rng), draw


_KINDS = {
    "rows anywhere": (_anywhere, _some),
    "as many rows as clusters": (_anywhere, _as_clusters),
    "ties": (_lattice, _some),
    "equal rows": (_equal, _some),
    "one row across a block": (_anywhere_or_equal, _of_a_block),
    "rows of many sizes": (_of_many_sizes, _many),
    "an extreme row": (_extreme, _some),
    "one row far out": (_far_out, _some),
}
"""Kinds of rows, and their numbers, by name."""


def _far_bounds(ground, rng):
    """Bounds and rows far from the origin, with sums that lose their differences."""
    width = ground.high - ground.low
    # Sums of such rows keep 10 to 1 digits of the rows' differences in double precision.
    low = ground.low + float(width.max()) * 10.0 ** rng.uniform(6.0, 15.0)
    far = replace(ground, low=low, high=low + width, rows=None)
    number = int(rng.integers(ground.n_clusters, 200))
    there = _rows_of("bounds far from the origin", _anywhere_or_equal, lambda *_: number, far, rng)
    return replace(there, parameters={"bounds": (far.low, far.high)})


def _far_starts(ground, rng):
    """A start in other units."""
    name = str(rng.choice(list(ground.starts)))
    start = np.stack([row(ground, rng) for _ in range(ground.starts[name][0])])
    start = (start * 10.0 ** rng.uniform(6.0, 15.0)).reshape(ground.starts[name])
    there = _rows_of("a start in other units", _anywhere, _some, ground, rng)
    return replace(there, parameters={name: start})


def _tied_starts(ground, rng):
    """Starts that are permutations of one another, and rows equally far from all of them."""
    name = str(rng.choice(list(ground.starts)))
    shape = ground.starts[name]
    width = (ground.high - ground.low) / 8
    start = (ground.low + ground.high) / 2 + width * rng.standard_normal((shape[0], len(width)))
    first = 1 if rng.random() < 0.7 else shape[0] - 1  # all of them, or only the last
    start[first:] = [rng.permutation(start[0]) for _ in range(first, shape[0])]
    if len(shape) > 2:
        # Subspaces: bases have unit vectors, and a zero vector must not become NaN.
        start = start / (np.linalg.norm(start, axis=1, keepdims=True) + 1e-300)
    # Rows with equal coordinates have the same distance from every permutation of a start.
    diagonal = (ground.low + ground.high) / 2
    if ground.radius is not None:
        diagonal = np.full(ground.n_features, ground.radius / math.sqrt(ground.n_features))
    n = 1 if rng.random() < 0.5 else int(rng.choice(_BLOCKS[:9]))
    data = _crowd(ground, rng, n, lambda: diagonal)
    if ground.relation is Neighbours.ADD_REMOVE:  # few neighbours: other starts find more
        others = [[*data, _record(ground, rng, lambda: diagonal)]]
    else:
        others = _neighbours_of(ground, rng, data, partial(row, ground, rng))
    return Situation("tied starts", data, others, {name: start.reshape(shape)})
