"""A column of a file that says whose each record is, and how many records each has.

How many records someone has must be known before the first of them is added: files are read twice,
the first time to count. What is kept of a label is a number of 64 bits that it is hashed to, and
two counts. Two labels that meet in one number, one pair in 10^19, are one from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from privclust.core.printable import excerpt

_PENDING = 1 << 20  # labels that are sorted at once
_CHANGED = "the files have changed while they were read: records of a label are other than counted"


def other_columns(names: Sequence[str], label: str) -> tuple[str, ...]:
    """Return all names but that of a label.

    Raises
    ------
    ValueError
        Unless it is there once, and not alone. Other names are not shown.

    Examples
    --------
    >>> other_columns(["customer", "age"], "customer")
    ('age',)
    """
    others = tuple(name for name in names if name != label)
    if len(names) - len(others) != 1:
        times = "no column" if len(others) == len(names) else "several columns"
        raise ValueError(f"has {times} of the name {label!r}")
    if not others:
        raise ValueError(f"has no columns but {label!r}")
    return others


def check_label(column: Any) -> None:
    """Raise a ValueError unless a field of an Arrow schema is of text or whole numbers."""
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    tests = types.is_integer, types.is_string, types.is_large_string
    if not any(is_kind(kind) for is_kind in tests):
        raise ValueError(
            f"column {column.name!r} holds {excerpt(column.type)}; groups are told by text or by "
            "whole numbers"
        )


def as_text(column: Any) -> np.ndarray:
    """Return an Arrow array as text, an array of objects; empty where an entry is missing."""
    entries = column.cast("string").fill_null("").to_numpy(zero_copy_only=False)
    return np.array([entry.strip() for entry in entries], dtype=object)


class LabelCounts:
    """How many records each label has; some 24 bytes a label, and 64 while they are sorted.

    Examples
    --------
    >>> counts = LabelCounts([np.array(["ann", "bob", "ann"], dtype=object)])
    >>> len(counts), counts.sizes(np.array(["bob", "ann"], dtype=object)).tolist()
    (2, [1, 2])
    """

    def __init__(self, labels: Iterable[np.ndarray]) -> None:
        self._keys = np.empty(0, dtype=np.int64)
        self._counts = np.empty(0, dtype=np.int64)
        pending: list[np.ndarray] = []
        for some in labels:
            pending.append(_keys_of(some))
            if sum(map(len, pending)) >= _PENDING:
                self._merge(np.concatenate(pending))
                pending = []
        if pending:
            self._merge(np.concatenate(pending))
        self._left = self._counts.copy()

    def __len__(self) -> int:
        return len(self._keys)

    def sizes(self, labels: np.ndarray) -> np.ndarray:
        """Return how many records there are of the label of each of these.

        Raises
        ------
        ValueError
            If one of them was not counted, or came more often by now.
        """
        keys, places, counts = np.unique(_keys_of(labels), return_inverse=True, return_counts=True)
        at = np.searchsorted(self._keys, keys)
        known = at < len(self._keys)
        if not known.all() or (self._keys[at] != keys).any():
            raise ValueError(_CHANGED)
        self._left[at] -= counts
        if (self._left[at] < 0).any():
            raise ValueError(_CHANGED)
        return self._counts[at][places]

    def check_all_seen(self) -> None:
        """Raise a ValueError if records that were counted did not come."""
        if self._left.any():
            raise ValueError(_CHANGED)

    def _merge(self, keys):
        """Count more keys."""
        more, counts = np.unique(keys, return_counts=True)
        keys = np.concatenate([self._keys, more])
        counts = np.concatenate([self._counts, counts])
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
        self._keys = keys[is_first]
        self._counts = np.add.reduceat(counts, np.flatnonzero(is_first)) if len(keys) else counts


def _keys_of(labels):
    """Return numbers of 64 bits for texts, the same for the same within this process."""
    return np.fromiter(map(hash, labels), dtype=np.int64, count=len(labels))
