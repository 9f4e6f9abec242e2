"""Whatever engine adds the features of rows, the sums have the bytes of memory.

Each test names the package that it needs where that is not there: the group `engines` of
pyproject.toml.
"""

import importlib.util
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from privclust.preprocessing import TableEncoder
from privclust.sketches import Sketch, draw_frequencies

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS = ["x", "y", "z"]
FREQUENCIES = draw_frequencies(3, 40, variance=1.0, random_state=0)
ENCODER = TableEncoder(
    {"x": (-2, 2), "plan": ["basic", "plus"], "since": ("2020-01-01", "2022-01-01")},
    missing="middle",
)
OF_FEATURES = draw_frequencies(4, 30, variance=1.0, random_state=1)


def needs(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"{', '.join(missing)} is not installed (group engines)"
    )


def table(n=2000, dtype=np.float64):
    """Rows with some missing, in columns of all kinds."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.standard_normal((n, 3)).astype(dtype), columns=COLUMNS)
    rows.loc[::40, "y"] = np.nan
    plans = np.array(["basic", "plus", "elsewhere"])[np.arange(n) % 3]
    days = pd.to_timedelta(np.arange(n) % 900, unit="D")
    rows = rows.assign(plan=plans, since=pd.Timestamp("2020-01-01") + days, visits=np.arange(n) % 7)
    ids = rng.integers(n // 5, size=n) ** 2 // (n // 5)  # of 1 to many rows, that lie anywhere
    return rows.assign(number=ids, who=[f"person {i}" for i in ids])


def state_bytes(sketch):
    return {name: array.tobytes() for name, array in sketch.exact.items()}


def in_memory(rows, columns=COLUMNS):
    return state_bytes(Sketch.of(rows[columns].dropna().to_numpy(), FREQUENCIES))


def encoded(rows):
    features = ENCODER.transform(rows)
    return state_bytes(Sketch.of(features[~np.isnan(features).any(axis=1)], OF_FEATURES))


def check(source_of, rows=None):
    """Compare what an engine adds up with memory: numbers of two types, integers, and encoded."""
    rows = table() if rows is None else rows
    for n_threads in (1, 2):
        how = {"n_threads": n_threads}
        sketch = Sketch.of_table(source_of(rows), FREQUENCIES, columns=COLUMNS, **how)
        assert state_bytes(sketch) == in_memory(rows)
        assert sketch.left_out == rows[COLUMNS].isna().any(axis=1).sum()
    mixed = ["z", "visits", "x"]
    sketch = Sketch.of_table(source_of(rows), FREQUENCIES, columns=mixed)
    assert state_bytes(sketch) == in_memory(rows, mixed)
    short = table(500, np.float32)
    sketch = Sketch.of_table(source_of(short), FREQUENCIES, columns=COLUMNS)
    assert state_bytes(sketch) == in_memory(short)
    sketch = Sketch.of_table(source_of(rows), OF_FEATURES, encoder=ENCODER)
    assert state_bytes(sketch) == encoded(rows)
    empty = Sketch.of_table(source_of(rows.iloc[:0]), FREQUENCIES, columns=COLUMNS)
    assert empty.n_samples == 0


def check_groups(source_of, rows=None, missing=True):
    """Compare what an engine adds up by persons, told by text or numbers, with memory."""
    rows = table() if rows is None else rows
    whole = rows.dropna(subset=COLUMNS)
    X = whole[COLUMNS].to_numpy()
    expected = Sketch.of(X, FREQUENCIES, groups=whole.who)
    assert state_bytes(expected) != in_memory(rows)
    for groups in ("who", "number"):
        how = {"columns": COLUMNS, "groups": groups, "n_threads": 2}
        sketch = Sketch.of_table(source_of(rows), FREQUENCIES, **how)
        assert state_bytes(sketch) == state_bytes(expected)
        n_whole = whole.who.nunique()
        assert (sketch.unit, sketch.n_samples) == ("group", n_whole)
        assert sketch.left_out == rows.who.nunique() - n_whole
    encoded = Sketch.of_table(source_of(rows), OF_FEATURES, encoder=ENCODER, groups="who")
    features = ENCODER.transform(rows)
    is_read = ~np.isnan(features).any(axis=1)
    in_features = Sketch.of(features[is_read], OF_FEATURES, groups=rows.who[is_read])
    assert state_bytes(encoded) == state_bytes(in_features)
    empty = Sketch.of_table(source_of(rows.iloc[:0]), FREQUENCIES, columns=COLUMNS, groups="number")
    assert (empty.unit, empty.n_samples) == ("group", 0)
    if missing:  # contribute nothing
        some = rows.assign(who=rows.who.where(rows.number > 3))
        kept = whole[whole.number > 3]
        known = Sketch.of(kept[COLUMNS].to_numpy(), FREQUENCIES, groups=kept.who)
        sketch = Sketch.of_table(source_of(some), FREQUENCIES, columns=COLUMNS, groups="who")
        assert state_bytes(sketch) == state_bytes(known)
    refused(source_of(rows), "no column 'w'", columns=COLUMNS, groups="w")
    refused(source_of(rows), "cannot be a feature as well", columns=COLUMNS, groups="x")


def refused(source, match, **how):
    with pytest.raises(Exception, match=match) as caught:
        Sketch.of_table(source, FREQUENCIES, **how)
    assert "elsewhere" not in str(caught.value)  # an entry


@needs("polars", "duckdb")
def test_no_engine_is_imported_for_a_table_of_another():
    code = (
        "import sys, pandas; from privclust.sketches import Sketch;"
        "Sketch.of_table(pandas.DataFrame({'x': [1.0]}), [[1.0, 2.0]]);"
        "print({'polars', 'duckdb'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@needs("polars")
@pytest.mark.parametrize("kind", ["frame", "lazy"])
def test_polars(kind):
    import polars

    def source(rows):
        frame = polars.from_pandas(rows)
        return frame if kind == "frame" else frame.lazy().filter(polars.col("visits") >= 0)

    check(source)
    check_groups(source)
    refused(
        source(table()), "column 'plan' holds .*string.*, not numbers", columns=["x", "y", "plan"]
    )
    refused(source(table()).drop("x"), "no column 'x' among y, z", columns=COLUMNS)
    wrong = source(table()).with_columns(x=polars.col("plan"))
    if kind == "lazy":
        wrong = wrong.with_columns(x=polars.col("plan").cast(polars.Int64))
        refused(wrong, "the table broke off .*run its query by itself", columns=COLUMNS)


@needs("duckdb")
def test_duckdb(tmp_path):
    import duckdb

    check(lambda rows: duckdb.from_df(rows))
    check_groups(lambda rows: duckdb.from_df(rows))
    rows = table()
    parquet.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "x.parquet")
    query = duckdb.sql(f"select x, y, z from '{tmp_path}/x.parquet' where visits > 2")
    expected = in_memory(rows[rows.visits > 2])
    assert state_bytes(Sketch.of_table(query, FREQUENCIES, n_threads=2)) == expected
    decimals = duckdb.sql("select 1.5 as x, 2 as y, 3 as z")
    expected = Sketch.of(np.array([[1.5, 2.0, 3.0]]), FREQUENCIES)
    assert state_bytes(Sketch.of_table(decimals, FREQUENCIES)) == state_bytes(expected)
