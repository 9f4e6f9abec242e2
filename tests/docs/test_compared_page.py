"""Tables of docs/compared.md: how they are computed, and that the page has them."""

import ast
import importlib
import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/compared.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compared():
    """The benchmark, with its neighbours on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("compared")


def fits_of(compared, ratio):
    """Return three fits of two tables by each method, where ratio(method, table) is the middle."""
    rows = [
        {
            **{"table": table, "n": 2_000, "d": 3, "k": 4, "epsilon": epsilon, "method": method},
            **{"cpu_s": 0.5, "ratio": ratio(method, table) + step},
        }
        for table in ("first", "second")
        for method in compared.METHODS
        for epsilon in compared.EPSILONS
        for step in (-0.25, 0.0, 0.5)
    ]
    return pd.DataFrame(rows)


def test_tables_have_medians_spreads_and_counts(compared):
    middles = {compared.OTHER: {"first": 3.0, "second": 12.0}, compared.PURE: {"first": 4.0}}
    fits = fits_of(compared, lambda method, table: middles.get(method, {}).get(table, 2.0))
    short = compared.in_short(fits).set_index("method")
    assert short.loc[compared.OTHER, "epsilon = 1"] == "7.50 (3.00–12.0)"
    assert short.loc[compared.OTHER, "lower than diffprivlib"] == ""
    assert short.loc[compared.PURE, "lower than diffprivlib"] == "1 / 1 / 1 of 2"
    assert short.loc[compared.APPROXIMATE, "lower than diffprivlib"] == "2 / 2 / 2 of 2"
    assert set(short["CPU s"]) == {"0.50"}
    first = compared.by_table(fits).set_index("table").loc["first"]
    assert first["n, d, k"] == "2,000, 3, 4"
    assert first[compared.PURE] == " / ".join(["4.00 (3.75–4.50)"] * 3)


def test_the_page_has_a_line_for_each_method_and_table(compared):
    short = PAGE.partition("<!-- in short -->")[2].partition("<!-- end of in short -->")[0]
    assert re.findall(r"^\| (.*?) \|", short, re.M)[2:] == list(compared.METHODS)
    tables = PAGE.partition("<!-- by table -->")[2].partition("<!-- end of by table -->")[0]
    names = re.findall(r"^\| (\w+) \|", tables, re.M)[1:]
    held_out = [table.name for table in compared.collection.tables("show")]
    assert len(names) >= 5
    assert names == [name for name in held_out if name in names]


def test_the_audited_module_is_python():
    page = (ROOT / "docs/audit_quality.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(# sscp.py\n.*?)```", page, re.S)
    assert {"far", "far_pair", "middle", "middle_pair"} <= {
        name.id for name in ast.walk(ast.parse(code)) if isinstance(name, ast.Name)
    }
