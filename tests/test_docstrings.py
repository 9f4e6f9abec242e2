"""The examples in the docstrings run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

import privclust

ROOMS = [info.name for info in pkgutil.iter_modules(privclust.__path__) if info.ispkg]
PACKAGES = [*(f"privclust.{name}" for name in ROOMS), "privclust_audit"]
WITHOUT = {"privclust.command"}  # its modules have no examples


def run(module):
    """Run the examples of a module, of all docstrings that have some."""
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(module):
        if test.examples:
            runner.run(test)
    return runner.summarize()


@pytest.mark.parametrize("package", PACKAGES)
def test_examples(package):
    within = importlib.import_module(package)
    names = [info.name for info in pkgutil.walk_packages(within.__path__, f"{within.__name__}.")]
    results = {name: run(importlib.import_module(name)) for name in [within.__name__, *names]}
    assert [name for name, result in results.items() if result.failed] == []
    assert any(result.attempted for result in results.values()) == (package not in WITHOUT)
