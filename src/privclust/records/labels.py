"""A column of a file that says whose each record is, and how many records each has.

How many records someone has must be known before the first of them is added: files are read twice,
the first time to count. What is kept of a label are 128 bits that it is hashed to under a secret
key, and a count. Two labels that meet there are one from then on: of 10^9 labels any two do with a
probability below 10^-20.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

_PENDING = 1 << 20  # labels that are sorted at once
_HASH = np.dtype("S16")
CHANGED = "the records have changed while they were read: those of a label are other than counted"


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


class LabelCounts:
    """How many records each label has; 24 bytes a label, and some 60 while more are added.

    Counts of two parts of the records can be merged if one was made with the other's `secret`.

    Examples
    --------
    >>> counts = LabelCounts([np.array(["ann", "bob", "ann"], dtype=object)])
    >>> len(counts), counts.sizes(np.array(["bob", "ann"], dtype=object)).tolist()
    (2, [1, 2])
    """

    def __init__(
        self, labels: Iterable[Sequence[str | None]] = (), secret: bytes | None = None
    ) -> None:
        self.secret = secrets.token_bytes(32) if secret is None else secret
        self._keys = np.empty(0, dtype=_HASH)
        self._counts = np.empty(0, dtype=np.int64)
        pending: list[np.ndarray] = []
        for some in labels:
            pending.append(self._hashed([label for label in some if label is not None]))
            if sum(map(len, pending)) >= _PENDING:
                self._count(np.concatenate(pending))
                pending = []
        if pending:
            self._count(np.concatenate(pending))

    def __len__(self) -> int:
        return len(self._keys)

    def merge(self, other: LabelCounts) -> Self:
        """Add the counts of other records."""
        self._add(other._keys, other._counts)
        return self

    def digest(self) -> bytes:
        """Return what tells these counts from any others of one secret."""
        sha = hashlib.sha256(self._keys.tobytes())
        sha.update(self._counts.tobytes())
        return sha.digest()

    def sizes(self, labels: Sequence[str | None]) -> np.ndarray:
        """Return how many records there are of the label of each of these; 0 for None.

        Raises
        ------
        ValueError
            If one of them was not counted.
        """
        known = [label for label in labels if label is not None]
        at, places, _ = self._places(known)
        return _with_nobody(labels, self._counts[at][places])

    def _places(self, labels: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return where the labels' counts are, which one each label has, and how often they come.

        A ValueError says that one was not counted.
        """
        keys = self._hashed(labels)
        keys, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
        at = np.searchsorted(self._keys, keys)
        known = at < len(self._keys)
        if not known.all() or (self._keys[at] != keys).any():
            raise ValueError(CHANGED)
        return at, places, counts

    def _count(self, keys: np.ndarray) -> None:
        """Count more keys."""
        self._add(*np.unique(keys, return_counts=True))

    def _add(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """Add counts of sorted keys, each there once."""
        at = np.searchsorted(self._keys, keys)
        is_new = np.ones(len(keys), dtype=bool)
        inside = at < len(self._keys)
        is_new[inside] = self._keys[at[inside]] != keys[inside]
        self._counts[at[~is_new]] += counts[~is_new]
        self._keys = np.insert(self._keys, at[is_new], keys[is_new])
        self._counts = np.insert(self._counts, at[is_new], counts[is_new])

    def _hashed(self, labels: Any) -> np.ndarray:
        """Return the hashes of texts; the same for the same, in any process."""
        hashes = {
            label: hashlib.blake2b(
                label.encode("utf-8", "surrogatepass"), digest_size=_HASH.itemsize, key=self.secret
            ).digest()
            for label in dict.fromkeys(labels)
        }
        return np.array([hashes[label] for label in labels], dtype=_HASH)


def _with_nobody(labels: Sequence[str | None], sizes: np.ndarray) -> np.ndarray:
    """Return sizes of labels with 0 where there is none."""
    all_sizes = np.zeros(len(labels), dtype=np.int64)
    all_sizes[[label is not None for label in labels]] = sizes
    return all_sizes


class SecondReading:
    """Records that were counted, read once more; 8 bytes a label, and threads may share it.

    Examples
    --------
    >>> names = np.array(["ann", "bob", "ann"], dtype=object)
    >>> second = SecondReading(LabelCounts([names]))
    >>> [(sizes.tolist(), n_new) for sizes, n_new in map(second.sizes, (names[:2], names[2:]))]
    [([2, 1], 2), ([2], 0)]
    >>> second.check_all_seen()
    """

    def __init__(self, counts: LabelCounts) -> None:
        self._counted = counts
        self._left = counts._counts.copy()
        self._lock = threading.Lock()

    def sizes(self, labels: Sequence[str | None]) -> tuple[np.ndarray, int]:
        """Return how many records the label of each has, 0 for None, and how many labels are new.

        Raises
        ------
        ValueError
            If one of them was not counted, or came more often by now.
        """
        known = [label for label in labels if label is not None]
        at, places, counts = self._counted._places(known)
        sizes = self._counted._counts[at]
        with self._lock:
            n_new = int(np.count_nonzero(self._left[at] == sizes))
            self._left[at] -= counts
            if (self._left[at] < 0).any():
                raise ValueError(CHANGED)
        return _with_nobody(labels, sizes[places]), n_new

    def check_all_seen(self) -> None:
        """Raise a ValueError if records that were counted did not come."""
        if self._left.any():
            raise ValueError(CHANGED)
