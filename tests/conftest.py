"""In which order processes take the files of tests, where several share them (`make test`)."""

from pathlib import Path

HERE = Path(__file__).parent
# What takes longest comes first, so that no process is left alone with it.
LONGEST = ("workflow", "privacy")


def pytest_collection_modifyitems(config, items):
    """Put the longest folders and files first; one process alone keeps pytest's order."""

    def rank(item):
        path = item.path.relative_to(HERE).as_posix()
        return next((i for i, name in enumerate(LONGEST) if path.startswith(name)), len(LONGEST))

    if hasattr(config, "workerinput"):  # a process of several
        items.sort(key=rank)
