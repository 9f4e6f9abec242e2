"""The table of attacks is that of the tests."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("attacks_table", ROOT / "tests/attacks/table.py")
table = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(table)


def test_the_page_has_all_attacks():
    assert len(table.attacks()) >= 40
    page = (ROOT / "docs/attacks.md").read_text(encoding="utf-8")
    assert page == table.with_table(page), "run: python tests/attacks/table.py --into docs/..."
