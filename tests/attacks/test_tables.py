"""Attacks on sketches of tables: what an entry, or another row's, may decide."""

import numpy as np
import pandas as pd
import pytest

from privclust.kmeans import FeatureSums, Sketch, draw_frequencies
from privclust.preprocessing import TableEncoder

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FREQUENCIES = draw_frequencies(3, 40, variance=1.0, random_state=0)
COLUMNS = ["x", "y", "z"]


def state_bytes(sketch):
    return {name: array.tobytes() for name, array in sketch.exact.items()}


BAD = [None, np.nan, np.inf, -np.inf, 3e38, -3e38, 1e308, -1e308, 1e-45]


@pytest.mark.attack(
    claim="any entry of a table counts by itself, and decides no error",
    before="read as `Sketch.of` reads, a null, an infinity or a large number is an error",
    now="the same number of rows, and the other rows' sums as they were",
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_no_entry_of_a_table_decides_between_a_result_and_an_error(tmp_path, kind):
    rng = np.random.default_rng(0)
    good = pd.DataFrame(rng.standard_normal((100, 3)), columns=COLUMNS)
    for bad in BAD:
        if kind == pa.float32() and bad in (1e308, -1e308):
            continue
        value = np.float32(bad) if kind == pa.float32() and bad is not None else bad
        columns = [pa.array([*good[name].astype(kind.to_pandas_dtype())], kind) for name in COLUMNS]
        base = pa.table(columns, names=COLUMNS)
        row = pa.table([pa.array([value], kind), *(pa.array([0.5], kind),) * 2], names=COLUMNS)
        path = tmp_path / "x.parquet"
        parquet.write_table(pa.concat_tables([base, row]), path)
        both = Sketch.of_table(path, FREQUENCIES, columns=COLUMNS)
        assert both.n_samples == 101
        apart = Sketch.of_table(base, FREQUENCIES) + Sketch.of_table(row, FREQUENCIES)
        assert state_bytes(both) == state_bytes(apart)
        if bad is None or not abs(bad) <= FeatureSums(FREQUENCIES).largest_value(str(kind)):
            with pytest.raises(ValueError, match="X must be finite and at most") as error:
                Sketch.of_table(path, FREQUENCIES, columns=COLUMNS, strict=True)
            assert "e+308" not in str(error.value)


@pytest.mark.attack(
    claim="what a row adds depends on that row alone, whatever is null elsewhere",
    before="NumPy makes floats of integers beside a null: categories above 2^53 became others",
    now="such columns are read as integers",
)
def test_a_null_in_another_row_does_not_change_a_category():
    large = 2**53 + 1
    encoder = TableEncoder({"id": [str(large), str(large - 1)], "x": (0, 1)})
    frequencies = draw_frequencies(3, 20, variance=1.0, random_state=2)

    def sketch(ids):
        table = pa.table({"id": pa.array(ids, pa.int64()), "x": np.full(len(ids), 0.3)})
        return Sketch.of_table(table, frequencies, encoder=encoder)

    numbers = pa.table({name: pa.array([large, None], pa.int64()) for name in COLUMNS})
    apart = numbers.slice(0, 1), numbers.slice(1, 1)
    both = [Sketch.of_table(part, FREQUENCIES) for part in apart]
    assert state_bytes(Sketch.of_table(numbers, FREQUENCIES)) == state_bytes(both[0] + both[1])
    assert state_bytes(sketch([large, None])) == state_bytes(sketch([large]) + sketch([None]))
    assert (sketch([large]).sums != sketch([large - 1]).sums).any()
