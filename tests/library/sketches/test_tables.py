"""Sketches of tables in files and streams: the bytes of memory, and what is wrong is said."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privclust.preprocessing import TableEncoder
from privclust.records.files import files_of
from privclust.sketches import (
    FeatureSums,
    Sketch,
    draw_frequencies,
    release,
)

pa = pytest.importorskip("pyarrow")
compute = pytest.importorskip("pyarrow.compute")
dataset = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

FREQUENCIES = draw_frequencies(3, 40, variance=1.0, random_state=0)
COLUMNS = ["x", "y", "z"]


def frame(n=3000, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.standard_normal((n, 3)).astype(dtype), columns=COLUMNS)
    return table.assign(name=[f"customer {i}" for i in range(n)], day=np.arange(n) % 7)


def folder(path, table, n_files=5, rows=170):
    """Write a table as files of row groups, each with a file's own number of rows."""
    path.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(table)), n_files)):
        parquet.write_table(
            pa.Table.from_pandas(table.iloc[part], preserve_index=False),
            path / f"part-{number}.parquet",
            row_group_size=rows,
        )
    return path


def state_bytes(sketch):
    return {name: array.tobytes() for name, array in sketch.exact.items()}


def in_memory(table, frequencies=FREQUENCIES):
    return state_bytes(Sketch.of(table[COLUMNS].to_numpy(), frequencies))


# --- the same bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("rows", [1, 170, 10**6])
def test_a_folder_gives_the_bytes_of_memory(tmp_path, dtype, n_threads, rows):
    table = frame(600, dtype=dtype)
    path = folder(tmp_path / "parts", table, rows=rows)
    sketch = Sketch.of_table(path, FREQUENCIES, columns=COLUMNS, n_threads=n_threads)
    assert state_bytes(sketch) == in_memory(table)
    assert sketch.n_samples == 600
    expected = {np.float64: 40, np.float32: 22}[dtype]  # bits of fractions: computed in its type
    assert (sketch.exact["fraction"] % 2 ** (40 - expected) == 0).all()
    assert (sketch.exact["fraction"] % 2 ** (41 - expected) != 0).any()


def test_any_way_to_name_a_table_gives_the_same_bytes(tmp_path):
    table = frame()
    path = folder(tmp_path / "parts", table)
    files = [str(path / f"part-{i}.parquet") for i in (3, 1, 4, 0, 2)]
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    sources = {
        "text": str(path),
        "pattern": str(path / "part-*.parquet"),
        "list": files,
        "data set": dataset.dataset(files),
        "data set of a table": dataset.dataset(arrow),
        "pandas": table,
        "Arrow": arrow,
        "batches": pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches(77)),
        "one batch": arrow.combine_chunks().to_batches()[0],
    }
    for name, source in sources.items():
        for n_threads in (1, 2):
            if name == "batches" and n_threads == 2:
                continue  # read once
            sketch = Sketch.of_table(source, FREQUENCIES, columns=COLUMNS, n_threads=n_threads)
            assert state_bytes(sketch) == in_memory(table), (name, n_threads)


def test_large_batches_are_cut(monkeypatch):
    monkeypatch.setattr("privclust.records.arrow._BATCH_VALUES", 300)
    table = frame(1000)
    sketch = Sketch.of_table(table, FREQUENCIES, columns=COLUMNS)
    assert state_bytes(sketch) == in_memory(table)


def test_threads_take_parts_at_the_same_time(tmp_path):
    """Both threads must be within a part at once, or the barrier breaks."""
    barrier = threading.Barrier(2, timeout=60)

    class Meeting(TableEncoder):
        met = 0

        def transform(self, part):
            if Meeting.met < 2:
                Meeting.met += 1
                barrier.wait()
            return super().transform(part)

    path = folder(tmp_path / "parts", frame(), n_files=2)
    columns = dict.fromkeys(COLUMNS, (-9.0, 9.0))
    sketch = Sketch.of_table(path, FREQUENCIES, encoder=Meeting(columns), n_threads=2)
    alone = Sketch.of_table(path, FREQUENCIES, encoder=TableEncoder(columns))
    assert state_bytes(sketch) == state_bytes(alone)
    assert Meeting.met == 2


def test_integers_and_files_of_other_types(tmp_path):
    """Each file by its own types; integers of any width are float64, rounded one by one."""
    path = tmp_path / "parts"
    path.mkdir()
    whole = np.array([[1, 2**53 + 1, 3], [4, -5, 2**62 + 1]])
    pa_types = [pa.int8(), pa.int64(), pa.uint64()]
    arrays = [pa.array(whole[:, i], kind) for i, kind in enumerate(pa_types)]
    parquet.write_table(pa.table(arrays, names=COLUMNS), path / "a.parquet")
    short = frame(50, dtype=np.float32)
    parquet.write_table(pa.Table.from_pandas(short, preserve_index=False), path / "b.parquet")
    mixed = frame(50, seed=1).astype({"x": np.float32})
    parquet.write_table(pa.Table.from_pandas(mixed, preserve_index=False), path / "c.parquet")
    expected = FeatureSums(FREQUENCIES)
    for rows in (whole.astype(float), short[COLUMNS].to_numpy(), mixed[COLUMNS].to_numpy()):
        expected.add(rows)
    sketch = Sketch.of_table(path, FREQUENCIES, columns=COLUMNS)
    assert state_bytes(sketch) == state_bytes(Sketch.from_feature_sums(expected))


def test_order_of_columns_is_that_of_the_frequencies(tmp_path):
    table = frame()
    path = folder(tmp_path / "parts", table)
    turned = Sketch.of_table(path, FREQUENCIES[::-1], columns=COLUMNS[::-1])
    expected = Sketch.of(table[COLUMNS[::-1]].to_numpy(), FREQUENCIES[::-1])
    assert state_bytes(turned) == state_bytes(expected)


# --- columns, filters, encoders ------------------------------------------------------------------


def test_no_other_columns_are_read(tmp_path):
    """Columns that are not named may be damaged."""
    path = tmp_path / "x.parquet"
    table = pa.Table.from_pandas(frame(500), preserve_index=False)
    parquet.write_table(table, path, compression=None, use_dictionary=False)
    chunk = parquet.ParquetFile(path).metadata.row_group(0).column(3)
    content = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)
    assert state_bytes(Sketch.of_table(path, FREQUENCIES, columns=COLUMNS)) == in_memory(frame(500))
    with pytest.raises(ValueError, match=r"x\.parquet: "):
        Sketch.of_table(path, FREQUENCIES, columns=["x", "y", "name"])
    with pytest.raises(ValueError, match=r"x\.parquet"):  # it is the damage that is noticed
        Sketch.of_table(
            path, FREQUENCIES, encoder=TableEncoder({"x": (0, 1), "name": ["customer 1", "b"]})
        )


def test_folders_named_by_keys(tmp_path):
    table = frame()
    path = tmp_path / "parts"
    for day, part in table.groupby("day"):
        inside = path / f"day={day}"
        inside.mkdir(parents=True)
        kept = pa.Table.from_pandas(part.drop(columns="day"), preserve_index=False)
        parquet.write_table(kept, inside / "x.parquet")
    source = dataset.dataset(path, partitioning="hive")
    whole = Sketch.of_table(source, FREQUENCIES, columns=["x", "y", "day"])
    expected = Sketch.of(table[["x", "y", "day"]].to_numpy(), FREQUENCIES)
    assert state_bytes(whole) == state_bytes(expected)


def test_an_encoder_makes_rows_in_the_units_of_a_table(tmp_path):
    table = frame().assign(
        plan=pd.Categorical.from_codes(np.arange(3000) % 3, ["basic", "plus", "?"]),
        since=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(3000) % 900, unit="D"),
    )
    table.loc[::50, "x"] = np.nan
    encoder = TableEncoder(
        {"x": (-2, 2), "plan": ["basic", "plus"], "since": ("2020-01-01", "2022-01-01")},
        missing="middle",
    )
    frequencies = draw_frequencies(4, 30, variance=1.0, random_state=1)
    expected = state_bytes(Sketch.of(encoder.transform(table), frequencies))
    path = folder(tmp_path / "parts", table)
    for source in (path, table):
        for n_threads in (1, 2):
            sketch = Sketch.of_table(source, frequencies, encoder=encoder, n_threads=n_threads)
            assert state_bytes(sketch) == expected


# --- any entries ---------------------------------------------------------------------------------


def test_missing_rows_are_left_out_and_large_ones_clipped():
    columns = [[None, 1.0, 2.0], [2.0, np.inf, 3.0], [3, 0, None]]
    table = pa.table([pa.array(column) for column in columns], names=COLUMNS)
    largest = FeatureSums(FREQUENCIES).clipped([[0.0, np.inf, 0.0]], np.zeros(3))[0, 1]
    expected = Sketch.of(np.array([[1.0, largest, 0.0]]), FREQUENCIES)
    sketch = Sketch.of_table(table, FREQUENCIES)
    assert state_bytes(sketch) == state_bytes(expected)
    assert sketch.left_out == 2


def test_no_rows_are_a_sketch_too(tmp_path):
    path = folder(tmp_path / "parts", frame(0), n_files=2)
    for source in (path, frame(0)):
        sketch = Sketch.of_table(source, FREQUENCIES, columns=COLUMNS, n_threads=2)
        assert sketch.n_samples == 0
    released = release(sketch, epsilon=1.0, delta=1e-6, neighbours="add_remove", random_state=0)
    assert isinstance(released.n_samples, float)


# --- what is wrong is said -----------------------------------------------------------------------


def test_a_folder_is_its_files_of_sorted_without_hidden_ones(tmp_path):
    for name in ("b/x.parquet", "a.pq", "_SUCCESS", ".a.parquet.crc", "_temp/x.parquet", "read.me"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert files_of(tmp_path) == [str(tmp_path / "a.pq"), str(tmp_path / "b/x.parquet")]
    assert files_of(str(tmp_path / "*" / "x.parquet")) == [
        str(tmp_path / "_temp/x.parquet"),
        str(tmp_path / "b/x.parquet"),
    ]


def test_wrong_tables_are_refused_by_name(tmp_path):
    path = folder(tmp_path / "parts", frame(50), n_files=2)
    (tmp_path / "empty").mkdir()
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 secret")

    def refused(source, match, error=ValueError, **how):
        with pytest.raises(error, match=match) as caught:
            Sketch.of_table(source, FREQUENCIES, **how)
        assert "secret" not in str(caught.value)
        assert "customer" not in str(caught.value)

    refused(path, r"part-0\.parquet: column 'name' holds .*string, not numbers")
    refused(path, r"part-0\.parquet: there is no column 'w' among x, y", columns=["x", "y", "w"])
    refused(path, "there are two columns 'x'", columns=["x", "y", "x"])
    refused(path, "there are 2 columns, the frequencies have 3", columns=["x", "y"])
    refused(path, "columns must be a sequence of names", columns="xyz")
    refused(path, "leave them out", columns=COLUMNS, encoder=TableEncoder({"x": (0, 1)}))
    refused(path, "encoder must be a TableEncoder", encoder=abs)
    refused(path, "n_threads must be", columns=COLUMNS, n_threads=0)
    refused(path / "part-9.parquet", "no such file", FileNotFoundError)
    refused(path / "no-*.parquet", "no file is named so")
    refused(tmp_path / "empty", "is a directory without Parquet files")
    refused([], "the list of files is empty")
    refused([path, path / "part-0.parquet"], "a file is named twice", columns=COLUMNS)
    refused("s3://bucket/x.parquet", r"pyarrow\.dataset")
    refused(torn, r"torn\.parquet: ")
    refused([[1.0, 2.0, 3.0]], "a table must be a path of Parquet or CSV files.*got list")
    refused(np.zeros((2, 3)), "a table must be a path of Parquet or CSV files.*got ndarray")
    refused(pd.DataFrame({"x": [1, "secret"]}), "columns of mixed types")
    refused(pd.DataFrame([[1.0] * 3] * 2, columns=["x", "x", "y"]), "two columns|mixed")
    refused(frame(5)[COLUMNS].to_parquet, "a table must be")
    times = pa.table({name: pa.array([1], pa.timestamp("s")) for name in COLUMNS})
    refused(times, "turn times into numbers")
    indexed = pa.Table.from_pandas(frame(5)[COLUMNS].set_index(pd.Index([3.0, 1, 2, 5, 4])))
    refused(indexed, "is an index that pandas wrote")


def test_errors_of_other_formats_hold_no_entry(tmp_path):
    (tmp_path / "text.csv").write_text("x,y,z\n" + "1,2,3\n" * 10**6 + "secret,2,3\n")
    source = dataset.dataset(tmp_path / "text.csv", format="csv")
    with pytest.raises(ValueError, match=r"the table broke off \(ArrowInvalid\)") as error:
        Sketch.of_table(source, FREQUENCIES, columns=COLUMNS)
    assert "secret" not in str(error.value)


def test_a_stream_that_breaks_off_is_not_quoted():
    def batches():
        yield pa.RecordBatch.from_pandas(frame(5)[COLUMNS])
        raise RuntimeError("secret")

    schema = pa.Schema.from_pandas(frame(5)[COLUMNS])
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with pytest.raises(ValueError, match="the table broke off") as error:
        Sketch.of_table(reader, FREQUENCIES, columns=COLUMNS)
    assert "secret" not in str(error.value)


def test_a_file_that_is_damaged_stops_all_threads(tmp_path):
    path = folder(tmp_path / "parts", frame(3000), n_files=30)
    (path / "part-15.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"part-15\.parquet"):
        Sketch.of_table(path, FREQUENCIES, columns=COLUMNS, n_threads=2)


POOLS = []  # for ever: what was allocated in one and is freed after it would end the process


@pytest.mark.parametrize("n_threads", [1, 2])
def test_memory_does_not_grow_with_the_number_of_row_groups(tmp_path, n_threads):
    few = draw_frequencies(3, 2, variance=1.0, random_state=0)
    table = pa.table({name: np.random.default_rng(0).random(500_000) for name in COLUMNS})
    path, before = tmp_path / "long.parquet", pa.default_memory_pool()
    parquet.write_table(pa.concat_tables([table] * 12), path, row_group_size=20_000)
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        Sketch.of_table(path, few, n_threads=n_threads)
    finally:
        pa.set_memory_pool(before)
    # how many groups wait for a busy reader varies: never as many as the twelfth part of all
    assert table.nbytes / 10 < pool.max_memory() < table.nbytes


def test_more_files_than_a_process_may_open(tmp_path):
    resource = pytest.importorskip("resource")
    path = folder(tmp_path / "parts", frame(300), n_files=150)
    code = (
        "import resource, sys; from privclust.sketches import Sketch, draw_frequencies;"
        "import pyarrow.dataset, pyarrow.parquet;"
        "f = draw_frequencies(3, 40, variance=1.0, random_state=0);"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
        "s = Sketch.of_table(sys.argv[1], f, columns=['x', 'y', 'z'], n_threads=2);"
        "print(s.exact['whole'].tobytes().hex())"
    )
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
    )
    assert done.stdout.strip() == in_memory(frame(300))["whole"].hex()


def test_the_page_on_big_data_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[3] / "docs" / "big_data.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```\n", page, re.S):
        exec(compile(block, "big_data.md", "exec"), names)
    assert capsys.readouterr().out == "".join(re.findall(r"```text\n(.*?)```\n", page, re.S))
