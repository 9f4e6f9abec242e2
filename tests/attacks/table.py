"""The table of all attacks on what the package promises.

An attack is a test of this folder that is marked ``@pytest.mark.attack(claim=..., before=...,
now=...)``: the promise, the result when it was first tried, and the result now. This program
writes them all between the marks of a page:

    python tests/attacks/table.py --into docs/attacks.md
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent
_BEGIN, _END = "<!-- attacks on promises -->\n", "<!-- end of attacks on promises -->\n"
COLUMNS = ("claim", "before", "now")


def attacks() -> dict[str, dict[str, str]]:
    """Return the texts of each attack by the name of its test, in the order of the files."""
    gathered = {}
    for file in sorted(_FOLDER.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"attacks_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        for name, test in vars(module).items():
            for mark in getattr(test, "pytestmark", ()) if name.startswith("test_") else ():
                if mark.name == "attack":
                    gathered[name] = mark.kwargs
    return gathered


def with_table(page: str) -> str:
    """Return a page with the table between its marks."""
    found = attacks()
    held = sum(about["before"].startswith("The promise held") for about in found.values())
    lines = [f"{len(found)} attacks. In {held} of them the promise held when first tried.", ""]
    lines += ["| attack | promise | when first tried | now |", "| --- | --- | --- | --- |"]
    for name, about in found.items():
        words = " ".join(name.removeprefix("test_").split("_"))
        lines.append(f"| {words} | {' | '.join(about[column] for column in COLUMNS)} |")
    before, rest = page.split(_BEGIN)
    after = rest.split(_END)[1]
    return before + _BEGIN + "\n" + "\n".join(lines) + "\n\n" + _END + after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--into", type=Path, required=True)
    page = parser.parse_args().into
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
