"""Whatever engine adds the features of rows, the sums have the bytes of memory.

The engines are real: a Dask cluster of two processes, Spark with two threads, DuckDB, Polars. Each
test names the package or program it needs where that is not there: the group `engines` of
pyproject.toml, and a Java for Spark.
"""

import importlib.util
import os
import shutil
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


@needs("polars", "duckdb", "dask", "pyspark")
def test_no_engine_is_imported_for_a_table_of_another():
    code = (
        "import sys, pandas; from privclust.sketches import Sketch;"
        "Sketch.of_table(pandas.DataFrame({'x': [1.0]}), [[1.0, 2.0]]);"
        "print({'polars', 'duckdb', 'dask', 'pyspark'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# --- Polars and DuckDB ---------------------------------------------------------------------------


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


# --- Dask ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dask_cluster():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@needs("dask", "distributed")
@pytest.mark.parametrize("n_partitions", [1, 3, 40])
def test_dask_cluster(dask_cluster, n_partitions):
    import dask.dataframe

    def source(rows):
        return dask.dataframe.from_pandas(rows, npartitions=n_partitions)

    check(source)
    check_groups(source)
    rows = table()
    in_order = source(rows.sort_values("number"))  # the first partition may be without rows
    some = in_order[in_order.number > 20]
    kept = rows[rows.number > 20].dropna(subset=COLUMNS)
    sketch = Sketch.of_table(some, FREQUENCIES, columns=COLUMNS, groups="who")
    expected = Sketch.of(kept[COLUMNS].to_numpy(), FREQUENCIES, groups=kept.who)
    assert state_bytes(sketch) == state_bytes(expected)


@pytest.mark.slow
@needs("dask", "distributed")
def test_dask_reads_the_columns_that_are_named(dask_cluster, tmp_path):
    import dask.dataframe

    rows = table()
    for i, part in enumerate(np.array_split(np.arange(len(rows)), 4)):
        kept = pa.Table.from_pandas(rows.iloc[part], preserve_index=False)
        parquet.write_table(kept, tmp_path / f"{i}.parquet")
    frame = dask.dataframe.read_parquet(tmp_path)
    frame = frame[frame.visits > 2]
    sketch = Sketch.of_table(frame, FREQUENCIES, columns=COLUMNS)
    assert state_bytes(sketch) == in_memory(rows[rows.visits > 2])


@pytest.mark.slow
@needs("dask", "distributed")
def test_partitions_of_a_dask_worker_that_is_killed_count_once(dask_cluster, tmp_path):
    import dask.dataframe

    rows, marker = table(), str(tmp_path / "killed")

    def dying(part, marker=marker):
        if len(part) and part.visits.iloc[-1] == rows_end and not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(1)
        return part

    rows_end = rows.visits.iloc[-1]
    frame = dask.dataframe.from_pandas(rows, npartitions=12).map_partitions(
        dying, meta=rows.iloc[:0]
    )
    sketch = Sketch.of_table(frame, FREQUENCIES, columns=COLUMNS)
    assert os.path.exists(marker)
    assert state_bytes(sketch) == in_memory(rows)


@needs("dask")
def test_dask_frames_whose_types_change_or_do_not_fit():
    """Declared types decide: integers of one partition, or a null in another, change nothing."""
    import dask
    import dask.dataframe

    rows = table(100)
    nullable = rows.astype({"visits": "Int64"})
    nullable.loc[50:, "visits"] = pd.NA
    frame = dask.dataframe.from_pandas(nullable, npartitions=4)
    columns = ["x", "y", "visits"]
    with dask.config.set(scheduler="synchronous"):
        sketch = Sketch.of_table(frame, FREQUENCIES, columns=columns)
        assert state_bytes(sketch) == in_memory(nullable.astype({"visits": float}), columns)

        def text_in_one(part):
            return part.assign(x="elsewhere") if part.visits.iloc[0] == 0 else part

        lying = dask.dataframe.from_pandas(rows, npartitions=3).map_partitions(
            text_in_one, meta=rows.iloc[:0]
        )
        # a text in a partition is no number, as a missing entry is none
        read = Sketch.of_table(lying, FREQUENCIES, columns=COLUMNS)
        assert read.n_samples + read.left_out == len(rows)
        assert read.left_out > rows[COLUMNS].isna().any(axis=1).sum()
        refused(frame, "column 'plan' holds string, not numbers", columns=["x", "y", "plan"])
        refused(frame, "no column 'w'", columns=["x", "y", "w"])
        refused(frame.x, "must be a data frame, got Series")


@needs("dask")
@pytest.mark.parametrize("groups", [None, "number"])
def test_errors_of_dask_frames_are_told_without_their_entries(groups):
    import dask
    import dask.dataframe

    def failing(part):
        raise ValueError(f"could not convert {part.plan.iloc[0]!r}")

    rows = table(100)
    frame = dask.dataframe.from_pandas(rows, npartitions=3)
    frame = frame.map_partitions(failing, meta=rows.iloc[:0])
    told = r"^the table broke off \(ValueError\): run its query by itself to see why$"
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=told):
        Sketch.of_table(frame, FREQUENCIES, columns=COLUMNS, groups=groups)


@needs("dask")
def test_changing_dask_partitions_give_no_sketch(tmp_path):
    """A person with a record more than was counted would have more than one share."""
    import dask
    import dask.dataframe

    rows = table(100)

    def other_each_time(part):
        if len(part) and part.index[0] == 0:
            marker = tmp_path / str(len(list(tmp_path.iterdir())))
            marker.touch()
            return part.assign(number=int(marker.name))
        return part

    frame = dask.dataframe.from_pandas(rows, npartitions=3)
    frame = frame.map_partitions(other_each_time, meta=rows.iloc[:0])
    with dask.config.set(scheduler="synchronous"):
        refused(frame, "have changed while they were read", columns=COLUMNS, groups="number")


@needs("dask")
def test_labels_of_dask_whose_types_are_not_as_declared():
    """They decide between no result and an error: each ID is read by itself."""
    import dask
    import dask.dataframe

    rows = table(100)

    def floats(part):
        return part.astype({"number": float}) if part.index[0] == 0 else part

    frame = dask.dataframe.from_pandas(rows, npartitions=3)
    lying = frame.map_partitions(floats, meta=rows.iloc[:0])
    mixed = frame.map_partitions(
        lambda part: part.assign(who=[1, "elsewhere"] * (len(part) // 2) + [2] * (len(part) % 2)),
        meta=rows.iloc[:0],
    )
    kinds = frame.categorize(columns=["who"])
    with dask.config.set(scheduler="synchronous"):
        for other, groups in ((lying, "number"), (mixed, "who")):  # each ID is read alone
            read = Sketch.of_table(other, FREQUENCIES, columns=COLUMNS, groups=groups)
            assert read.unit == "group"
        sketch = Sketch.of_table(kinds, FREQUENCIES, columns=COLUMNS, groups="who")
    whole = rows.dropna(subset=COLUMNS)
    known = Sketch.of(whole[COLUMNS].to_numpy(), FREQUENCIES, groups=whole.who)
    assert state_bytes(sketch) == state_bytes(known)


# --- Spark ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip(
            "Spark needs Java, which is not installed (apt-get install default-jre-headless)"
        )
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2,3]")  # a task may fail twice
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.mark.slow
@needs("pyspark")
@pytest.mark.parametrize("n_partitions", [1, 7])
def test_spark(spark, n_partitions):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 300)
    schema = (
        "x {0}, y {0}, z {0}, plan string, since timestamp, visits long, number long, who string"
    )

    def source(rows):
        kind = "float" if rows.x.dtype == np.float32 else "double"
        rows = rows.assign(who=rows.who.astype(object).where(rows.who.notna(), None))
        return spark.createDataFrame(rows, schema.format(kind)).repartition(n_partitions)

    check(source)
    check_groups(source)


@pytest.mark.slow
@needs("pyspark")
def test_spark_reads_parquet_and_says_what_is_wrong(spark, tmp_path):
    rows = table()
    for i, part in enumerate(np.array_split(np.arange(len(rows)), 4)):
        kept = pa.Table.from_pandas(rows.iloc[part].drop(columns="since"), preserve_index=False)
        parquet.write_table(kept, tmp_path / f"{i}.parquet")
    frame = spark.read.parquet(str(tmp_path)).filter("visits > 2")
    expected = in_memory(rows[rows.visits > 2])
    assert state_bytes(Sketch.of_table(frame, FREQUENCIES, columns=COLUMNS)) == expected
    refused(frame, "column 'plan' holds string, not numbers", columns=["x", "y", "plan"])
    refused(frame, "no column 'w'", columns=["x", "y", "w"])
    odd = frame.withColumnRenamed("x", "a.b `c`")
    assert state_bytes(Sketch.of_table(odd, FREQUENCIES, columns=["a.b `c`", "y", "z"])) == expected


@pytest.mark.slow
@needs("pyspark")
def test_errors_of_spark_frames_are_told_without_their_entries(spark):
    rows = spark.createDataFrame([("2",), ("elsewhere",)], "x string")
    frame = rows.selectExpr("cast(x as double) as x")
    with pytest.raises(ValueError, match=r"^the table broke off") as raised:
        Sketch.of_table(frame, FREQUENCIES[:, :1])
    assert "elsewhere" not in str(raised.value)


@pytest.mark.slow
@needs("pyspark")
def test_a_failed_spark_partition_counts_once(spark, tmp_path):
    marker = str(tmp_path / "failed")

    def failing(batches):
        for number, batch in enumerate(batches):
            if number == 2 and not os.path.exists(marker):
                open(marker, "w").close()
                raise RuntimeError("a machine was lost")
            yield batch

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 100)
    rows = table()[COLUMNS].fillna(0.0)
    kind = "x double, y double, z double"
    frame = spark.createDataFrame(rows, kind).repartition(3).mapInPandas(failing, kind)
    sketch = Sketch.of_table(frame, FREQUENCIES)
    assert os.path.exists(marker)
    assert state_bytes(sketch) == in_memory(rows)
