"""The examples in the docstrings run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

import privclust

MODULES = sorted(
    info.name for info in pkgutil.walk_packages(privclust.__path__, prefix="privclust.")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    results = doctest.testmod(module)
    assert results.failed == 0, f"{results.failed} of {results.attempted} examples in {name}"


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [
        test
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(found) > 50
