"""Sketches of tables by persons, and with masks: the bytes of memory, wherever rows lie."""

import numpy as np
import pandas as pd
import pytest

from privclust.preprocessing import TableEncoder
from privclust.sketches import Sketch, draw_frequencies, release

pa = pytest.importorskip("pyarrow")
compute = pytest.importorskip("pyarrow.compute")
dataset = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

FREQUENCIES = draw_frequencies(3, 40, variance=1.0, random_state=0)
COLUMNS = ["x", "y", "z"]


def frame(n=600, seed=0):
    """Rows of persons of 1 to some 30 rows, in any order."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.standard_normal((n, 3)), columns=COLUMNS)
    number = rng.integers(n // 4, size=n) ** 2 // (n // 4)
    who = [f"Zoë {i}" for i in number]
    return table.assign(number=number, who=who, day=np.arange(n) % 7)


def folder(path, table, n_files=5, rows=37):
    path.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(table)), n_files)):
        kept = pa.Table.from_pandas(table.iloc[part], preserve_index=False)
        parquet.write_table(kept, path / f"part-{number}.parquet", row_group_size=rows)
    return path


def arrow(table):
    return pa.Table.from_pandas(table, preserve_index=False)


def state(sketch):
    return sketch.unit, {name: array.tobytes() for name, array in sketch.exact.items()}


def of_features(source, **how):
    return Sketch.of_table(source, FREQUENCIES, **how)


def in_memory(table, **how):
    return state(Sketch.of(table[COLUMNS].to_numpy(), FREQUENCIES, **how))


# --- the same bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", ["who", "number"])
@pytest.mark.parametrize(("n_files", "rows"), [(1, 1), (1, 60), (7, 5), (20, 1)])
def test_however_a_table_is_cut(tmp_path, groups, n_files, rows):
    table = frame(60)
    path = folder(tmp_path / "parts", table, n_files, rows)
    expected = in_memory(table, groups=table.who)
    for n_threads in (1, 2):
        sketch = of_features(path, columns=COLUMNS, groups=groups, n_threads=n_threads)
        assert state(sketch) == expected
    assert sketch.n_samples == table.who.nunique() < len(table)


def test_any_way_to_name_a_table(tmp_path):
    table = frame()
    path = folder(tmp_path / "parts", table)
    files = [str(path / f"part-{i}.parquet") for i in (3, 1, 4, 0, 2)]
    coded = arrow(table.astype({"who": "category"}))
    expected = in_memory(table, groups=table.who)
    for source in (
        files,
        dataset.dataset(files),
        table,
        arrow(table),
        coded,
        coded.to_batches()[0],
    ):
        assert state(of_features(source, columns=COLUMNS, groups="who")) == expected
    # all columns but the groups
    sketch = of_features(table[["who", *COLUMNS]], groups="who")
    assert state(sketch) == expected


def test_persons_of_encoded_rows(tmp_path):
    table = frame()
    encoder = TableEncoder({"x": (-2, 2), "day": ["1", "2"], "y": (-1, 1)}, missing="middle")
    path = folder(tmp_path / "parts", table)
    frequencies = draw_frequencies(4, 30, variance=1.0, random_state=1)
    sketch = Sketch.of_table(path, frequencies, encoder=encoder, groups="who", n_threads=2)
    rows = encoder.transform(table)
    assert state(sketch) == state(Sketch.of(rows, frequencies, groups=table.who))


def test_a_folder_for_each_person_says_whose_rows_are(tmp_path):
    table = frame(60)
    for number, part in table.groupby("number"):
        inside = tmp_path / f"number={number}"
        inside.mkdir()
        parquet.write_table(arrow(part.drop(columns=["number", "who"])), inside / "x.parquet")
    source = dataset.dataset(tmp_path, partitioning="hive")
    sketch = of_features(source, columns=COLUMNS, groups="number")
    assert state(sketch) == in_memory(table, groups=table.who)


def test_files_that_tell_persons_by_numbers_and_by_text(tmp_path):
    """1 and "1" are one person."""
    table = frame()
    half = len(table) // 2
    (tmp_path / "parts").mkdir()
    for name, part in (("a", table[:half]), ("b", table[half:].astype({"number": str}))):
        parquet.write_table(arrow(part), tmp_path / "parts" / f"{name}.parquet")
    sketch = of_features(tmp_path / "parts", columns=COLUMNS, groups="number")
    assert state(sketch) == in_memory(table, groups=table.number)


def test_what_is_released_is_of_persons():
    table = frame()
    exact = of_features(table, columns=COLUMNS, groups="who")
    private = release(exact, 1.0, 1e-6, random_state=0)
    assert private.unit == private.guarantee.unit == "group"
    with pytest.raises(ValueError, match="kinds of records differ"):
        private + of_features(table, columns=COLUMNS)


# --- rows of nobody, and none --------------------------------------------------------------------


def test_rows_of_nobody_are_those_of_one_person():
    table = frame()
    some = table.assign(who=table.who.where(table.number > 3))
    sketch = of_features(some, columns=COLUMNS, groups="who")
    expected = in_memory(table, groups=some.who.fillna(""))
    assert state(sketch) == expected


def test_no_rows_are_no_persons(tmp_path):
    path = folder(tmp_path / "parts", frame(8)[:0], n_files=2)
    for source in (path, frame(8)[:0]):
        sketch = of_features(source, columns=COLUMNS, groups="number")
        assert (sketch.n_samples, sketch.unit) == (0, "group")
        assert of_features(source, columns=COLUMNS).n_samples == 0


# --- what is wrong is said -----------------------------------------------------------------------


def test_what_does_not_go_together_is_refused(tmp_path):
    table = frame(50)

    def refused(match, source=table, **how):
        with pytest.raises(ValueError, match=match) as caught:
            of_features(source, **{"columns": COLUMNS, **how})
        assert "Zoë" not in str(caught.value)

    refused("no column 'w' among", groups="w")
    refused("groups must be the name of a column", groups=table.who)
    refused("column 'x' identifies persons; it cannot be a feature", groups="x")
    lengths = table.assign(x=pd.to_timedelta(table["x"], "s"))
    refused("'x' holds duration.*, not persons", lengths, columns=["y", "z", "day"], groups="x")
    refused("has no columns but 'who'", source=table[["who"]], columns=None, groups="who")
    reader = pa.RecordBatchReader.from_batches(arrow(table).schema, arrow(table).to_batches(7))
    refused("gives its rows once", source=reader, groups="who")


def test_a_table_that_changes_gives_no_sketch():
    """A person with a row more than was counted would have more than one share."""
    table = arrow(frame(50))

    class Changing:
        def __init__(self, *readings):
            self.readings = iter(readings)

        def __arrow_c_stream__(self, requested_schema=None):
            return next(self.readings).__arrow_c_stream__(requested_schema)

    less, other = (
        table.slice(1),
        table.set_column(4, "who", table["who"].take(np.arange(49, -1, -1))),
    )
    new = table.set_column(4, "who", pa.array(["new", *table["who"].to_pylist()[1:]]))
    assert of_features(Changing(table, table), columns=COLUMNS, groups="who").unit == "group"
    assert of_features(Changing(table, other), columns=COLUMNS, groups="who").n_samples  # as many
    for first, then in ((less, table), (table, less), (table, new), (new, table)):
        with pytest.raises(ValueError, match="have changed while they were read") as caught:
            of_features(Changing(first, then), columns=COLUMNS, groups="who")
        assert "new" not in str(caught.value)
