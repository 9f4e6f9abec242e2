"""Every test here is an attack, and says what is claimed, was seen before and is seen now."""

import pytest


def pytest_collection_modifyitems(items):
    """Refuse a test of this folder that is no attack, and mark none twice."""
    for item in items:
        if item.path.parent.name != "attacks":
            continue
        mark = item.get_closest_marker("attack")
        if mark is None or set(mark.kwargs) != {"claim", "before", "now"}:
            raise pytest.UsageError(f"{item.nodeid} must say claim, before and now in its mark")
