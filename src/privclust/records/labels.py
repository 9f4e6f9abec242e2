"""Numbers of records per person, from a column of a file that identifies persons.

The number of a person's records must be known before the first of them is added: files are read
twice, first to count. For each label, its 128-bit hash under a secret key and a count are kept. Two
labels with the same hash would count as one: among 10^9 labels this happens with probability below
10^-20.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privclust.records.errors import ReadingError

_PENDING = 1 << 20  # labels that are sorted at once
# NumPy ignores zero bytes at the end: among hashes of one length, equality and order stay
_HASH = np.dtype("S16")
_CHANGED = "the records have changed while they were read: those of a label are other than counted"


class LabelCounts:
    """The number of counting records of each label; 24 bytes a label, about 60 during additions.

    Labels are added in two lists: labels (None without an ID), and whether each record counts.

    Examples
    --------
    >>> counts = LabelCounts([(["ann", "bob", "ann", "eve"], [True, True, True, False])])
    >>> counts.n_counted, counts.n_left_out
    (2, 1)
    """

    def __init__(self, labels: Iterable[tuple[Sequence[str | None], ArrayLike]] = ()) -> None:
        # a secret key: nobody can choose labels that have equal hashes
        self._secret = secrets.token_bytes(32)
        self._keys = np.empty(0, dtype=_HASH)
        self._counts = np.empty(0, dtype=np.int64)
        self._pending: list[tuple[np.ndarray, np.ndarray]] = []
        for some, is_counted in labels:
            self.add(some, is_counted)

    def add(self, labels: Sequence[str | None], is_counted: ArrayLike) -> None:
        """Add the labels of further records, and whether each of these counts."""
        known = [label is not None for label in labels]
        keys = self._hashed([label for label in labels if label is not None])
        self._pending.append((keys, np.asarray(is_counted)[known]))
        if sum(len(keys) for keys, _ in self._pending) >= _PENDING:
            self._count()

    @property
    def n_counted(self) -> int:
        """Number of labels with a record that counts."""
        self._count()
        return int(np.count_nonzero(self._counts))

    @property
    def n_left_out(self) -> int:
        """Number of labels without a record that counts."""
        self._count()
        return len(self._counts) - self.n_counted

    def _places(self, labels: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the places of the labels' counts, the place of each label, and frequencies."""
        self._count()
        keys = self._hashed(labels)
        keys, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
        at = np.searchsorted(self._keys, keys)
        known = at < len(self._keys)
        # in this order: only places within the keys can be looked up
        if not known.all() or (self._keys[at] != keys).any():
            raise ReadingError(_CHANGED)
        return at, places, counts

    def _count(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            keys, is_counted = map(np.concatenate, zip(*pending, strict=True))
            keys, places = np.unique(keys, return_inverse=True)
            self._add(keys, np.bincount(places[is_counted], minlength=len(keys)))

    def _add(self, keys: np.ndarray, counts: np.ndarray) -> None:
        at = np.searchsorted(self._keys, keys)
        is_new = np.ones(len(keys), dtype=bool)
        inside = at < len(self._keys)
        is_new[inside] = self._keys[at[inside]] != keys[inside]
        # Before insertions move the places. No place occurs twice, so that += adds every count.
        self._counts[at[~is_new]] += counts[~is_new]
        self._keys = np.insert(self._keys, at[is_new], keys[is_new])
        self._counts = np.insert(self._counts, at[is_new], counts[is_new])

    def _hashed(self, labels: Any) -> np.ndarray:
        hashes = {
            # surrogatepass: some encodings of files give halves of characters
            label: hashlib.blake2b(
                label.encode("utf-8", "surrogatepass"), digest_size=_HASH.itemsize, key=self._secret
            ).digest()
            for label in dict.fromkeys(labels)
        }
        return np.array([hashes[label] for label in labels], dtype=_HASH)


class SecondReading:
    """The second reading of counted records; 8 bytes a label, and threads may share it.

    Examples
    --------
    >>> second = SecondReading(LabelCounts([(["ann", "bob", "ann"], [True, False, True])]))
    >>> [(sizes.tolist(), *n) for sizes, *n in map(second.sizes, (["ann", None], ["ann"]))]
    [([2, 0], 1, 1), ([2], 0, 0)]
    >>> second.check_all_seen()
    """

    def __init__(self, counts: LabelCounts) -> None:
        # the property counts the pending labels, so that threads only read the counts
        self._counted, self._n_left_out = counts, counts.n_left_out
        self._left = counts._counts.copy()
        self._lock = threading.Lock()

    def sizes(self, labels: Sequence[str | None]) -> tuple[np.ndarray, int, int]:
        """Return the number of records of each label (0 for None), and two numbers of labels.

        Labels are None for records that do not count. The numbers are those of new labels, and of
        labels without a counting record; the latter are all returned by the first call.

        Raises
        ------
        ReadingError
            If one of them was not counted, or occurs more often than counted.
        """
        known = [label for label in labels if label is not None]
        at, places, counts = self._counted._places(known)
        sizes = self._counted._counts[at]
        with self._lock:
            # a new label has all of its records left
            n_new = int(np.count_nonzero(self._left[at] == sizes))
            # no place occurs twice, so that -= subtracts every count
            self._left[at] -= counts
            if (self._left[at] < 0).any():
                raise ReadingError(_CHANGED)
            n_left_out, self._n_left_out = self._n_left_out, 0
        all_sizes = np.zeros(len(labels), dtype=np.int64)
        all_sizes[[label is not None for label in labels]] = sizes[places]
        return all_sizes, n_new, n_left_out

    def check_all_seen(self) -> None:
        """Raise a ReadingError if counted records are missing."""
        if self._left.any():
            raise ReadingError(_CHANGED)
