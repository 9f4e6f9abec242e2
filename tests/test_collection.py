"""The generated half of benchmarks/collection.py: its rows are the ones that pages report on."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DRAWN = {  # rows, columns, mean of all entries, last entry
    "even": (20000, 2, 0.015113268, -0.685514006),
    "ranked": (20000, 2, -0.021322730, 0.022746676),
    "spreads": (20000, 5, -0.031752509, 0.356748031),
    "long": (20000, 2, -0.013223723, 0.224804989),
    "arcs": (20000, 2, 0.022983725, -0.378710590),
    "tails": (20000, 4, -0.062875779, 0.276868433),
    "uniform": (20000, 2, 0.000404351, 0.873765558),
    "nested": (60000, 2, 0.032522050, -0.720506242),
    "categories": (20000, 10, -0.248838013, -1.000000000),
    "skewed": (20000, 6, -0.858443361, -0.982742548),
    "spiral": (60000, 2, -0.040625612, 0.057658209),
    "rings": (20000, 2, 0.001809444, 0.504605671),
    "outliers": (20000, 3, 0.024388411, -0.567496177),
    "answers": (20000, 8, 0.039090625, -0.500000000),
    "wide": (20000, 32, -0.013197664, -0.041966314),
}


@pytest.fixture
def collection(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("collection")


def test_generated_tables_are_drawn_alike(collection):
    """Another seed, order of draws or version of NumPy would change what the pages were made of."""
    drawn = {}
    for table in collection._generated():
        X = table.scaled()
        drawn[table.name] = *X.shape, X.mean(), X[-1, -1]
    assert drawn == {name: pytest.approx(shape, abs=1e-8) for name, shape in DRAWN.items()}
