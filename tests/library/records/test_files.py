"""Kinds of files, folders with links, columnar files, and times that reach far."""

import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from privclust.preprocessing import TableEncoder
from privclust.records.errors import ReadingError
from privclust.records.files import files_of
from privclust.records.table_files import open_table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FRAME = pd.DataFrame({"age": [30.0, 60.0, None], "visits": [1, 2, 3]})
ENCODER = TableEncoder({"age": (0, 110), "visits": (0, 10)})


def written(path, frame=FRAME):
    """A frame in a file of any kind."""
    name = path.name
    if name.endswith((".parquet", ".parq", ".pq")):
        frame.to_parquet(path, index=False)
    else:
        text = frame.to_csv(index=False, sep="\t" if ".tsv" in name else ",")
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


KINDS = ("csv", "csv.gz", "tsv", "txt", "parquet", "parq", "pq")


def coordinates(path):
    """All rows of a table, encoded."""
    parts = open_table(path).columns(["age", "visits"])
    return np.vstack([ENCODER.transform(part) for part in parts])


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_the_same_in_every_kind_of_file(kind, tmp_path):
    path = written(tmp_path / f"t.{kind}")
    np.testing.assert_array_equal(coordinates(path), ENCODER.transform(FRAME))


def test_a_spreadsheet_is_refused_by_a_word_on_what_to_do(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(ReadingError, match="is a spreadsheet; save the sheet as CSV"):
        open_table(tmp_path / "t.xlsx")


def test_links_to_folders_are_followed_once(tmp_path):
    (tmp_path / "data" / "day=1").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    written(tmp_path / "data" / "day=1" / "a.parquet")
    written(tmp_path / "elsewhere" / "b.parq")
    (tmp_path / "data" / "day=2").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "data")  # a loop
    (tmp_path / "data" / "again").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data" / "_hidden").symlink_to(tmp_path / "elsewhere")
    found = files_of(tmp_path / "data")
    assert sorted(name.rsplit("/", 1)[1] for name in found) == ["a.parquet", "b.parq"]


def test_times_of_96_bits_reach_to_the_last_year(tmp_path):
    """Spark writes them, and open ends as 9999-12-31, which wrapped to 1816."""
    days = pa.array(["2020-01-01", "9999-12-31"]).cast(pa.timestamp("us"))
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"end": days}), path, use_deprecated_int96_timestamps=True)
    encoder = TableEncoder({"end": ("2000-01-01", "2040-01-01")})
    (part,) = open_table(path).columns(["end"])
    assert encoder.transform(part)[1, 0] == 1.0
    assert encoder.transform(part)[0, 0] == pytest.approx(0.5, abs=1e-3)


ODD = {
    "text that is no UTF-8": (pa.array([b"a", b"\xff Mary"]), "categories"),
    "padded text": (pa.array([b"a ", b"b "], pa.binary(2)), "categories"),
    "large text": (pa.array(["a", "b"], pa.large_string()), "categories"),
    "a view of text": (pa.array(["a", "b"], pa.string_view()), "categories"),
    "a dictionary": (pa.array(["a", "b"]).dictionary_encode(), "categories"),
    "decimals": (pa.array([Decimal(1), Decimal(2)], pa.decimal128(5, 2)), "numbers"),
}


@pytest.mark.parametrize("kind", ODD)
def test_types_of_arrow_are_read(kind):
    column, what = ODD[kind]
    encoder = TableEncoder({"c": ["a", "b"] if what == "categories" else (0, 4)})
    rows = encoder.transform(pa.table({"c": column}))
    expected = encoder.transform({"c": ["a", "b"] if what == "categories" else [1, 2]})
    if kind == "text that is no UTF-8":
        assert np.isnan(rows[1]).all()
        rows, expected = rows[:1], expected[:1]
    np.testing.assert_array_equal(rows, expected)


def test_nested_columns_are_refused_as_a_type():
    with pytest.raises(ReadingError, match="not categories"):
        TableEncoder({"c": ["a", "b"]}).transform(pa.table({"c": [["a"], ["b"]]}))


def test_columns_of_wide_texts_are_found_without_searches(tmp_path):
    class Names(tuple):
        n_searches = 0

        def index(self, *args):
            Names.n_searches += 1
            return super().index(*args)

        def count(self, *args):
            Names.n_searches += 1
            return super().count(*args)

    path = wide_text(tmp_path, 5_000, 40)
    table = open_table(path)
    table.names = Names(table.names)
    parts = list(table.batches(table.names))
    assert sum(map(len, parts)) == 40
    assert len(parts) <= 3
    assert Names.n_searches == 0


def test_parts_of_wide_texts_have_few_fields(tmp_path):
    n_columns = 60_000
    table = open_table(wide_text(tmp_path, n_columns, 40))
    sizes = [len(part) for part in table.batches(["c1"])]
    assert sum(sizes) == 40
    assert max(sizes) * n_columns <= 1 << 20  # about 80 megabytes


def wide_text(folder, n_columns, n_rows):
    """Write a table of ones and return its path."""
    header = ",".join(f"c{j}" for j in range(n_columns))
    path = folder / "wide.csv"
    path.write_text("\n".join([header, *[",".join(["1"] * n_columns)] * n_rows]) + "\n")
    return path
