"""What tests share, and in which order processes take their files (`make test`)."""

from pathlib import Path

import pytest

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


@pytest.fixture
def command_in_folder(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command in a new folder: its code and what it printed."""
    from privclust.command import main  # not for tests that need no command

    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return code, out, err

    return command
