"""Cells and ids are read one by one, and compiled code reads them to the same bits."""

import collections
import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privclust.privacy.groups import Groups
from privclust.records.cells import is_missing, key, number, seconds
from privclust.records.columns import column_of
from privclust.records.errors import ReadingError
from privclust.records.matrix import numbers_of_table

pa = pytest.importorskip("pyarrow")

TIMES = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))
MODERN = st.datetimes(datetime.datetime(1980, 1, 1), datetime.datetime(2100, 1, 1))
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.floats(width=32).map(np.float32),
    st.booleans(),
    st.decimals(allow_nan=True),
    st.fractions(),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
)


class Unreadable:
    """An entry of a class that cannot be read, with its own words for that."""

    def __float__(self):
        raise RuntimeError("Mary")

    __str__ = __float__


class Hostile(Unreadable):
    """An entry whose every method raises, and its class when it is asked for."""

    @property
    def __class__(self):
        raise RuntimeError("Mary")

    __eq__ = __hash__ = __len__ = __bool__ = Unreadable.__float__


ODD = st.one_of(
    NUMBERS,
    st.text(max_size=5),
    st.sampled_from(["1_0", "1e999", "nan", "NA", "None", " 3 ", "3.0", "\x00", "0x10", "²"]),
    st.binary(max_size=3),
    st.none(),
    TIMES,
    TIMES.map(pd.Timestamp),
    TIMES.map(np.datetime64),
    st.dates(),
    st.timedeltas(),
    st.complex_numbers(),
    st.sampled_from([pd.NA, pd.NaT, np.ma.masked, np.datetime64("NaT", "s"), 10**400, -(10**5000)]),
    st.sampled_from(
        [[], [1.0], (1, 2), {}, {1}, np.zeros(2), np.array(3.0), Unreadable(), Hostile]
    ),
)


def containers(cells):
    """The same cells in containers without a type."""
    array = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        array[i] = cell
    yield list(cells)
    yield array
    yield pd.Series(array, dtype=object)


def bits(values):
    """Floats as bytes, all NaN alike."""
    return np.where(np.isnan(values), np.nan, values).tobytes()


class Double(float):
    """A float that says that it is none."""

    def __float__(self):
        return "Mary"


def test_a_float_that_gives_no_float_is_read():
    assert math.isnan(number(Double(1.0)))
    assert key(Double(1.0)) in (None, "1")


@given(ODD)
def test_a_cell_is_read_whatever_it_is(cell):
    assert isinstance(number(cell), float)
    assert isinstance(seconds(cell), float)
    name = key(cell)
    assert name is None or isinstance(name, str)
    if is_missing(cell):
        assert math.isnan(number(cell))
        assert name is None


def test_a_cell_whose_methods_raise_is_read_like_any_other():
    for column in map(column_of, containers([Hostile(), 3])):
        assert np.isnan(column.numbers()).tolist() == [True, False]
        assert np.isnan(column.seconds()).all()
        assert column.keys() == [None, "3"]
        assert column.places(["3", "4"]) == [-1, 0]
    assert np.isnan(numbers_of_table([[1.0], [Hostile()], Hostile()])).ravel().tolist() == [
        *(False, True, True)
    ]


@given(st.lists(ODD, min_size=1, max_size=6), ODD, st.integers(0, 5))
def test_a_cell_changes_no_other(cells, odd, at):
    at %= len(cells)
    others = [i for i in range(len(cells)) if i != at]
    changed = [*cells[:at], odd, *cells[at + 1 :]]
    for before, after in zip(containers(cells), containers(changed), strict=True):
        one, two = column_of(before), column_of(after)
        assert bits(one.numbers()[others]) == bits(two.numbers()[others])
        assert bits(one.seconds()[others]) == bits(two.seconds()[others])
        assert [one.keys()[i] for i in others] == [two.keys()[i] for i in others]
        places = [column.places(["a", "3", "nan"]) for column in (one, two)]
        assert [places[0][i] for i in others] == [places[1][i] for i in others]


@given(st.lists(ODD, min_size=1, max_size=5), st.integers(0, 4), st.integers(0, 9))
def test_a_row_of_any_length_changes_no_other(row, at, length):
    rows = [[0.5, 1.5]] * 5
    before = numbers_of_table(rows)
    after = numbers_of_table([*rows[:at], (row * 10)[:length], *rows[at + 1 :]])
    others = np.arange(5) != at
    assert before[others].tobytes() == after[others].tobytes()


@pytest.mark.parametrize("container", [list, tuple, collections.deque, collections.UserList])
def test_a_sequence_of_any_class_is_read_row_by_row(container):
    rows = numbers_of_table(container([[1.0, 2.0], (3, "x"), [4.0]]))
    np.testing.assert_array_equal(rows, [[1.0, 2.0], [3.0, np.nan], [4.0, np.nan]])


def typed(cells):
    """Containers of a type, of whole numbers, floats or none, that hold them as they are."""
    whole = [cell for cell in cells if isinstance(cell, int)]
    some = [float(cell) for cell in cells if not isinstance(cell, str)]
    yield np.array(whole, np.int64)
    yield np.array(some)
    yield np.array(some, np.float32)
    yield np.array([bool(cell) for cell in whole])
    yield np.ma.masked_invalid(np.array(some))
    for dtype in ("Int64", "int64[pyarrow]"):
        yield pd.Series([*whole[:3], None], dtype=dtype)
    for dtype in ("Float64", "float64[pyarrow]", "Float32"):
        yield pd.Series([*some[:3], None], dtype=dtype)
    yield pd.Series(some, dtype="Sparse[float]")
    yield pa.array([*whole, None], pa.int64())
    yield pa.array(whole, pa.int64())
    yield pa.chunked_array([pa.array(some[:2], pa.float64()), pa.array(some[2:], pa.float64())])
    yield pa.array(some, pa.float32())
    yield pa.array([*map(Decimal, whole), None], pa.decimal128(38, 3))
    yield pa.array([str(cell) for cell in cells], pa.string()).dictionary_encode()
    yield pa.array([str(cell) for cell in cells], pa.large_string())


def cells_in(container):
    """The cells of a container, as it gives them one by one."""
    if getattr(container, "type", None) == pa.float32():
        return list(container.to_numpy())
    if hasattr(container, "to_pylist"):
        return container.to_pylist()
    return list(container)


WHOLE = st.one_of(st.integers(-(2**62), 2**62), st.sampled_from([2**53, 2**53 + 1, 0, -1]))


@given(st.lists(st.one_of(WHOLE, st.floats(width=32), st.text(max_size=4)), max_size=6))
def test_the_fast_path_reads_the_same_bits_as_the_slow_one(cells):
    for container in typed(cells):
        column = column_of(container)
        slow = np.array([number(cell) for cell in cells_in(container)], dtype=float)
        if column.numbers().dtype == np.float32:
            slow = slow.astype(np.float32)
        assert bits(column.numbers()) == bits(slow), type(container)
        keys = [key(cell) for cell in cells_in(container)]
        assert column.keys() == keys
        codes, count = column.codes()
        assert [code < 0 for code in codes] == [name is None for name in keys]
        assert len(set(keys) - {None}) == count
        pairs = {(code, name) for code, name in zip(codes, keys, strict=True) if name is not None}
        assert len(pairs) == count


UNITS = ("Y", "M", "D", "h", "s", "ms", "us", "ns", "25s")


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5), st.sampled_from(UNITS))
def test_times_of_a_type_are_read_as_one_by_one(counts, unit):
    counts = [*counts, 1 - 2**63]  # where numpy 2.5 raises
    times = np.array(counts, np.int64).view(f"M8[{unit}]")
    known = {"ns": 10**9, "us": 10**6, "ms": 1000, "s": 1}
    if unit in known:
        assert column_of(times).seconds()[-1] == (1 - 2**63) // known[unit]
    assert bits(column_of(times).seconds()) == bits(np.array([seconds(time) for time in times]))


@given(st.lists(MODERN, min_size=1, max_size=5), st.sampled_from([None, "UTC", "Asia/Tokyo"]))
def test_times_of_pandas_and_arrow_are_read_as_one_by_one(times, zone):
    series = pd.Series(pd.to_datetime(times), dtype="datetime64[us]").dt.tz_localize(zone)
    slow = bits(np.array([seconds(time) for time in series]))
    assert bits(column_of(series).seconds()) == slow
    assert bits(column_of(pa.array(series)).seconds()) == slow
    assert bits(column_of([str(time) for time in series]).seconds()) == slow


@given(st.integers(-(10**40), 10**40))
def test_one_person_has_one_key_however_spelled(n):
    spelled = [n, str(n), f" {n} ", f"{n}.0", f"{n}.00", str(n).encode(), Decimal(n), Fraction(n)]
    if n >= 0:
        spelled += [f"+{n}", f"00{n}"]
    if abs(n) < 2**53:
        spelled += [float(n), np.float64(n), np.int64(n)]
    assert {key(cell) for cell in spelled} == {str(n)}
    assert Groups.of(spelled, len(spelled)).count == 1


@given(st.lists(st.integers(-(2**70), 2**70), unique=True, max_size=8))
def test_persons_do_not_meet(ids):
    assert len({key(cell) for cell in ids}) == len(ids)
    assert len({key(f"u{cell}") for cell in ids}) == len(ids)


FRAMES = {
    "text": pd.DataFrame({"a": ["1", "2"]}),
    "object": pd.DataFrame({"a": np.array([1.0, 2.0], dtype=object)}),
    "time": pd.DataFrame({"a": pd.date_range("2020", periods=2)}),
    "span": pd.DataFrame({"a": pd.to_timedelta([1, 2], "s")}),
    "category": pd.DataFrame({"a": pd.Categorical(["1", "2"])}),
    "period": pd.DataFrame({"a": pd.period_range("2020", periods=2)}),
    "string": pd.DataFrame({"a": pd.array(["1", None], dtype="string")}),
    "arrow text": pa.table({"a": ["1", "2"]}),
    "nested": pa.table({"a": [[1], [2]]}),
    "clock": pa.table({"a": pa.array([1, 2], pa.time32("s"))}),
    "numpy text": np.array([["1"], ["2"]]),
    "numpy bytes": np.array([[b"1"], [b"2"]]),
    "numpy times": np.array([["2020"], ["2021"]], dtype="M8[D]"),
    "numpy spans": np.array([[1], [2]], dtype="m8[s]"),
    "record": np.zeros((2, 1), dtype=[("a", float)]),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_types_that_hold_no_numbers_are_refused_as_types(kind):
    with pytest.raises(ReadingError, match="not numbers"):
        numbers_of_table(FRAMES[kind])
    with pytest.raises(ReadingError, match="not numbers"):
        numbers_of_table(FRAMES[kind][:0])
