"""What is skipped is said in the last line; for want of a program it is a failure in CI."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pytest

def test_that_runs():
    pass

@pytest.fixture
def browser():
    pytest.skip("no Chromium here: apt-get install chromium")

@pytest.mark.parametrize("width", [1, 2])
def test_in_a_browser(browser, width):
    pass

@pytest.mark.skipif(True, reason="no mirror")
def test_of_real_data():
    pass

@pytest.mark.xfail
def test_that_fails_as_expected():
    raise AssertionError
"""
FILE = "import pytest\n\npytest.importorskip('nowhere', reason='no nowhere')\n"
WANT = "no Chromium here: apt-get install chromium"


@pytest.fixture
def run(tmp_path):
    """Run these tests in a process, where CI has a value: exit code and lines."""
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "test_whole.py").write_text(FILE)
    (tmp_path / "pytest.ini").touch()

    def tests(ci, *arguments):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=tmp_path,
            env={**os.environ, "CI": ci},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()

    return tests


@pytest.mark.parametrize("processes", [[], ["-n", "2", "--dist", "loadgroup"]])
def test_the_last_line_says_what_was_skipped_and_why(run, processes):
    code, lines = run("", *processes)
    assert code == 0
    assert (
        lines[-1] == f"skipped, and why: 2 tests: {WANT}; 1 tests: no mirror; 1 files: no nowhere"
    )


def test_in_ci_what_debian_has_is_not_skipped(run):
    code, lines = run("true")
    assert code == 1
    assert lines[-1] == "skipped, and why: 1 tests: no mirror; 1 files: no nowhere"
    named = [line for line in lines if line.startswith("ERROR") and WANT in line]
    assert len(named) == 2


def test_where_nothing_was_skipped_the_last_line_says_so(run):
    assert run("", "test_some.py", "-k", "runs or fails")[1][-1] == "nothing was skipped"


def test_what_is_listed_as_slow_is_there():
    here = Path(__file__).parents[1]
    for name in (here / "tests/slow.txt").read_text().splitlines():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (here / file).read_text(), name


def test_processes_take_files_of_many_slow_tests_first(run, tmp_path):
    for name, n_tests in (("a", 1), ("b", 1), ("c", 2)):
        tests = "".join(f"def test_{i}():\n    pass\n\n" for i in range(n_tests))
        (tmp_path / f"test_{name}.py").write_text(tests)
    slow = ["test_b.py::test_0", "test_c.py::test_0", "test_c.py::test_1"]
    (tmp_path / "slow.txt").write_text("\n".join(slow))
    files = ("test_a.py", "test_b.py", "test_c.py")
    code, lines = run("", "-n", "1", "--dist", "loadfile", "--no-loadscope-reorder", "-v", *files)
    assert code == 0
    passed = [line.split("PASSED ")[1].strip() for line in lines if "PASSED " in line]
    assert passed == [
        "test_c.py::test_0",
        "test_c.py::test_1",
        "test_b.py::test_0",
        "test_a.py::test_0",
    ]
