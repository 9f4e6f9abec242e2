"""Numbers and dates in a declared notation, each cell by itself."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privclust.records.cells import number
from privclust.records.notation import USUAL, Notation

GERMAN, ENGLISH = Notation(",", "."), Notation(".", ",")


@pytest.mark.parametrize(
    ("notation", "text", "value"),
    [
        (GERMAN, "2.455,50", 2455.5),
        (GERMAN, "305", 305.0),
        (GERMAN, "-1.000.000", -1e6),
        (GERMAN, "1.5", math.nan),
        (GERMAN, "12.34.567", math.nan),
        (ENGLISH, "2,455", 2455.0),
        (ENGLISH, "24,55", math.nan),
        (ENGLISH, "1,000.5e2", 100050.0),
        (Notation(","), "1,5", 1.5),
        (Notation(","), "1.5", math.nan),
        (USUAL, "2,455", math.nan),
        (GERMAN, "", math.nan),
        (GERMAN, ",", math.nan),
    ],
)
def test_a_number_is_read_in_its_notation_or_not_at_all(notation, text, value):
    assert repr(notation.number(text)) == repr(value)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_a_number_comes_back_from_its_notation(value):
    text = f"{value:,.3f}"
    assert ENGLISH.number(text) == number(text.replace(",", ""))
    swapped = text.replace(",", "_").replace(".", ",").replace("_", ".")
    assert GERMAN.number(swapped) == ENGLISH.number(text)


@given(st.one_of(st.text(max_size=8), st.integers(), st.floats(), st.none(), st.binary()))
def test_a_cell_is_read_whatever_it_is(cell):
    for notation in (GERMAN, ENGLISH, Notation(date_format="%d.%m.%Y")):
        assert isinstance(notation.number(cell), float)
        assert isinstance(notation.seconds(cell), float)


def test_dates_have_their_order():
    assert Notation(date_format="%d.%m.%Y").seconds("02.01.1970") == 86_400.0
    assert math.isnan(Notation(date_format="%d.%m.%Y").seconds("1970-01-02"))


@pytest.mark.parametrize("text", ["2.455", "2.455,5", "1,5", "1.5", " 7 ", "x", "01.02.1970"])
def test_bytes_are_read_in_the_notation_of_texts(text):
    for notation in (USUAL, GERMAN, ENGLISH, Notation(date_format="%d.%m.%Y")):
        for read in (notation.number, notation.seconds):
            assert str(read(text.encode())) == str(read(text))


@pytest.mark.parametrize("marks", [("", ""), (",", ","), ("..", ""), ("1", ""), (".", "-")])
def test_marks_that_are_none_are_refused(marks):
    with pytest.raises(ValueError, match="mark"):
        Notation(*marks)
