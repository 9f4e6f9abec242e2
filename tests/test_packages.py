"""Packages use one another by public names only."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_private_name_of_another_package_is_imported(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location("house", ROOT / "benchmarks/house.py")
    house = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(house)
    found = house.modules(ROOT / "src")
    assert {name.partition(".")[0] for name in found} == {
        *("privclust", "privclust_audit", "privclust_papers")
    }
    across = [
        (module, f"{target}.{name}")
        for module, target, name in house.imports(found)
        if module.partition(".")[0] != target.partition(".")[0]
    ]
    assert len(across) > 300
    private = [use for use in across if any(part[0] == "_" for part in use[1].split("."))]
    assert [use for use in private if use[1] != "privclust.__version__"] == []
