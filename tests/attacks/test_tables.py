"""Attacks on sketches of tables: what an entry, or another row's, may decide."""

import numpy as np
import pandas as pd
import pytest

from privclust.preprocessing import TableEncoder
from privclust.records.labels import LabelCounts
from privclust.sketches import Sketch, draw_frequencies

LARGEST_MODULUS = 1.0 + 2.0**-20  # of one record's share of a sum; features are rounded

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FREQUENCIES = draw_frequencies(3, 40, variance=1.0, random_state=0)
COLUMNS = ["x", "y", "z"]


def state_bytes(sketch):
    return {name: array.tobytes() for name, array in sketch.exact.items()}


BAD = [None, np.nan, np.inf, -np.inf, 3e38, -3e38, 1e308, -1e308, 1e-45]


@pytest.mark.attack(
    claim="Each entry of a table is treated separately and never decides whether there is an "
    "error.",
    before="When a table was read in the way of `Sketch.of`, a null, an infinity or a large "
    "number raised an error.",
    now="A row with a missing entry is left out and counted, and the sums of the other rows are "
    "unchanged.",
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_no_entry_of_a_table_causes_an_error(tmp_path, kind):
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
        assert (both.n_samples, both.left_out) in ((101, 0), (100, 1))
        assert both.left_out == (bad is None or bool(np.isnan(bad)))
        apart = Sketch.of_table(base, FREQUENCIES) + Sketch.of_table(row, FREQUENCIES)
        assert state_bytes(both) == state_bytes(apart)


@pytest.mark.attack(
    claim="A row's contribution depends only on that row, whatever entries are null elsewhere.",
    before="NumPy converts integers next to a null to floats: categories above 2^53 became others.",
    now="Such columns are read as integers.",
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


@pytest.mark.attack(
    claim="A table with `groups=`: a person changes each sum by at most one row's bound, for any "
    "number of rows and any division into files, row groups and threads.",
    before="The promise held; the option is new. If each part were averaged by persons and then "
    "added up, a person in 20 parts would count 20 times.",
    now="A person changes each sum by at most the bound of one row, to the last bit. In sums of "
    "moments, a person counts as one row, the mean of the person's rows.",
)
@pytest.mark.parametrize("n_rows", [1, 3, 999, 1000])
def test_a_person_with_rows_in_several_parts(tmp_path, n_rows):
    rng = np.random.default_rng(n_rows)
    others = pd.DataFrame(rng.standard_normal((800, 3)), columns=COLUMNS)
    others["who"] = [f"person {i}" for i in rng.integers(520, size=len(others))]
    own = pd.DataFrame(np.full((n_rows, 3), 1e-3), columns=COLUMNS).assign(who="the one")
    whole = pd.concat([others, own]).sample(frac=1.0, random_state=0)
    path = tmp_path / "parts"
    path.mkdir()
    parts = [whole.iloc[piece] for piece in np.array_split(np.arange(len(whole)), 20)]
    for i, part in enumerate(parts):
        kept = pa.Table.from_pandas(part, preserve_index=False)
        parquet.write_table(kept, path / f"{i}.parquet", row_group_size=30)

    def moved(with_one, without):
        """The largest modulus by which a sum moved, squared, in units of 2^-40; exact."""
        whole, fraction = (
            with_one.exact[name].astype(object) - without.exact[name].astype(object)
            for name in ("whole", "fraction")
        )
        units = whole * 2**40 + fraction
        return max((units**2).sum(axis=1))

    how = {"columns": COLUMNS, "groups": "who", "n_threads": 2}
    without = Sketch.of_table(others, FREQUENCIES, **how)
    with_one = Sketch.of_table(path, FREQUENCIES, **how)
    bound = int(LARGEST_MODULUS * 2**40)
    assert (0.999 * 2**40) ** 2 < moved(with_one, without) <= bound**2
    assert with_one.n_samples == without.n_samples + 1

    by_parts = [Sketch.of_table(part, FREQUENCIES, **how) for part in parts]
    if n_rows > 900:
        apart = sum(by_parts[1:], by_parts[0])
        assert moved(apart, without) > (10 * bound) ** 2


@pytest.mark.attack(
    claim="Nobody can choose two labels of a table that count as one person.",
    before="The promise held. Labels were hashed to 64 bits with a seed per process; among 10^8 "
    "labels, two collide with probability 3e-4.",
    now="128 bits, with a key drawn for each reading.",
)
def test_labels_do_not_collide():
    names = np.array([f"person {i}" for i in range(10_000)], dtype=object)
    one, other = (LabelCounts([(names, np.ones(len(names), dtype=bool))]) for _ in range(2))
    assert one.n_counted == len(names)
    assert one._keys.dtype.itemsize * 8 == 128
    assert not set(one._keys.tolist()) & set(other._keys.tolist())
