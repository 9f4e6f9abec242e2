"""The command line: what it prints, what it refuses, and what is left when it is stopped."""

import io
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from privclust.command import output

PLAN = ("plan", "--n", "3000", "--features", "2", "--clusters", "2", "--epsilon", "1")


@pytest.fixture
def run(command_in_folder):
    """Run the command in an empty folder."""
    return command_in_folder


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "COMMAND"),
        (("decode",), "SKETCH"),
        (("decode", "s.h5"), "-o"),
        (("decode", "s.h5", "-o", "out", "--clusters", "0"), "at least 1"),
        (("decode", "s.h5", "-o", "out", "--seed", "-1"), "--seed"),
        ((*PLAN[:-1], "0"), "greater than 0"),
        ((*PLAN[:-1], "nan"), "finite"),
        ((*PLAN, "--delta", "1"), "less than 1"),
        ((*PLAN, "--smallest", "0.6"), "--smallest must be at most one over --clusters"),
    ],
)
def test_misuse_is_one_line_and_code_2(run, arguments, reason):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert reason in err
    assert os.listdir() == []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_ends_in_one_line(number, code):
    program = (
        "import sys; from privclust.command import output, main;"
        "output._SECONDS_BETWEEN_LINES = 0.0; sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, *PLAN, "--trials", "1000000"],
        stderr=subprocess.PIPE,
        text=True,
        # tests that run in a shell's background would hand down that Ctrl-C is ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while "fits done" not in process.stderr.readline():
        pass
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert err.endswith("nothing was written\n")


def test_progress_is_lines_in_a_log_and_a_bar_on_a_terminal(run, monkeypatch):
    monkeypatch.setattr(output, "_SECONDS_BETWEEN_LINES", 0.0)
    _, _, err = run(*PLAN, "--trials", "1", "--seed", "0")
    assert "1 of 2 fits done\n2 of 2 fits done\n" in err
    pytest.importorskip("tqdm")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    run(*PLAN, "--trials", "1", "--seed", "0")
    assert "100%|" in terminal.getvalue()
    assert "of 2 fits done" not in terminal.getvalue()


@pytest.mark.parametrize(
    ("redirected", "reason"),
    [(">/dev/full", "No space left on device"), (">&-", "it is closed")],
)
def test_no_standard_output_is_one_line_and_code_1(redirected, reason):
    program = [sys.executable, "-m", "privclust.command", *PLAN, "--trials", "1"]
    command = ["/bin/sh", "-c", f'exec "$@" {redirected}', "sh", *program]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    message = f"the standard output: cannot be written ({reason})"
    assert done.returncode == 1
    assert done.stderr.endswith(f"privclust: error: {message}\n")


def test_nothing_slow_is_imported_before_arguments():
    program = (
        "import sys; from privclust.command import main\n"
        "try: main(['cluster', '--help'])\n"
        "except SystemExit: print(set(sys.modules) & {'numpy', 'numba', 'h5py', 'sklearn', 'tqdm'})"
    )
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert time.monotonic() - start < 30
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_command_is_installed_under_its_name():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"privclust": "privclust.command:main"}


def test_plan_prints_lines_for_each_epsilon(run):
    options = ("--features", "3", "--clusters", "3", "--delta", "1e-6", "--trials", "2")
    code, out, err = run("plan", "--n", "200000", "--epsilon", "0.1", "1", "--seed", "0", *options)
    assert code == 0
    lines = out.splitlines()
    told = "round clusters", "skewed clusters", "budget"
    starts = [f"epsilon {epsilon}, {what}" for epsilon in ("0.1", "1") for what in told]
    assert [line.partition(":")[0] for line in lines] == starts
    assert ["times that without privacy" in line for line in lines] == [True, True, False] * 2
    assert all(line.endswith("% of clusters marked") for line in lines[:2])
    assert "10 % for pilot: sums of features, 50 % for sums, counts and spreads" in lines[2]
    of = "2 simulated fits of CompressiveKMeans for each shape, 50,000 rows each, noise as of all"
    assert of in err
    code, out, err = run("plan", "--n", "3", "--epsilon", "1", *options)
    assert (code, out) == (2, "")
    assert "--clusters must be less than --n" in err


@pytest.mark.parametrize(
    ("options", "method"),
    [
        (("--features", "2", "--delta", "1e-6"), "TreeKMeans"),
        (("--features", "2"), "CompressiveKMeans"),
        (("--features", "2", "--delta", "1e-6", "--method", "DPLloyd"), "DPLloyd"),
        (("--features", "2", "--method", "EUGkM", "--smallest", "0.2"), "EUGkM"),
    ],
)
def test_plan_simulates_the_method_of_cluster_or_another(run, options, method):
    task = ("--n", "2000", "--clusters", "2", "--epsilon", "1", "--trials", "1", "--seed", "0")
    code, _, err = run("plan", *task, *options)
    assert code == 0
    assert f"1 simulated fits of {method} for each shape" in err
