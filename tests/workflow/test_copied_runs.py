"""A copied run is what ``python -m`` would be: its folder, variables, path, output and end."""

import importlib.util
import os
import signal
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # the process that is copied imports Snakemake

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("copied_runs", HERE / "copied_runs.py")
copied_runs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(copied_runs)

PROGRAM = """
import atexit, os, sys, time
import beside
atexit.register(print, "the end", flush=True)
print(sys.argv[1:], os.getcwd() == sys.path[0], os.environ["GIVEN"], "LEFT_OUT" in os.environ)
print(beside.__name__, "privclust" in sys.modules, os.getpgid(0) == os.getpid(), flush=True)
print("to the other stream", file=sys.stderr, flush=True)
if sys.argv[1] == "wait":
    time.sleep(600.0)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Start the program with arguments; return its run and the file of its output."""
    monkeypatch.setenv("LEFT_OUT", "1")
    folder, package, output = tmp_path / "folder", tmp_path / "package", tmp_path / "output"
    for made in (folder, package):
        made.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    (package / "beside.py").touch()
    environment = {"PYTHONPATH": str(package), "GIVEN": "a value", "PATH": os.environ["PATH"]}

    def start(*arguments, own_group=True):
        output.write_text("of the run before")
        return copied_runs.Run(arguments, folder, environment, output, own_group, "program"), output

    return start


@pytest.mark.parametrize("own_group", [False, True])
@pytest.mark.parametrize("code", [0, 3])
def test_it_ends_with_its_code_and_all_of_its_output(started, code, own_group):
    run, output = started(str(code), "--more", own_group=own_group)
    assert run.wait() == run.poll() == run.returncode == code
    assert output.read_text().splitlines() == [
        f"['{code}', '--more'] True a value False",
        f"beside False {own_group}",
        "to the other stream",
        "the end",
    ]


@pytest.mark.parametrize("kill", [os.kill, os.killpg])
def test_it_can_be_killed(started, kill):
    run, output = started("wait")
    while "other stream" not in output.read_text():
        assert run.poll() is None
        time.sleep(0.01)
    kill(run.pid, signal.SIGKILL)
    assert run.wait() == run.poll() == -signal.SIGKILL
    assert "the end" not in output.read_text()
