"""How tests share out where several processes run them (make test)."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before the plugin that reads the marks
def pytest_collection_modifyitems(items):
    """Keep together what shares fixtures: the tests of a file, and all that need the scheduler.

    The longest, which run the workflow, come first, so that no process is left alone with them.
    """
    for item in items:
        parts = item.path.relative_to(HERE).parts
        group = "slurm" if "slurm" in parts else "/".join(parts)
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.path.relative_to(HERE).parts[0] != "workflow")
