"""Numbers of rows of each person, counted at a first reading."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from privclust.records import labels as labels_module
from privclust.records.labels import LabelCounts, SecondReading


def counted(names):
    """Names of which every record counts."""
    return list(names), np.ones(len(names), dtype=bool)


def test_counts_are_those_of_a_dictionary_however_names_come():
    rng = np.random.default_rng(0)
    names = np.array([f"person {i}" for i in rng.integers(3000, size=20_000)], dtype=object)
    counts = LabelCounts(map(counted, np.array_split(names, 7)))
    known = pd.Series(names).value_counts()
    assert counts.n_counted == len(known)
    second, n_new = SecondReading(counts), 0
    for some in np.array_split(names, 11):
        with pytest.raises(ValueError, match="have changed"):
            second.check_all_seen()
        sizes, new, n_left_out = second.sizes(list(some))
        np.testing.assert_array_equal(sizes, known[some].to_numpy())
        assert n_left_out == 0
        n_new += new
    second.check_all_seen()
    assert n_new == len(known)
    assert LabelCounts([]).n_counted == 0


def test_memory_is_as_stated_however_many_records_there_are(monkeypatch):
    """60 bytes a person while they are counted, 24 after; names are in memory chunk by chunk."""
    monkeypatch.setattr(labels_module, "_PENDING", 1000)
    n = 80_000
    labels = (counted([str(i) for i in range(s, s + 1000)])
              for _ in range(2) for s in range(0, n, 1000))  # fmt: skip
    tracemalloc.start()
    counts = LabelCounts(labels)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.n_counted == n
    assert kept < 26 * n
    assert peak < 60 * n + 500_000
